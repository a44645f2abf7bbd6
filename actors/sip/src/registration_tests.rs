//! What a registrar may say, line by line, and what holds whatever it says.
use super::*;
use crate::{
    digest::Credentials,
    message::{Message, Transport, read_datagram},
};
use proptest::prelude::*;

const EXPIRES: u32 = 300;

struct Registrar {
    machine: Registration,
    now: Instant,
    /// REGISTERs that left, without repeats.
    sent: Vec<Request>,
    changes: Vec<State>,
    learned: Vec<SocketAddr>,
}

impl Registrar {
    fn new(transport: Transport) -> Registrar {
        let credentials = Credentials {
            username: "alice".into(),
            password: "secret".into(),
        };
        let account = Account {
            registrar: "sip:pbx.example".parse().unwrap(),
            address_of_record: "<sip:alice@pbx.example>".into(),
            route: vec!["<sip:proxy.example;lr>".into()],
            expires: EXPIRES,
        };
        let sender = Sender {
            transport,
            sent_by: "192.0.2.9:5060".into(),
            contact: "sip:alice@192.0.2.9:5060".parse().unwrap(),
            call_id: "reg@192.0.2.9".into(),
            tag: "t".into(),
            cseq: 100,
            key: Sender::key(b"instance"),
            user_agent: "Callboard".into(),
        };
        let authorizer = Authorizer::new(credentials, b"instance", b"trunk");
        Registrar {
            machine: Registration::new(account, sender, Some(authorizer)),
            now: Instant::now(),
            sent: Vec::new(),
            changes: Vec::new(),
            learned: Vec::new(),
        }
    }

    fn started() -> Registrar {
        let mut registrar = Registrar::new(Transport::Udp);
        registrar.machine.start(registrar.now);
        registrar.drain();
        registrar
    }

    fn drain(&mut self) {
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Send(bytes) => match read_datagram(&bytes).unwrap() {
                    Message::Request(request) if self.sent.last().is_none_or(|last| last.cseq() != request.cseq()) => {
                        self.sent.push(request);
                    }
                    Message::Request(_) => {}
                    Message::Response(_) => panic!("a client sends requests"),
                },
                Output::Changed(state) => self.changes.push(state),
                Output::Learned(address) => self.learned.push(address),
            }
        }
    }

    fn says(&mut self, code: u16, headers: &[(&str, &str)]) -> bool {
        let mut response = self.sent.last().unwrap().response(code, "Reason", Some("r"));
        for (name, value) in headers {
            response.headers.insert(*name, *value);
        }
        let ours = self.machine.receive(&response, self.now);
        self.drain();
        ours
    }

    /// Up to the next moment that matters.
    fn wait(&mut self) -> Duration {
        let at = self.machine.deadline().unwrap();
        let waited = at.saturating_duration_since(self.now);
        self.now = at;
        self.machine.tick(at);
        self.drain();
        waited
    }

    fn expires(&self) -> String {
        self.sent.last().unwrap().header_text(Name::EXPIRES).unwrap()
    }

    fn last(&self) -> &State {
        self.changes.last().unwrap()
    }
}

const CHALLENGE: (&str, &str) = ("WWW-Authenticate", "Digest realm=\"pbx\", nonce=\"n1\", qop=\"auth\"");

