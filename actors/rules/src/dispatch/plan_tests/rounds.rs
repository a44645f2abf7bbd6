//! How much one round holds: what is settled, and what leaves.
use super::*;
use crate::dispatch::trunk::Trunks;

/// A campaign of so many who have no number.
fn with_nobodies(tenant: Tenant, n: usize, contacts: usize) -> Tenant {
    let mut tenant = tenant.with(n, json!({}), contacts, "UTC");
    for row in tenant.rows.get_mut(&campaign_id(n)).unwrap() {
        row.phone_number = "nobody".into();
    }
    tenant
}

fn fast() -> serde_json::Value {
    json!({ "pacing": { "calls_per_second": 1_000.0 } })
}

#[test]
fn many_who_are_settled_take_several_rounds_and_keep_nobody_from_their_calls() {
    let tenant = Tenant::new(room(900, 0), 1_000.0, 60).with(3, fast(), 900, "UTC");
    let mut tenant = (0..3).fold(tenant, |tenant, n| with_nobodies(tenant, n, 100));
    let rounds: Vec<Plan> = (0..4).map(|_| tenant.round()).collect();
    let sizes: Vec<usize> = rounds.iter().map(|plan| plan.settled.len()).collect();
    let most = ROUND - KEPT;
    assert_eq!(sizes, [most, most, most, 300 - 3 * most]);
    assert_eq!(rounds[0].calls.len(), KEPT);
    let skipped = Settlement::Skip(SkipReason::Invalid);
    for n in 0..3 {
        let of_campaign = tenant
            .settled
            .iter()
            .filter(|settled| **settled == (campaign_id(n), skipped));
        assert_eq!(of_campaign.count(), 100);
        assert!(tenant.rows[&campaign_id(n)].is_empty());
    }
}

#[test]
fn sessions_that_had_their_turn_count_in_their_round() {
    // Turns before: how many are settled, and how many are called if nobody is to be settled.
    for (turns, settled, called) in [(90, 6, 38), (95, 1, 33), (96, 0, 32), (127, 0, 1), (128, 0, 0)] {
        let mut tenant = with_nobodies(Tenant::new(room(900, 0), 1_000.0, 60), 0, 100);
        tenant.turns = turns;
        assert_eq!(tenant.round().settled.len(), settled, "{turns}");

        let mut tenant = Tenant::new(room(900, 0), 1_000.0, 60).with(0, fast(), 900, "UTC");
        tenant.turns = turns;
        assert_eq!(tenant.round().calls.len(), called, "{turns}");
    }
}

#[test]
fn no_more_leave_in_a_round_than_are_committed_together() {
    let fields = || json!({ "pacing": { "calls_per_second": 5_000.0 } });
    let mut tenant = Tenant::new(room(900, 0), 10_000.0, 60);
    tenant.snapshot.trunks = Trunks::new(10_000.0);
    tenant = (0..3).fold(tenant, |tenant, n| tenant.with(n, fields(), 100, "UTC"));
    assert_eq!(tenant.round().calls.len(), ROUND);
    tenant.live_on(|_, _| {});
    assert_eq!(tenant.calls.len(), 300);
}

#[test]
fn nothing_more_is_planned_while_many_calls_are_late() {
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({}), 9, "UTC");
    tenant.late = MAX_LATE + 1;
    let plan = tenant.round();
    assert!(plan.is_empty());
    assert_eq!(plan.wake_at.0, Some(noon().plus(LEAD)));
    tenant.late = MAX_LATE;
    assert!(!tenant.round().is_empty());
}
