use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;

fn ours() -> Capabilities {
    Capabilities {
        address: "192.0.2.1:20000".parse().unwrap(),
        codecs: vec![Codec::Pcmu, Codec::Pcma],
        telephone_event: true,
        ptime_ms: 20,
        direction: Direction::SendRecv,
        rtcp_mux: false,
        crypto: Vec::new(),
        crypto_required: false,
        session_id: 7,
        version: 1,
    }
}

fn with_all_codecs() -> Capabilities {
    Capabilities {
        codecs: Codec::ALL.to_vec(),
        rtcp_mux: true,
        ..ours()
    }
}

fn keys(required: bool) -> Capabilities {
    let crypto = [(1, Suite::AesCm128Sha1Tag80, 30), (2, Suite::AesCm256Sha1Tag80, 46)];
    let crypto = crypto.map(|(tag, suite, length)| Crypto {
        tag,
        suite,
        key: Key::new(suite, vec![tag as u8; length]).unwrap(),
    });
    Capabilities {
        crypto: crypto.to_vec(),
        crypto_required: required,
        ..ours()
    }
}

fn description(lines: &str) -> String {
    format!("v=0\r\no=- 1 1 IN IP4 198.51.100.9\r\ns=-\r\nc=IN IP4 198.51.100.9\r\nt=0 0\r\n{lines}")
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_offer_says_all_that_we_can_do() {
    let expected = "v=0\r\no=- 7 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
        m=audio 20000 RTP/AVP 0 8 9 111 101 102\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\n\
        a=rtpmap:9 G722/8000\r\na=rtpmap:111 opus/48000/2\r\na=fmtp:111 useinbandfec=1\r\n\
        a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\n\
        a=rtpmap:102 telephone-event/48000\r\na=fmtp:102 0-15\r\na=ptime:20\r\na=sendrecv\r\na=rtcp-mux\r\n";
    assert_eq!(text(&offer(&with_all_codecs())), expected);
    let secure = text(&offer(&keys(true)));
    assert!(secure.contains("m=audio 20000 RTP/SAVP 0 8 101\r\n"), "{secure}");
    assert!(
        secure.contains("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AQEB"),
        "{secure}"
    );
    assert!(
        secure.contains("a=crypto:2 AES_256_CM_HMAC_SHA1_80 inline:AgIC"),
        "{secure}"
    );
    let v6 = Capabilities {
        address: "[2001:db8::1]:20000".parse().unwrap(),
        ..ours()
    };
    assert!(text(&offer(&v6)).contains("c=IN IP6 2001:db8::1\r\n"));
}

/// What both sides read from each other is the same, whatever each can do.
#[test]
fn an_answer_of_ours_suits_our_offer() {
    for (caller, callee, codec) in [
        (ours(), ours(), Codec::Pcmu),
        (with_all_codecs(), ours(), Codec::Pcmu),
        (
            Capabilities {
                codecs: vec![Codec::Opus, Codec::Pcma],
                ..ours()
            },
            with_all_codecs(),
            Codec::Opus,
        ),
        (keys(true), keys(false), Codec::Pcmu),
    ] {
        let (answered, theirs) = answer(&offer(&caller), &callee).unwrap();
        let own = negotiate(&caller, &answered).unwrap();
        assert_eq!((own.codec, theirs.codec), (codec, codec));
        assert_eq!(own.payload_type, theirs.payload_type);
        assert_eq!(own.telephone_event, Some(codec.event_payload_type()));
        assert_eq!(own.telephone_event, theirs.telephone_event);
        assert_eq!(own.direction, theirs.direction.flipped());
        let (own, theirs) = (own.crypto, theirs.crypto);
        assert_eq!(own.is_some(), caller.crypto_required);
        assert_eq!(
            own.map(|keys| (keys.send, keys.receive)),
            theirs.map(|keys| (keys.receive, keys.send))
        );
    }
}

#[test]
fn codecs_are_found_by_number_and_by_name() {
    for (lines, codec, number, event) in [
        ("m=audio 4000 RTP/AVP 8 0", Codec::Pcma, 8, None),
        ("m=audio 4000 RTP/AVP 18 0", Codec::Pcmu, 0, None),
        (
            "m=audio 4000 RTP/AVP 97\r\na=rtpmap:97 pcma/8000/1",
            Codec::Pcma,
            97,
            None,
        ),
        (
            "m=audio 4000 RTP/AVP 0 96\r\na=rtpmap:96 telephone-event/8000",
            Codec::Pcmu,
            0,
            Some(96),
        ),
        (
            "m=audio 4000 RTP/AVP 96 0\r\na=rtpmap:96 opus/48000/2",
            Codec::Opus,
            96,
            None,
        ),
        (
            "m=audio 4000 RTP/AVP 96 98 99\r\na=rtpmap:96 OPUS/48000/2\r\na=rtpmap:98 telephone-event/8000\r\n\
             a=rtpmap:99 telephone-event/48000",
            Codec::Opus,
            96,
            Some(99),
        ),
        // Opus has two channels by its name only; a G.722 with its true rate is not the one of RFC 3551.
        (
            "m=audio 4000 RTP/AVP 96 9\r\na=rtpmap:96 opus/48000",
            Codec::G722,
            9,
            None,
        ),
        (
            "m=audio 4000 RTP/AVP 96 8\r\na=rtpmap:96 G722/16000",
            Codec::Pcma,
            8,
            None,
        ),
        (
            "m=video 4002 RTP/AVP 0\r\nm=audio 4000/2 RTP/AVP 0",
            Codec::Pcmu,
            0,
            None,
        ),
        ("m=audio 0 RTP/AVP 0\r\nm=audio 4000 RTP/AVPF 8", Codec::Pcma, 8, None),
    ] {
        let (_, media) =
            answer(description(lines).as_bytes(), &with_all_codecs()).unwrap_or_else(|e| panic!("{lines}: {e}"));
        assert_eq!(
            (media.codec, media.payload_type, media.telephone_event),
            (codec, number, event),
            "{lines}"
        );
        assert_eq!(media.address, "198.51.100.9:4000".parse::<SocketAddr>().unwrap());
    }
}

#[test]
fn who_holds_whom() {
    for (lines, own, expected, held) in [
        ("", Direction::SendRecv, Direction::SendRecv, false),
        ("a=sendonly", Direction::SendRecv, Direction::RecvOnly, true),
        ("a=recvonly", Direction::SendRecv, Direction::SendOnly, false),
        ("a=inactive", Direction::SendRecv, Direction::Inactive, true),
        ("c=IN IP4 0.0.0.0", Direction::SendRecv, Direction::RecvOnly, true),
        (
            "c=IN IP4 0.0.0.0\r\na=inactive",
            Direction::SendRecv,
            Direction::Inactive,
            true,
        ),
        ("", Direction::SendOnly, Direction::SendOnly, false),
        ("a=sendonly", Direction::SendOnly, Direction::Inactive, true),
    ] {
        let offered = description(&format!("m=audio 4000 RTP/AVP 0\r\n{lines}\r\n"));
        let (answered, media) = answer(
            offered.as_bytes(),
            &Capabilities {
                direction: own,
                ..ours()
            },
        )
        .unwrap();
        assert_eq!((media.direction, media.is_held()), (expected, held), "{lines}");
        assert!(
            text(&answered).contains(&format!("a={}\r\n", expected.as_str())),
            "{lines}"
        );
    }
    // Of the whole session, unless the stream says otherwise.
    let session = description("a=sendonly\r\nm=audio 4000 RTP/AVP 0\r\n");
    assert!(answer(session.as_bytes(), &ours()).unwrap().1.is_held());
    let stream = description("a=sendonly\r\nm=audio 4000 RTP/AVP 0\r\na=sendrecv\r\n");
    assert!(!answer(stream.as_bytes(), &ours()).unwrap().1.is_held());
}

#[test]
fn packets_are_as_long_as_the_peer_wants() {
    for (wanted, expected) in [
        ("", 20),
        ("a=ptime:30", 30),
        ("a=ptime:5", 10),
        ("a=ptime:25", 20),
        ("a=ptime:200", 60),
    ] {
        let offered = description(&format!("m=audio 4000 RTP/AVP 0\r\n{wanted}\r\n"));
        assert_eq!(
            answer(offered.as_bytes(), &ours()).unwrap().1.ptime_ms,
            expected,
            "{wanted}"
        );
    }
}

#[test]
fn every_other_stream_is_refused_in_its_place() {
    let offered = description(
        "m=image 4006 udptl t38\r\na=T38FaxVersion:0\r\nm=audio 4000 RTP/AVP 0\r\nm=video 4002 RTP/AVP 96\r\n\
         a=rtpmap:96 H264/90000\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n",
    );
    let (answered, _) = answer(offered.as_bytes(), &ours()).unwrap();
    let answered = text(&answered);
    let streams: Vec<&str> = answered.lines().filter(|line| line.starts_with("m=")).collect();
    assert_eq!(
        streams,
        [
            "m=image 0 udptl t38",
            "m=audio 20000 RTP/AVP 0",
            "m=video 0 RTP/AVP 96",
            "m=application 0 UDP/DTLS/SCTP webrtc-datachannel",
        ]
    );
}

#[test]
fn what_does_not_fit_is_told_apart() {
    for (lines, ours, expected) in [
        ("", ours(), Mismatch::NoAudio),
        ("m=image 4006 udptl t38", ours(), Mismatch::NoAudio),
        ("m=audio 0 RTP/AVP 0", ours(), Mismatch::NoAudio),
        ("m=audio 4000 RTP/AVP 18", ours(), Mismatch::NoCommonCodec),
        (
            "m=audio 4000 RTP/AVP 101\r\na=rtpmap:101 telephone-event/8000",
            ours(),
            Mismatch::NoCommonCodec,
        ),
        (
            "m=audio 4000 RTP/AVP 0\r\na=rtpmap:0 G729/8000",
            ours(),
            Mismatch::NoCommonCodec,
        ),
        ("m=audio 4000 RTP/SAVP 0", ours(), Mismatch::Encryption),
        ("m=audio 4000 RTP/SAVP 0", keys(false), Mismatch::Encryption),
        ("m=audio 4000 RTP/AVP 0", keys(true), Mismatch::Encryption),
        ("m=audio 4000 UDP/TLS/RTP/SAVPF 0", ours(), Mismatch::NoAudio),
        (
            "m=audio 70000 RTP/AVP 0",
            ours(),
            Mismatch::Unreadable("an m= line has no port"),
        ),
        ("m=audio 4000", ours(), Mismatch::Unreadable("an m= line is cut off")),
        (
            "m=audio 4000 RTP/AVP 0\r\nc=IN IP4 pbx.example",
            ours(),
            Mismatch::Unreadable("a c= line without an IP address"),
        ),
    ] {
        assert_eq!(answer(description(lines).as_bytes(), &ours), Err(expected), "{lines}");
    }
    let none = "v=0\r\no=- 1 1 IN IP4 1.1.1.1\r\ns=-\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";
    assert_eq!(
        answer(none.as_bytes(), &ours()),
        Err(Mismatch::Unreadable("no address of the audio stream"))
    );
    assert!(matches!(answer(b"", &ours()), Err(Mismatch::Unreadable(_))));
    assert!(matches!(
        answer(&vec![b'v'; 20_000], &ours()),
        Err(Mismatch::Unreadable(_))
    ));
}

const KEY: &str = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj";

#[test]
fn keys_of_rfc_4568() {
    for (line, is_taken) in [
        (format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}"), true),
        (format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|2^20"), true),
        (format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|2^48"), true),
        (format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY} WSH=128"), true),
        (format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|2^20|1:4"), false),
        (format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY};inline:{KEY}"), false),
        (
            format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY} UNENCRYPTED_SRTP"),
            false,
        ),
        (
            format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY} UNAUTHENTICATED_SRTP"),
            false,
        ),
        (format!("1 F8_128_HMAC_SHA1_80 inline:{KEY}"), false),
        (format!("1 AES_256_CM_HMAC_SHA1_80 inline:{KEY}"), false),
        ("1 AES_CM_128_HMAC_SHA1_80 inline:c2hvcnQ=".to_owned(), false),
        ("1 AES_CM_128_HMAC_SHA1_80".to_owned(), false),
        (String::new(), false),
    ] {
        let offered = description(&format!("m=audio 4000 RTP/SAVP 0\r\na=crypto:{line}\r\n"));
        let answered = answer(offered.as_bytes(), &keys(false));
        assert_eq!(answered.is_ok(), is_taken, "{line}: {answered:?}");
        if let Ok((answered, media)) = answered {
            assert!(text(&answered).contains("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AQEB"));
            assert_eq!(media.crypto.unwrap().receive.as_bytes()[..4], *b"wDfv");
        }
    }
}

#[test]
fn an_answer_takes_the_line_that_it_names() {
    let answered = |tag| {
        description(&format!(
            "m=audio 4000 RTP/SAVP 0\r\na=crypto:{tag} AES_CM_128_HMAC_SHA1_80 inline:{KEY}\r\n"
        ))
    };
    assert!(negotiate(&keys(true), answered(1).as_bytes()).is_ok());
    assert_eq!(
        negotiate(&keys(true), answered(2).as_bytes()),
        Err(Mismatch::Encryption)
    );
    // Nobody asked for it.
    assert_eq!(
        negotiate(&keys(false), answered(1).as_bytes()),
        Err(Mismatch::Encryption)
    );
    let plain = description("m=audio 4000 RTP/AVP 0\r\n");
    assert_eq!(negotiate(&keys(true), plain.as_bytes()), Err(Mismatch::Encryption));
}

#[test]
fn keys_are_not_printed() {
    assert!(!format!("{:?}", keys(true)).contains("[1"));
}

#[test]
fn the_same_origin_is_the_same_session() {
    let before = offer(&ours());
    let later = offer(&Capabilities { version: 2, ..ours() });
    assert!(is_unchanged(&before, &before));
    assert!(!is_unchanged(&before, &later));
    // Some phones hold without a new version.
    let held = offer(&Capabilities {
        direction: Direction::SendOnly,
        ..ours()
    });
    assert!(!is_unchanged(&before, &held));
    assert!(!is_unchanged(b"", b""));
}

proptest! {
    #[test]
    fn nothing_that_comes_is_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = answer(&bytes, &keys(false));
        let _ = negotiate(&ours(), &bytes);
    }

    #[test]
    fn lines_in_any_order_are_no_panic(
        lines in proptest::collection::vec("[moscab]=[ -~]{0,40}|a=(rtpmap|crypto|ptime|fmtp):[ -~]{0,40}|m=audio [0-9]{1,6} RTP/AVP [0-9 ]{0,20}", 0..20),
    ) {
        let offered = format!("v=0\r\nc=IN IP4 192.0.2.9\r\n{}", lines.join("\r\n"));
        if let Ok((answered, media)) = answer(offered.as_bytes(), &with_all_codecs()) {
            prop_assert!((10..=60).contains(&media.ptime_ms));
            prop_assert!(media.payload_type < 128);
            let count = |text: &str| text.lines().filter(|line| line.starts_with("m=")).count();
            prop_assert_eq!(count(&text(&answered)), count(&offered));
        }
    }
}
