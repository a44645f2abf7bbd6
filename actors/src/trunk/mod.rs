//! A workspace's trunks: an actor and a task for each, which speak with its peer outside of calls, and the board on which
//! dispatchers, calls and users see how each of them stands.
pub mod actor;
pub mod board;
pub mod elsewhere;
pub mod options;
mod reach;
mod speaking;
mod standing;
mod watch;
