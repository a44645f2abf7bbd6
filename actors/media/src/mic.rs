//! What a microphone picks up.
use adapters::sound::Pcm;

/// What the participant does.
#[derive(Clone, Debug, PartialEq)]
pub enum MicEvent {
    /// Begins to speak. That is noticed when its sound has lasted for a while: it began so long ago.
    SpeechStarted { ago_ms: u64 },
    /// Has spoken: all of it, from that beginning on, at 16 kHz.
    SpeechEnded(Pcm),
    /// Pressed keys of the page, of `0-9*#`.
    Dtmf(String),
}
