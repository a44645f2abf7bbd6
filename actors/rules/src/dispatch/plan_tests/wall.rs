//! The wall clock is not our time: what is planned is allowed by both.
use super::properties::cases;
use super::*;
use crate::{
    dispatch::{candidate::Within, queue::Circumstances},
    eligibility::{ContactRecord, RING_MS, Verdict},
};
use proptest::prelude::*;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

fn office() -> serde_json::Value {
    json!({
        "schedule": { "windows": [{ "start": "09:00", "end": "17:00" }] },
        "retry": { "max_attempts": 2, "min_gap_minutes": 30 },
    })
}

/// On that Monday, in UTC.
fn at(hour: i64, minute: i64, second: i64) -> Moment {
    noon().plus_millis((hour - 12) * HOUR + minute * MINUTE + second * 1000)
}

fn tenant(now: Moment, behind_ms: i64, contacts: usize) -> Tenant {
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60);
    (tenant.now, tenant.behind_ms) = (now, behind_ms);
    tenant.with(0, office(), contacts, "UTC")
}

#[test]
fn hours_open_when_they_have_opened_by_both_clocks() {
    let tomorrow = |hour: i64, minute, second| at(24 + hour, minute, second);
    // Our time, and how far the wall clock is behind it: when somebody is called.
    for (now, behind_ms, expected) in [
        (at(8, 0, 0), 0, at(9, 0, 0)),
        (at(9, 30, 0), 0, at(9, 30, 0)),
        (at(8, 0, 0), HOUR, at(10, 0, 0)),
        (at(9, 30, 0), HOUR, at(10, 0, 0)),
        (at(10, 0, 0), HOUR, at(10, 0, 0)),
        (at(14, 59, 0), 6 * HOUR, at(15, 0, 0)),
        // All the ringing lies inside, by the wall clock at half the speed.
        (at(16, 59, 28), 0, at(16, 59, 28)),
        (at(16, 59, 29), 0, tomorrow(9, 0, 0)),
        (at(16, 58, 50), 20_000, at(16, 58, 50)),
        (at(16, 59, 20), 20_000, tomorrow(9, 0, 20)),
    ] {
        let mut tenant = tenant(now, behind_ms, 1);
        tenant.live_on(|_, _| {});
        assert_eq!(tenant.calls[0].0, expected, "{now:?}, {behind_ms} behind");
    }
}

#[test]
fn a_call_knows_between_which_moments_of_either_clock_it_may_start() {
    let ours = (at(9, 0, 0), at(17, 0, 0).plus_millis(-RING_MS));
    let wall = (at(9, 0, 0), at(17, 0, 0).plus_millis(-2 * RING_MS));
    for (behind_ms, wall) in [(0, ours), (1, wall), (HOUR, wall), (-HOUR, wall)] {
        let mut tenant = tenant(noon(), behind_ms, 2);
        // One who waited for a time, and one who is fresh.
        tenant.retries(0, 0, noon());
        for _ in 0..2 {
            let plan = tenant.round();
            let hours: Vec<Within> = plan.calls.iter().map(|call| call.turn.hours).collect();
            assert_eq!(hours, [Within { ours, wall }], "{behind_ms} behind");
            tenant.go_to(tenant.now.plus_seconds(1));
        }
        assert_eq!(tenant.whom(0), [0, 1]);
    }
}

#[test]
fn a_clock_that_falls_back_out_of_the_hours_lets_nobody_be_called() {
    let mut tenant = tenant(at(16, 30, 0), 0, 3);
    assert_eq!(tenant.round().calls.len(), 1);
    tenant.go_to(tenant.now.plus_seconds(1));
    // By the wall clock it is half past six: the hours were looked at before.
    tenant.behind_ms = 10 * HOUR;
    let plan = tenant.round();
    let (first, last) = plan.calls[0].turn.hours.wall;
    assert!(first > last, "the guard must refuse it");
    // Then the rows are read again.
    tenant.reopen(0);
    tenant.go_to(tenant.now.plus_seconds(1));
    let plan = tenant.round();
    assert!(plan.calls.is_empty());
    assert_eq!(plan.resting, [(campaign_id(0), at(19, 0, 0))]);
}

