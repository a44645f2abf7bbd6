//! The caller's side of an INVITE: tries, provisional answers and PRACK, CANCEL, forks. RFC 3261 §13.2, §9.1; RFC 3262 §4.
use std::time::Instant;

use bytes::Bytes;

use super::{
    Call, Dial, Happening, Output, Phase, Purpose,
    body::{carry, describe, description},
    transactions::ack_key,
};
use crate::{
    dialog::Dialog,
    leg::Hop,
    message::{Fields, Method, Name, Request, Response, WhyRefused, uri_text},
    orphan::{MOST_FORKS, ack_and_bye, again},
    session_timer::{MIN_SE, Refresher, SessionExpires},
    transaction::{self, GIVE_UP},
};

/// What is known of an INVITE of ours, and of those before it that were challenged.
pub(super) struct Invite {
    /// The number of the last try.
    pub cseq: u32,
    /// One of 101 to 199 came, be it one that nobody is told: it may have rung.
    rang: bool,
    /// The last of them that was told.
    last_code: Option<u16>,
    /// Some provisional answer came to the last try: it can be cancelled.
    is_heard: bool,
    cancel: Cancel,
    early: Vec<Early>,
    early_sdp: Bytes,
    /// A 422 was answered with a longer interval.
    is_longer: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cancel {
    No,
    /// Until a provisional answer comes: before, the CANCEL may overtake the INVITE.
    Wanted,
    Sent {
        forgotten_at: Instant,
    },
}

/// One of the peers that a proxy has forked the INVITE to.
struct Early {
    dialog: Dialog,
    /// The last provisional answer that was taken.
    rseq: u32,
}

impl Invite {
    pub fn forgotten_at(&self) -> Option<Instant> {
        match self.cancel {
            Cancel::Sent { forgotten_at } => Some(forgotten_at),
            Cancel::No | Cancel::Wanted => None,
        }
    }

    pub fn early_dialog(&mut self, remote_tag: &str) -> Option<&mut Dialog> {
        let mut dialogs = self.early.iter_mut().map(|early| &mut early.dialog);
        dialogs.find(|dialog| dialog.remote_tag == remote_tag)
    }
}

impl Call {
    pub(super) fn begin_inviting(&mut self, dial: Dial, now: Instant) {
        let identity = &self.local.identity;
        let sender = &self.local.sender;
        let cseq = 1;
        let mut request = sender.begin(Method::INVITE, dial.to.clone(), &identity.branch(&Method::INVITE, cseq));
        let headers = &mut request.headers;
        for route in &dial.route {
            headers.insert(Name::ROUTE, route.as_str());
        }
        headers.insert(Name::FROM, format!("{};tag={}", dial.from, self.local_tag));
        headers.insert(Name::TO, format!("<{}>", uri_text(&dial.to)));
        headers.insert(Name::CALL_ID, identity.call_id(&dial.host));
        headers.insert(Name::CSEQ, format!("{cseq} INVITE"));
        headers.insert(Name::CONTACT, sender.contact_text());
        describe(headers);
        if let Some(seconds) = self.local.session_expires {
            ask_for(headers, seconds, MIN_SE);
        }
        for (name, value) in dial.headers {
            headers.insert(name, value);
        }
        self.session.ours = dial.sdp.clone();
        carry(&mut request.headers, &mut request.body, dial.sdp);
        self.invite = Some(Invite {
            cseq,
            rang: false,
            last_code: None,
            is_heard: false,
            cancel: Cancel::No,
            early: Vec::new(),
            early_sdp: Bytes::new(),
            is_longer: false,
        });
        self.start(request, Purpose::Invite, Hop::Target, 0, now);
    }

    pub(super) fn provisional(&mut self, request: &Request, response: &Response, now: Instant) {
        self.hear_attestation(response);
        let Some(invite) = self.invite.as_mut().filter(|_| self.phase == Phase::Inviting) else {
            return;
        };
        let is_first = !std::mem::replace(&mut invite.is_heard, true);
        invite.rang |= response.code > 100;
        match invite.cancel {
            Cancel::Wanted => return self.send_cancel(request, now),
            Cancel::Sent { .. } => return,
            Cancel::No => {}
        }
        if response.code == 100 {
            if is_first {
                self.happen(Happening::Trying);
            }
            return;
        }
        if response.lists(Name::REQUIRE, "100rel") && !self.acknowledge_provisional(response, now) {
            return;
        }
        let Some(invite) = self.invite.as_mut() else { return };
        let sdp = description(response, &response.body).filter(|sdp| *sdp != invite.early_sdp);
        let is_new = invite.last_code.replace(response.code) != Some(response.code);
        if let Some(sdp) = &sdp {
            invite.early_sdp = sdp.clone();
        }
        if is_new {
            self.happen(Happening::Rang { code: response.code });
        }
        if let Some(sdp) = sdp {
            self.happen(Happening::Early { sdp });
        }
    }

