//! From outcomes to rows, rule by rule; then what holds for every group of outcomes.
use super::*;
use crate::{
    delivery::{
        failure::{Failure, Timings},
        machine::AttemptOutcome,
        samples::{self, answer, asking, at, endpoint_state as of},
    },
    effect::Fact,
    event::{Event, WebhookEndpointDisabledNotice},
};
use entities::{
    changes::Queue,
    delivery::FailedReason,
    delivery_attempt,
    ids::{DeliveryId, EventId, TenantId},
    values::Env,
};
use proptest::prelude::*;
use std::collections::HashSet;
use uuid::Uuid;

const DAY: i64 = 24 * 3600;
/// When the group is settled; its attempts began a second before.
const NOW: i64 = 10 * DAY;

fn endpoint(failure_streak: i32) -> Endpoint {
    Endpoint {
        failure_streak,
        ..samples::endpoint(EndpointStatus::Active, 7)
    }
}

fn suspended(failure_streak: i32) -> Endpoint {
    Endpoint {
        status: EndpointStatus::Suspended,
        suspended_at: Some(at(NOW - 9)),
        ..endpoint(failure_streak)
    }
}

fn disabled(failure_streak: i32) -> Endpoint {
    Endpoint {
        status: EndpointStatus::Disabled,
        ..endpoint(failure_streak)
    }
}

/// The tenth failure suspends.
fn limits() -> Limits {
    samples::limits(10)
}

/// Tried so often before, the first time a minute ago.
#[rustfmt::skip]
fn delivery(number: u128, origin: Origin, attempts: i32) -> Delivery {
    let was_tried = attempts > 0;
    Delivery {
        endpoint_id: endpoint(0).id, id: DeliveryId(Uuid::from_u128(number)),
        tenant_id: TenantId(Uuid::from_u128(2)), env: Env::Test,
        event_id: EventId(Uuid::from_u128(1000 + number)), event_seq: i64::try_from(number).unwrap(),
        origin, replay_of: None, failed_reason: None,
        status: if was_tried { Status::Retrying } else { Status::Pending },
        attempts, first_attempt_at: was_tried.then_some(at(NOW - 60)), next_attempt_at: Some(at(NOW - 5)),
        created_at: at(NOW - 70),
    }
}

fn report(outcome: AttemptOutcome) -> Report {
    Report {
        signed_at: NOW - 1,
        timings: Timings {
            total_us: 7_900,
            ..Timings::default()
        },
        ..samples::report(outcome, at(NOW - 1))
    }
}

fn no_answer() -> AttemptOutcome {
    AttemptOutcome::Failed(Failure::Timeout)
}

fn tried(delivery: Delivery, outcome: AttemptOutcome) -> Tried {
    Tried {
        delivery,
        report: Some(report(outcome)),
    }
}

/// Its time was over before it was tried again.
fn overdue(number: u128, origin: Origin) -> Tried {
    Tried {
        delivery: Delivery {
            first_attempt_at: Some(at(NOW - DAY - 1)),
            ..delivery(number, origin, 1)
        },
        report: None,
    }
}

/// The first attempts of so many live deliveries.
fn live(outcomes: impl IntoIterator<Item = AttemptOutcome>) -> Vec<Tried> {
    first_attempts(Origin::Live, outcomes)
}

fn first_attempts(origin: Origin, outcomes: impl IntoIterator<Item = AttemptOutcome>) -> Vec<Tried> {
    let numbered = (1..).zip(outcomes);
    numbered
        .map(|(number, outcome)| tried(delivery(number, origin, 0), outcome))
        .collect()
}

fn answers(statuses: &[u16]) -> Vec<Tried> {
    live(statuses.iter().map(|status| answer(*status)))
}

/// Settled now, the first of them without jitter.
fn settled(endpoint_state: EndpointState, tried: &[Tried]) -> Settled {
    settle(endpoint_state, tried, &limits(), at(NOW), 0.0).unwrap()
}

