//! Silences, answers, and how often is asked.
use super::*;
use crate::message::{Fields, Message, Request, Transport, read_datagram};

struct Watch {
    machine: Keepalive,
    now: Instant,
    sent: Vec<Request>,
    said: Vec<&'static str>,
}

impl Watch {
    fn new(interval: u64) -> Watch {
        let peer = Peer {
            uri: "sip:pbx.example;transport=tcp".parse().unwrap(),
            from: "<sip:callboard@192.0.2.9>".into(),
            route: Vec::new(),
            interval: Duration::from_secs(interval),
        };
        let sender = Sender {
            transport: Transport::Tcp,
            sent_by: "192.0.2.9:5060".into(),
            contact: "sip:callboard@192.0.2.9:5060".parse().unwrap(),
            call_id: "alive@192.0.2.9".into(),
            tag: "t".into(),
            cseq: 0,
            key: Sender::key(b"instance"),
            user_agent: "Callboard".into(),
        };
        let mut watch = Watch {
            machine: Keepalive::new(peer, sender),
            now: Instant::now(),
            sent: Vec::new(),
            said: Vec::new(),
        };
        watch.machine.start(watch.now);
        watch.machine.start(watch.now);
        watch.drain();
        watch
    }

    fn drain(&mut self) {
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Send(bytes) => match read_datagram(&bytes).unwrap() {
                    Message::Request(request) => self.sent.push(request),
                    Message::Response(_) => panic!("a client sends requests"),
                },
                Output::Up => self.said.push("up"),
                Output::Down => self.said.push("down"),
            }
        }
    }

    fn says(&mut self, code: u16) -> bool {
        let response = self.sent.last().unwrap().response(code, "Reason", Some("p"));
        let ours = self.machine.receive(&response, self.now);
        self.drain();
        ours
    }

    fn wait(&mut self) -> u64 {
        let at = self.machine.deadline().unwrap();
        let waited = at.saturating_duration_since(self.now);
        self.now = at;
        self.machine.tick(at);
        assert!(
            self.machine.deadline() != Some(at),
            "a tick at the deadline changes something"
        );
        self.drain();
        waited.as_secs()
    }
}

#[test]
fn any_answer_is_a_sign_of_life() {
    for code in [200, 401, 404, 405, 503, 603] {
        let mut watch = Watch::new(30);
        assert_eq!((watch.sent.len(), watch.machine.is_up()), (1, None));
        assert_eq!(watch.sent[0].cseq(), (1, Method::OPTIONS));
        assert!(watch.says(code));
        assert_eq!(watch.said, ["up"], "{code}");
        assert_eq!((watch.wait(), watch.sent.len()), (30, 2));
        assert!(watch.says(code));
        assert_eq!(watch.said, ["up"], "once: {code}");
        assert!(!watch.says(code), "a repeat is nobody's");
    }
    // One that only tries is there; the request that it never answers is no silence.
    let mut watch = Watch::new(30);
    assert!(watch.says(100));
    assert_eq!(
        (watch.said.as_slice(), watch.machine.is_up()),
        (&["up"][..], Some(true))
    );
}

#[test]
fn two_silences_in_a_row_are_down_and_one_answer_is_up() {
    let mut watch = Watch::new(30);
    assert!(watch.says(200));
    for expected in [30, 30, 30] {
        assert_eq!(watch.wait(), expected);
    }
    assert_eq!((watch.said.as_slice(), watch.sent.len()), (&["up", "down"][..], 4));
    assert_eq!(watch.machine.is_up(), Some(false));
    watch.wait();
    assert_eq!(watch.said, ["up", "down"], "said once, and asked on");
    assert!(watch.machine.silences() > 2);
    assert!(watch.says(200));
    assert_eq!(watch.machine.silences(), 0);
    watch.wait();
    watch.wait();
    assert!(watch.says(200));
    watch.wait();
    watch.wait();
    assert_eq!(watch.said, ["up", "down", "up"], "one silence between answers is none");
}

#[test]
fn a_connection_that_fails_is_a_silence_and_not_a_reason_to_hurry() {
    let mut watch = Watch::new(0);
    for _ in 0..2 {
        watch.machine.failed(watch.now);
        watch.drain();
        assert_eq!(watch.wait(), 5, "whatever is set");
    }
    assert_eq!(watch.said, ["down"]);
    // A pause that is longer than a transaction.
    let mut watch = Watch::new(300);
    assert_eq!((watch.wait(), watch.wait()), (32, 268));
    assert_eq!(watch.sent.len(), 2);
}
