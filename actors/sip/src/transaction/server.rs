//! The side that is asked. Source: RFC 3261, section 17.2, with the Accepted state of RFC 6026.
use super::{GIVE_UP, T1, T2, T4, Transport, Verdict, timers::Timers};
use crate::message::{Fields, Method, Request, Response};
use bytes::Bytes;
use std::{collections::VecDeque, time::Instant};

/// Without `Debug`: what is sent holds numbers and credentials.
#[derive(Clone)]
pub enum ServerOutput {
    Send(Bytes),
    /// The ACK to an INVITE's final answer came; once.
    Acked,
    /// No ACK came in 64·T1. After a 2xx the dialog stands, and has to be ended.
    NeverAcked,
    /// Nothing comes any more. Always the last.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing has been answered: Trying, or an INVITE's Proceeding before its first answer.
    Trying,
    Proceeding,
    /// A final answer was given; to an INVITE one of 300 or more, which waits for its ACK.
    Completed,
    /// The ACK to an answer of 300 or more came: its repeats are absorbed.
    Confirmed,
    /// An INVITE was answered with 2xx: its repeats are absorbed. `acked` says whether the 2xx is still sent.
    Accepted {
        acked: bool,
    },
    Over,
}

/// A request that came, and our answers to it: INVITE or not, by its method.
///
/// The 2xx to an INVITE is sent again here until its ACK comes, over any transport, which RFC 3261, section 13.3.1.4, asks of the
/// transaction's user: there is one place for retransmissions.
pub struct Server {
    request: Request,
    transport: Transport,
    branch: Option<String>,
    state: State,
    /// The last answer that was given.
    answer: Option<Bytes>,
    timers: Timers,
    outputs: VecDeque<ServerOutput>,
}

impl Server {
    /// An INVITE's user answers 100 at once. Source: RFC 3261, section 17.2.1.
    pub fn new(request: Request, transport: Transport, _now: Instant) -> Self {
        Server {
            branch: request.top_via_branch(),
            state: State::Trying,
            answer: None,
            timers: Timers::STOPPED,
            outputs: VecDeque::new(),
            request,
            transport,
        }
    }

    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Is a final answer still to be given?
    pub fn is_pending(&self) -> bool {
        matches!(self.state, State::Trying | State::Proceeding)
    }

    /// Is nothing awaited but repeats of the request?
    pub(crate) fn is_settled(&self) -> bool {
        match self.state {
            State::Completed => !self.is_invite(),
            State::Confirmed | State::Accepted { acked: true } | State::Over => true,
            State::Trying | State::Proceeding | State::Accepted { acked: false } => false,
        }
    }

    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Gives an answer. After a final one nothing more is sent: the user has spoken.
    pub fn respond(&mut self, response: &Response, now: Instant) {
        if !self.is_pending() {
            return;
        }
        let bytes = response.to_bytes();
        self.outputs.push_back(ServerOutput::Send(bytes.clone()));
        self.answer = Some(bytes);
        if response.is_provisional() {
            self.state = State::Proceeding;
            return;
        }
        let reliable = self.transport.is_reliable();
        match (self.is_invite(), response.is_success()) {
            (true, true) => {
                self.state = State::Accepted { acked: false };
                self.timers.again_after(T1, now);
                self.timers.ends_at = Some(now + GIVE_UP);
            }
            (true, false) => {
                self.state = State::Completed;
                self.timers.again = (!reliable).then(|| (now + T1, T1));
                self.timers.ends_at = Some(now + GIVE_UP);
            }
            (false, _) if reliable => self.end(),
            (false, _) => {
                self.state = State::Completed;
                self.timers.ends_at = Some(now + GIVE_UP);
            }
        }
    }

    /// Looks at a request of the same Call-ID: the same one again, the ACK to it, or none of this transaction's.
    pub fn receive(&mut self, request: &Request, now: Instant) -> Verdict {
        if self.is_acked_by(request) {
            return self.acked(now);
        }
        if !self.is_same(request) {
            return Verdict::NotOurs;
        }
        match self.state {
            State::Proceeding | State::Completed => {
                let answer = self.answer.clone();
                self.outputs.extend(answer.map(ServerOutput::Send));
                Verdict::Again
            }
            State::Trying | State::Confirmed | State::Accepted { .. } => Verdict::Again,
            State::Over => Verdict::NotOurs,
        }
    }

