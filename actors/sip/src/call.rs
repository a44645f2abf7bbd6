//! One leg of a call, as the machine that both ends of it are: whoever calls is the UAC, whoever is called the UAS, and once
//! picked up both do the same. Commands, messages and moments go in; bytes to send and happenings come out of `poll`.
//!
//! ```text
//! dial()      Inviting ──2xx──────────────► Talking ──BYE──► Ending ──► Over
//! incoming()  Invited ──► Answered ──ACK──► Talking
//!             (each of them) ──refused, cancelled, lost──► Ending
//! ```
//! The leg owns its transactions, and with them every retransmission. It never waits for its user without a limit, except while
//! it rings: how long that lasts is the user's to say.
mod body;
mod challenge;
mod end;
mod inside;
mod offers;
mod refresh;
mod run;
mod transactions;
mod types;
mod uac;
mod uas;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bytes::Bytes;

use crate::{
    dialog::Dialog,
    message::{Message, Request, uri_text},
    session_timer::SessionTimer,
};

pub use crate::leg::CallIdentity;
pub use types::{Command, Dial, DialogRow, Happening, Local, Output};

use challenge::Challenge;
use offers::{Exchange, Retry};
use transactions::{Incoming, Outgoing, SentAck};
use uac::Invite;
use uas::Invited;

/// Requests of the peer that are kept at once. The oldest that only absorbs repeats gives way to a new one; if there is none, the new
/// one is refused.
const MOST_SERVERS: usize = 32;
/// BYE and CANCEL end things, so that some places are theirs.
const MOST_ENDS: usize = 4;
/// Requests of ours that are open at once; what would be more is left out.
const MOST_CLIENTS: usize = 32;
/// 2xx whose ACK is kept for their repeats.
const MOST_ACKS: usize = 16;
/// How long the user may think about an offer or a challenge.
const PATIENCE: Duration = Duration::from_secs(10);

const ALLOW: &str = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK, NOTIFY";
const SUPPORTED: &str = "100rel, timer";
const EXTENSIONS: [&str; 2] = ["100rel", "timer"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Our INVITE waits for its answer.
    Inviting,
    /// Their INVITE waits for ours.
    Invited,
    /// Our 2xx waits for its ACK.
    Answered,
    Talking,
    /// Nothing new begins; what is open runs out.
    Ending,
    Over,
}

/// What a request of ours is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Invite,
    Cancel,
    Prack,
    Reinvite,
    Update,
    Bye,
    Info,
    Refer,
}

/// What both sides agreed on last.
#[derive(Default)]
struct Session {
    /// The last description that was ours, offer or answer.
    ours: Bytes,
    theirs: Bytes,
    /// The peer takes UPDATE.
    updates: bool,
    timer: Option<SessionTimer>,
    exchange: Exchange,
    /// An offer of our user's that waits for its turn.
    queued: Option<Bytes>,
    retry: Option<Retry>,
}

/// One leg.
pub struct Call {
    local: Local,
    local_tag: String,
    is_caller: bool,
    phase: Phase,
    dialog: Option<Dialog>,
    /// There was a 2xx: the dialog has to be ended by BYE.
    is_picked_up: bool,
    invite: Option<Invite>,
    /// How the peer says that our call is signed.
    attested: Option<char>,
    invited: Option<Invited>,
    session: Session,
    clients: Vec<Outgoing>,
    servers: Vec<Incoming>,
    acks: VecDeque<SentAck>,
    challenges: Vec<Challenge>,
    /// Asked for before the caller knew that we had picked up.
    bye_wanted: Option<u8>,
    /// A REFER of ours is under way: its NOTIFYs are expected until then.
    referring_until: Option<Instant>,
    last_id: u64,
    outputs: VecDeque<Output>,
    /// Given out after the messages that belong to them.
    happened: Vec<Happening>,
}

