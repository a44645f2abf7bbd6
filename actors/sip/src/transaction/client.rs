//! The side that asks. Source: RFC 3261, section 17.1, with the Accepted state of RFC 6026.
use super::{GIVE_UP, T1, T2, T4, Transport, Verdict, hop, timers::Timers};
use crate::message::{Fields, Method, Request, Response};
use bytes::Bytes;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Without `Debug`: what is sent holds numbers and credentials.
#[derive(Clone)]
pub enum ClientOutput {
    Send(Bytes),
    Provisional(Response),
    /// An INVITE's answers of 2xx come each, repeats and forks too: their ACK is the dialog's. Any other answer comes once, and its
    /// ACK has been sent.
    Final(Response),
    /// No answer in 64·T1: timers B and F.
    TimedOut,
    /// The transport could not send.
    Failed,
    /// Nothing comes any more. Always the last.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Calling of an INVITE, Trying of the others.
    Trying,
    Proceeding,
    /// An answer of 300 or more came, or any final one to what is not an INVITE: repeats are absorbed.
    Completed,
    /// An INVITE was answered with 2xx: more of them may come.
    Accepted,
    Over,
}

/// A request and what becomes of it: INVITE or not, by its method.
pub struct Client {
    request: Request,
    bytes: Bytes,
    transport: Transport,
    branch: String,
    state: State,
    timers: Timers,
    outputs: VecDeque<ClientOutput>,
}

impl Client {
    /// The request has its Via with a branch and its CSeq; the first output is to send it.
    pub fn new(request: Request, transport: Transport, now: Instant) -> Self {
        let bytes = request.to_bytes();
        Client {
            branch: request.top_via_branch().unwrap_or_default(),
            timers: Timers {
                again: (!transport.is_reliable()).then(|| (now + T1, T1)),
                ends_at: Some(now + GIVE_UP),
            },
            outputs: VecDeque::from([ClientOutput::Send(bytes.clone())]),
            state: State::Trying,
            request,
            bytes,
            transport,
        }
    }

    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Has any answer come, be it a provisional one?
    pub fn is_heard(&self) -> bool {
        self.state != State::Trying
    }

    /// Waits the user for a final answer?
    pub fn is_pending(&self) -> bool {
        matches!(self.state, State::Trying | State::Proceeding)
    }

    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// A 2xx after a refusal, and all that comes when the transaction is over, is `NotOurs`: somebody has to ACK and BYE it.
    pub fn receive(&mut self, response: &Response, now: Instant) -> Verdict {
        if !self.is_answered_by(response) {
            return Verdict::NotOurs;
        }
        match (self.state, response.code) {
            (State::Trying | State::Proceeding, ..200) => self.proceed(response, now),
            (State::Trying | State::Proceeding, 200..) => self.complete(response, now),
            (State::Accepted, 200..300) => {
                self.outputs.push_back(ClientOutput::Final(response.clone()));
                Verdict::New
            }
            (State::Completed, 200..300) if self.is_invite() => Verdict::NotOurs,
            (State::Completed, 300..) if self.is_invite() => {
                self.acknowledge(response);
                Verdict::Again
            }
            (State::Completed | State::Accepted, _) => Verdict::Again,
            (State::Over, _) => Verdict::NotOurs,
        }
    }

    /// The transport could not send what was given to it. While an INVITE rings, nothing of it is under way and nothing is lost.
    pub fn failed(&mut self, _now: Instant) {
        match self.state {
            State::Proceeding if self.is_invite() => {}
            State::Trying | State::Proceeding => self.give_up(ClientOutput::Failed),
            // The ACK could not be sent; the peer's repeat would ask for it again, over the same transport.
            State::Completed => self.end(),
            State::Accepted | State::Over => {}
        }
    }

    pub fn tick(&mut self, now: Instant) {
        if self.timers.has_ended(now) {
            match self.state {
                State::Trying | State::Proceeding => self.give_up(ClientOutput::TimedOut),
                State::Completed | State::Accepted => self.end(),
                State::Over => {}
            }
            return;
        }
        if let Some(pause) = self.timers.due(now) {
            self.outputs.push_back(ClientOutput::Send(self.bytes.clone()));
            let pause = match (self.is_invite(), self.state) {
                // Timer A is not bounded by T2.
                (true, _) => pause * 2,
                (false, State::Proceeding) => T2,
                (false, _) => (pause * 2).min(T2),
            };
            self.timers.again_after(pause, now);
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.timers.deadline()
    }

    pub fn poll(&mut self) -> Option<ClientOutput> {
        self.outputs.pop_front()
    }

    fn is_invite(&self) -> bool {
        self.request.method == Method::INVITE
    }

    /// Source: RFC 3261, section 17.1.3.
    fn is_answered_by(&self, response: &Response) -> bool {
        let branch = response.top_via_branch();
        branch.is_some_and(|branch| branch.eq_ignore_ascii_case(&self.branch)) && response.cseq() == self.request.cseq()
    }

    fn proceed(&mut self, response: &Response, _now: Instant) -> Verdict {
        self.state = State::Proceeding;
        if self.is_invite() {
            // How long it may ring is the user's to say.
            self.timers = Timers::STOPPED;
        }
        self.outputs.push_back(ClientOutput::Provisional(response.clone()));
        Verdict::New
    }

    fn complete(&mut self, response: &Response, now: Instant) -> Verdict {
        self.timers.again = None;
        self.outputs.push_back(ClientOutput::Final(response.clone()));
        let stays = match (self.is_invite(), response.is_success()) {
            (true, true) => {
                self.state = State::Accepted;
                GIVE_UP
            }
            (true, false) => {
                self.state = State::Completed;
                self.acknowledge(response);
                self.unless_reliable(GIVE_UP)
            }
            (false, _) => {
                self.state = State::Completed;
                self.unless_reliable(T4)
            }
        };
        self.timers.ends_at = Some(now + stays);
        if stays.is_zero() {
            self.end();
        }
        Verdict::New
    }

    fn unless_reliable(&self, stays: Duration) -> Duration {
        if self.transport.is_reliable() {
            Duration::ZERO
        } else {
            stays
        }
    }

    fn acknowledge(&mut self, response: &Response) {
        let ack = hop::ack(&self.request, response);
        self.outputs.push_back(ClientOutput::Send(ack.to_bytes()));
    }

    fn give_up(&mut self, why: ClientOutput) {
        self.outputs.push_back(why);
        self.end();
    }

    fn end(&mut self) {
        self.state = State::Over;
        self.timers = Timers::STOPPED;
        self.outputs.push_back(ClientOutput::Over);
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
