//! What a microphone picks up.
use adapters::sound::Pcm;

/// What the participant does.
#[derive(Clone, Debug, PartialEq)]
pub enum MicEvent {
    /// Begins to speak. That is noticed when its sound has lasted for a while: it began so long ago.
    SpeechStarted { ago_ms: u64 },
    /// Has spoken.
    SpeechEnded {
        /// All of it, from that beginning on, at 16 kHz.
        sound: Pcm,
        /// Has been silent for so long by now. `None`: nobody knows, for the microphone went away, or who speaks does not stop.
        quiet_ms: Option<u64>,
    },
    /// Pressed keys of the page, of `0-9*#`.
    Dtmf(String),
}
