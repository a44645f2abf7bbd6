//! A campaign's row has changed, and its queue is made anew: what the next one takes over from the last, and what it does not.
use super::*;
use entities::{ids::SessionId, values::E164};
use uuid::Uuid;

#[test]
fn the_pace_runs_on_at_the_new_rate() {
    // A second's calls before and after, and how many have been planned when that changes: when the next two start.
    for (before, after, planned, next) in [
        (1.0, 1.0, 1, [1000, 2000]),
        (1.0, 50.0, 1, [1000, 1020]),
        (50.0, 50.0, 6, [120, 140]),
        (50.0, 1.0, 6, [120, 1120]),
    ] {
        let rate = |rate: f64| json!({ "pacing": { "calls_per_second": rate } });
        let mut tenant = Tenant::new(room(90, 0), 1_000.0, 60).with(0, rate(before), 20, "UTC");
        tenant.round();
        assert_eq!(tenant.calls.len(), planned, "{before}");
        tenant.change(0, &rate(after));
        tenant.live_on(|_, _| {});
        let next = next.map(|millis| noon().plus_millis(millis));
        let found: Vec<Moment> = tenant.calls[planned..planned + 2].iter().map(|(at, ..)| *at).collect();
        assert_eq!(found, next, "{before}, then {after}");
    }
}

#[test]
fn caller_ids_take_turns_over_rounds_and_over_a_new_queue() {
    let fields = |numbers: &[&str]| json!({ "from_numbers": numbers, "pacing": { "calls_per_second": 1.0 } });
    let [first, second, third] = ["+15005550001", "+15005550002", "+15005550003"];
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, fields(&[first, second, third]), 9, "UTC");
    let mut froms: Vec<E164> = Vec::new();
    for n in 0..7 {
        let plan = tenant.round();
        froms.extend(plan.calls.into_iter().filter_map(|call| call.from_number));
        tenant.go_to(tenant.now.plus_seconds(1));
        match n {
            0 => tenant.reopen(0),
            // There are fewer than a moment ago: it begins with the first.
            4 => tenant.change(0, &fields(&[first])),
            _ => {}
        }
    }
    let froms: Vec<&str> = froms.iter().map(|number| number.as_str()).collect();
    assert_eq!(froms, [first, second, third, first, second, first, first]);
}

#[test]
fn the_wait_for_a_slot_goes_on_and_begins_anew_after_a_hold() {
    type Happens = fn(&mut Tenant);
    // After 3 of 5 seconds.
    let table: [(&str, Happens, i64); 3] = [
        ("nothing", |_| {}, 5),
        ("a new queue", |tenant| tenant.reopen(0), 5),
        ("a pause of everything", |tenant| tenant.queue_mut(0).held(), 8),
    ];
    for (what, happens, expected) in table {
        let fields = json!({ "pacing": { "max_wait_seconds": 5 } });
        let mut tenant = Tenant::new(room(1, 0), 100.0, 60).with(0, fields, 1, "UTC");
        let taken = SessionId(Uuid::from_u128(999));
        tenant
            .snapshot
            .live
            .insert(taken, Slot::outbound(Env::Test, None, None));
        tenant.round();
        tenant.go_to(noon().plus_seconds(3));
        happens(&mut tenant);
        let mut skipped = Vec::new();
        tenant.live_on(|tenant, plan| skipped.extend(plan.settled.iter().map(|_| tenant.now)));
        assert_eq!(skipped, [noon().plus_seconds(expected)], "{what}");
    }
}

#[test]
fn contacts_at_hand_are_read_again() {
    let mut tenant = Tenant::new(room(9, 0), 100.0, 1).with(0, json!({}), 5, "UTC");
    tenant.round();
    // All five have been read.
    tenant.rows.get_mut(&campaign_id(0)).unwrap().remove(0);
    tenant.row_mut(0, 4).priority = 1;
    tenant.reopen(0);
    tenant.live_on(|_, _| {});
    assert_eq!(tenant.whom(0), [0, 4, 2, 3]);
}

#[test]
fn the_dearest_text_is_known_to_the_next_queue() {
    let texts = |budget: i32| {
        let mut fields = texts("Hello {{first_name|you}}");
        fields["caps"] = json!({ "budget_cents": budget });
        fields
    };
    // Of the new budget: whether the second text leaves, which may cost as much as the first, 4 cents.
    for (budget, expected) in [(3, 1), (4, 2)] {
        let mut tenant = Tenant::new(room(1, 0), 100.0, 60).with(0, texts(100), 2, "UTC");
        tenant.doors = PerEnv::new(|_| 9);
        tenant.row_mut(0, 0).first_name = Some("x".repeat(200));
        // The second one's turn is to come after the change.
        tenant.waits(0, 1, noon().plus_seconds(1));
        tenant.round();
        assert_eq!(tenant.written.len(), 1);
        tenant.change(0, &texts(budget));
        tenant.go_to(noon().plus_seconds(1));
        tenant.round();
        assert_eq!(tenant.written.len(), expected, "{budget}");
    }
}

#[test]
fn what_the_last_text_would_have_cost_is_nothing_to_another_one() {
    let mut tenant = Tenant::new(room(1, 0), 100.0, 60).with(0, texts(&"x".repeat(200)), 1, "UTC");
    tenant.doors = PerEnv::new(|_| 9);
    // Two segments of 2 cents are not covered, one is.
    tenant.snapshot.funds = Funds::new(|_| Purse::new(Cents(3), Cents(1_000)));
    let plan = tenant.round();
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::Credits)]);
    tenant.change(0, &texts("Hello"));
    tenant.go_to(noon().plus_seconds(1));
    tenant.round();
    assert_eq!(tenant.written, [(campaign_id(0), contact_id(0, 0))]);
}
