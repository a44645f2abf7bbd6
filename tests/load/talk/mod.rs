//! How soon an agent answers: from a person's last loud 10 ms to the first packet in which there is sound.
//!
//! The service is a process of its own, the people are threads of this one that speak WebRTC over UDP, and the providers the
//! servers of the tests, as slow as is wanted. Beside what the people measure stands what the service says of itself, and what is
//! heard in a real browser, where that is asked for.
mod beside;
mod heard;
mod hearing;
mod relay;
mod report;
mod scenarios;
mod servers;

use super::{
    guests::{Guest, SENTENCE, leave},
    process::{Process, binary},
    rooms::{pause, row},
    service::{Api, client, name_of},
};
use beside::Crowd;
use bytes::Bytes;
use futures_util::future::join_all;
use heard::Chromium;
use media::webrtc::{Codec, peer::Peer};
use report::Measured;
pub use scenarios::{Delays, Ears, Scenario};
use serde_json::{Value, json};
pub use servers::Servers;
use std::time::{Duration, Instant};

/// Nobody speaks before the agent was silent for so long.
const SILENT: Duration = Duration::from_millis(800);
/// Whatever the agent says is over by then.
const LONGEST: Duration = Duration::from_secs(60);
/// A turn with all that belongs to it takes no longer; if it does the run has failed.
const LONGEST_TURN: Duration = Duration::from_secs(90);
/// Bounds of what may be asked for.
const MOST_MS: usize = 10_000;
const MOST_TURNS: usize = 500;
const MOST_ROOMS: usize = 50;
const MOST_BESIDE: usize = 100;

pub struct Plan {
    pub database: String,
    /// From the end of an utterance to its words.
    pub stt_ms: usize,
    /// To the first token, or to the first delta of speech to speech.
    pub llm_ms: Option<usize>,
    /// From token to token.
    pub token_ms: usize,
    /// To the first sound.
    pub tts_ms: usize,
    /// Of each person.
    pub turns: usize,
    pub rooms: usize,
    /// `chat` or `realtime`; both without it.
    pub brain: Option<String>,
    /// One of the scenarios, by its name.
    pub only: Option<String>,
    /// Each talk is held a second time by a person with Chromium: `desktop` or `phone`.
    pub browser: Option<String>,
    /// The same beside so many rooms of another workspace, in which everybody talks.
    pub beside: usize,
}

impl Plan {
    pub async fn run(self) {
        self.check();
        println!(
            "{}: {} rooms, {} turns each",
            name_of(&self.database),
            self.rooms,
            self.turns
        );
        println!("{}", std::path::Path::new(&binary()).display());
        let servers = Servers::start().await;
        let chromium = match &self.browser {
            Some(screen) => Some(Chromium::start(screen).await),
            None => None,
        };
        let scenarios = self.scenarios();
        let mut ears = scenarios[0].ears;
        let mut more = servers.settings();
        more.extend(servers.transcription(ears));
        more.extend([
            ("CALLBOARD_MAX_CONCURRENCY", (self.rooms + self.beside).to_string()),
            ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "0".into()),
            ("CALLBOARD_VOICE", "tones".into()),
            ("CALLBOARD_LOG", "warn,callboard=info".into()),
        ]);
        let mut service = Process::start_with(&self.database, &more, &[1, 1]);
        let api = service.api();
        api.patch("/v1/concurrency", json!({ "limit": self.rooms })).await;
        for scenario in scenarios {
            if scenario.ears != ears {
                ears = scenario.ears;
                service.restart_with(&servers.transcription(ears)).await;
            }
            servers.pace.set(scenario.delays);
            let turns = u32::try_from(self.turns).expect("some turns");
            let whole = async {
                let mut measured = self.measure(&api, &servers, &scenario, chromium.as_ref()).await;
                if self.beside > 0 {
                    let crowd = Crowd::join(&service.api_of(1, 0), self.beside).await;
                    measured.beside = self.measure_beside(&crowd, &api, &servers, &scenario).await;
                    crowd.leave().await;
                }
                measured
            };
            let measured = tokio::time::timeout(LONGEST_TURN * (3 * turns + 1), whole).await;
            let measured = measured.unwrap_or_else(|_| panic!("`{}` did not come to its end", scenario.name));
            measured.print(&scenario);
            measured.assert_unhurt(&scenario);
            let due = self.rooms * self.turns;
            assert_eq!(measured.turns.len(), due, "`{}`: turns got no answer", scenario.name);
        }
        let complaints = service.complaints();
        println!();
        row("errors in the service's log", complaints.errors.to_string());
        assert_eq!(complaints.panics, 0, "{complaints:?}");
        service.stop();
    }

    fn check(&self) {
        let most = [
            ("--turns", self.turns, MOST_TURNS),
            ("--rooms", self.rooms, MOST_ROOMS),
            ("--beside", self.beside, MOST_BESIDE),
            ("--stt-ms", self.stt_ms, MOST_MS),
            ("--llm-ms", self.llm_ms.unwrap_or(0), MOST_MS),
            ("--token-ms", self.token_ms, MOST_MS),
            ("--tts-ms", self.tts_ms, MOST_MS),
        ];
        for (name, asked, most) in most {
            assert!(asked <= most, "{name}: {asked} is more than {most}");
        }
        assert!(self.turns > 0 && self.rooms > 0, "--turns and --rooms: at least 1");
        let brains = [None, Some("chat"), Some("realtime")];
        assert!(brains.contains(&self.brain.as_deref()), "--brain: chat or realtime");
        assert!(
            !self.scenarios().is_empty(),
            "--only: {}, of the brain that is asked for",
            scenarios::NAMES
        );
    }

    async fn measure(
        &self,
        api: &Api,
        servers: &Servers,
        scenario: &Scenario,
        chromium: Option<&Chromium>,
    ) -> Measured {
        let agent = agent(api, servers, scenario).await;
        let client = client();
        let mut guests = Vec::new();
        for _ in 0..self.rooms {
            let room = api.post("/v1/rooms", json!({ "agent_id": agent })).await;
            let (peer, offer) = Peer::offer(Codec::Opus);
            guests.push(Guest::join(&client, room, peer, offer).await);
        }
        let turns = join_all(guests.iter().map(|guest| talk(&guest.peer, self.turns))).await;
        let mut measured = Measured {
            turns: turns.into_iter().flatten().collect(),
            ..Measured::default()
        };
        for guest in &guests {
            measured.told.push(latency(api, &guest.session).await);
            measured.marks.extend(marks(api, &guest.session).await);
        }
        leave(&guests).await;
        if let Some(chromium) = chromium {
            let room = api.post("/v1/rooms", json!({ "agent_id": agent })).await;
            measured.heard = chromium.talk(&room, self.turns).await;
            let session = room["session_id"].as_str().expect("an id");
            measured.heard_marks = marks(api, session).await;
        }
        measured
    }

    /// One room more, while all of the crowd's talk; what it took in milliseconds.
    async fn measure_beside(&self, crowd: &Crowd, api: &Api, servers: &Servers, scenario: &Scenario) -> Vec<f64> {
        let agent = agent(api, servers, scenario).await;
        let room = api.post("/v1/rooms", json!({ "agent_id": agent })).await;
        let (peer, offer) = Peer::offer(Codec::Opus);
        let guest = [Guest::join(&client(), room, peer, offer).await];
        let turns = tokio::select! {
            turns = talk(&guest[0].peer, self.turns) => turns,
            () = crowd.talk(LONGEST_TURN * u32::try_from(self.turns).expect("some turns")) => {
                panic!("`{}`: its turns did not come to their end", scenario.name)
            }
        };
        leave(&guest).await;
        turns
    }
}

