//! What is taken down and what is refused, each with the field that is wrong.
use super::{
    taken_back::{MOST_TAKEN_BACK, TakenBack, given},
    *,
};
use entities::consent::Withdrawal;
use uuid::Uuid;

const NOW: &str = "2026-11-30T12:00:00Z";

fn at(text: &str) -> Moment {
    Moment::parse(text).unwrap()
}

fn reading() -> Reading {
    Reading {
        owner: (TenantId(Uuid::from_u128(1)), Env::Live),
        country: "US".parse().unwrap(),
        now: Times::at(at(NOW)),
        by: Some("ann@example.com".into()),
    }
}

fn good() -> Value {
    json!({
        "phone_number": "(202) 555-0123",
        "email": "Ann@Example.com",
        "name": "Ann",
        "seller": "Acme  Ltd.",
        "channels": ["sms", "phone", "phone"],
        "purposes": ["service", "marketing"],
        "tier": "express_written",
        "covers_automated_voice": true,
        "method": "web form",
        "source_url": "https://example.com/offer",
        "source_ip": "192.0.2.7",
        "request_copy": "I agree to be called by Acme Ltd. with an artificial voice.",
        "not_a_condition_of_purchase": true,
        "given_at": "2026-11-01T09:00:00Z",
        "expires_at": "2028-11-01T09:00:00Z",
    })
}

/// The fields that are wrong with it; `null` takes one out.
fn faults(change: Value) -> Vec<String> {
    let mut body = good();
    shape::merge(&mut body, change);
    let given = shape::parse_value::<ConsentGiven>(body).map_err(Error::from);
    match given.and_then(|given| accept(given, &reading(), ConsentId(Uuid::from_u128(7)))) {
        Ok(_) => Vec::new(),
        Err(Error::Invalid { field, .. }) => vec![field],
        Err(Error::Faults(faults)) => faults.into_iter().map(|fault| fault.field).collect(),
        Err(other) => panic!("{other:?}"),
    }
}

fn accepted(change: Value) -> Accepted {
    let mut body = good();
    shape::merge(&mut body, change);
    let given = shape::parse_value::<ConsentGiven>(body).unwrap();
    accept(given, &reading(), ConsentId(Uuid::from_u128(7))).unwrap()
}

