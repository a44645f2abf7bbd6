//! How a leg ends: by us, by them, by both at once. RFC 3261 §15.
use std::time::Instant;

use super::{Call, Happening, Phase, Purpose};
use crate::message::{Fields, Method, Name, Request};

impl Call {
    pub(super) fn hang_up(&mut self, q850: u8, now: Instant) {
        match self.phase {
            Phase::Inviting => self.cancel(now),
            Phase::Invited => {
                self.refuse(480, "Temporarily Unavailable", None, now);
            }
            // A BYE may not overtake the ACK: the caller would not know the dialog. RFC 3261 §15.
            Phase::Answered => self.bye_wanted = Some(q850),
            Phase::Talking => self.bye(q850, now),
            Phase::Ending | Phase::Over => {}
        }
    }

    pub(super) fn bye(&mut self, q850: u8, now: Instant) {
        self.finish_talking(now);
        if let Some((mut bye, hop)) = self.next_request(Method::BYE) {
            bye.headers.insert("Reason", format!("Q.850;cause={q850}"));
            self.start(bye, Purpose::Bye, hop, 0, now);
        }
    }

    /// Nothing of the talk goes on: their open requests are answered, ours wait for nothing.
    pub(super) fn finish_talking(&mut self, now: Instant) {
        self.phase = Phase::Ending;
        self.session.timer = None;
        self.session.retry = None;
        self.session.queued = None;
        self.session.exchange = super::Exchange::Idle;
        self.challenges.retain(|challenge| challenge.purpose == Purpose::Bye);
        let open: Vec<u64> = self
            .servers
            .iter()
            .filter(|incoming| incoming.server.is_pending())
            .map(|incoming| incoming.id)
            .collect();
        for id in open {
            self.terminate(id, now);
        }
    }

    /// BYE of theirs.
    pub(super) fn ended_by_peer(&mut self, request: Request, now: Instant) {
        let (q850, reason) = (request.reason_cause(), request.header_text("Reason"));
        self.reply(request, 200, "OK", now);
        match self.phase {
            // The caller may end an early dialog so; it is a CANCEL by another name.
            Phase::Invited => {
                self.finish_talking(now);
                self.happen(Happening::Cancelled { q850, reason });
            }
            Phase::Answered | Phase::Talking => {
                self.finish_talking(now);
                // Their ACK does not come any more, and nobody listens to our 2xx.
                self.servers.retain(|incoming| !incoming.accepted);
                self.happen(Happening::RemoteHungUp { q850, reason });
            }
            // Crossed: theirs is answered, ours ends by itself.
            Phase::Ending | Phase::Over | Phase::Inviting => {}
        }
    }

    /// The peer does not know the dialog any more, or is silent. RFC 3261 §12.2.1.2.
    pub(super) fn lost(&mut self, code: u16, now: Instant) {
        if matches!(self.phase, Phase::Answered | Phase::Talking) {
            let reason = Some(format!("SIP;cause={code}"));
            self.happen(Happening::RemoteHungUp { q850: None, reason });
            self.bye(16, now);
        }
    }

    pub(super) fn inform(&mut self, content_type: &str, body: bytes::Bytes, now: Instant) {
        if self.phase != Phase::Talking {
            return;
        }
        if let Some((mut info, hop)) = self.next_request(Method::INFO) {
            info.headers.insert(Name::CONTENT_TYPE, content_type);
            info.body = body;
            self.start(info, Purpose::Info, hop, 0, now);
        }
    }
}
