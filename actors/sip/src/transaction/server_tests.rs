//! One row per transition of RFC 3261, figures 7 and 8, and RFC 6026, figure 3; repeats too.
use super::*;
use crate::message::{Message, read_datagram};
use std::time::Duration;

fn request_of(method: &str, branch: &str, cseq: &str) -> Request {
    let text = format!(
        "{method} sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP h{branch}\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:b@h>\r\nCall-ID: c\r\n\
         CSeq: {cseq} {method}\r\n\r\n"
    );
    match read_datagram(text.as_bytes()).unwrap() {
        Message::Request(request) => request,
        Message::Response(_) => panic!("no request"),
    }
}

fn request(method: &str) -> Request {
    request_of(method, ";branch=z9hG4bK1", "1")
}

#[derive(Clone, Copy, Debug)]
enum Do {
    Answer(u16),
    /// The same request again.
    Repeat,
    Ack,
    Wait(f64),
    Fail,
}
use Do::{Ack, Answer, Fail, Repeat, Wait};

fn run(method: &str, transport: Transport, steps: &[Do]) -> (Server, Vec<String>) {
    let mut now = Instant::now();
    let mut said = Vec::new();
    let mut server = Server::new(request(method), transport, now);
    for step in steps {
        match step {
            Answer(code) => server.respond(&request(method).response(*code, "Reason", Some("ours")), now),
            Repeat => said.push(format!("{:?}", server.receive(&request(method), now))),
            // With a branch of its own, as after a 2xx.
            Ack => said.push(format!(
                "{:?}",
                server.receive(&request_of("ACK", ";branch=z9hG4bK2", "1"), now)
            )),
            Wait(seconds) => {
                let end = now + Duration::from_secs_f64(*seconds);
                while let Some(at) = server.deadline().filter(|at| *at <= end) {
                    server.tick(at);
                    let before = said.len();
                    drain(&mut server, &mut said);
                    assert!(said.len() > before, "a tick at the deadline changes something");
                }
                now = end;
            }
            Fail => server.failed(now),
        }
        drain(&mut server, &mut said);
    }
    (server, said)
}

fn drain(server: &mut Server, said: &mut Vec<String>) {
    while let Some(output) = server.poll() {
        said.push(match output {
            ServerOutput::Send(bytes) => match read_datagram(&bytes).unwrap() {
                Message::Response(response) => response.code.to_string(),
                Message::Request(_) => panic!("a server sends responses"),
            },
            ServerOutput::Acked => "acked".into(),
            ServerOutput::NeverAcked => "never acked".into(),
            ServerOutput::Over => "over".into(),
        });
    }
}

fn check(method: &str, table: &[(Transport, &[Do], &[&str])]) {
    for (transport, steps, expected) in table {
        let (server, said) = run(method, *transport, steps);
        assert_eq!(said, *expected, "{method} {transport:?} {steps:?}");
        assert_eq!(
            server.is_over(),
            expected.last() == Some(&"over") || expected.ends_with(&["over", "NotOurs"])
        );
        assert!(!server.is_over() || server.deadline().is_none());
    }
}