    /// PRACK. `false`: a repeat, or one that came before another which is still missing. RFC 3262 §4.
    fn acknowledge_provisional(&mut self, response: &Response, now: Instant) -> bool {
        let rseq = response
            .header_text(Name::RSEQ)
            .and_then(|text| text.trim().parse::<u32>().ok());
        let (Some(rseq), Some(invite)) = (rseq, self.invite.as_mut()) else {
            return false;
        };
        let tag = response.to_tag().unwrap_or_default();
        let at = match invite.early.iter().position(|early| early.dialog.remote_tag == tag) {
            Some(at) if rseq == invite.early[at].rseq.wrapping_add(1) => at,
            Some(_) => return false,
            None if invite.early.len() == MOST_FORKS => return false,
            None => {
                let Some(dialog) = Dialog::of_answer(response) else {
                    return false;
                };
                invite.early.push(Early { dialog, rseq });
                invite.early.len() - 1
            }
        };
        let early = &mut invite.early[at];
        early.rseq = rseq;
        let cseq = early.dialog.next_cseq();
        let branch = self.local.identity.fork_branch(&Method::PRACK, cseq, &tag);
        let mut prack = early.dialog.request(Method::PRACK, cseq, &branch, &self.local.sender);
        prack
            .headers
            .insert(Name::RACK, format!("{rseq} {} INVITE", response.cseq().0));
        let hop = Hop::Uri(early.dialog.next_hop());
        self.start(prack, Purpose::Prack, hop, 0, now);
        true
    }

    /// Does a request of the peer's belong to one of the early dialogs?
    pub(super) fn holds_early(&self, request: &Request) -> bool {
        let mut early = self.invite.iter().flat_map(|invite| &invite.early);
        self.phase == Phase::Inviting && early.any(|early| early.dialog.holds(request))
    }

    /// A final answer, or a repeat of a 2xx.
    pub(super) fn invite_answered(&mut self, request: &Request, response: Response, now: Instant) {
        self.hear_attestation(&response);
        if response.is_success() {
            return self.picked_up(request, &response, now);
        }
        let Some(invite) = self.invite.as_mut().filter(|_| self.phase == Phase::Inviting) else {
            return;
        };
        let rang = invite.rang;
        if invite.cancel == Cancel::No
            && response.code == 422
            && !invite.is_longer
            && let Some(seconds) = wanted_interval(&response)
        {
            invite.is_longer = true;
            let challenges = self.outgoing_of(request).map_or(0, |outgoing| outgoing.challenges);
            let cseq = self.renumber();
            let mut next = again(request, cseq, &self.local.identity);
            ask_for(&mut next.headers, seconds, seconds);
            let mut credentials = [Name::AUTHORIZATION, Name::PROXY_AUTHORIZATION].into_iter();
            // A nonce's count is good for one request.
            if credentials.any(|name| request.header_text(name).is_some()) {
                return self.ask_for_credentials((Purpose::Invite, challenges), request, next, &response, now);
            }
            self.start(next, Purpose::Invite, Hop::Target, challenges, now);
            return;
        }
        // These ask for another try, which nobody wants any more: it is not the trunk's credentials that were refused.
        if invite.cancel != Cancel::No && matches!(response.code, 401 | 407 | 422) {
            return self.finish_cancelled();
        }
        self.finish_inviting(Happening::Refused {
            code: response.code,
            q850: response.reason_cause(),
            retry_after: response.retry_after(),
            why: WhyRefused::of(&response),
            reason: response.reason,
            rang,
        });
    }

    fn hear_attestation(&mut self, response: &Response) {
        if self.phase == Phase::Inviting {
            self.attested = response.attestation().or(self.attested);
        }
    }

    /// The number of a further try, which has heard nothing yet.
    pub(super) fn renumber(&mut self) -> u32 {
        let Some(invite) = self.invite.as_mut() else { return 0 };
        invite.cseq = invite.cseq.saturating_add(1);
        invite.is_heard = false;
        invite.early.clear();
        invite.cseq
    }

    fn picked_up(&mut self, request: &Request, response: &Response, now: Instant) {
        if self.acknowledge_again(response) {
            return;
        }
        let wanted = self.invite.as_ref().filter(|_| self.phase == Phase::Inviting);
        let wanted = wanted.filter(|invite| invite.cancel == Cancel::No && invite.cseq == response.cseq().0);
        let (Some(invite), Some(mut dialog)) = (wanted, Dialog::of_answer(response)) else {
            return self.stray(response, now);
        };
        let early = invite
            .early
            .iter()
            .find(|early| early.dialog.remote_tag == dialog.remote_tag);
        dialog.local_cseq = early.map_or(dialog.local_cseq, |early| early.dialog.local_cseq);
        let sdp = description(response, &response.body).unwrap_or_else(|| invite.early_sdp.clone());
        let (bytes, hop) = self.ack_of(request, response, &dialog);
        self.dialog = Some(dialog);
        self.phase = Phase::Talking;
        self.is_picked_up = true;
        self.learn(response);
        self.set_timer(response, now);
        self.session.theirs = sdp.clone();
        // Told before the ACK, unlike all else: the dialog can be stored first. A peer that has its ACK sends no 2xx any more from
        // which a process that starts later could learn how to end the call.
        self.outputs.push_back(Output::Happening(Happening::PickedUp { sdp }));
        self.acknowledge(response, bytes, hop);
    }

