//! What is read, what is not, and what is written. The messages of RFC 4475 and RFC 5118 are files in `tests/`.
use super::*;
use std::{collections::BTreeMap, fs, path::Path, time::Duration};

const OK: &str = "INVITE sip:+14155550100@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.2:5060;rport;branch=z9hG4bKabc\r\n\
    Max-Forwards: 70\r\nFrom: \"A\" <sip:+14155550199@192.0.2.2>;tag=a1\r\nTo: <sip:+14155550100@127.0.0.1>\r\n\
    Call-ID: c1@192.0.2.2\r\nCSeq: 1 INVITE\r\nContact: <sip:a@192.0.2.2:5060>\r\nContent-Type: application/sdp\r\n\
    Content-Length: 23\r\n\r\nv=0\r\no=- 1 1 IN IP4 1\r\n";

fn request(text: &str) -> Request {
    match read_datagram(text.as_bytes()).unwrap() {
        Message::Request(request) => request,
        Message::Response(_) => panic!("no request"),
    }
}

/// All files of a folder in `tests/`, by name.
fn corpus(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| {
            (
                path.file_stem().unwrap().to_str().unwrap().to_owned(),
                fs::read(&path).unwrap(),
            )
        })
        .collect()
}

/// Those that are not in the list are read.
fn check_corpus(folder: &str, count: usize, refused: &[(&str, Unreadable)]) {
    let corpus = corpus(folder);
    assert_eq!(corpus.len(), count);
    assert!(refused.iter().all(|(name, _)| corpus.contains_key(*name)));
    for (name, bytes) in &corpus {
        let expected = refused.iter().find(|(of, _)| of == name).map(|(_, why)| *why);
        assert_eq!(read_datagram(bytes).err(), expected, "{folder} {name}");
    }
}

#[test]
fn the_torture_test_messages() {
    use Unreadable::{ContentLength, CutOff, Missing, OtherMethod, Repeated, RequestUri, Status, Version};
    check_corpus(
        "rfc4475",
        49,
        &[
            ("baddn", Missing("From")),
            ("badvers", Version),
            ("bigcode", Status),
            ("clerr", CutOff),
            ("insuf", Missing("From")),
            ("ltgtruri", RequestUri),
            ("lwsruri", RequestUri),
            ("mcl01", Repeated("Content-Length")),
            ("mismatch01", OtherMethod),
            ("mismatch02", OtherMethod),
            ("multi01", Repeated("From")),
            ("ncl", ContentLength),
            ("novelsc", RequestUri),
            ("scalar02", Missing("CSeq")),
            ("scalarlg", Missing("CSeq")),
            ("unkscm", RequestUri),
        ],
    );
}

#[test]
fn messages_with_ipv6_addresses() {
    let bad = [
        ("ipv6-bad", Unreadable::RequestUri),
        ("ipv6-bug-abnf-3-colons", Unreadable::RequestUri),
    ];
    check_corpus("rfc5118", 11, &bad);
    let corpus = corpus("rfc5118");
    let via = |name: &str| read_datagram(&corpus[name]).unwrap().top_via().unwrap();
    let received = "2001:db8::9:255".parse().ok();
    assert_eq!(via("via-received-param-with-delim").received(), received);
    assert_eq!(via("via-received-param-no-delim").received(), received);
    assert_eq!(via("ipv4-mapped-ipv6").sent_by.port, Some(19823));
}

