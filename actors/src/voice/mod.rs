//! What talks on lines that carry sound have in common, a browser's and a telephone's: who listens, who speaks, and when.
//!
//! `talk` is the whole of it; `speech_input` listens beside it, `voices` has the agent's words spoken, and `transport` is the
//! line as the conversation sees it.
#[cfg(test)]
mod bench_tests;
mod cue;
mod ears;
mod last_words;
mod outbox;
pub mod side;
pub mod speech_input;
mod spoken_turn;
pub mod standby;
pub mod standbys;
pub mod talk;
pub mod transport;
mod user_input;
pub mod voices;
