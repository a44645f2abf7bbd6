//! One request per fault, and what is said of it.
use super::{
    check::{Check, Verdict},
    diagnose::{MISMATCH, diagnose, reason},
    request::Request,
};
use adapters::signature;

const NOW: i64 = 1_700_000_002;
const TIME: i64 = 1_700_000_000;
const BODY: &str = r#"{"id":"7","type":"session.ended","data":{"b":1.5,"a":"ü"}}"#;

fn secret() -> String {
    format!("whsec_{}=", "A".repeat(43))
}

/// A request as it was sent; each test spoils one thing.
struct Sent {
    secret: String,
    timestamp: String,
    signature: String,
    more: String,
    body: String,
}

fn sent() -> Sent {
    Sent {
        secret: secret(),
        timestamp: TIME.to_string(),
        signature: signature::sign(&secret(), TIME, BODY.as_bytes()),
        more: "X-Webhook-Id: 7\r\nX-Webhook-Event: session.ended\r\n".into(),
        body: BODY.into(),
    }
}

impl Sent {
    fn checks(&self) -> Vec<Check> {
        let Sent {
            timestamp,
            signature,
            more,
            body,
            ..
        } = self;
        let head =
            format!("POST / HTTP/1.1\r\nx-webhook-timestamp: {timestamp}\r\nx-webhook-signature: {signature}\r\n");
        let request = Request::parse(format!("{head}{more}\r\n{body}").as_bytes()).unwrap();
        diagnose(&request, &self.secret, NOW, 300)
    }
}

/// A request signed with this key over this body, and received with another body.
fn signed(key: &str, body: &str, received: &str) -> Sent {
    Sent {
        signature: signature::sign(key, TIME, body.as_bytes()),
        body: received.into(),
        ..sent()
    }
}

fn check_refused(sent: &Sent, part: &str, words: &str) {
    let checks = sent.checks();
    let found = reason(&checks).unwrap_or_else(|| panic!("verified, without {part}: {words}"));
    assert!(
        found.part == part && found.message.contains(words),
        "{part}: {words}, but {checks:#?}"
    );
    assert!(
        checks.iter().all(|check| !check.message.contains(&secret()[6..])),
        "shows the secret"
    );
}

#[test]
fn a_good_request_verifies_part_by_part() {
    let checks = sent().checks();
    let parts: Vec<_> = checks
        .iter()
        .map(|check| (check.part, check.message.as_str()))
        .collect();
    let length = format!("{} bytes", BODY.len());
    let expected = [
        ("headers", ""),
        ("secret", ""),
        ("timestamp", "2 seconds old"),
        ("signature", ""),
        ("body", &length),
    ];
    assert_eq!(parts, expected);
    assert!(checks.iter().all(|check| check.verdict == Verdict::Fine));
    assert_eq!(reason(&checks), None);
}

#[test]
fn the_documented_vector_verifies() {
    let raw = "X-Webhook-Timestamp: 1700000000\nX-Webhook-Signature: \
        sha256=c27378b71b60002356d3671bd75bc0cac07fd41680d9d020c4fbb08eca673402\n\n{}";
    let checks = diagnose(&Request::parse(raw.as_bytes()).unwrap(), &secret(), NOW, 300);
    assert_eq!(reason(&checks), None, "{checks:?}");
    assert_eq!(checks[0].verdict, Verdict::Warning, "id and event are absent");
}

#[test]
fn a_header_that_is_missing_is_named() {
    let check = |raw: &str, words: &str| {
        let checks = diagnose(&Request::parse(raw.as_bytes()).unwrap(), &secret(), NOW, 300);
        let found = reason(&checks).unwrap();
        assert!(found.part == "headers" && found.message.contains(words), "{checks:#?}");
    };
    check("A: b\n\n{}", "lack X-Webhook-Timestamp and X-Webhook-Signature");
    check("x-webhook-timestamp: 1700000000\n\n{}", "lack X-Webhook-Signature");
    check(
        "webhook-signature: v1,x\nx-webhook-timestamp: 1\n\n{}",
        "Standard Webhooks",
    );
    check("x-webhook-signature: x\n\n{}", "lack X-Webhook-Timestamp");
}

