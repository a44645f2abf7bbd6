//! 401 and 407: the user has the credentials, so the request goes to it and comes back. RFC 3261 §22.
use std::time::Instant;

use super::{Call, Happening, PATIENCE, Phase, Purpose};
use crate::{
    leg::Hop,
    message::{Fields, Method, Request, Response},
    orphan::again,
};

/// A proxy and the peer behind it may both ask, and a nonce may be stale.
const MOST_CHALLENGES: u8 = 3;

/// A request that waits for credentials.
pub(super) struct Challenge {
    cseq: u32,
    method: Method,
    pub purpose: Purpose,
    hop: Hop,
    challenges: u8,
    original: Request,
    response: Response,
    pub until: Instant,
}

impl Call {
    /// `false`: it has been asked often enough, or nobody wants the request any more.
    pub(super) fn challenge(
        &mut self,
        purpose: Purpose,
        request: &Request,
        challenges: u8,
        response: &Response,
        now: Instant,
    ) -> bool {
        if challenges >= MOST_CHALLENGES || !self.is_wanted(purpose) {
            return false;
        }
        let cseq = self.number_after(purpose, request);
        let next = again(request, cseq, &self.local.identity);
        self.ask_for_credentials((purpose, challenges + 1), request, next, response, now);
        true
    }

    /// The user puts its credentials into what comes next: those that the challenge asks for, or, where the answer was none, those that
    /// the request had, whose count has to rise. `times`: challenges so far.
    pub(super) fn ask_for_credentials(
        &mut self,
        (purpose, times): (Purpose, u8),
        request: &Request,
        next: Request,
        response: &Response,
        now: Instant,
    ) {
        let hop = self
            .outgoing_of(request)
            .map_or(Hop::Target, |outgoing| outgoing.hop.clone());
        self.challenges.push(Challenge {
            cseq: next.cseq().0,
            method: next.method.clone(),
            purpose,
            hop,
            challenges: times,
            original: request.clone(),
            response: response.clone(),
            until: now + PATIENCE,
        });
        self.happen(Happening::Challenged {
            request: Box::new(next),
            response: Box::new(response.clone()),
        });
    }

    fn is_wanted(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Invite => self.phase == Phase::Inviting && !self.is_cancelled(),
            Purpose::Reinvite | Purpose::Update | Purpose::Refer | Purpose::Info => self.phase == Phase::Talking,
            Purpose::Prack => self.phase == Phase::Inviting,
            Purpose::Bye => self.phase != Phase::Over,
            Purpose::Cancel => false,
        }
    }

    fn number_after(&mut self, purpose: Purpose, request: &Request) -> u32 {
        if purpose == Purpose::Invite {
            return self.renumber();
        }
        let tag = request.to_tag().unwrap_or_default();
        let early = self.invite.as_mut().and_then(|invite| invite.early_dialog(&tag));
        match self.dialog.as_mut().filter(|dialog| dialog.remote_tag == tag).or(early) {
            Some(dialog) => dialog.next_cseq(),
            // A peer of a fork counts for itself.
            None => request.cseq().0.saturating_add(1),
        }
    }

    fn take_challenge(&mut self, request: &Request) -> Option<Challenge> {
        let (cseq, method) = request.cseq();
        // Peers of a fork each count for themselves.
        let tag = request.to_tag();
        let of = |challenge: &Challenge| {
            challenge.cseq == cseq && challenge.method == method && challenge.original.to_tag() == tag
        };
        let at = self.challenges.iter().position(of)?;
        Some(self.challenges.swap_remove(at))
    }

    pub(super) fn authorized(&mut self, request: Request, now: Instant) {
        if let Some(Challenge {
            purpose,
            hop,
            challenges,
            ..
        }) = self.take_challenge(&request)
        {
            self.start(request, purpose, hop, challenges, now);
        }
    }

    pub(super) fn unauthorized(&mut self, request: &Request, now: Instant) {
        if let Some(challenge) = self.take_challenge(request) {
            self.give_in(challenge, now);
        }
    }

    /// The challenge was the answer.
    fn give_in(&mut self, challenge: Challenge, now: Instant) {
        let Challenge {
            purpose,
            original,
            response,
            ..
        } = challenge;
        self.decided(purpose, &original, MOST_CHALLENGES, response, now);
    }

    pub(super) fn lose_patience_with_challenges(&mut self, now: Instant) {
        while let Some(at) = self.challenges.iter().position(|challenge| now >= challenge.until) {
            let challenge = self.challenges.swap_remove(at);
            self.give_in(challenge, now);
        }
    }
}
