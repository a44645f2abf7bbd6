//! The four points at which a process can be killed (D2), and what the next one makes of them.
use std::{sync::Arc, time::Duration};

use uuid::Uuid;

use super::*;
use crate::{
    identity::Identity,
    message::{Message, Transport, read_datagram},
};

fn row(left: Left) -> OrphanRow {
    let identity = CallIdentity::new(Arc::new(Identity::new(b"secret")), Uuid::from_u128(7), 1);
    OrphanRow {
        sender: Sender {
            transport: Transport::Udp,
            sent_by: "192.0.2.1:5060".to_owned(),
            contact: "sip:us@192.0.2.1:5060".parse().unwrap(),
            user_agent: None,
        },
        call_id: identity.call_id("callboard"),
        identity,
        target: "sip:them@198.51.100.9".parse().unwrap(),
        route: vec!["<sip:proxy.example;lr>".to_owned()],
        left,
    }
}

fn confirmed() -> Left {
    Left::Confirmed {
        remote_tag: "b".to_owned(),
        route_set: vec!["<sip:edge.example;lr>".to_owned()],
        cseq: 3,
    }
}

fn sent(orphan: &mut Orphan) -> Vec<Request> {
    let outputs = std::iter::from_fn(|| orphan.poll());
    outputs
        .filter_map(|output| match output {
            OrphanOutput::Send { bytes, .. } => match read_datagram(&bytes).unwrap() {
                Message::Request(request) => Some(request),
                Message::Response(_) => panic!("a response"),
            },
            OrphanOutput::Challenged { .. } | OrphanOutput::Gone => None,
        })
        .collect()
}

fn named(requests: &[Request]) -> Vec<String> {
    requests
        .iter()
        .map(|request| format!("{} {}", request.method, request.cseq().0))
        .collect()
}

fn answer(request: &Request, code: u16) -> Response {
    request.response(code, "Said", Some("b"))
}

/// What the process that died had sent.
fn invite(row: &OrphanRow, cseq: u32) -> Request {
    let branch = row.identity.branch(&Method::INVITE, cseq);
    let mut invite = row.sender.begin(Method::INVITE, row.target.clone(), &branch);
    invite.headers.insert(
        Name::FROM,
        format!("<sip:+15550100@192.0.2.1>;tag={}", row.identity.local_tag()),
    );
    invite.headers.insert(Name::TO, "<sip:them@198.51.100.9>");
    invite.headers.insert(Name::CALL_ID, row.call_id.as_str());
    invite.headers.insert(Name::CSEQ, format!("{cseq} INVITE"));
    invite
}

#[test]
fn every_try_is_cancelled_as_it_was_sent() {
    let now = Instant::now();
    let row = row(Left::Inviting);
    let mut orphan = Orphan::new(row.clone(), now);
    let cancels = sent(&mut orphan);
    assert_eq!(
        named(&cancels),
        ["CANCEL 1", "CANCEL 2", "CANCEL 3", "CANCEL 4", "CANCEL 5"]
    );
    for (cancel, cseq) in cancels.iter().zip(1..) {
        let invite = invite(&row, cseq);
        assert_eq!(cancel.top_via_branch(), invite.top_via_branch());
        assert_eq!(cancel.top_via().unwrap().sent_by, invite.top_via().unwrap().sent_by);
        assert_eq!(uri_text(&cancel.uri), uri_text(&invite.uri));
        assert_eq!(
            (cancel.call_id(), cancel.from_tag(), cancel.to_tag()),
            (invite.call_id(), invite.from_tag(), None)
        );
        assert_eq!(cancel.list(Name::ROUTE), ["<sip:proxy.example;lr>"]);
        let code = if cseq == 1 { 200 } else { 481 };
        orphan.receive(&answer(cancel, code), now);
    }
    // The INVITE ends too, and its end is acknowledged, or the peer would repeat it.
    orphan.receive(&answer(&invite(&row, 1), 487), now);
    let acks = sent(&mut orphan);
    assert_eq!(named(&acks), ["ACK 1"]);
    assert_eq!(acks[0].top_via_branch(), invite(&row, 1).top_via_branch());
    assert_eq!(acks[0].to_tag().as_deref(), Some("b"));
    assert!(!orphan.is_over());
    let end = now + Duration::from_secs(32);
    while let Some(at) = orphan.deadline() {
        assert!(at <= end);
        orphan.tick(at);
        assert!(orphan.deadline().is_none_or(|next| next > at));
    }
    assert!(orphan.is_over());
    assert!(sent(&mut orphan).is_empty());
}