#[test]
fn the_hard_ones_are_understood() {
    let corpus = corpus("rfc4475");
    let read = |name: &str| read_datagram(&corpus[name]).unwrap();
    let wsinv = read("wsinv");
    assert_eq!(wsinv.cseq(), (9, Method::INVITE));
    assert_eq!(wsinv.top_via_branch().as_deref(), Some("390skdjuw"));
    assert_eq!(
        (wsinv.from_tag().as_deref(), wsinv.to_tag().as_deref()),
        (Some("98asjd8"), Some("1918181833n"))
    );
    assert_eq!(wsinv.user_of(Name::FROM).as_deref(), Some("jdrosen"));
    assert_eq!(uri_text(&wsinv.contact().unwrap()), "sip:jdrosen@example.com");
    assert_eq!(
        wsinv.header_text("newfangledheader").as_deref(),
        Some("newfangled value continued newfangled value")
    );
    let Message::Request(intmeth) = read("intmeth") else {
        panic!("no request")
    };
    assert_eq!(intmeth.method.as_str(), "!interesting-Method0123456789_*+`.%indeed'~");
    assert_eq!(intmeth.from_tag().as_deref(), Some("_token~1'+`*%!-."));
    assert_eq!(intmeth.call_id(), "intmeth.word%ZK-!.*_+'@word`~)(><:\\/\"][?}{");
    assert_eq!(read("esc02").list(Name::CONTACT).len(), 2, "a name is not unescaped");
    let Message::Request(dblreq) = read("dblreq") else {
        panic!("no request")
    };
    assert!(dblreq.body.is_empty(), "what follows in a datagram is left out");
    let Message::Response(noreason) = read("noreason") else {
        panic!("no response")
    };
    assert_eq!((noreason.code, noreason.reason.as_str()), (100, ""));
    let Message::Request(zeromf) = read("zeromf") else {
        panic!("no request")
    };
    assert_eq!(refuse::too_many_hops(&zeromf, "t").unwrap().code, 483);
    assert!(refuse::too_many_hops(&intmeth, "t").is_none());
    let Message::Request(bext01) = read("bext01") else {
        panic!("no request")
    };
    let refused = refuse::bad_extension(&bext01, &["timer", "NOTHINGsupportsthis"], "t").unwrap();
    assert_eq!(
        (refused.code, refused.list(Name::UNSUPPORTED)),
        (420, vec!["nothingSupportsThisEither".into()])
    );
    assert!(refuse::bad_extension(&dblreq, &[], "t").is_none());
    assert_eq!(refuse::merged(&bext01, "t").code, 482);
}

#[test]
fn what_is_read_is_written_and_read_again() {
    for folder in ["rfc4475", "rfc5118"] {
        for (name, bytes) in corpus(folder) {
            let Ok(message) = read_datagram(&bytes) else { continue };
            let again = read_datagram(&message.to_bytes()).unwrap();
            assert_eq!(again.to_bytes(), message.to_bytes(), "{name}");
            assert_eq!(
                (again.call_id(), again.cseq()),
                (message.call_id(), message.cseq()),
                "{name}"
            );
        }
    }
    assert_eq!(request(OK).to_bytes(), OK.as_bytes());
}

#[test]
fn a_datagram_without_a_length_is_all_body() {
    assert_eq!(request(&OK.replace("Content-Length: 23\r\n", "")).body.len(), 23);
    assert_eq!(request(&OK.replace("Length: 23", "Length: 3")).body, "v=0");
    assert_eq!(
        read_datagram(OK.replace("Length: 23", "Length: 24").as_bytes()).err(),
        Some(Unreadable::CutOff)
    );
}

#[test]
fn latin_1_is_a_name_and_not_the_end_of_the_message() {
    let mut bytes = OK.as_bytes().to_vec();
    let at = OK.find("\"A\"").unwrap() + 1;
    bytes[at] = 0xcb;
    let message = read_datagram(&bytes).unwrap();
    assert_eq!(Address::read(&message.header_text(Name::FROM).unwrap()).display, "Ë");
    assert_eq!(message.cseq(), (1, Method::INVITE));
}

#[test]
fn limits_come_before_everything_else() {
    let with = |extra: &str| read_datagram(OK.replace("Max-Forwards: 70\r\n", extra).as_bytes()).err();
    assert_eq!(with(&"X: y\r\n".repeat(120)), None);
    assert_eq!(with(&"X: y\r\n".repeat(121)), Some(Unreadable::TooManyHeaders));
    assert_eq!(with(&format!("X: {}\r\n", "y".repeat(8 * 1024 - 3))), None);
    assert_eq!(
        with(&format!("X: {}\r\n", "y".repeat(8 * 1024))),
        Some(Unreadable::HeaderTooLong)
    );
    assert_eq!(
        with(&format!("X: y\r\n{}", " y\r\n".repeat(8 * 1024))),
        Some(Unreadable::HeaderTooLong)
    );
    assert_eq!(
        read_datagram(&vec![b'x'; MAX_BYTES + 1]).err(),
        Some(Unreadable::TooLong)
    );
    assert_eq!(with("no header\r\n"), Some(Unreadable::NoHeader));
    assert_eq!(with(": y\r\n"), Some(Unreadable::NoHeader));
    for text in [
        "",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "INVITE sip:a@b\r\n\r\n",
        "\0\0\0\0",
    ] {
        assert!(
            matches!(
                read_datagram(text.as_bytes()),
                Err(Unreadable::NotSip | Unreadable::CutOff)
            ),
            "{text:?}"
        );
    }
    for status in ["20", "999", "+20", "2000", "099"] {
        let text = OK.replace(
            "INVITE sip:+14155550100@127.0.0.1 SIP/2.0",
            &format!("SIP/2.0 {status} OK"),
        );
        assert_eq!(
            read_datagram(text.as_bytes()).err(),
            Some(Unreadable::Status),
            "{status}"
        );
    }
}