impl Settled {
    fn statuses(&self) -> Vec<Status> {
        self.deliveries.iter().map(|delivery| delivery.status).collect()
    }
    fn endpoint(&self) -> &Endpoint {
        self.endpoint_state.endpoint.as_ref().unwrap()
    }
    fn streak(&self) -> i32 {
        self.endpoint().failure_streak
    }
    /// The endpoint's row, if it is written.
    fn row(&self) -> Option<&Endpoint> {
        let rows = &self.commit.changes.endpoints;
        assert!(rows.len() <= 1, "one row has one new version");
        rows.first()
    }
    fn hour(&self) -> &Hour {
        let [hour] = &self.commit.changes.hours[..] else {
            panic!("one hour's counts")
        };
        hour
    }
    fn notices(&self) -> usize {
        let is_notice = |effect: &&Effect| {
            matches!(
                effect,
                Effect::Fact(Fact::Emit(Event::WebhookEndpointDisabledNotice(_)))
            )
        };
        self.effects.iter().filter(is_notice).count()
    }
}

#[test]
fn the_tenth_failure_suspends_in_the_same_commit() {
    for (streak, failures) in [(9, 1), (5, 5), (0, 10)] {
        let after = settled(of(endpoint(streak)), &answers(&[404].repeat(failures)));
        let wanted = Endpoint {
            status: EndpointStatus::Suspended,
            failure_streak: 10,
            suspended_at: Some(at(NOW)),
            updated_at: at(NOW),
            version: 8,
            ..endpoint(0)
        };
        assert_eq!(after.row(), Some(&wanted), "{streak} and {failures} more");
        assert_eq!(after.endpoint(), &wanted, "the lane knows what was written");
        let told = WebhookEndpointDisabledNotice {
            endpoint_id: wanted.id,
            url: "https://receiver.test/".into(),
            disabled_at: at(NOW),
            failure_streak: 10,
            last_status: 404,
        };
        let notice = Effect::Fact(Fact::Emit(Event::WebhookEndpointDisabledNotice(told)));
        assert!(after.effects.contains(&notice), "{:?}", after.effects);
        let hold = Effect::Fact(Fact::Deliveries {
            endpoint: wanted.key(),
            queue: Queue::Hold,
        });
        assert_eq!((after.effects.first(), after.effects.len()), (Some(&hold), 5));
    }
}

#[test]
fn nine_failures_do_not() {
    let after = settled(of(endpoint(0)), &answers(&[404; 9]));
    assert_eq!((after.endpoint().status, after.streak()), (EndpointStatus::Active, 9));
    assert_eq!(after.row().map(|row| row.version), Some(8));
    assert!(after.effects.is_empty());
}

#[test]
fn what_fails_after_the_tenth_counts_and_is_not_told_again() {
    let after = settled(of(endpoint(9)), &answers(&[404, 404, 410]));
    assert_eq!(
        (after.endpoint().status, after.streak()),
        (EndpointStatus::Suspended, 12)
    );
    assert_eq!((after.notices(), after.row().map(|row| row.version)), (1, Some(8)));
}

#[test]
fn what_would_be_tried_again_is_held_when_its_endpoint_is_suspended() {
    let after = settled(of(endpoint(9)), &answers(&[503, 200, 503, 404, 503, 200]));
    // The success between set the count to 0.
    use Status::{Failed, Held, Retrying, Succeeded};
    assert_eq!(
        after.statuses(),
        [Retrying, Succeeded, Retrying, Failed, Retrying, Succeeded]
    );

    let after = settled(of(endpoint(9)), &answers(&[503, 404, 503, 200, 503]));
    assert_eq!(
        after.statuses(),
        [Held, Failed, Held, Succeeded, Held],
        "whether before or after it"
    );
    for delivery in &after.deliveries {
        assert_eq!((delivery.attempts, delivery.next_attempt_at), (1, None));
    }
    assert_eq!(after.commit.changes.delivery_updates, after.deliveries);
}

#[test]
fn what_was_under_way_when_its_endpoint_was_suspended_is_held_too() {
    let after = settled(of(suspended(10)), &answers(&[503, 200]));
    assert_eq!(after.statuses(), [Status::Held, Status::Succeeded]);
    let after = settled(of(suspended(10)), &answers(&[503]));
    assert_eq!((after.statuses(), after.row()), (vec![Status::Held], None));
    assert!(after.effects.is_empty());
}

#[test]
fn a_replay_too_is_held() {
    let group = first_attempts(Origin::Replay, [answer(503)]);
    assert_eq!(settled(of(suspended(10)), &group).statuses(), [Status::Held]);
}

#[test]
fn a_410_suspends_at_once() {
    let after = settled(of(endpoint(0)), &answers(&[410]));
    assert_eq!(
        (after.endpoint().status, after.streak()),
        (EndpointStatus::Suspended, 1)
    );
    assert_eq!(after.notices(), 1);
}

