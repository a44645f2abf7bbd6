//! Requests of the peer.
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{
    ALLOW, Call, EXTENSIONS, Happening, MOST_ENDS, MOST_SERVERS, Phase, Purpose, SUPPORTED, body::description,
};
use crate::{
    dialog::Order,
    leg::Hop,
    message::{
        Fields, Method, Name, Request, Response,
        refuse::{bad_extension, merged},
    },
    transaction::Verdict,
};

const NO_DIALOG: (u16, &str) = (481, "Call/Transaction Does Not Exist");

/// Whoever is handed over to has answered by then, or nobody tells.
const REFERRED_WITHIN: Duration = Duration::from_secs(45);

impl Call {
    pub(super) fn asked(&mut self, request: Request, now: Instant) {
        if self.is_repeat(&request, now) || request.method == Method::ACK {
            return;
        }
        if !self.has_room_for(&request.method) {
            // Without a transaction: whoever opens that many hears no repeat.
            let mut response = request.response(503, "Too Many Requests", Some(&self.local_tag));
            response.headers.insert(Name::RETRY_AFTER, 5);
            let hop = Hop::back(&request);
            return self.send(response.to_bytes(), hop);
        }
        if request.method == Method::CANCEL {
            return self.cancelled(request, now);
        }
        if self.servers.iter().any(|incoming| incoming.server.is_merged(&request)) {
            let response = merged(&request, &self.local_tag);
            return self.reply_with(request, &response, now);
        }
        let is_inside = self.dialog.as_ref().is_some_and(|dialog| dialog.holds(&request));
        if !is_inside && !self.holds_early(&request) {
            return self.reply(request, NO_DIALOG.0, NO_DIALOG.1, now);
        }
        if let Some(response) = bad_extension(&request, &EXTENSIONS, &self.local_tag) {
            return self.reply_with(request, &response, now);
        }
        if is_inside
            && self
                .dialog
                .as_mut()
                .is_some_and(|dialog| dialog.take(&request) == Order::Late)
        {
            return self.reply(request, 500, "CSeq Too Low", now);
        }
        self.asked_inside(request, now);
    }

    /// A key that is pressed is a request by INFO, and whoever types fast would fill all places with those that were answered long
    /// ago. Should one that gave way come once more, its number is too low, and it is not followed again.
    fn has_room_for(&mut self, method: &Method) -> bool {
        if self.servers.len() < MOST_SERVERS {
            return true;
        }
        if let Some(at) = self.servers.iter().position(|incoming| incoming.server.is_settled()) {
            self.servers.remove(at);
        }
        let ends = matches!(*method, Method::BYE | Method::CANCEL);
        self.servers.len() < MOST_SERVERS + if ends { MOST_ENDS } else { 0 }
    }

    fn is_repeat(&mut self, request: &Request, now: Instant) -> bool {
        let mut servers = self.servers.iter_mut();
        if let Some(refused) = servers.find(|incoming| incoming.server.is_refusal_of(request)) {
            refused.server.receive(request, now);
            return true;
        }
        for incoming in &mut self.servers {
            // The body of the ACK is the answer to an offer of ours.
            if incoming.accepted && incoming.ack_body.is_empty() && incoming.server.is_acked_by(request) {
                incoming.ack_body = description(request, &request.body).unwrap_or_default();
            }
            if incoming.server.receive(request, now) != Verdict::NotOurs {
                return true;
            }
        }
        false
    }

    fn asked_inside(&mut self, request: Request, now: Instant) {
        let method = request.method.clone();
        if method == Method::BYE {
            return self.ended_by_peer(request, now);
        }
        if matches!(self.phase, Phase::Ending | Phase::Over) {
            return self.reply(request, NO_DIALOG.0, NO_DIALOG.1, now);
        }
        match method {
            Method::INVITE | Method::UPDATE => self.offered(request, now),
            Method::PRACK => self.provisional_acknowledged(request, now),
            Method::INFO => self.informed(request, now),
            Method::OPTIONS => {
                let mut response = self.options(&request);
                response.headers.insert(Name::ACCEPT, "application/sdp");
                self.reply_with(request, &response, now);
            }
            Method::NOTIFY => self.notified(request, now),
            // Nobody sends our calls elsewhere.
            Method::REFER => self.reply(request, 603, "Decline", now),
            _ => {
                let mut response = request.response(405, "Method Not Allowed", Some(&self.local_tag));
                response.headers.insert(Name::ALLOW, ALLOW);
                self.reply_with(request, &response, now);
            }
        }
    }

