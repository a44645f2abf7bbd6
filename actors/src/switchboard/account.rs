//! A trunk as its calls see it: its settings, and what we prove ourselves with.
//!
//! It outlives a call: nonces are used again, and refusals of our credentials are counted over all calls of the trunk.
use adapters::trunk::on_the_wire;
use entities::sip_trunk::{self, Model};
use sip::{
    digest::{Authorizer, Credentials, Proof, Refused, Verifier},
    message::{Request, Response, Transport},
};
use std::{
    net::IpAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// 401 or 407 in a row, after which the credentials are taken to be wrong: they must not burn a list of contacts.
const UNAUTHORIZED: u32 = 5;

pub struct Account {
    pub row: Model,
    /// `None`: there is no password.
    authorizer: Option<Mutex<Authorizer>>,
    unauthorized: AtomicU32,
    /// What its peer has to prove when it calls.
    inbound: Option<(Mutex<Verifier>, Credentials)>,
}

impl Account {
    pub fn new(row: Model, authorizer: Option<Authorizer>, inbound: Option<(Verifier, Credentials)>) -> Self {
        Account {
            row,
            authorizer: authorizer.map(Mutex::new),
            inbound: inbound.map(|(verifier, credentials)| (Mutex::new(verifier), credentials)),
            unauthorized: AtomicU32::new(0),
        }
    }

    pub fn transport(&self) -> Transport {
        on_the_wire(self.row.definition.transport)
    }

    /// Puts in what answers the challenge, or, without one, what is known from before.
    pub fn authorize(&self, request: &mut Request, challenge: Option<&Response>) -> Result<(), Refused> {
        let authorizer = self.authorizer.as_ref().ok_or(Refused::Credentials)?;
        let mut authorizer = authorizer.lock().unwrap_or_else(PoisonError::into_inner);
        authorizer.authorize(request, challenge)
    }

    /// The answer to an INVITE of the peer's that has not proved what it has to. `at`: by a clock that never goes back,
    /// and outlives the process.
    pub fn challenge(&self, request: &Request, source: IpAddr, at: Duration, tag: &str) -> Option<Response> {
        let (verifier, credentials) = self.inbound.as_ref()?;
        let mut verifier = verifier.lock().unwrap_or_else(PoisonError::into_inner);
        match verifier.verify(request, credentials, source, at) {
            Proof::Good => None,
            Proof::Missing => Some(verifier.challenge(request, source, at, false, tag)),
            Proof::Stale => Some(verifier.challenge(request, source, at, true, tag)),
            Proof::Wrong => Some(request.response(403, "Forbidden", Some(tag))),
        }
    }

    /// An INVITE was answered so for good. `true`: for the fifth time in a row.
    pub fn was_unauthorized(&self, is_unauthorized: bool) -> bool {
        if !is_unauthorized {
            self.unauthorized.store(0, Ordering::Relaxed);
            return false;
        }
        self.unauthorized.fetch_add(1, Ordering::Relaxed) + 1 >= UNAUTHORIZED
    }
}

/// As it is stored.
pub fn stored(of: Transport) -> sip_trunk::Transport {
    match of {
        Transport::Udp => sip_trunk::Transport::Udp,
        Transport::Tcp => sip_trunk::Transport::Tcp,
        Transport::Tls => sip_trunk::Transport::Tls,
    }
}
