//! What becomes of a delivery after each attempt, line by line; then what holds for every delivery to the end.
use super::*;
use entities::{
    ids::{DeliveryId, EndpointId, EventId, TenantId},
    values::Env,
};
use proptest::prelude::*;
use std::ops::RangeInclusive;
use uuid::Uuid;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

#[rustfmt::skip]
fn pending() -> Delivery {
    Delivery {
        id: DeliveryId(Uuid::from_u128(1)), tenant_id: TenantId(Uuid::from_u128(2)), env: Env::Test,
        endpoint_id: EndpointId(Uuid::from_u128(3)), event_id: EventId(Uuid::from_u128(4)), event_seq: 1,
        status: Status::Pending, attempts: 0, first_attempt_at: None, next_attempt_at: Some(at(0)), created_at: at(0),
    }
}

/// Attempted in vain once, at 0; due again at 5.
fn retrying() -> Delivery {
    attempted(pending(), &answer(503), &Schedule::default(), at(0), at(0), 0.0)
}

fn answer(status: u16) -> Outcome {
    Outcome::Answered { status }
}

/// The contract's plan, in seconds before the 2nd, 3rd, … attempt.
const PLAN: [i64; 9] = [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 36_000];
const DAY: i64 = 24 * 3600;

/// Every answer that HTTP knows, and what it means. The contract says nothing of 1xx, which no client hands on.
const ANSWERS: [(RangeInclusive<u16>, Status); 11] = [
    (100..=199, Status::Failed),
    (200..=299, Status::Succeeded),
    (300..=399, Status::Failed), // never followed
    (400..=407, Status::Failed),
    (408..=408, Status::Retrying), // request timeout
    (409..=424, Status::Failed),
    (425..=425, Status::Retrying), // too early
    (426..=428, Status::Failed),
    (429..=429, Status::Retrying), // too many requests
    (430..=499, Status::Failed),
    (500..=599, Status::Retrying),
];

/// Every way to get no answer.
#[rustfmt::skip]
fn failures() -> Vec<(Failure, Status)> {
    let next = |failure: &Failure| Some(match failure {
        Failure::BlockedTarget(_) => Failure::Timeout, Failure::Timeout => Failure::Dns("no such host".into()),
        Failure::Dns(_) => Failure::Connect("refused".into()), Failure::Connect(_) => Failure::Tls("expired".into()),
        Failure::Tls(_) => Failure::BadAnswer("reset".into()), Failure::BadAnswer(_) => return None,
    });
    let all = std::iter::successors(Some(Failure::BlockedTarget("10.0.0.1 is not public".into())), next);
    all.map(|failure| {
        let status = if matches!(failure, Failure::BlockedTarget(_)) { Status::Failed } else { Status::Retrying };
        (failure, status)
    }).collect()
}

fn check(delivery: Delivery, outcome: Outcome, expected: Status) {
    let after = attempted(delivery.clone(), &outcome, &Schedule::default(), at(60), at(61), 0.0);
    let line = format!("{:?} + {outcome:?}", delivery.status);
    let due = (expected == Status::Retrying).then(|| at(61 + PLAN[usize::try_from(delivery.attempts).unwrap()]));
    let first = delivery.first_attempt_at.unwrap_or(at(60));
    let (status, attempts) = (expected, delivery.attempts + 1);
    let wanted = Delivery {
        status,
        attempts,
        first_attempt_at: Some(first),
        next_attempt_at: due,
        ..delivery
    };
    assert_eq!(after, wanted, "{line}");
}

#[test]
fn every_transition_of_the_specification() {
    let codes: Vec<u16> = ANSWERS.iter().flat_map(|(codes, _)| codes.clone()).collect();
    assert_eq!(codes, (100..=599).collect::<Vec<u16>>(), "the table has each code once");
    for delivery in [pending(), retrying()] {
        for (codes, expected) in ANSWERS {
            for code in codes {
                check(delivery.clone(), answer(code), expected);
            }
        }
        for (failure, expected) in failures() {
            check(delivery.clone(), Outcome::Failed(failure), expected);
        }
    }
}

/// How one attempt goes: how late it starts, how long it takes, what comes of it, and the luck of its retry.
#[derive(Clone, Debug)]
struct Try {
    late_ms: i64,
    takes_ms: i64,
    outcome: Outcome,
    jitter: f64,
}

/// Every state of a delivery until it has ended, or the tries have; and when each attempt was over.
fn life(tries: &[Try], schedule: &Schedule) -> Vec<(Delivery, Moment)> {
    let mut states = vec![(pending(), at(0))];
    for Try {
        late_ms,
        takes_ms,
        outcome,
        jitter,
    } in tries
    {
        let delivery = states.last().unwrap().0.clone();
        let Some(due) = delivery.next_attempt_at else { break };
        let started_at = due.plus_millis(*late_ms);
        let now = started_at.plus_millis(*takes_ms);
        states.push((attempted(delivery, outcome, schedule, started_at, now, *jitter), now));
    }
    states
}

