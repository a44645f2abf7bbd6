//! The brain against a real local websocket, which speaks the provider's side strictly.
#[path = "../../../../../tests/it/world/realtime_answers.rs"]
mod realtime_answers;
#[path = "../../../../../tests/it/world/realtime_server.rs"]
mod realtime_server;
#[path = "../../../../../tests/it/world/realtime_session.rs"]
mod realtime_session;

mod dialects;
mod failures;
mod interruptions;

use super::*;
use crate::{
    brain::{Speech, ToolResult},
    sound::{Pcm, mu_law::SILENCE},
};
use realtime_answers::{mu_law, tone};
use realtime_server::{Answer as Reply, RealtimeServer};
use rules::conversation::tools::Tool;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const KEY: &str = "sk-secret";

fn briefing() -> Briefing {
    Briefing {
        instructions: "You are a clinic's receptionist.".into(),
        first_message: None,
        tools: vec![Tool {
            name: "book".into(),
            description: "Books a slot.".into(),
            parameters: json!({"type": "object", "properties": {"day": {"type": "string"}}}),
        }],
        language: "en-GB".into(),
        voice: Some("marin".into()),
    }
}

fn brain_at(url: &str, settings: RealtimeSettings) -> Realtime {
    Realtime::new(Provider::new(url, KEY, "gpt-realtime").unwrap(), settings, briefing())
}

fn brain(server: &RealtimeServer) -> Realtime {
    brain_at(&server.url, RealtimeSettings::default())
}

fn words(text: &str) -> Heard {
    Heard::Words(Speech {
        text: text.into(),
        audio: None,
    })
}

/// Mu-law has two zeros, which sound alike; only one of them comes out again.
fn speech(ms: usize) -> Vec<u8> {
    let bytes = tone(ms, 8_000).into_iter().map(mu_law);
    bytes.map(|byte| if byte == 0x7f { SILENCE } else { byte }).collect()
}

fn spoken(mu_law: Vec<u8>) -> Heard {
    Heard::Words(Speech {
        text: "heard".into(),
        audio: Some(Pcm::of_mu_law(&mu_law)),
    })
}

/// A whole turn: all acts, or the failure that ended it.
async fn turn(brain: &mut Realtime, heard: Heard) -> Result<Vec<Act>, Failure> {
    let mut acts = Vec::new();
    let mut stream = brain.think(heard);
    while let Some(act) = stream.next().await {
        acts.push(act?);
    }
    Ok(acts)
}

/// What a server says, and as what tone.
fn say(text: &str) -> Act {
    let audio = Some(Pcm::of_mu_law(&speech(60 * text.chars().count())));
    Act::Say {
        text: text.into(),
        audio,
    }
}

