//! Offers inside the talk, both ways: re-INVITE and UPDATE, one exchange at a time. RFC 3261 §14, RFC 3264 §8, RFC 3311.
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{
    Call, Happening, PATIENCE, Phase, Purpose,
    body::{carry, describe, description, unreadable},
    uac,
    uas::terms_of,
};
use crate::{
    message::{Fields, Method, Name, Request, Response},
    sdp,
    session_timer::{MIN_SE, Terms},
    transaction::GIVE_UP,
};

/// What the peer cannot answer just now is asked so often in all.
const MOST_TRIES: u8 = 4;
/// Who wants a longer pause has refused.
const MOST_PAUSE: Duration = Duration::from_secs(32);

/// Whose offer is open.
#[derive(Default)]
pub(super) enum Exchange {
    #[default]
    Idle,
    Ours {
        sdp: Bytes,
        /// The same description again, for the session timer.
        is_refresh: bool,
        tries: u8,
        min_se: u32,
        until: Instant,
    },
    /// Of the transaction with this id.
    Theirs { id: u64, until: Instant },
    /// Our offer stands in the 2xx to their INVITE without one: their ACK answers it.
    Acknowledged { id: u64 },
}

impl Exchange {
    pub fn until(&self) -> Option<Instant> {
        match self {
            Self::Ours { until, .. } | Self::Theirs { until, .. } => Some(*until),
            Self::Idle | Self::Acknowledged { .. } => None,
        }
    }
}

/// What is tried again after a pause.
pub(super) struct Retry {
    pub at: Instant,
    pub sdp: Bytes,
    pub is_refresh: bool,
    pub tries: u8,
}

impl Call {
    pub(super) fn queue_offer(&mut self, sdp: Bytes) {
        if matches!(self.phase, Phase::Answered | Phase::Talking) {
            self.session.queued = Some(sdp);
        }
    }

    /// As soon as no other exchange is open.
    pub(super) fn begin_queued(&mut self, now: Instant) {
        if self.is_free()
            && self.session.retry.is_none()
            && let Some(sdp) = self.session.queued.take()
        {
            self.reinvite(sdp, false, 1, MIN_SE, now);
        }
    }

    fn is_free(&self) -> bool {
        let is_challenged = self
            .challenges
            .iter()
            .any(|challenge| challenge.purpose == Purpose::Reinvite);
        self.phase == Phase::Talking && matches!(self.session.exchange, Exchange::Idle) && !is_challenged
    }

    pub(super) fn reinvite(&mut self, sdp: Bytes, is_refresh: bool, tries: u8, min_se: u32, now: Instant) {
        let Some((mut request, hop)) = self.next_request(Method::INVITE) else {
            return;
        };
        describe(&mut request.headers);
        self.keep_timer(&mut request, min_se);
        carry(&mut request.headers, &mut request.body, sdp.clone());
        let until = now + 2 * GIVE_UP;
        self.session.exchange = Exchange::Ours {
            sdp,
            is_refresh,
            tries,
            min_se,
            until,
        };
        if self.start(request, Purpose::Reinvite, hop, 0, now).is_none() {
            self.offer_failed(503);
        }
    }

    pub(super) fn reinvite_answered(&mut self, request: &Request, response: &Response, now: Instant) {
        if response.is_success() {
            return self.offer_answered(request, response, now);
        }
        let Exchange::Ours {
            sdp,
            is_refresh,
            tries,
            min_se,
            ..
        } = &self.session.exchange
        else {
            return;
        };
        let (sdp, is_refresh, tries, min_se) = (sdp.clone(), *is_refresh, *tries, *min_se);
        if let Some(pause) = self.pause_after(response, tries) {
            self.session.retry = Some(Retry {
                at: now + pause,
                sdp,
                is_refresh,
                tries: tries + 1,
            });
            self.session.exchange = Exchange::Idle;
            return;
        }
        match response.code {
            422 if min_se == MIN_SE => match uac::wanted_interval(response).filter(|wanted| *wanted > MIN_SE) {
                Some(wanted) => self.reinvite(sdp, is_refresh, tries, wanted, now),
                None => self.offer_failed(422),
            },
            code @ (408 | 481) => self.lost(code, now),
            code => self.offer_failed(code),
        }
    }

