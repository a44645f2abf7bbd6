//! Transactions: one request, its retransmissions and its answers. Source: RFC 3261, section 17, and RFC 6026.
//!
//! Each call, registration and keep-alive owns its transactions and drives them: messages and moments go in, `poll` gives out what is
//! to be sent and what has happened, `deadline` says when `tick` matters next.
mod client;
mod hop;
mod server;
mod timers;

pub use crate::message::Transport;
pub use client::{Client, ClientOutput};
pub use hop::{ack, cancel};
pub use server::{Server, ServerOutput};

use std::time::Duration;

/// Estimate of a round trip. Source: RFC 3261, section 17.1.1.1.
pub const T1: Duration = Duration::from_millis(500);
/// Longest pause between retransmissions.
pub const T2: Duration = Duration::from_secs(4);
/// How long a message may stay in the network.
pub const T4: Duration = Duration::from_secs(5);
/// 64·T1: how long a transaction tries.
pub const GIVE_UP: Duration = Duration::from_secs(32);

/// Whose a message is that was handed to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Of another transaction, or none.
    NotOurs,
    /// Of this one, and nothing that its user has not been told: a repeat, or what comes too late to matter.
    Again,
    /// Of this one: `poll` tells the user.
    New,
}
