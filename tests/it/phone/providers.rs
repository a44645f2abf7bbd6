//! Talks on the phone that other programs hear, think and speak: what is understood, asked for, and heard at the other end.
use super::stage::{CALLEE, OURS, Stage, end};
use crate::{
    on_the_phone,
    world::{
        cartesia_server::{self, CartesiaServer},
        chat_server::{Answer, ChatServer, calls},
        functions::{FunctionServer, Reply},
        hearing_server::{self, Came, HearingServer, Protocol},
        phone::{
            pause,
            pjsip::Pjsip,
            sound::{Sound, YES},
        },
        transcription_server::{self, TranscriptionServer},
    },
};
use serde_json::{Value, json};
use std::{
    f64::consts::TAU,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

const QUESTION: &str = "Is Wednesday free?";
const THANKS: &str = "Thank you.";
const FREE: &str = "Wednesday at ten is free.";
/// How long it is quiet before somebody speaks, so that the agent has said what it had to say; and when that is over.
const QUIET_MS: usize = 2_000;
const ASKED_BY_MS: u64 = QUIET_MS as u64 + YES.len() as u64 / 8;
/// Of a letter that Cartesia says.
const LETTER_MS: usize = 60;

/// A talk in which the other side speaks, and again when it is told to. It says a word, which is understood as the test wants it.
struct Talk {
    telephone: Pjsip,
    id: String,
    transcript: String,
    says: String,
    heard: PathBuf,
}

impl Talk {
    async fn begin(stage: &mut Stage, agent: Value) -> Self {
        let says = stage.recorded(
            "says.wav",
            &Sound::silence(QUIET_MS)
                .then(Sound::of_mu_law(YES))
                .then(Sound::silence(1_500)),
        );
        let heard = stage.file("heard.wav");
        let mut telephone = stage
            .telephone(json!({ "play": says, "record": heard }), json!({}))
            .await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(agent).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        telephone.is("CONFIRMED").await;
        Talk {
            transcript: format!("/v1/sessions/{id}/transcript.json"),
            telephone,
            id,
            says,
            heard,
        }
    }

    /// Waits until somebody has said that.
    async fn until(&self, stage: &Stage, role: &str, words: &str) {
        let is_it =
            |turn: &Value| turn["role"] == role && turn["content"].as_str().is_some_and(|all| all.contains(words));
        let has_it = |transcript: &Value| {
            transcript["turns"]
                .as_array()
                .is_some_and(|turns| turns.iter().any(is_it))
        };
        stage.api.until(&self.transcript, has_it).await;
    }

    /// The other side hangs up; answers the session, and the sound that it has heard.
    async fn hang_up(mut self, stage: &Stage) -> (Value, Sound) {
        self.telephone.tell(json!({ "do": "hang_up" }));
        self.telephone.hears("gone", |_| true).await;
        (stage.ended(&self.id).await, Sound::read(&self.heard))
    }
}

/// Looks up whether the day is free, says so, and is polite.
fn thinks(request: &Value) -> Answer {
    let last = request["messages"].as_array().and_then(|all| all.last());
    let field = |name: &str| last.and_then(|message| message[name].as_str()).unwrap_or_default();
    match (field("role"), field("content")) {
        ("tool", _) => Answer::Words(FREE.into()),
        (_, content) if content.contains(QUESTION) => Answer::Calls(calls([("look_up", r#"{"day":"wednesday"}"#)])),
        _ => Answer::Words("You are welcome.".into()),
    }
}

/// Says whatever it is asked to, as a tone.
fn speaks(ask: &Value) -> Vec<cartesia_server::Say> {
    let text = ask["transcript"].as_str().unwrap().trim();
    let over = match ask["continue"] == true {
        true => cartesia_server::Say::Event(json!({ "type": "flush_done" })),
        false => cartesia_server::Say::Done,
    };
    if text.is_empty() {
        return vec![over];
    }
    let sample = |n: usize| ((n as f64 * 440.0 * TAU / 24_000.0).sin() * 8_000.0) as i16;
    let sound = (0..text.chars().count() * LETTER_MS * 24).map(sample);
    let mut says = vec![cartesia_server::Say::Sound(sound.flat_map(i16::to_le_bytes).collect())];
    // What continues is over with the flush that follows it.
    if ask["continue"] != true {
        says.push(over);
    }
    says
}

on_the_phone! {
    /// 55. In the middle of a talk a function is called; its answer is spoken, and the talk goes on.
    async fn a_function_is_called(stage: &mut Stage) needs [Pjsip] {
        let is_known = Arc::new(AtomicBool::new(false));
        let looked_up = is_known.clone();
        let function_server = FunctionServer::start(move |_| {
            looked_up.store(true, Relaxed);
            Reply::Json(json!({ "free": ["10:00"] }))
        });
        let ears = TranscriptionServer::start_with(move |_, _| {
            let words = if is_known.load(Relaxed) { THANKS } else { QUESTION };
            transcription_server::Answer::Words(words.to_owned())
        })
        .await;
        let chat = ChatServer::start_with(|request, _| thinks(request)).await;
        stage.restart_with(&[("CALLBOARD_TRANSCRIPTION_URL", &ears.url()), ("CALLBOARD_CHAT_URL", &chat.url())]);
        let parameters = json!({ "type": "object", "required": ["day"], "properties": { "day": { "type": "string" } } });
        let function = json!({ "name": "look_up", "description": "Tells when a day is free.", "parameters": parameters, "url": function_server.url });
        let function = stage.api.post("/v1/functions", function).await;
        let agent = json!({ "first_message": "Hello.", "function_ids": [function["id"]], "brain": { "mode": "chat" } });
        let mut talk = Talk::begin(stage, agent).await;
        talk.until(stage, "agent", FREE).await;
        let asked = function_server.calls();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(asked[0].signed_by(function["secret"].as_str().unwrap()));
        assert_eq!((&asked[0].body["arguments"], &asked[0].body["session"]["id"]), (&json!({ "day": "wednesday" }), &json!(talk.id)));
        let again = json!({ "do": "play", "file": talk.says });
        talk.telephone.tell(again);
        talk.until(stage, "user", THANKS).await;
        talk.until(stage, "agent", "You are welcome.").await;
        let (ended, sound) = talk.hang_up(stage).await;
        assert_eq!(end(&ended), ("completed", "completed"), "{ended}");
        assert!(sound.loud_ms().iter().any(|at| *at > ASKED_BY_MS), "its answer is heard");
        assert_eq!(function_server.calls().len(), 1, "nobody asks twice");
    }

    /// Words come while they are spoken (Deepgram), and sound while it is made (Cartesia): what is said stands in the transcript, and
    /// what is answered is heard at the telephone.
    async fn speech_is_streamed_both_ways(stage: &mut Stage) needs [Pjsip] {
        let ears = HearingServer::start_with(Protocol::Listen, |asked| match asked.came {
            Came::Flush => vec![hearing_server::Say::Words(QUESTION.into())],
            _ => Vec::new(),
        })
        .await;
        let voice = CartesiaServer::start_with(|ask, _| speaks(ask)).await;
        let chat = ChatServer::start().await;
        stage.restart_with(&[
            ("CALLBOARD_TRANSCRIPTION_PROVIDER", "deepgram"),
            ("CALLBOARD_TRANSCRIPTION_URL", &ears.url),
            ("CALLBOARD_SPEECH_PROVIDER", "cartesia"),
            ("CALLBOARD_SPEECH_URL", &voice.url),
            ("CALLBOARD_SPEECH_API_KEY", "k"),
            ("CALLBOARD_SPEECH_VOICES", "bella"),
            ("CALLBOARD_CHAT_URL", &chat.url()),
        ]);
        let talk = Talk::begin(stage, json!({ "first_message": "Hello.", "brain": { "mode": "chat" } })).await;
        talk.until(stage, "user", QUESTION).await;
        talk.until(stage, "agent", "You said:").await;
        // As long as some of its letters.
        pause(3_000).await;
        let (ended, sound) = talk.hang_up(stage).await;
        assert_eq!(end(&ended), ("completed", "completed"), "{ended}");
        assert!(!ears.log.with("sound").is_empty(), "its ears have heard nothing");
        let asked: String = voice.with("transcript").iter().filter_map(|ask| ask["transcript"].as_str().map(str::to_owned)).collect();
        assert!(asked.contains("Hello.") && asked.contains("You said:"), "{asked}");
        let windows = (ASKED_BY_MS..sound.ms()).step_by(100).map(|at| sound.share_of(440.0, at, 300));
        let shares: Vec<f64> = windows.collect();
        assert!(shares.iter().any(|share| *share > 0.8), "the answer's tone did not come through: {shares:?}");
    }
}
