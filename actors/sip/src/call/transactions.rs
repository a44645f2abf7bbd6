//! The transactions of a leg: how they are begun and answered, and the ACKs that are kept for repeats.
use std::time::Instant;

use bytes::Bytes;

use super::{Call, Happening, MOST_ACKS, MOST_CLIENTS, Output, Purpose};
use crate::{
    leg::Hop,
    message::{Fields, Method, Request, Response},
    transaction::{Client, Server, Verdict},
};

pub(super) struct Outgoing {
    pub id: u64,
    pub client: Client,
    pub purpose: Purpose,
    pub hop: Hop,
    /// How often it was challenged.
    pub challenges: u8,
}

pub(super) struct Incoming {
    pub id: u64,
    pub server: Server,
    pub hop: Hop,
    /// An INVITE that we have answered with 2xx.
    pub accepted: bool,
    pub ack_body: Bytes,
}

/// An ACK of ours to a 2xx, which its repeats get again.
pub(super) struct SentAck {
    pub cseq: u32,
    pub remote_tag: String,
    pub bytes: Bytes,
    pub hop: Hop,
}

impl Call {
    pub(super) fn answered(&mut self, response: &Response, now: Instant) {
        let is_known = self
            .clients
            .iter_mut()
            .any(|outgoing| outgoing.client.receive(response, now) != Verdict::NotOurs);
        // The transaction of a first try is over, or refused; who picked up there all the same has to be told.
        if !is_known && response.is_success() && response.cseq().1 == Method::INVITE {
            self.stray(response, now);
        }
    }

    /// Begins a request. `None`: too many are open.
    pub(super) fn start(
        &mut self,
        request: Request,
        purpose: Purpose,
        hop: Hop,
        challenges: u8,
        now: Instant,
    ) -> Option<u64> {
        // What ends a call is never left out; of these there are few.
        let is_needed = matches!(purpose, Purpose::Invite | Purpose::Cancel | Purpose::Bye);
        if self.clients.len() >= MOST_CLIENTS && !is_needed {
            return None;
        }
        self.last_id += 1;
        let client = Client::new(request, self.local.sender.transport, now);
        self.clients.push(Outgoing {
            id: self.last_id,
            client,
            purpose,
            hop,
            challenges,
        });
        Some(self.last_id)
    }

    /// The transaction that the request was sent in, as long as that is open.
    pub(super) fn outgoing_of(&self, request: &Request) -> Option<&Outgoing> {
        let mut open = self.clients.iter();
        open.find(|outgoing| outgoing.client.request().cseq() == request.cseq())
    }

    /// The next request inside the dialog, with number and branch. `None`: there is no dialog.
    pub(super) fn next_request(&mut self, method: Method) -> Option<(Request, Hop)> {
        let dialog = self.dialog.as_mut()?;
        let cseq = dialog.next_cseq();
        let branch = self.local.identity.branch(&method, cseq);
        let request = dialog.request(method, cseq, &branch, &self.local.sender);
        Some((request, Hop::Uri(dialog.next_hop())))
    }

    /// Takes a request of the peer's. Its answers are given by the id.
    pub(super) fn open(&mut self, request: Request, now: Instant) -> u64 {
        self.last_id += 1;
        let hop = Hop::back(&request);
        let server = Server::new(request, self.local.sender.transport, now);
        let accepted = false;
        self.servers.push(Incoming {
            id: self.last_id,
            server,
            hop,
            accepted,
            ack_body: Bytes::new(),
        });
        self.last_id
    }

    pub(super) fn respond(&mut self, id: u64, response: &Response, now: Instant) {
        if let Some(incoming) = self.servers.iter_mut().find(|incoming| incoming.id == id) {
            let is_invite = incoming.server.request().method == Method::INVITE;
            incoming.accepted |= incoming.server.is_pending() && is_invite && response.is_success();
            incoming.server.respond(response, now);
        }
    }

    /// A whole answer at once.
    pub(super) fn reply(&mut self, request: Request, code: u16, reason: &str, now: Instant) {
        let response = request.response(code, reason, Some(&self.local_tag));
        self.reply_with(request, &response, now);
    }

    pub(super) fn reply_with(&mut self, request: Request, response: &Response, now: Instant) {
        let id = self.open(request, now);
        self.respond(id, response, now);
    }

    pub(super) fn request_of(&self, id: u64) -> Option<&Request> {
        self.servers
            .iter()
            .find(|incoming| incoming.id == id)
            .map(|incoming| incoming.server.request())
    }

    pub(super) fn happen(&mut self, happening: Happening) {
        self.happened.push(happening);
    }

    pub(super) fn send(&mut self, bytes: Bytes, hop: Hop) {
        self.outputs.push_back(Output::Send { bytes, hop });
    }

    /// Notes an ACK, and sends it.
    pub(super) fn acknowledge(&mut self, response: &Response, bytes: Bytes, hop: Hop) {
        if self.acks.len() == MOST_ACKS {
            self.acks.pop_front();
        }
        let (cseq, remote_tag) = ack_key(response);
        self.acks.push_back(SentAck {
            cseq,
            remote_tag,
            bytes: bytes.clone(),
            hop: hop.clone(),
        });
        self.send(bytes, hop);
    }

    /// A repeat of a 2xx gets the same ACK.
    pub(super) fn acknowledge_again(&mut self, response: &Response) -> bool {
        let (cseq, tag) = ack_key(response);
        let sent = self.acks.iter().find(|ack| ack.cseq == cseq && ack.remote_tag == tag);
        let Some((bytes, hop)) = sent.map(|ack| (ack.bytes.clone(), ack.hop.clone())) else {
            return false;
        };
        self.send(bytes, hop);
        true
    }
}

pub(super) fn ack_key(response: &Response) -> (u32, String) {
    (response.cseq().0, response.to_tag().unwrap_or_default())
}