#[test]
fn replays_and_tests_never_count_neither_up_nor_down() {
    for origin in [Origin::Replay, Origin::Test] {
        for streak in [0, 5, 9] {
            let outcomes = [answer(404), answer(410), answer(200), no_answer()];
            let mut group = first_attempts(origin, outcomes.into_iter().cycle().take(20));
            group.push(overdue(99, origin));
            let after = settled(of(endpoint(streak)), &group);
            assert_eq!(after.endpoint(), &endpoint(streak), "{origin:?}");
            assert_eq!((after.row(), after.effects.len()), (None, 0), "{origin:?}");
            assert_eq!(after.commit.changes.attempts.len(), 20, "they are logged all the same");
        }
    }
}

#[test]
fn an_attempt_that_ends_nothing_does_not_count() {
    for outcome in [answer(500), answer(429), no_answer()] {
        let after = settled(of(endpoint(9)), &live(vec![outcome.clone(); 20]));
        assert_eq!(after.endpoint(), &endpoint(9), "{outcome:?}");
        assert_eq!(after.row(), None);
    }
    // The last of ten attempts does, whatever came of it.
    for outcome in [answer(500), answer(429), no_answer()] {
        let after = settled(of(endpoint(0)), &[tried(delivery(1, Origin::Live, 9), outcome)]);
        assert_eq!(
            (after.streak(), after.deliveries[0].failed_reason),
            (1, Some(FailedReason::Exhausted))
        );
    }
}

#[test]
fn the_order_of_the_outcomes_counts() {
    for (statuses, streak, status) in [
        (&[404, 404, 200][..], 0, EndpointStatus::Active),
        (&[200, 404, 404], 2, EndpointStatus::Active),
        (&[404, 200, 404], 1, EndpointStatus::Active),
        // The first of these fails as the tenth; a success after it enables nothing.
        (&[404, 200], 0, EndpointStatus::Suspended),
        (&[200, 404], 1, EndpointStatus::Active),
    ] {
        let before = if statuses.len() == 2 { 9 } else { 3 };
        let after = settled(of(endpoint(before)), &answers(statuses));
        assert_eq!(
            (after.streak(), after.endpoint().status),
            (streak, status),
            "{statuses:?}"
        );
        assert_eq!(
            after.notices(),
            usize::from(status == EndpointStatus::Suspended),
            "{statuses:?}"
        );
    }
}

#[test]
fn no_row_is_written_for_an_endpoint_that_has_not_changed() {
    for statuses in [&[200][..], &[200, 503, 200], &[503, 429], &[404, 200]] {
        let after = settled(of(endpoint(0)), &answers(statuses));
        assert_eq!((after.row(), after.endpoint()), (None, &endpoint(0)), "{statuses:?}");
    }
    let back_where_it_was = answers(&[200, 404, 404]);
    assert_eq!(settled(of(endpoint(2)), &back_where_it_was).row(), None);
}

#[test]
fn a_disabled_endpoint_counts_and_is_not_suspended() {
    let after = settled(of(disabled(9)), &answers(&[410, 503]));
    assert_eq!(
        (after.endpoint().status, after.streak()),
        (EndpointStatus::Disabled, 10)
    );
    assert!(after.effects.is_empty());
    assert_eq!(after.statuses(), [Status::Failed, Status::Retrying]);
}

#[test]
fn attempts_outlive_their_endpoint_in_the_log() {
    let after = settled(EndpointState::new(endpoint(0).id), &answers(&[200, 404, 503, 410]));
    let numbers: Vec<_> = after.commit.changes.attempts.iter().map(|row| row.status).collect();
    assert_eq!(numbers, [200, 404, 503, 410]);
    use Status::{Failed, Retrying, Succeeded};
    assert_eq!(after.statuses(), [Succeeded, Failed, Retrying, Failed]);
    assert_eq!(
        (after.row(), after.effects.len(), &after.endpoint_state.endpoint),
        (None, 0, &None)
    );
}

