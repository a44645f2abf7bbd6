//! Who connects calls. One trait; the sandbox is its implementation for test keys.
mod log;
mod person;
mod sandbox;

pub use person::Typed;
pub use sandbox::{Options as SandboxOptions, Sandbox};

use crate::{deps::Deps, room::house::House};
use entities::{
    campaign::AgentSnapshot,
    ids::{Owned, SessionId},
    session,
    values::{E164, Env},
};
use std::sync::Arc;

/// A call to be placed, or one that has come in.
#[derive(Clone, Debug)]
pub struct Leg {
    /// The session's row as it was before the call.
    pub call: Arc<session::Model>,
    pub agent: Arc<AgentSnapshot>,
}

impl Leg {
    pub fn session(&self) -> Owned<SessionId> {
        self.call.key()
    }
    /// Who is called; a room has no number.
    pub fn to(&self) -> Option<&E164> {
        self.call.to_number.as_ref()
    }
}

/// What a live call can be told to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// The agent says this next.
    Say(String),
    /// Keys are pressed on the agent's side.
    Press(String),
    /// Somebody else is called to take over.
    Transfer(E164),
    /// The hand-over took too long.
    TakeBack,
}

/// Places calls and reports what becomes of them as commands to their sessions.
pub trait Carrier: Send + Sync {
    /// Returns at once. Called once for a session, and again only after it said that it had no room for it.
    fn place(&self, deps: &Deps, leg: Arc<Leg>);
    /// Ends a call, if it is still there. Reports nothing to its session.
    fn hang_up(&self, session: SessionId);
    /// `false`: there is no such call, or it has been told too much already.
    fn control(&self, deps: &Deps, session: SessionId, control: Control) -> bool;
}

/// The carrier of each env.
pub struct Carriers {
    pub sandbox: Sandbox,
    /// Of both envs: browsers come by themselves.
    pub rooms: House,
}

impl Carriers {
    /// `None`: calls of that env cannot be placed; the operator has configured no carrier.
    pub fn of(&self, env: Env) -> Option<&dyn Carrier> {
        match env {
            Env::Live => None,
            Env::Test => Some(&self.sandbox),
        }
    }

    /// Takes a call that has come in and was given a slot.
    pub fn take(&self, deps: &Deps, leg: Arc<Leg>) {
        // Who joins a room is there already.
        if leg.call.room_id.is_none() {
            self.sandbox.carry(deps, leg);
        }
    }

    /// `false`: there is no such call, or it has been told too much already.
    pub fn control(&self, deps: &Deps, session: Owned<SessionId>, control: Control) -> bool {
        match self.rooms.control(session.id, control.clone()) {
            Some(told) => told,
            None => self
                .of(session.env)
                .is_some_and(|carrier| carrier.control(deps, session.id, control)),
        }
    }
}
