//! What is made of Stripe's notices: every kind that is about top-ups, and what is left alone.
use super::*;
use serde_json::json;

const TOPUP: &str = "01956d3e-0000-7000-8000-000000000001";

fn session() -> Value {
    json!({ "id": "cs_1", "object": "checkout.session", "status": "complete", "payment_status": "paid",
        "payment_intent": "pi_1", "amount_total": 2_500, "currency": "usd", "client_reference_id": TOPUP,
        "metadata": { "topup_id": TOPUP } })
}
fn intent() -> Value {
    json!({ "id": "pi_1", "object": "payment_intent", "amount": 2_500, "amount_received": 2_500, "currency": "usd",
        "metadata": { "topup_id": TOPUP } })
}
fn charge() -> Value {
    json!({ "id": "ch_1", "object": "charge", "amount": 2_500, "amount_captured": 2_500, "amount_refunded": 700,
        "currency": "usd", "payment_intent": "pi_1", "metadata": { "topup_id": TOPUP } })
}
fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}
fn told(kind: &str, object: Value) -> Result<Option<Story>, Unreadable> {
    let body = json!({ "id": "evt_1", "object": "event", "type": kind, "data": { "object": object } });
    Notice::parse(body.to_string().as_bytes()).unwrap().story()
}
fn payment() -> Payment {
    Payment {
        intent_id: "pi_1".into(),
        cents: Cents(2_500),
        currency: "usd".into(),
    }
}
fn story(session_id: Option<&str>, news: News) -> Result<Option<Story>, Unreadable> {
    let of = Whose::Topup(TOPUP.parse().unwrap());
    Ok(Some(Story {
        of,
        session_id: session_id.map(str::to_owned),
        news,
    }))
}

#[test]
fn every_kind_is_understood() {
    let paid = || story(Some("cs_1"), News::Paid(payment()));
    assert_eq!(told("checkout.session.completed", session()), paid());
    assert_eq!(told("checkout.session.async_payment_succeeded", session()), paid());
    let expanded = with(session(), "payment_intent", intent());
    assert_eq!(told("checkout.session.completed", expanded), paid());
    let unpaid = || with(session(), "payment_status", json!("unpaid"));
    assert_eq!(told("checkout.session.completed", unpaid()), Ok(None));
    let free = with(session(), "payment_status", json!("no_payment_required"));
    assert_eq!(told("checkout.session.completed", free), Ok(None));
    let failed = story(Some("cs_1"), News::Failed);
    assert_eq!(told("checkout.session.async_payment_failed", unpaid()), failed);
    assert_eq!(
        told("checkout.session.expired", unpaid()),
        story(Some("cs_1"), News::Expired)
    );
    assert_eq!(
        told("payment_intent.succeeded", intent()),
        story(None, News::Paid(payment()))
    );
    let refunded = News::Refunded {
        payment: payment(),
        total: Cents(700),
        at: Moment::from_millis(0),
    };
    assert_eq!(told("charge.refunded", charge()), story(None, refunded.clone()));
    let unnamed = Story {
        of: Whose::Payment("pi_1".into()),
        session_id: None,
        news: refunded,
    };
    assert_eq!(
        told("charge.refunded", with(charge(), "metadata", json!({}))),
        Ok(Some(unnamed))
    );
}

#[test]
fn a_refund_says_something_only_when_it_failed() {
    let refund = |status: &str| {
        json!({ "id": "re_1", "object": "refund", "amount": 700, "status": status, "payment_intent": "pi_1",
            "metadata": { "topup_id": TOPUP } })
    };
    let body = json!({ "id": "evt_1", "type": "refund.failed", "created": 1_700_000_000,
        "data": { "object": refund("failed") } });
    let failed = Story {
        of: Whose::Payment("pi_1".into()),
        session_id: None,
        news: News::RefundFailed {
            refund_id: "re_1".into(),
            intent_id: "pi_1".into(),
            cents: Cents(700),
            at: Moment::from_millis(1_700_000_000_000),
        },
    };
    assert_eq!(
        Notice::parse(body.to_string().as_bytes()).unwrap().story(),
        Ok(Some(failed))
    );
    for status in ["pending", "succeeded", "requires_action", ""] {
        assert_eq!(told("refund.updated", refund(status)), Ok(None), "{status}");
    }
    let elsewhere = with(refund("failed"), "payment_intent", json!(null));
    assert_eq!(told("charge.refund.updated", elsewhere), Ok(None));
    let unnamed = with(refund("canceled"), "id", json!(7));
    assert_eq!(told("refund.updated", unnamed), Err(Unreadable("id")));
}

#[test]
fn a_page_that_is_asked_for_says_the_same() {
    assert_eq!(seen(&session()), story(Some("cs_1"), News::Paid(payment())));
    let open = with(
        with(session(), "payment_status", json!("unpaid")),
        "status",
        json!("open"),
    );
    assert_eq!(seen(&open), Ok(None));
    assert_eq!(
        seen(&with(open, "status", json!("expired"))),
        story(Some("cs_1"), News::Expired)
    );
}

#[test]
fn what_is_somebody_elses_is_left_alone() {
    for metadata in [
        json!({}),
        json!(null),
        json!({ "topup_id": "17" }),
        json!({ "topup_id": 17 }),
        json!([]),
    ] {
        let foreign = with(
            with(session(), "metadata", metadata.clone()),
            "client_reference_id",
            json!("cart 17"),
        );
        for kind in [
            "completed",
            "async_payment_succeeded",
            "async_payment_failed",
            "expired",
        ] {
            assert_eq!(
                told(&format!("checkout.session.{kind}"), foreign.clone()),
                Ok(None),
                "{kind}"
            );
        }
        assert_eq!(
            told("payment_intent.succeeded", with(intent(), "metadata", metadata)),
            Ok(None)
        );
    }
    for kind in [
        "charge.succeeded",
        "customer.created",
        "",
        "checkout.session",
        "payment_intent.payment_failed",
    ] {
        assert_eq!(told(kind, session()), Ok(None), "{kind}");
    }
    assert_eq!(
        told("charge.refunded", with(charge(), "payment_intent", json!(null))),
        Ok(None)
    );
    assert_eq!(told("checkout.session.completed", json!("nonsense")), Ok(None));
}

#[test]
fn what_has_another_shape_is_named() {
    let completed = |field: &str, value: Value| told("checkout.session.completed", with(session(), field, value));
    for (field, name) in [("amount_total", "amount_total"), ("currency", "currency"), ("id", "id")] {
        for value in [json!(null), json!(-1), json!(1.5), json!("x".repeat(300)), json!({})] {
            assert_eq!(
                completed(field, value.clone()),
                Err(Unreadable(name)),
                "{field} {value}"
            );
        }
    }
    assert_eq!(
        completed("payment_intent", json!(null)),
        Err(Unreadable("payment_intent"))
    );
    assert_eq!(
        completed("amount_total", json!(1_u64 << 40)),
        Err(Unreadable("amount_total"))
    );
    let other = json!("01956d3e-0000-7000-8000-000000000002");
    assert_eq!(
        completed("client_reference_id", other),
        Err(Unreadable("client_reference_id")),
        "two names"
    );
    let refund = with(charge(), "amount_refunded", json!("700"));
    assert_eq!(told("charge.refunded", refund), Err(Unreadable("amount_refunded")));
    for body in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"id":"evt_1","type":"x"}"#,
        r#"{"id":1,"type":"x","data":{"object":{}}}"#,
    ] {
        assert!(Notice::parse(body.as_bytes()).is_err(), "{body}");
    }
}
