//! What a lane does, line by line. What holds for every lane, whatever happens, is in `lane_simulation_tests.rs`.
use super::{intake::Meanwhile, outcomes::Committing, *};
use crate::delivery::{
    queue::Item,
    samples::{answer, at, endpoint, endpoint_state, item, limits, report},
    settle::Tried,
};
use entities::{
    delivery::Status,
    webhook_endpoint::{Model as Endpoint, Status as EndpointStatus},
};
use uuid::Uuid;

/// Everything happens at this moment.
const NOW: i64 = 200_000;
const TARGET: &str = "the receiver";

type TestLane = Lane<&'static str>;
type TestEvent = LaneEvent<&'static str>;

fn hear_at(lane: &mut TestLane, event: TestEvent, times: Times) -> Vec<String> {
    lane.on(event, times, &limits(10)).iter().map(told).collect()
}

fn hear(lane: &mut TestLane, event: TestEvent) -> Vec<String> {
    hear_at(lane, event, Times::at(at(NOW)))
}

/// Deliveries by their numbers; each is about something else.
fn delivery(number: i64) -> Delivery {
    item(number, number.unsigned_abs().into(), at(NOW)).0
}

fn items(numbers: &[i64]) -> Vec<Item> {
    let new = |number: &i64| item(*number, number.unsigned_abs().into(), at(NOW));
    numbers.iter().map(new).collect()
}

fn active() -> Option<Endpoint> {
    Some(endpoint(EndpointStatus::Active, 7))
}

fn read(endpoint: Option<Endpoint>, numbers: &[i64]) -> TestEvent {
    let settings = endpoint.map(|endpoint| LaneSettings {
        target: (endpoint.status == EndpointStatus::Active).then_some(TARGET),
        endpoint_state: endpoint_state(endpoint),
    });
    let due = Due {
        deliveries: items(numbers),
        more: false,
        next_due_at: None,
    };
    LaneEvent::Read { settings, due }
}

/// With more than was read.
fn read_part(endpoint: Option<Endpoint>, numbers: &[i64]) -> TestEvent {
    let LaneEvent::Read { settings, due } = read(endpoint, numbers) else {
        unreachable!()
    };
    let due = Due { more: true, ..due };
    LaneEvent::Read { settings, due }
}

/// With a retry that is due in 5 s.
fn read_early() -> TestEvent {
    let LaneEvent::Read { settings, due } = read(active(), &[]) else {
        unreachable!()
    };
    let next_due_at = Some(at(NOW + 5));
    LaneEvent::Read {
        settings,
        due: Due { next_due_at, ..due },
    }
}

/// A retry whose 24 hours are over.
fn read_late() -> TestEvent {
    let LaneEvent::Read { settings, mut due } = read(active(), &[1]) else {
        unreachable!()
    };
    due.deliveries[0].0.attempts = 1;
    due.deliveries[0].0.first_attempt_at = Some(at(NOW - 25 * 3600));
    LaneEvent::Read { settings, due }
}

fn arrived(numbers: &[i64]) -> TestEvent {
    LaneEvent::Arrived(items(numbers))
}

/// The lane counts its attempts as the deliveries are numbered here.
fn answered(number: i64, status: u16) -> TestEvent {
    LaneEvent::Attempted(Attempted {
        delivery: delivery(number),
        subject: Uuid::from_u128(number.unsigned_abs().into()),
        number: number.unsigned_abs(),
        report: report(answer(status), at(NOW)),
    })
}

fn committed(number: i64, endpoint: Endpoint) -> TestEvent {
    let delivery = Delivery {
        status: Status::Succeeded,
        next_attempt_at: None,
        ..delivery(number)
    };
    LaneEvent::Committed {
        deliveries: vec![delivery],
        endpoint_state: endpoint_state(endpoint),
    }
}

/// To be tried again in 5 s.
fn committed_again(number: i64) -> TestEvent {
    let delivery = Delivery {
        status: Status::Retrying,
        next_attempt_at: Some(at(NOW + 5)),
        ..delivery(number)
    };
    LaneEvent::Committed {
        deliveries: vec![delivery],
        endpoint_state: endpoint_state(endpoint(EndpointStatus::Active, 7)),
    }
}

fn commit_failed(number: i64) -> TestEvent {
    let tried = Tried {
        delivery: delivery(number),
        report: Some(report(answer(200), at(NOW))),
    };
    LaneEvent::CommitFailed(vec![tried])
}

fn then(before: &str, event: TestEvent) -> TestLane {
    let mut lane = state(before);
    hear(&mut lane, event);
    lane
}