#[test]
fn a_cseq_names_a_method_and_nothing_else() {
    for method in ["IN\0ITE", "INV\u{7}TE", "INVITE,", "INVITE 2", "", "É"] {
        let text = OK.replace("INVITE sip:+14155550100@127.0.0.1 SIP/2.0", "SIP/2.0 200 OK");
        let text = text.replace("CSeq: 1 INVITE", &format!("CSeq: 1 {method}"));
        assert_eq!(
            read_datagram(text.as_bytes()).err(),
            Some(Unreadable::Missing("CSeq")),
            "{method:?}"
        );
    }
}

#[test]
fn what_a_reply_copies_is_read_as_it_was() {
    for via in [
        "SIP/2.0/UDP h;branch=z9hG4bK1\0x",
        "SIP/2.0/UDP h:\r5060",
        "SIP/2.0/U\0DP h",
    ] {
        let text = OK.replace("SIP/2.0/UDP 192.0.2.2:5060;rport;branch=z9hG4bKabc", via);
        let Ok(Message::Request(request)) = read_datagram(text.as_bytes()) else {
            continue;
        };
        let response = request.response(486, "Busy Here", Some("t"));
        let again = read_datagram(&response.to_bytes()).unwrap();
        assert_eq!(again.top_via(), request.top_via(), "{via:?}");
    }
}

fn frames(reader: &mut StreamReader) -> (Vec<String>, Option<Unreadable>) {
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(Frame::Message(message))) => found.push(format!("{message:?}")),
            Ok(Some(frame)) => found.push(format!("{frame:?}")),
            Ok(None) => return (found, None),
            Err(why) if why.ends_stream() => return (found, Some(why)),
            Err(why) => found.push(why.to_string()),
        }
    }
}

#[test]
fn a_stream_is_cut_into_messages_wherever_it_is_split() {
    let text = format!(
        "\r\n\r\n{OK}\r\n{}{OK}\r\n\r\n",
        OK.replace("sip:+14155550100@127.0.0.1 SIP", "tel:+14155550100 SIP")
    );
    let invite = "Request(INVITE (CSeq 1, 23 bytes))";
    let uri = "the URI of the request is not a SIP URI";
    let mut whole = StreamReader::new();
    whole.push(text.as_bytes());
    assert_eq!(
        frames(&mut whole),
        (
            ["Ping", invite, "Pong", uri, invite, "Ping"]
                .map(str::to_owned)
                .to_vec(),
            None
        )
    );
    for size in 1..7 {
        let mut reader = StreamReader::new();
        let mut found = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            reader.push(piece);
            let (more, end) = frames(&mut reader);
            assert_eq!(end, None);
            found.extend(more);
        }
        // A ping that comes in two halves is seen as a pong first: the second half asks.
        found.retain(|frame| frame != "Pong");
        assert_eq!(found, ["Ping", invite, uri, invite, "Ping"], "{size}");
    }
}

#[test]
fn a_stream_that_cannot_be_cut_is_at_its_end() {
    let end = |text: &str| {
        let mut reader = StreamReader::new();
        reader.push(text.as_bytes());
        frames(&mut reader).1
    };
    assert_eq!(
        end(&OK.replace("Content-Length: 23\r\n", "")),
        Some(Unreadable::Missing("Content-Length"))
    );
    assert_eq!(
        end(&OK.replace("Length: 23", "Length: 70000")),
        Some(Unreadable::TooLong)
    );
    assert_eq!(
        end(&OK.replace("Length: 23", "Length: 99999999999999999999")),
        Some(Unreadable::ContentLength)
    );
    assert_eq!(end("HTTP/1.1 400 Bad Request\r\n"), Some(Unreadable::NotSip));
    assert_eq!(end(&"x".repeat(9000)), Some(Unreadable::NotSip));
    assert_eq!(
        end(&format!("INVITE sip:a@b SIP/2.0\r\n{}", "X: y\r\n".repeat(20_000))),
        Some(Unreadable::TooLong)
    );
    assert_eq!(end(&"\n".repeat(100_000)), None);
    assert_eq!(end(&"\r".repeat(100_000)), None);
}

