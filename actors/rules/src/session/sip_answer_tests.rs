//! What is kept of the words of a carrier, and what is not.
use super::*;

fn blocked(text: &str) -> SipAnswer {
    SipAnswer {
        code: 603,
        reason: "Network Blocked".into(),
        q850: None,
        reasons: vec![SipReason {
            protocol: "SIP".into(),
            cause: Some(603),
            location: Some("LN".into()),
            text: Some(text.into()),
        }],
        jcard_url: None,
    }
}

fn called() -> E164 {
    "+12025550123".parse().unwrap()
}

/// What is kept of such a text, in a call to that number.
fn text(said: &str) -> Option<String> {
    blocked(said).kept(Some(&called())).reasons[0].text.clone()
}

#[test]
fn what_a_network_says_is_kept_as_it_says_it() {
    let said = "v=analytics1;url=https://block.example/redress;tel=+18005550199;id=4711";
    let kept = blocked(said).kept(Some(&called()));
    assert_eq!(kept.phrase.as_deref(), Some("Network Blocked"));
    let reason = &kept.reasons[0];
    assert_eq!((reason.protocol.as_str(), reason.cause), ("SIP", Some(603)));
    assert_eq!(
        (reason.location.as_deref(), reason.text.as_deref()),
        (Some("LN"), Some(said))
    );
    assert_eq!(
        serde_json::to_string(&SipReason {
            protocol: "X".into(),
            ..SipReason::default()
        })
        .unwrap(),
        r#"{"protocol":"X"}"#
    );
}

/// A row is never taken back, and the body of one names nobody.
#[test]
fn the_number_that_was_called_is_not_kept() {
    for (said, expected) in [
        ("call to +12025550123 blocked", "call to +*********** blocked"),
        ("id=12025550123", "id=***********"),
        ("2025550123", "**********"),
        ("(202) 555-0123, and 202.555.0123.", "(***) ***-****, and ***.***.****."),
        (
            "https://x.example/%2B12025550123?a",
            "https://x.example/%2B***********?a",
        ),
        ("5550123", "*******"),
        ("tel=+12025550124", "tel=+12025550124"),
        ("555012", "555012"),
        ("cause 21", "cause 21"),
    ] {
        assert_eq!(text(said).as_deref(), Some(expected), "{said}");
    }
    let mut answer = blocked("x");
    answer.reason = "No 12025550123".into();
    answer.jcard_url = Some("https://x.example/12025550123".into());
    let kept = answer.kept(Some(&called()));
    assert_eq!(kept.phrase.as_deref(), Some("No ***********"));
    assert_eq!(kept.jcard_url.as_deref(), Some("https://x.example/***********"));
}

#[test]
fn a_carrier_that_says_ten_thousand_bytes_fills_no_row() {
    for letter in ["x", "\"", "ü", "5"] {
        let long = letter.repeat(10_240);
        let reason = SipReason {
            protocol: long.clone(),
            cause: Some(u16::MAX),
            location: Some(long.clone()),
            text: Some(long.clone()),
        };
        let answer = SipAnswer {
            code: 603,
            reason: long.clone(),
            q850: Some(127),
            reasons: vec![reason; 100],
            jcard_url: Some(format!("https://x.example/{long}")),
        };
        let kept = answer.kept(Some(&called()));
        assert_eq!((kept.reasons.len(), kept.jcard_url.as_ref()), (MOST_REASONS, None));
        let row = serde_json::to_string(&(&kept.phrase, &kept.reasons)).unwrap();
        assert!(row.len() < 3_000, "{letter}: {}", row.len());
        assert!(answer.to_string().len() < 500);
        assert!(answer.redress().is_some_and(|told| told.chars().count() <= MAX_TEXT));
    }
}

#[test]
fn what_cannot_be_seen_is_not_kept() {
    assert_eq!(text("a\r\nb\u{0}c\u{202e}d\u{feff}").as_deref(), Some("a  b c d"));
    assert_eq!(text(" \u{200b}\t "), None);
    let mut answer = blocked("x");
    answer.reasons[0].protocol = "\u{7f}".into();
    assert_eq!(answer.kept(None).reasons, []);
}

#[test]
fn whom_to_ask_is_the_card_or_else_what_the_network_says() {
    let mut answer = blocked("v=analytics1;tel=+18005550199");
    assert_eq!(answer.redress().as_deref(), Some("v=analytics1;tel=+18005550199"));
    answer.jcard_url = Some("https://block.example/c".into());
    assert_eq!(answer.redress().as_deref(), Some("https://block.example/c"));
    assert_eq!(SipAnswer::default().redress(), None);
}

#[test]
fn an_attestation_is_one_of_three_letters() {
    for (letter, level) in [('A', Attestation::A), ('B', Attestation::B), ('C', Attestation::C)] {
        assert_eq!(Attestation::of(letter), Some(level));
        assert_eq!(serde_json::to_string(&level).unwrap(), format!("\"{letter}\""));
    }
    assert_eq!(Attestation::of('D'), None);
}
