//! What the limits of API keys leave to the campaigns that were started with them.
use super::*;
use crate::dispatch::samples::key;
use entities::session::KeyUse;

#[test]
fn a_key_that_has_no_room_holds_its_own_campaigns_alone() {
    // Spend a day, calls a minute: calls that leave, of 60 cents at most each.
    for (spend, calls, expected) in [
        (None, Some(3), 3),
        (Some(150), None, 2),
        (Some(150), Some(1), 1),
        (Some(59), Some(9), 0),
        (Some(100_000), Some(100), 9),
    ] {
        let fields = json!({ "pacing": { "calls_per_second": 50.0 } });
        let mut tenant = Tenant::new(room(90, 0), 1_000.0, 60).with(0, fields.clone(), 9, "UTC");
        tenant = tenant.with(1, fields, 9, "UTC");
        let key = key(spend, calls);
        tenant.queue_mut(0).api_key_id = Some(key.id);
        tenant.snapshot.keys.learn(key, KeyUse::none(noon()));
        let mut last = Plan::default();
        for _ in 0..40 {
            last = tenant.round();
            tenant.go_to(tenant.now.plus_millis(20));
        }
        assert_eq!(
            (tenant.called(0), tenant.called(1)),
            (expected, 9),
            "{spend:?} {calls:?}"
        );
        let factor = match expected {
            9 => LimitingFactor::NoneLeft,
            _ => LimitingFactor::ApiKey,
        };
        assert!(last.limits.contains(&(campaign_id(0), factor)), "{:?}", last.limits);
        if expected < 9 {
            assert!(
                last.wake_at.0 > Some(tenant.now.plus_millis(-20)),
                "it would sleep for ever, or spin"
            );
        }
    }
}