    fn options(&self, request: &Request) -> Response {
        let mut response = request.response(200, "OK", Some(&self.local_tag));
        response.headers.insert(Name::ALLOW, ALLOW);
        response.headers.insert(Name::SUPPORTED, SUPPORTED);
        response
    }

    fn informed(&mut self, request: Request, now: Instant) {
        let content_type = request.header_text(Name::CONTENT_TYPE).unwrap_or_default();
        let body = request.body.clone();
        self.reply(request, 200, "OK", now);
        if !body.is_empty() {
            self.happen(Happening::Info { content_type, body });
        }
    }

    /// Hands the peer over to somebody else. One at a time. RFC 3515 §2.4.
    pub(super) fn refer(&mut self, to: &str, now: Instant) {
        if self.phase != Phase::Talking || self.referring_until.is_some() {
            return;
        }
        if let Some((mut refer, hop)) = self.next_request(Method::REFER) {
            let by = self.local.sender.contact_text();
            refer.headers.insert(Name::REFER_TO, format!("<{to}>"));
            refer.headers.insert("Referred-By", by);
            let started = self.start(refer, Purpose::Refer, hop, 0, now);
            self.referring_until = started.map(|_| now + REFERRED_WITHIN);
        }
    }

    pub(super) fn refer_answered(&mut self, response: &Response, now: Instant) {
        match response.code {
            ..300 => {}
            408 | 481 => {
                self.refer_failed(response.code);
                self.lost(response.code, now);
            }
            code => self.refer_failed(code),
        }
    }

    pub(super) fn refer_failed(&mut self, code: u16) {
        if self.referring_until.take().is_some() && self.phase == Phase::Talking {
            self.happen(Happening::ReferProgress { code });
        }
    }

    /// Nobody says any more how it went.
    pub(super) fn forget_refer(&mut self, now: Instant) {
        if self.referring_until.is_some_and(|until| until <= now) {
            self.refer_failed(408);
        }
    }

    /// NOTIFY of our REFER: a status line says how the call to the third party fares. It may come before the 202.
    fn notified(&mut self, request: Request, now: Instant) {
        let event = request
            .header_text("Event")
            .or_else(|| request.header_text("o"))
            .unwrap_or_default();
        let is_refer = event
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .eq_ignore_ascii_case("refer");
        if self.referring_until.is_none() || !is_refer {
            return self.reply(request, NO_DIALOG.0, NO_DIALOG.1, now);
        }
        let code = fragment_code(&request.body);
        let state = request.header_text(Name::SUBSCRIPTION_STATE).unwrap_or_default();
        let is_last = state.trim_start().to_ascii_lowercase().starts_with("terminated");
        self.reply(request, 200, "OK", now);
        // The subscription may end without a word of the outcome: then nobody knows, which is no success.
        let code = code.or(is_last.then_some(408));
        if let Some(code) = code {
            if code >= 200 || is_last {
                self.referring_until = None;
            }
            let code = if is_last && code < 200 { 408 } else { code };
            self.happen(Happening::ReferProgress { code });
        }
    }
}

/// `SIP/2.0 180 Ringing`
fn fragment_code(body: &Bytes) -> Option<u16> {
    let text = String::from_utf8_lossy(body.get(..64).unwrap_or(body)).into_owned();
    let mut words = text.split_ascii_whitespace();
    let is_sip = words.next()?.eq_ignore_ascii_case("SIP/2.0");
    words
        .next()?
        .parse()
        .ok()
        .filter(|code| is_sip && (100..700).contains(code))
}
