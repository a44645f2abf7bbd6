//! What one plan decides, line by line. Beside it: whom it takes first, whom the law holds back, what a round holds, what the wall
//! clock forbids, what the two envs share, what a queue hands on to the next, and what holds for every tenant, whatever its campaigns
//! want.
#[path = "plan_tests/brakes.rs"]
mod brakes;
#[path = "plan_tests/envs.rs"]
mod envs;
#[path = "plan_tests/held.rs"]
mod held;
#[path = "plan_tests/keys.rs"]
mod keys;
#[path = "plan_tests/messages.rs"]
mod messages;
#[path = "plan_tests/order.rs"]
mod order;
#[path = "plan_tests/properties.rs"]
mod properties;
#[path = "plan_tests/rounds.rs"]
mod rounds;
#[path = "plan_tests/rows.rs"]
mod rows;
#[path = "plan_tests/successors.rs"]
mod successors;
#[path = "plan_tests/tenant.rs"]
mod tenant;
#[path = "plan_tests/trunks.rs"]
mod trunks;
#[path = "plan_tests/wall.rs"]
mod wall;
#[path = "plan_tests/wishes.rs"]
mod wishes;

use super::*;
use crate::{
    dispatch::{
        funds::{Funds, Purse},
        samples::{TENANT, campaign_id, contact, contact_id, noon},
    },
    effect::DispatchHint,
};
use serde_json::json;
use tenant::Tenant;
use wishes::{blocked, room, texts};

#[test]
fn what_holds_a_campaign_up_is_named() {
    let day = json!({ "windows": [{ "start": "09:00", "end": "17:00" }] });
    // What the campaign wants, the tenant's slots and rate, contacts: what holds it up after its first rounds.
    #[rustfmt::skip]
    let table = [
        (json!({ "pacing": { "calls_per_second": 1.0 } }), room(100, 0), 100.0, 9, LimitingFactor::Rate),
        (json!({ "pacing": { "calls_per_second": 50.0 } }), room(100, 0), 1.0, 9, LimitingFactor::WorkspaceRate),
        (json!({ "pacing": { "calls_per_second": 50.0 } }), room(2, 0), 100.0, 9, LimitingFactor::Concurrency),
        (json!({ "pacing": { "calls_per_second": 50.0 } }), room(3, 1), 100.0, 9, LimitingFactor::Concurrency),
        (json!({ "pacing": { "calls_per_second": 50.0, "max_concurrency": 1 } }), room(9, 0), 100.0, 9, LimitingFactor::CampaignConcurrency),
        (json!({ "caps": { "campaign_per_day": 1, "on_cap": "defer" } }), room(9, 0), 100.0, 9, LimitingFactor::DailyCap),
        (json!({ "caps": { "budget_cents": 100, "on_cap": "defer" } }), room(9, 0), 100.0, 9, LimitingFactor::Budget),
        (json!({ "schedule": day }), room(9, 0), 100.0, 9, LimitingFactor::QuietHours),
        (json!({ "pacing": { "calls_per_second": 50.0 } }), room(9, 0), 100.0, 2, LimitingFactor::NoneLeft),
    ];
    for (fields, concurrency, rate, contacts, expected) in table {
        // Tokyo sleeps while it is noon in Greenwich.
        let mut tenant = Tenant::new(concurrency, rate, 60).with(0, fields.clone(), contacts, "Asia/Tokyo");
        let mut last = tenant.round();
        for _ in 0..30 {
            if !last.is_empty() {
                tenant.go_to(tenant.now.plus_millis(3));
            } else if let Some(at) = last.wake_at.0.filter(|at| *at < noon().plus_millis(900)) {
                tenant.go_to(at);
            }
            last = tenant.round();
        }
        assert_eq!(last.limits, [(campaign_id(0), expected)], "{fields}");
    }
    for (reason, expected) in [
        (Reason::Credits, LimitingFactor::Credits),
        (Reason::Suspension, LimitingFactor::Suspension),
    ] {
        let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({}), 9, "UTC");
        tenant.snapshot.blocks.push(blocked(Env::Test, reason));
        let plan = tenant.round();
        assert!(plan.is_empty(), "{plan:?}");
        assert_eq!(plan.limits, [(campaign_id(0), expected)]);
    }
}

