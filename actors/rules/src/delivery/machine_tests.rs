//! What becomes of a delivery after each attempt, line by line; then what holds for every delivery to the end.
use super::*;
use crate::delivery::samples::{answer, asking, at};
use entities::{
    delivery::Origin,
    ids::{DeliveryId, EndpointId, EventId, TenantId},
    values::Env,
};
use proptest::prelude::*;
use std::{iter::successors, ops::RangeInclusive};
use uuid::Uuid;

#[rustfmt::skip]
fn pending() -> Delivery {
    Delivery {
        endpoint_id: EndpointId(Uuid::from_u128(1)), id: DeliveryId(Uuid::from_u128(2)),
        tenant_id: TenantId(Uuid::from_u128(3)), env: Env::Test, event_id: EventId(Uuid::from_u128(4)), event_seq: 1,
        origin: Origin::Live, replay_of: None, status: Status::Pending, failed_reason: None, attempts: 0,
        first_attempt_at: None, next_attempt_at: Some(at(0)), created_at: at(0),
    }
}

/// After an attempt that took no time, by the default plan and without jitter.
fn after(delivery: Delivery, outcome: AttemptOutcome, now: i64) -> Delivery {
    attempted(delivery, &attempt(outcome, now), &Schedule::default(), at(now))
}

/// One of each status; all but the first were tried at 0, in vain.
fn state(status: Status) -> Delivery {
    match status {
        Status::Pending => pending(),
        Status::Retrying => after(pending(), answer(503), 0),
        Status::Held | Status::Cancelled => put_away(tried(1), status),
        Status::Succeeded => after(tried(1), answer(200), 5),
        Status::Failed => after(tried(1), answer(404), 5),
    }
}

/// Tried so often, in vain, the first time at 0.
fn tried(made: i32) -> Delivery {
    Delivery {
        attempts: made,
        ..state(Status::Retrying)
    }
}

/// What `entities::delivery` makes of it when its endpoint is suspended, disabled or deleted.
fn put_away(delivery: Delivery, status: Status) -> Delivery {
    Delivery {
        status,
        next_attempt_at: None,
        ..delivery
    }
}

/// Every status; a new one makes the compiler ask for its place here.
#[rustfmt::skip]
fn statuses() -> Vec<Status> {
    use Status::*;
    let next = |status: &Status| Some(match status {
        Pending => Retrying, Retrying => Held, Held => Succeeded, Succeeded => Failed, Failed => Cancelled,
        Cancelled => return None,
    });
    successors(Some(Pending), next).collect()
}

/// Started at this second, without jitter.
fn attempt(outcome: AttemptOutcome, seconds: i64) -> Attempt {
    Attempt {
        outcome,
        started_at: at(seconds),
        jitter: 0.0,
    }
}

/// The contract's plan, in seconds before the 2nd, 3rd, … attempt.
const PLAN: [i64; 9] = [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 36_000];
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

fn planned(attempts: i32) -> i64 {
    PLAN[usize::try_from(attempts - 1).unwrap()]
}

/// Every answer that HTTP knows, and what it means. The contract says nothing of 1xx, which no client hands on.
const ANSWERS: [(RangeInclusive<u16>, Verdict); 11] = [
    (100..=199, Verdict::Refused),
    (200..=299, Verdict::Delivered),
    (300..=399, Verdict::Refused), // never followed
    (400..=407, Verdict::Refused),
    (408..=408, Verdict::TryAgain), // request timeout
    (409..=424, Verdict::Refused),
    (425..=425, Verdict::TryAgain), // too early
    (426..=428, Verdict::Refused),
    (429..=429, Verdict::TryAgain), // too many requests
    (430..=499, Verdict::Refused),
    (500..=599, Verdict::TryAgain),
];

/// Every way to get no answer.
#[rustfmt::skip]
fn failures() -> Vec<(AttemptOutcome, Verdict)> {
    let next = |failure: &Failure| Some(match failure {
        Failure::BlockedTarget(_) => Failure::Timeout, Failure::Timeout => Failure::Dns("no such host".into()),
        Failure::Dns(_) => Failure::Connect("refused".into()), Failure::Connect(_) => Failure::Tls("expired".into()),
        Failure::Tls(_) => Failure::BadAnswer("reset".into()), Failure::BadAnswer(_) => return None,
    });
    let all = successors(Some(Failure::BlockedTarget("10.0.0.1 is not public".into())), next);
    all.map(|failure| {
        let closed = matches!(failure, Failure::BlockedTarget(_));
        (AttemptOutcome::Failed(failure), if closed { Verdict::Refused } else { Verdict::TryAgain })
    }).collect()
}

