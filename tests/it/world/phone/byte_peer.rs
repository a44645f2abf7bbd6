//! A peer of our own, byte by byte: for what no real one does, such as saying nothing, lying, or answering too late.
//!
//! It knows SIP by its text alone, with nothing of the service's.
use super::{PATIENCE, pause};
use std::{
    collections::BTreeSet,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// A datagram as it came.
#[derive(Clone, Debug)]
pub struct Heard {
    pub at: Instant,
    pub from: SocketAddr,
    pub text: String,
}

impl Heard {
    /// `INVITE`; of a response its code.
    pub fn what(&self) -> &str {
        let mut words = self.text.split([' ', '\r']);
        match words.next() {
            Some("SIP/2.0") => words.next().unwrap_or_default(),
            method => method.unwrap_or_default(),
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.text, name)
    }

    pub fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }

    /// Which transaction it is of: two with the same branch are one request, sent twice.
    pub fn branch(&self) -> &str {
        let via = self.header("Via").unwrap_or_default();
        via.split(';')
            .find_map(|part| part.trim().strip_prefix("branch="))
            .unwrap_or_default()
    }
}

/// What it sends back for each datagram, given how many of that kind came before it for the same call.
type Decide = dyn FnMut(&Heard, usize) -> Vec<Vec<u8>> + Send;

/// It listens until it is dropped.
pub struct BytePeer {
    socket: Arc<UdpSocket>,
    heard: Arc<Mutex<Vec<Heard>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BytePeer {
    pub fn start(address: SocketAddr, decide: impl FnMut(&Heard, usize) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = Arc::new(UdpSocket::bind(address).unwrap());
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (heard, over) = (Arc::default(), Arc::default());
        let listening = Listening {
            socket: socket.clone(),
            heard: Arc::clone(&heard),
            over: Arc::clone(&over),
        };
        let mut decide: Box<Decide> = Box::new(decide);
        let thread = std::thread::spawn(move || listening.run(&mut *decide));
        BytePeer {
            socket,
            heard,
            over,
            thread: Some(thread),
        }
    }

    /// One that never says a word.
    pub fn silent(address: SocketAddr) -> Self {
        Self::start(address, |_, _| Vec::new())
    }

    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    pub fn send(&self, bytes: &[u8], to: SocketAddr) {
        self.socket.send_to(bytes, to).unwrap();
    }

    /// All of that method or code, with those that were sent twice.
    pub fn heard(&self, what: &str) -> Vec<Heard> {
        let mut all = self.heard.lock().unwrap().clone();
        all.retain(|heard| heard.what() == what);
        all
    }

    /// The same, each once: whoever is late is sent it again.
    pub fn different(&self, what: &str) -> Vec<Heard> {
        let (mut all, mut branches) = (self.heard(what), BTreeSet::new());
        all.retain(|heard| branches.insert(heard.branch().to_owned()));
        all
    }

    /// Everything, in order.
    pub fn all(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until that many have come; answers the last of them.
    pub async fn hears(&self, what: &str, times: usize) -> Heard {
        let began = Instant::now();
        loop {
            let heard = self.heard(what);
            if let Some(last) = heard.get(times - 1) {
                return last.clone();
            }
            let lines = || {
                self.all()
                    .iter()
                    .map(|heard| heard.text.lines().next().map(str::to_owned))
                    .collect::<Vec<_>>()
            };
            assert!(
                began.elapsed() < PATIENCE,
                "{times} {what} did not come, but {:?}",
                lines()
            );
            pause(5).await;
        }
    }
}

impl Drop for BytePeer {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its scenario has failed already, if it panicked.
            let _ = thread.join();
        }
    }
}

struct Listening {
    socket: Arc<UdpSocket>,
    heard: Arc<Mutex<Vec<Heard>>>,
    over: Arc<AtomicBool>,
}

impl Listening {
    fn run(&self, decide: &mut Decide) {
        let mut buffer = vec![0; 65_536];
        while !self.over.load(Relaxed) {
            // Also an answer of ICMP to what was sent is an error here.
            let Ok((length, from)) = self.socket.recv_from(&mut buffer) else {
                continue;
            };
            let heard = Heard {
                at: Instant::now(),
                from,
                text: String::from_utf8_lossy(&buffer[..length]).into_owned(),
            };
            let before = {
                let mut all = self.heard.lock().unwrap();
                let is_like_it =
                    |other: &&Heard| other.what() == heard.what() && other.header("Call-ID") == heard.header("Call-ID");
                let before = all.iter().filter(is_like_it).count();
                all.push(heard.clone());
                before
            };
            for answer in decide(&heard, before) {
                let _ = self.socket.send_to(&answer, from);
            }
        }
    }
}

