//! Which consents cover what, and that none does that has ended.
use super::*;
use crate::consent::{ConsentGiven, Reading, accept};
use DncChannel::{Email, Phone, Sms};
use entities::{
    consent::{Withdrawal, Withdrawals},
    ids::TenantId,
    values::{Env, Times},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

fn at(text: &str) -> Moment {
    Moment::parse(text).unwrap()
}

fn consent(id: u128, change: Value) -> Model {
    let mut body = json!({
        "phone_number": "+12025550123",
        "email": "ann@example.com",
        "seller": "Acme",
        "channels": ["phone", "sms", "email"],
        "purposes": ["marketing"],
        "tier": "express",
        "method": "web form",
        "request_copy": "May we call?",
        "contract_ref": "C-17",
        "given_at": "2026-01-01T00:00:00Z",
    });
    crate::shape::merge(&mut body, change);
    let given: ConsentGiven = serde_json::from_value(body).unwrap();
    let reading = Reading {
        owner: (TenantId(Uuid::from_u128(1)), Env::Live),
        country: "US".parse().unwrap(),
        now: Times::at(at("2026-11-30T12:00:00Z")),
        by: None,
    };
    accept(given, &reading, ConsentId(Uuid::from_u128(id))).unwrap().row
}

fn wanted() -> Wanted<'static> {
    Wanted {
        seller: Some("acme "),
        purpose: Purpose::Marketing,
        channel: Phone,
        named: None,
        contract_ref: None,
        at: at("2026-11-30T12:00:00Z"),
    }
}

fn ids(consents: &[Model], wanted: &Wanted<'_>) -> Vec<u128> {
    covering(consents, wanted)
        .iter()
        .map(|consent| consent.id.0.as_u128())
        .collect()
}

#[test]
fn one_covers_what_it_says_and_nothing_else() {
    let withdrawn = |channel| {
        let withdrawal = Withdrawal {
            channel,
            at: at("2026-06-01T00:00:00Z"),
            seq: 9,
            by: None,
            reason: "said so".into(),
        };
        Model {
            withdrawals: Withdrawals(vec![withdrawal]),
            ..consent(1, json!({}))
        }
    };
    let ended = |end: &str| consent(1, json!({ "expires_at": end }));
    let other = |seller| Wanted { seller, ..wanted() };
    for (what, consent, wanted, covers) in [
        (
            "the same seller, in other letters",
            consent(1, json!({})),
            wanted(),
            true,
        ),
        ("another seller", consent(1, json!({})), other(Some("Acme Inc.")), false),
        ("nobody knows for whom", consent(1, json!({})), other(None), false),
        (
            "another purpose",
            consent(1, json!({ "purposes": ["service"] })),
            wanted(),
            false,
        ),
        (
            "another channel",
            consent(1, json!({ "channels": ["sms"] })),
            wanted(),
            false,
        ),
        ("taken back for calls", withdrawn(Phone), wanted(), false),
        ("taken back for texts", withdrawn(Sms), wanted(), true),
        ("it ends in a moment", ended("2026-11-30T12:00:00.001Z"), wanted(), true),
        ("it ends now", ended("2026-11-30T12:00:00Z"), wanted(), false),
        (
            "the one that was named",
            consent(1, json!({})),
            Wanted {
                named: Some(ConsentId(Uuid::from_u128(1))),
                ..wanted()
            },
            true,
        ),
        (
            "another was named",
            consent(1, json!({})),
            Wanted {
                named: Some(ConsentId(Uuid::from_u128(2))),
                ..wanted()
            },
            false,
        ),
        (
            "before it was given",
            consent(1, json!({})),
            Wanted {
                at: at("2025-12-31T23:59:59Z"),
                ..wanted()
            },
            false,
        ),
    ] {
        assert_eq!(best(&[consent], &wanted).is_some(), covers, "{what}");
    }
}

/// What was said or written hangs on no contract.
#[test]
fn a_contract_covers_what_fulfils_it() {
    for (tier, named, covers) in [
        ("existing_contract", Some("C-17"), true),
        ("existing_contract", Some("C-18"), false),
        ("existing_contract", None, true),
        ("express", Some("C-18"), true),
    ] {
        let given = consent(1, json!({ "tier": tier, "contract_ref": "C-17" }));
        let wanted = Wanted {
            contract_ref: named,
            ..wanted()
        };
        assert_eq!(best(&[given], &wanted).is_some(), covers, "{tier} {named:?}");
    }
}

#[test]
fn the_best_comes_first() {
    let all = [
        consent(1, json!({ "tier": "existing_contract" })),
        consent(2, json!({ "tier": "express_written" })),
        consent(
            3,
            json!({ "tier": "express_written", "given_at": "2026-02-01T00:00:00Z" }),
        ),
        consent(4, json!({ "tier": "express", "covers_automated_voice": true })),
        consent(5, json!({ "tier": "opt_in_double" })),
    ];
    assert_eq!(
        ids(&all, &wanted()),
        [4, 5, 3, 2, 1],
        "for calls those that name machines"
    );
    let texts = Wanted {
        channel: Sms,
        ..wanted()
    };
    assert_eq!(ids(&all, &texts), [5, 3, 2, 4, 1], "for texts no voice counts");
}

#[test]
fn a_fact_names_what_still_stands() {
    let row = Model {
        withdrawals: Withdrawals(vec![Withdrawal {
            channel: Sms,
            at: at("2026-06-01T00:00:00Z"),
            seq: 9,
            by: None,
            reason: "STOP".into(),
        }]),
        ..consent(1, json!({ "expires_at": "2027-01-01T00:00:00Z" }))
    };
    let fact = fact(&row);
    assert_eq!((fact.id, fact.channels), (row.id, vec![Phone, Email]));
    assert_eq!((fact.given_at, fact.expires_at), (row.given_at, row.expires_at));
}

proptest! {
    /// Whatever is asked for, and whenever: what was revoked as a whole or has expired covers nothing.
    #[test]
    fn none_that_has_ended_covers_anything(
        ends_after_s in 1_i64..20_000_000,
        asked_after_s in 0_i64..40_000_000,
        is_revoked: bool,
        channel in prop_oneof![Just(Phone), Just(Sms), Just(Email)],
    ) {
        let given = at("2026-01-01T00:00:00Z");
        let end = given.plus_seconds(ends_after_s);
        let row = Model {
            revoked_at: is_revoked.then(|| given.plus_seconds(1)),
            ..consent(1, json!({ "expires_at": end }))
        };
        let at = given.plus_seconds(asked_after_s);
        let found = best(std::slice::from_ref(&row), &Wanted { channel, at, ..wanted() }).is_some();
        prop_assert_eq!(found, !is_revoked && at < end);
    }
}