#[test]
fn a_registration_is_made_refreshed_and_ended() {
    let mut registrar = Registrar::started();
    assert_eq!(registrar.changes, [State::Registering]);
    let first = registrar.sent[0].clone();
    assert_eq!(
        (first.method.clone(), first.cseq().0, first.call_id()),
        (Method::REGISTER, 101, "reg@192.0.2.9")
    );
    assert_eq!(first.header_text(Name::TO).as_deref(), Some("<sip:alice@pbx.example>"));
    assert_eq!(
        first.header_text(Name::ROUTE).as_deref(),
        Some("<sip:proxy.example;lr>")
    );
    assert_eq!(
        first.header_text(Name::CONTACT).as_deref(),
        Some("<sip:alice@192.0.2.9:5060>")
    );
    assert_eq!(registrar.expires(), "300");
    let other = "<sip:alice@192.0.2.200>;expires=5, <sip:alice@192.0.2.9:5060>;expires=100";
    let granted = [
        ("Contact", other),
        ("Expires", "7"),
        ("Service-Route", "<sip:a;lr>, <sip:b;lr>"),
    ];
    assert!(registrar.says(200, &granted));
    let until = registrar.now + Duration::from_secs(100);
    assert_eq!(*registrar.last(), State::Registered { until });
    assert_eq!(registrar.machine.service_route(), ["<sip:a;lr>", "<sip:b;lr>"]);
    assert_eq!(registrar.wait(), Duration::from_secs(80));
    assert_eq!((registrar.sent.len(), registrar.sent[1].cseq().0), (2, 102));
    assert_ne!(registrar.sent[1].top_via_branch(), first.top_via_branch());
    assert!(registrar.says(200, &[("Expires", "10")]));
    assert_eq!(
        registrar.wait(),
        Duration::from_secs(5),
        "five seconds before its end at least"
    );
    assert!(registrar.says(200, &[]));
    registrar.machine.stop(registrar.now);
    registrar.drain();
    assert_eq!((registrar.expires().as_str(), registrar.sent.len()), ("0", 4));
    assert!(registrar.says(200, &[]));
    assert_eq!((registrar.last(), registrar.machine.deadline()), (&State::Off, None));
    assert!(registrar.machine.service_route().is_empty());
}

#[test]
fn a_challenge_is_answered_once() {
    let mut registrar = Registrar::started();
    assert!(registrar.says(401, &[CHALLENGE]));
    assert_eq!(registrar.sent.len(), 2);
    assert!(registrar.sent[1].headers.contains(&Name::AUTHORIZATION));
    assert!(registrar.says(200, &[]));
    // The refresh proves itself unasked; an old nonce is answered at once.
    registrar.wait();
    assert!(registrar.sent[2].headers.contains(&Name::AUTHORIZATION));
    let stale = (
        "WWW-Authenticate",
        "Digest realm=\"pbx\", nonce=\"n2\", qop=\"auth\", stale=true",
    );
    assert!(registrar.says(401, &[stale]));
    assert_eq!(registrar.sent.len(), 4);
    let wrong = ("WWW-Authenticate", "Digest realm=\"pbx\", nonce=\"n3\", qop=\"auth\"");
    assert!(registrar.says(401, &[wrong]));
    let next_try = registrar.now + REFUSED_PAUSE;
    let expected = State::Refused {
        code: 401,
        reason: "Reason".into(),
        next_try,
    };
    assert_eq!((registrar.last(), registrar.sent.len()), (&expected, 4));
    assert_eq!(registrar.wait(), REFUSED_PAUSE);
    assert!(
        !registrar.sent[4].headers.contains(&Name::AUTHORIZATION),
        "it begins anew"
    );
}

#[test]
fn every_answer_has_its_consequence() {
    for code in [301, 400, 403, 404, 405, 420, 480, 603] {
        let mut registrar = Registrar::started();
        assert!(registrar.says(code, &[]));
        assert!(
            matches!(registrar.last(), State::Refused { code: found, .. } if *found == code),
            "{code}"
        );
        assert_eq!(registrar.wait(), REFUSED_PAUSE, "{code}");
        assert_eq!(
            (registrar.sent.len(), registrar.last()),
            (2, &State::Registering),
            "{code}"
        );
    }
    for code in [408, 500, 503, 504] {
        let mut registrar = Registrar::started();
        assert!(registrar.says(code, &[]));
        let pause = registrar.wait();
        assert!((4.0..=6.0).contains(&pause.as_secs_f64()), "{code}: {pause:?}");
    }
    let mut registrar = Registrar::started();
    assert!(registrar.says(503, &[("Retry-After", "120")]));
    assert_eq!(registrar.wait(), Duration::from_secs(120));
    let mut registrar = Registrar::started();
    assert!(registrar.says(503, &[("Retry-After", "99999")]));
    assert_eq!(registrar.wait(), MAX_RETRY_AFTER);
    let mut registrar = Registrar::started();
    assert!(registrar.says(200, &[("Expires", "0")]));
    assert!(matches!(registrar.last(), State::Failed { .. }));
    // Not an answer, and an answer to somebody else.
    let mut registrar = Registrar::started();
    assert!(registrar.says(100, &[]));
    assert_eq!(registrar.changes, [State::Registering]);
    registrar.sent[0].headers.remove(&Name::CSEQ);
    registrar.sent[0].headers.insert(Name::CSEQ, "7 REGISTER");
    assert!(!registrar.says(200, &[]));
}