    /// With the credentials of its INVITE. RFC 3261 §13.2.2.4, §22.1.
    pub(super) fn ack_of(&self, request: &Request, response: &Response, dialog: &Dialog) -> (Bytes, Hop) {
        let cseq = response.cseq().0;
        let branch = self.local.identity.fork_branch(&Method::ACK, cseq, &dialog.remote_tag);
        let mut ack = dialog.request(Method::ACK, cseq, &branch, &self.local.sender);
        for name in [Name::AUTHORIZATION, Name::PROXY_AUTHORIZATION] {
            for value in request.headers.get_raw(&name) {
                ack.headers.insert(name.clone(), value.as_str());
            }
        }
        (ack.to_bytes(), Hop::Uri(dialog.next_hop()))
    }

    /// Somebody picked up whom nobody wants: a further peer of a fork, or the one whom our CANCEL missed.
    pub(super) fn stray(&mut self, response: &Response, now: Instant) {
        if self.acknowledge_again(response) || !self.is_caller {
            return;
        }
        let (cseq, tag) = ack_key(response);
        let is_of_the_first = self.invite.as_ref().is_some_and(|invite| cseq <= invite.cseq);
        if !is_of_the_first || self.acks.iter().filter(|ack| ack.remote_tag != tag).count() >= MOST_FORKS {
            return;
        }
        let Some(away) = ack_and_bye(response, &self.local.identity, &self.local.sender) else {
            return;
        };
        self.acknowledge(response, away.ack, away.hop.clone());
        self.start(away.bye, Purpose::Bye, away.hop, 0, now);
        // Not while a try is open that this was no answer to: its end is awaited, and bounded.
        let is_open = self.pending_invite().is_some();
        if self.phase == Phase::Inviting && self.is_cancelled() && !is_open {
            self.finish_cancelled();
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.invite.as_ref().is_some_and(|invite| invite.cancel != Cancel::No)
    }

    fn pending_invite(&self) -> Option<&Request> {
        let mut tries = self
            .clients
            .iter()
            .filter(|outgoing| outgoing.purpose == Purpose::Invite);
        tries
            .find(|outgoing| outgoing.client.is_pending())
            .map(|outgoing| outgoing.client.request())
    }

    pub(super) fn cancel(&mut self, now: Instant) {
        let open = self.pending_invite().cloned();
        let Some(invite) = self.invite.as_mut().filter(|invite| invite.cancel == Cancel::No) else {
            return;
        };
        invite.cancel = Cancel::Wanted;
        match open {
            Some(request) if invite.is_heard => self.send_cancel(&request, now),
            Some(_) => {}
            // Refused already, and the credentials were never sent: there is nothing at the peer to be cancelled.
            None => {
                self.challenges.clear();
                self.finish_cancelled();
            }
        }
    }

    fn send_cancel(&mut self, request: &Request, now: Instant) {
        if let Some(invite) = &mut self.invite {
            invite.cancel = Cancel::Sent {
                forgotten_at: now + GIVE_UP,
            };
        }
        self.start(transaction::cancel(request), Purpose::Cancel, Hop::Target, 0, now);
    }

    /// A peer that heeds no CANCEL is not waited for. A late 2xx is still turned away.
    pub(super) fn forget_cancelled(&mut self, now: Instant) {
        let forgotten_at = self.invite.as_ref().and_then(|invite| invite.forgotten_at());
        if self.phase == Phase::Inviting && forgotten_at.is_some_and(|at| now >= at) {
            self.clients.retain(|outgoing| outgoing.purpose != Purpose::Invite);
            self.finish_cancelled();
        }
    }

    pub(super) fn finish_cancelled(&mut self) {
        let rang = self.invite.as_ref().is_some_and(|invite| invite.rang);
        self.finish_inviting(Happening::Refused {
            code: 487,
            reason: "Request Terminated".to_owned(),
            q850: None,
            retry_after: None,
            rang,
            why: WhyRefused::default(),
        });
    }

    /// Nobody has picked up, and nobody will.
    pub(super) fn finish_inviting(&mut self, happening: Happening) {
        if self.phase == Phase::Inviting {
            self.phase = Phase::Ending;
            self.happen(happening);
        }
    }
}

/// Writes what session timer a request of ours asks for: we refresh, if the peer has nothing against it.
pub(super) fn ask_for(headers: &mut crate::message::Headers, seconds: u32, min_se: u32) {
    let expires = SessionExpires {
        seconds: seconds.max(min_se),
        refresher: Some(Refresher::Uac),
    };
    headers.remove(&Name::SESSION_EXPIRES);
    headers.remove(&Name::MIN_SE);
    headers.insert(Name::SESSION_EXPIRES, expires);
    headers.insert(Name::MIN_SE, min_se);
}

/// The `Min-SE` of a 422, which is no longer than a day.
pub(super) fn wanted_interval(response: &Response) -> Option<u32> {
    let text = response.header_text(Name::MIN_SE)?;
    let seconds: u32 = text.split(';').next()?.trim().parse().ok()?;
    (MIN_SE..=86_400).contains(&seconds).then_some(seconds)
}
