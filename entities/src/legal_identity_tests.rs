use super::*;
use crate::error::Error;
use serde_json::json;

/// The fields that are refused, in their order.
fn refused(asked: serde_json::Value) -> Vec<String> {
    let asked: Identity = serde_json::from_value(asked).unwrap();
    match asked.check() {
        Ok(()) => Vec::new(),
        Err(Error::Invalid { field, .. }) => vec![field],
        Err(Error::Faults(faults)) => faults.into_iter().map(|fault| fault.field).collect(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_is_told_to_people_can_be_told() {
    let table: [(serde_json::Value, &[&str]); 10] = [
        (json!({}), &[]),
        (
            json!({ "registered_name": "Acme Health, Inc.", "callback_number": "+12025550123", "postal_address": "1 Main St\nDover, DE" }),
            &[],
        ),
        (
            json!({ "registrations": { "us-tx": "TX-2026-118", "it-roc": "12345" } }),
            &[],
        ),
        (json!({ "registered_name": "Acme\nHealth" }), &["registered_name"]),
        (json!({ "trade_name": "Acme\u{7}" }), &["trade_name"]),
        (json!({ "postal_address": "1 Main St\u{1b}[2J" }), &["postal_address"]),
        (json!({ "callback_number": "+15002340000" }), &["callback_number"]),
        (
            json!({ "callback_number": "+15002340000", "toll_free_number": "+15002340001", "registrations": { "US TX": "1", "us-fl": " " } }),
            &[
                "callback_number",
                "toll_free_number",
                "registrations",
                "registrations.us-fl",
            ],
        ),
        (
            json!({ "registrations": { "us-fl": "1\t2" } }),
            &["registrations.us-fl"],
        ),
        (
            json!({ "registrations": { "us-fl": "x".repeat(201) } }),
            &["registrations.us-fl"],
        ),
    ];
    for (asked, expected) in table {
        assert_eq!(refused(asked.clone()), expected, "{asked}");
    }
    let many: BTreeMap<String, String> = (0..=Registrations::MAX)
        .map(|n| (format!("x{n}"), "1".into()))
        .collect();
    assert_eq!(refused(json!({ "registrations": many })), ["registrations"]);
}

#[test]
fn what_is_stored_reads_back() {
    let (tenant, now) = (TenantId(uuid::Uuid::nil()), Moment::from_millis(5));
    let asked = Identity {
        registered_name: Text::parse("Acme").ok(),
        callback_number: "+12025550123".parse().ok(),
        registrations: Registrations(BTreeMap::from([("us-tx".into(), "1".into())])),
        ..Identity::default()
    };
    let first = Model::empty(tenant, now).changed(&asked, Some("ann@example.com".into()), now);
    assert_eq!((first.version, first.identity()), (1, asked));
    let second = first.changed(&Identity::default(), None, now);
    assert_eq!((second.version, second.identity()), (2, Identity::default()));
}
