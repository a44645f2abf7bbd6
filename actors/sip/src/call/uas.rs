//! The side that is called: ringing, reliable provisional answers, the 200 and its ACK, CANCEL. RFC 3261 §13.3; RFC 3262 §3.
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{
    Call, EXTENSIONS, Happening, Phase,
    body::{carry, describe, description, unreadable},
};
use crate::{
    dialog::Dialog,
    message::{Fields, Name, Request, Response, refuse::bad_extension},
    session_timer::{self, MIN_SE, SessionExpires, Terms},
    transaction::{GIVE_UP, T1},
};

/// Their INVITE, until it is answered.
pub(super) struct Invited {
    /// Of its transaction.
    id: u64,
    /// They require provisional answers that arrive.
    is_reliable: bool,
    /// Theirs, in the INVITE; or ours, which their PRACK has answered: the ACK answers none.
    has_offer: bool,
    /// Ours stands in a reliable answer, because they made none.
    is_offered: bool,
    rseq: u32,
    unheard: Option<Unheard>,
    /// What is to follow the answer that is not acknowledged yet: at most one more of them, and the 200.
    next: Option<Option<Bytes>>,
    accept: Option<Bytes>,
}

/// A reliable provisional answer that waits for its PRACK.
struct Unheard {
    rseq: u32,
    response: Response,
    again_at: Instant,
    pause: Duration,
    until: Instant,
}

impl Invited {
    pub fn wants_offer(&self) -> bool {
        self.is_reliable && !self.has_offer && !self.is_offered
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.unheard.as_ref().map(|unheard| unheard.again_at.min(unheard.until))
    }
}

/// What a request asks of the session timer, and what we say to it.
pub(super) fn terms_of(request: &Request, ours: Option<u32>) -> Terms {
    let asked = request
        .header_text(Name::SESSION_EXPIRES)
        .and_then(|text| SessionExpires::read(&text));
    let supports = request.lists(Name::SUPPORTED, "timer") || request.lists(Name::REQUIRE, "timer");
    session_timer::answer(asked, supports, ours)
}

impl Call {
    pub(super) fn begin_invited(&mut self, request: Request, now: Instant) {
        let dialog = Dialog::of_request(&request, &self.local_tag);
        let too_short = terms_of(&request, self.local.session_expires) == Terms::TooShort;
        let is_reliable = request.lists(Name::REQUIRE, "100rel");
        let has_offer = description(&request, &request.body).is_some();
        let unknown = bad_extension(&request, &EXTENSIONS, &self.local_tag);
        let unknown = unknown.or_else(|| unreadable(&request, &self.local_tag));
        self.learn(&request);
        self.session.theirs = description(&request, &request.body).unwrap_or_default();
        let trying = request.response(100, "Trying", None);
        let refusal = match (unknown, &dialog) {
            (Some(unknown), _) => Some(unknown),
            (None, None) => Some(request.response(400, "No Contact", Some(&self.local_tag))),
            (None, Some(_)) if too_short => Some(self.too_short(&request)),
            (None, Some(_)) => None,
        };
        let id = self.open(request, now);
        self.dialog = dialog;
        if let Some(refusal) = refusal {
            self.phase = Phase::Ending;
            return self.respond(id, &refusal, now);
        }
        self.respond(id, &trying, now);
        self.invited = Some(Invited {
            id,
            is_reliable,
            has_offer,
            is_offered: false,
            rseq: 0,
            unheard: None,
            next: None,
            accept: None,
        });
    }

    pub(super) fn too_short(&self, request: &Request) -> Response {
        let mut response = request.response(422, "Session Interval Too Small", Some(&self.local_tag));
        response.headers.insert(Name::MIN_SE, MIN_SE);
        response
    }

