//! How soon an agent answers: from a person's last loud 10 ms to the first packet in which there is sound.
//!
//! The service is a process of its own, the people are threads of this one that speak WebRTC over UDP, and the providers the
//! servers of the tests, as slow as is wanted. Beside what the people measure stands what the service says of itself.
mod relay;
mod report;
mod servers;

use super::{
    guests::{Guest, SENTENCE, leave},
    process::{Process, binary},
    rooms::{pause, row},
    service::{Api, client, name_of},
};
use bytes::Bytes;
use futures_util::future::join_all;
use media::webrtc::{Codec, peer::Peer};
use report::Measured;
use serde_json::{Value, json};
use servers::Servers;
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
}

/// How long the providers take.
#[derive(Clone, Copy, Default)]
pub struct Delays {
    pub stt: Duration,
    pub llm: Duration,
    pub token: Duration,
    pub tts: Duration,
    /// Of speech to speech.
    pub first_delta: Duration,
    /// The model calls a function, and that takes so long.
    pub function: Option<Duration>,
}

pub struct Scenario {
    pub name: &'static str,
    pub what: String,
    brain: &'static str,
    delays: Delays,
    /// Milliseconds, as measured before part C was built, and what it is to be. Source: issue 16.
    pub before: &'static str,
    pub goal: &'static str,
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
        let mut more = servers.settings();
        more.extend([
            ("CALLBOARD_MAX_CONCURRENCY", self.rooms.to_string()),
            ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "0".into()),
            ("CALLBOARD_VOICE", "tones".into()),
            ("CALLBOARD_LOG", "warn,callboard=info".into()),
        ]);
        let service = Process::start(&self.database, &more);
        let api = service.api();
        api.patch("/v1/concurrency", json!({ "limit": self.rooms })).await;
        for scenario in self.scenarios() {
            servers.pace.set(scenario.delays);
            let turns = u32::try_from(self.turns).expect("some turns");
            let whole = self.measure(&api, &servers, &scenario);
            let measured = tokio::time::timeout(LONGEST_TURN * (turns + 1), whole).await;
            let measured = measured.unwrap_or_else(|_| panic!("`{}` did not come to its end", scenario.name));
            measured.print(&scenario);
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
            "--only: own, usual, function, realtime-own or realtime, of the brain that is asked for"
        );
    }

    /// Those that are asked for.
    fn scenarios(&self) -> Vec<Scenario> {
        let ms = |ms: usize| Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX));
        let llm = |usual: usize| self.llm_ms.unwrap_or(usual);
        let usual = Delays {
            stt: ms(self.stt_ms),
            llm: ms(llm(350)),
            token: ms(self.token_ms),
            tts: ms(self.tts_ms),
            ..Delays::default()
        };
        let speaks = Delays {
            first_delta: ms(llm(300)),
            ..Delays::default()
        };
        let function = Delays {
            function: Some(Duration::from_secs(2)),
            ..Delays::default()
        };
        let none = Delays::default();
        let (stt, first, token, tts) = (self.stt_ms, llm(350), self.token_ms, self.tts_ms);
        let usually = format!("chat, STT {stt} ms, LLM {first} + {token} a token, TTS {tts}");
        let spoken = format!("realtime, first delta after {} ms, 3 times real time", llm(300));
        let all = [
            (
                "own",
                "chat",
                "chat, providers at 0 ms".into(),
                none,
                ["711–802 ms", "120 ms without endpointing"],
            ),
            (
                "usual",
                "chat",
                usually,
                usual,
                ["1,354–1,465 ms", "p50 700, p95 950 ms"],
            ),
            (
                "function",
                "chat",
                "chat, a function of 2 s".into(),
                function,
                ["3,745 ms", "a filler by 1,200 ms"],
            ),
            (
                "realtime-own",
                "realtime",
                "realtime, provider at 0 ms".into(),
                none,
                ["not measured", "none"],
            ),
            (
                "realtime",
                "realtime",
                spoken,
                speaks,
                ["3,216–3,846 ms", "first delta + 60 ms"],
            ),
        ];
        let all = all.map(|(name, brain, what, delays, [before, goal])| Scenario {
            name,
            what,
            brain,
            delays,
            before,
            goal,
        });
        let is_wanted = |scenario: &Scenario| {
            let fits = |asked: &Option<String>, own: &str| asked.as_deref().is_none_or(|asked| asked == own);
            fits(&self.only, scenario.name) && fits(&self.brain, scenario.brain)
        };
        all.into_iter().filter(is_wanted).collect()
    }

    async fn measure(&self, api: &Api, servers: &Servers, scenario: &Scenario) -> Measured {
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
            let path = format!("/v1/sessions/{}", guest.session);
            measured.told.push(api.get(&path).await["latency"].clone());
            let timeline = api.get(&format!("{path}/timeline")).await;
            let entries = timeline["entries"].as_array().into_iter().flatten();
            let marks = entries.filter(|entry| entry["kind"] == "turn_latency");
            let details = marks.filter_map(|entry| entry["detail"].as_str().map(str::to_owned));
            measured.marks.extend(details);
        }
        leave(&guests).await;
        measured
    }
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
    let agent = json!({
        "name": "Ann",
        "prompt": "x",
        "first_message": "Hello, this is Ann. How can I help you?",
        "brain": { "mode": scenario.brain },
        "function_ids": functions,
        "recording": { "enabled": false },
        "silence": { "hangup_after_seconds": 120 },
        "max_duration_seconds": 7200,
    });
    api.post("/v1/agents", agent).await["id"].clone()
}

/// Says the sentence so often, each time when the agent is silent again; answers how long it took until the agent was heard,
/// in milliseconds.
async fn talk(peer: &Peer, turns: usize) -> Vec<f64> {
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
