//! The head of a message: its first line and its headers, and why it may be of no use.
use super::{
    Message, Method, Request, Response, Via,
    address::{Address, read_uri},
    clean,
    fields::read_cseq,
    method::is_token,
};
use bytes::Bytes;
use ezk_sip_types::{Headers, Name, uri::SipUri};

/// Bytes of a whole message.
pub const MAX_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 128;
/// Bytes of one header, folded lines together.
pub(super) const MAX_HEADER_BYTES: usize = 8 * 1024;
/// Characters of a reason phrase that are kept.
const MAX_REASON: usize = 100;
const VERSION: &str = "SIP/2.0";
pub(super) const CONTENT_LENGTH: &str = "Content-Length";

/// Why bytes are not a message that can be dealt with. Says nothing of what was in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("the peer does not speak SIP")]
    NotSip,
    #[error("the message is of another version than SIP/2.0")]
    Version,
    #[error("the message is cut off")]
    CutOff,
    #[error("the message has more than {MAX_BYTES} bytes")]
    TooLong,
    #[error("the message has more than {MAX_HEADERS} headers")]
    TooManyHeaders,
    #[error("a header has more than {MAX_HEADER_BYTES} bytes")]
    HeaderTooLong,
    #[error("the status is not a number from 100 to 699")]
    Status,
    #[error("a line of the head is not a header")]
    NoHeader,
    #[error("the URI of the request is not a SIP URI")]
    RequestUri,
    #[error("the message has no {0} header that can be read")]
    Missing(&'static str),
    #[error("the message has more than one {0} header")]
    Repeated(&'static str),
    #[error("the Content-Length is not a number of bytes")]
    ContentLength,
    #[error("the CSeq names another method than the request")]
    OtherMethod,
}

impl Unreadable {
    /// Is a stream that carried it of no use any more?
    pub fn ends_stream(self) -> bool {
        match self {
            Unreadable::NotSip
            | Unreadable::CutOff
            | Unreadable::TooLong
            | Unreadable::TooManyHeaders
            | Unreadable::HeaderTooLong
            | Unreadable::NoHeader
            | Unreadable::ContentLength
            | Unreadable::Missing(CONTENT_LENGTH)
            | Unreadable::Repeated(CONTENT_LENGTH) => true,
            Unreadable::Version
            | Unreadable::Status
            | Unreadable::RequestUri
            | Unreadable::Missing(_)
            | Unreadable::Repeated(_)
            | Unreadable::OtherMethod => false,
        }
    }
}

enum FirstLine {
    Request(Method, SipUri),
    Response(u16, String),
}

pub(super) struct Head {
    /// What is wrong with it is said when the message has been cut out: a `tel:` URI does not end a connection.
    first: Result<FirstLine, Unreadable>,
    headers: Headers,
}

impl Head {
    pub(super) fn read(bytes: &[u8]) -> Result<Head, Unreadable> {
        let text = latin(bytes);
        let mut lines = unfolded(&text)?.into_iter();
        let first = match first_line(&lines.next().unwrap_or_default()) {
            Err(Unreadable::NotSip) => return Err(Unreadable::NotSip),
            first => first,
        };
        let mut headers = Headers::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(Unreadable::NoHeader)?;
            let name = name.trim();
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(Unreadable::NoHeader);
            }
            // As it is written: what passes here is read in the same way by whoever gets it back.
            let value = clean(value);
            headers.insert(Name::from(name.to_owned()), value.trim());
        }
        Ok(Head { first, headers })
    }

    pub(super) fn content_length(&self) -> Result<Option<usize>, Unreadable> {
        let mut values = self.headers.get_raw(&Name::CONTENT_LENGTH);
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(Unreadable::Repeated(CONTENT_LENGTH));
        }
        let value = value.as_str();
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        let length = value.parse::<usize>().ok().filter(|_| is_number);
        length.map(Some).ok_or(Unreadable::ContentLength)
    }

    /// A message, if it has the headers of which a reply is made and a transaction is known.
    pub(super) fn with_body(self, body: Bytes) -> Result<Message, Unreadable> {
        let Head { first, headers } = self;
        let first = first?;
        let single = [
            (Name::FROM, "From"),
            (Name::TO, "To"),
            (Name::CALL_ID, "Call-ID"),
            (Name::CSEQ, "CSeq"),
            (Name::MAX_FORWARDS, "Max-Forwards"),
        ];
        for (name, word) in single {
            match headers.get_raw(&name).count() {
                0 if name != Name::MAX_FORWARDS => return Err(Unreadable::Missing(word)),
                0 | 1 => {}
                _ => return Err(Unreadable::Repeated(word)),
            }
        }
        let filled = |name: &Name| headers.get_raw(name).any(|value| !value.is_empty());
        let addressed = |name: &Name| {
            let mut values = headers.get_raw(name);
            values.any(|value| Address::read(value.as_str()).uri.contains(':'))
        };
        if !filled(&Name::CALL_ID) {
            return Err(Unreadable::Missing("Call-ID"));
        }
        if !addressed(&Name::FROM) {
            return Err(Unreadable::Missing("From"));
        }
        if !addressed(&Name::TO) {
            return Err(Unreadable::Missing("To"));
        }
        let via = headers.get_raw(&Name::VIA).next();
        via.and_then(|value| Via::read(value.as_str()))
            .ok_or(Unreadable::Missing("Via"))?;
        let (_, of) = read_cseq(&headers).ok_or(Unreadable::Missing("CSeq"))?;
        match first {
            FirstLine::Request(method, _) if method != of => Err(Unreadable::OtherMethod),
            FirstLine::Request(method, uri) => Ok(Message::Request(Request {
                method,
                uri,
                headers,
                body,
            })),
            FirstLine::Response(code, reason) => Ok(Message::Response(Response {
                code,
                reason,
                headers,
                body,
            })),
        }
    }
}

