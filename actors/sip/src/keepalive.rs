//! Is the peer there? OPTIONS every so often: any answer is yes, two silences in a row are no.
use crate::{
    message::{Method, Name, Response, SipUri},
    out_of_dialog::Sender,
    transaction::{Client, ClientOutput, GIVE_UP, Verdict},
};
use bytes::Bytes;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Silences in a row after which the peer is down.
const SILENCES: u32 = 2;
/// Shortest pause between two requests, whatever is set.
const LEAST_INTERVAL: Duration = Duration::from_secs(5);

/// Whom is asked, and how often.
#[derive(Clone, Debug)]
pub struct Peer {
    pub uri: SipUri,
    /// In brackets.
    pub from: String,
    /// Proxies that it goes by, each in brackets.
    pub route: Vec<String>,
    pub interval: Duration,
}

/// Without `Debug`: what is sent holds numbers and credentials.
#[derive(Clone)]
pub enum Output {
    Send(Bytes),
    Up,
    Down,
}

struct UnderWay {
    client: Client,
    /// It counts as silence from then on.
    until: Instant,
}

pub struct Keepalive {
    peer: Peer,
    sender: Sender,
    under_way: Option<UnderWay>,
    next_at: Option<Instant>,
    silences: u32,
    /// `None` as long as nothing is known.
    up: Option<bool>,
    outputs: VecDeque<Output>,
}

impl Keepalive {
    pub fn new(peer: Peer, sender: Sender) -> Self {
        Keepalive {
            peer,
            sender,
            under_way: None,
            next_at: None,
            silences: 0,
            up: None,
            outputs: VecDeque::new(),
        }
    }

    /// Asks at once, and goes on until it is dropped.
    pub fn start(&mut self, now: Instant) {
        if self.under_way.is_none() && self.next_at.is_none() {
            self.ask(now);
        }
    }

    /// `None` as long as nothing is known.
    pub fn is_up(&self) -> Option<bool> {
        self.up
    }

    /// Requests in a row that nobody answered.
    pub fn silences(&self) -> u32 {
        self.silences
    }

    pub fn call_id(&self) -> &str {
        &self.sender.call_id
    }

    /// A response of this Call-ID. Answers whether it belonged to the request under way.
    pub fn receive(&mut self, response: &Response, now: Instant) -> bool {
        let Some(UnderWay { client, .. }) = &mut self.under_way else {
            return false;
        };
        if client.receive(response, now) == Verdict::NotOurs {
            return false;
        }
        self.drain();
        true
    }

    /// The transport could not send.
    pub fn failed(&mut self, now: Instant) {
        if let Some(UnderWay { client, .. }) = &mut self.under_way {
            client.failed(now);
            self.drain();
        }
    }

    pub fn tick(&mut self, now: Instant) {
        if let Some(UnderWay { client, until }) = &mut self.under_way {
            let late = now >= *until;
            client.tick(now);
            self.drain();
            if late && self.under_way.take().is_some() {
                self.silent();
            }
        }
        if self.under_way.is_none() && self.next_at.is_some_and(|at| now >= at) {
            self.ask(now);
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        match &self.under_way {
            Some(UnderWay { client, until }) => client.deadline().into_iter().chain([*until]).min(),
            None => self.next_at,
        }
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn ask(&mut self, now: Instant) {
        let Peer {
            uri,
            from,
            route,
            interval,
        } = &self.peer;
        let interval = (*interval).max(LEAST_INTERVAL);
        let to = format!("<{}>", crate::message::uri_text(uri));
        let mut request = self.sender.request(Method::OPTIONS, uri, from, &to, route);
        request.headers.insert(Name::ACCEPT, "application/sdp");
        self.next_at = Some(now + interval);
        self.under_way = Some(UnderWay {
            client: Client::new(request, self.sender.transport, now),
            until: now + interval.min(GIVE_UP),
        });
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(UnderWay { client, .. }) = &mut self.under_way {
            match client.poll() {
                None => return,
                Some(ClientOutput::Send(bytes)) => self.outputs.push_back(Output::Send(bytes)),
                Some(ClientOutput::Provisional(_)) => self.heard(),
                Some(ClientOutput::Final(_)) => {
                    self.under_way = None;
                    self.heard();
                }
                Some(ClientOutput::TimedOut | ClientOutput::Failed | ClientOutput::Over) => {
                    self.under_way = None;
                    self.silent();
                }
            }
        }
    }

    fn heard(&mut self) {
        self.silences = 0;
        if self.up != Some(true) {
            self.up = Some(true);
            self.outputs.push_back(Output::Up);
        }
    }

    fn silent(&mut self) {
        self.silences = self.silences.saturating_add(1);
        if self.silences >= SILENCES && self.up != Some(false) {
            self.up = Some(false);
            self.outputs.push_back(Output::Down);
        }
    }
}

#[cfg(test)]
#[path = "keepalive_tests.rs"]
mod tests;