/// As the service tells it.
async fn latency(api: &Api, session: &str) -> Value {
    api.get(&format!("/v1/sessions/{session}")).await["latency"].clone()
}

/// `detail` of its `turn_latency`, turn by turn.
pub async fn marks(api: &Api, session: &str) -> Vec<String> {
    let timeline = api.get(&format!("/v1/sessions/{session}/timeline")).await;
    let entries = timeline["entries"].as_array().into_iter().flatten();
    let marks = entries.filter(|entry| entry["kind"] == "turn_latency");
    marks
        .filter_map(|entry| entry["detail"].as_str().map(str::to_owned))
        .collect()
}

async fn agent(api: &Api, servers: &Servers, scenario: &Scenario) -> Value {
    let mut functions = Vec::new();
    if scenario.delays.function.is_some() {
        let function = json!({
            "name": "look_up",
            "description": "Looks up whether a day is free.",
            "parameters": { "type": "object", "properties": {} },
            "url": servers.function_url(),
        });
        functions.push(api.post("/v1/functions", function).await["id"].clone());
    }
    let ends_turns = match scenario.ears {
        Ears::Batch | Ears::Listen => "vad",
        Ears::Flux => "provider",
    };
    let agent = json!({
        "name": "Ann",
        "prompt": "x",
        "first_message": "Hello, this is Ann. How can I help you?",
        "brain": { "mode": scenario.brain },
        "turn_detection": { "mode": ends_turns },
        "function_ids": functions,
        "recording": { "enabled": false },
        "silence": { "hangup_after_seconds": 120 },
        "max_duration_seconds": 7200,
    });
    api.post("/v1/agents", agent).await["id"].clone()
}

/// Says the sentence so often, each time when the agent is silent again; answers how long it took until the agent was heard,
/// in milliseconds.
pub async fn talk(peer: &Peer, turns: usize) -> Vec<f64> {
    peer.until("the agent says hello", |view| view.heard_at.is_some()).await;
    let spoken = Duration::from_millis(SENTENCE.len() as u64 / 8);
    let mut took = Vec::new();
    for _ in 0..turns {
        silence(peer).await;
        peer.say(Bytes::from_static(SENTENCE));
        pause(spoken).await;
        let view = peer.until("the agent answers", |view| view.answered_at.is_some()).await;
        let since = view.spoke_at.zip(view.answered_at);
        took.extend(since.map(|(spoke_at, at)| at.saturating_duration_since(spoke_at).as_secs_f64() * 1e3));
    }
    silence(peer).await;
    took
}

/// Until the agent has said what it had to say.
async fn silence(peer: &Peer) {
    let until = Instant::now() + LONGEST;
    while peer.view().heard_at.is_some_and(|at| at.elapsed() < SILENT) {
        assert!(Instant::now() < until, "the agent does not stop speaking");
        pause(Duration::from_millis(50)).await;
    }
}
