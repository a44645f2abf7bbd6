//! What speaks with a trunk's peer outside of calls, a registration or a keep-alive, each under a Call-ID of its own.
use crate::switchboard::{
    line::{Line, Target},
    table::{Arrival, Mailbox, NotEntered},
};
use sip::{
    keepalive::Keepalive,
    message::{Message, Response},
    registration::Registration,
};
use std::time::Instant;

/// What registrations and keep-alives have in common.
pub trait Machine {
    fn call_id(&self) -> &str;
    fn receive(&mut self, response: &Response, now: Instant) -> bool;
    fn failed(&mut self, now: Instant);
}

macro_rules! machine {
    ($name:ident) => {
        impl Machine for $name {
            fn call_id(&self) -> &str {
                $name::call_id(self)
            }
            fn receive(&mut self, response: &Response, now: Instant) -> bool {
                $name::receive(self, response, now)
            }
            fn failed(&mut self, now: Instant) {
                $name::failed(self, now);
            }
        }
    };
}
machine!(Registration);
machine!(Keepalive);

pub struct Speaking<M> {
    pub machine: M,
    pub mailbox: Mailbox,
    /// To where its requests go, until one fails.
    pub target: Option<Target>,
}

impl<M: Machine> Speaking<M> {
    pub fn new(machine: M, line: &Line) -> Result<Self, NotEntered> {
        Ok(Speaking {
            mailbox: line.register(machine.call_id())?,
            machine,
            target: None,
        })
    }

    pub fn hear(&mut self, arrival: Arrival, now: Instant) {
        match arrival {
            Arrival::Message {
                message: Message::Response(response),
                ..
            } => {
                self.machine.receive(&response, now);
            }
            // Nobody has anything to ask under these Call-IDs.
            Arrival::Message {
                message: Message::Request(_),
                ..
            } => {}
            Arrival::Undelivered => self.machine.failed(now),
        }
    }
}

/// What comes for it; waits for ever for what is not there.
pub async fn arrived<M>(speaking: &mut Option<Speaking<M>>) -> Arrival {
    match speaking {
        Some(speaking) => speaking.mailbox.arrived().await,
        None => std::future::pending().await,
    }
}