/// What is not UTF-8 is taken for Latin-1, byte by byte: carriers send names so, and the rest of the message is no worse for it.
fn latin(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| char::from(*byte)));
    }
    text
}

/// The head's lines; one that begins with a blank goes on the one before.
fn unfolded(head: &str) -> Result<Vec<String>, Unreadable> {
    let mut lines: Vec<String> = Vec::new();
    for line in head.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        match lines.last_mut() {
            Some(last) if line.starts_with([' ', '\t']) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => lines.push(line.trim_end().to_owned()),
        }
        if lines.last().is_some_and(|line| line.len() > MAX_HEADER_BYTES) {
            return Err(Unreadable::HeaderTooLong);
        }
        if lines.len() > MAX_HEADERS + 1 {
            return Err(Unreadable::TooManyHeaders);
        }
    }
    Ok(lines)
}

fn first_line(line: &str) -> Result<FirstLine, Unreadable> {
    if line.starts_with("SIP/") {
        return status_line(line);
    }
    let mut words = line.split_ascii_whitespace();
    let (Some(method), Some(uri), Some(version)) = (words.next(), words.next(), words.next()) else {
        return Err(Unreadable::NotSip);
    };
    if words.next().is_some() {
        // A blank inside the URI.
        return Err(if line.ends_with(VERSION) {
            Unreadable::RequestUri
        } else {
            Unreadable::NotSip
        });
    }
    match version {
        version if version.eq_ignore_ascii_case(VERSION) => {}
        version if version.starts_with("SIP/") => return Err(Unreadable::Version),
        _ => return Err(Unreadable::NotSip),
    }
    if !is_token(method) {
        return Err(Unreadable::NotSip);
    }
    let uri = read_uri(uri).ok_or(Unreadable::RequestUri)?;
    Ok(FirstLine::Request(Method::from(method), uri))
}

fn status_line(line: &str) -> Result<FirstLine, Unreadable> {
    let (version, rest) = line.split_once(' ').ok_or(Unreadable::NotSip)?;
    if version != VERSION {
        return Err(Unreadable::Version);
    }
    let rest = rest.trim_start();
    let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    let code = code
        .parse::<u16>()
        .ok()
        .filter(|code| is_code && (100..700).contains(code));
    let reason: String = reason.chars().filter(|c| !c.is_control()).collect();
    let reason: String = reason.trim().chars().take(MAX_REASON).collect();
    Ok(FirstLine::Response(
        code.ok_or(Unreadable::Status)?,
        reason.trim_end().to_owned(),
    ))
}