#[test]
fn every_attempt_is_logged_with_its_number() {
    let group = [
        tried(delivery(1, Origin::Live, 0), answer(200)),
        tried(delivery(2, Origin::Live, 4), answer(503)),
        tried(delivery(3, Origin::Replay, 9), no_answer()),
        tried(delivery(4, Origin::Live, 1), answer(404)),
    ];
    let log = settled(of(endpoint(0)), &group).commit.changes.attempts;
    let line = |row: &delivery_attempt::Model| (row.delivery_id.0.as_u128(), row.n, row.status);
    let lines: Vec<_> = log.iter().map(line).collect();
    assert_eq!(lines, [(1, 1, 200), (2, 5, 503), (3, 10, 0), (4, 2, 404)]);
    for row in &log {
        assert_eq!(
            (row.started_at, row.signed_at, row.duration_ms),
            (at(NOW - 1), NOW - 1, 7)
        );
    }
}

#[test]
fn one_whose_time_is_over_fails_without_an_attempt() {
    let after = settled(of(endpoint(0)), &[overdue(1, Origin::Live)]);
    let failed = &after.deliveries[0];
    assert_eq!(
        (failed.status, failed.failed_reason),
        (Status::Failed, Some(FailedReason::Expired))
    );
    assert_eq!((failed.attempts, failed.next_attempt_at), (1, None));
    assert!(after.commit.changes.attempts.is_empty());
    assert_eq!((after.hour().attempts, after.hour().failed), (0, 1));
    assert_eq!(
        (after.streak(), after.endpoint().status),
        (1, EndpointStatus::Active),
        "it counts like any other"
    );
    let tenth = settled(of(endpoint(9)), &[overdue(1, Origin::Live)]);
    assert_eq!(tenth.endpoint().status, EndpointStatus::Suspended);
}

#[test]
fn one_whose_time_is_over_says_nothing_of_its_receiver() {
    let known = Health {
        last_status: 503,
        last_success_at: Some(at(NOW - 100)),
        paused_until: Some(at(NOW + 100)),
        ..of(endpoint(0)).health
    };
    let endpoint_state = EndpointState {
        health: known.clone(),
        ..of(endpoint(0))
    };
    assert_eq!(
        settled(endpoint_state, &[overdue(1, Origin::Live)])
            .endpoint_state
            .health,
        known
    );
}

/// A 410 says that the receiver is gone when it answers a live delivery; not when it answered another long ago.
#[test]
fn one_whose_time_is_over_is_no_410_whatever_was_answered_before() {
    let mut endpoint_state = of(endpoint(0));
    endpoint_state.health.last_status = 410;
    let after = settled(endpoint_state, &[overdue(1, Origin::Live)]);
    assert_eq!(
        (after.endpoint().status, after.streak()),
        (EndpointStatus::Active, 1),
        "answered before"
    );

    let mut group = first_attempts(Origin::Replay, [answer(410)]);
    group.push(overdue(2, Origin::Live));
    let after = settled(of(endpoint(0)), &group);
    assert_eq!(
        (after.endpoint().status, after.streak()),
        (EndpointStatus::Active, 1),
        "a replay never counts"
    );
}

#[test]
fn its_health_is_what_the_last_attempt_said() {
    for (outcomes, last_status, last_success_at) in [
        (vec![answer(200), answer(503)], 503, Some(at(NOW))),
        (vec![answer(503), answer(204)], 204, Some(at(NOW))),
        (vec![answer(200), no_answer()], 0, Some(at(NOW))),
        (vec![answer(404)], 404, None),
        (vec![no_answer()], 0, None),
    ] {
        let after = settled(of(endpoint(0)), &live(outcomes));
        let health = &after.endpoint_state.health;
        let seen = (health.last_status, health.last_success_at);
        assert_eq!(seen, (last_status, last_success_at));
        let written = after.commit.changes.healths.iter().collect::<Vec<_>>();
        assert_eq!(written, [health], "the lane knows what was written");
    }
    let mut endpoint_state = of(endpoint(0));
    endpoint_state.health.last_success_at = Some(at(5));
    let after = settled(endpoint_state, &answers(&[404]));
    assert_eq!(
        after.endpoint_state.health.last_success_at,
        Some(at(5)),
        "a failure leaves it as it was"
    );
}