/// Every outcome of an attempt, and what it means.
fn outcomes() -> Vec<(AttemptOutcome, Verdict)> {
    let answers = ANSWERS
        .into_iter()
        .flat_map(|(codes, verdict)| codes.map(move |code| (answer(code), verdict)));
    answers.chain(failures()).collect()
}

/// (before the attempt, what came of it, after it); the same again: it has ended, and nothing of it changes.
#[rustfmt::skip]
const TABLE: [(Status, Verdict, Status); 18] = [
    (Status::Pending, Verdict::Delivered, Status::Succeeded),
    (Status::Pending, Verdict::TryAgain, Status::Retrying),
    (Status::Pending, Verdict::Refused, Status::Failed),

    (Status::Retrying, Verdict::Delivered, Status::Succeeded),
    (Status::Retrying, Verdict::TryAgain, Status::Retrying),
    (Status::Retrying, Verdict::Refused, Status::Failed),

    // its endpoint was suspended during the attempt
    (Status::Held, Verdict::Delivered, Status::Succeeded),
    (Status::Held, Verdict::TryAgain, Status::Held),
    (Status::Held, Verdict::Refused, Status::Failed),

    // final
    (Status::Succeeded, Verdict::Delivered, Status::Succeeded),
    (Status::Succeeded, Verdict::TryAgain, Status::Succeeded),
    (Status::Succeeded, Verdict::Refused, Status::Succeeded),
    (Status::Failed, Verdict::Delivered, Status::Failed),
    (Status::Failed, Verdict::TryAgain, Status::Failed),
    (Status::Failed, Verdict::Refused, Status::Failed),
    (Status::Cancelled, Verdict::Delivered, Status::Cancelled), // during the attempt
    (Status::Cancelled, Verdict::TryAgain, Status::Cancelled),
    (Status::Cancelled, Verdict::Refused, Status::Cancelled),
];

fn expected(status: Status, verdict: Verdict) -> Status {
    let mut lines = TABLE.iter().filter(|line| (line.0, line.1) == (status, verdict));
    let (line, another) = (lines.next().unwrap(), lines.next());
    assert_eq!(another, None, "the table has each pair once");
    line.2
}

fn is_final(status: Status) -> bool {
    match status {
        Status::Pending | Status::Retrying | Status::Held => false,
        Status::Succeeded | Status::Failed | Status::Cancelled => true,
    }
}

fn check(delivery: Delivery, outcome: &AttemptOutcome, expected: Status) {
    let attempt = attempt(outcome.clone(), 60);
    let after = attempted(delivery.clone(), &attempt, &Schedule::default(), at(61));
    let line = format!("{:?} + {outcome:?}", delivery.status);
    if is_final(delivery.status) {
        assert_eq!((after.status, &after), (expected, &delivery), "{line}");
        return;
    }
    let attempts = delivery.attempts + 1;
    let wanted = Delivery {
        status: expected,
        failed_reason: (expected == Status::Failed).then_some(FailedReason::Permanent),
        attempts,
        first_attempt_at: Some(delivery.first_attempt_at.unwrap_or(at(60))),
        next_attempt_at: (expected == Status::Retrying).then(|| at(61 + planned(attempts))),
        ..delivery
    };
    assert_eq!(after, wanted, "{line}");
}

#[test]
fn every_transition_of_the_specification() {
    let codes: Vec<u16> = ANSWERS.iter().flat_map(|(codes, _)| codes.clone()).collect();
    assert_eq!(codes, (100..=599).collect::<Vec<u16>>(), "the table has each code once");
    for (outcome, verdict) in outcomes() {
        assert_eq!(outcome.verdict(), verdict, "{outcome:?}");
        for status in statuses() {
            check(state(status), &outcome, expected(status, verdict));
        }
    }
}