    /// 180, or 183 with sound. Whoever has made no offer and wants reliable answers gets ours in the first of them, or none at all.
    /// RFC 3262 §5.
    pub(super) fn ring(&mut self, sdp: Option<Bytes>, now: Instant) {
        let Some(invited) = self.invited.as_mut().filter(|_| self.phase == Phase::Invited) else {
            return;
        };
        if invited.accept.is_some() {
            return;
        }
        if invited.unheard.is_some() {
            invited.next = Some(sdp);
            return;
        }
        let makes_offer = invited.wants_offer();
        if makes_offer && sdp.is_none() {
            return;
        }
        invited.is_offered |= makes_offer;
        let (id, is_reliable) = (invited.id, invited.is_reliable);
        let code = if sdp.is_some() {
            (183, "Session Progress")
        } else {
            (180, "Ringing")
        };
        let Some(request) = self.request_of(id) else { return };
        let mut response = request.response(code.0, code.1, Some(&self.local_tag));
        response.headers.insert(Name::CONTACT, self.local.sender.contact_text());
        if let Some(sdp) = sdp {
            self.session.ours = sdp.clone();
            carry(&mut response.headers, &mut response.body, sdp);
        }
        if is_reliable && let Some(invited) = &mut self.invited {
            invited.rseq += 1;
            response.headers.insert(Name::REQUIRE, "100rel");
            response.headers.insert(Name::RSEQ, invited.rseq);
            invited.unheard = Some(Unheard {
                rseq: invited.rseq,
                response: response.clone(),
                again_at: now + T1,
                pause: T1,
                until: now + GIVE_UP,
            });
        }
        self.respond(id, &response, now);
    }

    /// A reliable answer is sent at growing intervals; who never acknowledges one is refused. RFC 3262 §3.
    pub(super) fn repeat_provisional(&mut self, now: Instant) {
        let is_invited = self.phase == Phase::Invited;
        let Some(invited) = self.invited.as_mut() else { return };
        if !is_invited {
            invited.unheard = None;
            return;
        }
        let id = invited.id;
        let Some(unheard) = &mut invited.unheard else { return };
        if now >= unheard.until {
            invited.unheard = None;
            invited.accept = None;
            self.refuse(504, "No PRACK", None, now);
            return self.happen(Happening::NeverAcked);
        }
        if now >= unheard.again_at {
            unheard.pause *= 2;
            unheard.again_at = now + unheard.pause;
            let response = unheard.response.clone();
            self.respond(id, &response, now);
        }
    }

    /// PRACK of the answer that waits for it: what waited behind follows. Any other is refused.
    pub(super) fn provisional_acknowledged(&mut self, request: Request, now: Instant) {
        let rack = request.header_text(Name::RACK).unwrap_or_default();
        let words: Vec<&str> = rack.split_ascii_whitespace().collect();
        let number = self
            .invited
            .as_ref()
            .and_then(|invited| self.request_of(invited.id))
            .map(|invite| invite.cseq().0);
        let expected = self
            .invited
            .as_ref()
            .and_then(|invited| invited.unheard.as_ref())
            .map(|unheard| unheard.rseq);
        let is_it = match (words.as_slice(), number, expected) {
            ([rseq, cseq, "INVITE"], Some(number), Some(expected)) => {
                rseq.parse() == Ok(expected) && cseq.parse() == Ok(number)
            }
            _ => false,
        };
        if !is_it {
            return self.reply(request, 481, "Call/Transaction Does Not Exist", now);
        }
        let answer = description(&request, &request.body);
        self.reply(request, 200, "OK", now);
        let Some(invited) = &mut self.invited else { return };
        invited.unheard = None;
        let (next, accept) = (invited.next.take(), invited.accept.take());
        if let Some(sdp) = answer.filter(|_| invited.is_offered && !invited.has_offer) {
            invited.has_offer = true;
            self.session.theirs = sdp.clone();
            self.happen(Happening::OfferAnswered { sdp });
        }
        match (accept, next) {
            (Some(sdp), _) => self.accept(sdp, now),
            (None, Some(sdp)) => self.ring(sdp, now),
            (None, None) => {}
        }
    }

    /// 200. It waits for the PRACK of what went before. RFC 3262 §3.
    pub(super) fn accept(&mut self, sdp: Bytes, now: Instant) {
        let Some(invited) = self.invited.as_mut().filter(|_| self.phase == Phase::Invited) else {
            return;
        };
        if invited.unheard.is_some() {
            invited.accept = Some(sdp);
            return;
        }
        // What was offered before and is answered is not offered again.
        let is_agreed = invited.is_offered && invited.has_offer;
        let (id, sdp) = (invited.id, if is_agreed { Bytes::new() } else { sdp });
        let Some(request) = self.request_of(id).cloned() else {
            return;
        };
        let response = self.accepting(&request, sdp, now);
        self.phase = Phase::Answered;
        self.is_picked_up = true;
        self.respond(id, &response, now);
    }