#[test]
fn a_reply_has_what_every_reply_copies() {
    let text = OK.replace(
        "Max-Forwards: 70\r\n",
        "Via: SIP/2.0/TCP p, SIP/2.0/UDP q\r\nRecord-Route: <sip:p;lr>\r\nTimestamp: 5\r\n",
    );
    let invite = request(&text);
    let head = "Via: SIP/2.0/UDP 192.0.2.2:5060;rport;branch=z9hG4bKabc\r\nVia: SIP/2.0/TCP p, SIP/2.0/UDP q\r\n\
        From: \"A\" <sip:+14155550199@192.0.2.2>;tag=a1\r\n";
    let rest = "Call-ID: c1@192.0.2.2\r\nCSeq: 1 INVITE\r\nRecord-Route: <sip:p;lr>\r\n";
    let trying = format!(
        "SIP/2.0 100 Trying\r\n{head}To: <sip:+14155550100@127.0.0.1>\r\n{rest}Timestamp: 5\r\nContent-Length: 0\r\n\r\n"
    );
    assert_eq!(invite.response(100, "Trying", None).to_bytes(), trying);
    let ringing = format!(
        "SIP/2.0 180 Ringing\r\n{head}To: <sip:+14155550100@127.0.0.1>;tag=t\r\n{rest}Content-Length: 0\r\n\r\n"
    );
    assert_eq!(invite.response(180, "Ringing", Some("t")).to_bytes(), ringing);
    let within = request(&OK.replace("@127.0.0.1>\r\n", "@127.0.0.1>;tag=old\r\n"));
    assert_eq!(within.response(200, "OK", Some("new")).to_tag().as_deref(), Some("old"));
}

#[test]
fn nothing_in_a_value_ends_its_line() {
    let mut invite = request(OK);
    invite.headers.insert("Subject", "a\r\nX-Injected: b\n\nc");
    let response = invite.response(200, "OK\r\nX: y", None);
    for bytes in [invite.to_bytes(), response.to_bytes()] {
        let message = read_datagram(&bytes).unwrap();
        assert!(message.header_text("X-Injected").is_none() && message.header_text("X").is_none());
    }
}

#[test]
fn accessors_read_what_they_can() {
    let extra = "Reason: SIP;cause=480, Q.850 ;cause=17;text=\"User, busy\"\r\nRetry-After: 18 (busy);duration=3\r\n\
        Supported: timer, 100rel\r\nk: Replaces\r\nP-Asserted-Identity: <tel:+14155550199>\r\nRecord-Route: <sip:a;lr>,<sip:b;lr>\r\n";
    let message = request(&OK.replace("Max-Forwards: 70\r\n", extra));
    assert_eq!(
        (message.reason_cause(), message.retry_after()),
        (Some(17), Some(Duration::from_secs(18)))
    );
    assert!(message.lists(Name::SUPPORTED, "TIMER") && message.lists(Name::SUPPORTED, "replaces"));
    assert!(!message.lists(Name::SUPPORTED, "100"));
    assert_eq!(message.user_of("P-Asserted-Identity").as_deref(), Some("+14155550199"));
    assert_eq!(message.record_route(), ["<sip:a;lr>", "<sip:b;lr>"]);
    let bare = Response {
        code: 200,
        reason: String::new(),
        headers: Headers::new(),
        body: Bytes::new(),
    };
    assert_eq!((bare.call_id(), bare.cseq()), ("", (0, Method::from(""))));
    assert!(bare.top_via().is_none() && bare.from_uri().is_none() && bare.retry_after().is_none());
    for (value, expected) in [
        ("Q.850;cause=0", None),
        ("Q.850;cause=128", None),
        ("Q.850", None),
        ("q.850;text=x;cause=\"16\"", Some(16)),
    ] {
        let message = request(&OK.replace("Max-Forwards: 70", &format!("Reason: {value}")));
        assert_eq!(message.reason_cause(), expected, "{value}");
    }
}

#[test]
fn what_is_shown_in_a_log_holds_no_number_and_no_secret() {
    let mut invite = request(OK);
    invite.headers.insert(Name::AUTHORIZATION, "Digest username=\"secret\"");
    let shown = format!(
        "{:?} {:?}",
        invite,
        Message::Response(invite.response(200, "+14155550100", Some("t")))
    );
    assert!(!shown.contains("1415") && !shown.contains("secret"), "{shown}");
}
