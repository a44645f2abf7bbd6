use super::*;
use crate::message::{Message, read_datagram};

fn request(text: &str) -> Request {
    match read_datagram(text.replace('\n', "\r\n").as_bytes()).unwrap() {
        Message::Request(request) => request,
        Message::Response(_) => panic!("a response"),
    }
}

fn response(text: &str) -> Response {
    match read_datagram(text.replace('\n', "\r\n").as_bytes()).unwrap() {
        Message::Response(response) => response,
        Message::Request(_) => panic!("a request"),
    }
}

fn sender() -> Sender {
    Sender {
        transport: Transport::Udp,
        sent_by: "192.0.2.1:5060".to_owned(),
        contact: "sip:callboard@192.0.2.1:5060".parse().unwrap(),
        user_agent: None,
    }
}

const HEAD: &str = "Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK1\nFrom: \"A\" <sip:a@192.0.2.1>;tag=ours\n\
    To: <sip:b@pbx.example>;tag=theirs\nCall-ID: c1\n";

fn answered(more: &str) -> Dialog {
    Dialog::of_answer(&response(&format!("SIP/2.0 200 OK\n{HEAD}CSeq: 3 INVITE\n{more}\n"))).unwrap()
}

#[test]
fn the_caller_reverses_the_route_set() {
    let dialog = answered(
        "Contact: <sip:b@198.51.100.9:5070>\nRecord-Route: <sip:p2;lr>, <sip:p1;lr>\nRecord-Route: <sip:p0;lr>\n",
    );
    assert_eq!(dialog.route_set, ["<sip:p0;lr>", "<sip:p1;lr>", "<sip:p2;lr>"]);
    assert_eq!(
        (dialog.local_tag.as_str(), dialog.remote_tag.as_str()),
        ("ours", "theirs")
    );
    assert_eq!(dialog.local_cseq, 3);
    let bye = dialog.request(Method::BYE, 4, "z9hG4bK2", &sender());
    let bytes = String::from_utf8(bye.to_bytes().to_vec()).unwrap();
    assert!(bytes.starts_with(
        "BYE sip:b@198.51.100.9:5070 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1:5060;rport;branch=z9hG4bK2\r\n"
    ));
    assert!(bytes.contains("From: \"A\" <sip:a@192.0.2.1>;tag=ours\r\n"), "{bytes}");
    assert!(bytes.contains("To: <sip:b@pbx.example>;tag=theirs\r\n"), "{bytes}");
    assert!(bytes.contains("CSeq: 4 BYE\r\n"), "{bytes}");
    assert_eq!(bye.list(Name::ROUTE), dialog.route_set);
    assert_eq!(uri_text(&dialog.next_hop()), "sip:p0;lr");
}

#[test]
fn the_callee_keeps_the_order_and_swaps_the_ends() {
    let invite = request(
        "INVITE sip:us@192.0.2.1 SIP/2.0\nVia: SIP/2.0/UDP 198.51.100.9;branch=z9hG4bK9\n\
         From: <sip:b@pbx.example>;tag=theirs\nTo: <sip:us@192.0.2.1>\nCall-ID: c2\nCSeq: 17 INVITE\n\
         Contact: <sip:b@198.51.100.9:5070>\nRecord-Route: <sip:p1;lr>\nRecord-Route: <sip:p2;lr>\n\n",
    );
    let dialog = Dialog::of_request(&invite, "ours").unwrap();
    assert_eq!(dialog.route_set, ["<sip:p1;lr>", "<sip:p2;lr>"]);
    assert_eq!(dialog.local, "<sip:us@192.0.2.1>;tag=ours");
    assert_eq!(dialog.remote, "<sip:b@pbx.example>;tag=theirs");
    assert_eq!((dialog.local_cseq, dialog.remote_cseq), (0, Some(17)));
}

#[test]
fn a_proxy_of_rfc_2543_gets_the_request_uri() {
    let dialog = answered("Contact: <sip:b@198.51.100.9>\nRecord-Route: <sip:p2;lr>, <sip:p1.example>\n");
    let info = dialog.request(Method::INFO, 4, "z9hG4bK2", &sender());
    assert_eq!(uri_text(&info.uri), "sip:p1.example");
    assert_eq!(info.list(Name::ROUTE), ["<sip:p2;lr>", "<sip:b@198.51.100.9>"]);
}

#[test]
fn without_contact_the_peer_is_where_to_says() {
    assert_eq!(uri_text(&answered("").remote_target), "sip:b@pbx.example");
    assert_eq!(uri_text(&answered("").next_hop()), "sip:b@pbx.example");
}

#[test]
fn numbers_of_the_peer_only_rise() {
    let mut dialog = answered("");
    let numbered = |number: u32| {
        request(&format!(
            "INFO sip:a@x SIP/2.0\nVia: SIP/2.0/UDP x;branch=z9hG4bK{number}\nFrom: <sip:b@pbx.example>;tag=theirs\n\
             To: <sip:a@x>;tag=ours\nCall-ID: c1\nCSeq: {number} INFO\n\n"
        ))
    };
    for (number, expected) in [
        (7, Order::Next),
        (7, Order::Next),
        (6, Order::Late),
        (900, Order::Next),
        (8, Order::Late),
    ] {
        assert_eq!(dialog.take(&numbered(number)), expected, "{number}");
    }
    assert!(dialog.holds(&numbered(1)));
}

#[test]
fn only_both_tags_and_the_call_id_make_a_dialog() {
    let dialog = answered("");
    for (call_id, from, to, expected) in [
        ("c1", "theirs", "ours", true),
        ("c2", "theirs", "ours", false),
        ("c1", "x", "ours", false),
        ("c1", "theirs", "x", false),
    ] {
        let bye = request(&format!(
            "BYE sip:a@x SIP/2.0\nVia: SIP/2.0/UDP x;branch=z9hG4bK1\nFrom: <sip:b@x>;tag={from}\n\
             To: <sip:a@x>;tag={to}\nCall-ID: {call_id}\nCSeq: 1 BYE\n\n"
        ));
        assert_eq!(dialog.holds(&bye), expected, "{call_id} {from} {to}");
    }
}
