//! What a request looks like, and which answers are understood.
use super::*;

fn answer(head: &str) -> Result<Option<(Message, usize)>, String> {
    read(head.as_bytes())
}

#[test]
fn a_request_has_what_every_request_must_have() {
    let request = Request::new();
    let text = request.text(
        Transport::Tls,
        "sip.example.com:5061",
        "us.example",
        "192.0.2.7:40000".parse().unwrap(),
    );
    let lines: Vec<_> = text.split("\r\n").collect();
    assert_eq!(lines[0], "OPTIONS sip:sip.example.com:5061;transport=tls SIP/2.0");
    assert!(lines[1].starts_with("Via: SIP/2.0/TLS 192.0.2.7:40000;rport;branch=z9hG4bK"));
    for name in [
        "Max-Forwards: 70",
        "From: <sip:callboard@us.example>;tag=",
        "To: <sip:sip.example.com:5061>",
        "Call-ID: ",
        "CSeq: 1 OPTIONS",
        "Contact: <sip:callboard@192.0.2.7:40000;transport=tls>",
        "Content-Length: 0",
    ] {
        assert_eq!(lines.iter().filter(|line| line.starts_with(name)).count(), 1, "{name}");
    }
    assert!(text.ends_with("\r\n\r\n"));
    assert_ne!(Request::new().call_id, request.call_id);
    assert_eq!(
        read(text.as_bytes()).unwrap(),
        Some((Message::Other, text.len())),
        "a request is not an answer"
    );
}

#[test]
fn an_answer_is_known_by_call_id_and_cseq() {
    let request = Request::new();
    let of = |call_id: &str, cseq: &str| {
        let text = format!("SIP/2.0 200 OK\r\nCall-ID: {call_id}\r\nCSeq: {cseq}\r\n\r\n");
        match read_datagram(text.as_bytes()).unwrap() {
            Message::Answer(answer) => request.is_answered_by(&answer),
            Message::Other => panic!("no answer"),
        }
    };
    assert!(of(&request.call_id, "1 OPTIONS"));
    assert!(of(&request.call_id, "1   OPTIONS"));
    assert!(!of("another", "1 OPTIONS"));
    assert!(!of(&request.call_id, "2 OPTIONS"));
    assert!(!of(&request.call_id, "1 INVITE"));
}

#[test]
fn reads_what_the_rfc_allows() {
    // Compact names, any case, folded lines, bare line feeds, a body, line ends before.
    let text = "\r\n\r\nSIP/2.0 405 Method  Not Allowed\ni:\n abc\ncseq :1\n  OPTIONS\nL: 4\n\nbodySIP/2.0 ";
    let (message, length) = answer(text).unwrap().unwrap();
    let Message::Answer(found) = message else {
        panic!("no answer")
    };
    assert_eq!((found.status, found.reason.as_str()), (405, "Method  Not Allowed"));
    assert_eq!((found.call_id.as_str(), found.cseq.as_str()), ("abc", "1 OPTIONS"));
    assert_eq!(&text[length..], "SIP/2.0 ");
    let no_reason = answer("SIP/2.0 200\r\nCall-ID: a\r\nCSeq: 1 OPTIONS\r\n\r\n")
        .unwrap()
        .unwrap()
        .0;
    assert!(matches!(no_reason, Message::Answer(Answer { status: 200, .. })));
    let odd = answer("SIP/2.0 200 \u{1b}[31m\u{7}ok\r\nCall-ID: a\r\nCSeq: 1 OPTIONS\r\n\r\n")
        .unwrap()
        .unwrap()
        .0;
    assert!(matches!(odd, Message::Answer(Answer { reason, .. }) if reason == "[31mok"));
    assert_eq!(
        answer("SIP/2.0 200 OK\r\nVia: x\r\n\r\n").unwrap().unwrap().0,
        Message::Other
    );
}

#[test]
fn waits_for_the_rest_and_refuses_what_is_no_sip() {
    let whole = "SIP/2.0 200 OK\r\nCall-ID: a\r\nCSeq: 1 OPTIONS\r\nContent-Length: 2\r\n\r\nxy";
    for end in 0..whole.len() {
        assert_eq!(answer(&whole[..end]), Ok(None), "{:?}", &whole[..end]);
    }
    for text in [
        "HTTP/1.1 400 Bad Request\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "220 mail.example ESMTP\r\n",
        "\u{0}\u{1}\u{2}",
        "SIP/2.0 20 OK\r\n\r\n",
        "SIP/2.0 999 OK\r\n\r\n",
        "SIP/2.0 +20 OK\r\n\r\n",
        "SIP/3.0 200 OK\r\n\r\n",
        "SIP/2.0 200 OK\r\nContent-Length: -1\r\n\r\n",
    ] {
        assert!(answer(text).is_err(), "{text}");
    }
    assert!(read_datagram(&whole.as_bytes()[..20]).is_err());
    assert!(read(b"SIP/2.0 200 \xff\xfe\r\n\r\n").is_err());
}