fn in_vain(jitter: f64, late_ms: i64) -> Vec<Try> {
    vec![
        Try {
            late_ms,
            takes_ms: 0,
            outcome: answer(500),
            jitter
        };
        20
    ]
}

#[test]
fn a_receiver_that_never_recovers_is_tried_ten_times_by_the_contracts_plan() {
    let states = life(&in_vain(0.0, 0), &Schedule::default());
    let gaps: Vec<i64> = states
        .iter()
        .skip(1)
        .filter_map(|(delivery, now)| Some(delivery.next_attempt_at?.millis() - now.millis()))
        .collect();
    assert_eq!(gaps, PLAN.map(|seconds| seconds * 1000));
    let (last, _) = states.last().unwrap();
    assert_eq!((last.attempts, last.status), (10, Status::Failed));
}

#[test]
fn jitter_adds_up_to_a_tenth_and_still_leaves_ten_attempts_in_a_day() {
    for (jitter, first_gap_ms) in [(0.0, 5_000), (0.5, 5_250), (1.0, 5_500), (-1.0, 5_000), (7.0, 5_500)] {
        let states = life(&in_vain(jitter, 0), &Schedule::default());
        assert_eq!(
            states[1].0.next_attempt_at,
            Some(Moment::from_millis(first_gap_ms)),
            "{jitter}"
        );
        assert_eq!(states.last().unwrap().0.attempts, 10, "{jitter}");
    }
}

#[test]
fn no_attempt_is_due_after_the_window() {
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    for (second_delay, expected) in [(1, Status::Retrying), (2, Status::Failed)] {
        let schedule = Schedule {
            delays: vec![hours(23), hours(second_delay)],
            window: hours(24),
        };
        let tries = in_vain(0.0, 0);
        let (second, _) = life(&tries[..2], &schedule).pop().unwrap();
        assert_eq!((second.attempts, second.status), (2, expected));
    }
}

fn tries() -> impl Strategy<Value = Vec<Try>> {
    let failed = prop::sample::select(failures()).prop_map(|(failure, _)| Outcome::Failed(failure));
    let outcome =
        prop_oneof![10 => (500..=599_u16).prop_map(answer), 3 => failed, 1 => (100..=599_u16).prop_map(answer)];
    // Mostly on time; at times the service was down for hours.
    let late_ms = prop_oneof![5 => 0..50_i64, 1 => 0..4 * 3_600_000_i64];
    let one = (late_ms, 0..30_000_i64, outcome, -0.5..1.5_f64);
    let one = one.prop_map(|(late_ms, takes_ms, outcome, jitter)| Try {
        late_ms,
        takes_ms,
        outcome,
        jitter,
    });
    prop::collection::vec(one, 0..15)
}

proptest! {
    #[test]
    fn at_most_ten_attempts(tries in tries()) {
        let states = life(&tries, &Schedule::default());
        for (made, (delivery, _)) in states.iter().enumerate() {
            prop_assert_eq!(usize::try_from(delivery.attempts).unwrap(), made);
        }
        prop_assert!(states.last().unwrap().0.attempts <= 10);
    }

    #[test]
    fn none_is_due_later_than_a_day_after_the_first(tries in tries()) {
        let states = life(&tries, &Schedule::default());
        let first = at(0).plus_millis(tries.first().map_or(0, |first| first.late_ms));
        for (delivery, _) in &states[1..] {
            prop_assert_eq!(delivery.first_attempt_at, Some(first));
            prop_assert!(delivery.next_attempt_at.is_none_or(|due| due <= first.plus_seconds(DAY)));
        }
    }

    #[test]
    fn each_gap_is_the_plans_and_up_to_a_tenth_more(tries in tries()) {
        for (delivery, now) in &life(&tries, &Schedule::default())[1..] {
            let Some(due) = delivery.next_attempt_at else { continue };
            let plan_ms = PLAN[usize::try_from(delivery.attempts - 1).unwrap()] * 1000;
            prop_assert!((plan_ms..=plan_ms * 11 / 10).contains(&(due.millis() - now.millis())));
        }
    }

    #[test]
    fn it_is_due_again_if_and_only_if_it_has_not_ended(tries in tries()) {
        for (delivery, _) in life(&tries, &Schedule::default()) {
            let open = matches!(delivery.status, Status::Pending | Status::Retrying);
            prop_assert_eq!(delivery.next_attempt_at.is_some(), open);
        }
    }

    #[test]
    fn it_succeeds_if_and_only_if_its_last_attempt_did(tries in tries()) {
        let states = life(&tries, &Schedule::default());
        let outcomes: Vec<_> = tries[..states.len() - 1].iter().map(|one| &one.outcome).collect();
        let succeeded = matches!(outcomes.last(), Some(Outcome::Answered { status: 200..=299 }));
        prop_assert_eq!(states.last().unwrap().0.status == Status::Succeeded, succeeded);
    }
}