#[test]
fn the_longest_pause_counts_until_it_is_over() {
    for (before, outcomes, wanted) in [
        (None, vec![answer(503)], None),
        (None, vec![answer(429)], Some(5)),
        (None, vec![asking(503, 60)], Some(60)),
        (None, vec![asking(503, 60), asking(429, 30)], Some(60)),
        (None, vec![asking(503, 30), answer(200), asking(429, 60)], Some(60)),
        (None, vec![asking(429, 86_400)], Some(900)),
        (None, vec![asking(429, 0)], None),
        (Some(40), vec![asking(429, 30)], Some(40)),
        (Some(40), vec![asking(429, 50)], Some(50)),
        (Some(40), vec![answer(200)], Some(40)),
        (Some(40), vec![asking(200, 60)], Some(40)),
        (Some(0), vec![answer(200)], None),
        (Some(-40), vec![answer(503)], None),
        (Some(-40), vec![answer(429)], Some(5)),
    ] {
        let mut endpoint_state = of(endpoint(0));
        endpoint_state.health.paused_until = before.map(|seconds| at(NOW + seconds));
        let after = settled(endpoint_state, &live(outcomes.clone()));
        let wanted = wanted.map(|seconds| at(NOW + seconds));
        assert_eq!(
            after.endpoint_state.health.paused_until, wanted,
            "{before:?}, {outcomes:?}"
        );
    }
}

#[test]
fn its_hour_counts_attempts_successes_ends_and_time() {
    let took = |mut tried: Tried, total_us| {
        if let Some(report) = &mut tried.report {
            report.timings.total_us = total_us;
        }
        tried
    };
    let group = [
        took(tried(delivery(1, Origin::Live, 0), answer(200)), 20_000),
        took(tried(delivery(2, Origin::Live, 3), answer(503)), 300_000),
        took(tried(delivery(3, Origin::Live, 9), no_answer()), 4_000_999),
        took(tried(delivery(4, Origin::Replay, 0), answer(404)), 50_000),
        took(tried(delivery(5, Origin::Test, 0), answer(204)), 1_000),
        overdue(6, Origin::Live),
    ];
    let after = settle(of(endpoint(0)), &group, &limits(), at(NOW + 3_725), 0.0).unwrap();
    let wanted = Hour {
        endpoint_id: endpoint(0).id,
        hour: at(NOW + 3_600),
        attempts: 5,
        succeeded: 2,
        failed: 3,
        duration_ms: 4_371,
        longest_ms: 4_000,
    };
    assert_eq!(after.hour(), &wanted);
}

#[test]
fn what_failed_together_does_not_come_back_together() {
    let after = settled(of(endpoint(0)), &live(vec![answer(503); 20]));
    let waits: Vec<i64> = after
        .deliveries
        .iter()
        .map(|delivery| delivery.next_attempt_at.unwrap().millis() - at(NOW).millis())
        .collect();
    assert!(waits.iter().all(|wait| (5_000..=5_500).contains(wait)), "{waits:?}");
    assert_eq!(waits.iter().collect::<HashSet<_>>().len(), 20, "{waits:?}");
}

/// Outcomes of a group, of any origin, at any attempt.
fn group() -> impl Strategy<Value = Vec<Tried>> {
    let closed = AttemptOutcome::Failed(Failure::BlockedTarget("closed".into()));
    let outcome = prop_oneof![
        4 => Just(answer(200)), 8 => Just(answer(404)), 1 => Just(answer(410)), 3 => Just(answer(503)),
        1 => Just(asking(429, 60)), 2 => Just(no_answer()), 1 => Just(closed),
    ];
    let origin = prop_oneof![6 => Just(Origin::Live), 2 => Just(Origin::Replay), 1 => Just(Origin::Test)];
    let one = (origin, 0..10_i32, outcome);
    prop::collection::vec(one, 0..30).prop_map(|group| {
        let numbered = (1..).zip(group);
        numbered
            .map(|(number, (origin, attempts, outcome))| tried(delivery(number, origin, attempts), outcome))
            .collect()
    })
}

fn endpoint_state() -> impl Strategy<Value = EndpointState> {
    let known = prop_oneof![
        4 => (0..10_i32).prop_map(|streak| Some(endpoint(streak))),
        1 => (0..15_i32).prop_map(|streak| Some(suspended(streak))),
        1 => (0..15_i32).prop_map(|streak| Some(disabled(streak))),
        1 => Just(None),
    ];
    known.prop_map(|known| EndpointState {
        endpoint: known,
        ..EndpointState::new(endpoint(0).id)
    })
}

