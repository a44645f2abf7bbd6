//! Why some words are not known.
use crate::speech::SpeechError;

/// The same names as where words become sound. Says nothing of what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the provider failed: it {0}")]
pub struct Failure(pub SpeechError);

impl Failure {
    /// For timeline and metrics.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}
