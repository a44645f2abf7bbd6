//! Speech to text: while it is spoken, or turn by turn where a provider knows no better.
//!
//! A [`Transcript`] is one talk's: the talk says where a turn of the speaker begins, gives its sound, and asks for its words. Behind
//! it a task of its own keeps the connection (`session`), which speaks one of three protocols (`realtime`, `deepgram`, `flux`); what
//! the answers mean for which turn is worked out without it (`book`). OpenAI's `/audio/transcriptions` gets each turn as a whole
//! (`batch`). What one provider does not understand another may (`fallback`). All of them take from the talk, and tell it, by the same
//! few lines (`talk`, `outbox`).
//!
//! Nothing of a provider is believed: when it answers, how much it says and which times it names is limited here. What it
//! says of its failures goes nowhere, for it may repeat what was said: a [`Failure`] has a name, and that is all.
mod batch;
mod book;
mod deepgram;
mod dialect;
mod failure;
mod fallback;
mod flux;
mod hosted;
mod items;
mod link;
mod outbox;
mod provider;
mod realtime;
mod session;
mod talk;
#[cfg(test)]
mod tests;
mod turn;
mod way;

pub use failure::Failure;
pub use provider::{Kind, Provider};

use crate::sound::Pcm;
use std::time::Duration;
use tokio::sync::mpsc;

/// What is known of a talk before its first word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// BCP 47.
    pub language: String,
    /// Words to expect: names of people, products, places. The first ones are told, 500 characters of them.
    pub names: Vec<String>,
}

/// Characters of [`Ask::names`] that a provider is told.
const EXPECTED: usize = 500;

impl Ask {
    /// The names that a provider is told: plain, each once.
    fn expected(&self) -> Vec<String> {
        let mut left = EXPECTED;
        let mut told: Vec<String> = Vec::new();
        for name in &self.names {
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            let name: String = name.chars().filter(|letter| !letter.is_control()).collect();
            let Some(less) = left.checked_sub(name.chars().count()) else {
                break;
            };
            if !name.is_empty() && !told.contains(&name) {
                left = less;
                told.push(name);
            }
        }
        told
    }

    fn language_code(&self) -> Option<String> {
        language_code(&self.language)
    }
}

/// ISO 639, as `de` of `de-AT`, if it looks like one. `language`: BCP 47.
pub fn language_code(language: &str) -> Option<String> {
    let code = language.split(['-', '_']).next().unwrap_or_default();
    let code = match code.to_ascii_lowercase() {
        code if code == "nb" => "no".to_owned(),
        code => code,
    };
    let is_code = (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase());
    is_code.then_some(code)
}

/// One talk's way to a provider. Dropping it, or one of its ends, ends it.
#[derive(Debug)]
pub struct Transcript {
    /// Who is heard to, for metrics.
    pub provider: &'static str,
    pub input: mpsc::Sender<Hear>,
    pub events: mpsc::Receiver<Transcribed>,
}

/// What a provider gets to hear.
#[derive(Clone, Debug, PartialEq)]
pub enum Hear {
    /// A turn of the speaker begins, of that number: what is told of it beside answers has it too. Of the one before, what was asked for
    /// still comes.
    Begin(u64),
    /// 16 kHz mono, 16 to 100 ms. Outside a turn it is not heard.
    Sound(Pcm),
    /// The words of all since `Begin` are wanted. May be asked again in the same turn, when more was said.
    Finalize,
    /// Forget all since `Begin`. What was asked for in this turn is answered with no words.
    Discard,
}

/// What a provider has understood. `turn`: the number that its `Begin` had.
#[derive(Clone, Debug, PartialEq)]
pub enum Transcribed {
    /// All words since `Begin` so far. Of several that nobody has taken, the newest.
    Partial { turn: u64, words: String },
    /// Exactly one of this or `Failed` for each `Finalize`, in their order: all words since `Begin`; none if there was no word.
    Final(String),
    /// By providers that detect turns: this may have been all. Its words are all since `Begin`.
    EagerEnd { turn: u64, words: String },
    /// By providers that detect turns: it was not; the speaker goes on.
    Resumed { turn: u64 },
    /// By providers that detect turns: this was all since `Begin`.
    TurnEnd { turn: u64, words: String },
    /// In place of a `Final`.
    Failed(Failure),
}

/// Inputs that wait for a provider.
const INPUTS: usize = 256;
/// Seconds of sound that are kept of a turn, for a second connection or a whole request: its end, if it is longer.
const LONGEST_SECONDS: usize = 45;
/// Turns that wait for their words; of more, the oldest fails.
const MOST_TURNS: usize = 16;
/// Questions that wait for an answer, and answers that wait to be taken; past that nothing is taken in.
const MOST_WAITING: usize = 64;

/// How long a provider may take.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// To open a connection.
    connect: Duration,
    /// From a `Finalize` to its words, connecting included.
    answer: Duration,
    /// The same, where all but a little was heard of before: a provider may keep that to itself.
    rest: Duration,
    /// Samples: so little is that. It must not have a word in it, and `no` takes 200 ms.
    little: u64,
    /// After the first connection that fails; doubled with each further one, up to 8 s, give or take a quarter.
    back_off: Duration,
    /// Without a message from us, before it is told that we are still there.
    keep_alive: Duration,
    /// Without sound, before the connection is closed: it is paid for by the second.
    idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(10),
            rest: Duration::from_millis(1_200),
            little: 2_400,
            back_off: Duration::from_millis(500),
            keep_alive: Duration::from_secs(4),
            idle: Duration::from_secs(60),
        }
    }
}
