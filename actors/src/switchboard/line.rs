//! How legs, registrations and keep-alives speak: bytes to a target, messages of one Call-ID from a mailbox.
//!
//! They know no sockets: those are behind `Sockets`.
use super::{
    sources::SourceTable,
    table::{Arrival, CallTable, Mailbox, NotEntered},
};
use bytes::Bytes;
use sip::message::Transport;
use std::{net::SocketAddr, sync::Arc};

/// To whom something is sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub address: SocketAddr,
    pub transport: Transport,
    /// What its certificate has to name. Only TLS asks for it.
    pub name: Arc<str>,
}

/// It was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    #[error("this service has no socket for {}", .0.name())]
    NoSocket(Transport),
    /// A connection's queue is full, or there are too many connections.
    #[error("there is no room to send it")]
    NoRoom,
    #[error("the network refuses it")]
    Refused,
}

/// What sends: the sockets of this process.
pub trait Sockets: Send + Sync {
    /// Returns at once. Of a connection that cannot be made, `call_id`'s owner hears by `Arrival::Undelivered`.
    fn send(&self, bytes: Bytes, target: &Target, call_id: &Arc<str>) -> Result<(), NotSent>;

    /// Host and port of ours as peers see them, for Via and Contact. `None`: no socket for that.
    fn sent_by(&self, transport: Transport) -> Option<&str>;
}

/// Cloning is cheap. That of this process: `deps.carriers.phones.line()`, `None` without `CALLBOARD_SIP_BIND`.
#[derive(Clone)]
pub struct Line {
    sockets: Arc<dyn Sockets>,
    calls: CallTable,
    sources: SourceTable,
}

impl Line {
    pub fn new(sockets: Arc<dyn Sockets>, calls: CallTable, sources: SourceTable) -> Self {
        Line {
            sockets,
            calls,
            sources,
        }
    }

    /// Returns at once: `Err`, or later `Arrival::Undelivered`, means that it cannot have arrived.
    pub fn send(&self, bytes: Bytes, target: &Target, mailbox: &Mailbox) -> Result<(), NotSent> {
        self.sockets.send(bytes, target, mailbox.call_id())
    }

    /// The same, of what nobody waits for an answer to.
    pub fn reply(&self, bytes: Bytes, target: &Target) -> Result<(), NotSent> {
        self.sockets.send(bytes, target, &Arc::from(""))
    }

    /// Messages with that Call-ID come to the mailbox, until it is dropped.
    pub fn register(&self, call_id: &str) -> Result<Mailbox, NotEntered> {
        self.calls.register(call_id)
    }

    /// Host and port of ours as peers see them, for Via and Contact. `None`: no socket for that.
    pub fn sent_by(&self, transport: Transport) -> Option<&str> {
        self.sockets.sent_by(transport)
    }

    pub fn sources(&self) -> &SourceTable {
        &self.sources
    }

    pub fn calls(&self) -> &CallTable {
        &self.calls
    }

    /// For sockets: to the owner of the Call-ID, that what it sent cannot have arrived.
    pub fn undelivered(&self, call_id: &str) {
        self.calls.deliver(call_id, Arrival::Undelivered);
    }
}
