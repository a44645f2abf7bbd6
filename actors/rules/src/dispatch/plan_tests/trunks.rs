//! Live calls go over the workspace's trunks: each with its own rate, its channels and its state, and none holds another one up.
use super::properties::cases;
use super::*;
use crate::dispatch::{pace::burst, trunk::Trunk};
use entities::ids::{SessionId, TrunkId};
use proptest::prelude::*;
use uuid::Uuid;

const NUMBERS: [&str; 4] = ["+12025550101", "+12025550102", "+12025550103", "+12025550104"];

fn trunk(n: usize) -> TrunkId {
    TrunkId(Uuid::from_u128(80 + n as u128))
}

fn fields(numbers: &[&str]) -> serde_json::Value {
    json!({
        "from_numbers": numbers, "pacing": { "calls_per_second": 50.0 },
        "caps": { "per_number_24h": null, "per_number_7d": null },
    })
}

/// One number on each trunk, whose rates and channels these are.
fn on_trunks(trunks: &[(f64, Option<i32>)], limit: i32, seconds: i64) -> Tenant {
    let mut tenant = Tenant::new(room(limit, 0), 1_000.0, seconds);
    for (n, (rate, channels)) in trunks.iter().enumerate() {
        tenant.trunks_of.insert(NUMBERS[n].parse().unwrap(), trunk(n));
        let mut its = Trunk::new(*rate);
        its.set(*rate, *channels, 1);
        tenant.snapshot.trunks.live.insert(trunk(n), its);
    }
    tenant
}

fn over(tenant: &Tenant, n: usize) -> usize {
    tenant.over.iter().filter(|(_, over)| *over == Some(trunk(n))).count()
}

fn its(tenant: &mut Tenant, n: usize) -> &mut Trunk {
    tenant.snapshot.trunks.live.get_mut(&trunk(n)).unwrap()
}

#[test]
fn a_campaign_uses_all_its_trunks_each_at_its_own_rate() {
    let mut tenant = on_trunks(&[(1.0, None), (4.0, None)], 900, 60);
    tenant = tenant.with_in(Env::Live, 0, fields(&NUMBERS[..2]), 500, "Europe/London");
    let plan = tenant.live_for(10_000);
    // The first at once, the last planned ahead.
    assert!((10..=11).contains(&over(&tenant, 0)), "{}", over(&tenant, 0));
    assert!((40..=41).contains(&over(&tenant, 1)), "{}", over(&tenant, 1));
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::Trunk)]);
}

#[test]
fn what_one_trunk_lacks_leaves_the_calls_over_others_alone() {
    type Trouble = fn(&mut Tenant);
    // What is so with the first trunk: how many calls it has taken after ten seconds.
    let table: [(&str, Trouble, usize); 6] = [
        ("nothing", |_| {}, 20),
        ("it is down", |tenant| its(tenant, 0).is_up = false, 0),
        ("it is paused", |tenant| its(tenant, 0).is_paused = true, 0),
        ("it has three channels", |tenant| its(tenant, 0).set(2.0, Some(3), 2), 3),
        (
            "calls that came in have all but one",
            |tenant| {
                its(tenant, 0).set(2.0, Some(3), 2);
                for n in 900..902 {
                    let slot = Slot {
                        direction: entities::session::Direction::Inbound,
                        ..Slot::outbound(Env::Live, None, Some(trunk(0)))
                    };
                    tenant.snapshot.live.insert(SessionId(Uuid::from_u128(n)), slot);
                }
            },
            1,
        ),
        (
            "it has asked for eight seconds of rest",
            |tenant| its(tenant, 0).paused_until = Some(noon().plus_seconds(8)),
            5,
        ),
    ];
    for (what, trouble, expected) in table {
        let mut tenant = on_trunks(&[(2.0, None), (2.0, None)], 900, 60);
        tenant = tenant
            .with_in(Env::Live, 0, fields(&NUMBERS[..1]), 500, "Europe/London")
            .with_in(Env::Live, 1, fields(&NUMBERS[1..2]), 500, "Europe/London");
        trouble(&mut tenant);
        let plan = tenant.live_for(10_000);
        assert!(over(&tenant, 0).abs_diff(expected) <= 1, "{what}: {}", over(&tenant, 0));
        assert_eq!(over(&tenant, 0) == 0, expected == 0, "{what}");
        assert!((20..=21).contains(&over(&tenant, 1)), "{what}: {}", over(&tenant, 1));
        let named = [0, 1].map(|n| (campaign_id(n), LimitingFactor::Trunk));
        assert_eq!(plan.limits, named, "{what}");
    }
}

