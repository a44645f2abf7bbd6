//! Text to speech, streamed: one trait, an adapter per kind of speech server, and the voice of this machine, which needs none.
//!
//! A piece of text is asked for at a time, a clause or a sentence, and its sound is handed on as it comes. Providers with a websocket
//! say the pieces of an answer in one go, and tell when each word is heard. Nothing of a provider
//! is believed: how long it may be silent, how much it may send and in which form is limited here. What it says of its
//! failures goes nowhere, for it may repeat what was to be spoken: a [`SpeechError`] has a name, and that is all.
mod cartesia;
mod cast;
mod elevenlabs;
mod error;
mod generation;
pub(crate) mod http;
mod letters;
mod local;
mod openai;
mod pcm;
mod piece;
mod piper;
mod provider;
mod stream;
#[cfg(test)]
mod tests;
mod turn;
pub(crate) mod watermark;

pub use cast::{Cast, Second, Speech, Tongue};
pub use error::SpeechError;
pub use letters::Places;
pub use piece::ItsTurn;
pub use provider::{HostedVoice, Kind, Provider};
pub use stream::SpeechStream;
pub use turn::{InTurn, Turn};
pub use watermark::Watermark;

use crate::provider_http::Limits;
use futures_util::future::BoxFuture;
use std::time::Duration;

/// Speaks with the voices of one provider. One is made for each talk; what talks can share, they share.
pub trait Synthesizer: Send + Sync {
    /// For timeline and metrics.
    fn name(&self) -> &'static str;
    /// Begins when the stream is first asked for sound; a piece of a turn, where the provider says those in one go, at once.
    fn speak(&self, asked: Utterance) -> SpeechStream;
    /// Opens the connection for that voice and language early, so that the first words need not wait for it. That it fails is seen
    /// with the first words.
    fn warm(&self, voice: &str, language: &str) -> BoxFuture<'_, ()>;
}

/// What is to be said.
#[derive(Clone, Debug, Default)]
pub struct Utterance {
    pub text: String,
    /// BCP 47; empty: whichever the text is in.
    pub language: String,
    /// What the provider calls it.
    pub voice: String,
    /// The answer that it is a piece of, if there is one.
    pub turn: InTurn,
    /// Where its words stand in the text that is shown.
    pub places: Places,
}

/// Samples per second that providers are asked for.
const RATE: u32 = 24_000;

/// Seconds of sound of one utterance: its text has at most 4,000 characters, of which Chinese says five a second.
const LONGEST_SECONDS: usize = 600;

/// How long a provider may take. The talk is less patient, and speaks with another voice meanwhile.
const LIMITS: Limits = Limits {
    first_byte: Duration::from_secs(10),
    silence: Duration::from_secs(5),
    whole: Duration::from_secs(60),
};

/// Of a language tag what providers know: `de` of `de-AT`. None if that is not a code of two letters.
fn primary(language: &str) -> Option<String> {
    let primary = language
        .split(['-', '_'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    (primary.len() == 2).then_some(primary)
}
