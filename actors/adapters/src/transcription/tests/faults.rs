//! Providers that are absent, slow, wrong or gone.
use super::*;
use serde_json::json;

const ALL: [Protocol; 3] = [Protocol::Realtime, Protocol::Listen, Protocol::Flux];

/// What becomes of a turn that this is said to.
async fn outcome(protocol: Protocol, says: Vec<Say>) -> Result<String, &'static str> {
    let server = HearingServer::start_with(protocol, move |asked| match asked.came {
        Came::Flush => says.clone(),
        _ => Vec::new(),
    })
    .await;
    let mut talk = Talk::with(&server, protocol, short());
    talk.turn(300).await;
    talk.words().await
}

#[tokio::test]
async fn each_failure_has_its_name() {
    let of_openai = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": KEY } });
    let of_deepgram = json!({ "type": "Error", "description": KEY });
    for protocol in ALL {
        let error = match protocol {
            Protocol::Realtime => of_openai.clone(),
            Protocol::Listen | Protocol::Flux => of_deepgram.clone(),
        };
        for (why, says, expected) in [
            ("nothing", vec![], "timeout"),
            ("an error", vec![Say::Event(error)], "refused"),
            ("no JSON", vec![Say::Text("sorry".into())], "garbage"),
            ("no event", vec![Say::Event(json!({ "words": "sorry" }))], "garbage"),
            ("another frame", vec![Say::Binary], "garbage"),
            ("too much at once", vec![Say::Text(" ".repeat(2_000_000))], "garbage"),
            ("a close", vec![Say::Close], "closed"),
            ("a break", vec![Say::Break], "closed"),
        ] {
            assert_eq!(outcome(protocol, says).await, Err(expected), "{protocol:?}: {why}");
        }
        assert_eq!(outcome(protocol, some("Yes.")).await, Ok("Yes.".into()), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_costs_no_words() {
    for protocol in ALL {
        let server = HearingServer::start_with(protocol, |asked| match (asked.connection, asked.came) {
            (0, Came::Sound) if asked.ms >= 300 => vec![Say::Break],
            // The second turn's is lost after it was asked for.
            (1, Came::Flush) if asked.flushes == 2 => vec![Say::Break],
            (_, Came::Flush) => some(&format!("{} ms", asked.ms)),
            _ => Vec::new(),
        })
        .await;
        let mut talk = Talk::with(&server, protocol, Patience::default());
        talk.begin().await;
        talk.speak(400).await;
        server.log.until("closed", 1).await;
        talk.speak(100).await;
        talk.tell(Hear::Finalize).await;
        assert_eq!(talk.words().await, Ok("500 ms".into()), "{protocol:?}: all of it");
        talk.turn(200).await;
        assert_eq!(
            talk.words().await,
            Ok("200 ms".into()),
            "{protocol:?}: to a third connection"
        );
        assert_eq!(server.log.with("connected").len(), 3);
    }
}

#[tokio::test]
async fn who_is_refused_learns_why_and_a_later_turn_may_be_let_in() {
    for (status, expected) in [(401, "refused"), (402, "refused"), (429, "limited"), (503, "refused")] {
        let server = HearingServer::admitting(
            Protocol::Listen,
            move |nth| if nth < 2 { Err(status) } else { Ok(()) },
            |asked| match asked.came {
                Came::Flush => some("Yes."),
                _ => Vec::new(),
            },
        )
        .await;
        let patience = Patience {
            // The third try is not waited for: a second and more, at the least.
            back_off: Duration::from_millis(700),
            ..Patience::default()
        };
        let mut talk = Talk::with(&server, Protocol::Listen, patience);
        server.log.until("refused", 1).await;
        talk.turn(200).await;
        assert_eq!(talk.words().await, Err(expected), "{status}");
        assert_eq!(server.log.with("refused").len(), 2);
        talk.begin().await;
        talk.speak(200).await;
        server.log.until("connected", 1).await;
        talk.tell(Hear::Finalize).await;
        assert_eq!(talk.words().await, Ok("Yes.".into()));
    }
}

#[tokio::test]
async fn who_is_not_there_is_absent() {
    for kind in Kind::ALL {
        let nobody = provider_with(kind, "http://127.0.0.1:1", short());
        let mut talk = Talk::open(&nobody);
        talk.turn(200).await;
        assert_eq!(talk.words().await, Err("absent"), "{}", nobody.name());
    }
}

#[tokio::test]
async fn who_does_not_open_is_not_waited_for() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let patience = Patience {
        connect: Duration::from_millis(50),
        ..short()
    };
    // It is accepted by the system, and nobody says a word.
    let mut talk = Talk::open(&provider_with(Kind::Deepgram, &url, patience));
    talk.turn(200).await;
    assert_eq!(talk.words().await, Err("timeout"));
    drop(listener);
}

#[tokio::test]
async fn of_a_flood_the_newest_is_told() {
    for protocol in ALL {
        let server = HearingServer::start_with(protocol, move |asked| match (asked.came, asked.ms) {
            (Came::Sound, 320) => (0..2_000).map(|n| Say::Partial(format!("{n} "))).collect(),
            (Came::Flush, _) => some("Yes."),
            _ => Vec::new(),
        })
        .await;
        let mut talk = Talk::with(&server, protocol, Patience::default());
        talk.turn(320).await;
        let (words, partial) = talk.answer().await;
        assert_eq!(
            (words, partial),
            (Ok("Yes.".into()), Some("Yes.".into())),
            "{protocol:?}"
        );
        talk.turn(200).await;
        assert_eq!(talk.words().await, Ok("Yes.".into()), "{protocol:?}: it goes on");
    }
}

#[tokio::test]
async fn words_without_end_are_cut() {
    for protocol in ALL {
        let words = outcome(protocol, some(&"a".repeat(500_000))).await;
        assert_eq!(words.map(|words| words.len()), Ok(2_000), "{protocol:?}");
    }
}

#[tokio::test]
async fn whole_sounds_are_understood_by_all() {
    let speech = Pcm::new(8_000, vec![1_000; 8_000]);
    for protocol in ALL {
        let server = HearingServer::start_with(protocol, |asked| match asked.came {
            Came::Flush => some(&format!("{} ms", asked.ms)),
            _ => Vec::new(),
        })
        .await;
        let provider = provider_with(kind_of(protocol), &server.url, Patience::default());
        assert_eq!(transcribe(&provider, &speech, "de").await, Ok("1000 ms".into()));
        server.log.until("closed", 1).await;
    }
}

#[test]
fn an_address_is_completed_or_refused() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    for kind in Kind::ALL {
        for url in [
            "nowhere",
            "ftp://host",
            "wss://key@host",
            "wss://host?key=1",
            "wss://host#key",
        ] {
            let refusal = Provider::new(kind, url, None, "").unwrap_err();
            assert!(!refusal.contains("key@"), "{refusal}");
        }
        assert!(Provider::new(kind, "http://host", Some("a b"), "").is_err());
        let debug = format!("{:?}", Provider::new(kind, "http://host", Some(KEY), "").unwrap());
        assert!(!debug.contains(KEY), "{debug}");
    }
}

#[test]
fn only_so_many_names_are_told() {
    let ask = |names: Vec<String>| {
        Ask {
            language: String::new(),
            names,
        }
        .expected()
    };
    assert_eq!(
        ask(vec![" Ann \n Lee\u{7}".into(), String::new(), "Ann Lee".into()]),
        ["Ann Lee"]
    );
    let many: Vec<String> = (0..1_000).map(|n| format!("Name {n:03}")).collect();
    assert_eq!(ask(many).len(), 62);
    for (tag, code) in [
        ("de-AT", Some("de")),
        ("nb_NO", Some("no")),
        ("x-y", None),
        ("", None),
        ("yue", Some("yue")),
    ] {
        let ask = Ask {
            language: tag.into(),
            names: Vec::new(),
        };
        assert_eq!(ask.language_code().as_deref(), code, "{tag}");
    }
}