    /// A 2xx to INVITE or UPDATE, with the timer that it sets.
    pub(super) fn accepting(&mut self, request: &Request, sdp: Bytes, now: Instant) -> Response {
        let mut response = request.response(200, "OK", Some(&self.local_tag));
        response.headers.insert(Name::CONTACT, self.local.sender.contact_text());
        describe(&mut response.headers);
        self.agree_on_timer(request, &mut response, now);
        if !sdp.is_empty() {
            self.session.ours = sdp.clone();
            carry(&mut response.headers, &mut response.body, sdp);
        }
        response
    }

    pub(super) fn refuse(&mut self, code: u16, reason: &str, retry_after: Option<Duration>, now: Instant) {
        let Some(id) = self
            .invited
            .as_ref()
            .filter(|_| self.phase == Phase::Invited)
            .map(|invited| invited.id)
        else {
            return;
        };
        let Some(request) = self.request_of(id) else { return };
        // A refusal is one, whatever the number that was given.
        let mut response = request.response(code.clamp(300, 699), reason, Some(&self.local_tag));
        if let Some(pause) = retry_after {
            response.headers.insert(Name::RETRY_AFTER, pause.as_secs());
        }
        self.phase = Phase::Ending;
        self.respond(id, &response, now);
    }

    /// CANCEL of the INVITE, or of a re-INVITE.
    pub(super) fn cancelled(&mut self, request: Request, now: Instant) {
        let branch = request.top_via_branch();
        let of = self.servers.iter().find(|incoming| {
            let invite = incoming.server.request();
            invite.method == crate::message::Method::INVITE
                && invite.cseq().0 == request.cseq().0
                && invite.top_via_branch() == branch
        });
        let Some((id, is_pending)) = of.map(|incoming| (incoming.id, incoming.server.is_pending())) else {
            return self.reply(request, 481, "Call/Transaction Does Not Exist", now);
        };
        let (q850, reason) = (request.reason_cause(), request.header_text("Reason"));
        self.reply(request, 200, "OK", now);
        // Before the 487: who cancels waits for the answer to that first.
        self.settle(now);
        if is_pending {
            self.terminate(id, now);
            match self.phase {
                Phase::Invited => self.give_up_invited(Happening::Cancelled { q850, reason }),
                _ => self.withdraw_offer(id),
            }
        }
    }

    /// 487 to an INVITE that nobody waits for.
    pub(super) fn terminate(&mut self, id: u64, now: Instant) {
        let request = self.request_of(id);
        let response = request.map(|request| request.response(487, "Request Terminated", Some(&self.local_tag)));
        if let Some(response) = response {
            self.respond(id, &response, now);
        }
    }

    pub(super) fn give_up_invited(&mut self, happening: Happening) {
        self.phase = Phase::Ending;
        self.happen(happening);
    }

    /// ACK to a 2xx of ours: the first, or that of a re-INVITE.
    pub(super) fn acked(&mut self, id: u64, body: Bytes, now: Instant) {
        let first = self.invited.as_ref().filter(|invited| invited.id == id);
        let has_offer = first.map(|invited| invited.has_offer);
        match (has_offer, self.phase) {
            (Some(has_offer), Phase::Answered) => {
                self.phase = Phase::Talking;
                self.happen(Happening::Acked);
                if !has_offer {
                    self.session.theirs = body.clone();
                    self.happen(Happening::OfferAnswered { sdp: body });
                }
                if let Some(q850) = self.bye_wanted.take() {
                    self.bye(q850, now);
                }
            }
            (None, Phase::Talking) => self.offer_acknowledged(id, body),
            _ => {}
        }
    }

    /// The 2xx stands, and so does the dialog: it is ended by BYE. RFC 3261 §13.3.1.4.
    pub(super) fn never_acked(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Answered | Phase::Talking) {
            self.happen(Happening::NeverAcked);
            self.bye(self.bye_wanted.unwrap_or(102), now);
        }
    }
}
