//! Replies to requests that nobody of ours will see again, and where replies go. Source: RFC 3261, section 18.2, RFC 3581.
use super::{line::Target, phones::Switchboard, table::Source};
use sip::message::{Fields, Method, Name, Request, Response, Transport, address::split_list};
use std::net::SocketAddr;

/// What a peer may ask of us.
pub const ALLOW: &str = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK, NOTIFY";

/// A request with the address that it came from in its first Via, so that whoever answers it knows where to.
pub fn stamped(mut request: Request, source: &Source) -> Request {
    let Some(values) = request.headers.remove(&Name::VIA) else {
        return request;
    };
    for (at, value) in values.iter().enumerate() {
        let value = match at {
            0 => stamp(value.as_str(), source),
            _ => value.as_str().to_owned(),
        };
        request.headers.insert(Name::VIA, value);
    }
    request
}

fn stamp(value: &str, source: &Source) -> String {
    let mut vias = split_list(value).into_iter();
    let first = vias.next().unwrap_or_default();
    let mut parts = first.split(';').map(str::trim);
    let mut stamped = parts.next().unwrap_or_default().to_owned();
    let mut wants_port = source.transport.is_reliable();
    for part in parts {
        let name = part.split('=').next().unwrap_or_default().trim();
        if name.eq_ignore_ascii_case("rport") {
            wants_port = true;
        } else if !name.eq_ignore_ascii_case("received") {
            stamped.push(';');
            stamped.push_str(part);
        }
    }
    stamped.push_str(&format!(";received={}", source.address.ip()));
    if wants_port {
        stamped.push_str(&format!(";rport={}", source.address.port()));
    }
    for via in vias {
        stamped.push_str(", ");
        stamped.push_str(via);
    }
    stamped
}

/// Where replies to it go. Over a stream: to where it came from.
pub fn target(request: &Request, source: &Source) -> Target {
    let port = match source.transport {
        Transport::Udp => request.top_via().and_then(|via| via.rport().or(via.sent_by.port)),
        Transport::Tcp | Transport::Tls => Some(source.address.port()),
    };
    Target {
        address: SocketAddr::new(source.address.ip(), port.unwrap_or(5060)),
        transport: source.transport,
        name: source.address.ip().to_string().into(),
    }
}

/// A reply that nobody repeats: whoever asked asks again.
pub fn send(switchboard: &Switchboard, request: &Request, source: &Source, reply: &Response) {
    let sent = switchboard.line.reply(reply.to_bytes(), &target(request, source));
    if let Err(error) = sent {
        tracing::debug!(%error, "a reply was not sent");
    }
}

/// To a request that is of no call of ours; `None`: it gets none.
pub fn out_of_call(request: &Request, tag: &str, is_draining: bool) -> Option<Response> {
    let gone = || request.response(481, "Call/Transaction Does Not Exist", Some(tag));
    let reply = match &request.method {
        &Method::ACK => return None,
        &Method::OPTIONS if is_draining => request.response(503, "Shutting Down", Some(tag)),
        &Method::OPTIONS => request.response(200, "OK", Some(tag)),
        &Method::CANCEL | &Method::BYE | &Method::PRACK | &Method::UPDATE | &Method::INFO | &Method::NOTIFY => gone(),
        _ if request.to_tag().is_some() => gone(),
        // Nobody sends calls of ours elsewhere.
        &Method::REFER => request.response(603, "Decline", Some(tag)),
        _ => request.response(405, "Method Not Allowed", Some(tag)),
    };
    Some(with_allow(reply))
}

fn with_allow(mut reply: Response) -> Response {
    if matches!(reply.code, 200 | 405) {
        reply.headers.insert(Name::ALLOW, ALLOW);
    }
    if reply.code == 200 {
        reply.headers.insert(Name::ACCEPT, "application/sdp");
    }
    reply
}

/// Who calls, as far as the caller lets it be known: its number as it was written.
pub fn caller(request: &Request) -> Option<String> {
    let is_private = request.list("Privacy").iter().any(|privacy| {
        let mut wishes = privacy.split(';').map(str::trim);
        wishes.any(|wish| wish.eq_ignore_ascii_case("id") || wish.eq_ignore_ascii_case("user"))
    });
    let asserted = request.user_of("P-Asserted-Identity");
    let user = asserted.or_else(|| request.user_of(Name::FROM))?;
    (!is_private && !user.eq_ignore_ascii_case("anonymous")).then_some(user)
}