#[test]
fn one_that_is_held_during_its_first_attempt_counts_it() {
    for (outcome, verdict) in outcomes() {
        let held = put_away(pending(), Status::Held);
        check(held, &outcome, expected(Status::Held, verdict));
    }
}

#[test]
fn the_status_is_the_answers_or_none() {
    let answered = [answer(200), asking(429, 5)].map(|outcome| outcome.status());
    assert_eq!(answered, [200, 429]);
    assert!(failures().iter().all(|(outcome, _)| outcome.status() == 0));
}

/// How one attempt ends a delivery that was tried so often, the first time at 0; or when it is tried again.
#[rustfmt::skip]
const ENDS: [(i32, i64, u16, Result<i64, FailedReason>); 13] = [
    // the answer was final, whichever attempt it was and however late
    (0, 0, 404, Err(FailedReason::Permanent)),
    (4, 155, 301, Err(FailedReason::Permanent)),
    (9, 75_000, 410, Err(FailedReason::Permanent)),
    (9, DAY, 404, Err(FailedReason::Permanent)),

    // the tenth attempt was the last
    (8, 40_000, 503, Ok(76_000)),
    (9, 75_000, 503, Err(FailedReason::Exhausted)),
    (9, DAY, 503, Err(FailedReason::Exhausted)), // were there an eleventh, it would be too late as well

    // the next attempt would come later than a day after the first
    (8, DAY - 36_000, 503, Ok(DAY)),
    (8, DAY - 36_000 + 1, 503, Err(FailedReason::Expired)),
    (1, DAY - 30, 500, Ok(DAY)),
    (1, DAY - 29, 500, Err(FailedReason::Expired)),
    (1, DAY, 408, Err(FailedReason::Expired)),
    (3, 3 * DAY, 425, Err(FailedReason::Expired)),
];

#[test]
fn a_failed_delivery_says_why() {
    for (made, now, status, expected) in ENDS {
        let before = if made == 0 { pending() } else { tried(made) };
        let after = after(before, answer(status), now);
        let wanted = match expected {
            Ok(due) => (Status::Retrying, None, Some(at(due))),
            Err(reason) => (Status::Failed, Some(reason), None),
        };
        let came = (after.status, after.failed_reason, after.next_attempt_at);
        assert_eq!(came, wanted, "{status} at {now} after {made}");
    }
}

#[test]
fn a_held_one_ends_too_when_its_attempts_or_its_time_are_over() {
    let ends = [
        (8, 40_000, Status::Held, None),
        (9, 75_000, Status::Failed, Some(FailedReason::Exhausted)),
        (1, DAY, Status::Failed, Some(FailedReason::Expired)),
    ];
    for (made, now, status, reason) in ends {
        let after = after(put_away(tried(made), Status::Held), answer(503), now);
        assert_eq!((after.status, after.failed_reason), (status, reason));
        assert_eq!((after.next_attempt_at, after.attempts), (None, made + 1));
    }
}

#[test]
fn a_delivery_whose_time_is_over_fails_without_an_attempt() {
    for status in statuses() {
        let before = state(status);
        let wanted = match status {
            Status::Pending | Status::Retrying => Delivery {
                failed_reason: Some(FailedReason::Expired),
                ..put_away(before.clone(), Status::Failed)
            },
            Status::Held | Status::Succeeded | Status::Failed | Status::Cancelled => before.clone(),
        };
        assert_eq!(expired(before), wanted, "{status:?}");
    }
}

#[test]
fn its_time_is_over_a_day_after_its_first_attempt() {
    let schedule = Schedule::default();
    let untried = is_expired(&pending(), &schedule, at(100 * DAY));
    assert!(!untried, "one that was never tried has time");
    let day = at(DAY);
    for (moment, over) in [
        (at(0), false),
        (day, false),
        (day.plus_millis(1), true),
        (at(9 * DAY), true),
    ] {
        assert_eq!(is_expired(&tried(1), &schedule, moment), over, "{moment}");
    }
}

