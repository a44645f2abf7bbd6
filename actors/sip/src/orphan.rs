//! Calls that a process left behind: they are ended by the next one, from a stored row or from an answer alone (D2).
use std::{collections::VecDeque, time::Instant};

use bytes::Bytes;

use crate::{
    dialog::{Dialog, Sender},
    leg::{CallIdentity, Hop},
    message::{Fields, Method, Name, Request, Response, SipUri, uri_text},
    transaction::{self, Client, ClientOutput, GIVE_UP, Verdict},
};

/// Three challenges of an INVITE and a longer session timer each made another try with its own number. The row does not say
/// how many there were: all are cancelled, and those that never were answer 481.
const TRIES: u32 = 5;

/// Above every number that the process which died can have used.
const CSEQ_AHEAD: u32 = 1000;

/// How far the call had come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// The INVITE may have left.
    Inviting,
    Confirmed {
        remote_tag: String,
        route_set: Vec<String>,
        cseq: u32,
    },
}

/// A row of a leg.
#[derive(Clone)]
pub struct OrphanRow {
    pub identity: CallIdentity,
    pub sender: Sender,
    pub call_id: String,
    /// The Request-URI of the INVITE, or the remote target.
    pub target: SipUri,
    /// Pre-loaded routes of the INVITE.
    pub route: Vec<String>,
    pub left: Left,
}

/// Without `Debug`: what is sent holds numbers and credentials.
#[derive(Clone)]
pub enum OrphanOutput {
    Send {
        bytes: Bytes,
        hop: Hop,
    },
    /// A BYE of ours needs credentials: `authorized` takes it back.
    Challenged {
        request: Box<Request>,
        response: Box<Response>,
    },
    /// The row can go.
    Gone,
}

/// Ends one call. Answers with its Call-ID, and with no other, are given to it.
pub struct Orphan {
    row: OrphanRow,
    clients: Vec<(Client, Hop)>,
    /// Until then an answer to the INVITE may come.
    until: Option<Instant>,
    /// The number of the last INVITE whose 2xx was turned away, with its tag.
    turned_away: Vec<(u32, String)>,
    challenged: bool,
    /// Until then the credentials of a BYE may come.
    awaited_until: Option<Instant>,
    outputs: VecDeque<OrphanOutput>,
    over: bool,
}

impl Orphan {
    pub fn new(row: OrphanRow, now: Instant) -> Self {
        let mut orphan = Self {
            clients: Vec::new(),
            until: None,
            turned_away: Vec::new(),
            challenged: false,
            awaited_until: None,
            outputs: VecDeque::new(),
            over: false,
            row,
        };
        match &orphan.row.left {
            Left::Inviting => {
                orphan.until = Some(now + GIVE_UP);
                for cseq in 1..=TRIES {
                    let cancel = transaction::cancel(&orphan.invite(cseq));
                    orphan.start(cancel, Hop::Target, now);
                }
            }
            Left::Confirmed {
                remote_tag,
                route_set,
                cseq,
            } => {
                let dialog = orphan.dialog(remote_tag.clone(), route_set.clone());
                let cseq = cseq.saturating_add(CSEQ_AHEAD);
                let branch = orphan.row.identity.branch(&Method::BYE, cseq);
                let mut bye = dialog.request(Method::BYE, cseq, &branch, &orphan.row.sender);
                bye.headers.insert("Reason", "Q.850;cause=41;text=\"restarted\"");
                orphan.start(bye, Hop::Uri(dialog.next_hop()), now);
            }
        }
        orphan.run(now);
        orphan
    }

    /// As far as a CANCEL repeats it. Tags, Call-ID, number and branch are the true ones; names are not stored, and no peer
    /// finds a transaction by them (RFC 3261 §17.2.3).
    fn invite(&self, cseq: u32) -> Request {
        let OrphanRow {
            identity,
            sender,
            target,
            route,
            ..
        } = &self.row;
        let dialog = self.dialog(String::new(), Vec::new());
        let branch = identity.branch(&Method::INVITE, cseq);
        let mut invite = dialog.request(Method::INVITE, cseq, &branch, sender);
        invite.uri = target.clone();
        for route in route {
            invite.headers.insert(Name::ROUTE, route.as_str());
        }
        invite
    }

