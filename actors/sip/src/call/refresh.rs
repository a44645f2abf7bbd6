//! The session timer of a leg: what both sides agree on, and who asks anew. RFC 4028.
use std::time::Instant;

use super::{Call, Happening, Phase, Purpose, body::describe, uac, uas::terms_of};
use crate::{
    message::{Fields, Method, Name, Request, Response},
    session_timer::{Due, MIN_SE, Refresher, SessionExpires, SessionTimer, Terms},
};

impl Call {
    /// What a message of the peer's says of it.
    pub(super) fn learn(&mut self, message: &impl Fields) {
        if message.header_text(Name::ALLOW).is_some() {
            self.session.updates = message.lists(Name::ALLOW, "UPDATE");
        }
    }

    /// By a 2xx to a request of ours; without the header there is no timer. RFC 4028 §7.2.
    pub(super) fn set_timer(&mut self, response: &Response, now: Instant) {
        let expires = response
            .header_text(Name::SESSION_EXPIRES)
            .and_then(|text| SessionExpires::read(&text));
        self.session.timer =
            expires.map(|expires| SessionTimer::new(expires.seconds, expires.refresher != Some(Refresher::Uas), now));
    }

    /// By a 2xx of ours.
    pub(super) fn agree_on_timer(&mut self, request: &Request, response: &mut Response, now: Instant) {
        self.session.timer = match terms_of(request, self.local.session_expires) {
            Terms::Agreed { expires, require } => {
                response.headers.insert(Name::SESSION_EXPIRES, expires);
                if require {
                    response.headers.insert(Name::REQUIRE, "timer");
                }
                Some(SessionTimer::new(
                    expires.seconds,
                    expires.refresher == Some(Refresher::Uas),
                    now,
                ))
            }
            Terms::None | Terms::TooShort => None,
        };
    }

    /// A request of ours inside the talk keeps the roles: whoever refreshes goes on to.
    pub(super) fn keep_timer(&self, request: &mut Request, min_se: u32) {
        let Some(timer) = &self.session.timer else { return };
        uac::ask_for(&mut request.headers, timer.seconds(), min_se);
        if !timer.is_ours() {
            let expires = SessionExpires {
                seconds: timer.seconds().max(min_se),
                refresher: Some(Refresher::Uas),
            };
            request.headers.remove(&Name::SESSION_EXPIRES);
            request.headers.insert(Name::SESSION_EXPIRES, expires);
        }
    }

    pub(super) fn check_timer(&mut self, now: Instant) {
        if self.phase != Phase::Talking {
            return;
        }
        match self.session.timer.as_mut().and_then(|timer| timer.tick(now)) {
            Some(Due::Refresh) => self.refresh(now),
            Some(Due::Expired) => {
                self.happen(Happening::SessionExpired);
                self.bye(102, now);
            }
            None => {}
        }
    }

    /// UPDATE if the peer takes it, for it carries no description; else re-INVITE with the same one.
    fn refresh(&mut self, now: Instant) {
        if !self.session.updates {
            return self.queue_refresh(now);
        }
        let Some((mut update, hop)) = self.next_request(Method::UPDATE) else {
            return;
        };
        describe(&mut update.headers);
        self.keep_timer(&mut update, MIN_SE);
        self.start(update, Purpose::Update, hop, 0, now);
    }

    /// At once, or as soon as the exchange that is open is over.
    fn queue_refresh(&mut self, now: Instant) {
        if self.session.retry.is_none() {
            let sdp = self.session.ours.clone();
            self.session.retry = Some(super::Retry {
                at: now,
                sdp,
                is_refresh: true,
                tries: 1,
            });
            self.retry_offer(now);
        }
    }

    pub(super) fn update_answered(&mut self, response: &Response, now: Instant) {
        if self.phase != Phase::Talking {
            return;
        }
        match response.code {
            ..300 => {
                if let Some(dialog) = &mut self.dialog {
                    dialog.refresh_target(response);
                }
                self.set_timer(response, now);
            }
            422 => {
                let asked = self.session.timer.as_ref().map_or(MIN_SE, |timer| timer.seconds());
                if let Some(wanted) = uac::wanted_interval(response).filter(|wanted| *wanted > asked) {
                    self.session.timer = Some(SessionTimer::new(wanted, true, now));
                    // Not by UPDATE again: who always wants more would be asked without end.
                    self.session.updates = false;
                    self.queue_refresh(now);
                }
            }
            code @ (408 | 481) => self.lost(code, now),
            _ if self.refresh_later(response, now) => {}
            code => {
                // Only these say that it does not take UPDATE after all; any other refusal is of this one.
                if matches!(code, 405 | 501) {
                    self.session.updates = false;
                }
                self.queue_refresh(now);
            }
        }
    }

    /// The peer cannot answer just now, and is asked again by UPDATE.
    fn refresh_later(&mut self, response: &Response, now: Instant) -> bool {
        let tries = self.session.timer.as_ref().map_or(0, SessionTimer::tries);
        let Some(pause) = self.pause_after(response, tries) else {
            return false;
        };
        let timer = self.session.timer.as_mut();
        timer.is_some_and(|timer| timer.ask_again(now + pause))
    }
}
