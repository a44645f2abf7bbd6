//! Scripts: what comes (`<` a message, `!` a command, `@` milliseconds, `x` a failure of the transport) and all that follows
//! (`>` a message, `*` a happening), in order; `?` whether anything is awaited still (`open`, `settled`).
mod callee;
mod caller;
mod chance;
mod hostile;
mod talk;
mod two_ends;

use std::{sync::Arc, time::Duration};

use uuid::Uuid;

use super::*;
use crate::{
    dialog::Sender,
    identity::Identity,
    message::{Fields, Message, Method, Name, Transport, read_datagram},
};

pub(super) fn local(leg: u32, transport: Transport) -> Local {
    let sent_by = format!("192.0.2.{leg}:5060");
    Local {
        identity: CallIdentity::new(Arc::new(Identity::new(b"secret")), Uuid::from_u128(7), leg),
        sender: Sender {
            transport,
            contact: format!("sip:us@{sent_by}").parse().unwrap(),
            sent_by,
            user_agent: None,
        },
        session_expires: Some(1800),
    }
}

pub(super) fn dial(local: Local) -> Dial {
    Dial {
        local,
        host: "callboard".to_owned(),
        to: "sip:them@198.51.100.9".parse().unwrap(),
        from: "<sip:us@192.0.2.1>".to_owned(),
        route: Vec::new(),
        headers: Vec::new(),
        sdp: sdp("1"),
    }
}

/// A description that is told by its version.
pub(super) fn sdp(version: &str) -> Bytes {
    Bytes::from(format!("v=0\r\no=- 1 {version} IN IP4 192.0.2.1\r\n"))
}

fn version(sdp: &Bytes) -> String {
    let text = String::from_utf8_lossy(sdp);
    text.split(' ').nth(2).unwrap_or("-").to_owned()
}

pub(super) fn named(happening: &Happening) -> String {
    let cause = |q850: &Option<u8>| q850.map_or("-".to_owned(), |cause| cause.to_string());
    match happening {
        Happening::Rang { code } => format!("Rang {code}"),
        Happening::Early { sdp } => format!("Early {}", version(sdp)),
        Happening::PickedUp { sdp } => format!("PickedUp {}", version(sdp)),
        Happening::Refused { code, q850, rang, .. } => format!("Refused {code} {} {rang}", cause(q850)),
        Happening::Challenged { response, request } => format!("Challenged {} {}", response.code, request.cseq().0),
        Happening::Cancelled { q850, .. } => format!("Cancelled {}", cause(q850)),
        Happening::Offer { sdp } => format!("Offer {}", sdp.as_ref().map_or("-".to_owned(), version)),
        Happening::OfferAnswered { sdp } => format!("OfferAnswered {}", version(sdp)),
        Happening::OfferRefused { code } => format!("OfferRefused {code}"),
        Happening::Info { body, .. } => format!("Info {}", String::from_utf8_lossy(body)),
        Happening::ReferProgress { code } => format!("ReferProgress {code}"),
        Happening::RemoteHungUp { q850, .. } => format!("RemoteHungUp {}", cause(q850)),
        Happening::Trying => "Trying".to_owned(),
        Happening::NoAnswer => "NoAnswer".to_owned(),
        Happening::TransportFailed => "TransportFailed".to_owned(),
        Happening::Acked => "Acked".to_owned(),
        Happening::NeverAcked => "NeverAcked".to_owned(),
        Happening::SessionExpired => "SessionExpired".to_owned(),
        Happening::Gone => "Gone".to_owned(),
    }
}

pub(super) enum Seen {
    Sent(Message),
    Happened(Happening),
}

impl Seen {
    fn text(&self) -> String {
        match self {
            Seen::Happened(happening) => format!("* {}", named(happening)),
            Seen::Sent(Message::Request(request)) => format!("> {} {}", request.method, request.cseq().0),
            Seen::Sent(Message::Response(response)) => {
                let (number, method) = response.cseq();
                format!("> {} {method} {number}", response.code)
            }
        }
    }
}

pub(super) fn outputs(call: &mut Call) -> Vec<Seen> {
    std::iter::from_fn(|| call.poll())
        .map(|output| match output {
            Output::Send { bytes, .. } => Seen::Sent(read_datagram(&bytes).unwrap()),
            Output::Happening(happening) => Seen::Happened(happening),
        })
        .collect()
}

pub(super) fn tick_to(call: &mut Call, now: &mut Instant, until: Instant) {
    while let Some(at) = call.deadline().filter(|at| *at <= until) {
        *now = at.max(*now);
        call.tick(*now);
        assert!(
            call.deadline().is_none_or(|next| next > *now),
            "a tick at the deadline changes nothing"
        );
    }
    *now = until;
}

/// A peer that says what the script says.
pub(super) struct Script {
    pub call: Option<Call>,
    transport: Transport,
    now: Instant,
    seen: VecDeque<Seen>,
    /// Ours, for the answers to them.
    sent: Vec<Request>,
    challenged: Option<Request>,
    title: String,
}