#[test]
fn every_transition_of_an_invite() {
    use Transport::{Tcp, Udp};
    check(
        "INVITE",
        &[
            // Proceeding.
            (Udp, &[Repeat, Ack, Wait(600.0)], &["Again", "NotOurs"]),
            (
                Udp,
                &[Answer(100), Repeat, Answer(180), Repeat],
                &["100", "Again", "100", "180", "Again", "180"],
            ),
            (Udp, &[Answer(180), Fail], &["180", "over"]),
            // Completed: timer G, then H; the answer is sent again for each repeat, and no other is given.
            (Udp, &[Answer(486), Answer(200), Repeat], &["486", "Again", "486"]),
            (Udp, &[Answer(486), Wait(3.5)], &["486", "486", "486", "486"]),
            (Tcp, &[Answer(486), Wait(31.9)], &["486"]),
            (Tcp, &[Answer(486), Wait(32.0)], &["486", "never acked", "over"]),
            (Udp, &[Answer(486), Fail], &["486", "over"]),
            // Confirmed: timer I.
            (
                Udp,
                &[Answer(486), Ack, Ack, Repeat, Wait(4.9)],
                &["486", "New", "acked", "Again", "Again"],
            ),
            (
                Udp,
                &[Answer(486), Ack, Wait(5.0), Repeat],
                &["486", "New", "acked", "over", "NotOurs"],
            ),
            (Tcp, &[Answer(486), Ack], &["486", "New", "acked", "over"]),
            // Accepted: the 2xx is sent again until its ACK comes, over any transport; timer L.
            (
                Udp,
                &[Answer(200), Repeat, Answer(486), Wait(3.5)],
                &["200", "Again", "200", "200", "200"],
            ),
            (
                Tcp,
                &[Answer(180), Answer(200), Wait(1.5), Ack, Ack, Repeat, Fail],
                &["180", "200", "200", "200", "New", "acked", "Again", "Again"],
            ),
            (Tcp, &[Answer(200), Ack, Wait(31.9)], &["200", "New", "acked"]),
            (
                Udp,
                &[Answer(200), Ack, Wait(32.0), Repeat],
                &["200", "New", "acked", "over", "NotOurs"],
            ),
            (
                Udp,
                &[Answer(200), Fail, Wait(32.0)],
                &[
                    "200",
                    "200",
                    "200",
                    "200",
                    "200",
                    "200",
                    "200",
                    "200",
                    "200",
                    "200",
                    "200",
                    "never acked",
                    "over",
                ],
            ),
        ],
    );
}

#[test]
fn every_transition_of_another_request() {
    use Transport::{Tls, Udp};
    check(
        "BYE",
        &[
            (Udp, &[Repeat, Ack, Wait(600.0)], &["Again", "NotOurs"]),
            (Udp, &[Answer(100), Repeat, Fail], &["100", "Again", "100", "over"]),
            (
                Udp,
                &[Answer(200), Answer(500), Repeat, Wait(31.9)],
                &["200", "Again", "200"],
            ),
            (Udp, &[Answer(481), Wait(32.0), Repeat], &["481", "over", "NotOurs"]),
            (Udp, &[Answer(200), Fail], &["200", "over"]),
            (Tls, &[Answer(200)], &["200", "over"]),
        ],
    );
}

#[test]
fn a_request_is_the_same_by_branch_and_sender() {
    let now = Instant::now();
    let mut server = Server::new(request("INVITE"), Transport::Udp, now);
    let merged = request_of("INVITE", ";branch=z9hG4bKfork", "1");
    assert_eq!(server.receive(&merged, now), Verdict::NotOurs);
    assert!(server.is_merged(&merged));
    assert!(!server.is_merged(&request("INVITE")));
    assert!(!server.is_merged(&request_of("INVITE", ";branch=z9hG4bKnext", "2")));
    assert_eq!(
        server.receive(&request_of("CANCEL", ";branch=z9hG4bK1", "1"), now),
        Verdict::NotOurs
    );
    assert_eq!(
        server.receive(&request_of("ACK", ";branch=z9hG4bK1", "2"), now),
        Verdict::NotOurs
    );
    let elsewhere = request_of("INVITE", ":5070;branch=z9hG4bK1", "1");
    assert_eq!(server.receive(&elsewhere, now), Verdict::NotOurs);
    // Those of RFC 2543 have no branch.
    let mut old = Server::new(request_of("INVITE", "", "1"), Transport::Udp, now);
    assert_eq!(old.receive(&request_of("INVITE", "", "1"), now), Verdict::Again);
    assert_eq!(old.receive(&request_of("INVITE", "", "2"), now), Verdict::NotOurs);
}
