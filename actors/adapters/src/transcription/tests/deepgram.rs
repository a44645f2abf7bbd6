//! Deepgram's `/v1/listen`.
use super::*;
use crate::transcription::deepgram;
use serde_json::json;
use tokio::sync::watch;

async fn listening(script: impl Fn(Asked) -> Vec<Say> + Send + Sync + 'static) -> HearingServer {
    HearingServer::start_with(Protocol::Listen, script).await
}

#[tokio::test]
async fn a_turn_is_heard_while_it_is_spoken() {
    let server = listening(|asked| match (asked.came, asked.ms) {
        (Came::Sound, 200) => vec![Say::Partial("I woud".into())],
        (Came::Sound, 400) => some("I would like"),
        (Came::Sound, 500) => vec![Say::Event(json!({ "type": "Metadata", "channel": [0, 1] }))],
        (Came::Flush, _) => some("a table."),
        _ => Vec::new(),
    })
    .await;
    let mut talk = Talk::with(&server, Protocol::Listen, Patience::default());
    talk.begin().await;
    talk.speak(200).await;
    assert_eq!(talk.next().await, partial("I woud"));
    talk.speak(400).await;
    assert_eq!(talk.next().await, partial("I would like"));
    talk.tell(Hear::Finalize).await;
    assert_eq!(talk.words().await, Ok("I would like a table.".into()));
    let connected = server.log.until("connected", 1).await;
    let path = "/v1/listen?encoding=linear16&sample_rate=16000&channels=1&model=nova-3&language=de\
        &interim_results=true&endpointing=false&punctuate=true&smart_format=true&keyterm=Callboard&keyterm=Ann+Lee";
    assert_eq!(connected, [json!({ "connected": path, "key": format!("Token {KEY}") })]);
    let sound: u64 = server
        .log
        .with("sound")
        .iter()
        .filter_map(|sound| sound["sound"].as_u64())
        .sum();
    assert_eq!(
        (sound, server.log.with("type")),
        (9_600, vec![json!({ "type": "Finalize" })])
    );
    drop(talk);
    server.log.until("closed", 1).await;
    assert_eq!(server.log.with("type").last(), Some(&json!({ "type": "CloseStream" })));
}

#[tokio::test]
async fn more_of_the_same_turn_is_asked_for_again() {
    let server = listening(|asked| match (asked.came, asked.flushes) {
        (Came::Flush, 1) => some("I would like"),
        (Came::Flush, 2) => some("an appointment."),
        (Came::Flush, _) => some("Bye."),
        _ => Vec::new(),
    })
    .await;
    let mut talk = Talk::with(&server, Protocol::Listen, Patience::default());
    talk.turn(200).await;
    assert_eq!(talk.words().await, Ok("I would like".into()));
    talk.speak(200).await;
    talk.tell(Hear::Finalize).await;
    assert_eq!(talk.words().await, Ok("I would like an appointment.".into()));
    talk.turn(200).await;
    assert_eq!(talk.words().await, Ok("Bye.".into()));
}

/// Each question is answered, and the words of what was thrown away are nobody's.
#[tokio::test]
async fn late_words_of_a_forgotten_turn_are_not_told() {
    let server = listening(|asked| match (asked.came, asked.flushes) {
        (Came::Flush, 1) => Vec::new(),
        // Late, of the first turn; its answer was expected before.
        (Came::Flush, _) => some("Yes."),
        (Came::Sound, 1) if asked.ms == 320 => some("Uh-huh"),
        _ => Vec::new(),
    })
    .await;
    let mut talk = Talk::with(&server, Protocol::Listen, Patience::default());
    talk.begin().await;
    talk.speak(300).await;
    server.log.until("sound", 1).await;
    talk.tell(Hear::Discard).await;
    server.log.until("type", 1).await;
    talk.turn(400).await;
    assert_eq!(talk.answer().await, (Ok("Yes.".into()), Some("Yes.".into())));
}

