//! A Via: where a message came from, and to where its answers go. Source: RFC 3261, section 20.42, and RFC 3581.
//!
//! Read by hand: `ezk-sip-types` loses the branch behind a host name with an underscore, as containers have them.
use super::address::{param, split_list};
use ezk_sip_types::host::{Host, HostPort};
use std::net::{IpAddr, Ipv4Addr};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via {
    /// In upper case: `UDP`, `TCP`, `TLS`, `WS` ….
    pub transport: String,
    /// A host's name in lower case.
    pub sent_by: HostPort,
    params: String,
}

impl Via {
    /// The first of a value's.
    pub fn read(value: &str) -> Option<Via> {
        let value = split_list(value).first().copied()?;
        let (head, params) = value.split_at(value.find(';').unwrap_or(value.len()));
        let mut parts = head.splitn(3, '/').map(str::trim);
        let (protocol, version, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (transport, sent_by) = rest.split_once(|c: char| c.is_ascii_whitespace())?;
        let sent_by: String = sent_by.split_ascii_whitespace().collect();
        if !protocol.eq_ignore_ascii_case("SIP") || version != "2.0" || transport.is_empty() {
            return None;
        }
        Some(Via {
            transport: transport.to_ascii_uppercase(),
            sent_by: host_port(&sent_by.to_ascii_lowercase())?,
            params: params.to_owned(),
        })
    }

    pub fn branch(&self) -> Option<&str> {
        self.param("branch").filter(|branch| !branch.is_empty())
    }

    /// A parameter's value; empty for one without a value.
    pub fn param(&self, name: &str) -> Option<&str> {
        param(&self.params, name)
    }

    /// The address from which the message came, as its receiver wrote it; brackets are often there where none belong.
    pub fn received(&self) -> Option<IpAddr> {
        self.param("received")?.trim_matches(['[', ']']).parse().ok()
    }

    pub fn rport(&self) -> Option<u16> {
        self.param("rport")?.parse().ok()
    }
}

/// Any text without a colon is a host: what it may not be, nobody will find.
fn host_port(text: &str) -> Option<HostPort> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            (Host::IP6(address.parse().ok()?), rest)
        }
        None => {
            let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            let address = host.parse::<Ipv4Addr>().map(Host::IP4);
            (address.unwrap_or_else(|_| Host::Name(host.into())), port)
        }
    };
    let port = match port.strip_prefix(':') {
        Some(port) => Some(port.parse().ok()?),
        None if port.is_empty() => None,
        None => return None,
    };
    (host != Host::Name("".into())).then_some(HostPort { host, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vias_are_read_as_they_are_sent() {
        let table = [
            (
                "SIP/2.0/UDP h:5060;branch=z9hG4bK1;rport",
                "UDP",
                "h:5060",
                Some("z9hG4bK1"),
            ),
            (
                "SIP  /   2.0 /udp    192.0.2.2 ; branch = a, SIP/2.0/TCP b",
                "UDP",
                "192.0.2.2",
                Some("a"),
            ),
            (
                "SIP/2.0/TLS my_pbx : 5061;branch=z9hG4bK1",
                "TLS",
                "my_pbx:5061",
                Some("z9hG4bK1"),
            ),
            ("SIP/2.0/TCP [2001:DB8::1]:5060", "TCP", "[2001:db8::1]:5060", None),
        ];
        for (value, transport, sent_by, branch) in table {
            let via = Via::read(value).unwrap();
            let text = |via: &Via| match (&via.sent_by.host, via.sent_by.port) {
                (host, Some(port)) => format!("{host}:{port}"),
                (host, None) => host.to_string(),
            };
            assert_eq!(
                (via.transport.as_str(), text(&via).as_str(), via.branch()),
                (transport, sent_by, branch)
            );
        }
        for value in [
            "",
            ";",
            "SIP/2.0/UDP",
            "SIP/7.0/UDP h",
            "SIP/2.0 h",
            "HTTP/2.0/UDP h",
            "SIP/2.0/ h",
        ] {
            assert_eq!(Via::read(value), None, "{value}");
        }
    }

    #[test]
    fn what_a_receiver_adds() {
        let via = Via::read("SIP/2.0/UDP h;received=[2001:db8::1];rport=5070").unwrap();
        assert_eq!((via.received(), via.rport()), ("2001:db8::1".parse().ok(), Some(5070)));
        let via = Via::read("SIP/2.0/UDP [2001:db8::2]:5060;rport").unwrap();
        assert_eq!(
            (via.sent_by.ip(), via.received(), via.rport()),
            ("2001:db8::2".parse().ok(), None, None)
        );
        assert_eq!(
            Via::read("SIP/2.0/UDP 192.0.2.1:5060").unwrap().sent_by.ip(),
            "192.0.2.1".parse().ok()
        );
    }
}
