//! What a microphone picks up.
use bytes::Bytes;

/// What the participant does.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// Begins to speak.
    Began,
    /// Has spoken: all of it.
    Spoke(Bytes),
    /// Pressed keys of the page, of `0-9*#`.
    Pressed(String),
}
