//! What is measured: who listens and thinks, how slow they are, what it was before, and what it is to be.
use super::Plan;
use std::time::Duration;

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

/// Who transcribes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ears {
    /// An utterance as a whole: OpenAI's `/audio/transcriptions`.
    Batch,
    /// While one speaks: Deepgram's `/v1/listen`.
    Listen,
    /// The same, and it says when a turn is over: Deepgram's Flux.
    Flux,
}

pub struct Scenario {
    pub name: &'static str,
    pub what: String,
    pub brain: &'static str,
    pub ears: Ears,
    pub delays: Delays,
    /// Milliseconds, as measured before part C was built, and what it is to be. Source: issue 16.
    pub before: &'static str,
    pub goal: &'static str,
}

/// Their names, for whoever asks for another one.
pub const NAMES: &str = "own, usual, streaming, flux, function, realtime-own or realtime";
const NOT_MEASURED: &str = "not measured";

impl Plan {
    /// Those that are asked for.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let is_wanted = |scenario: &Scenario| {
            let fits = |asked: &Option<String>, own: &str| asked.as_deref().is_none_or(|asked| asked == own);
            fits(&self.only, scenario.name) && fits(&self.brain, scenario.brain)
        };
        let all = self.chat_scenarios().into_iter().chain(self.realtime_scenarios());
        all.filter(is_wanted).collect()
    }

    fn chat_scenarios(&self) -> [Scenario; 5] {
        let (stt, first, token, tts) = (self.stt_ms, self.llm_ms.unwrap_or(350), self.token_ms, self.tts_ms);
        let usual = Delays {
            stt: ms(stt),
            llm: ms(first),
            token: ms(token),
            tts: ms(tts),
            ..Delays::default()
        };
        let function = Delays {
            function: Some(Duration::from_secs(2)),
            ..Delays::default()
        };
        let usually = format!("STT {stt} ms, LLM {first} + {token} a token, TTS {tts}");
        let chat = |name, what, ears, delays, [before, goal]: [&'static str; 2]| Scenario {
            name,
            what,
            brain: "chat",
            ears,
            delays,
            before,
            goal,
        };
        let (none, batch) = (Delays::default(), Ears::Batch);
        [
            chat(
                "own",
                "chat, providers at 0 ms".into(),
                batch,
                none,
                ["711–802 ms", "120 ms without endpointing, 220 heard in Chromium"],
            ),
            chat(
                "usual",
                format!("chat, {usually}, each utterance as a whole"),
                batch,
                usual,
                ["1,354–1,465 ms", "none"],
            ),
            chat(
                "streaming",
                format!("chat, {usually}, while one speaks"),
                Ears::Listen,
                usual,
                [NOT_MEASURED, "p50 700, p95 950 ms"],
            ),
            chat(
                "flux",
                format!("chat, {usually}, the provider ends the turn"),
                Ears::Flux,
                usual,
                [NOT_MEASURED, "p50 700, p95 950 ms"],
            ),
            chat(
                "function",
                "chat, a function of 2 s".into(),
                batch,
                function,
                ["3,745 ms", "a filler by 1,200 ms"],
            ),
        ]
    }

    fn realtime_scenarios(&self) -> [Scenario; 2] {
        let first = self.llm_ms.unwrap_or(300);
        let speaks = Delays {
            first_delta: ms(first),
            ..Delays::default()
        };
        let realtime = |name, what, delays, [before, goal]: [&'static str; 2]| Scenario {
            name,
            what,
            brain: "realtime",
            ears: Ears::Batch,
            delays,
            before,
            goal,
        };
        [
            realtime(
                "realtime-own",
                "realtime, provider at 0 ms".into(),
                Delays::default(),
                [NOT_MEASURED, "none"],
            ),
            realtime(
                "realtime",
                format!("realtime, first delta after {first} ms, 3 times real time"),
                speaks,
                ["3,216–3,846 ms", "first delta + 60 ms"],
            ),
        ]
    }
}

fn ms(ms: usize) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
}