#[test]
fn what_is_good_is_taken_down() {
    let Accepted { row, text } = accepted(json!({}));
    assert_eq!(row.phone_number.as_ref().map(E164::as_str), Some("+12025550123"));
    assert_eq!(row.email.as_deref(), Some("ann@example.com"));
    assert_eq!(
        (row.seller.as_str(), row.seller_key.as_str()),
        ("Acme  Ltd.", "acme ltd.")
    );
    assert_eq!(row.channels, Channels(vec![DncChannel::Phone, DncChannel::Sms]));
    assert_eq!(row.purposes, Purposes(vec![Purpose::Marketing, Purpose::Service]));
    let text = text.unwrap();
    let shown = text.request_copy.unwrap();
    assert_eq!(row.request_sha256, Some(sha256(shown.as_bytes())));
    assert_eq!((text.consent_copy, row.consent_sha256), (None, None));
    assert_eq!((row.version, row.created_by.as_deref()), (1, Some("ann@example.com")));
    // FIPS 180-2, appendix B.1.
    assert_eq!(
        sha256(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn each_rule_on_both_sides() {
    let refused: [(&str, Value, &[&str]); 22] = [
        (
            "nobody",
            json!({ "phone_number": null, "email": null }),
            &["phone_number"],
        ),
        (
            "a number is needed to call",
            json!({ "phone_number": null }),
            &["phone_number"],
        ),
        (
            "an address is needed to write",
            json!({ "email": null, "channels": ["email"] }),
            &["email"],
        ),
        ("not a number", json!({ "phone_number": "12" }), &["phone_number"]),
        (
            "an extension",
            json!({ "phone_number": "202-555-0123 ext. 5" }),
            &["phone_number"],
        ),
        ("not an address", json!({ "email": "ann" }), &["email"]),
        ("no channel", json!({ "channels": [] }), &["channels"]),
        ("no purpose", json!({ "purposes": [] }), &["purposes"]),
        ("an unknown channel", json!({ "channels": ["fax"] }), &["channels[0]"]),
        ("an unknown purpose", json!({ "purposes": ["fun"] }), &["purposes[0]"]),
        ("an unknown tier", json!({ "tier": "implied" }), &["tier"]),
        (
            "no seller (47 CFR 64.1200(f)(9))",
            json!({ "seller": null }),
            &["seller"],
        ),
        ("a blank seller", json!({ "seller": " " }), &["seller"]),
        (
            "in the future",
            json!({ "given_at": "2026-11-30T12:00:00.001Z" }),
            &["given_at"],
        ),
        (
            "before 1990",
            json!({ "given_at": "1989-12-31T23:59:59.999Z" }),
            &["given_at"],
        ),
        (
            "ends as it begins",
            json!({ "expires_at": "2026-11-01T09:00:00Z" }),
            &["expires_at"],
        ),
        (
            "a contract without a name",
            json!({ "tier": "existing_contract" }),
            &["contract_ref"],
        ),
        (
            "in writing, without the text",
            json!({ "request_copy": null }),
            &["request_copy"],
        ),
        (
            "confirmed, without the text",
            json!({ "request_copy": null, "tier": "opt_in_double" }),
            &["request_copy"],
        ),
        (
            "not a page",
            json!({ "source_url": "javascript:alert(1)" }),
            &["source_url"],
        ),
        ("not an IP address", json!({ "source_ip": "localhost" }), &["source_ip"]),
        ("an unknown field", json!({ "consent": "yes" }), &["consent"]),
    ];
    for (what, change, fields) in refused {
        assert_eq!(faults(change), fields, "{what}");
    }
    for (what, change) in [
        (
            "an address alone",
            json!({ "phone_number": null, "channels": ["email"] }),
        ),
        ("a number alone", json!({ "email": null })),
        ("at this moment", json!({ "given_at": NOW })),
        ("at the earliest", json!({ "given_at": "1990-01-01T00:00:00Z" })),
        (
            "a moment later it ends",
            json!({ "expires_at": "2026-11-01T09:00:00.001Z" }),
        ),
        ("it has ended", json!({ "expires_at": "2026-11-02T09:00:00Z" })),
        ("no end", json!({ "expires_at": null })),
        (
            "said, without a text",
            json!({ "tier": "express", "request_copy": null }),
        ),
        (
            "a contract",
            json!({ "tier": "existing_contract", "contract_ref": "C-17", "request_copy": null }),
        ),
        ("IPv6", json!({ "source_ip": "2001:db8::7" })),
        ("the longest text", json!({ "request_copy": "a".repeat(MAX_COPY) })),
    ] {
        assert_eq!(faults(change), [""; 0], "{what}");
    }
    assert_eq!(
        faults(json!({ "request_copy": "a".repeat(MAX_COPY + 1) })),
        ["request_copy"]
    );
    // All that is wrong is told at once.
    let all =
        json!({ "phone_number": "12", "channels": [], "given_at": "2030-01-01T00:00:00Z", "source_ip": "localhost" });
    assert_eq!(
        faults(all),
        ["phone_number", "channels", "given_at", "expires_at", "source_ip"]
    );
}

/// By the clock that shows more: one that was set back refuses nobody who agreed a moment ago.
#[test]
fn the_future_begins_with_the_later_clock() {
    let given = shape::parse_value::<ConsentGiven>(good()).unwrap();
    let given = ConsentGiven {
        given_at: at("2026-11-30T12:30:00Z"),
        ..given
    };
    let by = |ours: &str, wall: &str| {
        let now = Times {
            ours: at(ours),
            wall: at(wall),
            in_doubt: false,
        };
        accept(
            given.clone(),
            &Reading { now, ..reading() },
            ConsentId(Uuid::from_u128(7)),
        )
        .is_ok()
    };
    assert!(by("2026-11-30T12:00:00Z", "2026-11-30T12:30:00Z"));
    assert!(by("2026-11-30T12:30:00Z", "2026-11-30T12:00:00Z"));
    assert!(!by("2026-11-30T12:00:00Z", "2026-11-30T12:29:59Z"));
}

#[test]
fn the_same_facts_are_the_same_consent() {
    let first = accepted(json!({})).row.fingerprint;
    for (change, same) in [
        (json!({ "seller": " ACME LTD. " }), true),
        (
            json!({ "phone_number": "+1 202 555 0123", "channels": ["phone", "sms"] }),
            true,
        ),
        (json!({ "name": "Ann Smith" }), true),
        (json!({ "seller": "Acme" }), false),
        (json!({ "given_at": "2026-11-01T09:00:01Z" }), false),
        (json!({ "channels": ["phone"] }), false),
        (json!({ "purposes": ["marketing"] }), false),
        (json!({ "tier": "opt_in_double" }), false),
        (json!({ "covers_automated_voice": false }), false),
        (json!({ "request_copy": "Another text." }), false),
        (json!({ "method": "web form, entered anew" }), false),
        (json!({ "expires_at": null }), false),
    ] {
        assert_eq!(accepted(change.clone()).row.fingerprint == first, same, "{change}");
    }
}

#[test]
fn cells_are_read_as_the_api_reads_its_fields() {
    let row = |cells: &[(&str, &'static str)]| {
        let cells = cells.to_vec();
        of_cells(move |name| cells.iter().find(|(known, _)| *known == name).map(|(_, text)| *text))
    };
    let all = [
        ("phone_number", "+12025550123"),
        ("seller", "Acme"),
        ("channels", "phone; sms"),
        ("purposes", "marketing,service"),
        ("tier", "express"),
        ("covers_automated_voice", "Yes"),
        ("method", "said in a call"),
        ("given_at", "2026-11-01T09:00:00+01:00"),
    ];
    let given = row(&all).unwrap();
    assert_eq!(
        (given.channels.len(), given.purposes.len(), given.covers_automated_voice),
        (2, 2, true)
    );
    assert_eq!(given.given_at, at("2026-11-01T08:00:00Z"));
    let wrong = |name: &'static str, text: &'static str| {
        let mut cells = all.to_vec();
        cells.retain(|(known, _)| *known != name);
        cells.push((name, text));
        match row(&cells).unwrap_err() {
            Error::Invalid { field, .. } => field,
            other => panic!("{other:?}"),
        }
    };
    for (name, text, field) in [
        ("given_at", "2026-11-01", "given_at"),
        ("covers_automated_voice", "perhaps", "covers_automated_voice"),
        ("channels", "phone;fax", "channels[1]"),
        ("tier", "written", "tier"),
        ("recording_id", "17", "recording_id"),
    ] {
        assert_eq!(wrong(name, text), field);
    }
    let without: Vec<_> = all.iter().copied().filter(|(name, _)| *name != "seller").collect();
    assert!(matches!(row(&without), Err(Error::Invalid { field, .. }) if field == "seller"));
}

#[test]
fn a_request_from_elsewhere_is_from_the_last_year_and_is_late_after_five_days() {
    let now = Times::at(at(NOW));
    for (when, expected) in [
        ("2026-11-30T12:00:00Z", Some(false)),
        ("2026-11-25T12:00:00Z", Some(false)),
        ("2026-11-25T11:59:59.999Z", Some(true)),
        ("2025-11-30T12:00:00Z", Some(true)),
        ("2025-11-30T11:59:59.999Z", None),
        ("2026-11-30T12:00:00.001Z", None),
    ] {
        let found = requested(at(when), now).ok();
        assert_eq!(found.map(|found| found.is_late), expected, "{when}");
        assert_eq!(
            found.and_then(Requested::warning).is_some(),
            expected == Some(true),
            "{when}"
        );
    }
}

/// No list brings back what was taken back, with another word or another moment in it.
#[test]
fn what_was_taken_back_is_not_given_before_that() {
    let withdrawn = |channel, at_text: &str| {
        let mut row = accepted(json!({ "channels": ["phone", "sms", "email"] })).row;
        row.withdrawals = Withdrawals(vec![Withdrawal {
            channel,
            at: at(at_text),
            seq: 7,
            by: Some("ann@example.com".into()),
            reason: "by letter".into(),
        }]);
        row
    };
    let phone = || withdrawn(DncChannel::Phone, "2026-11-10T09:00:00Z");
    for (name, change, other, expected) in [
        ("the same", json!({}), phone(), true),
        ("another word", json!({ "method": "Web form" }), phone(), true),
        (
            "a moment later",
            json!({ "given_at": "2026-11-01T09:00:00.001Z" }),
            phone(),
            true,
        ),
        (
            "in that moment",
            json!({ "given_at": "2026-11-10T09:00:00Z" }),
            phone(),
            true,
        ),
        (
            "after it",
            json!({ "given_at": "2026-11-10T09:00:00.001Z" }),
            phone(),
            false,
        ),
        ("for another channel", json!({ "channels": ["sms"] }), phone(), false),
        ("to another seller", json!({ "seller": "Acme Inc." }), phone(), false),
        (
            "of another number",
            json!({ "phone_number": "(202) 555-0124" }),
            phone(),
            false,
        ),
        (
            "with another address",
            json!({ "email": "bob@example.com" }),
            phone(),
            true,
        ),
        (
            "by e-mail",
            json!({ "channels": ["email"], "phone_number": null }),
            withdrawn(DncChannel::Email, "2026-11-10T09:00:00Z"),
            true,
        ),
    ] {
        let row = accepted(change).row;
        let mut all = TakenBack::default();
        assert!(all.check(&row).is_ok(), "{name}");
        for of in given(&other) {
            assert!(all.note(&of, &other.withdrawals), "{name}");
        }
        let refused = all.check(&row).err();
        let is_revoked = matches!(refused, Some(Error::InvalidState { state: "revoked", .. }));
        assert_eq!(
            (is_revoked, refused.is_some()),
            (expected, expected),
            "{name}: {refused:?}"
        );
    }
}

/// Who looks at no more of it does not know what else was taken back.
#[test]
fn of_whom_too_much_was_taken_back_nothing_new_is_recorded() {
    let row = accepted(json!({})).row;
    let other = accepted(json!({ "seller": "Acme Inc." })).row;
    let mut all = TakenBack::default();
    let of = given(&row).next().unwrap();
    for seen in 1..=MOST_TAKEN_BACK {
        assert_eq!(all.note(&of, &Withdrawals::default()), seen < MOST_TAKEN_BACK);
        let is_refused = matches!(all.check(&row), Err(Error::PlanLimit(_)));
        assert_eq!(is_refused, seen >= MOST_TAKEN_BACK, "{seen}");
    }
    assert!(all.check(&other).is_ok(), "to another seller");
}
