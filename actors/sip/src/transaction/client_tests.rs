//! One row per transition of RFC 3261, figures 5 and 6, and RFC 6026, figure 2; repeats too.
use super::*;
use crate::message::{Message, read_datagram};

const REQUEST: &str = "sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP h;rport;branch=z9hG4bKours\r\nMax-Forwards: 70\r\n\
    Route: <sip:p;lr>\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:b@h>\r\nCall-ID: c\r\n";

fn request(method: &str) -> Request {
    let text = format!("{method} {REQUEST}CSeq: 7 {method}\r\n\r\n");
    match read_datagram(text.as_bytes()).unwrap() {
        Message::Request(request) => request,
        Message::Response(_) => panic!("no request"),
    }
}

fn response(code: u16, method: &str) -> Response {
    request(method).response(code, "Reason", (code > 100).then_some("theirs"))
}

/// What a row does to a client, one after the other.
#[derive(Clone, Copy, Debug)]
enum Do {
    Hear(u16),
    /// Waits for so many seconds, ticking at each deadline on the way.
    Wait(f64),
    Fail,
}
use Do::{Fail, Hear, Wait};

struct Run {
    client: Client,
    now: Instant,
    method: &'static str,
    said: Vec<String>,
}

impl Run {
    fn new(method: &'static str, transport: Transport) -> Run {
        let now = Instant::now();
        let mut run = Run {
            client: Client::new(request(method), transport, now),
            now,
            method,
            said: Vec::new(),
        };
        run.drain();
        run
    }