/// A lane of width 2, as all begin.
fn state(name: &str) -> TestLane {
    match name {
        "new" => Lane::new(endpoint(EndpointStatus::Active, 7).id),
        "reading" => then("new", LaneEvent::Started),
        "reading in vain" => then("reading", LaneEvent::Changed),
        "reading, and woken" => then("reading", LaneEvent::Woken),
        "idle" => then("reading", read(active(), &[])),
        "inactive" => then("reading", read(Some(endpoint(EndpointStatus::Suspended, 7)), &[])),
        "waiting for a retry" => then("reading", read_early()),
        "looking for the retry" => then("waiting for a retry", LaneEvent::Rang),
        "changed" => then("idle", LaneEvent::Changed),
        "sending" => then("idle", arrived(&[1])),
        "full" => then("idle", arrived(&[1, 2, 3])),
        "full, ninth failure" => {
            let ninth = Endpoint {
                failure_streak: 9,
                ..endpoint(EndpointStatus::Active, 7)
            };
            then("reading", read(Some(ninth), &[1, 2, 3]))
        }
        "committing" => then("sending", answered(1, 200)),
        "committing, and sending" => then("full", answered(1, 200)),
        "committing, and reading" => then("committing, and sending", LaneEvent::Woken),
        "gathering" => then("committing, and sending", answered(2, 200)),
        "backing off" => then("committing", commit_failed(1)),
        "repeating" => then("backing off", LaneEvent::BackedOff),
        "stopping" => then("sending", LaneEvent::Shutdown),
        "stopping, committing" => then("stopping", answered(1, 200)),
        _ => panic!("no sample of {name}"),
    }
}

fn shown(lane: &TestLane) -> String {
    let known = match &lane.known {
        Known::Nothing => "unread",
        Known::Outdated(_) => "outdated",
        Known::Current(Some(_)) => "current",
        Known::Current(None) => "inactive",
    };
    let rows = match &lane.rows {
        Rows::Drained => "drained".to_owned(),
        Rows::More => "more".to_owned(),
        Rows::Reading(Meanwhile::Arrived(kept)) if kept.is_empty() => "reading".to_owned(),
        Rows::Reading(Meanwhile::Arrived(kept)) => format!("reading and {} new", kept.len()),
        Rows::Reading(Meanwhile::Missed) => "reading, then again".to_owned(),
        Rows::Reading(Meanwhile::Outdated) => "reading in vain".to_owned(),
    };
    let (waiting, committing) = lane.outcomes.shown();
    let mut words = format!("{known}, {rows}");
    for (count, what) in [
        (lane.queue.in_hand().len(), "in hand"),
        (lane.in_flight, "under way"),
        (waiting, "answered"),
    ] {
        if count > 0 {
            words += &format!(", {count} {what}");
        }
    }
    words += match committing {
        Committing::Idle => "",
        Committing::Running => ", committing",
        Committing::BackingOff => ", backing off",
        Committing::Repeated => ", repeating",
    };
    words += match lane.life {
        Life::Running => "",
        Life::Stopping => ", stopping",
    };
    words
}

fn told(act: &LaneAct<&'static str>) -> String {
    match act {
        LaneAct::Read(what) if what.with_settings => "read all".into(),
        LaneAct::Read(_) => "read".into(),
        LaneAct::Begin(begin) => format!("begin {}", begin.delivery.event_seq),
        LaneAct::Commit(tried) => {
            let numbers: Vec<String> = tried.iter().map(|tried| tried.delivery.event_seq.to_string()).collect();
            format!("commit {}", numbers.join(" "))
        }
        LaneAct::BackOff => "back off".into(),
        LaneAct::SetTimer(Some(until)) => format!("timer {}", until.since(at(NOW)).as_secs()),
        LaneAct::SetTimer(None) => "no timer".into(),
        LaneAct::Rest => "rest".into(),
        LaneAct::Stay => "stay".into(),
        LaneAct::Stop => "stop".into(),
    }
}