#[test]
fn a_secret_that_was_spoiled_here_is_named_and_the_rest_is_checked_with_what_was_meant() {
    let good = secret();
    for (spoiled, words) in [
        (good.replace("whsec_", ""), "does not start with whsec_"),
        (format!("{good}\n"), "line break"),
        (format!("\"{good}\""), "quotes"),
        (good.trim_end_matches('=').into(), "lost the `=`"),
    ] {
        let sent = Sent {
            secret: spoiled,
            ..sent()
        };
        check_refused(&sent, "secret", words);
        let checks = sent.checks();
        assert_eq!(
            checks[3].message, "with the secret mended: the fault is on this side",
            "{checks:?}"
        );
    }
    check_refused(
        &Sent {
            secret: good[..30].into(),
            ..sent()
        },
        "secret",
        "24 characters after whsec_ instead of 44",
    );
}

#[test]
fn a_timestamp_is_checked_for_its_unit_and_its_distance() {
    let at = |time: i64| Sent {
        timestamp: time.to_string(),
        signature: signature::sign(&secret(), time, BODY.as_bytes()),
        ..sent()
    };
    for (time, words) in [
        (
            NOW - 301,
            "301 seconds (5 minutes) old, 1 more than the tolerance of 300",
        ),
        (NOW + 301, "ahead of this clock"),
        (NOW - 90_000, "(25 hours) old"),
        (TIME * 1_000, "milliseconds"),
        (TIME * 1_000_000_000, "nanoseconds"),
    ] {
        check_refused(&at(time), "timestamp", words);
        assert_eq!(
            at(time).checks()[3],
            Check::new("signature", Verdict::Fine, ""),
            "{time}"
        );
    }
    for time in [NOW - 300, NOW, NOW + 300] {
        assert_eq!(reason(&at(time).checks()), None, "{time}");
    }
    assert_eq!(at(NOW - 1).checks()[2].message, "1 second old");
    let in_milliseconds = Sent {
        timestamp: (TIME * 1_000).to_string(),
        ..sent()
    };
    assert_eq!(
        in_milliseconds.checks()[3].verdict,
        Verdict::Fine,
        "signed in seconds, sent in milliseconds"
    );
    for text in [
        "",
        "+1700000000",
        "2023-11-14T22:13:20Z",
        "1700000000.5",
        "99999999999999999999",
    ] {
        check_refused(
            &Sent {
                timestamp: text.into(),
                ..sent()
            },
            "timestamp",
            "not a number of Unix seconds",
        );
    }
}

#[test]
fn a_signature_in_another_form_is_named_and_its_value_judged() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let good = sent().signature;
    let digits = good.strip_prefix("sha256=").unwrap();
    let bytes: Vec<u8> = (0..32)
        .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    let base64 = STANDARD.encode(bytes);
    for (signature, words) in [
        (digits.to_owned(), "does not start with `sha256=`; its value is right"),
        (format!("sha256={}", digits.to_uppercase()), "upper-case letters"),
        (good.to_uppercase(), "upper-case letters"),
        (base64.clone(), "is base64"),
        (format!("sha256={base64}"), "; its value is right"),
        (format!("v1,{base64}"), "is base64"),
        (good[..40].to_owned(), "has 33 hex digits instead of 64"),
        (String::new(), "is empty"),
        ("sha256=".into(), "is empty"),
        ("sha1=zz".into(), "`sha1=zz`, which is not"),
    ] {
        check_refused(&Sent { signature, ..sent() }, "signature", words);
    }
    let both = Sent {
        signature: digits.replace('a', "b"),
        ..sent()
    };
    check_refused(&both, "signature", "does not start with `sha256=`");
    assert!(!both.checks()[3].message.contains("right"));
}

