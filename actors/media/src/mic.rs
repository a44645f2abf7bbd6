//! What a microphone picks up.
use bytes::Bytes;

/// What the participant does.
#[derive(Clone, Debug, PartialEq)]
pub enum MicEvent {
    /// Begins to speak.
    SpeechStarted,
    /// Has spoken: all of it.
    SpeechEnded(Bytes),
    /// Pressed keys of the page, of `0-9*#`.
    Dtmf(String),
}
