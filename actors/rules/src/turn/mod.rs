//! Whose turn it is: when somebody has finished, and when what they say ends the agent's words.
//!
//! [`machine`] is told what is heard, a few milliseconds at a time, and which words are known of it; it says when words are wanted,
//! when a turn seems to be over, when it is, and whether the agent gives way. Time is counted in milliseconds of sound.
pub mod loudness;
pub mod machine;
pub mod settings;
pub mod signals;
mod state;
pub mod vocabulary;
pub mod words;
