//! As much of SIP as an OPTIONS request and its answer need. Source: RFC 3261.
use entities::sip_trunk::Transport;
use std::net::SocketAddr;

/// What makes one request of ours known again.
pub struct Request {
    pub call_id: String,
    branch: String,
    tag: String,
}

/// A method of its own number: no other request of ours has the Call-ID.
const CSEQ: &str = "1 OPTIONS";

impl Request {
    pub fn new() -> Self {
        let random = || format!("{:032x}", rand::random::<u128>());
        Request {
            call_id: random(),
            // So begins a branch of RFC 3261's time.
            branch: format!("z9hG4bK{}", random()),
            tag: format!("{:016x}", rand::random::<u64>()),
        }
    }

    /// An OPTIONS request to `host:port` (its usual port: none), that leaves from `local`. All texts have been checked: they
    /// hold no blanks and no line ends.
    pub fn text(&self, transport: Transport, target: &str, domain: &str, local: SocketAddr) -> String {
        let (via, parameter) = match transport {
            Transport::Udp => ("UDP", ""),
            Transport::Tcp => ("TCP", ";transport=tcp"),
            Transport::Tls => ("TLS", ";transport=tls"),
        };
        let Request { call_id, branch, tag } = self;
        let version = env!("CARGO_PKG_VERSION");
        format!(
            "OPTIONS sip:{target}{parameter} SIP/2.0\r\n\
            Via: SIP/2.0/{via} {local};rport;branch={branch}\r\n\
            Max-Forwards: 70\r\n\
            From: <sip:callboard@{domain}>;tag={tag}\r\n\
            To: <sip:{target}>\r\n\
            Call-ID: {call_id}\r\n\
            CSeq: {CSEQ}\r\n\
            Contact: <sip:callboard@{local}{parameter}>\r\n\
            Accept: application/sdp\r\n\
            User-Agent: Callboard/{version}\r\n\
            Content-Length: 0\r\n\r\n"
        )
    }

    pub fn is_answered_by(&self, answer: &Answer) -> bool {
        answer.call_id == self.call_id && answer.cseq == CSEQ
    }
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 100 to 699.
    pub status: u16,
    /// As the peer words it: at most 100 characters, without control characters.
    pub reason: String,
    call_id: String,
    cseq: String,
}

/// What a stream or a datagram begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Answer(Answer),
    /// A request of the peer's, or a response of which the head says too little.
    Other,
}

/// Bytes of a message before its body.
const MAX_HEAD: usize = 16 * 1024;

/// Reads one message. `None`: it is not whole yet; `Err`: it is no SIP. Answers how many bytes it has.
pub fn read(bytes: &[u8]) -> Result<Option<(Message, usize)>, String> {
    // Line ends between messages keep a connection alive.
    let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let bytes = &bytes[blank..];
    let Some((head, body_at)) = head_of(bytes) else {
        return match looks_like_sip(bytes) {
            true if bytes.len() <= MAX_HEAD => Ok(None),
            true => Err(format!("the head of the peer's answer has more than {MAX_HEAD} bytes")),
            false => Err("the peer does not speak SIP".into()),
        };
    };
    let head = std::str::from_utf8(head).map_err(|_| "the peer's answer is not text".to_owned())?;
    let mut lines = unfolded(head).into_iter();
    let first = lines.next().unwrap_or_default();
    let headers: Vec<(String, String)> = lines.filter_map(|line| header(&line)).collect();
    let of = |name: &str| {
        headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    let length = match of("content-length") {
        Some(text) => text
            .parse::<usize>()
            .map_err(|_| "the peer's answer has no valid Content-Length".to_owned())?,
        None => 0,
    };
    let end = body_at.saturating_add(length);
    if bytes.len() < end {
        return Ok(None);
    }
    let message = match (status_line(&first)?, of("call-id"), of("cseq")) {
        (Some((status, reason)), Some(call_id), Some(cseq)) => Message::Answer(Answer {
            status,
            reason,
            call_id: call_id.to_owned(),
            cseq: cseq.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
        }),
        _ => Message::Other,
    };
    Ok(Some((message, blank + end)))
}

/// Reads a datagram: what is in it is whole, whatever its Content-Length says.
pub fn read_datagram(bytes: &[u8]) -> Result<Message, String> {
    match read(bytes)? {
        Some((message, _)) => Ok(message),
        None => Err("the peer's answer is cut off".into()),
    }
}

/// The head without its empty line, and where the body begins.
fn head_of(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let at = |end: &[u8]| {
        bytes
            .windows(end.len())
            .position(|window| window == end)
            .map(|at| (at, end.len()))
    };
    let (at, length) = at(b"\r\n\r\n").into_iter().chain(at(b"\n\n")).min()?;
    Some((&bytes[..at], at + length))
}

/// May this become a SIP message? Its first line ends in, or begins with, the version.
fn looks_like_sip(bytes: &[u8]) -> bool {
    const VERSION: &[u8] = b"SIP/2.0";
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => {
            let line = bytes[..end].trim_ascii();
            line.starts_with(VERSION) || line.ends_with(VERSION)
        }
        None => {
            let start = &bytes[..bytes.len().min(VERSION.len())];
            VERSION.starts_with(start) || bytes.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ')
        }
    }
}

/// The head's lines; one that begins with a blank goes on the one before.
fn unfolded(head: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in head.lines() {
        match lines.last_mut() {
            Some(last) if line.starts_with([' ', '\t']) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => lines.push(line.trim_end().to_owned()),
        }
    }
    lines
}

/// A header's name, long and in lower case, and its value.
fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim().to_lowercase();
    let name = match name.as_str() {
        "i" => "call-id".into(),
        "l" => "content-length".into(),
        _ => name,
    };
    Some((name, value.trim().to_owned()))
}

/// Status and reason of a response; `None` for a request.
fn status_line(line: &str) -> Result<Option<(u16, String)>, String> {
    let no_sip = || "the peer does not speak SIP".to_owned();
    let Some(rest) = line.strip_prefix("SIP/2.0 ") else {
        return if line.ends_with(" SIP/2.0") {
            Ok(None)
        } else {
            Err(no_sip())
        };
    };
    let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    let status = code
        .parse()
        .ok()
        .filter(|status| is_code && (100..700).contains(status));
    let shown = reason.trim().chars().filter(|c| !c.is_control()).take(100).collect();
    Ok(Some((status.ok_or_else(no_sip)?, shown)))
}

#[cfg(test)]
#[path = "protocol_tests.rs"]
mod tests;
