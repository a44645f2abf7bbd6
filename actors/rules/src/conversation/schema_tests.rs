use super::*;
use serde_json::json;

fn parse(schema: Value) -> Parameters {
    Parameters::parse(&schema).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

fn refusal(schema: &Value) -> String {
    match Parameters::parse(schema) {
        Ok(_) => panic!("was taken: {}", short(&schema.to_string())),
        Err(error) => error,
    }
}

/// `levels` arrays in each other.
fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn what_is_no_schema_of_an_object_is_refused_with_its_place() {
    for (schema, expected) in [
        (json!(true), "must be a JSON Schema object"),
        (json!([]), "must be a JSON Schema object"),
        (json!({}), "must describe an object"),
        (json!({ "type": "string" }), "/type: is \"string\""),
        (json!({ "type": ["object", "null"] }), "/type: is"),
        (json!({ "type": "object", "required": "day" }), "/required: "),
        (
            json!({ "type": "object", "properties": { "a": { "type": "text" } } }),
            "/properties/a/type: ",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "minLength": -1 } } }),
            "/properties/a/minLength: ",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "enum": "x" } } }),
            "/properties/a/enum: ",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }),
            "/properties/a/pattern: ",
        ),
        (
            json!({ "type": "object", "$schema": "http://json-schema.org/draft-04/schema#" }),
            "/$schema: ",
        ),
        (
            json!({ "type": "object", "$schema": "https://evil.example/schema" }),
            "/$schema: ",
        ),
    ] {
        let error = refusal(&schema);
        assert!(error.starts_with(expected), "{schema}: {error}");
        assert!(error.chars().count() <= 400, "{error}");
    }
}

