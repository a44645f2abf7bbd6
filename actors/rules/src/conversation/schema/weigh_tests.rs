use crate::conversation::schema::{Parameters, Value};
use serde_json::{Map, json};

fn parse(schema: Value) -> Parameters {
    Parameters::parse(&schema).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

fn refusal(schema: &Value) -> String {
    match Parameters::parse(schema) {
        Ok(_) => panic!("was taken: {schema}"),
        Err(error) => error,
    }
}

/// Each would cost more than the machine has, if it were taken or looked at naively.
#[test]
fn costly_schemas_are_refused() {
    let ladder = |keyword: &str, steps: usize| {
        let steps = (0..steps).map(|n| {
            let next = format!("#/$defs/a{}", n + 1);
            (
                format!("a{n}"),
                json!({ keyword: [{ "$ref": next }, { "$ref": next }] }),
            )
        });
        let mut kept: Map<String, Value> = steps.collect();
        kept.insert(format!("a{}", kept.len()), json!({ "type": "string" }));
        json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/a0" } }, "$defs": kept })
    };
    for keyword in ["allOf", "anyOf", "oneOf"] {
        refusal(&ladder(keyword, 7));
        refusal(&ladder(keyword, 40));
        assert!(Parameters::parse(&ladder(keyword, 3)).is_ok());
    }
    let row: Map<String, Value> = (0..300)
        .map(|n| {
            (
                format!("a{n}"),
                json!({ "$ref": format!("#/$defs/a{}", (n + 1) % 300) }),
            )
        })
        .collect();
    assert!(
        refusal(&json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/a0" } }, "$defs": row }))
            .contains("in each other")
    );
    let twice = json!([{ "properties": { "x": { "$ref": "#" } } }, { "properties": { "x": { "$ref": "#" } } }]);
    assert!(refusal(&json!({ "type": "object", "allOf": twice })).contains("too costly"));
    for inner in [
        json!({ "$ref": "#" }),
        json!({ "anyOf": [{ "$ref": "#" }, { "type": "object" }] }),
        json!({ "not": { "$ref": "#" } }),
    ] {
        assert!(refusal(&json!({ "type": "object", "allOf": [inner] })).contains("comes back to itself"));
    }
    let patterns: Vec<Value> = (0..40).map(|_| json!({ "pattern": "a" })).collect();
    assert!(refusal(&json!({ "type": "object", "prefixItems": patterns })).contains("patterns"));
    for pattern in ["(a{1000}){1000}", "((a{100}){100}){100}", "(?=a)b", "(a)\\1", "(?<!x)y"] {
        let error = refusal(&json!({ "type": "object", "properties": { "x": { "pattern": pattern } } }));
        assert!(error.starts_with("/properties/x/pattern: "), "{pattern}: {error}");
    }
}

#[test]
fn schemas_that_refer_to_themselves_are_checked_to_the_end() {
    let tree = parse(json!({
        "type": "object", "additionalProperties": false,
        "properties": { "name": { "type": "string" }, "left": { "$ref": "#" }, "right": { "$ref": "#" } },
    }));
    let deep = |leaf: &str| format!("{}{leaf}{}", r#"{"left":"#.repeat(31), "}".repeat(31));
    assert!(tree.check(&deep("{}")).is_ok());
    assert!(tree.check(&deep(r#"{"name":7}"#)).is_err());
    let conditions = parse(json!({
        "type": "object", "properties": { "when": { "$ref": "#/$defs/rule" } },
        "$defs": { "rule": { "anyOf": [
            { "type": "string" },
            { "type": "object", "required": ["and"], "properties": { "and": { "type": "array", "items": { "$ref": "#/$defs/rule" } } } },
            { "type": "object", "required": ["or"], "properties": { "or": { "type": "array", "items": { "$ref": "#/$defs/rule" } } } },
        ] } },
    }));
    assert!(conditions.check(r#"{"when":{"and":["a",{"or":["b"]}]}}"#).is_ok());
    assert!(conditions.check(r#"{"when":{"and":["a",{"or":[1]}]}}"#).is_err());
}

/// Their cost is bounded by steps, not by luck: with a backtracking engine these would not end.
#[test]
fn patterns_do_not_backtrack() {
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(x+x+)+y", "^([a-zA-Z0-9]+)*$"] {
        let parameters = parse(json!({ "type": "object", "properties": { "x": { "pattern": pattern } } }));
        let text = format!("{}!", if pattern.contains("x+") { "x" } else { "a" }.repeat(15_000));
        assert!(
            parameters.check(&json!({ "x": text }).to_string()).is_err(),
            "{pattern}"
        );
    }
    let keys = parse(json!({ "type": "object", "patternProperties": { "^(a+)+$": { "type": "null" } } }));
    assert!(keys.check(&json!({ "a".repeat(8000): 1 }).to_string()).is_err());
    let mail =
        parse(json!({ "type": "object", "properties": { "x": { "pattern": "^[\\w.+-]+@[\\w-]+(\\.[\\w-]+)+$" } } }));
    assert!(mail.check(r#"{"x":"a.b@example.com"}"#).is_ok());
}

#[test]
fn the_heaviest_that_is_taken_ends() {
    // As many schemas in each other as may be, at every depth: this is what the stack must hold.
    let mut row = Map::new();
    for n in 0..7 {
        row.insert(
            format!("a{n}"),
            json!({ "anyOf": [{ "$ref": format!("#/$defs/a{}", n + 1) }] }),
        );
    }
    row.insert(
        "a7".into(),
        json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/a0" } } }),
    );
    let chain = parse(json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/a0" } }, "$defs": row }));
    let deep = format!("{}1{}", r#"{"x":"#.repeat(32), "}".repeat(32));
    assert!(chain.check(&deep).is_err());
    assert!(
        chain
            .check(
                &deep
                    .replace('1', "{}")
                    .replacen("{\"x\":", "", 1)
                    .replacen("}}", "}", 1)
            )
            .is_ok()
    );

    let choices: Vec<Value> = (0..120).map(|n| json!({ "const": n })).collect();
    let wide = parse(
        json!({ "type": "object", "additionalProperties": { "items": { "anyOf": choices }, "uniqueItems": true } }),
    );
    let items: Vec<Value> = (0..2500).map(|n| json!(n + 1000)).collect();
    let sentences = wide.check(&json!({ "x": items }).to_string()).unwrap_err();
    assert_eq!(sentences, ["the arguments do not fit the parameters of this function"]);

    let alike = parse(json!({ "type": "object", "additionalProperties": { "uniqueItems": true } }));
    let items: Vec<Value> = (0..1100).map(|n| json!({ "a": [n] })).collect();
    assert!(alike.check(&json!({ "x": items }).to_string()).is_ok());
    let steps = parse(json!({ "type": "object", "properties": { "x": { "multipleOf": 1e-300 } } }));
    assert!(steps.check(r#"{"x":"1"}"#).is_ok());
    // An answer is enough: which one, is a matter of rounding.
    drop(steps.check(r#"{"x":1e308}"#));
}