/// (attempt, jitter, seconds that `Retry-After` asks for, milliseconds until the next attempt)
#[rustfmt::skip]
const WAITS: [(i32, f64, Option<u64>, i64); 19] = [
    // no header
    (1, 0.0, None, 5_000),
    (1, 1.0, None, 5_500),

    // shorter than the plan
    (1, 0.0, Some(0), 5_000),
    (1, 0.0, Some(4), 5_000),
    (1, 0.0, Some(5), 5_000),
    (5, 0.0, Some(60), 1_800_000),
    (5, 0.5, Some(1_800), 1_890_000), // nor does it take the jitter away

    // longer
    (1, 0.0, Some(6), 6_000),
    (1, 1.0, Some(6), 6_000), // what is asked for has no jitter
    (1, 1.0, Some(5), 5_500),
    (4, 0.0, Some(3_600), 3_600_000),
    (7, 1.0, Some(12_000), 12_000_000),

    // six hours at most
    (1, 0.0, Some(21_599), 21_599_000),
    (1, 0.0, Some(21_600), 21_600_000),
    (1, 1.0, Some(21_601), 21_600_000),
    (1, 0.0, Some(u64::MAX), 21_600_000),
    (8, 0.0, Some(u64::MAX), 21_600_000),
    (8, 0.5, Some(30_000), 22_680_000), // the plan with its jitter is longer than that
    (9, 0.0, Some(50_000), 36_000_000),
];

#[test]
fn it_waits_as_the_plan_says_or_as_retry_after_asks_whichever_is_longer() {
    for (nth, jitter, asked, wait_ms) in WAITS {
        for status in [408, 425, 429, 500, 503, 599] {
            let before = if nth == 1 { pending() } else { tried(nth - 1) };
            let attempt = Attempt {
                outcome: asked.map_or(answer(status), |seconds| asking(status, seconds)),
                started_at: at(100),
                jitter,
            };
            let after = attempted(before, &attempt, &Schedule::default(), at(101));
            let line = format!("{nth}, {attempt:?}");
            assert_eq!(after.next_attempt_at, Some(at(101).plus_millis(wait_ms)), "{line}");
            assert_eq!((after.status, after.attempts), (Status::Retrying, nth), "{line}");
        }
    }
}

#[test]
fn a_retry_after_beyond_the_day_ends_it() {
    for (now, expected) in [
        (DAY - 6 * HOUR, Ok(DAY)),
        (DAY - 6 * HOUR + 1, Err(FailedReason::Expired)),
        (DAY - HOUR, Err(FailedReason::Expired)),
    ] {
        let after = after(tried(1), asking(503, 6 * 3600), now);
        assert_eq!(after.next_attempt_at, expected.ok().map(at), "{now}");
        assert_eq!(after.failed_reason, expected.err(), "{now}");
    }
}

#[test]
fn a_retry_after_on_a_final_answer_changes_nothing() {
    for (outcome, verdict) in outcomes() {
        let (AttemptOutcome::Answered { status, .. }, Verdict::Delivered | Verdict::Refused) = (outcome, verdict)
        else {
            continue;
        };
        assert_eq!(asking(status, 600).verdict(), verdict);
        let [asked, plain] = [asking(status, 600), answer(status)].map(|outcome| after(tried(1), outcome, 60));
        assert_eq!(asked, plain);
    }
}

/// (outcome, seconds that the whole endpoint is left alone)
#[rustfmt::skip]
fn pauses() -> Vec<(AttemptOutcome, Option<i64>)> {
    vec![
        // too many requests: always, by the plan's first wait if it does not say how long
        (answer(429), Some(5)),
        (asking(429, 0), Some(0)),
        (asking(429, 1), Some(1)),
        (asking(429, 60), Some(60)),

        // every other answer that is tried again: when it says how long
        (answer(408), None),
        (answer(425), None),
        (answer(500), None),
        (answer(503), None),
        (asking(408, 60), Some(60)),
        (asking(425, 60), Some(60)),
        (asking(500, 60), Some(60)),
        (asking(503, 60), Some(60)),

        // a quarter of an hour at most
        (asking(429, 900), Some(900)),
        (asking(429, 901), Some(900)),
        (asking(429, u64::MAX), Some(900)),
        (asking(503, 899), Some(899)),
        (asking(503, 86_400), Some(900)),

        // what is final, and what was taken
        (answer(200), None),
        (asking(200, 60), None),
        (asking(204, 60), None),
        (asking(301, 60), None),
        (asking(404, 60), None),
        (asking(410, 60), None),
    ]
}