/// What the network says of whether the caller's number is his own: `passed`, `failed` or `none`. Source: ATIS-1000074, `verstat`.
pub fn verification(request: &Request) -> &'static str {
    let headers = ["P-Asserted-Identity", "From"].map(|name| request.header_text(name).unwrap_or_default());
    let text = headers.join(" ").to_ascii_lowercase();
    if text.contains("verstat=tn-validation-passed") {
        "passed"
    } else if text.contains("verstat=tn-validation-failed") {
        "failed"
    } else {
        "none"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sip::message::{Message, read_datagram};

    #[test]
    fn the_first_via_says_where_the_request_came_from() {
        let source = |transport| Source {
            address: "192.0.2.7:1234".parse().unwrap(),
            transport,
        };
        for (value, transport, expected) in [
            (
                "SIP/2.0/UDP 10.0.0.1:5060;branch=z9hG4bK1;rport",
                Transport::Udp,
                "SIP/2.0/UDP 10.0.0.1:5060;branch=z9hG4bK1;received=192.0.2.7;rport=1234",
            ),
            (
                "SIP/2.0/UDP 10.0.0.1;received=1.2.3.4;branch=z9hG4bK1, SIP/2.0/UDP b;branch=2",
                Transport::Udp,
                "SIP/2.0/UDP 10.0.0.1;branch=z9hG4bK1;received=192.0.2.7, SIP/2.0/UDP b;branch=2",
            ),
            (
                "SIP/2.0/TCP a;branch=z9hG4bK1",
                Transport::Tcp,
                "SIP/2.0/TCP a;branch=z9hG4bK1;received=192.0.2.7;rport=1234",
            ),
        ] {
            assert_eq!(stamp(value, &source(transport)), expected);
        }
    }

    fn request(method: &str, more: &str) -> Request {
        let text = format!(
            "{method} sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP b;branch=z9hG4bK1\r\nFrom: \"Bob\" <sip:+12025550111@b>;tag=1\r\n\
             Call-ID: x\r\nCSeq: 1 {method}\r\nMax-Forwards: 70\r\n{more}\r\n"
        );
        match read_datagram(text.as_bytes()) {
            Ok(Message::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_of_no_call_is_answered_by_its_method() {
        let (new, inside) = ("To: <sip:a@b>\r\n", "To: <sip:a@b>;tag=2\r\n");
        for (method, to, is_draining, code) in [
            ("ACK", inside, false, None),
            ("OPTIONS", new, false, Some(200)),
            ("OPTIONS", new, true, Some(503)),
            ("BYE", inside, false, Some(481)),
            ("CANCEL", new, false, Some(481)),
            ("NOTIFY", inside, false, Some(481)),
            ("INVITE", inside, false, Some(481)),
            ("REFER", new, false, Some(603)),
            ("MESSAGE", new, false, Some(405)),
            ("REGISTER", new, false, Some(405)),
        ] {
            let reply = out_of_call(&request(method, to), "t", is_draining);
            assert_eq!(reply.as_ref().map(|reply| reply.code), code, "{method}");
            let says_what_may_be_asked = reply.is_some_and(|reply| reply.header_text(Name::ALLOW).is_some());
            assert_eq!(says_what_may_be_asked, matches!(code, Some(200 | 405)), "{method}");
        }
    }

    #[test]
    fn who_hides_stays_hidden_and_whom_the_carrier_vouches_for_counts() {
        let to = "To: <sip:a@b>\r\n";
        let vouched = "P-Asserted-Identity: <sip:+12025550133;verstat=TN-Validation-Passed@b;user=phone>\r\n";
        for (more, number, verified) in [
            (String::new(), Some("+12025550111"), "none"),
            (vouched.to_owned(), Some("+12025550133"), "passed"),
            (format!("{vouched}Privacy: user;id\r\n"), None, "passed"),
            (
                "P-Asserted-Identity: <sip:anonymous@anonymous.invalid>\r\n".to_owned(),
                None,
                "none",
            ),
        ] {
            let request = request("INVITE", &format!("{to}{more}"));
            assert_eq!(caller(&request).as_deref(), number, "{more}");
            assert_eq!(verification(&request), verified, "{more}");
        }
    }
}