    fn offer_answered(&mut self, request: &Request, response: &Response, now: Instant) {
        if self.acknowledge_again(response) {
            return;
        }
        if let Some(dialog) = &mut self.dialog {
            dialog.refresh_target(response);
        }
        let Some(dialog) = self.dialog.clone() else { return };
        let (bytes, hop) = self.ack_of(request, response, &dialog);
        self.acknowledge(response, bytes, hop);
        let exchange = std::mem::take(&mut self.session.exchange);
        let (Exchange::Ours { sdp, is_refresh, .. }, Phase::Talking) = (exchange, self.phase) else {
            return;
        };
        self.learn(response);
        self.set_timer(response, now);
        self.session.ours = sdp;
        let answer = description(response, &response.body).unwrap_or_default();
        let is_same = answer.is_empty() || sdp::is_unchanged(&self.session.theirs, &answer);
        if !is_refresh || !is_same {
            self.session.theirs = answer.clone();
            self.happen(Happening::OfferAnswered { sdp: answer });
        }
    }

    /// The session stays as it was.
    pub(super) fn offer_failed(&mut self, code: u16) {
        match std::mem::take(&mut self.session.exchange) {
            Exchange::Ours { is_refresh: false, .. } if self.phase == Phase::Talking => {
                self.happen(Happening::OfferRefused { code });
            }
            // A refresh that is refused is the timer's to end.
            Exchange::Ours { .. } | Exchange::Idle => {}
            other => self.session.exchange = other,
        }
    }

    /// Before an offer or a refresh is sent again: it met one of the peer's (491), or the peer is at work on another (500) and says
    /// how long. `None`: it is refused. RFC 3261 §14.1, §14.2; RFC 3311 §5.2.
    pub(super) fn pause_after(&self, response: &Response, tries: u8) -> Option<Duration> {
        match response.code {
            _ if tries >= MOST_TRIES => None,
            491 => Some(self.glare_pause(tries)),
            500 | 503 => response.retry_after().filter(|pause| *pause <= MOST_PAUSE),
            _ => None,
        }
    }

    /// Who has made the Call-ID waits 2.1 to 4 s, the other up to 2 s, in tens of milliseconds. Derived, not random: two ends
    /// have different tags, and each try another pause. RFC 3261 §14.1.
    fn glare_pause(&self, tries: u8) -> Duration {
        let seed = self
            .local_tag
            .bytes()
            .chain([tries])
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let (from, span) = if self.is_caller { (2100, 191) } else { (0, 201) };
        Duration::from_millis(from + (seed >> 16) % span * 10)
    }

    pub(super) fn retry_offer(&mut self, now: Instant) {
        let Some(retry) = self.session.retry.take_if(|retry| now >= retry.at) else {
            return;
        };
        if self.phase != Phase::Talking {
            return;
        }
        if !self.is_free() {
            // The peer was faster, and its exchange is short.
            let at = now + Duration::from_secs(1);
            self.session.retry = Some(Retry { at, ..retry });
            return;
        }
        // What the user has wanted since is what it wants.
        match self.session.queued.take() {
            Some(sdp) => self.reinvite(sdp, false, retry.tries, MIN_SE, now),
            None => self.reinvite(retry.sdp, retry.is_refresh, retry.tries, MIN_SE, now),
        }
    }

