//! Who listens, thinks and speaks in a load run of talks: the servers of the tests of the whole service, each as slow as is wanted.
use super::{
    Delays, Ears,
    hearing::{HearingServer, Protocol},
    relay::Relay,
};
use crate::{guests::SENTENCE, rooms::pause};
use chat_server::{ChatServer, calls};
use realtime_server::RealtimeServer;
use speech_server::{SpeechServer, Step};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::watch;
use transcription_server::TranscriptionServer;

#[expect(dead_code, clippy::unwrap_used, reason = "the tests of the protocol need all of it")]
#[path = "../../it/world/chat_server.rs"]
mod chat_server;
#[expect(clippy::unwrap_used, reason = "a server that cannot go on has failed")]
#[path = "../../it/world/http_head.rs"]
mod http_head;
#[expect(clippy::unwrap_used, reason = "a server that cannot go on has failed")]
#[path = "../../it/world/local_listener.rs"]
pub mod local_listener;
#[expect(clippy::unwrap_used, reason = "a server that cannot go on has failed")]
#[path = "../../it/world/realtime_answers.rs"]
mod realtime_answers;
#[expect(dead_code, clippy::unwrap_used, reason = "the tests of the protocol need all of it")]
#[path = "../../it/world/realtime_server.rs"]
mod realtime_server;
#[expect(clippy::unwrap_used, reason = "a server that cannot go on has failed")]
#[path = "../../it/world/realtime_session.rs"]
mod realtime_session;
#[expect(dead_code, clippy::unwrap_used, reason = "the tests of the protocol need all of it")]
#[path = "../../it/world/speech_server.rs"]
mod speech_server;
#[expect(dead_code, clippy::unwrap_used, reason = "the tests of the protocol need all of it")]
#[path = "../../it/world/transcription_server.rs"]
mod transcription_server;

/// What is understood of the sentence that is said.
const HEARD: &str = "I would like to move my appointment to Wednesday.";
const ANSWER: &str = "Certainly, I can move that for you. Wednesday at ten in the morning it is.";
/// Samples per second of `pcm`, and how long whatever is said takes.
const RATE: usize = 24_000;
const SPOKEN_MS: usize = 1_200;
/// Samples per millisecond of what is to be understood.
const HEARING_KHZ: usize = 16;
/// Of the sentence's recording so much is quiet, before and behind.
const AROUND_MS: usize = 800;

/// The delays of the scenario that runs; all servers look at them at each request.
#[derive(Clone, Default)]
pub struct Pace(Arc<Mutex<Delays>>);

impl Pace {
    pub fn set(&self, delays: Delays) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = delays;
    }

    pub fn get(&self) -> Delays {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dropping them ends them.
pub struct Servers {
    pub pace: Pace,
    transcription: TranscriptionServer,
    listen: HearingServer,
    flux: HearingServer,
    chat: ChatServer,
    speech: SpeechServer,
    spoken: Arc<Mutex<Vec<Instant>>>,
    relay: Relay,
    function: SpeechServer,
    _realtime: RealtimeServer,
}

impl Servers {
    pub async fn start() -> Self {
        let pace = Pace::default();
        let its = pace.clone();
        let transcription = TranscriptionServer::start_with(move |asked, _| {
            transcription_server::Answer::Gated(after(its.get().stt), heard_in(asked.samples()))
        });
        let its = pace.clone();
        let chat = ChatServer::start_with(move |request, _| {
            let delays = its.get();
            let messages = request["messages"].as_array();
            let is_asked = messages
                .and_then(|all| all.last())
                .is_some_and(|last| last["role"] == "user");
            match delays.function {
                Some(_) if is_asked => chat_server::Answer::Calls(calls([("look_up", "{}")])),
                _ => chat_server::Answer::Paced {
                    first: delays.llm,
                    each: delays.token,
                    words: ANSWER.into(),
                },
            }
        });
        let (its, sound) = (pace.clone(), tone());
        let spoken = Arc::<Mutex<Vec<Instant>>>::default();
        let given = spoken.clone();
        let speech = SpeechServer::start_with(move |asked, _| {
            // Whoever only opens a connection.
            if !asked.line.starts_with("POST") {
                return speech_server::Answer::status(200, "{}");
            }
            let delay = its.get().tts;
            given
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Instant::now() + delay);
            speech_server::Answer {
                before: vec![Step::Gate(after(delay))],
                ..speech_server::Answer::samples(&sound, RATE / 50 * 2)
            }
        });
        let its = pace.clone();
        // Functions are HTTP with JSON, too.
        let function = SpeechServer::start_with(move |_, _| speech_server::Answer {
            before: vec![Step::Gate(after(its.get().function.unwrap_or_default()))],
            ..speech_server::Answer::status(200, r#"{"free":true}"#)
        });
        let realtime = RealtimeServer::start_with(|_, _| realtime_server::Answer::Say(ANSWER.into()));
        let relay = Relay::start(&realtime.url, pace.clone());
        let hearing = |protocol| HearingServer::start(protocol, HEARD, pace.clone());
        let (listen, flux) = (hearing(Protocol::Listen), hearing(Protocol::Flux));
        Servers {
            pace,
            transcription: transcription.await,
            listen,
            flux,
            chat: chat.await,
            speech: speech.await,
            spoken,
            relay,
            function: function.await,
            _realtime: realtime,
        }
    }

    /// What the service is told of them.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("CALLBOARD_CHAT_URL", self.chat.url()),
            ("CALLBOARD_SPEECH_PROVIDER", "openai".into()),
            ("CALLBOARD_SPEECH_URL", format!("{}/v1", self.speech.url())),
            ("CALLBOARD_REALTIME_URL", self.relay.url.clone()),
        ]
    }

    /// When each 10 ms with a voice came to Deepgram's `/v1/listen`.
    pub fn voices(&self) -> Vec<Instant> {
        self.listen.voices()
    }

    /// When each sound began to be given.
    pub fn spoken(&self) -> Vec<Instant> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same of who transcribes.
    pub fn transcription(&self, ears: Ears) -> [(&'static str, String); 2] {
        let (provider, url) = match ears {
            Ears::Batch => ("openai", self.transcription.url()),
            Ears::Listen => ("deepgram", self.listen.url.clone()),
            Ears::Flux => ("deepgram_flux", self.flux.url.clone()),
        };
        [
            ("CALLBOARD_TRANSCRIPTION_PROVIDER", provider.to_owned()),
            ("CALLBOARD_TRANSCRIPTION_URL", url),
        ]
    }

    pub fn function_url(&self) -> String {
        format!("{}/look_up", self.function.url())
    }
}

/// The words of so many samples of the sentence: the first ones, as many as fit.
fn heard_in(samples: usize) -> String {
    let whole_ms = (SENTENCE.len() / 8).saturating_sub(AROUND_MS).max(1);
    let words: Vec<&str> = HEARD.split(' ').collect();
    let count = words.len() * (samples / HEARING_KHZ) / whole_ms;
    words[..count.min(words.len())].join(" ")
}

/// Opens so much later.
fn after(delay: Duration) -> watch::Receiver<bool> {
    let (open, gate) = watch::channel(delay.is_zero());
    tokio::spawn(async move {
        pause(delay).await;
        // Whoever waited for it may be gone.
        let _ = open.send(true);
    });
    gate
}

fn tone() -> Vec<i16> {
    let angle = |n: usize| std::f64::consts::TAU * 440.0 * n as f64 / RATE as f64;
    (0..RATE * SPOKEN_MS / 1_000)
        .map(|n| (8_000.0 * angle(n).sin()) as i16)
        .collect()
}