impl Call {
    fn new(local: Local, is_caller: bool, phase: Phase) -> Self {
        Self {
            local_tag: local.identity.local_tag(),
            local,
            is_caller,
            phase,
            dialog: None,
            is_picked_up: false,
            invite: None,
            attested: None,
            invited: None,
            session: Session::default(),
            clients: Vec::new(),
            servers: Vec::new(),
            acks: VecDeque::new(),
            challenges: Vec::new(),
            bye_wanted: None,
            referring_until: None,
            last_id: 0,
            outputs: VecDeque::new(),
            happened: Vec::new(),
        }
    }

    /// Places a call: the INVITE is the first output.
    pub fn dial(dial: Dial, now: Instant) -> Self {
        let mut call = Self::new(dial.local.clone(), true, Phase::Inviting);
        call.begin_inviting(dial, now);
        call.run(now);
        call
    }

    /// Takes an INVITE that is of no dialog, and answers 100. What cannot become a call is refused here, and is `Gone` without
    /// another word.
    pub fn incoming(request: Request, local: Local, now: Instant) -> Self {
        let mut call = Self::new(local, false, Phase::Invited);
        call.begin_invited(request, now);
        call.run(now);
        call
    }

    /// What comes too late, or makes no sense on this side, does nothing.
    pub fn command(&mut self, command: Command, now: Instant) {
        match command {
            Command::Ring => self.ring(None, now),
            Command::EarlyMedia { sdp } => self.ring(Some(sdp), now),
            Command::Accept { sdp } => self.accept(sdp, now),
            Command::Refuse {
                code,
                reason,
                retry_after,
            } => self.refuse(code, &reason, retry_after, now),
            Command::Cancel => self.hang_up(16, now),
            Command::HangUp { q850 } => self.hang_up(q850, now),
            Command::Offer { sdp } => self.queue_offer(sdp),
            Command::AnswerOffer { sdp } => self.answer_offer(sdp, now),
            Command::RefuseOffer => self.refuse_offer(488, "Not Acceptable Here", now),
            Command::Info { content_type, body } => self.inform(&content_type, body, now),
            Command::Refer { to } => self.refer(&uri_text(&to), now),
            Command::Authorized(request) => self.authorized(*request, now),
            Command::Unauthorized(request) => self.unauthorized(&request, now),
        }
        self.run(now);
    }

    /// Any message with the leg's Call-ID.
    pub fn receive(&mut self, message: Message, now: Instant) {
        match message {
            Message::Response(response) => self.answered(&response, now),
            Message::Request(request) => self.asked(request, now),
        }
        self.run(now);
    }

    /// What was given out last could not be sent.
    pub fn transport_failed(&mut self, now: Instant) {
        self.clients.iter_mut().for_each(|outgoing| outgoing.client.failed(now));
        if matches!(self.phase, Phase::Ending | Phase::Over) {
            self.servers.iter_mut().for_each(|incoming| incoming.server.failed(now));
        }
        self.run(now);
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// After `Happening::Gone`. Late messages are still answered, if anybody gives them to it.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// It came in and could not become a call: its answer is on its way, and nobody is to be told of it.
    pub fn is_refused(&self) -> bool {
        !self.is_caller && self.invited.is_none()
    }

    /// They made no offer and want reliable answers: ours belongs into the first of them. RFC 3262 §5.
    pub fn wants_early_offer(&self) -> bool {
        self.invited.as_ref().is_some_and(Invited::wants_offer)
    }

    /// How the peer has said, in an answer to our INVITE, that the call is signed: A, B or C. Its last word counts.
    pub fn attested(&self) -> Option<char> {
        self.attested
    }

    /// `None`: nobody has picked up.
    pub fn dialog(&self) -> Option<DialogRow> {
        let dialog = self.dialog.as_ref().filter(|_| self.is_picked_up)?;
        Some(DialogRow {
            call_id: dialog.call_id.clone(),
            local_tag: dialog.local_tag.clone(),
            remote_tag: dialog.remote_tag.clone(),
            remote_target: uri_text(&dialog.remote_target),
            route_set: dialog.route_set.clone(),
            cseq: dialog.local_cseq,
        })
    }
}

/// The session description of a request, if it has one: in one piece, or among others.
pub fn offer_of(request: &Request) -> Option<Bytes> {
    body::description(request, &request.body)
}

#[cfg(test)]
mod tests;
