//! Messages with something wrong in them, by the thousand: nothing panics. `SIP_FUZZ` says how many, 20,000 if it is not set; the
//! generator is the same each time, so that what fails fails again.
use crate::{
    call::{Call, CallIdentity, Command, Local},
    dialog::Sender,
    digest::{Authorizer, Credentials, Verifier},
    identity::Identity,
    ladder::{Direction, Ladder},
    message::{
        Address, Fields, Frame, Message, Method, Name, Request, StreamReader, Transport, WhyRefused, read_datagram,
        refuse,
    },
    transaction::{Client, Server, ack, cancel},
};
use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

const PIECES: [&str; 32] = [
    "\r\n",
    ";",
    ",",
    "<",
    ">",
    "\"",
    "=",
    ":",
    " ",
    "\t",
    "@",
    "sip:",
    "[",
    "]",
    "[::",
    "%",
    "\\",
    ";tag=",
    ";branch=",
    "\r\n ",
    "Via:",
    "Contact:",
    "é",
    "\u{0}",
    "99999999999999999999",
    "-1",
    "SIP/2.0",
    "Digest ",
    "realm=\"",
    "qop=",
    "nc=",
    "/",
];

struct Generator(u64);

impl Generator {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn mutate(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..=self.below(6) {
            if bytes.is_empty() {
                break;
            }
            let at = self.below(bytes.len());
            match self.below(6) {
                0 => bytes[at] = self.below(256) as u8,
                1 => {
                    bytes.remove(at);
                }
                2 => {
                    let piece = PIECES[self.below(PIECES.len())];
                    bytes.splice(at..at, piece.bytes());
                }
                3 => {
                    let end = (at + self.below(40)).min(bytes.len());
                    bytes.drain(at..end);
                }
                4 => {
                    let end = (at + self.below(60)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, copy);
                }
                _ => bytes.truncate(at),
            }
        }
        bytes
    }
}

/// What mutations begin with: the corpora, and a challenge.
fn seeds() -> Vec<Vec<u8>> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for folder in ["rfc4475", "rfc5118"] {
        let mut paths: Vec<_> = fs::read_dir(tests.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        seeds.extend(paths.iter().map(|path| fs::read(path).unwrap()));
    }
    seeds.push(
        b"SIP/2.0 401 Unauthorized\r\nVia: SIP/2.0/UDP [2001:db8::1]:5060;branch=z9hG4bK1;received=192.0.2.1;rport=5060\r\n\
        From: <sip:x@y>;tag=1\r\nTo: <sip:x@y>;tag=2\r\nCall-ID: 1\r\nCSeq: 1 REGISTER\r\nWWW-Authenticate: Digest realm=\"a\", \
        nonce=\"b\", qop=\"auth,auth-int\", algorithm=SHA-256, opaque=\"c\"\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"b\", \
        algorithm=MD5\r\nRecord-Route: <sip:p1;lr>, <sip:p2;lr>\r\nContact: <sip:[2001:db8::1]:5060;transport=tcp>;expires=60\r\n\
        Reason: Q.850;cause=16;text=\"a\\\"b\";location=LN\r\nCall-Info: <https://a/b>;purpose=jwscard\r\n\
        P-Attestation-Indicator: A\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"
            .to_vec(),
    );
    seeds.push(
        b"INVITE sip:b@y SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:x@y>;tag=1\r\nTo: <sip:b@y>\r\nCall-ID: 1\r\n\
        CSeq: 1 INVITE\r\nAuthorization: Digest username=\"u\", realm=\"r\", nonce=\"1-00\", uri=\"sip:b@y\", response=\"0\", \
        algorithm=MD5, cnonce=\"c\", qop=auth, nc=00000001\r\nContent-Length: 0\r\n\r\n"
            .to_vec(),
    );
    seeds
}

