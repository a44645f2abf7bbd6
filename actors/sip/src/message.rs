//! SIP messages: bytes in, bytes out. Source: RFC 3261, sections 7 and 18.3.
//!
//! Header values stand as they came; the accessors of `Fields` read them when asked, leniently, and never panic. What the readers
//! let through has the six headers that every message must have, so that a reply can be made of any request.
pub mod address;
mod fields;
mod head;
mod method;
mod read;
pub mod refuse;
mod via;
mod why_refused;

pub use address::Address;
pub use ezk_sip_types::{Headers, Name, uri::SipUri};
pub use fields::Fields;
pub use head::{MAX_BYTES, Unreadable};
pub use method::Method;
pub use read::{Frame, StreamReader, read_datagram};
pub use via::Via;
pub use why_refused::{Reason, WhyRefused};

use bytes::Bytes;
use ezk_sip_types::print::{AppendCtx, PrintCtx, UriContext};
use std::fmt::{self, Write as _};

/// Over what a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    Udp,
    Tcp,
    Tls,
}

impl Transport {
    /// Does the transport itself see to it that messages arrive?
    pub fn is_reliable(self) -> bool {
        match self {
            Transport::Udp => false,
            Transport::Tcp | Transport::Tls => true,
        }
    }

    /// As a Via names it.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP",
            Transport::Tls => "TLS",
        }
    }
}

#[derive(Clone)]
pub struct Request {
    pub method: Method,
    pub uri: SipUri,
    pub headers: Headers,
    pub body: Bytes,
}

#[derive(Clone)]
pub struct Response {
    /// 100 to 699.
    pub code: u16,
    /// In the peer's words, at most 100 characters and none of them a control character.
    pub reason: String,
    pub headers: Headers,
    pub body: Bytes,
}

#[derive(Clone, Debug)]
pub enum Message {
    Request(Request),
    Response(Response),
}

impl Request {
    pub fn to_bytes(&self) -> Bytes {
        let first = format!("{} {} SIP/2.0", self.method, uri_text(&self.uri));
        assemble(&first, &self.headers, &self.body)
    }

    /// A reply with the headers that every reply copies. The tag is added to a To that has none; only a 100 goes without one.
    /// Source: RFC 3261, sections 8.2.6.2 and 12.1.1.
    pub fn response(&self, code: u16, reason: &str, to_tag: Option<&str>) -> Response {
        let mut headers = Headers::new();
        for name in [Name::VIA, Name::FROM] {
            copy(&self.headers, &mut headers, &name);
        }
        match (self.to_tag(), to_tag) {
            (None, Some(tag)) => {
                let to = self.header_text(Name::TO).unwrap_or_default();
                headers.insert(Name::TO, format!("{to};tag={tag}"));
            }
            (Some(_), _) | (None, None) => copy(&self.headers, &mut headers, &Name::TO),
        }
        for name in [Name::CALL_ID, Name::CSEQ, Name::RECORD_ROUTE] {
            copy(&self.headers, &mut headers, &name);
        }
        if code == 100 {
            copy(&self.headers, &mut headers, &Name::TIMESTAMP);
        }
        Response {
            code,
            reason: reason.to_owned(),
            headers,
            body: Bytes::new(),
        }
    }
}

impl Response {
    pub fn to_bytes(&self) -> Bytes {
        assemble(
            &format!("SIP/2.0 {} {}", self.code, clean(&self.reason)),
            &self.headers,
            &self.body,
        )
    }

    pub fn is_provisional(&self) -> bool {
        self.code < 200
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

impl Message {
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Message::Request(request) => request.to_bytes(),
            Message::Response(response) => response.to_bytes(),
        }
    }
}

impl Fields for Request {
    fn headers(&self) -> &Headers {
        &self.headers
    }
}

impl Fields for Response {
    fn headers(&self) -> &Headers {
        &self.headers
    }
}

impl Fields for Message {
    fn headers(&self) -> &Headers {
        match self {
            Message::Request(request) => &request.headers,
            Message::Response(response) => &response.headers,
        }
    }
}

/// Neither headers nor body: they hold numbers and credentials, and this is what gets into logs.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (CSeq {}, {} bytes)", self.method, self.cseq().0, self.body.len())
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, method) = self.cseq();
        write!(
            f,
            "{} of {method} (CSeq {number}, {} bytes)",
            self.code,
            self.body.len()
        )
    }
}

/// All values of a header, as they stand.
pub fn copy(from: &Headers, to: &mut Headers, name: &Name) {
    for value in from.get_raw(name) {
        to.insert(name.clone(), value.as_str());
    }
}

/// A URI as a request line has it.
pub fn uri_text(uri: &SipUri) -> String {
    let context = PrintCtx {
        method: None,
        uri: Some(UriContext::ReqUri),
    };
    uri.print_ctx(context).to_string()
}

/// Content-Length is counted anew, whatever the headers say.
fn assemble(first: &str, headers: &Headers, body: &[u8]) -> Bytes {
    let mut text = String::with_capacity(first.len() + headers.printed_len() + 32);
    let _ = write!(text, "{first}\r\n");
    for (name, value) in headers.iter().filter(|(name, _)| **name != Name::CONTENT_LENGTH) {
        let _ = write!(text, "{}: {}\r\n", name.as_print_str(), clean(value));
    }
    let _ = write!(text, "Content-Length: {}\r\n\r\n", body.len());
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes.into()
}

/// No value may end its own line: a display name of a user's comes this way.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if matches!(c, '\r' | '\n' | '\0') { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests;