    /// Is it the same request, come by another way (a proxy forked it and both branches end here)? It is answered 482.
    /// Source: RFC 3261, section 8.2.2.2.
    pub fn is_merged(&self, request: &Request) -> bool {
        request.to_tag().is_none()
            && request.method == self.request.method
            && request.cseq() == self.request.cseq()
            && request.from_tag() == self.request.from_tag()
            && !self.is_same(request)
    }

    /// The transport could not send an answer. A 2xx is tried on: its silence ends as `NeverAcked`.
    pub fn failed(&mut self, _now: Instant) {
        match self.state {
            State::Trying | State::Proceeding | State::Completed | State::Confirmed => self.end(),
            State::Accepted { .. } | State::Over => {}
        }
    }

    pub fn tick(&mut self, now: Instant) {
        if self.timers.has_ended(now) {
            let waits = match self.state {
                State::Completed => self.is_invite(),
                State::Accepted { acked } => !acked,
                State::Trying | State::Proceeding | State::Confirmed | State::Over => false,
            };
            if waits {
                self.outputs.push_back(ServerOutput::NeverAcked);
            }
            self.end();
            return;
        }
        if let Some(pause) = self.timers.due(now) {
            let answer = self.answer.clone();
            self.outputs.extend(answer.map(ServerOutput::Send));
            self.timers.again_after((pause * 2).min(T2), now);
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.timers.deadline()
    }

    pub fn poll(&mut self) -> Option<ServerOutput> {
        self.outputs.pop_front()
    }

    fn is_invite(&self) -> bool {
        self.request.method == Method::INVITE
    }

    /// By branch and sent-by; those of RFC 2543 have no branch, and are known by the rest. Source: RFC 3261, section 17.2.3.
    fn is_same(&self, request: &Request) -> bool {
        let branch = request.top_via_branch();
        let same_way = match (&branch, &self.branch) {
            (Some(theirs), Some(ours)) => theirs.eq_ignore_ascii_case(ours),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let sent_by = |request: &Request| request.top_via().map(|via| via.sent_by);
        same_way
            && request.cseq() == self.request.cseq()
            && request.method == self.request.method
            && sent_by(request) == sent_by(&self.request)
    }

    /// The ACK to a 2xx has a branch of its own, and some send one to a refusal: number and sender tell enough.
    pub(crate) fn is_acked_by(&self, request: &Request) -> bool {
        self.is_invite()
            && request.method == Method::ACK
            && request.cseq().0 == self.request.cseq().0
            && request.from_tag() == self.request.from_tag()
    }

    /// An ACK to the refusal that was given here: it has the branch of what was refused, and acknowledges no other answer to the same
    /// request that came by another way.
    pub(crate) fn is_refusal_of(&self, ack: &Request) -> bool {
        let is_refused = matches!(self.state, State::Completed | State::Confirmed);
        is_refused && self.is_acked_by(ack) && self.branch.is_some() && ack.top_via_branch() == self.branch
    }

    fn acked(&mut self, now: Instant) -> Verdict {
        match self.state {
            State::Completed => {
                self.outputs.push_back(ServerOutput::Acked);
                self.timers.again = None;
                if self.transport.is_reliable() {
                    self.end();
                } else {
                    self.state = State::Confirmed;
                    self.timers.ends_at = Some(now + T4);
                }
                Verdict::New
            }
            State::Accepted { acked: false } => {
                self.outputs.push_back(ServerOutput::Acked);
                self.timers.again = None;
                self.state = State::Accepted { acked: true };
                Verdict::New
            }
            State::Confirmed | State::Accepted { acked: true } => Verdict::Again,
            // There is nothing to be acknowledged.
            State::Trying | State::Proceeding | State::Over => Verdict::NotOurs,
        }
    }

    fn end(&mut self) {
        self.state = State::Over;
        self.timers = Timers::STOPPED;
        self.outputs.push_back(ServerOutput::Over);
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
