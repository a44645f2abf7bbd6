//! Deepgram Flux, which says itself when a turn is over.
use super::*;
use crate::transcription::flux;
use serde_json::json;

#[tokio::test]
async fn turns_end_where_it_says() {
    let server = HearingServer::start_with(Protocol::Flux, |asked| match (asked.came, asked.ms) {
        (Came::Connection, _) => vec![Say::Event(json!({ "type": "Connected", "sequence_id": 0 }))],
        (Came::Sound, 80) => vec![Say::Turn("StartOfTurn", String::new())],
        (Came::Sound, 160) => vec![Say::Turn("Update", "I would".into())],
        (Came::Sound, 240) => vec![Say::Turn("EagerEndOfTurn", "I would like".into())],
        (Came::Sound, 320) => vec![Say::Turn("TurnResumed", "I would like".into())],
        (Came::Sound, 400) => vec![Say::Turn("EagerEndOfTurn", "I would like a table".into())],
        (Came::Sound, 480) => vec![Say::Turn("EndOfTurn", "I would like a table.".into())],
        (Came::Sound, 560) => vec![Say::Turn("EndOfTurn", "Please.".into())],
        _ => Vec::new(),
    })
    .await;
    let provider = provider_with(Kind::DeepgramFlux, &server.url, Patience::default());
    assert!(provider.detects_turns());
    let mut talk = Talk::open(&provider);
    talk.begin().await;
    let eager = |words: &str| Transcribed::EagerEnd {
        turn: 1,
        words: words.into(),
    };
    let over = |words: &str| Transcribed::TurnEnd {
        turn: 1,
        words: words.into(),
    };
    let expected = [
        partial("I would"),
        eager("I would like"),
        Transcribed::Resumed { turn: 1 },
        eager("I would like a table"),
        over("I would like a table."),
        over("I would like a table. Please."),
    ];
    talk.speak(80).await;
    for expected in expected {
        talk.speak(80).await;
        let mut next = talk.next().await;
        // Its words are told before what follows from them.
        if matches!(&next, Transcribed::Partial { .. }) && next != expected {
            next = talk.next().await;
        }
        assert_eq!(next, expected);
    }
    let connected = server.log.until("connected", 1).await;
    let path = "/v2/listen?encoding=linear16&sample_rate=16000&model=flux-general-multi&eot_threshold=0.7\
        &eager_eot_threshold=0.4&eot_timeout_ms=5000&language_hint=de&keyterm=Callboard&keyterm=Ann+Lee";
    assert_eq!(connected, [json!({ "connected": path, "key": format!("Token {KEY}") })]);
    assert_eq!(
        server.log.with("sound"),
        vec![json!({ "sound": 1_280 }); 7],
        "80 ms at once"
    );
}

#[tokio::test]
async fn the_talk_may_end_a_turn_itself() {
    let server = HearingServer::start_with(Protocol::Flux, |asked| match (asked.came, asked.flushes) {
        (Came::Sound, 0) => vec![Say::Turn("Update", "I would".into())],
        (Came::Flush, 1) => vec![Say::Turn("EndOfTurn", "I would.".into())],
        _ => Vec::new(),
    })
    .await;
    let mut talk = Talk::with(&server, Protocol::Flux, Patience::default());
    talk.turn(300).await;
    assert_eq!(
        talk.answer().await,
        (Ok("I would.".into()), Some("I would.".into())),
        "and no end of it besides"
    );
    assert_eq!(server.log.with("type"), [json!({ "type": "ForceEndTurn" })]);
    let sound: u64 = server
        .log
        .with("sound")
        .iter()
        .filter_map(|sound| sound["sound"].as_u64())
        .sum();
    assert_eq!(sound, 4_800, "the rest of it too");
    // It has ended already, so that there is nothing to end.
    talk.tell(Hear::Finalize).await;
    assert_eq!(talk.words().await, Ok("I would.".into()));
}

#[tokio::test]
async fn a_little_silence_keeps_it_alive() {
    let server = HearingServer::start_with(Protocol::Flux, |_| Vec::new()).await;
    let patience = Patience {
        keep_alive: Duration::from_millis(20),
        ..short()
    };
    let _talk = Talk::with(&server, Protocol::Flux, patience);
    let silence = json!({ "sound": 1_280 });
    assert_eq!(server.log.until("sound", 2).await[..2], [silence.clone(), silence]);
}

#[test]
fn the_model_is_the_languages() {
    for (model, language, expected) in [
        ("", Some("en"), ("flux-general-en", false)),
        ("", Some("fr"), ("flux-general-multi", true)),
        ("", Some("pl"), ("flux-general-multi", false)),
        ("", None, ("flux-general-multi", false)),
        ("flux-general-en", Some("fr"), ("flux-general-en", false)),
    ] {
        let query = flux::query(model, language, Vec::new());
        let named = |name: &str| {
            query
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.as_str())
        };
        let got = (named("model").unwrap(), named("language_hint").is_some());
        assert_eq!(got, expected, "{model} {language:?}");
    }
}
