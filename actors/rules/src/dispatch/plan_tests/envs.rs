//! Live and test side by side: what one env wants, has and lacks is nothing to the other. They share the workspace's rate alone.
use super::*;
use entities::ids::SessionId;
use uuid::Uuid;

/// A campaign in each: the first in `env`, the second in the other one.
fn side_by_side(env: Env, fields: &serde_json::Value, concurrency: i32, rate: f64) -> Tenant {
    Tenant::new(room(concurrency, 0), rate, 60)
        .with_in(env, 0, fields.clone(), 50, "UTC")
        .with_in(other(env), 1, fields.clone(), 50, "UTC")
}

fn other(env: Env) -> Env {
    match env {
        Env::Live => Env::Test,
        Env::Test => Env::Live,
    }
}

fn fast() -> serde_json::Value {
    json!({ "pacing": { "calls_per_second": 50.0 } })
}

#[test]
fn what_holds_one_env_up_leaves_the_other_alone() {
    type Trouble = fn(&mut Tenant, Env);
    // What is so in the first campaign's env: what holds it up, and how many calls it has made.
    let table: [(&str, Trouble, LimitingFactor, usize); 6] = [
        ("nothing", |_, _| {}, LimitingFactor::Concurrency, 2),
        (
            "calls of its own take all slots",
            |tenant, env| {
                for n in 900..902 {
                    let id = SessionId(Uuid::from_u128(n));
                    tenant.snapshot.live.insert(id, Slot::outbound(env, None, None));
                }
            },
            LimitingFactor::Concurrency,
            0,
        ),
        (
            "it is suspended",
            |tenant, env| tenant.snapshot.blocks.push(blocked(env, Reason::Suspension)),
            LimitingFactor::Suspension,
            0,
        ),
        (
            "it has used up its credits",
            |tenant, env| tenant.snapshot.blocks.push(blocked(env, Reason::Credits)),
            LimitingFactor::Credits,
            0,
        ),
        (
            "all its credits are set aside",
            |tenant, env| {
                tenant.snapshot.funds = Funds::new(|of| {
                    let available = if of == env { 0 } else { 1_000 };
                    Purse::new(Cents(available), Cents(1_000))
                });
            },
            LimitingFactor::Credits,
            0,
        ),
        (
            "its trunk has no room",
            |tenant, env| {
                for second in 0..20 {
                    let at = noon().plus_seconds(second);
                    let route = tenant.route(env);
                    tenant.snapshot.hinted(DispatchHint::TrunkCongested(route), at);
                }
            },
            LimitingFactor::Trunk,
            1,
        ),
    ];
    for env in [Env::Live, Env::Test] {
        for (what, trouble, limiting, calls) in table {
            let mut tenant = side_by_side(env, &fast(), 2, 1_000.0);
            trouble(&mut tenant, env);
            let plan = tenant.live_for(500);
            assert_eq!((tenant.called(0), tenant.called(1)), (calls, 2), "{env}: {what}");
            let expected = [
                (campaign_id(0), limiting),
                (campaign_id(1), LimitingFactor::Concurrency),
            ];
            assert_eq!(plan.limits, expected, "{env}: {what}");
        }
    }
}

#[test]
fn those_whom_a_suspension_ends_are_those_of_its_env() {
    let mut tenant = side_by_side(Env::Live, &fast(), 2, 1_000.0);
    tenant.snapshot.blocks.push(blocked(Env::Live, Reason::Suspension));
    tenant.go_to(noon().plus_seconds(PATIENCE_SECONDS));
    tenant.live_for(500);
    let skipped = (campaign_id(0), Settlement::Skip(SkipReason::TenantSuspended));
    assert_eq!(tenant.settled, [skipped; 50]);
    assert_eq!((tenant.called(0), tenant.called(1)), (0, 2));
}

#[test]
fn each_env_has_its_own_places_for_texts() {
    for env in [Env::Live, Env::Test] {
        let mut tenant = side_by_side(env, &texts("Hello"), 1, 1_000.0);
        tenant.doors = PerEnv::new(|of| if of == env { 0 } else { 3 });
        let plan = tenant.live_for(500);
        let written = (0..3).map(|n| (campaign_id(1), contact_id(1, n)));
        assert!(tenant.written.iter().copied().eq(written), "{:?}", tenant.written);
        let full = [0, 1].map(|n| (campaign_id(n), LimitingFactor::Provider));
        assert_eq!(plan.limits, full);
    }
}

#[test]
fn the_workspaces_rate_is_one_for_both() {
    let mut tenant = side_by_side(Env::Live, &fast(), 100, 2.0);
    tenant.live_for(10_000);
    // Two a second, the first at once, the last one planned ahead; in turns, for they weigh the same.
    let (live, test) = (tenant.called(0), tenant.called(1));
    assert!((20..=22).contains(&(live + test)), "{live} and {test}");
    assert!(live.abs_diff(test) <= 1, "{live} and {test}");
    assert!(tenant.most_in_a_second(|_| true) <= 3);
}