    fn step(&mut self, step: Do) {
        match step {
            Hear(code) => {
                let verdict = self.client.receive(&response(code, self.method), self.now);
                if verdict != Verdict::New {
                    self.said.push(format!("{verdict:?}"));
                }
            }
            Wait(seconds) => {
                let end = self.now + Duration::from_secs_f64(seconds);
                while let Some(at) = self.client.deadline().filter(|at| *at <= end) {
                    self.now = at;
                    let before = self.said.len();
                    self.client.tick(at);
                    self.drain();
                    assert!(self.said.len() > before, "a tick at the deadline changes something");
                }
                self.now = end;
            }
            Fail => self.client.failed(self.now),
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.client.poll() {
            self.said.push(match output {
                ClientOutput::Send(bytes) => match read_datagram(&bytes).unwrap() {
                    Message::Request(request) => format!("send {}", request.method),
                    Message::Response(_) => panic!("a client sends requests"),
                },
                ClientOutput::Provisional(response) | ClientOutput::Final(response) => response.code.to_string(),
                ClientOutput::TimedOut => "timed out".into(),
                ClientOutput::Failed => "failed".into(),
                ClientOutput::Over => "over".into(),
            });
        }
    }
}

fn check(method: &'static str, transport: Transport, steps: &[Do], expected: &[&str]) {
    let mut run = Run::new(method, transport);
    for step in steps {
        run.step(*step);
    }
    assert_eq!(run.said, expected, "{method} {transport:?} {steps:?}");
    let over = expected.ends_with(&["over"]) || expected.ends_with(&["over", "NotOurs"]);
    assert_eq!(run.client.is_over(), over);
    assert_eq!(
        run.client.is_over(),
        run.client.deadline().is_none() && !run.client.is_pending()
    );
}

#[test]
fn every_transition_of_an_invite() {
    use Transport::{Tcp, Udp};
    let table: &[(Transport, &[Do], &[&str])] = &[
        // Timer A doubles without a bound, timer B ends it.
        (Udp, &[Wait(0.4)], &["send INVITE"]),
        (Udp, &[Wait(3.5)], &["send INVITE"; 4]),
        (
            Udp,
            &[Wait(32.0)],
            &[
                "send INVITE",
                "send INVITE",
                "send INVITE",
                "send INVITE",
                "send INVITE",
                "send INVITE",
                "send INVITE",
                "timed out",
                "over",
            ],
        ),
        (Tcp, &[Wait(31.9)], &["send INVITE"]),
        (Tcp, &[Wait(32.0)], &["send INVITE", "timed out", "over"]),
        (Udp, &[Fail], &["send INVITE", "failed", "over"]),
        // It may ring for as long as the user wants.
        (
            Udp,
            &[Hear(100), Wait(600.0), Fail, Hear(180)],
            &["send INVITE", "100", "180"],
        ),
        (
            Udp,
            &[Hear(180), Hear(180), Hear(183)],
            &["send INVITE", "180", "180", "183"],
        ),
        // Accepted: each 2xx is told, timer M ends it.
        (Udp, &[Hear(200), Hear(200)], &["send INVITE", "200", "200"]),
        (
            Udp,
            &[Hear(180), Hear(200), Hear(180), Hear(486), Fail, Wait(32.0), Hear(200)],
            &["send INVITE", "180", "200", "Again", "Again", "over", "NotOurs"],
        ),
        (Tcp, &[Hear(200), Wait(31.9)], &["send INVITE", "200"]),
        // Completed: the ACK is repeated, the answer is not; timer D.
        (Udp, &[Hear(486)], &["send INVITE", "486", "send ACK"]),
        (
            Udp,
            &[Hear(180), Hear(486), Hear(486), Hear(180), Wait(31.9)],
            &["send INVITE", "180", "486", "send ACK", "Again", "send ACK", "Again"],
        ),
        (
            Udp,
            &[Hear(486), Hear(200), Wait(32.0), Hear(486)],
            &["send INVITE", "486", "send ACK", "NotOurs", "over", "NotOurs"],
        ),
        (Udp, &[Hear(302), Fail], &["send INVITE", "302", "send ACK", "over"]),
        (Tcp, &[Hear(603)], &["send INVITE", "603", "send ACK", "over"]),
    ];
    for (transport, steps, expected) in table {
        check("INVITE", *transport, steps, expected);
    }
}

#[test]
fn every_transition_of_another_request() {
    use Transport::{Tls, Udp};
    let table: &[(Transport, &[Do], &[&str])] = &[
        // At 0, 0.5, 1.5, 3.5, 7.5, 11.5 seconds: timer E is bounded by T2. Timer F ends it.
        (Udp, &[Wait(11.5)], &["send BYE"; 6]),
        (
            Udp,
            &[Wait(32.0)],
            &[
                "send BYE",
                "send BYE",
                "send BYE",
                "send BYE",
                "send BYE",
                "send BYE",
                "send BYE",
                "send BYE",
                "send BYE",
                "send BYE",
                "send BYE",
                "timed out",
                "over",
            ],
        ),
        (Tls, &[Wait(32.0)], &["send BYE", "timed out", "over"]),
        (Udp, &[Fail], &["send BYE", "failed", "over"]),
        // Proceeding: every T2 from the next on, and timer F runs on.
        (
            Udp,
            &[Hear(100), Wait(8.5)],
            &["send BYE", "100", "send BYE", "send BYE", "send BYE"],
        ),
        (
            Tls,
            &[Hear(100), Hear(100), Wait(32.0)],
            &["send BYE", "100", "100", "timed out", "over"],
        ),
        (Udp, &[Hear(100), Fail], &["send BYE", "100", "failed", "over"]),
        // Completed, timer K.
        (
            Udp,
            &[Hear(200), Hear(200), Hear(100), Hear(500), Wait(4.9)],
            &["send BYE", "200", "Again", "Again", "Again"],
        ),
        (
            Udp,
            &[Hear(100), Hear(481), Wait(5.0), Hear(481)],
            &["send BYE", "100", "481", "over", "NotOurs"],
        ),
        (Udp, &[Hear(200), Fail], &["send BYE", "200", "over"]),
        (Tls, &[Hear(200), Hear(200)], &["send BYE", "200", "over", "NotOurs"]),
    ];
    for (transport, steps, expected) in table {
        check("BYE", *transport, steps, expected);
    }
}

#[test]
fn an_answer_belongs_by_branch_and_cseq() {
    let now = Instant::now();
    let mut client = Client::new(request("INVITE"), Transport::Udp, now);
    for (what, with) in [
        ("z9hG4bKours", "z9hG4bKtheirs"),
        ("CSeq: 7 INVITE", "CSeq: 7 CANCEL"),
        ("CSeq: 7", "CSeq: 8"),
    ] {
        let text = String::from_utf8(response(180, "INVITE").to_bytes().to_vec()).unwrap();
        let Message::Response(other) = read_datagram(text.replace(what, with).as_bytes()).unwrap() else {
            panic!("no response");
        };
        assert_eq!(client.receive(&other, now), Verdict::NotOurs, "{with}");
    }
    assert!(!client.is_heard());
    assert_eq!(client.receive(&response(180, "INVITE"), now), Verdict::New);
    assert!(client.is_heard());
}

#[test]
fn after_a_stall_one_copy_is_sent() {
    let now = Instant::now();
    let mut client = Client::new(request("INVITE"), Transport::Udp, now);
    assert!(matches!(client.poll(), Some(ClientOutput::Send(_))));
    client.tick(now + Duration::from_secs(20));
    assert!(matches!(client.poll(), Some(ClientOutput::Send(_))));
    assert!(client.poll().is_none());
    client.tick(now + Duration::from_secs(20));
    assert!(client.poll().is_none(), "two ticks equal one");
}

#[test]
fn an_ack_and_a_cancel_go_the_way_of_their_invite() {
    let mut invite = request("INVITE");
    invite.headers.insert(crate::message::Name::AUTHORIZATION, "Digest x=1");
    let ack = String::from_utf8(hop::ack(&invite, &response(486, "INVITE")).to_bytes().to_vec()).unwrap();
    assert_eq!(
        ack,
        "ACK sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP h;rport;branch=z9hG4bKours\r\nMax-Forwards: 70\r\nFrom: <sip:a@h>;tag=1\r\n\
         Call-ID: c\r\nRoute: <sip:p;lr>\r\nCSeq: 7 ACK\r\nTo: <sip:b@h>;tag=theirs\r\nAuthorization: Digest x=1\r\n\
         Content-Length: 0\r\n\r\n"
    );
    let cancel = hop::cancel(&invite);
    assert_eq!((cancel.cseq(), cancel.to_tag()), ((7, Method::CANCEL), None));
    assert_eq!(cancel.top_via_branch().as_deref(), Some("z9hG4bKours"));
    assert!(!cancel.headers.contains(&crate::message::Name::AUTHORIZATION));
}
