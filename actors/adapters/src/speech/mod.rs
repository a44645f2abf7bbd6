//! Text to speech, streamed: one trait, an adapter per kind of speech server, and the voice of this machine, which needs none.
//!
//! A piece of text is asked for at a time, a clause or a sentence, and its sound is handed on as it comes. Nothing of a provider
//! is believed: how long it may be silent, how much it may send and in which form is limited here. What it says of its
//! failures goes nowhere, for it may repeat what was to be spoken: a [`SpeechError`] has a name, and that is all.
mod cartesia;
mod cast;
mod elevenlabs;
mod error;
pub(crate) mod http;
mod local;
mod openai;
mod pcm;
mod piper;
mod provider;
mod stream;
#[cfg(test)]
mod tests;

pub use cast::{Cast, Second, Speech, Tongue};
pub use error::SpeechError;
pub use provider::{HostedVoice, Kind, Provider};
pub use stream::SpeechStream;

use crate::provider_http::Limits;
use futures_util::future::BoxFuture;
use std::time::Duration;

/// Speaks with the voices of one provider. One is made for each talk; what talks can share, they share.
pub trait Synthesizer: Send + Sync {
    /// For timeline and metrics.
    fn name(&self) -> &'static str;
    /// Begins when the stream is first asked for sound.
    fn speak(&self, asked: Utterance) -> SpeechStream;
    /// Opens the connection early, so that the first words need not wait for it. That it fails is seen with the first words.
    fn warm(&self) -> BoxFuture<'_, ()>;
}

/// What is to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Utterance {
    pub text: String,
    /// BCP 47; empty: whichever the text is in.
    pub language: String,
    /// What the provider calls it.
    pub voice: String,
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