#[test]
fn a_refusal_halves_the_rate_of_its_trunk_alone() {
    let mut tenant = on_trunks(&[(8.0, None), (8.0, None)], 900, 60);
    let congested = DispatchHint::TrunkCongested(Route::Trunk(trunk(0)));
    tenant.snapshot.hinted(congested, noon());
    let rates = [0, 1].map(|n| its(&mut tenant, n).pace.rate());
    assert_eq!(rates, [4.0, 8.0]);
    // One of another workspace, or that is gone by now, is nobody's.
    tenant
        .snapshot
        .hinted(DispatchHint::TrunkCongested(Route::Trunk(trunk(9))), noon());
    tenant
        .snapshot
        .hinted(DispatchHint::TrunkCongested(Route::Nowhere), noon());
}

#[test]
fn a_live_call_shows_no_number_without_a_trunk() {
    let mut tenant = on_trunks(&[(2.0, None)], 900, 60);
    tenant = tenant.with_in(Env::Live, 0, fields(&NUMBERS[..1]), 3, "Europe/London");
    assert!(!tenant.queue(0).lacks_caller());
    let plan = tenant.round();
    let first = &plan.calls[0];
    assert_eq!(
        first.from_number.as_ref().map(|number| number.as_str()),
        Some(NUMBERS[0])
    );
    assert_eq!(first.trunk_id, Some(trunk(0)));
    // Nobody is called as somebody else.
    let campaign = tenant.campaigns[&campaign_id(0)].clone();
    let rows = crate::dispatch::queue::Rows {
        usage: tenant.queue(0).usage,
        zones: Vec::new(),
        trunks: HashMap::new(),
        resting: HashMap::new(),
        abandonment: Vec::new(),
        abandoned: entities::abandonment::Abandonment::default(),
        campaign,
        legal: None,
    };
    let rules = crate::hours::Rules::new(
        &tenant.campaigns[&campaign_id(0)].plan.schedule,
        Env::Live,
        entities::values::Zone::NEW_YORK,
    );
    let queue = Queue::new(rows, rules, None, &wishes::limits(), 0).unwrap();
    assert!(queue.lacks_caller());
}

proptest! {
    #![proptest_config(cases(64))]
    /// Whatever the trunks are and however the campaigns use them: no trunk has more calls in a second, or at once, than it takes,
    /// and everybody is called in the end.
    #[test]
    fn no_trunk_is_ever_passed(
        trunks in proptest::collection::vec((5i32..300, proptest::option::of(1i32..5)), 1..4),
        uses in proptest::collection::vec((proptest::collection::btree_set(0usize..3, 1..4), 0usize..30), 1..4),
        limit in 1i32..12, seconds in 1i64..60, reopens in 0usize..5,
    ) {
        let of: Vec<(f64, Option<i32>)> = trunks.iter().map(|(tenths, most)| (f64::from(*tenths) / 10.0, *most)).collect();
        let mut tenant = on_trunks(&of, limit, seconds);
        tenant.reopens = reopens;
        for (n, (numbers, contacts)) in uses.iter().enumerate() {
            let numbers: Vec<&str> = numbers.iter().map(|number| NUMBERS[number % of.len()]).collect();
            tenant = tenant.with_in(Env::Live, n, fields(&numbers), *contacts, "Europe/London");
        }
        tenant.live_on(|tenant, _| {
            for (n, (_, most)) in of.iter().enumerate() {
                let live = tenant.snapshot.live.values().filter(|slot| slot.trunk_id == Some(trunk(n))).count();
                assert!(most.is_none_or(|most| live <= most as usize), "channels of {n}");
            }
        });
        for (n, (rate, _)) in of.iter().enumerate() {
            let most = (rate + f64::from(burst(*rate).get())).ceil() as usize;
            prop_assert!(tenant.most_in_a_second_over(trunk(n)) <= most, "the rate of {n}");
        }
        for (n, (_, contacts)) in uses.iter().enumerate() {
            prop_assert_eq!(tenant.called(n), *contacts, "of campaign {}", n);
        }
    }

    /// An empty plan that names a moment has something to do then, or is asked again later: it never asks for this one.
    #[test]
    fn a_rest_of_a_trunk_is_waited_for_to_the_moment(rests in 1i64..60_000) {
        let mut tenant = on_trunks(&[(2.0, None)], 9, 60);
        tenant = tenant.with_in(Env::Live, 0, fields(&NUMBERS[..1]), 3, "Europe/London");
        let until = noon().plus_millis(rests);
        its(&mut tenant, 0).paused_until = Some(until);
        let mut plan = tenant.round();
        while plan.is_empty() {
            let next = plan.wake_at.0.unwrap();
            prop_assert!(next > tenant.now, "it would spin");
            tenant.go_to(next);
            plan = tenant.round();
        }
        prop_assert_eq!(plan.calls[0].at, until);
        prop_assert!(tenant.now >= until.plus_millis(-100));
    }
}