#[tokio::test]
async fn a_provider_that_has_said_all_need_not_say_it_again() {
    let server = listening(|asked| match (asked.came, asked.ms) {
        (Came::Sound, 400) => some("Yes."),
        _ => Vec::new(),
    })
    .await;
    let patience = Patience {
        rest: Duration::from_millis(50),
        ..Patience::default()
    };
    let mut talk = Talk::with(&server, Protocol::Listen, patience);
    talk.turn(540).await;
    assert_eq!(talk.words().await, Ok("Yes.".into()), "without an answer to Finalize");
}

/// What is told of late is a word yet.
#[tokio::test]
async fn the_last_word_is_waited_for() {
    let (open, gate) = watch::channel(false);
    let server = listening(move |asked| match (asked.came, asked.ms) {
        (Came::Sound, 400) => some("I would"),
        (Came::Flush, _) => vec![Say::Gate(gate.clone()), Say::Words("not.".into())],
        _ => Vec::new(),
    })
    .await;
    let patience = Patience {
        rest: Duration::ZERO,
        ..Patience::default()
    };
    let mut talk = Talk::with(&server, Protocol::Listen, patience);
    talk.turn(640).await;
    assert_eq!(talk.next().await, partial("I would"));
    server.log.until("type", 1).await;
    // Its time to rest is over, and 240 ms are missing.
    open.send_replace(true);
    assert_eq!(talk.words().await, Ok("I would not.".into()));
}

/// A provider may take none, or fewer.
#[tokio::test]
async fn who_refuses_key_terms_is_asked_without() {
    let server = HearingServer::admitting(
        Protocol::Listen,
        |nth| if nth == 0 { Err(400) } else { Ok(()) },
        |asked| match asked.came {
            Came::Flush => some("Yes."),
            _ => Vec::new(),
        },
    )
    .await;
    let mut talk = Talk::with(&server, Protocol::Listen, Patience::default());
    talk.turn(200).await;
    assert_eq!(talk.words().await, Ok("Yes.".into()));
    assert_eq!(server.log.with("refused").len(), 1);
    let connected = server.log.with("connected");
    assert_eq!(connected.len(), 1);
    let path = connected[0]["connected"].as_str().unwrap();
    assert!(path.contains("model=nova-3") && !path.contains("keyterm"), "{path}");
}

#[test]
fn only_so_many_key_terms_are_told() {
    let told = |names: Vec<String>| deepgram::key_terms("nova-3", names).count();
    assert_eq!(told((0..100).map(|n| format!("A{n}")).collect()), 50);
    assert_eq!(told(vec!["a".repeat(50); 10]), 4);
    assert_eq!(deepgram::key_terms("nova-2", vec!["Ann".into()]).count(), 0);
}

#[tokio::test]
async fn silence_is_told_and_not_sent() {
    let server = listening(|_| Vec::new()).await;
    let patience = Patience {
        keep_alive: Duration::from_millis(20),
        ..short()
    };
    let _talk = Talk::with(&server, Protocol::Listen, patience);
    let told = server.log.until("type", 2).await;
    assert_eq!(
        told[..2],
        [json!({ "type": "KeepAlive" }), json!({ "type": "KeepAlive" })]
    );
    assert!(server.log.with("sound").is_empty());
}

#[tokio::test]
async fn who_is_silent_for_long_has_no_connection() {
    let server = listening(|asked| match asked.came {
        Came::Flush => some(&format!("{} ms.", asked.ms)),
        _ => Vec::new(),
    })
    .await;
    let patience = Patience {
        idle: Duration::from_millis(100),
        ..Patience::default()
    };
    let mut talk = Talk::with(&server, Protocol::Listen, patience);
    server.log.until("closed", 1).await;
    assert_eq!(server.log.with("type"), [json!({ "type": "CloseStream" })]);
    talk.turn(200).await;
    assert_eq!(talk.words().await, Ok("200 ms.".into()));
    server.log.until("closed", 2).await;
    talk.speak(100).await;
    talk.tell(Hear::Finalize).await;
    assert_eq!(talk.words().await, Ok("200 ms. 100 ms.".into()), "of the same turn");
    assert_eq!(server.log.until("connected", 3).await.len(), 3);
}