#[test]
fn a_429_or_a_retry_after_pauses_the_whole_endpoint() {
    let unanswered = failures().into_iter().map(|(outcome, _)| (outcome, None));
    for (outcome, seconds) in pauses().into_iter().chain(unanswered) {
        let until = pause_until(&outcome, &Schedule::default(), at(7));
        assert_eq!(until, seconds.map(|seconds| at(7 + seconds)), "{outcome:?}");
    }
}

#[test]
fn a_429_pauses_at_most_a_quarter_of_an_hour_whatever_the_operators_plan() {
    for (delays, seconds) in [(vec![], 0), (vec![1], 1), (vec![900], 900), (vec![7_200, 1], 900)] {
        let delays = delays.into_iter().map(Duration::from_secs).collect();
        let schedule = Schedule {
            delays,
            ..Schedule::default()
        };
        assert_eq!(pause_until(&answer(429), &schedule, at(7)), Some(at(7 + seconds)));
    }
}

#[test]
fn a_test_is_tried_once() {
    for (outcome, verdict) in outcomes() {
        let after = attempted(pending(), &attempt(outcome.clone(), 0), &Schedule::once(), at(1));
        let wanted = match verdict {
            Verdict::Delivered => (Status::Succeeded, None),
            Verdict::TryAgain => (Status::Failed, Some(FailedReason::Exhausted)),
            Verdict::Refused => (Status::Failed, Some(FailedReason::Permanent)),
        };
        assert_eq!((after.status, after.failed_reason), wanted, "{outcome:?}");
    }
}

/// How one attempt goes: how late it starts, how long it takes, what comes of it, the luck of its retry, and whether
/// its endpoint is suspended meanwhile.
#[derive(Clone, Debug)]
struct Try {
    late_ms: i64,
    takes_ms: i64,
    outcome: AttemptOutcome,
    jitter: f64,
    suspended: bool,
}

/// One step of a delivery's life.
#[derive(Debug)]
struct Step {
    before: Delivery,
    /// `None`: its time was over.
    attempt: Option<Attempt>,
    now: Moment,
    after: Delivery,
}

/// All that happens to a delivery until it has ended, or the tries have. What is held is recovered at once.
fn life(tries: &[Try], schedule: &Schedule) -> Vec<Step> {
    let (mut delivery, mut steps) = (pending(), Vec::new());
    for one in tries {
        let Some(due) = delivery.next_attempt_at else { break };
        let before = delivery;
        let started_at = due.plus_millis(one.late_ms);
        let (attempt, now, after) = if is_expired(&before, schedule, started_at) {
            (None, started_at, expired(before.clone()))
        } else {
            let (attempt, now) = (one.attempt(started_at), started_at.plus_millis(one.takes_ms));
            let meanwhile = if one.suspended {
                put_away(before.clone(), Status::Held)
            } else {
                before.clone()
            };
            let after = attempted(meanwhile, &attempt, schedule, now);
            (Some(attempt), now, after)
        };
        delivery = recovered(after.clone(), schedule, now);
        steps.push(Step {
            before,
            attempt,
            now,
            after,
        });
    }
    steps
}

impl Try {
    fn attempt(&self, started_at: Moment) -> Attempt {
        Attempt {
            outcome: self.outcome.clone(),
            started_at,
            jitter: self.jitter,
        }
    }
}

fn recovered(delivery: Delivery, schedule: &Schedule, now: Moment) -> Delivery {
    match delivery.status {
        Status::Held if is_expired(&delivery, schedule, now) => put_away(delivery, Status::Cancelled),
        Status::Held => Delivery {
            status: Status::Pending,
            next_attempt_at: Some(now),
            ..delivery
        },
        _ => delivery,
    }
}

fn in_vain(jitter: f64) -> Vec<Try> {
    let one = Try {
        late_ms: 0,
        takes_ms: 0,
        outcome: answer(500),
        jitter,
        suspended: false,
    };
    vec![one; 20]
}

