//! OpenAI's Realtime API as a transcription session.
use super::*;
use crate::{
    speech::SpeechError,
    transcription::{
        dialect::{Dialect, Heard},
        realtime,
        turn::Piece,
    },
};
use serde_json::{Value, json};
use tokio::sync::watch;

async fn transcribing(script: impl Fn(Asked) -> Vec<Say> + Send + Sync + 'static) -> HearingServer {
    HearingServer::start_with(Protocol::Realtime, script).await
}

fn completed(item: &str, words: &str) -> Say {
    Say::Event(json!({
        "type": "conversation.item.input_audio_transcription.completed",
        "item_id": item,
        "transcript": words,
    }))
}

fn kinds(server: &HearingServer) -> Vec<Value> {
    server
        .log
        .with("type")
        .into_iter()
        .map(|event| event["type"].clone())
        .collect()
}

#[tokio::test]
async fn a_turn_is_appended_and_committed() {
    let server = transcribing(|asked| match (asked.came, asked.ms) {
        (Came::Connection, _) => vec![Say::Event(json!({ "type": "session.created" }))],
        (Came::Sound, 200) => vec![Say::Partial("Yes, ".into())],
        (Came::Sound, 400) => vec![Say::Partial("please".into())],
        (Came::Flush, _) => vec![Say::Partial(".".into()), Say::Words("Yes, please!".into())],
        _ => Vec::new(),
    })
    .await;
    let mut talk = Talk::with(&server, Protocol::Realtime, Patience::default());
    talk.begin().await;
    talk.speak(400).await;
    let mut told = talk.next().await;
    if told == partial("Yes,") {
        told = talk.next().await;
    }
    assert_eq!(told, partial("Yes, please"));
    talk.tell(Hear::Finalize).await;
    assert_eq!(talk.words().await, Ok("Yes, please!".into()));
    let path = "/v1/realtime?intent=transcription&model=gpt-live-transcribe&language=de";
    assert_eq!(
        server.log.until("connected", 1).await,
        [json!({ "connected": path, "key": format!("Bearer {KEY}") })]
    );
    let session = json!({
        "type": "transcription",
        "audio": { "input": {
            "format": { "type": "audio/pcm", "rate": 24_000 },
            "transcription": { "model": "gpt-live-transcribe", "language": "de" },
            "turn_detection": null,
        } },
    });
    assert_eq!(
        server.log.with("type"),
        [
            json!({ "type": "session.update", "session": session }),
            json!({ "type": "input_audio_buffer.commit" }),
        ]
    );
    let sound: u64 = server
        .log
        .with("sound")
        .iter()
        .filter_map(|sound| sound["sound"].as_u64())
        .sum();
    assert_eq!(sound, 9_600, "400 ms at 24 kHz");
}

/// What is said later may be known earlier.
#[tokio::test]
async fn words_belong_to_their_item() {
    let server = transcribing(|asked| match (asked.came, asked.flushes) {
        (Came::Flush, 2) => vec![completed("item-2", "an appointment.")],
        (Came::Flush, 3) => vec![completed("item-3", "Bye."), completed("item-1", "I would like")],
        _ => Vec::new(),
    })
    .await;
    let mut talk = Talk::with(&server, Protocol::Realtime, Patience::default());
    talk.turn(200).await;
    // So that the second is an item of its own.
    server.log.until("type", 2).await;
    talk.speak(200).await;
    talk.tell(Hear::Finalize).await;
    server.log.until("type", 3).await;
    talk.turn(200).await;
    let turn = "I would like an appointment.";
    for expected in [turn, turn, "Bye."] {
        assert_eq!(talk.words().await, Ok(expected.into()));
    }
}