#[test]
fn the_cause_of_a_mismatch_is_found() {
    let good = secret();
    let pretty =
        "{\n  \"id\": \"7\",\n  \"type\": \"session.ended\",\n  \"data\": { \"b\": 1.5, \"a\": \"\\u00fc\" }\n}";
    let sorted = r#"{"data":{"a":"ü","b":1.5},"id":"7","type":"session.ended"}"#;
    for (signed_key, signed_body, received, part, words) in [
        (
            good.as_str(),
            BODY,
            format!("{BODY}\n"),
            "body",
            "has a newline at its end",
        ),
        (
            &good,
            BODY,
            format!("{BODY}\r\n"),
            "body",
            "has a line break (CRLF) at its end",
        ),
        (&good, &format!("{BODY}\n"), BODY.into(), "body", "has lost the newline"),
        (
            &good,
            &format!("{BODY}\r\n"),
            BODY.into(),
            "body",
            "has lost the line break (CRLF)",
        ),
        (
            &good,
            pretty,
            pretty.replace('\n', "\r\n"),
            "body",
            "has CRLF where LF was signed",
        ),
        (
            &good,
            &pretty.replace('\n', "\r\n"),
            pretty.into(),
            "body",
            "has LF where CRLF was signed",
        ),
        (
            &good,
            BODY,
            pretty.into(),
            "body",
            "parsed and serialized again: without the blanks",
        ),
        (&good, BODY, sorted.into(), "body", "not in Callboard's order"),
        (&good, BODY, String::new(), "body", "is empty"),
        (
            &good[6..],
            BODY,
            BODY.into(),
            "secret",
            "lost its whsec_ on the signing side",
        ),
        (
            &format!("{good}\n"),
            BODY,
            BODY.into(),
            "secret",
            "has a line break at its end on the signing side",
        ),
        (
            &signature::new_secret(),
            BODY,
            BODY.into(),
            "body",
            "or the secret is another one",
        ),
        (
            &good,
            BODY,
            BODY.replace('7', "8"),
            "body",
            "is not the one that was signed",
        ),
    ] {
        let sent = signed(signed_key, signed_body, &received);
        check_refused(&sent, part, words);
        assert_eq!(sent.checks()[3], Check::wrong("signature", MISMATCH));
    }
}

/// Made with `openssl dgst -sha256 -mac HMAC -macopt hexkey:00…00` over `1700000000.{}`.
#[test]
fn a_key_that_was_decoded_is_found() {
    let sent = Sent {
        signature: "sha256=a9dc44c8eda3de70e9cbf3e488895f1abc26acb1461d3124a3cb886af35251cf".into(),
        body: "{}".into(),
        ..sent()
    };
    check_refused(&sent, "secret", "was decoded from base64 on the signing side");
}

#[test]
fn the_previous_secret_is_found() {
    let mut sent = signed(&signature::new_secret(), BODY, BODY);
    let previous = signature::sign(&secret(), TIME, BODY.as_bytes());
    sent.more = format!("X-Webhook-Signature-Previous: {previous}\r\n");
    check_refused(&sent, "secret", "is the previous one");
}

#[test]
fn a_body_that_was_cut_is_found_by_its_length() {
    let with_length = |received: &str, length: usize| Sent {
        more: format!("content-length: {length}\r\n"),
        ..signed(&secret(), BODY, received)
    };
    let length = BODY.len();
    check_refused(&with_length(&BODY[..length - 9], length), "body", "has lost 9 bytes");
    check_refused(&with_length(&format!("{BODY}x"), length), "body", "has 1 byte too many");
    let right = with_length(BODY, length + 1).checks();
    assert_eq!(reason(&right), None);
    assert_eq!(right[4].verdict, Verdict::Warning, "{right:?}");
}

#[test]
fn headers_that_contradict_the_body_are_a_warning() {
    let more = "X-Webhook-Id: 8\r\nX-Webhook-Event: session.\u{1b}[31mended\r\n".into();
    let checks = Sent { more, ..sent() }.checks();
    assert_eq!(reason(&checks), None);
    let warnings: Vec<_> = checks
        .iter()
        .filter(|check| check.verdict == Verdict::Warning)
        .collect();
    assert_eq!(
        warnings.iter().map(|check| check.part).collect::<Vec<_>>(),
        ["id", "type"]
    );
    assert!(warnings.iter().all(|check| check.message.contains("trust the body")));
    assert!(!warnings[1].message.contains('\u{1b}'), "harmless on a terminal");
}