impl Script {
    pub fn caller(title: &str, transport: Transport) -> Self {
        let now = Instant::now();
        let mut script = Self::new(title, transport, now);
        script.call = Some(Call::dial(dial(local(1, transport)), now));
        script.collect();
        script
    }

    pub fn callee(title: &str, transport: Transport) -> Self {
        Self::new(title, transport, Instant::now())
    }

    fn new(title: &str, transport: Transport, now: Instant) -> Self {
        let (seen, sent) = (VecDeque::new(), Vec::new());
        Self {
            call: None,
            transport,
            now,
            seen,
            sent,
            challenged: None,
            title: title.to_owned(),
        }
    }

    fn collect(&mut self) {
        for seen in self.call.iter_mut().flat_map(outputs) {
            match &seen {
                Seen::Sent(Message::Request(request)) => self.sent.push(request.clone()),
                Seen::Happened(Happening::Challenged { request, .. }) => self.challenged = Some((**request).clone()),
                _ => {}
            }
            self.seen.push_back(seen);
        }
    }

    pub fn run(mut self, script: &str) -> Self {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_at(1) {
                (">" | "*", _) => self.expect(line),
                (kind, rest) => {
                    self.expect_nothing(line);
                    self.enter(kind, rest.trim());
                    self.collect();
                }
            }
        }
        self.expect_nothing("the end");
        self
    }

    fn enter(&mut self, kind: &str, rest: &str) {
        let now = self.now;
        match kind {
            "@" => {
                let until = now + Duration::from_millis(rest.parse().unwrap());
                tick_to(self.call.as_mut().unwrap(), &mut self.now, until);
            }
            "x" => self.call.as_mut().unwrap().transport_failed(now),
            "?" => {
                let is_settled = self.call.as_ref().unwrap().is_settled();
                assert_eq!(is_settled, rest == "settled", "{}: {rest}", self.title);
            }
            "!" => {
                let command = self.command(rest);
                self.call.as_mut().unwrap().command(command, now);
            }
            "<" => {
                let message = self.message(rest);
                match &mut self.call {
                    Some(call) => call.receive(message, now),
                    None => {
                        let Message::Request(request) = message else {
                            panic!("{}", self.title)
                        };
                        self.call = Some(Call::incoming(request, local(1, self.transport), now));
                    }
                }
            }
            other => panic!("{}: {other}", self.title),
        }
    }

    fn expect_nothing(&self, before: &str) {
        let left: Vec<String> = self.seen.iter().map(Seen::text).collect();
        assert!(left.is_empty(), "{}: before {before}: {left:?}", self.title);
    }

    /// Number, method and code; then headers as `Name:value` with `_` for a blank, `sdp=` and `!Name` for one that is missing.
    fn expect(&mut self, line: &str) {
        let title = &self.title;
        let seen = self
            .seen
            .pop_front()
            .unwrap_or_else(|| panic!("{title}: nothing for {line}"));
        let text = seen.text();
        let rest = line
            .strip_prefix(&text)
            .unwrap_or_else(|| panic!("{title}: {line} is {text}"));
        let words = rest.split_ascii_whitespace();
        for word in words {
            let Seen::Sent(message) = &seen else {
                panic!("{title}: {line} is {text}")
            };
            let body = match message {
                Message::Request(request) => &request.body,
                Message::Response(response) => &response.body,
            };
            if let Some(expected) = word.strip_prefix("sdp=") {
                assert_eq!(version(body), expected, "{title}: {line}");
            } else if let Some(name) = word.strip_prefix('!') {
                assert_eq!(message.header_text(name.to_owned()), None, "{title}: {line}");
            } else {
                let (name, value) = word
                    .split_once(':')
                    .unwrap_or_else(|| panic!("{title}: {line} is {text}"));
                let found = message
                    .header_text(name.to_owned())
                    .unwrap_or_default()
                    .replace(' ', "_");
                assert_eq!(found, value, "{title}: {line}");
            }
        }
    }

    fn command(&mut self, text: &str) -> Command {
        let mut words = text.split(' ');
        let (name, argument) = (words.next().unwrap(), words.next().unwrap_or("1"));
        let number = || argument.parse::<u16>().unwrap();
        match name {
            "Ring" => Command::Ring,
            "EarlyMedia" => Command::EarlyMedia { sdp: sdp(argument) },
            "Accept" => Command::Accept { sdp: sdp(argument) },
            "Refuse" => Command::Refuse {
                code: number(),
                reason: "No".to_owned(),
                retry_after: None,
            },
            "Cancel" => Command::Cancel,
            "HangUp" => Command::HangUp { q850: number() as u8 },
            "Offer" => Command::Offer { sdp: sdp(argument) },
            "AnswerOffer" => Command::AnswerOffer { sdp: sdp(argument) },
            "RefuseOffer" => Command::RefuseOffer,
            "Info" => Command::Info {
                content_type: "application/dtmf-relay".to_owned(),
                body: Bytes::from("5"),
            },
            "Refer" => Command::Refer {
                to: "sip:third@198.51.100.9".parse().unwrap(),
            },
            "Authorized" => {
                let mut request = self.challenged.take().unwrap();
                request.headers.insert(Name::AUTHORIZATION, "Digest");
                Command::Authorized(Box::new(request))
            }
            "Unauthorized" => Command::Unauthorized(Box::new(self.challenged.take().unwrap())),
            other => panic!("{}: {other}", self.title),
        }
    }

    /// `200 INVITE 1 tag=b sdp=2 Name:value`, or `BYE 2 …`; `anew`: outside the dialog.
    fn message(&self, text: &str) -> Message {
        let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
        let code = words[0].parse::<u16>().ok();
        if code.is_some() {
            words.remove(0);
        }
        let (method, number) = (Method::from(words[0]), words[1].parse::<u32>().unwrap());
        let find = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let mut lines = match code {
            Some(code) => self.head_of_response(code, &method, number, find("tag").unwrap_or("b")),
            None => self.head_of_request(&method, number, find("tag").unwrap_or("b"), find("branch")),
        };
        if words.contains(&"anew") {
            let tag = local(1, self.transport).identity.local_tag();
            lines = lines.replace(&format!("To: <sip:us@192.0.2.1>;tag={tag}"), "To: <sip:us@192.0.2.1>");
        }
        for word in &words[2..] {
            if let Some((name, value)) = word.split_once(':') {
                lines += &format!("{name}: {}\r\n", value.replace('_', " "));
            }
        }
        let body = find("sdp")
            .map(sdp)
            .or_else(|| find("body").map(|body| Bytes::from(body.replace('_', " "))));
        let mut body = body.unwrap_or_default();
        if words.contains(&"parts") {
            lines += "Content-Type: multipart/mixed;boundary=\"b 1\"\r\n";
            let parts = [
                &b"--b 1\r\nContent-Type: application/ISUP;version=itu-t92+\r\n\r\n\x01\xff\r\n\r\n--b 1\r\nc: application/SDP\r\n\r\n"[..],
                &body,
                b"\r\n--b 1--\r\n",
            ];
            body = parts.concat().into();
        } else if find("sdp").is_some() {
            lines += "Content-Type: application/sdp\r\n";
        }
        let bytes = [lines.as_bytes(), b"\r\n", &body[..]].concat();
        read_datagram(&bytes).unwrap_or_else(|e| panic!("{}: {text}: {e}", self.title))
    }

    fn head_of_response(&self, code: u16, method: &Method, number: u32, tag: &str) -> String {
        let of = |request: &&Request| request.method == *method && request.cseq().0 == number;
        let request = self
            .sent
            .iter()
            .rev()
            .find(of)
            .unwrap_or_else(|| panic!("{}: no {method} {number}", self.title));
        let response = request.response(code, "Said", (code > 100).then_some(tag));
        let text = String::from_utf8(response.to_bytes().to_vec()).unwrap();
        let mut text = text.split("Content-Length").next().unwrap().to_owned();
        if code > 100 && matches!(method.as_str(), "INVITE" | "UPDATE") {
            text += "Contact: <sip:them@198.51.100.9:5070>\r\n";
        }
        text
    }

    fn head_of_request(&self, method: &Method, number: u32, tag: &str, branch: Option<&str>) -> String {
        let own = local(1, self.transport).identity;
        let invite = self.sent.iter().find(|request| request.method == Method::INVITE);
        let (call_id, from) = match invite {
            Some(invite) => (invite.call_id().to_owned(), "<sip:them@198.51.100.9>"),
            None => ("theirs".to_owned(), "<sip:them@198.51.100.9>"),
        };
        let to = if self.call.is_some() && *method != Method::CANCEL {
            format!(";tag={}", own.local_tag())
        } else {
            String::new()
        };
        let default = match method.as_str() {
            "CANCEL" => format!("INVITE{number}"),
            method => format!("{method}{number}"),
        };
        let branch = branch.unwrap_or(&default);
        let transport = self.transport.name();
        format!(
            "{method} sip:us@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/{transport} 198.51.100.9:5070;branch=z9hG4bK{branch}\r\n\
             Max-Forwards: 70\r\nFrom: {from};tag={tag}\r\nTo: <sip:us@192.0.2.1>{to}\r\nCall-ID: {call_id}\r\n\
             CSeq: {number} {method}\r\nContact: <sip:them@198.51.100.9:5070>\r\n"
        )
    }
}

pub(super) fn callers(table: &[(&str, &str)]) {
    for (title, script) in table {
        Script::caller(title, Transport::Tcp).run(script);
    }
}

pub(super) fn callees(table: &[(&str, &str)]) {
    for (title, script) in table {
        Script::callee(title, Transport::Tcp).run(script);
    }
}
