//! What the agent's user has decided about turns.
use super::vocabulary::{self, Vocabulary};
use entities::agent::{Definition, Sensitivity, TurnMode};

/// Beyond the longest silence, in which a provider that detects turns must have found an end.
const PROVIDER_MS: u32 = 1_500;

/// For one talk.
#[derive(Clone, Debug)]
pub struct Settings {
    pub by_provider: bool,
    pub silence_ms: u32,
    pub unfinished_ms: u32,
    pub eager: bool,
    pub min_voice_ms: u32,
    pub min_words: usize,
    /// How much softer than usual the speaker may be.
    pub margin_db: f32,
    pub resumes: bool,
    pub vocabulary: &'static Vocabulary,
}

impl Settings {
    /// `detects_turns`: whoever tells the words can also tell where turns end.
    pub fn of(definition: &Definition, detects_turns: bool) -> Self {
        let (turn, interruption) = (&definition.turn_detection, &definition.interruption);
        let silence_ms = turn.silence_ms.get().unsigned_abs();
        Settings {
            by_provider: turn.mode == TurnMode::Provider && detects_turns,
            silence_ms,
            unfinished_ms: turn.unfinished_silence_ms.get().unsigned_abs().max(silence_ms),
            eager: turn.eager,
            min_voice_ms: interruption.min_duration_ms.get().unsigned_abs(),
            min_words: usize::try_from(interruption.min_words.get()).unwrap_or(0),
            margin_db: match interruption.sensitivity {
                Sensitivity::Low => 10.0,
                Sensitivity::Medium => 20.0,
                Sensitivity::High => 40.0,
            },
            resumes: interruption.resume,
            vocabulary: vocabulary::of(&definition.language),
        }
    }

    /// Silence after which every turn is over.
    pub fn longest_ms(&self) -> u32 {
        self.unfinished_ms + if self.by_provider { PROVIDER_MS } else { 0 }
    }
}