fn calls(count: usize) -> Vec<(String, String)> {
    (1..=count)
        .map(|n| ("book".into(), format!(r#"{{"day":{n}}}"#)))
        .collect()
}

fn call(n: usize) -> Act {
    Act::Call {
        id: format!("call_{n}"),
        name: "book".into(),
        arguments: format!(r#"{{"day":{n}}}"#),
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The kinds of everything after the session was settled.
fn asks(server: &RealtimeServer) -> Vec<String> {
    let events = server.events();
    let kinds = kinds(&events)
        .into_iter()
        .filter(|kind| !matches!(*kind, "connected" | "session.update" | "pong"));
    kinds.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_session_is_settled_and_opens_with_the_first_message() {
    let given = Arc::new(Mutex::new(None));
    let seen = given.clone();
    let server = RealtimeServer::start_with(move |turn, _| {
        *seen.lock().unwrap() = turn.instructions.clone();
        Reply::Say("Good morning.".into())
    })
    .only_for_key(KEY);
    let mut brain = brain(&server);
    brain.briefing.first_message = Some("Good morning.".into());
    assert!(server.events().is_empty(), "it connects at the first turn");
    assert_eq!(turn(&mut brain, Heard::Opening).await.unwrap(), [say("Good morning.")]);

    let events = server.events();
    assert_eq!(events[0]["uri"], "/v1/realtime?model=gpt-realtime");
    assert_eq!(kinds(&events)[1..3], ["session.update", "response.create"]);
    let session = &events[1]["session"];
    assert_eq!(
        session["audio"]["input"],
        json!({"format": {"type": "audio/pcmu"}, "turn_detection": null})
    );
    assert_eq!(
        session["audio"]["output"],
        json!({"format": {"type": "audio/pcmu"}, "voice": "marin"})
    );
    assert_eq!(session["tools"][0]["name"], "book");
    let instructions = session["instructions"].as_str().unwrap();
    assert!(instructions.starts_with("You are a clinic's receptionist.") && instructions.contains("`en-GB`"));
    let wish = given.lock().unwrap().clone().unwrap();
    assert!(
        wish.contains("word for word") && wish.ends_with("\nGood morning."),
        "{wish}"
    );
}

#[tokio::test]
async fn without_a_first_message_the_model_finds_its_own_words() {
    let server = RealtimeServer::start_with(|turn, _| Reply::Say(format!("{:?}", turn.instructions)));
    assert_eq!(turn(&mut brain(&server), Heard::Opening).await.unwrap(), [say("None")]);
    assert_eq!(server.events_of("response.create")[0].get("response"), None);
}

#[tokio::test]
async fn speech_goes_in_as_frames_of_20_ms() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let seen = heard.clone();
    let server = RealtimeServer::start_with(move |turn, _| {
        seen.lock().unwrap().push(turn.clone());
        Reply::Say("Fine.".into())
    });
    let mut brain = brain(&server);
    // 250 ms are twelve frames and a half; 10 ms are less than the provider takes.
    for ms in [250, 10] {
        assert_eq!(turn(&mut brain, spoken(speech(ms))).await.unwrap(), [say("Fine.")]);
    }
    let sizes = server.events_of("input_audio_buffer.append").into_iter();
    let sizes: Vec<usize> = sizes
        .map(|event| event["audio"].as_str().unwrap().len() / 4 * 3 / 160)
        .collect();
    assert_eq!(sizes, [1; 13 + 5]);
    let expected = [(250, 260), (10, 100)].map(|(ms, whole)| {
        let mut sound = speech(ms);
        sound.resize(whole * 8, SILENCE);
        sound
    });
    let heard = heard.lock().unwrap();
    assert_eq!([&heard[0].audio, &heard[1].audio], [&expected[0], &expected[1]]);
    assert!(heard.iter().all(|turn| turn.texts.is_empty()));
}

#[tokio::test]
async fn words_without_sound_go_in_as_text() {
    let server = RealtimeServer::start_with(|turn, nth| Reply::Say(format!("{nth}: {}", turn.texts.join(" "))));
    let mut brain = brain(&server);
    assert_eq!(turn(&mut brain, words("hello")).await.unwrap(), [say("0: hello")]);
    assert_eq!(turn(&mut brain, words("again")).await.unwrap(), [say("1: again")]);
    assert_eq!(asks(&server), ["conversation.item.create", "response.create"].repeat(2));
    assert_eq!(server.events_of("connected").len(), 1, "one socket for all turns");
}

#[tokio::test]
async fn calls_are_passed_on_and_their_results_go_back() {
    let outputs = Arc::new(Mutex::new(Vec::new()));
    let seen = outputs.clone();
    let server = RealtimeServer::start_with(move |turn, nth| {
        seen.lock().unwrap().extend(turn.outputs.clone());
        match nth {
            0 => Reply::SayAndCalls("One moment.".into(), calls(2)),
            1 => Reply::Calls(calls(10)),
            _ => Reply::Say("Done.".into()),
        }
    });
    let mut brain = brain(&server);
    let acts = turn(&mut brain, words("book two")).await.unwrap();
    assert_eq!(acts, [say("One moment."), call(1), call(2)]);
    let result = |n: usize| ToolResult {
        call_id: format!("call_{n}"),
        output: format!(r#"{{"slot":{n}}}"#),
    };
    // One that the provider never asked for is left out: it would refuse it.
    let acts = turn(&mut brain, Heard::Results(vec![result(1), result(2), result(99)]))
        .await
        .unwrap();
    assert_eq!(acts.len(), 9, "of ten calls, nine are passed on");
    assert_eq!(
        turn(&mut brain, Heard::Results(vec![result(4)])).await.unwrap(),
        [say("Done.")]
    );
    let outputs = outputs.lock().unwrap();
    let canceled = r#"{"error":"canceled"}"#;
    let expected = (1..=12).map(|n| match n {
        1 | 2 | 4 => (format!("call_{n}"), format!(r#"{{"slot":{n}}}"#)),
        n => (format!("call_{n}"), canceled.to_owned()),
    });
    assert_eq!(*outputs, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn pings_are_answered_while_nobody_thinks_and_a_dropped_brain_says_good_bye() {
    let server = RealtimeServer::start_with(|_, _| Reply::Say("Hello.".into()));
    let mut brain = brain(&server);
    turn(&mut brain, Heard::Opening).await.unwrap();
    server.received("pong", 1).await;
    drop(brain);
    server.received("closed", 1).await;
}
