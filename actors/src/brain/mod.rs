//! What decides an agent's words. One trait; an implementation per kind of brain.
mod scripted;

pub use scripted::Scripted;

use entities::{agent, campaign::AgentSnapshot, values::Variables};
use futures_util::future::BoxFuture;

/// One thing that the agent says.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub say: String,
    /// The agent ends the call after it.
    pub hang_up: bool,
}

/// The mind of one call.
pub trait Brain: Send {
    /// What the agent says when the other side has picked up.
    fn open(&mut self) -> BoxFuture<'_, Line>;
    /// What it says to what it heard.
    fn reply<'a>(&'a mut self, heard: &'a str) -> BoxFuture<'a, Line>;
}

/// The brain that an agent's settings ask for.
pub fn of(agent: &AgentSnapshot, variables: &Variables) -> Box<dyn Brain> {
    match &agent.definition.brain {
        agent::Brain::Scripted { replies } => {
            Box::new(Scripted::new(&agent.definition.first_message, replies, variables))
        }
    }
}
