//! A call as its carrier has it, and what it can be told.
use entities::{
    campaign::AgentSnapshot,
    ids::{SessionId, TenantScoped},
    session,
    values::E164,
};
use media::mic::MicEvent;
use runtime::clock::Busy;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A call to be placed, or one that has come in.
#[derive(Clone, Debug)]
pub struct Leg {
    /// The session's row as it was before the call.
    pub call: Arc<session::Model>,
    pub agent: Arc<AgentSnapshot>,
}

impl Leg {
    pub fn session(&self) -> TenantScoped<SessionId> {
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
    /// The other side had put us on hold, and is back.
    Resume,
}

/// How a talk on a line that carries sound learns what the other side does, and what others want of it.
pub type Ways = (mpsc::Receiver<MicEvent>, mpsc::Receiver<(Control, Option<Busy>)>);
