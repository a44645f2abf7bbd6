//! When a turn of the other side's is over, and when it ends the agent's.
use crate::values::Bounded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the other side has finished, in rooms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnDetection {
    #[serde(default)]
    pub mode: TurnMode,
    /// Milliseconds of silence after which what was said is over.
    #[serde(default = "half_a_second")]
    pub silence_ms: Bounded<200, 3000>,
    /// The same behind words that are not a whole sentence yet, such as `I would like to`. Shorter than `silence_ms`: that counts.
    #[serde(default = "a_breath")]
    pub unfinished_silence_ms: Bounded<200, 3000>,
    /// The answer is begun as soon as the words sound finished, and thrown away unheard if the other side goes on.
    #[serde(default = "yes")]
    pub eager: bool,
}
impl Default for TurnDetection {
    fn default() -> Self {
        TurnDetection {
            mode: TurnMode::Vad,
            silence_ms: half_a_second(),
            unfinished_silence_ms: a_breath(),
            eager: true,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnMode {
    /// By silence, and by whether the words are a whole sentence.
    #[default]
    Vad,
    /// By the transcription provider, where it detects turns; else as `vad`.
    Provider,
}

/// What stops the agent while it speaks, in rooms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interruption {
    /// Milliseconds of voice; a shorter one does not stop the agent.
    #[serde(default = "a_syllable")]
    pub min_duration_ms: Bounded<0, 2000>,
    /// Words that must be known of it, where a transcription provider tells them.
    #[serde(default = "no_words")]
    pub min_words: Bounded<0, 10>,
    #[serde(default)]
    pub sensitivity: Sensitivity,
    /// The agent goes on where it stopped if it turns out that it was not interrupted.
    #[serde(default = "yes")]
    pub resume: bool,
}
impl Default for Interruption {
    fn default() -> Self {
        Interruption {
            min_duration_ms: a_syllable(),
            min_words: no_words(),
            sensitivity: Sensitivity::Medium,
            resume: true,
        }
    }
}

/// How far below the speaker's usual loudness a voice still stops the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sensitivity {
    /// 10 dB.
    Low,
    /// 20 dB.
    #[default]
    Medium,
    /// 40 dB.
    High,
}

fn half_a_second() -> Bounded<200, 3000> {
    Bounded::new(500).unwrap_or_else(|_| unreachable!("a constant"))
}
fn a_breath() -> Bounded<200, 3000> {
    Bounded::new(1_400).unwrap_or_else(|_| unreachable!("a constant"))
}
fn a_syllable() -> Bounded<0, 2000> {
    Bounded::new(200).unwrap_or_else(|_| unreachable!("a constant"))
}
fn no_words() -> Bounded<0, 10> {
    Bounded::new(0).unwrap_or_else(|_| unreachable!("a constant"))
}
fn yes() -> bool {
    true
}