/// Before, what is heard, after, and what is done.
type Row = (&'static str, TestEvent, &'static str, &'static str);

/// Settings and rows are read; what is heard meanwhile adds to it, asks for another read, or voids it.
#[rustfmt::skip]
fn reading() -> Vec<Row> {
    use LaneEvent::*;
    let suspended = || Some(endpoint(EndpointStatus::Suspended, 7));
    let older = || Some(endpoint(EndpointStatus::Active, 6));
    vec![
        ("new", Started, "unread, reading", "read all"),
        ("new", arrived(&[1]), "unread, reading", "read all"),
        ("reading", read(active(), &[]), "current, drained", "timer 30"),
        ("reading", read(active(), &[1]), "current, drained, 1 in hand, 1 under way", "begin 1"),
        ("reading", read_part(active(), &[1, 2, 3]), "current, reading, 3 in hand, 2 under way", "read, begin 1, begin 2"),
        ("reading", read_early(), "current, drained", "timer 5"),
        ("reading", read_late(), "current, drained, 1 in hand, committing", "commit 1"),
        ("reading", read(suspended(), &[1]), "inactive, drained", "timer 30"),
        ("reading", ReadFailed, "unread, more", "timer 1"),
        ("reading", arrived(&[1]), "unread, reading and 1 new", ""),
        ("reading", Changed, "unread, reading in vain", ""),
        ("reading", Woken, "unread, reading, then again", ""),
        // It began before this life: it is written down when it is known what to count on.
        ("reading", answered(1, 200), "unread, reading, 1 answered", ""),
        ("reading in vain", arrived(&[1]), "unread, reading in vain", ""),
        ("reading in vain", Woken, "unread, reading in vain", ""),
        ("reading in vain", read(active(), &[1]), "unread, reading", "read all"),
        ("reading, and woken", Changed, "unread, reading in vain", ""),
        ("reading, and woken", read(active(), &[]), "current, reading", "read"),
        ("looking for the retry", read(None, &[1]), "current, drained, 1 in hand, 1 under way", "begin 1"),
        ("looking for the retry", ReadFailed, "current, more", "timer 1"),
        ("looking for the retry", Rang, "current, reading", ""),
        ("looking for the retry", Woken, "outdated, reading, then again", ""),
        ("changed", read(older(), &[1]), "outdated, reading", "read all"),
        ("changed", read(active(), &[1]), "current, drained, 1 in hand, 1 under way", "begin 1"),
        ("changed", read(suspended(), &[]), "inactive, drained", "timer 30"),
        ("inactive", arrived(&[1]), "inactive, reading", "read, no timer"),
        ("inactive", Changed, "outdated, reading", "read all, no timer"),
    ]
}

/// As many as the width lets; outcomes share a commit, and some of them hold up everything else.
#[rustfmt::skip]
fn sending() -> Vec<Row> {
    use LaneEvent::*;
    let active = || endpoint(EndpointStatus::Active, 7);
    vec![
        ("idle", arrived(&[1]), "current, drained, 1 in hand, 1 under way", "begin 1, no timer"),
        ("idle", arrived(&[1, 2, 3]), "current, drained, 3 in hand, 2 under way", "begin 1, begin 2, no timer"),
        ("sending", arrived(&[1]), "current, drained, 1 in hand, 1 under way", ""),
        ("sending", Changed, "outdated, reading, 1 in hand, 1 under way", "read all"),
        ("sending", answered(1, 200), "current, drained, 1 in hand, committing", "commit 1"),
        ("full", arrived(&[4]), "current, drained, 4 in hand, 2 under way", ""),
        ("full", answered(1, 200), "current, drained, 3 in hand, 2 under way, committing", "commit 1, begin 3"),
        // Half as many at once; and a pause that the receiver asked for.
        ("full", answered(1, 500), "current, drained, 3 in hand, 1 under way, committing", "commit 1"),
        ("full", answered(1, 429), "current, drained, 3 in hand, 1 under way, committing", "commit 1, timer 5"),
        // A refusal is an answer; but a 410, or the tenth failure, may suspend the endpoint.
        ("full", answered(1, 404), "current, drained, 3 in hand, 2 under way, committing", "commit 1, begin 3"),
        ("full", answered(1, 410), "current, drained, 3 in hand, 1 under way, committing", "commit 1"),
        ("full, ninth failure", answered(1, 404), "current, drained, 3 in hand, 1 under way, committing", "commit 1"),
        ("full, ninth failure", answered(1, 200), "current, drained, 3 in hand, 2 under way, committing", "commit 1, begin 3"),
        ("committing, and sending", answered(2, 200), "current, drained, 3 in hand, 1 under way, 1 answered, committing", ""),
        ("gathering", committed(1, active()), "current, drained, 2 in hand, 1 under way, committing", "commit 2"),
        ("gathering", commit_failed(1), "current, drained, 3 in hand, 1 under way, 2 answered, backing off", "back off"),
        ("committing", committed(1, active()), "current, drained", "timer 30"),
        ("committing", committed_again(1), "current, drained", "timer 5"),
        ("committing", committed(1, endpoint(EndpointStatus::Suspended, 8)), "inactive, drained", "timer 30"),
        // What the queue gives back, the read under way has left out.
        ("committing, and reading", committed(1, endpoint(EndpointStatus::Suspended, 8)), "outdated, reading, then again, 2 in hand, 2 under way", ""),
        ("committing, and reading", committed(1, active()), "outdated, reading, 2 in hand, 2 under way", ""),
        ("committing", commit_failed(1), "current, drained, 1 in hand, 1 answered, backing off", "back off"),
        ("backing off", arrived(&[2]), "current, drained, 2 in hand, 1 answered, backing off", ""),
        ("backing off", BackedOff, "current, drained, 1 in hand, repeating", "commit 1"),
        ("repeating", arrived(&[2]), "current, drained, 2 in hand, repeating", ""),
        ("repeating", commit_failed(1), "current, drained, 1 in hand, 1 answered, backing off", "back off"),
        ("repeating", committed(1, active()), "current, drained", "timer 30"),
    ]
}

/// When it looks again, goes, and stops.
#[rustfmt::skip]
fn resting() -> Vec<Row> {
    use LaneEvent::*;
    vec![
        ("waiting for a retry", Rang, "current, reading", "read"),
        ("waiting for a retry", MayGo, "current, drained", "stay"),
        ("idle", Woken, "outdated, reading", "read all, no timer"),
        ("idle", Rang, "current, drained", "rest"),
        ("idle", MayGo, "current, drained", "stop"),
        ("inactive", Rang, "inactive, drained", "rest"),
        ("sending", MayGo, "current, drained, 1 in hand, 1 under way", "stay"),
        ("committing", MayGo, "current, drained, 1 in hand, committing", "stay"),
        ("reading", MayGo, "unread, reading", "stay"),
        ("idle", Shutdown, "current, drained, stopping", "stop"),
        ("reading", Shutdown, "unread, reading, stopping", "stop"),
        ("sending", Shutdown, "current, drained, 1 in hand, 1 under way, stopping", ""),
        ("committing", Shutdown, "current, drained, 1 in hand, committing, stopping", ""),
        ("backing off", Shutdown, "current, drained, 1 in hand, 1 answered, backing off, stopping", ""),
        ("stopping", arrived(&[2]), "current, drained, 2 in hand, 1 under way, stopping", ""),
        ("stopping", answered(1, 200), "current, drained, 1 in hand, committing, stopping", "commit 1"),
        ("stopping, committing", commit_failed(1), "current, drained, 1 in hand, 1 answered, backing off, stopping", "back off"),
        ("stopping, committing", committed(1, endpoint(EndpointStatus::Active, 7)), "current, drained, stopping", "stop"),
    ]
}

#[test]
fn what_follows_from_what() {
    for (nth, (before, event, after, acts)) in [reading(), sending(), resting()].into_iter().flatten().enumerate() {
        let row = format!("row {nth}, {before}: {event:?}");
        let mut lane = state(before);
        assert_eq!(hear(&mut lane, event).join(", "), acts, "{row}");
        assert_eq!(shown(&lane), after, "{row}");
    }
}

#[test]
fn nothing_is_begun_while_the_clock_is_in_doubt() {
    let doubted = Times {
        in_doubt: true,
        ..Times::at(at(NOW))
    };
    let mut lane = state("reading");
    assert_eq!(hear_at(&mut lane, read(active(), &[1]), doubted), ["timer 30"]);
    assert_eq!(shown(&lane), "current, drained, 1 in hand");
    assert_eq!(hear(&mut lane, LaneEvent::Rang), ["read", "begin 1"]);
}

#[test]
fn a_pause_ends_with_the_timer() {
    let mut lane = then("full", answered(1, 429));
    hear(&mut lane, answered(2, 200));
    hear(&mut lane, committed_again(1));
    assert_eq!(shown(&lane), "current, drained, 2 in hand, committing");
    let later = Times::at(at(NOW + 5));
    assert_eq!(hear_at(&mut lane, LaneEvent::Rang, later), ["read", "begin 3"]);
}

#[test]
fn what_fell_due_during_a_read_is_looked_for_after_it() {
    let mut lane = then("committing, and sending", LaneEvent::Woken);
    hear(&mut lane, committed_again(1));
    let later = Times::at(at(NOW + 5));
    assert_eq!(
        hear_at(&mut lane, LaneEvent::Rang, later),
        Vec::<String>::new(),
        "it reads"
    );
    assert_eq!(hear_at(&mut lane, read(active(), &[]), later), ["timer 5"]);
    assert_eq!(hear_at(&mut lane, LaneEvent::Rang, later), ["read"]);
}

#[test]
fn outcomes_that_wait_hold_up_the_next_in_proportion() {
    let mut lane = state("idle");
    hear(&mut lane, arrived(&(1..=40).collect::<Vec<i64>>()));
    // The first answer is being committed. Failures keep the width at 1; four more may wait.
    for number in 1..=40 {
        hear(&mut lane, answered(number, 500));
        if lane.in_flight == 0 {
            assert_eq!((number, shown(&lane).contains("4 answered")), (5, true));
            return;
        }
    }
    panic!("nothing held it up");
}
