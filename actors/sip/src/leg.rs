//! What the identifiers of one leg are derived from, and where its messages go.
use std::sync::Arc;

use ezk_sip_types::host::{Host, HostPort};
use uuid::Uuid;

use crate::{
    identity::Identity,
    message::{Fields, Method, Request, SipUri},
};

/// One leg of a session, to which every tag and branch belongs: the next process derives the same ones, and so can end
/// what this one left behind.
#[derive(Clone)]
pub struct CallIdentity {
    keys: Arc<Identity>,
    session: Uuid,
    leg: u32,
}

impl CallIdentity {
    pub fn new(keys: Arc<Identity>, session: Uuid, leg: u32) -> Self {
        Self { keys, session, leg }
    }

    /// Of a call that we place; the Call-ID of one that comes in is the caller's.
    pub fn call_id(&self, host: &str) -> String {
        self.keys.call_id(self.session, self.leg, host)
    }

    pub fn local_tag(&self) -> String {
        self.keys.local_tag(self.session, self.leg)
    }

    /// Of the request with this number. A number is used once in a leg, but for CANCEL, which goes under its INVITE's.
    pub fn branch(&self, method: &Method, cseq: u32) -> String {
        self.keys.branch(self.session, self.leg, method.as_str(), cseq)
    }

    /// Of a request to one of several peers that an INVITE was forked to, each of which counts its own numbers.
    pub fn fork_branch(&self, method: &Method, cseq: u32, remote_tag: &str) -> String {
        self.keys
            .branch(self.session, self.leg, &format!("{method} {remote_tag}"), cseq)
    }
}

/// Where a message is to be sent.
#[derive(Clone)]
pub enum Hop {
    /// Where the leg's INVITE went.
    Target,
    /// The next hop of a dialog; it has to pass the trunk's rules first.
    Uri(SipUri),
    /// Back to the sender of a request: over the same connection, or to this address where that is UDP. It is right only if
    /// whoever received the request wrote `received` and `rport` into its Via (RFC 3261 §18.2.1, RFC 3581 §4).
    Back(Option<HostPort>),
}

impl Hop {
    pub(crate) fn back(request: &Request) -> Self {
        let Some(via) = request.top_via() else {
            return Self::Back(None);
        };
        Self::Back(Some(HostPort {
            host: via.received().map_or(via.sent_by.host.clone(), Host::from),
            port: via.rport().or(via.sent_by.port),
        }))
    }
}