    fn dialog(&self, remote_tag: String, route_set: Vec<String>) -> Dialog {
        let local_tag = self.row.identity.local_tag();
        let target = uri_text(&self.row.target);
        let tag = if remote_tag.is_empty() {
            String::new()
        } else {
            format!(";tag={remote_tag}")
        };
        Dialog {
            call_id: self.row.call_id.clone(),
            local: format!("<{}>;tag={local_tag}", uri_text(&self.row.sender.contact)),
            remote: format!("<{target}>{tag}"),
            local_tag,
            remote_tag,
            remote_target: self.row.target.clone(),
            route_set,
            local_cseq: 0,
            remote_cseq: None,
        }
    }

    fn start(&mut self, request: Request, hop: Hop, now: Instant) {
        self.clients
            .push((Client::new(request, self.row.sender.transport, now), hop));
    }

    pub fn receive(&mut self, response: &Response, now: Instant) {
        if response.call_id() != self.row.call_id {
            return;
        }
        let is_known = self
            .clients
            .iter_mut()
            .any(|(client, _)| client.receive(response, now) != Verdict::NotOurs);
        if !is_known && response.cseq().1 == Method::INVITE {
            match response.code {
                200..300 => self.turn_away(response, now),
                300.. => self.acknowledge(response),
                _ => {}
            }
        }
        self.run(now);
    }

    fn turn_away(&mut self, response: &Response, now: Instant) {
        let OrphanRow { identity, sender, .. } = &self.row;
        let Some(away) = ack_and_bye(response, identity, sender) else {
            return;
        };
        self.outputs.push_back(OrphanOutput::Send {
            bytes: away.ack,
            hop: away.hop.clone(),
        });
        let key = (response.cseq().0, response.to_tag().unwrap_or_default());
        // A repeat wants its ACK again, but not another BYE; and a peer may not make us remember without end.
        if !self.turned_away.contains(&key) && self.turned_away.len() < MOST_FORKS {
            self.turned_away.push(key);
            self.start(away.bye, away.hop, now);
        }
    }

    /// Of a refusal that nobody waits for any more: without its ACK the peer repeats it for half a minute.
    fn acknowledge(&mut self, response: &Response) {
        let invite = self.invite(response.cseq().0);
        let bytes = transaction::ack(&invite, response).to_bytes();
        self.outputs.push_back(OrphanOutput::Send {
            bytes,
            hop: Hop::Target,
        });
    }

    /// The request of `Challenged`; `None`: there are no credentials for it.
    pub fn authorized(&mut self, request: Option<Request>, now: Instant) {
        self.awaited_until = None;
        if let Some(request) = request.filter(|_| !std::mem::replace(&mut self.challenged, true)) {
            let hop = request.list(Name::ROUTE).is_empty().then(|| request.uri.clone());
            let first = || crate::message::Address::read(&request.header_text(Name::ROUTE)?).sip_uri();
            let hop = hop.or_else(first).map_or(Hop::Target, Hop::Uri);
            self.start(request, hop, now);
        }
        self.run(now);
    }

    pub fn transport_failed(&mut self, now: Instant) {
        self.clients.iter_mut().for_each(|(client, _)| client.failed(now));
        self.run(now);
    }

    pub fn tick(&mut self, now: Instant) {
        self.clients.iter_mut().for_each(|(client, _)| client.tick(now));
        self.until = self.until.filter(|until| now < *until);
        self.awaited_until = self.awaited_until.filter(|until| now < *until);
        self.run(now);
    }

    pub fn deadline(&self) -> Option<Instant> {
        let clients = self.clients.iter().filter_map(|(client, _)| client.deadline());
        clients.chain(self.until).chain(self.awaited_until).min()
    }