#[tokio::test]
async fn what_is_forgotten_is_cleared_and_its_words_are_nobodys() {
    let (open, gate) = watch::channel(false);
    let server = transcribing(move |asked| match (asked.came, asked.ms, asked.flushes) {
        (Came::Sound, 300, 0) => vec![Say::Partial("Uh".into())],
        (Came::Flush, _, 1) => vec![Say::Gate(gate.clone()), Say::Words("Late.".into())],
        (Came::Flush, ..) => some("Yes."),
        _ => Vec::new(),
    })
    .await;
    let mut talk = Talk::with(&server, Protocol::Realtime, Patience::default());
    talk.begin().await;
    talk.speak(300).await;
    assert_eq!(talk.next().await, partial("Uh"));
    talk.tell(Hear::Discard).await;
    server.log.until("type", 2).await;
    assert_eq!(kinds(&server), ["session.update", "input_audio_buffer.clear"]);
    // It was committed, and then forgotten.
    talk.turn(200).await;
    talk.tell(Hear::Discard).await;
    assert_eq!(talk.words().await, Ok(String::new()));
    talk.turn(200).await;
    open.send_replace(true);
    assert_eq!(talk.answer().await, (Ok("Yes.".into()), Some("Yes.".into())));
}

#[tokio::test]
async fn too_little_for_a_commit_is_filled_up() {
    let server = transcribing(|asked| match asked.came {
        Came::Flush => some("Ja."),
        _ => Vec::new(),
    })
    .await;
    let mut talk = Talk::with(&server, Protocol::Realtime, Patience::default());
    talk.turn(40).await;
    assert_eq!(talk.words().await, Ok("Ja.".into()));
    let sound: u64 = server
        .log
        .with("sound")
        .iter()
        .filter_map(|sound| sound["sound"].as_u64())
        .sum();
    assert_eq!(sound, 2_400);
}

#[tokio::test]
async fn an_item_that_fails_costs_its_turn_only() {
    let server = transcribing(|asked| match (asked.came, asked.flushes) {
        (Came::Flush, 1) => vec![Say::Event(json!({
            "type": "conversation.item.input_audio_transcription.failed",
            "item_id": "item-1",
            "error": { "type": "insufficient_quota", "message": "I heard a secret" },
        }))],
        (Came::Flush, _) => some("Again."),
        _ => Vec::new(),
    })
    .await;
    let mut talk = Talk::with(&server, Protocol::Realtime, Patience::default());
    talk.turn(200).await;
    let failed = Transcribed::Failed(Failure(SpeechError::Refused { status: 402 }));
    assert_eq!(talk.next().await, failed);
    talk.turn(200).await;
    assert_eq!(talk.words().await, Ok("Again.".into()));
    assert_eq!(server.log.with("connected").len(), 1);
}

#[test]
fn a_commit_that_is_refused_for_its_silence_has_no_words() {
    let mut realtime = realtime::Realtime::new("m", None, None);
    realtime.sound(&[0; 1_600]);
    assert_eq!(realtime.flush(1_600).len(), 1);
    let refusal = r#"{"type":"error","error":{"code":"input_audio_buffer_commit_empty"}}"#;
    let nothing = Heard::Words(Piece {
        from: 0,
        to: 1_600,
        text: String::new(),
        is_done: true,
    });
    assert_eq!(realtime.read(refusal, 1_600), Ok(vec![nothing]));
    assert!(realtime.flush(1_600).is_empty(), "there is nothing new");
}

#[test]
fn openai_is_told_the_model_in_the_session_only() {
    let query = realtime::query;
    assert_eq!(query("m", Some("de"), true), [("intent", "transcription".to_owned())]);
    assert_eq!(query("m", None, false).last(), Some(&("model", "m".to_owned())));
    let names = ["Ann".to_owned(), "Acme".to_owned()];
    let prompt = |model: &str| realtime::prompt(model, &names);
    assert_eq!(prompt("gpt-4o-transcribe"), Some("Ann, Acme".into()));
    assert_eq!(prompt("gpt-live-transcribe"), None);
}

/// Servers of one's own have errors of their own shape.
#[test]
fn errors_of_any_shape_have_a_name() {
    for (error, status) in [
        (json!({ "type": "invalid_request_error", "code": null }), 400),
        (json!({ "code": 401, "message": "no" }), 401),
        (json!({ "code": "404" }), 404),
        (json!({ "code": 7 }), 500),
        (json!("out of order"), 500),
        (json!(null), 500),
    ] {
        let mut realtime = realtime::Realtime::new("m", None, None);
        let event = json!({ "type": "error", "error": error }).to_string();
        let expected = SpeechError::Refused { status };
        assert_eq!(realtime.read(&event, 0), Err(expected), "{event}");
    }
}
