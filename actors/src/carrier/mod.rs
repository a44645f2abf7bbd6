//! Who connects calls. One trait; the sandbox is its implementation for test keys.
mod log;
mod sandbox;

pub use sandbox::{Options as SandboxOptions, Sandbox};

use crate::deps::Deps;
use entities::{
    campaign::AgentSnapshot,
    ids::{Owned, SessionId},
    session,
    values::{E164, Env, Variables},
};
use std::{sync::Arc, time::Duration};

/// A call to be placed.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub session: Owned<SessionId>,
    pub to: E164,
    /// 1 for the first call to its contact.
    pub attempt: i32,
    pub ring_timeout: Duration,
    pub agent: Arc<AgentSnapshot>,
    pub variables: Variables,
}

impl Outgoing {
    pub fn new(row: &session::Model, agent: Arc<AgentSnapshot>) -> Self {
        Outgoing {
            session: row.key(),
            to: row.to_number.clone(),
            attempt: row.attempt,
            ring_timeout: Duration::from_secs(u64::try_from(row.ring_timeout_seconds).unwrap_or(0)),
            agent,
            variables: row.variables.clone(),
        }
    }
}

/// Places calls and reports what becomes of them as commands to their sessions.
pub trait Carrier: Send + Sync {
    /// Returns at once. Called once for a session, and again only after it said that it had no room for it.
    fn place(&self, deps: &Deps, call: Arc<Outgoing>);
    /// Ends a call, if it is still there. Reports nothing to its session.
    fn hang_up(&self, session: SessionId);
}

/// The carrier of each env.
pub struct Carriers {
    pub sandbox: Sandbox,
}

impl Carriers {
    /// `None`: calls of that env cannot be placed; the operator has configured no carrier.
    pub fn of(&self, env: Env) -> Option<&dyn Carrier> {
        match env {
            Env::Live => None,
            Env::Test => Some(&self.sandbox),
        }
    }
}