#[test]
fn a_longer_life_is_asked_for_once() {
    let mut registrar = Registrar::started();
    assert!(registrar.says(423, &[("Min-Expires", "3600")]));
    assert_eq!((registrar.expires().as_str(), registrar.sent.len()), ("3600", 2));
    assert!(registrar.says(423, &[("Min-Expires", "7200")]));
    assert!(matches!(registrar.last(), State::Refused { code: 423, .. }));
    for odd in ["60", "x", "4294967295"] {
        let mut registrar = Registrar::started();
        assert!(registrar.says(423, &[("Min-Expires", odd)]));
        assert!(matches!(registrar.last(), State::Refused { code: 423, .. }), "{odd}");
    }
}

#[test]
fn failures_wait_longer_each_time() {
    let mut registrar = Registrar::new(Transport::Tcp);
    registrar.machine.start(registrar.now);
    registrar.drain();
    let mut pauses = Vec::new();
    for _ in 0..9 {
        registrar.machine.failed(registrar.now);
        registrar.drain();
        assert!(matches!(registrar.last(), State::Failed { .. }));
        pauses.push(registrar.wait().as_secs_f64());
    }
    for (pause, base) in pauses
        .iter()
        .zip([5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0])
    {
        assert!((base * 0.8..=base * 1.2).contains(pause), "{pauses:?}");
    }
    // Silence is a failure, too; a binding that stands goes on standing.
    assert!(registrar.says(200, &[("Expires", "3600")]));
    let until = registrar.machine.bound_until();
    assert_eq!(registrar.wait(), Duration::from_secs(2880));
    assert_eq!(registrar.wait(), Duration::from_secs(32));
    assert!(matches!(registrar.last(), State::Failed { .. }));
    assert_eq!(registrar.machine.bound_until(), until);
}

#[test]
fn a_stop_waits_for_the_request_under_way() {
    let mut registrar = Registrar::started();
    registrar.machine.stop(registrar.now);
    registrar.drain();
    assert_eq!(registrar.sent.len(), 1);
    assert!(registrar.says(200, &[]));
    assert_eq!((registrar.sent.len(), registrar.expires().as_str()), (2, "0"));
    assert!(registrar.says(401, &[CHALLENGE]));
    assert_eq!((registrar.sent.len(), registrar.expires().as_str()), (3, "0"));
    assert!(registrar.says(500, &[]));
    assert_eq!((registrar.last(), registrar.machine.deadline()), (&State::Off, None));
    // Without a binding there is nothing to end.
    let mut registrar = Registrar::started();
    registrar.machine.stop(registrar.now);
    assert!(registrar.says(403, &[]));
    assert_eq!((registrar.last(), registrar.sent.len()), (&State::Off, 1));
}

#[test]
fn whoever_is_wanted_again_while_it_ends_is_registered_anew() {
    let mut registrar = Registrar::started();
    assert!(registrar.says(200, &[]));
    registrar.machine.stop(registrar.now);
    registrar.machine.start(registrar.now);
    registrar.drain();
    assert_eq!((registrar.sent.len(), registrar.expires().as_str()), (2, "0"));
    assert!(registrar.says(200, &[]));
    assert_eq!((registrar.sent.len(), registrar.expires().as_str()), (3, "300"));
    assert_eq!(registrar.last(), &State::Registering);
}

