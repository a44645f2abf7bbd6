//! Which servers of a domain are tried, and in which order.
use super::*;
use hickory_resolver::proto::{op::Query, rr::Record};

fn srv(priority: u16, weight: u16, target: &str) -> RData {
    RData::SRV(SRV::new(priority, weight, 5060, Name::from_ascii(target).unwrap()))
}

fn naptr(order: u16, preference: u16, flags: &str, service: &str, target: &str) -> RData {
    let bytes = |text: &str| text.as_bytes().to_vec().into_boxed_slice();
    let target = Name::from_ascii(target).unwrap();
    RData::NAPTR(NAPTR::new(
        order,
        preference,
        bytes(flags),
        bytes(service),
        bytes(""),
        target,
    ))
}

fn found(records: impl IntoIterator<Item = RData>) -> Lookup {
    let name = Name::from_ascii("example.com.").unwrap();
    let records = records
        .into_iter()
        .map(|data| Record::from_rdata(name.clone(), 60, data));
    Lookup::new_with_max_ttl(Query::query(name.clone(), RecordType::SRV), records)
}

fn hosts(services: Services) -> Vec<String> {
    match services {
        Services::Found { services, .. } => services.into_iter().map(|service| service.host).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn servers_come_by_priority_and_among_equals_by_weight() {
    let lookup = found([
        srv(20, 0, "last.example.com."),
        srv(10, 3, "Three.example.com."),
        srv(10, 1, "one.example.com."),
        srv(10, 0, "none.example.com."),
    ]);
    // The sums in their order are 0, 3 and 4; then 0 and 1 of the two that are left.
    for (drawn, expected) in [
        ([0, 0, 0, 0], ["none", "three", "one", "last"]),
        ([1, 1, 0, 0], ["three", "one", "none", "last"]),
        ([4, 0, 0, 0], ["one", "none", "three", "last"]),
    ] {
        let mut drawn = drawn.into_iter();
        let services = ordered(std::slice::from_ref(&lookup), |_| drawn.next().unwrap());
        let expected: Vec<_> = expected.iter().map(|name| format!("{name}.example.com")).collect();
        assert_eq!(hosts(services), expected);
    }
}

#[test]
fn a_domain_without_servers_says_so() {
    assert_eq!(ordered(&[], |most| most), Services::Unknown);
    assert_eq!(ordered(&[found([])], |most| most), Services::Unknown);
    assert_eq!(ordered(&[found([srv(0, 0, ".")])], |most| most), Services::Declined);
}

#[test]
fn no_more_servers_are_looked_at_than_a_domain_needs() {
    let many = (0..100).map(|nth| srv(nth, 0, &format!("s{nth}.example.com.")));
    assert_eq!(hosts(ordered(&[found(many)], |most| most)).len(), MAX_SERVICES);
}

#[test]
fn rules_of_other_transports_are_passed_over() {
    let lookup = found([
        naptr(90, 50, "s", "SIP+D2T", "tcp.example.com."),
        naptr(100, 60, "S", "sip+d2u", "second.example.com."),
        naptr(100, 50, "s", "SIP+D2U", "first.example.com."),
        naptr(80, 50, "u", "SIP+D2U", "not-terminal.example.com."),
        naptr(80, 50, "s", "SIPS+D2T", "tls.example.com."),
        naptr(80, 50, "s", "SIP+D2U", "."),
    ]);
    for (transport, expected) in [
        (Transport::Udp, vec!["first.example.com.", "second.example.com."]),
        (Transport::Tcp, vec!["tcp.example.com."]),
        (Transport::Tls, vec!["tls.example.com."]),
    ] {
        assert_eq!(service_names(&lookup, transport), expected);
    }
}

#[test]
fn name_servers_are_read_as_the_system_reads_them() {
    let text =
        "# x\nsearch a\nnameserver 192.0.2.1\n nameserver\tfe80::1%eth0 # y\nnameserver x\nnameserver 127.0.0.11\n";
    let expected = ["192.0.2.1:53", "[fe80::1]:53", "127.0.0.11:53"].map(|text| text.parse().unwrap());
    assert_eq!(name_servers(text), expected);
}
