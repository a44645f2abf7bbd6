//! Requests outside any dialog: REGISTER and OPTIONS, each with the next number of one Call-ID.
use crate::{
    identity::{digest, hex, mac},
    message::{Headers, Method, Name, Request, SipUri, Transport, uri_text},
};
use bytes::Bytes;

/// From where requests leave, and by what they are known. All texts are checked by whoever gives them: they hold no blanks and no
/// line ends.
#[derive(Clone)]
pub struct Sender {
    pub transport: Transport,
    /// Host and port of the Via: the listener, never an ephemeral port.
    pub sent_by: String,
    pub contact: SipUri,
    pub call_id: String,
    /// Of From.
    pub tag: String,
    /// The last number that was used. One Call-ID's must rise over restarts, too, so that a process begins with a time.
    pub cseq: u32,
    /// What branches are made of, so that nobody can foresee them.
    pub key: [u8; 32],
    pub user_agent: String,
}

impl Sender {
    /// `secret` is the instance's.
    pub fn key(secret: &[u8]) -> [u8; 32] {
        digest(mac(secret, &[b"sip branch"]))
    }

    /// The next request. `from` and `to` are addresses in brackets, `route` those of a proxy that it goes by.
    pub fn request(&mut self, method: Method, uri: &SipUri, from: &str, to: &str, route: &[String]) -> Request {
        // The number stays below 2**31. Source: RFC 3261, section 8.1.1.5.
        self.cseq = if self.cseq < (1 << 31) - 1 { self.cseq + 1 } else { 1 };
        let branch = digest(mac(&self.key, &[&self.cseq.to_be_bytes(), self.call_id.as_bytes()]));
        let mut headers = Headers::new();
        let via = format!(
            "SIP/2.0/{} {};rport;branch=z9hG4bK{}",
            self.transport.name(),
            self.sent_by,
            hex(&branch[..16])
        );
        headers.insert(Name::VIA, via);
        headers.insert(Name::MAX_FORWARDS, "70");
        for hop in route {
            headers.insert(Name::ROUTE, hop.as_str());
        }
        headers.insert(Name::FROM, format!("{from};tag={}", self.tag));
        headers.insert(Name::TO, to);
        headers.insert(Name::CALL_ID, self.call_id.as_str());
        headers.insert(Name::CSEQ, format!("{} {method}", self.cseq));
        headers.insert(Name::CONTACT, format!("<{}>", uri_text(&self.contact)));
        headers.insert(Name::USER_AGENT, self.user_agent.as_str());
        Request {
            method,
            uri: uri.clone(),
            headers,
            body: Bytes::new(),
        }
    }
}
