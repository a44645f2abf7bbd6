//! What a campaign has abandoned holds it, and nobody else.
use super::*;
use entities::abandonment::{Abandonment, AbandonmentLimit, Answers};

/// Source: 47 CFR 64.1200(a)(7), with our brake.
const US: AbandonmentLimit = AbandonmentLimit {
    limit_permille: 30,
    brake_permille: 20,
    hours: 720,
};

fn abandoned(live: i64, abandoned: i64) -> Abandonment {
    Abandonment {
        day: Answers::default(),
        month: Answers { live, abandoned },
    }
}

/// A second of rounds; answers what the last one was.
fn a_second(tenant: &mut Tenant) -> Plan {
    let mut last = Plan::default();
    for _ in 0..40 {
        last = tenant.round();
        tenant.go_to(tenant.now.plus_millis(25));
    }
    last
}

#[test]
fn at_the_brake_nobody_is_called_and_below_it_everybody() {
    for (source, limits, so_far, expected) in [
        ("no law has a limit", vec![], abandoned(100, 50), 9),
        ("below the brake", vec![US], abandoned(1_000, 19), 9),
        ("at the brake", vec![US], abandoned(1_000, 20), 0),
        ("ours: one is not a rate", vec![US], abandoned(3, 1), 9),
        ("ours: two of few", vec![US], abandoned(49, 2), 0),
    ] {
        let mut tenant = Tenant::new(room(90, 0), 1_000.0, 60);
        (tenant.abandonment, tenant.abandoned) = (limits, so_far);
        let mut tenant = tenant.with(0, json!({ "pacing": { "calls_per_second": 50.0 } }), 9, "UTC");
        let last = a_second(&mut tenant);
        assert_eq!(tenant.called(0), expected, "{source}");
        let factor = match expected {
            0 => LimitingFactor::Abandonment,
            _ => LimitingFactor::NoneLeft,
        };
        assert!(
            last.limits.contains(&(campaign_id(0), factor)),
            "{source}: {:?}",
            last.limits
        );
    }
}

/// Read anew, as every half minute and after each dial that was refused.
#[test]
fn it_goes_on_when_the_rate_is_below_again() {
    let mut tenant = Tenant::new(room(90, 0), 1_000.0, 60);
    (tenant.abandonment, tenant.abandoned) = (vec![US], abandoned(100, 2));
    let mut tenant = tenant.with(0, json!({ "pacing": { "calls_per_second": 50.0 } }), 9, "UTC");
    a_second(&mut tenant);
    assert_eq!(tenant.called(0), 0);
    tenant.abandoned = abandoned(101, 2);
    tenant.reopen(0);
    a_second(&mut tenant);
    assert_eq!(tenant.called(0), 9);
}