/// Everything that reads a message, whatever is in it.
fn touch(message: &Message, now: Instant) {
    let _ = (
        message.call_id(),
        message.cseq(),
        message.from_tag(),
        message.to_tag(),
        message.top_via(),
    );
    let _ = (
        message.from_uri(),
        message.to_uri(),
        message.contact(),
        message.record_route(),
    );
    let _ = (
        message.reason_cause(),
        message.attestation(),
        message.retry_after(),
        WhyRefused::of(message),
        message.user_of(Name::FROM),
        message.list(Name::CONTACT),
    );
    for (_, value) in message.headers().iter() {
        let address = Address::read(value.as_str());
        let _ = (address.sip_uri(), address.user(), address.param("tag"));
    }
    Ladder::default().record(Direction::Received, message, now);
    let credentials = Credentials {
        username: "u".into(),
        password: "p".into(),
    };
    match message {
        Message::Request(request) => {
            let _ = (
                refuse::too_many_hops(request, "t"),
                refuse::bad_extension(request, &[], "t"),
            );
            let response = request.response(486, "Busy Here", Some("t"));
            read_datagram(&response.to_bytes()).unwrap();
            let mut server = Server::new(request.clone(), Transport::Udp, now);
            server.receive(request, now);
            server.respond(&response, now);
            server.receive(request, now);
            let source = IpAddr::V4(Ipv4Addr::LOCALHOST);
            Verifier::new(b"s", "r").verify(request, &credentials, source, Duration::from_secs(1));
            let mut client = Client::new(request.clone(), Transport::Udp, now);
            client.receive(&response, now);
            let _ = (ack(request, &response).to_bytes(), cancel(request).to_bytes());
        }
        Message::Response(response) => {
            let mut request = asked();
            let _ = Authorizer::new(credentials, b"s", b"t").authorize(&mut request, Some(response));
            Client::new(request, Transport::Tcp, now).receive(response, now);
        }
    }
    let written = message.to_bytes();
    assert!(
        read_datagram(&written).is_ok(),
        "what is written is read: {}",
        written.escape_ascii()
    );
}

static IDENTITY: LazyLock<Arc<Identity>> = LazyLock::new(|| Arc::new(Identity::new(b"s")));

/// A leg that begins with the message, hears it again inside and out, and is given up.
fn call(message: &Message, now: Instant) {
    let local = Local {
        identity: CallIdentity::new(IDENTITY.clone(), uuid::Uuid::nil(), 1),
        sender: Sender {
            transport: Transport::Udp,
            sent_by: "h".into(),
            contact: "sip:us@h".parse().unwrap(),
            user_agent: None,
        },
        session_expires: Some(1800),
    };
    let Message::Request(request) = message else { return };
    if request.method != Method::INVITE {
        return;
    }
    let mut call = Call::incoming(request.clone(), local, now);
    call.command(Command::EarlyMedia { sdp: "v=0".into() }, now);
    call.command(Command::Accept { sdp: "v=0".into() }, now);
    call.receive(message.clone(), now);
    let inside = request.response(
        200,
        "OK",
        Some(&CallIdentity::new(IDENTITY.clone(), uuid::Uuid::nil(), 1).local_tag()),
    );
    let mut again = request.clone();
    again.headers = inside.headers;
    for method in [
        Method::ACK,
        Method::UPDATE,
        Method::INFO,
        Method::NOTIFY,
        Method::PRACK,
        Method::BYE,
    ] {
        again.method = method;
        call.receive(Message::Request(again.clone()), now);
    }
    call.command(Command::HangUp { q850: 16 }, now);
    for second in [1, 31, 63, 95, 127] {
        call.tick(now + Duration::from_secs(second));
    }
    assert!(call.is_over(), "{}", message.to_bytes().escape_ascii());
}

fn asked() -> Request {
    let text = "REGISTER sip:y SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:x@y>;tag=1\r\nTo: <sip:x@y>\r\n\
        Call-ID: 1\r\nCSeq: 1 REGISTER\r\n\r\n";
    match read_datagram(text.as_bytes()).unwrap() {
        Message::Request(request) => request,
        Message::Response(_) => panic!("no request"),
    }
}

#[test]
fn no_message_makes_us_panic() {
    let count: usize = std::env::var("SIP_FUZZ").map_or(20_000, |text| text.parse().unwrap());
    let (seeds, now) = (seeds(), Instant::now());
    let mut generator = Generator(0x9E37_79B9_7F4A_7C15);
    let mut read = 0;
    for _ in 0..count {
        let seed = seeds[generator.below(seeds.len())].clone();
        let bytes = generator.mutate(seed);
        if let Ok(message) = read_datagram(&bytes) {
            read += 1;
            touch(&message, now);
            call(&message, now);
        }
        let mut reader = StreamReader::new();
        'stream: for piece in bytes.chunks(1 + generator.below(400)) {
            reader.push(piece);
            loop {
                match reader.next() {
                    Ok(Some(Frame::Message(_) | Frame::Ping | Frame::Pong)) => {}
                    Ok(None) => break,
                    Err(why) if why.ends_stream() => break 'stream,
                    Err(_) => {}
                }
            }
        }
    }
    assert!(read > count / 50, "{read} of {count} were read");
}