/// Killed between their 200 and our ACK: the CANCEL comes too late, and the repeated 200 is turned away.
#[test]
fn a_call_that_was_picked_up_unheard_is_turned_away() {
    let now = Instant::now();
    let row = row(Left::Inviting);
    let mut orphan = Orphan::new(row.clone(), now);
    sent(&mut orphan);
    let mut picked_up = answer(&invite(&row, 2), 200);
    picked_up.headers.insert(Name::CONTACT, "<sip:them@198.51.100.9:5070>");
    orphan.receive(&picked_up, now);
    let first = sent(&mut orphan);
    assert_eq!(named(&first), ["ACK 2", "BYE 1002"]);
    assert!(
        first
            .iter()
            .all(|request| uri_text(&request.uri) == "sip:them@198.51.100.9:5070")
    );
    assert!(first.iter().all(|request| request.to_tag().as_deref() == Some("b")));
    orphan.receive(&picked_up, now);
    assert_eq!(named(&sent(&mut orphan)), ["ACK 2"]);
    orphan.receive(&answer(&first[1], 200), now);
    let stranger = Response {
        headers: Default::default(),
        ..answer(&first[1], 200)
    };
    orphan.receive(&stranger, now);
    assert!(sent(&mut orphan).is_empty());
}

#[test]
fn a_talk_is_hung_up() {
    let now = Instant::now();
    let mut orphan = Orphan::new(row(confirmed()), now);
    let byes = sent(&mut orphan);
    assert_eq!(named(&byes), ["BYE 1003"]);
    assert_eq!(
        (byes[0].to_tag().as_deref(), byes[0].list(Name::ROUTE)),
        (Some("b"), vec!["<sip:edge.example;lr>".to_owned()])
    );
    orphan.tick(now + Duration::from_millis(500));
    assert_eq!(named(&sent(&mut orphan)), ["BYE 1003"]);
    orphan.receive(&answer(&byes[0], 200), now);
    orphan.tick(now + Duration::from_secs(6));
    assert!(orphan.is_over());
}

#[test]
fn the_trunk_gives_credentials_once() {
    let now = Instant::now();
    for is_given in [true, false] {
        let mut orphan = Orphan::new(row(confirmed()), now);
        let byes = sent(&mut orphan);
        orphan.receive(&answer(&byes[0], 401), now);
        let challenged = std::iter::from_fn(|| orphan.poll()).find_map(|output| match output {
            OrphanOutput::Challenged { request, response } => Some((*request, response.code)),
            OrphanOutput::Send { .. } | OrphanOutput::Gone => None,
        });
        let (request, code) = challenged.unwrap();
        assert_eq!((code, request.cseq().0), (401, 1004));
        assert_ne!(request.top_via_branch(), byes[0].top_via_branch());
        orphan.authorized(is_given.then_some(request), now);
        let again = sent(&mut orphan);
        assert_eq!(again.len(), usize::from(is_given));
        // Refused again: that is all.
        again.iter().for_each(|bye| orphan.receive(&answer(bye, 401), now));
        orphan.tick(now + Duration::from_secs(6));
        assert!(orphan.is_over());
    }
}

#[test]
fn silence_ends_after_half_a_minute() {
    for left in [Left::Inviting, confirmed()] {
        let now = Instant::now();
        let mut orphan = Orphan::new(row(left), now);
        while let Some(at) = orphan.deadline() {
            assert!(at <= now + Duration::from_secs(32));
            orphan.tick(at);
        }
        assert!(orphan.is_over());
    }
}
