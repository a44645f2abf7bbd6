//! Whose turn it is: due retries, then priority, then the list's order; and for how long it stays the same one's.
use super::*;
use entities::{
    contact::WaitReason,
    ids::{ContactId, SessionId},
};
use uuid::Uuid;

#[test]
fn due_retries_come_first_then_priority_then_the_lists_order() {
    let mut tenant = Tenant::new(room(9, 0), 100.0, 1).with(0, json!({}), 7, "UTC");
    let ago = |minutes: i64| noon().plus_seconds(-60 * minutes);
    tenant.row_mut(0, 1).priority = 5;
    tenant.retries(0, 2, ago(10));
    tenant.retries(0, 3, ago(20));
    // However it ranks: it was due first.
    tenant.row_mut(0, 3).priority = -5;
    tenant.waits(0, 4, ago(30));
    tenant.waits(0, 5, ago(1));
    // Whoever only waited for a time ranks like one who did not.
    tenant.row_mut(0, 5).priority = 9;
    tenant.live_on(|_, _| {});
    assert_eq!(tenant.whom(0), [3, 2, 5, 1, 0, 4, 6]);
}

#[test]
fn a_retry_that_becomes_due_does_not_wait_behind_those_at_hand() {
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({}), 10, "UTC");
    // The last of the list: it is due, and has no turn before all who are fresh.
    tenant.waits(0, 9, noon().plus_seconds(-60));
    tenant.retries(0, 0, noon().plus_seconds(2));
    tenant.live_on(|_, _| {});
    assert_eq!(tenant.whom(0), [1, 2, 3, 0, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_retry_in_its_quiet_hours_is_put_off_and_keeps_nobody() {
    let fields = json!({ "schedule": { "windows": [{ "start": "09:00", "end": "17:00" }] } });
    let mut tenant = Tenant::new(room(9, 0), 100.0, 1).with(0, fields, 3, "UTC");
    // It is 21:00 there.
    tenant.row_mut(0, 0).zone = "Asia/Tokyo".into();
    tenant.retries(0, 0, noon().plus_seconds(-60));
    tenant.live_on(|_, _| {});
    let opens_at = noon().plus_seconds(12 * 3600);
    let put_off = (campaign_id(0), Settlement::Defer(opens_at, WaitReason::Retry));
    assert_eq!(tenant.settled, [put_off]);
    assert_eq!(tenant.whom(0), [1, 2, 0]);
    assert_eq!(tenant.calls[2].0, opens_at);
}

#[test]
fn in_a_review_those_who_wait_are_left_alone() {
    let mut tenant = Tenant::new(room(9, 0), 100.0, 1).with(0, json!({}), 3, "UTC");
    tenant.retries(0, 0, noon().plus_seconds(-60));
    tenant.campaigns.get_mut(&campaign_id(0)).unwrap().review_of = Some(1);
    tenant.reopen(0);
    let mut limits = Vec::new();
    tenant.live_on(|_, plan| limits.clone_from(&plan.limits));
    assert_eq!(tenant.whom(0), [1, 2]);
    assert_eq!(limits, [(campaign_id(0), LimitingFactor::Waiting)]);
    tenant.campaigns.get_mut(&campaign_id(0)).unwrap().review_of = None;
    tenant.reopen(0);
    tenant.live_on(|_, _| {});
    assert_eq!(tenant.whom(0), [1, 2, 0]);
}

#[test]
fn who_finds_no_slot_for_too_long_is_skipped() {
    let fields = json!({ "pacing": { "calls_per_second": 50.0, "max_wait_seconds": 5 } });
    let mut tenant = Tenant::new(room(1, 0), 100.0, 12).with(0, fields, 4, "UTC");
    tenant.live_on(|_, _| {});
    // One is called, two wait 5 seconds each in vain, the last one finds the slot free.
    assert_eq!(tenant.called(0), 2);
    let skipped = (campaign_id(0), Settlement::Skip(SkipReason::ConcurrencyFull));
    assert_eq!(tenant.settled, [skipped; 2]);
}

#[test]
fn nobody_is_skipped_for_the_time_that_another_one_waited() {
    let fields = json!({ "pacing": { "calls_per_second": 50.0, "max_wait_seconds": 10 } });
    let mut tenant = Tenant::new(room(1, 0), 100.0, 60).with(0, fields, 2, "UTC");
    let taken = SessionId(Uuid::from_u128(999));
    tenant
        .snapshot
        .live
        .insert(taken, Slot::outbound(Env::Test, None, None));
    // It takes the turn of the one who has waited 8 seconds by then, and is looked at 2 seconds later.
    tenant.retries(0, 1, noon().plus_seconds(8));
    let mut skipped: Vec<(Moment, ContactId)> = Vec::new();
    tenant.live_on(|tenant, plan| {
        skipped.extend(plan.settled.iter().map(|settled| (tenant.now, settled.contact.id)));
    });
    let (first, then) = (noon().plus_seconds(20), noon().plus_millis(30_003));
    assert_eq!(skipped, [(first, contact_id(0, 1)), (then, contact_id(0, 0))]);
}

#[test]
fn whoever_starts_within_the_same_millisecond_takes_part_in_the_turns() {
    let fields = || json!({ "pacing": { "calls_per_second": 10.0 } });
    // How many milliseconds later the second campaign has its token, and whose turn it is at that moment: who starts when.
    for (lag, expected) in [
        (0, [(1, 100), (0, 100)]),
        (1, [(1, 100), (0, 100)]),
        (2, [(0, 100), (1, 102)]),
        (40, [(0, 100), (1, 140)]),
    ] {
        let mut tenant = Tenant::new(room(9, 0), 1_000.0, 60)
            .with(0, fields(), 3, "UTC")
            .with(1, fields(), 3, "UTC");
        assert!(tenant.queue_mut(0).pace.spend(noon()));
        assert!(tenant.queue_mut(1).pace.spend(noon().plus_millis(lag)));
        // The first has had its turn.
        assert_eq!(tenant.snapshot.ring.next(|_| true, |_| 1), Some(campaign_id(0)));
        tenant.go_to(noon().plus_millis(50));
        tenant.round();
        let calls = tenant.calls.iter().map(|(at, campaign, _)| (*campaign, *at));
        let calls: Vec<(CampaignId, Moment)> = calls.collect();
        let expected = expected.map(|(n, millis)| (campaign_id(n), noon().plus_millis(millis)));
        assert_eq!(calls, expected, "{lag}");
    }
}