#[test]
fn a_receiver_that_never_recovers_is_tried_ten_times_by_the_contracts_plan() {
    let steps = life(&in_vain(0.0), &Schedule::default());
    let wait_ms = |step: &Step| Some(step.after.next_attempt_at?.millis() - step.now.millis());
    let gaps: Vec<i64> = steps.iter().filter_map(wait_ms).collect();
    assert_eq!(gaps, PLAN.map(|seconds| seconds * 1000));
    let last = &steps.last().unwrap().after;
    assert_eq!(
        (last.attempts, last.status, last.failed_reason),
        (10, Status::Failed, Some(FailedReason::Exhausted))
    );
}

#[test]
fn jitter_adds_up_to_a_tenth_and_still_leaves_ten_attempts_in_a_day() {
    for (jitter, first_gap_ms) in [(0.0, 5_000), (0.5, 5_250), (1.0, 5_500), (-1.0, 5_000), (7.0, 5_500)] {
        let steps = life(&in_vain(jitter), &Schedule::default());
        let due = steps[0].after.next_attempt_at;
        assert_eq!(due, Some(Moment::from_millis(first_gap_ms)), "{jitter}");
        let last = &steps.last().unwrap().after;
        assert_eq!(
            (last.attempts, last.failed_reason),
            (10, Some(FailedReason::Exhausted)),
            "{jitter}"
        );
    }
}

#[test]
fn no_attempt_is_due_after_the_operators_window() {
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    for (second_delay, reason) in [(1, None), (2, Some(FailedReason::Expired))] {
        let schedule = Schedule {
            delays: vec![hours(23), hours(second_delay)],
            window: hours(24),
        };
        let second = life(&in_vain(0.0)[..2], &schedule).pop().unwrap().after;
        assert_eq!((second.attempts, second.failed_reason), (2, reason));
    }
}

fn retry_after() -> impl Strategy<Value = Option<Duration>> {
    let seconds = prop_oneof![3 => 0..120_u64, 2 => 0..36_000_u64, 1 => Just(u64::MAX)];
    prop_oneof![2 => Just(None), 1 => seconds.prop_map(|seconds| Some(Duration::from_secs(seconds)))]
}

fn tries() -> impl Strategy<Value = Vec<Try>> {
    let codes = prop_oneof![12 => 500..=599_u16, 3 => Just(429_u16), 1 => 100..=599_u16];
    let answered =
        (codes, retry_after()).prop_map(|(status, retry_after)| AttemptOutcome::Answered { status, retry_after });
    let failed = prop::sample::select(failures()).prop_map(|(outcome, _)| outcome);
    let outcome = prop_oneof![10 => answered, 3 => failed];
    // Mostly on time; at times the service was down for hours.
    let late_ms = prop_oneof![5 => 0..50_i64, 1 => 0..4 * 3_600_000_i64];
    let suspended = prop::bool::weighted(0.1);
    let one = (late_ms, 0..30_000_i64, outcome, -0.5..1.5_f64, suspended);
    let one = one.prop_map(|(late_ms, takes_ms, outcome, jitter, suspended)| Try {
        late_ms,
        takes_ms,
        outcome,
        jitter,
        suspended,
    });
    prop::collection::vec(one, 0..15)
}

/// What counts of the seconds that its receiver asked for.
fn asked_s(outcome: &AttemptOutcome) -> i64 {
    match outcome {
        AttemptOutcome::Answered { retry_after, .. } => {
            let asked = retry_after.unwrap_or_default().as_secs();
            i64::try_from(asked).unwrap_or(i64::MAX).min(6 * HOUR)
        }
        AttemptOutcome::Failed(_) => 0,
    }
}

/// One more attempt, some seconds later.
fn later() -> impl Strategy<Value = (AttemptOutcome, i64)> {
    let outcome = prop::sample::select(outcomes()).prop_map(|(outcome, _)| outcome);
    (outcome, 0..2 * DAY)
}

/// A whole life by the default plan.
fn lives() -> impl Strategy<Value = Vec<Step>> {
    tries().prop_map(|tries| life(&tries, &Schedule::default()))
}