    /// re-INVITE or UPDATE of the peer.
    pub(super) fn offered(&mut self, request: Request, now: Instant) {
        let is_invite = request.method == Method::INVITE;
        let offer = description(&request, &request.body);
        let makes_offer = is_invite || offer.is_some();
        let is_early = self.phase != Phase::Talking;
        match &self.session.exchange {
            Exchange::Theirs { .. } => return self.reply_later(request, now),
            Exchange::Ours { .. } | Exchange::Acknowledged { .. } if makes_offer => {
                return self.reply(request, 491, "Request Pending", now);
            }
            // Nothing can be offered before the first exchange is over.
            _ if makes_offer && is_early => return self.reply(request, 491, "Request Pending", now),
            Exchange::Idle | Exchange::Ours { .. } | Exchange::Acknowledged { .. } => {}
        }
        if terms_of(&request, self.local.session_expires) == Terms::TooShort {
            let response = self.too_short(&request);
            return self.reply_with(request, &response, now);
        }
        if let Some(response) = unreadable(&request, &self.local_tag) {
            return self.reply_with(request, &response, now);
        }
        let is_same = offer
            .as_ref()
            .is_some_and(|offer| sdp::is_unchanged(&self.session.theirs, offer));
        let ours = if makes_offer {
            self.session.ours.clone()
        } else {
            Bytes::new()
        };
        if is_same || !makes_offer {
            if !is_early && let Some(dialog) = &mut self.dialog {
                dialog.refresh_target(&request);
            }
            let response = self.accepting(&request, ours, now);
            return self.reply_with(request, &response, now);
        }
        let trying = request.response(100, "Trying", None);
        let id = self.open(request, now);
        if is_invite {
            self.respond(id, &trying, now);
        }
        self.session.exchange = Exchange::Theirs {
            id,
            until: now + PATIENCE,
        };
        self.happen(Happening::Offer { sdp: offer });
    }

    /// A second offer before the first was answered. RFC 3261 §14.2.
    fn reply_later(&mut self, request: Request, now: Instant) {
        let mut response = request.response(500, "Request Pending", Some(&self.local_tag));
        response
            .headers
            .insert(Name::RETRY_AFTER, self.glare_pause(0).as_secs().clamp(1, 10));
        self.reply_with(request, &response, now);
    }

    pub(super) fn answer_offer(&mut self, sdp: Bytes, now: Instant) {
        let Some(request) = self.take_theirs() else { return };
        let (id, request) = request;
        if let Some(dialog) = &mut self.dialog {
            dialog.refresh_target(&request);
        }
        match description(&request, &request.body) {
            Some(theirs) => self.session.theirs = theirs,
            None => self.session.exchange = Exchange::Acknowledged { id },
        }
        self.learn(&request);
        let response = self.accepting(&request, sdp, now);
        self.respond(id, &response, now);
    }

    pub(super) fn refuse_offer(&mut self, code: u16, reason: &str, now: Instant) {
        if let Some((id, request)) = self.take_theirs() {
            let response = request.response(code, reason, Some(&self.local_tag));
            self.respond(id, &response, now);
        }
    }

    fn take_theirs(&mut self) -> Option<(u64, Request)> {
        let Exchange::Theirs { id, .. } = self.session.exchange else {
            return None;
        };
        self.session.exchange = Exchange::Idle;
        Some((id, self.request_of(id).cloned()?))
    }

    /// The peer has cancelled its re-INVITE.
    pub(super) fn withdraw_offer(&mut self, of: u64) {
        if matches!(self.session.exchange, Exchange::Theirs { id, .. } if id == of) {
            self.session.exchange = Exchange::Idle;
        }
    }

    /// The ACK that answers our offer.
    pub(super) fn offer_acknowledged(&mut self, of: u64, body: Bytes) {
        if matches!(self.session.exchange, Exchange::Acknowledged { id } if id == of) {
            self.session.exchange = Exchange::Idle;
            self.session.theirs = body.clone();
            self.happen(Happening::OfferAnswered { sdp: body });
        }
    }

    /// Nobody told what to answer: the session stays as it was, and the peer is not left waiting.
    pub(super) fn lose_patience(&mut self, now: Instant) {
        self.lose_patience_with_challenges(now);
        if self.session.exchange.until().is_none_or(|until| now < until) {
            return;
        }
        match self.session.exchange {
            // It said that it is at work, and then nothing more.
            Exchange::Ours { .. } => {
                self.clients.retain(|outgoing| outgoing.purpose != Purpose::Reinvite);
                self.offer_failed(408);
            }
            _ => self.refuse_offer(500, "No Answer In Time", now),
        }
    }
}