#[test]
fn a_campaign_rests_until_those_who_wait_may_be_called_by_both_clocks() {
    // How far the wall clock is behind: until when the campaign rests of which one waits for its time.
    for (behind_ms, expected) in [(0, None), (10 * MINUTE, None), (HOUR, Some(at(10, 0, 0)))] {
        let mut tenant = tenant(at(9, 30, 0), behind_ms, 1);
        tenant.waits(0, 0, at(16, 0, 0));
        tenant.reopen(0);
        let plan = tenant.round();
        let resting: Vec<_> = expected.map(|at| (campaign_id(0), at)).into_iter().collect();
        assert_eq!(plan.resting, resting, "{behind_ms} behind");
        assert_eq!(plan.wake_at.0, Some(at(16, 0, 0)));
        let limiting = match expected {
            Some(_) => LimitingFactor::QuietHours,
            None => LimitingFactor::Waiting,
        };
        assert_eq!(plan.limits, [(campaign_id(0), limiting)]);
    }
}

#[test]
fn a_number_is_capped_by_the_clock_that_shows_less() {
    let caps = json!({ "caps": { "per_number_24h": 1, "on_cap": "defer" } });
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, caps, 1, "UTC");
    let in_minutes = |minutes: i64| noon().plus_millis(minutes * MINUTE);
    // So many minutes ago it was called, and so far behind is the wall clock.
    for (ago, behind_ms, expected) in [
        (23 * 60, 0, Verdict::Wait(Some(in_minutes(60)))),
        (25 * 60, 0, Verdict::Yes),
        (23 * 60, HOUR, Verdict::Wait(Some(in_minutes(120)))),
        (24 * 60 + 30, HOUR, Verdict::Wait(Some(in_minutes(30)))),
        (25 * 60, HOUR, Verdict::Yes),
    ] {
        let queue = tenant.queue_mut(0);
        queue.look(noon(), behind_ms);
        let whom = contact(0, 0, "UTC");
        let record = ContactRecord {
            has_number: true,
            recent: vec![in_minutes(-ago)],
            ..ContactRecord::default()
        };
        let people = queue.address_of(&whom).map(|address| (address, record));
        let so = Circumstances {
            suspended_since: None,
            credits_gone: false,
        };
        let found = queue.judged(vec![whom], people.into_iter().collect(), noon(), so);
        assert_eq!(found[0].verdict, expected, "{ago} minutes ago, {behind_ms} behind");
    }
}

proptest! {
    #![proptest_config(cases(48))]
    /// With a clock that is less behind than a phone rings, the guard refuses the last calls of a day, and they are planned anew.
    #[test]
    fn every_call_lies_in_its_hours_by_both_clocks(
        starts in 0i64..24 * 60, behind_ms in RING_MS..6 * HOUR, contacts in 1usize..20, is_east in any::<bool>(), rate in 1i32..60,
    ) {
        let (zone, ahead) = if is_east { ("Asia/Tokyo", 9 * HOUR) } else { ("UTC", 0) };
        let mut fields = office();
        fields["pacing"] = json!({ "calls_per_second": rate });
        let mut tenant = Tenant::new(room(5, 0), 100.0, 30);
        (tenant.now, tenant.behind_ms) = (at(0, starts, 0), behind_ms);
        tenant = tenant.with(0, fields, contacts, zone);
        tenant.live_on(|_, plan| {
            for call in &plan.calls {
                let by_wall = call.at.plus_millis(-behind_ms);
                for moment in [call.at, by_wall] {
                    let of_day = (moment.millis() + ahead).rem_euclid(24 * HOUR);
                    assert!((9 * HOUR..17 * HOUR).contains(&of_day), "{moment:?}");
                }
                let (first, last) = call.turn.hours.wall;
                assert!(first <= by_wall && by_wall <= last, "the guard would refuse it");
            }
        });
        prop_assert_eq!(tenant.called(0), 2 * contacts);
    }
}
