//! What a bad body is answered, and how long one is waited for.
use super::*;
use entities::{Error, agent::Definition};
use uuid::Uuid;

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    #[expect(dead_code, reason = "only its errors are looked at")]
    name: String,
    #[expect(dead_code, reason = "only its errors are looked at")]
    pacing: Option<Inner>,
}
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    #[expect(dead_code, reason = "only its errors are looked at")]
    rate: u8,
}

fn error(body: &str) -> (&'static str, Option<String>) {
    match parse::<Outer>(body.as_bytes(), &|| None).unwrap_err() {
        ApiError::Frame(code, _, param) => (code.as_str(), param),
        ApiError::Service(Error::Invalid { field, .. }) => ("validation_failed", Some(field)),
        ApiError::Service(Error::Faults(faults)) => ("validation_failed", Some(faults[0].field.clone())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_body_that_stalls_or_drips_is_waited_for_no_longer() {
    for (elapsed, arrived, expected) in [
        (0, 0, 10),
        (4, 1, 10),
        (12, 1, 3),
        (15, 1, 0),
        (20, 5 * 64 * 1024, 0),
        (20, 10 * MIB, 10),
        (170, 10 * MIB, 5),
        (200, 10 * MIB, 0),
    ] {
        let left = patience(Duration::from_secs(elapsed), arrived);
        assert_eq!(left, Duration::from_secs(expected), "{elapsed} s, {arrived} bytes");
    }
}

#[tokio::test]
async fn a_body_holds_room_while_it_comes_and_none_when_its_sender_is_gone() {
    use super::super::bodies::{Bodies, Owner};
    use futures_util::{FutureExt, stream};
    let bodies = std::sync::Arc::<Bodies>::default();
    let owner = Owner::Workspace(Uuid::from_u128(1).into());
    let half = || {
        let bytes = Bytes::from(vec![b'x'; MIB]);
        stream::iter([Ok(bytes)]).chain(stream::pending())
    };
    let (mut permit, mut payload) = (BodyPermit::begin(&bodies, owner).unwrap(), half());
    let reading = read_into(&mut permit, &mut payload, 10 * MIB, patience).now_or_never();
    assert!(reading.is_none(), "it waits for the rest");
    assert!(bodies.held() >= MIB);
    drop(permit);
    assert_eq!(bodies.held(), 0);
    let (mut permit, mut payload) = (BodyPermit::begin(&bodies, owner).unwrap(), half());
    let late = read_into(&mut permit, &mut payload, 10 * MIB, |_, _| Duration::ZERO).await;
    let status = actix_web::ResponseError::status_code(&late.unwrap_err());
    assert_eq!(status.as_u16(), 408);
    let mut payload = half();
    let large = read_into(&mut permit, &mut payload, MIB - 1, patience).await;
    assert_eq!(actix_web::ResponseError::status_code(&large.unwrap_err()).as_u16(), 413);
}

#[test]
fn errors_name_the_field() {
    let validation = |param: &str| ("validation_failed", Some(param.to_owned()));
    assert_eq!(error(r#"{"name":"#), ("invalid_json", None));
    assert_eq!(error(r#"{"name":"x"} trailing"#), ("invalid_json", None));
    assert_eq!(error(r#"{"name":"x","nmae":1}"#), validation("nmae"));
    assert_eq!(error(r"{}"), validation("name"));
    assert_eq!(error(r#"{"name":1}"#), validation("name"));
    assert_eq!(
        error(r#"{"name":"x","pacing":{"rate":300}}"#),
        validation("pacing.rate")
    );
    assert_eq!(error(r#"{"name":"x","pacing":{"rat":3}}"#), validation("pacing.rat"));
    assert_eq!(error(r#"{"name":"x","pacing":{}}"#), validation("pacing.rate"));
    assert_eq!(error(r#"{"name":"a\u0000b"}"#), validation(""));
    assert!(
        parse::<Outer>(br#"{"name":"a\\u0000b"}"#, &|| None).is_ok(),
        "a text about an escape"
    );
}

/// A brain with a mistake, the field that is named, and what is said of it. The mode may come after the fields that depend on it.
const BAD_BRAINS: &[(&str, &str, &str)] = &[
    (
        r#"{"mode":"chat","model":5}"#,
        "brain.model",
        "must be a string, not `5`",
    ),
    (
        r#"{"model":5,"mode":"chat"}"#,
        "brain.model",
        "must be a string, not `5`",
    ),
    (r#"{"mode":"realtime","model":""}"#, "brain.model", "must not be empty"),
    (
        r#"{"mode":"chat","temperature":"hot"}"#,
        "brain.temperature",
        "must be a number, not \"hot\"",
    ),
    (
        r#"{"mode":"chat","temperature":3}"#,
        "brain.temperature",
        "must be from 0 to 2, not 3",
    ),
    (
        r#"{"max_tokens":8,"mode":"chat"}"#,
        "brain.max_tokens",
        "must be from 16 to 8192, not 8",
    ),
    (
        r#"{"mode":"chat","tempo":1}"#,
        "brain.tempo",
        "is not a known field; allowed: `mode`, `model`, `temperature`, `max_tokens`",
    ),
    (
        r#"{"temperature":1,"mode":"realtime"}"#,
        "brain.temperature",
        "is not a known field; allowed: `mode`, `model`",
    ),
    (
        r#"{"mode":"scripted","model":null}"#,
        "brain.model",
        "is not a known field; allowed: `mode`, `replies`",
    ),
    (
        r#"{"mode":"scripted","replies":null}"#,
        "brain.replies",
        "must be a list, not null",
    ),
    (
        r#"{"mode":"scripted","replies":[{"hear":["hi"]}]}"#,
        "brain.replies[0].say",
        "is required",
    ),
    (
        r#"{"replies":[{"say":"Hi."},{"say":"Bye.","loud":true}],"mode":"scripted"}"#,
        "brain.replies[1].loud",
        "is not a known field; allowed: `hear`, `say`, `call`, `hang_up`",
    ),
    (
        r#"{"mode":"scripted","replies":[{"say":"Hi.","call":{"name":7}}]}"#,
        "brain.replies[0].call.name",
        "must be a string, not `7`",
    ),
    (
        r#"{"mode":"telepathy"}"#,
        "brain.mode",
        "must be one of `scripted`, `chat`, `realtime`, not `telepathy`",
    ),
    (
        r#"{"mode":7}"#,
        "brain.mode",
        "must be a string from the list in the API reference, not `7`",
    ),
    (
        r#"{"mode":null}"#,
        "brain.mode",
        "must be a string from the list in the API reference, not null",
    ),
    (
        r#"{"mode":{"chat":{}}}"#,
        "brain.mode",
        "must be a string from the list in the API reference, not an object",
    ),
    (r#"{"model":"small"}"#, "brain.mode", "is required"),
    (r#"["chat"]"#, "brain", "must be an object, not a list"),
    ("7", "brain", "must be an object, not `7`"),
];

#[test]
fn errors_in_a_brain_name_its_field() {
    for (brain, param, message) in BAD_BRAINS {
        let body = format!(r#"{{"name":"Ann","prompt":"x","brain":{brain}}}"#);
        let value = serde_json::from_str(&body).unwrap();
        let good = serde_json::json!({ "name": "Ann", "prompt": "x" });
        let of_text = parse::<Definition>(body.as_bytes(), &|| None);
        for read in [of_text, parse_value(value, &good)] {
            let ApiError::Service(Error::Faults(faults)) = read.unwrap_err() else {
                panic!("{brain} is an error of another kind");
            };
            assert_eq!((&*faults[0].field, &*faults[0].reason), (*param, *message), "{brain}");
        }
    }
    let twice = br#"{"name":"Ann","prompt":"x","brain":{"mode":"chat","mode":"chat"}}"#;
    let ApiError::Service(Error::Faults(faults)) = parse::<Definition>(twice, &|| None).unwrap_err() else {
        panic!("an error of another kind");
    };
    assert_eq!(
        (&*faults[0].field, &*faults[0].reason),
        ("brain.mode", "is given twice")
    );
}

#[tokio::test]
async fn a_message_is_a_sentence_with_the_field_in_it() {
    for (body, expected) in [
        ("", "the body is empty; send a JSON object"),
        (
            r#"{"name":"#,
            "the body is not valid JSON: it ends too early (line 1, column 8)",
        ),
        (r"[]", "send a JSON object"),
        (r"{}", "`name` is required"),
        (r#"{"name":7}"#, "`name` must be a string, not `7`"),
        (
            r#"{"name":"x","pacing":{"rat":3}}"#,
            "`pacing.rat` is not a known field; allowed: `rate`",
        ),
    ] {
        let refused = parse::<Outer>(body.as_bytes(), &|| None).unwrap_err();
        let answer = actix_web::ResponseError::error_response(&refused).into_body();
        let answer = actix_web::body::to_bytes(answer).await.unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["error"]["message"], expected, "{body}");
        // The first of what is wrong is the same once more.
        let error = &answer["error"];
        if error["code"] == "validation_failed" {
            assert_eq!(error["details"][0]["message"], expected, "{body}");
            assert_eq!(error["details"][0].get("param"), error.get("param"), "{body}");
        }
    }
}
