//! What campaigns write instead of calling: a text needs no slot, but a place at the provider, and what it costs.
use super::*;

#[test]
fn messages_leave_while_there_is_a_place_for_them() {
    let mut tenant = Tenant::new(room(1, 0), 1_000.0, 60).with(0, texts("Hello"), 5, "UTC");
    tenant.doors = PerEnv::new(|_| 2);
    let rounds = |tenant: &mut Tenant| {
        let mut last = tenant.round();
        for _ in 0..9 {
            tenant.go_to(tenant.now.plus_millis(20));
            last = tenant.round();
        }
        last
    };
    let plan = rounds(&mut tenant);
    assert_eq!(tenant.written.len(), 2);
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::Provider)]);
    tenant.doors = PerEnv::new(|_| 9);
    let plan = rounds(&mut tenant);
    assert_eq!(tenant.written.len(), 5);
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::NoneLeft)]);
}

#[test]
fn a_place_that_nobody_takes_is_there_for_the_next() {
    // Blank once it is filled: it cannot be written to the first.
    let mut tenant = Tenant::new(room(1, 0), 1_000.0, 60).with(0, texts("{{first_name| }}"), 2, "UTC");
    tenant.row_mut(0, 1).first_name = Some("Ada".into());
    tenant.doors = PerEnv::new(|_| 1);
    for _ in 0..5 {
        tenant.round();
        tenant.go_to(tenant.now.plus_millis(20));
    }
    let skipped = (campaign_id(0), Settlement::Skip(SkipReason::Invalid));
    assert_eq!((tenant.written.len(), &tenant.settled[..]), (1, &[skipped][..]));

    // Two segments of 2 cents are not covered, one is.
    let long = "x".repeat(200);
    let mut tenant = Tenant::new(room(1, 0), 1_000.0, 60)
        .with(0, texts(&long), 1, "UTC")
        .with(1, texts("Hello"), 1, "UTC");
    tenant.snapshot.funds = Funds::new(|_| Purse::new(Cents(3), Cents(1_000)));
    tenant.doors = PerEnv::new(|_| 1);
    for _ in 0..5 {
        tenant.round();
        tenant.go_to(tenant.now.plus_millis(20));
    }
    assert_eq!(tenant.written, [(campaign_id(1), contact_id(1, 0))]);
}

#[test]
fn who_cannot_be_written_to_yet_is_written_to_when_the_hours_open_again() {
    let mut fields = texts("Hello");
    fields["schedule"] = json!({ "windows": [{ "start": "09:00", "end": "13:00" }] });
    let mut tenant = Tenant::new(room(1, 0), 1_000.0, 60).with(0, fields, 1, "UTC");
    let plan = tenant.round();
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::Provider)]);
    // The last of its group: it is at hand, and nobody is left in the rows behind it.
    tenant.go_to(noon().plus_seconds(3600));
    let plan = tenant.round();
    let opens_at = noon().plus_seconds(21 * 3600);
    assert_eq!(plan.resting, [(campaign_id(0), opens_at)]);
    tenant.doors = PerEnv::new(|_| 1);
    tenant.go_to(opens_at);
    tenant.round();
    assert_eq!(tenant.written, [(campaign_id(0), contact_id(0, 0))]);
}

#[test]
fn a_retry_goes_before_a_text_that_had_to_wait() {
    let mut tenant = Tenant::new(room(1, 0), 1_000.0, 60).with(0, texts("Hello"), 3, "UTC");
    tenant.retries(0, 2, noon().plus_seconds(1));
    tenant.round();
    tenant.doors = PerEnv::new(|_| 1);
    tenant.go_to(noon().plus_seconds(1));
    tenant.round();
    assert_eq!(tenant.written, [(campaign_id(0), contact_id(0, 2))]);
}
