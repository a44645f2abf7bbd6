//! The OpenAPI document as a checker: whatever the service answers in any scenario is as it says.
use jsonschema::Validator;
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

const PREFIX: &str = "#/components/schemas/";

pub static DOCUMENT: LazyLock<Value> = LazyLock::new(callboard::http::openapi::document);

/// Every path in its parts, with its operations: each answer of each test is looked up.
static PATHS: LazyLock<Vec<(Vec<&'static str>, &'static Value)>> = LazyLock::new(|| {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let in_parts = paths.iter().map(|(path, item)| (path.split('/').collect(), item));
    in_parts.collect()
});

/// By the schema's text; each is made once.
static VALIDATORS: LazyLock<Mutex<BTreeMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// What is wrong with a value, by a schema of the document.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let validator = validator(schema);
    let faults = validator.iter_errors(value);
    faults
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect()
}

fn validator(schema: &Value) -> Arc<Validator> {
    let mut known = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let made = known.entry(schema.to_string()).or_insert_with(|| {
        // Only what it refers to: all of them would be read anew for each.
        let (all, mut names) = (&DOCUMENT["components"]["schemas"], BTreeSet::new());
        reach(schema, all, &mut names);
        let schemas: Map<String, Value> = names
            .into_iter()
            .map(|name| (name.clone(), all[&name].clone()))
            .collect();
        let mut whole = schema.clone();
        whole["components"] = json!({ "schemas": schemas });
        let options = jsonschema::options().should_validate_formats(true);
        Arc::new(options.build(&whole).unwrap())
    });
    made.clone()
}

fn reach(value: &Value, all: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let path = fields.get("$ref").and_then(Value::as_str);
            if let Some(name) = path.and_then(|path| path.strip_prefix(PREFIX))
                && found.insert(name.to_owned())
            {
                assert!(all.get(name).is_some(), "there is no {name}");
                reach(&all[name], all, found);
            }
            fields.values().for_each(|value| reach(value, all, found));
        }
        Value::Array(items) => items.iter().for_each(|item| reach(item, all, found)),
        _ => {}
    }
}

/// The operation behind a path; of two that fit the one that names more of it.
fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let given: Vec<&str> = path.split('/').collect();
    let is_place = |part: &str| part.starts_with('{');
    let fits = |parts: &[&str]| {
        parts.len() == given.len()
            && parts
                .iter()
                .zip(&given)
                .all(|(part, given)| is_place(part) || part == given)
    };
    let found = PATHS.iter().filter(|(parts, _)| fits(parts));
    let (_, item) = found.min_by_key(|(parts, _)| parts.iter().filter(|part| is_place(part)).count())?;
    item.get(method.as_str().to_lowercase())
}

/// Panics if an answer is not as the document says. What it does not know is no operation: nothing is said of that.
#[track_caller]
pub fn check(method: &Method, path: &str, status: StatusCode, body: &Value) {
    let Some(operation) = operation(method, path) else {
        return;
    };
    // Of what can also be had as a page, the page.
    let has_page = operation["description"]
        .as_str()
        .is_some_and(|about| about.contains("`?format=html`"));
    if has_page && body.is_string() {
        return;
    }
    let error = json!({ "$ref": format!("{PREFIX}ErrorResponse") });
    let answers = operation["responses"].as_object().unwrap();
    let schema = if status.is_success() {
        let exact = answers.get(status.as_str());
        let any = || answers.iter().find(|(status, _)| status.starts_with('2')).unwrap().1;
        let answer = exact.unwrap_or_else(any);
        answer.pointer("/content/application~1json/schema")
    } else if body.get("error").is_some_and(Value::is_object) && body.get("jsonrpc").is_none() {
        Some(&error)
    } else {
        None
    };
    let Some(schema) = schema else { return };
    let faults = faults(schema, body);
    assert!(
        faults.is_empty(),
        "{method} {path}, {status}: not what the OpenAPI document says: {faults:#?}\n{body:#}"
    );
}