/// A header of a message, by its long name; compact ones are known.
pub fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let compact = match name {
        "Via" => "v",
        "From" => "f",
        "To" => "t",
        "Call-ID" => "i",
        "Contact" => "m",
        "Content-Type" => "c",
        "Content-Length" => "l",
        _ => name,
    };
    let head = text.lines().skip(1).take_while(|line| !line.trim().is_empty());
    let mut fields = head.filter_map(|line| line.split_once(':'));
    let (_, value) = fields
        .find(|(field, _)| field.trim().eq_ignore_ascii_case(name) || field.trim().eq_ignore_ascii_case(compact))?;
    Some(value.trim())
}

/// A response to that request, from the one phone that is here. `more`: further lines, each with its end.
pub fn response(request: &str, status: &str, more: &str, body: &str) -> Vec<u8> {
    let head = request.lines().skip(1).take_while(|line| !line.trim().is_empty());
    let copied = head.filter(|line| {
        let name = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
        matches!(
            &*name,
            "via" | "v" | "from" | "f" | "call-id" | "i" | "cseq" | "record-route"
        )
    });
    let mut text = format!("SIP/2.0 {status}\r\n");
    copied.for_each(|line| text += &format!("{line}\r\n"));
    let to = header(request, "To").unwrap_or_default();
    let tag = if to.contains("tag=") || status.starts_with("100") {
        ""
    } else {
        ";tag=bytes"
    };
    text += &format!("To: {to}{tag}\r\n{more}Content-Length: {}\r\n\r\n{body}", body.len());
    text.into_bytes()
}

/// A 200 with a description of sound, from that address.
pub fn picks_up(request: &str, at: SocketAddr, rtp: u16) -> Vec<u8> {
    picks_up_with(request, at, &sdp(rtp))
}

/// The same with a description of one's own.
pub fn picks_up_with(request: &str, at: SocketAddr, sdp: &str) -> Vec<u8> {
    let more = format!("Contact: <sip:phone@{at}>\r\nContent-Type: application/sdp\r\n");
    response(request, "200 OK", &more, sdp)
}

/// Somebody who picks up at once, with that description of sound, and says goodbye politely. `sound`: from `m=` on.
pub fn polite_phone(at: SocketAddr, sound: impl Fn(&Heard) -> String + Send + 'static) -> BytePeer {
    BytePeer::start(at, move |heard, _| match heard.what() {
        "INVITE" => {
            let sound = sound(heard);
            let sdp = format!("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n{sound}\r\n");
            vec![picks_up_with(&heard.text, at, &sdp)]
        }
        "BYE" => vec![response(&heard.text, "200 OK", "", "")],
        _ => Vec::new(),
    })
}

pub fn rings(request: &str, at: SocketAddr) -> Vec<u8> {
    response(request, "180 Ringing", &format!("Contact: <sip:phone@{at}>\r\n"), "")
}

pub fn sdp(rtp: u16) -> String {
    format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {rtp} RTP/AVP 0 101\r\n\
         a=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\n"
    )
}

/// A request from outside any dialog. `more`: further lines, each with its end.
pub fn request(method: &str, to: &str, from: SocketAddr, more: &str, body: &str) -> Vec<u8> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Relaxed);
    let length = body.len();
    format!(
        "{method} {to} SIP/2.0\r\nVia: SIP/2.0/UDP {from};branch=z9hG4bK-bytes-{n};rport\r\nMax-Forwards: 70\r\n\
         From: <sip:+12025550111@{from}>;tag=bytes{n}\r\nTo: <{to}>\r\nCall-ID: bytes-{n}@{from}\r\nCSeq: 1 {method}\r\n\
         Contact: <sip:bytes@{from}>\r\n{more}Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Asks whoever listens there on 127.0.0.1, once, and waits for a moment.
pub fn ask(port: u16, method: &str) -> Option<String> {
    let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
    socket.set_read_timeout(Some(Duration::from_millis(200))).ok()?;
    let from = socket.local_addr().ok()?;
    let asked = request(method, &format!("sip:127.0.0.1:{port}"), from, "", "");
    socket.send_to(&asked, ("127.0.0.1", port)).ok()?;
    let mut buffer = [0; 4_096];
    let (length, _) = socket.recv_from(&mut buffer).ok()?;
    Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
}