proptest! {
    #[test]
    fn at_most_ten_attempts_and_each_is_counted(steps in lives()) {
        for Step { before, attempt, after, .. } in &steps {
            prop_assert_eq!(after.attempts, before.attempts + i32::from(attempt.is_some()));
            prop_assert!(after.attempts <= 10);
        }
    }

    #[test]
    fn none_is_due_or_made_later_than_a_day_after_the_first(steps in lives()) {
        let first = steps.first().and_then(|step| Some(step.attempt.as_ref()?.started_at));
        for Step { attempt, after, .. } in &steps {
            prop_assert_eq!(after.first_attempt_at, first);
            let over = first.unwrap().plus_seconds(DAY);
            prop_assert!(after.next_attempt_at.is_none_or(|due| due <= over));
            prop_assert!(attempt.as_ref().is_none_or(|attempt| attempt.started_at <= over));
        }
    }

    #[test]
    fn each_gap_is_the_plans_and_up_to_a_tenth_more_unless_retry_after_asks_for_longer(steps in lives()) {
        for Step { attempt, now, after, .. } in &steps {
            let (Some(attempt), Some(due)) = (attempt, after.next_attempt_at) else { continue };
            let plan_ms = planned(after.attempts) * 1000;
            let asked_ms = asked_s(&attempt.outcome) * 1000;
            let gap_ms = due.millis() - now.millis();
            prop_assert!((plan_ms.max(asked_ms)..=(plan_ms * 11 / 10).max(asked_ms)).contains(&gap_ms));
        }
    }

    #[test]
    fn it_is_due_again_if_and_only_if_it_is_to_be_sent(steps in lives()) {
        for Step { after, .. } in &steps {
            let open = matches!(after.status, Status::Pending | Status::Retrying);
            prop_assert_eq!(after.next_attempt_at.is_some(), open);
        }
    }

    #[test]
    fn held_never_has_a_next_attempt(steps in lives(), (outcome, late_s) in later()) {
        for Step { after, now, .. } in steps {
            let (held, now) = (put_away(after, Status::Held), now.plus_seconds(late_s));
            let attempt = Attempt { outcome: outcome.clone(), started_at: now, jitter: 0.0 };
            for after in [attempted(held.clone(), &attempt, &Schedule::default(), now), expired(held)] {
                prop_assert_eq!(after.next_attempt_at, None);
                prop_assert!(!matches!(after.status, Status::Pending | Status::Retrying));
            }
        }
    }

    #[test]
    fn it_succeeds_if_and_only_if_its_last_attempt_did(steps in lives()) {
        for Step { attempt, after, .. } in &steps {
            let outcome = attempt.as_ref().map(|attempt| &attempt.outcome);
            let taken = matches!(outcome, Some(AttemptOutcome::Answered { status: 200..=299, .. }));
            prop_assert_eq!(after.status == Status::Succeeded, taken);
        }
    }

    #[test]
    fn a_final_state_is_final(steps in lives(), (outcome, late_s) in later()) {
        for Step { after, now, .. } in steps {
            let now = now.plus_seconds(late_s);
            let attempt = Attempt { outcome: outcome.clone(), started_at: now, jitter: 0.5 };
            let cancelled = put_away(after.clone(), Status::Cancelled);
            for ended in [after, cancelled].into_iter().filter(|delivery| is_final(delivery.status)) {
                prop_assert_eq!(&attempted(ended.clone(), &attempt, &Schedule::default(), now), &ended);
                prop_assert_eq!(&expired(ended.clone()), &ended);
            }
        }
    }

    #[test]
    fn failed_has_a_reason_and_only_failed_has_one(steps in lives()) {
        for Step { attempt, after, .. } in &steps {
            prop_assert_eq!(after.failed_reason.is_some(), after.status == Status::Failed);
            match after.failed_reason {
                Some(FailedReason::Permanent) => {
                    let verdict = attempt.as_ref().map(|attempt| attempt.outcome.verdict());
                    prop_assert_eq!(verdict, Some(Verdict::Refused));
                }
                Some(FailedReason::Exhausted) => prop_assert_eq!(after.attempts, 10),
                Some(FailedReason::Expired) => prop_assert!(after.attempts < 10),
                None => {}
            }
        }
    }

    #[test]
    fn no_pause_is_longer_than_a_quarter_of_an_hour_or_follows_what_is_final(tries in tries()) {
        for Try { outcome, .. } in tries {
            let until = pause_until(&outcome, &Schedule::default(), at(7));
            prop_assert!(until.is_none_or(|until| (at(7)..=at(7 + 900)).contains(&until)));
            prop_assert!(until.is_none() || outcome.verdict() == Verdict::TryAgain);
        }
    }
}