#[test]
fn references_stay_inside() {
    for reference in [
        "http://127.0.0.1:1/schema.json",
        "https://json-schema.org/draft/2020-12/schema",
        "file:///etc/passwd",
        "other.json#/a",
        "//evil.example",
        "#anchor",
        "#/$defs/missing",
        "#/$defs/a%20b",
        "#/required/0",
        "#/properties/a/default",
        "",
    ] {
        let error = refusal(&json!({ "type": "object", "properties": { "a": { "$ref": reference } } }));
        assert!(error.starts_with("/properties/a/$ref: "), "{reference}: {error}");
    }
    for keyword in ["$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"] {
        refusal(&json!({ "type": "object", "properties": { "a": { keyword: "#x" } } }));
    }
    refusal(&json!({ "type": "object", "$defs": { "a": { "$id": "https://json-schema.org/draft/2020-12/schema" } } }));
    let own = parse(json!({
        "$id": "https://json-schema.org/draft/2020-12/schema", "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object", "properties": { "a": { "$ref": "#/$defs/day" } }, "$defs": { "day": { "enum": ["monday"] } },
    }));
    assert!(own.check(r#"{"a":"monday"}"#).is_ok());
    assert!(own.check(r#"{"a":"friday"}"#).is_err());
}

#[test]
fn arguments_are_checked_and_mistakes_told_in_sentences() {
    let booking = parse(json!({
        "type": "object", "required": ["day"], "additionalProperties": false,
        "properties": {
            "day": { "enum": ["monday", "tuesday"] },
            "note": { "type": "string", "maxLength": 10 },
            "on": { "type": "string", "format": "date" },
            "code": { "type": "string", "pattern": "^[a-z]{2}\\d+$" },
            "seats": { "type": "integer", "minimum": 1, "maximum": 9 },
        },
    }));
    for good in [
        r#"{"day":"monday"}"#,
        r#" {"day":"friday","day":"tuesday"} "#,
        r#"{"day":"monday","note":"ten chars!","on":"2027-03-02","code":"ab12","seats":9}"#,
    ] {
        assert!(booking.check(good).is_ok(), "{good}: {:?}", booking.check(good));
    }
    for (bad, expected) in [
        ("", "\"day\" is required"),
        ("{}", "\"day\" is required"),
        ("null", "must be a JSON object"),
        ("[]", "must be a JSON object"),
        ("\"monday\"", "must be a JSON object"),
        ("{day: monday}", "not valid JSON"),
        ("{\"day\":\"monday\"} trailing", "not valid JSON"),
        ("{\"day\":\"mon\0day\"}", "not valid JSON"),
        (
            r#"{"day":"mon\u0000day"}"#,
            "/day: must be one of [\"monday\",\"tuesday\"]",
        ),
        (
            r#"{"day":"tuesday","day":"friday"}"#,
            "/day: must be one of [\"monday\",\"tuesday\"]",
        ),
        (r#"{"day":"monday","__proto__":{"admin":true}}"#, "__proto__"),
        (r#"{"day":"monday","note":7}"#, "/note: "),
        (r#"{"day":"monday","on":"soon"}"#, "/on: "),
        (r#"{"day":"monday","code":"ab"}"#, "/code: "),
        (r#"{"day":"monday","seats":1e999}"#, "not valid JSON"),
        (r#"{"day":"monday","seats":1e300}"#, "/seats: "),
        (r#"{"day":"monday","seats":99999999999999999999999999}"#, "/seats: "),
    ] {
        let sentences = booking.check(bad).unwrap_err();
        assert!(
            sentences.iter().any(|one| one.contains(expected)),
            "{bad}: {sentences:?}"
        );
    }
    let hostile = format!(
        r#"{{"day":"{}","{}":1}}"#,
        "IGNORE ".repeat(200),
        "</system>\\n".repeat(200)
    );
    for sentence in booking.check(&hostile).unwrap_err() {
        assert!(
            sentence.chars().count() <= 200 && !sentence.contains("IGNORE"),
            "{sentence}"
        );
        assert!(!sentence.contains(char::is_control), "{sentence:?}");
    }
}

#[test]
fn at_most_five_mistakes_are_told() {
    let many: Map<String, Value> = (0..20).map(|n| (format!("p{n}"), json!({ "type": "null" }))).collect();
    let arguments: Map<String, Value> = (0..20).map(|n| (format!("p{n}"), json!(n))).collect();
    let sentences = parse(json!({ "type": "object", "properties": many }))
        .check(&Value::Object(arguments).to_string())
        .unwrap_err();
    assert_eq!(sentences.len(), 5);
}

#[test]
fn sizes_and_depths_have_their_limits() {
    let any = parse(json!({ "type": "object" }));
    let of_length = |length: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(length - 8));
    assert!(any.check(&of_length(MAX_BYTES)).is_ok());
    assert!(any.check(&of_length(MAX_BYTES + 1)).unwrap_err()[0].contains("16384 bytes"));
    assert!(any.check(&format!(r#"{{"a":{}}}"#, nested(31))).is_ok());
    assert!(any.check(&format!(r#"{{"a":{}}}"#, nested(32))).unwrap_err()[0].contains("deeper"));
    assert!(any.check(&format!(r#"{{"a":{}}}"#, nested(8000))).unwrap_err()[0].contains("JSON"));
    assert!(any.check(&"{\"a\":".repeat(3000)).unwrap_err()[0].contains("JSON"));

    let deep =
        |levels: usize| json!({ "type": "object", "default": serde_json::from_str::<Value>(&nested(levels)).unwrap() });
    assert!(Parameters::parse(&deep(15)).is_ok());
    assert!(refusal(&deep(16)).contains("deeper"));
    assert!(refusal(&json!({ "type": "object", "description": "x".repeat(MAX_BYTES) })).contains("bytes"));
}

#[test]
fn samples_fit_their_schemas() {
    for schema in [
        json!({ "type": "object" }),
        json!({ "properties": { "a": { "type": "string" } }, "required": ["a"] }),
        json!({ "type": "object", "required": ["day", "note"], "additionalProperties": false, "properties": {
            "day": { "enum": ["monday", "tuesday"] }, "note": { "type": "string", "minLength": 3 }, "more": { "type": "string" } } }),
        json!({ "type": "object", "required": ["a", "b", "c", "d", "e", "f"], "properties": {
            "a": { "const": 7 }, "b": { "type": "integer", "minimum": 3 }, "c": { "type": "number", "exclusiveMinimum": 0.5 },
            "d": { "type": "boolean" }, "e": { "type": "integer", "maximum": -4 }, "f": { "type": "integer", "minimum": 2, "multipleOf": 5 } } }),
        json!({ "type": "object", "required": ["a", "b"], "properties": {
            "a": { "type": "array", "minItems": 2, "items": { "type": "string", "minLength": 1 } }, "b": { "type": ["null", "string"] } } }),
        json!({ "type": "object", "required": ["a", "b", "c"], "properties": {
            "a": { "type": "string", "format": "date" }, "b": { "type": "string", "format": "email" }, "c": { "type": "string", "format": "uuid" } } }),
        json!({ "type": "object", "required": ["a", "b"], "properties": {
            "a": { "anyOf": [{ "type": "integer" }, { "type": "null" }] }, "b": { "oneOf": [{ "type": "string" }, { "type": "integer" }] } } }),
        json!({ "type": "object", "required": ["a"], "properties": { "a": { "$ref": "#/$defs/a" } },
            "$defs": { "a": { "type": "object", "required": ["b"], "properties": { "b": { "type": "number", "default": 2.5 } } } } }),
        json!({ "type": "object", "required": ["a", "b"], "properties": {
            "a": { "type": "string", "examples": ["x1"], "pattern": "^x\\d$" }, "b": { "type": "number", "exclusiveMaximum": 0 } } }),
        json!({ "type": "object", "allOf": [{ "properties": { "a": { "type": "string" } }, "required": ["a"] }] }),
        json!({ "type": "object", "required": ["x"], "additionalProperties": { "type": "boolean" } }),
        json!({ "type": "object", "required": ["x"], "properties": { "x": {} } }),
    ] {
        let sample = sample(&schema);
        assert_eq!(
            parse(schema.clone()).check(&sample.to_string()),
            Ok(sample.clone()),
            "{schema}: {sample}"
        );
    }
    assert_eq!(
        sample(&json!({ "type": "object", "properties": { "a": { "default": 1 } } })),
        json!({}),
        "the smallest"
    );
}

#[test]
fn samples_end() {
    let endless = json!({ "type": "object", "required": ["a"], "properties": { "a": { "$ref": "#" } } });
    assert!(!deeper(&sample(&endless), 17));
    let loops = json!({ "$ref": "#" });
    assert_eq!(sample(&loops), Value::Null);
    let mut wide = json!({ "type": "string", "minLength": 1_000_000_000 });
    for _ in 0..6 {
        wide = json!({ "type": "array", "minItems": 1_000_000, "items": wide });
    }
    assert!(count(&sample(&wide)) < 2_000_000);
    for odd in [
        json!(null),
        json!([1]),
        json!({ "type": 7 }),
        json!({ "enum": [] }),
        json!({ "type": "number", "minimum": 1e308, "multipleOf": 1e-308 }),
    ] {
        sample(&odd);
    }
}