#[test]
fn a_trunk_that_has_no_room_is_named_until_it_has_grown_back() {
    let fields = json!({ "pacing": { "calls_per_second": 50.0 } });
    let mut tenant = Tenant::new(room(900, 0), 100.0, 60).with(0, fields, 800, "UTC");
    for _ in 0..6 {
        tenant.go_to(tenant.now.plus_seconds(1));
        tenant
            .snapshot
            .hinted(DispatchHint::TrunkCongested(Route::Sandbox), tenant.now);
    }
    let mut wake_at = WakeAt::default();
    tenant.snapshot.trunks.grow(tenant.now, &mut wake_at);
    assert_eq!(wake_at.0, Some(tenant.now.plus_seconds(5)));
    tenant.round();
    let plan = tenant.round();
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::Trunk)]);
    for _ in 0..60 {
        tenant.go_to(tenant.now.plus_seconds(5));
        tenant.snapshot.trunks.grow(tenant.now, &mut wake_at);
    }
    tenant.round();
    let plan = tenant.round();
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::Rate)]);
}

#[test]
fn a_campaign_rests_until_the_first_of_its_contacts_may_be_called() {
    let fields = json!({ "schedule": { "windows": [{ "start": "09:00", "end": "17:00" }] } });
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, fields, 3, "Asia/Tokyo");
    let plan = tenant.round();
    // It is 21:00 in Tokyo.
    assert_eq!(plan.resting, [(campaign_id(0), noon().plus_seconds(12 * 3600))]);
    assert_eq!(plan.wake_at.0, Some(noon().plus_seconds(12 * 3600)));
}

#[test]
fn a_day_that_is_used_up_ends_a_campaign_that_does_not_wait() {
    let caps = json!({ "campaign_per_day": 1, "on_cap": "skip", "per_number_24h": null, "per_number_7d": null });
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({ "caps": caps }), 100, "UTC");
    let mut sizes = Vec::new();
    tenant.live_on(|_, plan| sizes.push(plan.settled.len()));
    assert_eq!((tenant.called(0), tenant.settled.len()), (1, 99));
    assert!(
        tenant
            .settled
            .iter()
            .all(|(_, settlement)| *settlement == Settlement::Skip(SkipReason::DailyCapReached))
    );
    // Others have their turn in between.
    assert_eq!(sizes.iter().max(), Some(&CAPPED));
}

#[test]
fn what_is_not_covered_waits_for_credits() {
    let purse = |available, balance| Funds::new(|_| Purse::new(Cents(available), Cents(balance)));
    // Available, balance: calls of 6 cents each that leave, and of what it is short then.
    for (available, balance, calls, short) in [
        (1_000, 1_000, 9, None),
        (13, 1_000, 3, None),
        (0, 100, 0, None),
        (0, 0, 0, Some(1)),
    ] {
        let fields = json!({ "pacing": { "calls_per_second": 60.0 } });
        let mut tenant = Tenant::new(room(90, 0), 1_000.0, 60).with(0, fields, 9, "UTC");
        tenant.snapshot.funds = purse(available, balance);
        let (mut held, mut last) = (0, Plan::default());
        for _ in 0..40 {
            last = tenant.round();
            held += last.calls.iter().map(|call| call.hold.0).sum::<i64>();
            tenant.go_to(tenant.now.plus_millis(20));
        }
        assert!(held <= available, "{held} of {available}");
        assert_eq!(tenant.called(0), calls, "{available} {balance}");
        assert_eq!(tenant.snapshot.funds.short(Env::Test), short.map(Cents));
        let expected = if calls == 9 {
            LimitingFactor::NoneLeft
        } else {
            LimitingFactor::Credits
        };
        assert_eq!(last.limits, [(campaign_id(0), expected)]);
        if expected == LimitingFactor::Credits {
            assert_eq!(
                last.wake_at.0,
                Some(tenant.now.plus_millis(-20).plus_seconds(funds::LOOK_SECONDS))
            );
        }
    }
}

#[test]
fn a_suspended_tenants_contacts_are_skipped_when_patience_ends() {
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({}), 3, "UTC");
    tenant.snapshot.blocks.push(blocked(Env::Test, Reason::Suspension));
    let plan = tenant.round();
    assert_eq!(plan.wake_at.0, Some(noon().plus_seconds(PATIENCE_SECONDS)));
    tenant.go_to(noon().plus_seconds(PATIENCE_SECONDS));
    tenant.round();
    let skipped = (campaign_id(0), Settlement::Skip(SkipReason::TenantSuspended));
    assert_eq!(tenant.settled, [skipped; 3]);
    let after = tenant.round();
    assert!(after.wake_at.0 > Some(tenant.now), "it would spin");
    assert!(tenant.calls.is_empty());
}