    pub fn poll(&mut self) -> Option<OrphanOutput> {
        self.outputs.pop_front()
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    fn run(&mut self, now: Instant) {
        for at in 0..self.clients.len() {
            while let Some((output, hop)) = self.polled(at) {
                match output {
                    ClientOutput::Send(bytes) => self.outputs.push_back(OrphanOutput::Send { bytes, hop }),
                    ClientOutput::Final(response) if matches!(response.code, 401 | 407) => {
                        self.challenged(at, response, now)
                    }
                    ClientOutput::Final(_)
                    | ClientOutput::Provisional(_)
                    | ClientOutput::TimedOut
                    | ClientOutput::Failed
                    | ClientOutput::Over => {}
                }
            }
        }
        self.clients.retain(|(client, _)| !client.is_over());
        if self.clients.is_empty() && self.until.is_none() && self.awaited_until.is_none() && !self.over {
            self.over = true;
            self.outputs.push_back(OrphanOutput::Gone);
        }
    }

    fn polled(&mut self, at: usize) -> Option<(ClientOutput, Hop)> {
        let (client, hop) = self.clients.get_mut(at)?;
        Some((client.poll()?, hop.clone()))
    }

    fn challenged(&mut self, at: usize, response: Response, now: Instant) {
        let Some((client, _)) = self.clients.get(at) else {
            return;
        };
        // A CANCEL is never challenged by who keeps the rules (RFC 3261 §22.1).
        if client.request().method != Method::BYE || self.challenged {
            return;
        }
        let request = again(
            client.request(),
            client.request().cseq().0.saturating_add(1),
            &self.row.identity,
        );
        let (request, response) = (Box::new(request), Box::new(response));
        self.awaited_until = Some(now + GIVE_UP);
        self.outputs.push_back(OrphanOutput::Challenged { request, response });
    }
}

/// Each INVITE of ours may reach so many peers whose 2xx is answered.
pub(crate) const MOST_FORKS: usize = 8;

/// The same request under another number and branch, as credentials and a new interval need it. RFC 3261 §22.2.
pub(crate) fn again(request: &Request, cseq: u32, identity: &CallIdentity) -> Request {
    let mut next = request.clone();
    let branch = match request.to_tag() {
        Some(tag) => identity.fork_branch(&request.method, cseq, &tag),
        None => identity.branch(&request.method, cseq),
    };
    let via = request.header_text(Name::VIA).unwrap_or_default();
    let head = via.split(";branch=").next().unwrap_or_default().to_owned();
    next.headers.remove(&Name::VIA);
    next.headers.insert_front(Name::VIA, format!("{head};branch={branch}"));
    next.headers.remove(&Name::CSEQ);
    next.headers.insert(Name::CSEQ, format!("{cseq} {}", request.method));
    next
}

/// The end of a call that somebody picked up and nobody wants.
pub struct TurnAway {
    pub ack: Bytes,
    pub bye: Request,
    pub hop: Hop,
}

/// From any 2xx to an INVITE of ours alone. `None`: it does not say whose it is.
pub fn ack_and_bye(response: &Response, identity: &CallIdentity, sender: &Sender) -> Option<TurnAway> {
    let dialog = Dialog::of_answer(response)?;
    let cseq = dialog.local_cseq;
    let tag = &dialog.remote_tag;
    let ack = dialog.request(
        Method::ACK,
        cseq,
        &identity.fork_branch(&Method::ACK, cseq, tag),
        sender,
    );
    let next = cseq.saturating_add(CSEQ_AHEAD);
    let mut bye = dialog.request(
        Method::BYE,
        next,
        &identity.fork_branch(&Method::BYE, next, tag),
        sender,
    );
    bye.headers.insert("Reason", "Q.850;cause=16");
    Some(TurnAway {
        ack: ack.to_bytes(),
        bye,
        hop: Hop::Uri(dialog.next_hop()),
    })
}

#[cfg(test)]
mod tests;
