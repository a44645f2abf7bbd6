//! Cartesia's websocket: one for a talk, and each thing that is said by itself.
use super::{
    cartesia_server::{CartesiaServer, Say},
    *,
};
use cartesia::{Cartesia, Endpoint};
use serde_json::json;

fn cartesia(server: &CartesiaServer, limits: Limits) -> Cartesia {
    Cartesia::new(Endpoint::new(&server.url, key(), "sonic-3.5", limits).unwrap())
}

fn sound() -> Say {
    Say::Sound(vec![1, 0, 2, 0])
}

#[tokio::test]
async fn a_talk_has_one_socket_and_each_turn_a_context() {
    let server = CartesiaServer::start_with(|_, _| {
        vec![
            Say::Sound(vec![1, 0, 2]),
            Say::Event(json!({ "type": "timestamps", "word_timestamps": { "words": [] } })),
            Say::Sound(vec![0, 3, 0]),
            Say::Done,
        ]
    })
    .await;
    let talk = cartesia(&server, LIMITS);
    talk.warm("ann", "de").await;
    for text in ["One.", "Two."] {
        let stream = talk.speak(asked(text));
        assert_eq!(stream.rate, 24_000);
        assert_eq!(heard(stream).await, Ok(vec![1, 2, 3]));
    }
    let connected = server.until("connected", 1).await;
    assert_eq!(
        connected,
        [json!({ "connected": "/tts/websocket?cartesia_version=2026-03-01", "key": KEY })]
    );
    let asks = server.until("transcript", 2).await;
    assert_eq!(
        asks[0],
        json!({
            "model_id": "sonic-3.5",
            "transcript": "One.",
            "voice": { "mode": "id", "id": "ann" },
            "context_id": "turn-1",
            "continue": false,
            "add_timestamps": true,
            "max_buffer_delay_ms": 0,
            "output_format": { "container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000 },
            "language": "de",
        })
    );
    assert_eq!(asks[1]["context_id"], "turn-2");
    drop(talk);
    server.until("closed", 1).await;
    assert!(server.with("cancel").is_empty(), "what was said is not called off");
}

#[tokio::test]
async fn whoever_stops_listening_calls_it_off_and_the_socket_stays() {
    let server = CartesiaServer::start_with(|_, nth| match nth {
        0 => vec![sound()],
        // What was on its way for the first is passed over.
        _ => vec![
            Say::Text(json!({ "type": "chunk", "context_id": "turn-1", "data": "AAAA" }).to_string()),
            sound(),
            Say::Done,
        ],
    })
    .await;
    let talk = cartesia(&server, LIMITS);
    let mut first = talk.speak(asked("One."));
    assert_eq!(first.next().await, Some(Ok(vec![1, 2])));
    drop(first);
    assert_eq!(
        server.until("cancel", 1).await,
        [json!({ "context_id": "turn-1", "cancel": true })]
    );
    assert_eq!(heard(talk.speak(asked("Two."))).await, Ok(vec![1, 2]));
    assert_eq!(server.until("connected", 1).await.len(), 1);
}

#[tokio::test]
async fn two_are_spoken_at_once() {
    let server = CartesiaServer::start_with(|_, nth| match nth {
        0 => vec![sound()],
        _ => vec![
            Say::Sound(vec![9, 0]),
            Say::Done,
            Say::Text(json!({ "type": "chunk", "context_id": "turn-1", "data": "AwA=" }).to_string()),
            Say::Text(json!({ "type": "done", "context_id": "turn-1" }).to_string()),
        ],
    })
    .await;
    let talk = cartesia(&server, LIMITS);
    let mut first = talk.speak(asked("One."));
    assert_eq!(first.next().await, Some(Ok(vec![1, 2])));
    assert_eq!(heard(talk.speak(asked("Two."))).await, Ok(vec![9]));
    assert_eq!(heard(first).await, Ok(vec![3]));
}

#[tokio::test]
async fn each_failure_has_its_name() {
    let error = |status: u16| Say::Event(json!({ "type": "error", "status_code": status, "message": KEY }));
    for (why, says, expected) in [
        ("nothing", vec![], (SpeechError::Timeout, 0)),
        ("silence in the middle", vec![sound()], (SpeechError::Stalled, 2)),
        (
            "an empty chunk",
            vec![sound(), Say::Sound(vec![])],
            (SpeechError::Stalled, 2),
        ),
        ("an error", vec![error(402)], (SpeechError::Refused { status: 402 }, 0)),
        (
            "a late error",
            vec![sound(), error(500)],
            (SpeechError::Refused { status: 500 }, 2),
        ),
        (
            "a limit",
            vec![error(429)],
            (SpeechError::Limited { retry_after: None }, 0),
        ),
        (
            "an error of all",
            vec![Say::Text(r#"{"type":"error"}"#.into())],
            (SpeechError::Refused { status: 500 }, 0),
        ),
        ("no sound", vec![Say::Done], (SpeechError::Garbage, 0)),
        ("no JSON", vec![Say::Text("sorry".into())], (SpeechError::Garbage, 0)),
        (
            "no base64",
            vec![Say::Event(json!({ "type": "chunk", "data": "!" }))],
            (SpeechError::Garbage, 0),
        ),
        (
            "no data",
            vec![Say::Event(json!({ "type": "chunk" }))],
            (SpeechError::Garbage, 0),
        ),
        ("another frame", vec![sound(), Say::Binary], (SpeechError::Garbage, 2)),
        (
            "too much at once",
            vec![Say::Text(" ".repeat(2_000_000))],
            (SpeechError::Garbage, 0),
        ),
        ("a close", vec![sound(), Say::Close], (SpeechError::Closed, 2)),
        ("a break", vec![sound(), Say::Break], (SpeechError::Closed, 2)),
    ] {
        let server = CartesiaServer::start_with(move |_, _| says.clone()).await;
        let is_silent = expected.0 == SpeechError::Timeout;
        let talk = cartesia(&server, if is_silent { SHORT } else { SHORT_PAUSES });
        assert_eq!(heard(talk.speak(asked("Hello"))).await, Err(expected), "{why}");
    }
}

#[tokio::test]
async fn a_socket_that_was_closed_meanwhile_is_opened_again() {
    let server = CartesiaServer::start_with(|_, nth| match nth {
        0 => vec![sound(), Say::Done, Say::Close],
        // Asked over a socket that was good, and lost with it.
        2 => vec![Say::Break],
        _ => vec![sound(), Say::Done],
    })
    .await;
    let talk = cartesia(&server, LIMITS);
    assert_eq!(heard(talk.speak(asked("One."))).await, Ok(vec![1, 2]));
    server.until("closed", 1).await;
    assert_eq!(heard(talk.speak(asked("Two."))).await, Ok(vec![1, 2]));
    assert_eq!(heard(talk.speak(asked("Three."))).await, Ok(vec![1, 2]));
    assert_eq!(server.until("connected", 3).await.len(), 3);
}

#[tokio::test]
async fn a_socket_that_is_refused_has_a_status() {
    for (status, expected) in [
        (401, SpeechError::Refused { status: 401 }),
        (429, SpeechError::Limited { retry_after: None }),
    ] {
        let server = CartesiaServer::refusing(status).await;
        assert_eq!(
            heard(cartesia(&server, LIMITS).speak(asked("Hello"))).await,
            Err((expected, 0))
        );
    }
    let nobody = Endpoint::new("ws://127.0.0.1:1", key(), "m", LIMITS).unwrap();
    assert_eq!(
        heard(Cartesia::new(nobody).speak(asked("Hello"))).await,
        Err((SpeechError::Absent, 0))
    );
}

#[tokio::test]
async fn more_than_a_talk_can_want_is_refused() {
    let server = CartesiaServer::start_with(|_, _| vec![sound()]).await;
    let talk = cartesia(&server, LIMITS);
    let mut kept = Vec::new();
    for _ in 0..8 {
        let mut stream = talk.speak(asked("Hello"));
        assert_eq!(stream.next().await, Some(Ok(vec![1, 2])));
        kept.push(stream);
    }
    let ninth = heard(talk.speak(asked("Hello"))).await;
    assert_eq!(ninth, Err((SpeechError::Limited { retry_after: None }, 0)));
}

#[test]
fn an_address_is_a_websockets() {
    key();
    for url in [
        "nowhere",
        "ftp://host",
        "wss://key@host",
        "wss://host?key=1",
        "wss://host#key",
    ] {
        let refusal = Endpoint::new(url, None, "m", LIMITS).unwrap_err();
        assert!(!refusal.contains("key@"), "{refusal}");
    }
}
