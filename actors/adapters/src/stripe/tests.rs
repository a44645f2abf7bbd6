//! Addresses, keys and forms, without a network.
use super::*;
use crate::provider_http::MAX_WORDS;
use entities::values::{Cents, Env, Moment};
use rules::credits::topup::{NewTopup, born};
use uuid::Uuid;

const KEY: &str = "sk_test_0123456789abcdef";

fn stripe(url: &str, key: &str) -> Result<Stripe, String> {
    // Another test may have been first.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Stripe::new(url, key)
}

#[test]
fn addresses_and_keys_are_checked() {
    for url in [
        "https://api.stripe.com",
        "https://api.stripe.com/",
        "http://127.0.0.1:1",
        "http://[::1]:1",
        "http://localhost:1",
    ] {
        assert!(stripe(url, KEY).is_ok(), "{url}");
    }
    for url in [
        "",
        "api.stripe.com",
        "http://api.stripe.com",
        "https://u:p@api.stripe.com",
        "https://a.example/?x",
        "ftp://a.example",
    ] {
        assert!(stripe(url, KEY).unwrap_err().starts_with("stripe_url:"), "{url}");
    }
    let long = format!("sk_{}", "x".repeat(300));
    for key in [
        "",
        "pk_live_0123456789abcdef",
        "sk_",
        "sk_test_0123456789 abcdef",
        "whsec_0123456789abcdef",
        &long,
    ] {
        assert!(
            stripe("https://api.stripe.com", key)
                .unwrap_err()
                .starts_with("stripe_secret_key:"),
            "{key}"
        );
    }
}

#[test]
fn the_key_is_in_no_text() {
    let stripe = stripe("https://api.stripe.com", KEY).unwrap();
    assert!(!format!("{stripe:?}").contains(KEY));
    let words = stripe.words(&format!("Invalid API Key provided:\n{KEY} {}", "x".repeat(900)));
    assert!(words.starts_with("Invalid API Key provided: [key] x") && words.chars().count() == MAX_WORDS);
}

#[test]
fn the_form_is_the_same_each_time() {
    let asked = NewTopup {
        id: Uuid::from_u128(7).into(),
        owner: (Uuid::from_u128(1).into(), Env::Live),
        amount_cents: Cents(2_500),
        currency: "USD".into(),
        success_url: Some("https://shop.example/thanks?x=1&y=ü".into()),
        cancel_url: None,
    };
    let topup = born(asked, Moment::from_millis(1_700_000_000_999));
    let form = form(&topup, "https://callboard.example/");
    assert_eq!(form, super::form(&topup, "https://callboard.example/"));
    let pairs: Vec<_> = form_urlencoded::parse(form.as_bytes()).into_owned().collect();
    let value = |name: &str| {
        pairs
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    let id = Uuid::from_u128(7).to_string();
    assert_eq!(value("mode"), Some("payment"));
    assert_eq!(value("metadata[topup_id]"), Some(id.as_str()));
    assert_eq!(value("payment_intent_data[metadata][topup_id]"), Some(id.as_str()));
    assert_eq!(value("line_items[0][price_data][unit_amount]"), Some("2500"));
    assert_eq!(value("line_items[0][price_data][currency]"), Some("usd"));
    assert_eq!(value("success_url"), Some("https://shop.example/thanks?x=1&y=ü"));
    assert_eq!(value("cancel_url"), None);
    assert_eq!(value("expires_at"), Some("1700082800"), "23 hours");
}
