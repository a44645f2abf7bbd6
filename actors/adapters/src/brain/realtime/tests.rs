//! The brain against a real local websocket, which speaks the provider's side strictly.

mod dialects;
mod failures;
mod interruptions;
mod live;
mod own_words;
mod retractions;
mod spoken_for;
mod streaming;

use super::*;
use crate::{
    brain::{Speech, ToolResult},
    local_servers::{realtime_answers, realtime_server},
    sound::{Pcm, PcmStream, mu_law::SILENCE},
};
use realtime_answers::{mu_law, tone};
use realtime_server::{Answer as Reply, RealtimeServer};
use rules::conversation::tools::Tool;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};
use tokio::sync::watch;

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

/// What a brain did; what it spoke was played to its end.
#[derive(Clone, Debug, PartialEq)]
enum Did {
    Spoke(String, Pcm),
    Wrote(String),
    Called(String, String, String),
}

/// Something that is being played.
struct Voice {
    /// In the list of what was done.
    place: usize,
    sound: PcmStream,
    words: watch::Receiver<String>,
    samples: Vec<i16>,
}

/// Somebody who plays what a brain says, one after the other, while it thinks on. Dropping it interrupts the brain.
struct Listening<'a> {
    acts: BoxStream<'a, Result<Act, Failure>>,
    is_over: bool,
    failure: Option<Failure>,
    did: Vec<Did>,
    voices: VecDeque<Voice>,
    played_ms: u64,
}

impl<'a> Listening<'a> {
    fn to(brain: &'a mut Realtime, heard: Heard) -> Self {
        Listening {
            acts: brain.think(heard),
            is_over: false,
            failure: None,
            did: Vec::new(),
            voices: VecDeque::new(),
            played_ms: 0,
        }
    }

    /// `false`: there is nothing more.
    async fn step(&mut self) -> bool {
        let Listening {
            acts, is_over, voices, ..
        } = self;
        let is_playing = !voices.is_empty();
        let piece = async {
            match voices.front_mut() {
                Some(voice) => voice.sound.chunks.next().await,
                None => None,
            }
        };
        tokio::select! {
            biased;
            piece = piece, if is_playing => self.play(piece),
            act = acts.next(), if !*is_over => self.take(act),
            else => return false,
        }
        true
    }

    fn play(&mut self, piece: Option<Vec<i16>>) {
        let Some(voice) = self.voices.front_mut() else { return };
        if let Some(piece) = piece {
            self.played_ms += piece.len() as u64 * 1_000 / u64::from(voice.sound.rate);
            return voice.samples.extend(piece);
        }
        let voice = self.voices.pop_front().unwrap();
        let words = voice.words.borrow().clone();
        self.did[voice.place] = Did::Spoke(words, Pcm::new(voice.sound.rate, voice.samples));
    }

    fn take(&mut self, act: Option<Result<Act, Failure>>) {
        match act {
            None => self.is_over = true,
            Some(Err(failure)) => self.failure = Some(failure),
            Some(Ok(Act::Say { text, audio })) => {
                assert_eq!(audio, None, "sound is played as it comes");
                self.did.push(Did::Wrote(text));
            }
            Some(Ok(Act::Call { id, name, arguments })) => self.did.push(Did::Called(id, name, arguments)),
            Some(Ok(Act::Speak { sound, words })) => {
                let place = self.did.len();
                let samples = Vec::new();
                self.did.push(Did::Spoke(String::new(), Pcm::new(sound.rate, vec![])));
                self.voices.push_back(Voice {
                    place,
                    sound,
                    words,
                    samples,
                });
            }
        }
    }

    /// Until so much of it has been played.
    async fn play_ms(&mut self, ms: u64) {
        while self.played_ms < ms {
            assert!(
                self.step().await,
                "{} ms and no more: {:?}",
                self.played_ms,
                self.failure
            );
        }
    }

    /// To its end.
    async fn all(mut self) -> (Vec<Did>, Option<Failure>) {
        while self.step().await {}
        (self.did, self.failure)
    }
}

/// A whole turn: all that was done, or the failure that ended it.
async fn turn(brain: &mut Realtime, heard: Heard) -> Result<Vec<Did>, Failure> {
    match Listening::to(brain, heard).all().await {
        (_, Some(failure)) => Err(failure),
        (did, None) => Ok(did),
    }
}

/// What is done first, to its end; then it is interrupted.
async fn first(brain: &mut Realtime, heard: Heard) -> Did {
    let mut listening = Listening::to(brain, heard);
    while listening.did.is_empty() || listening.voices.front().is_some_and(|voice| voice.place == 0) {
        assert!(listening.step().await, "nothing: {:?}", listening.failure);
    }
    listening.did.remove(0)
}

/// What a server says, and as what tone.
fn say(text: &str) -> Did {
    Did::Spoke(text.into(), Pcm::of_mu_law(&speech(60 * text.chars().count())))
}

/// What a server heard, turn by turn.
type Turns = Arc<Mutex<Vec<realtime_server::Turn>>>;

/// A server that notes what it is asked.
fn noting(reply: impl Fn(&realtime_server::Turn, usize) -> Reply + Send + Sync + 'static) -> (RealtimeServer, Turns) {
    let turns = Turns::default();
    let seen = turns.clone();
    let server = RealtimeServer::start_with(move |turn, nth| {
        seen.lock().unwrap().push(turn.clone());
        reply(turn, nth)
    });
    (server, turns)
}

/// The conversation as the model knew it when it was asked last.
fn known(turns: &Turns) -> Vec<String> {
    turns.lock().unwrap().last().unwrap().conversation.clone()
}

/// All that was refused; but an answer may have ended before it was called off.
fn refusals(server: &RealtimeServer) -> Vec<Value> {
    let errors = server.errors().into_iter();
    errors
        .filter(|event| event["error"]["code"] != "response_cancel_not_active")
        .collect()
}

fn calls(count: usize) -> Vec<(String, String)> {
    (1..=count)
        .map(|n| ("book".into(), format!(r#"{{"day":{n}}}"#)))
        .collect()
}

fn call(n: usize) -> Did {
    Did::Called(format!("call_{n}"), "book".into(), format!(r#"{{"day":{n}}}"#))
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
