use super::super::parse_text;
use super::*;
use serde_json::json;

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its errors are looked at")]
struct Order {
    name: String,
    count: u8,
    #[serde(default)]
    place: Option<Place>,
    #[serde(default)]
    lines: Vec<Line>,
    #[serde(default)]
    brain: Option<entities::agent::Brain>,
}
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its errors are looked at")]
struct Place {
    street: String,
    zip: u32,
}
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its errors are looked at")]
struct Line {
    text: String,
}

fn good() -> Value {
    json!({ "name": "x", "count": 1 })
}

/// Of a text and of a value.
fn told(body: &Value) -> Vec<(String, FaultCode)> {
    let text = body.to_string();
    let first = parse_text::<Order>(text.as_bytes()).unwrap_err();
    let of_text = faults_of_text::<Order>(text.as_bytes(), Some(&good()), first);
    let of_value = parse_all::<Order>(body.clone(), &good()).unwrap_err();
    assert_eq!(of_text, of_value, "{body}");
    of_text.into_iter().map(|fault| (fault.field, fault.code)).collect()
}

#[test]
fn every_fault_is_told_once_and_none_that_mending_has_made() {
    use FaultCode::*;
    for (body, expected) in [
        (
            json!({ "name": 5, "count": 300 }),
            vec![("name", InvalidType), ("count", InvalidValue)],
        ),
        (
            json!({ "nmae": "x" }),
            vec![("nmae", UnknownField), ("name", Required), ("count", Required)],
        ),
        (
            json!({ "name": "x", "place": { "street": 1, "city": "y" } }),
            vec![
                ("place.street", InvalidType),
                ("place.city", UnknownField),
                ("count", Required),
            ],
        ),
        (
            json!({ "name": "x", "count": 1, "place": {}, "lines": [{ "text": "a" }, { "txet": "b" }], "colour": 1 }),
            vec![
                ("place.street", Required),
                ("lines[1].txet", UnknownField),
                ("lines[1].text", Required),
                ("colour", UnknownField),
            ],
        ),
        // A name that looks like a path.
        (
            json!({ "name": "x", "count": 1, "a.b": 1 }),
            vec![("a.b", UnknownField)],
        ),
        // A mode that is not known says nothing of the fields beside it.
        (
            json!({ "name": 5, "count": 1, "brain": { "mode": "chatt", "model": "small" } }),
            vec![("name", InvalidType), ("brain.mode", InvalidValue)],
        ),
    ] {
        let told = told(&body);
        let told: Vec<_> = told.iter().map(|(field, code)| (field.as_str(), *code)).collect();
        assert_eq!(told, expected, "{body}");
    }
}

#[test]
fn each_is_told_in_the_words_that_it_has_alone() {
    let text = br#"{"name":"x","name":"y","count":"7"}"#;
    let first = parse_text::<Order>(text).unwrap_err();
    let faults = faults_of_text::<Order>(text, Some(&good()), first);
    let told: Vec<_> = faults.iter().map(|fault| (&*fault.field, &*fault.reason)).collect();
    let expected = [
        ("name", "is given twice"),
        ("count", "must be a whole number from 0 to 255, not \"7\""),
    ];
    assert_eq!(told, expected);
}

#[test]
fn hostile_values_are_read_a_few_times_at_most() {
    let many: serde_json::Map<String, Value> = (0..1_000).map(|n| (format!("f{n}"), n.into())).collect();
    assert_eq!(told(&many.into()).len(), MOST_FAULTS);
    let of_large = told(&json!({ "name": vec![1; MOST_VALUES], "count": 300 }));
    assert_eq!(of_large, [("name".to_owned(), FaultCode::InvalidType)]);
    for long in [
        json!({ "name": "x".repeat(MOST_TEXT), "count": 300, "colour": 1 }),
        json!({ "x".repeat(MOST_TEXT): 1, "count": 300, "colour": 1 }),
    ] {
        assert_eq!(told(&long).len(), 1);
    }
}

/// Whatever a reader says: each time something else, or the same for ever.
#[test]
fn a_reader_that_is_never_content_is_left_alone() {
    for changes in [0, 1] {
        let read = std::cell::Cell::new(0);
        let fault_of = |_: &Value| {
            read.set(read.get() + 1);
            Some(Misshapen {
                param: format!("a.f{}", read.get() * changes),
                message: String::new(),
                code: FaultCode::InvalidValue,
            })
        };
        let first = fault_of(&Value::Null).unwrap();
        let fields: serde_json::Map<String, Value> = (0..1_000).map(|n| (format!("f{n}"), n.into())).collect();
        let faults = collect(json!({ "a": fields }), &good(), first, &fault_of);
        assert!(read.get() <= READINGS + 1 && faults.len() <= MOST_FAULTS, "{faults:?}");
    }
}