#[test]
fn our_address_is_learned_and_registered_when_it_changes() {
    let mut registrar = Registrar::started();
    let via = registrar.sent[0].header_text(Name::VIA).unwrap();
    let seen = via.replace(";rport;", ";received=203.0.113.7;rport=40000;");
    registrar.sent[0].headers.remove(&Name::VIA);
    registrar.sent[0].headers.insert(Name::VIA, seen);
    assert!(registrar.says(100, &[]) && registrar.says(200, &[]));
    let public: SocketAddr = "203.0.113.7:40000".parse().unwrap();
    assert_eq!(registrar.learned, [public]);
    let contact = "sip:alice@203.0.113.7:40000".parse().unwrap();
    registrar
        .machine
        .readdress(contact, "203.0.113.7:40000".into(), registrar.now);
    assert_eq!(registrar.wait(), Duration::ZERO);
    assert_eq!(
        registrar.sent[1].header_text(Name::CONTACT).as_deref(),
        Some("<sip:alice@203.0.113.7:40000>")
    );
    // While one is under way, the next follows it, after a pause.
    let contact = "sip:alice@203.0.113.8:40000".parse().unwrap();
    registrar
        .machine
        .readdress(contact, "203.0.113.8:40000".into(), registrar.now);
    assert!(registrar.says(200, &[]));
    assert_eq!(registrar.wait(), MOVE_PAUSE);
    assert_eq!(registrar.sent.len(), 3);
}

/// A registrar, or a NAT, that shows us another address each time.
#[test]
fn an_address_that_never_rests_is_not_followed_without_a_pause() {
    let mut registrar = Registrar::started();
    assert!(registrar.says(200, &[]));
    let begun = registrar.now;
    for port in 0..100 {
        let contact = format!("sip:alice@203.0.113.7:{}", 40000 + port).parse().unwrap();
        registrar
            .machine
            .readdress(contact, "203.0.113.7".into(), registrar.now);
        registrar.wait();
        assert!(registrar.says(200, &[]));
    }
    let passed = registrar.now - begun;
    assert!(passed >= Duration::from_secs(98 * 30), "{passed:?}");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start,
    Stop,
    Fail,
    Wait,
    Early,
    Say(u16),
    Move,
}

fn step() -> impl Strategy<Value = Step> {
    let codes = prop::sample::select(vec![100, 200, 200, 302, 401, 403, 407, 423, 500, 503, 603]);
    prop_oneof![
        Just(Step::Start),
        Just(Step::Stop),
        Just(Step::Fail),
        Just(Step::Wait),
        Just(Step::Wait),
        Just(Step::Early),
        Just(Step::Move),
        codes.prop_map(Step::Say),
    ]
}

proptest! {
    /// Never two requests outstanding, a tick at the deadline always changes something, one before it never does, and whoever
    /// stops is off in the end.
    #[test]
    fn whatever_happens(steps in prop::collection::vec(step(), 0..60)) {
        let mut registrar = Registrar::new(Transport::Udp);
        for step in steps {
            let sent = registrar.sent.len();
            match step {
                Step::Start => registrar.machine.start(registrar.now),
                Step::Stop => registrar.machine.stop(registrar.now),
                Step::Fail => registrar.machine.failed(registrar.now),
                Step::Move => registrar.machine.readdress("sip:alice@192.0.2.1".parse().unwrap(), "192.0.2.1".into(), registrar.now),
                Step::Early => {
                    let early = registrar.machine.deadline().is_some_and(|at| at > registrar.now);
                    registrar.machine.tick(registrar.now);
                    prop_assert!(!early || registrar.machine.poll().is_none());
                }
                Step::Wait => if let Some(at) = registrar.machine.deadline() {
                    registrar.now = registrar.now.max(at);
                    registrar.machine.tick(registrar.now);
                    let changed = registrar.machine.deadline() != Some(at);
                    prop_assert!(changed, "{:?}", registrar.machine.state());
                },
                Step::Say(code) => if sent > 0 {
                    registrar.says(code, &[CHALLENGE, ("Min-Expires", "600"), ("Expires", "60")]);
                },
            }
            registrar.drain();
            // One more at a time, and only when the one before is done with.
            prop_assert!(registrar.sent.len() <= sent + 1);
            let failed = matches!(registrar.machine.state(), State::Failed { .. } | State::Refused { .. });
            prop_assert!(!failed || registrar.machine.deadline().is_some());
        }
        registrar.machine.stop(registrar.now);
        registrar.drain();
        for _ in 0..60 {
            if registrar.machine.deadline().is_none() { break }
            registrar.wait();
        }
        prop_assert_eq!(registrar.machine.state(), &State::Off);
        prop_assert_eq!(registrar.machine.deadline(), None);
    }
}