/// The endpoint's streak and status, recomputed from how each delivery ended.
fn recomputed(endpoint: &Endpoint, after: &Settled, group: &[Tried]) -> (i32, EndpointStatus) {
    let (mut streak, mut status) = (endpoint.failure_streak, endpoint.status);
    let live = after
        .deliveries
        .iter()
        .zip(group)
        .filter(|(delivery, _)| delivery.origin == Origin::Live);
    for (delivery, Tried { report, .. }) in live {
        match delivery.status {
            Status::Succeeded => streak = 0,
            Status::Failed => {
                streak += 1;
                let gone = report.as_ref().is_some_and(|report| report.outcome.status() == 410);
                if status == EndpointStatus::Active && (streak >= 10 || gone) {
                    status = EndpointStatus::Suspended;
                }
            }
            _ => {}
        }
    }
    (streak, status)
}

proptest! {
    #[test]
    fn the_streak_recomputed_is_the_streak_stored(before in endpoint_state(), group in group(), jitter in 0.0..1.0_f64) {
        let after = settle(before.clone(), &group, &limits(), at(NOW), jitter).unwrap();
        let Some(endpoint) = before.endpoint else { return Ok(()) };
        let stored = (after.streak(), after.endpoint().status);
        prop_assert_eq!(stored, recomputed(&endpoint, &after, &group));
    }

    #[test]
    fn one_notice_per_suspension(before in endpoint_state(), group in group()) {
        let after = settled(before.clone(), &group);
        let was_active = before.is_active();
        let is_suspended = after.endpoint_state.status() == Some(EndpointStatus::Suspended);
        prop_assert_eq!(after.notices(), usize::from(was_active && is_suspended));
    }

    #[test]
    fn its_row_is_written_if_and_only_if_it_changed_and_one_version_on(before in endpoint_state(), group in group()) {
        let after = settled(before.clone(), &group);
        let changed = after.endpoint_state.endpoint != before.endpoint;
        prop_assert_eq!(after.row(), after.endpoint_state.endpoint.as_ref().filter(|_| changed));
        prop_assert!(after.row().is_none_or(|row| row.version == 8));
        prop_assert!(changed || after.effects.is_empty());
    }

    #[test]
    fn nothing_is_tried_again_while_it_is_suspended(before in endpoint_state(), group in group()) {
        let after = settled(before, &group);
        let is_suspended = after.endpoint_state.status() == Some(EndpointStatus::Suspended);
        for delivery in &after.deliveries {
            prop_assert!(!is_suspended || delivery.next_attempt_at.is_none());
            prop_assert_eq!(delivery.next_attempt_at.is_some(), delivery.status == Status::Retrying);
            prop_assert!(is_suspended || delivery.status != Status::Held);
        }
    }

    #[test]
    fn each_attempt_is_logged_and_each_delivery_updated_once(
        before in endpoint_state(), mut group in group(), late in 0..3_u128,
    ) {
        group.extend((0..late).map(|nth| overdue(500 + nth, Origin::Live)));
        let after = settled(before, &group);
        let logged: Vec<_> = after.commit.changes.attempts.iter().map(|row| (row.delivery_id, row.n)).collect();
        let made: Vec<_> = group.iter().filter(|tried| tried.report.is_some())
            .map(|Tried { delivery, .. }| (delivery.id, delivery.attempts + 1)).collect();
        prop_assert_eq!(logged, made);
        let updated: Vec<_> = after.commit.changes.delivery_updates.iter().map(|row| row.id).collect();
        prop_assert_eq!(updated, group.iter().map(|tried| tried.delivery.id).collect::<Vec<_>>());
        prop_assert_eq!(&after.commit.changes.delivery_updates, &after.deliveries);
    }

    #[test]
    fn its_hour_counts_what_its_rows_say(before in endpoint_state(), group in group()) {
        let after = settled(before, &group);
        let [log, rows] = [after.commit.changes.attempts.len(), after.deliveries.len()];
        let in_status = |status| after.deliveries.iter().filter(|delivery| delivery.status == status).count();
        let counted = [after.hour().attempts, after.hour().succeeded, after.hour().failed];
        let wanted = [log, in_status(Status::Succeeded), in_status(Status::Failed)];
        prop_assert_eq!(counted, wanted.map(|count| i64::try_from(count).unwrap()));
        prop_assert_eq!(log, rows);
        let took: i64 = after.commit.changes.attempts.iter().map(|row| i64::from(row.duration_ms)).sum();
        prop_assert_eq!(after.hour().duration_ms, took);
    }
}
