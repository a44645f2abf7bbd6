//! What a function's arguments must look like: JSON Schema, written by a tenant, over arguments written by a model.
//!
//! Neither side is trusted. A schema is read once, when the function is saved, and only one whose cost is known is taken:
//! nothing is fetched, patterns never backtrack, and `weigh` bounds what one value can cost to check.
mod sample;
mod weigh;

pub use sample::sample;

use crate::shape;
use jsonschema::{
    PatternOptions, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::{Map, Value};

/// Bytes, serialised: of a schema, and of the arguments.
pub const MAX_BYTES: usize = 16 * 1024;
/// How deep a schema nests.
pub const MAX_SCHEMA_DEPTH: usize = 16;
/// How deep arguments nest.
pub const MAX_ARGUMENT_DEPTH: usize = 32;
/// What a model is told of its mistakes, at most, and how many characters of each.
const MAX_SENTENCES: usize = 5;
const MAX_SENTENCE: usize = 200;
/// Checks of single values (values × [`weigh::Cost`]) up to which every mistake is named; each may be remembered at once.
const MAX_NAMED: u64 = 20_000;
/// Bytes of one compiled pattern.
const MAX_PATTERN: usize = 128 * 1024;

/// A function's `parameters`, ready to be checked against.
#[derive(Clone, Debug)]
pub struct Parameters {
    validator: std::sync::Arc<Validator>,
    /// What one value can cost to check.
    weight: u64,
}

impl Parameters {
    /// The error names the place and what is wrong with it, for the people who write schemas.
    pub fn parse(schema: &Value) -> Result<Self, String> {
        if deeper(schema, MAX_SCHEMA_DEPTH) {
            return Err(format!("nests deeper than {MAX_SCHEMA_DEPTH} levels"));
        }
        let Value::Object(keywords) = schema else {
            return Err("must be a JSON Schema object".into());
        };
        let length = serde_json::to_string(schema).map_or(usize::MAX, |text| text.len());
        if length > MAX_BYTES {
            return Err(format!("has {length} bytes; {MAX_BYTES} are allowed"));
        }
        match keywords.get("type") {
            Some(Value::String(name)) if name == "object" => {}
            None if keywords.get("properties").is_some_and(Value::is_object) => {}
            Some(other) => return Err(format!("/type: is {}; write \"object\"", short(&other.to_string()))),
            None => return Err("must describe an object: write \"type\": \"object\"".into()),
        }
        let weight = weigh::weigh(schema, MAX_ARGUMENT_DEPTH)?;
        let validator = jsonschema::options()
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(MAX_PATTERN)
                    .dfa_size_limit(MAX_PATTERN),
            )
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            // It would compile what a model wrote.
            .with_format("regex", |_: &str| true)
            .offline()
            .build(&without_id(keywords))
            .map_err(|error| match error.kind() {
                ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
                    let why = "is not a valid value of this keyword; see JSON Schema";
                    sentence(error.instance_path().as_str(), why)
                }
                _ => explain(&error, "the schema"),
            })?;
        Ok(Parameters {
            validator: std::sync::Arc::new(validator),
            weight,
        })
    }

    /// The arguments that a model wrote: the object, or what is wrong with it, in sentences for the model.
    pub fn check(&self, arguments: &str) -> Result<Value, Vec<String>> {
        let value = object(arguments).map_err(|error| vec![sentence("", &error)])?;
        if self.validator.is_valid(&value) {
            return Ok(value);
        }
        if count(&value).saturating_mul(self.weight) > MAX_NAMED {
            return Err(vec!["the arguments do not fit the parameters of this function".into()]);
        }
        let mut sentences: Vec<String> = Vec::new();
        for error in self.validator.iter_errors(&value) {
            let sentence = explain(&error, "the arguments object");
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
            if sentences.len() == MAX_SENTENCES {
                break;
            }
        }
        if sentences.is_empty() {
            sentences.push("the arguments do not fit the parameters of this function".into());
        }
        Err(sentences)
    }
}

/// A JSON object of bounded size and depth; nothing at all counts as an empty one.
fn object(arguments: &str) -> Result<Value, String> {
    if arguments.len() > MAX_BYTES {
        return Err(format!("the arguments have more than {MAX_BYTES} bytes"));
    }
    if arguments.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let value: Value = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments are not valid JSON: {}", shape::not_json(&error)))?;
    if !value.is_object() {
        return Err("the arguments must be a JSON object".into());
    }
    if deeper(&value, MAX_ARGUMENT_DEPTH) {
        return Err(format!("the arguments nest deeper than {MAX_ARGUMENT_DEPTH} levels"));
    }
    Ok(value)
}

/// Every reference is local, so a name of its own changes nothing; one that is a meta-schema's would.
fn without_id(keywords: &Map<String, Value>) -> Value {
    Value::Object(
        keywords
            .iter()
            .filter(|(key, _)| *key != "$id")
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

/// Whether a value has more than `levels` of arrays and objects in each other.
fn deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| deeper(item, levels - 1)),
        Value::Object(members) => levels == 0 || members.values().any(|member| deeper(member, levels - 1)),
        _ => false,
    }
}

/// The values in a value, itself included.
fn count(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// `whole` names the value that has no path.
fn explain(error: &ValidationError<'_>, whole: &str) -> String {
    let (path, fault) = (error.instance_path().as_str(), fault(error.kind()));
    let names_itself = matches!(error.kind(), ValidationErrorKind::Required { .. });
    if path.is_empty() && !names_itself {
        sentence(path, &format!("{whole} {fault}"))
    } else {
        sentence(path, &fault)
    }
}

/// What is wrong, in our words. What the model wrote is not repeated to it, but for names of properties: it may be long, and it
/// may be somebody's words.
fn fault(kind: &ValidationErrorKind) -> String {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::Required { property } => format!("{property} is required"),
        Kind::Type {
            kind: TypeKind::Single(one),
        } => format!("must be of the type \"{one}\""),
        Kind::Type {
            kind: TypeKind::Multiple(several),
        } => {
            let several: Vec<String> = several.iter().map(|one| format!("\"{one}\"")).collect();
            format!("must be of one of the types {}", several.join(", "))
        }
        Kind::Enum { options } => format!("must be one of {options}"),
        Kind::Constant { expected_value } => format!("must be {expected_value}"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let unexpected: Vec<String> = unexpected.iter().map(|name| format!("\"{name}\"")).collect();
            format!(
                "has properties that the schema does not allow: {}",
                unexpected.join(", ")
            )
        }
        Kind::AdditionalItems { .. } | Kind::UnevaluatedItems { .. } => "has more items than the schema allows".into(),
        Kind::Minimum { limit } => format!("must be {limit} or more"),
        Kind::Maximum { limit } => format!("must be {limit} or less"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have {limit} characters or more"),
        Kind::MaxLength { limit } => format!("must have {limit} characters or fewer"),
        Kind::MinItems { limit } => format!("must have {limit} items or more"),
        Kind::MaxItems { limit } => format!("must have {limit} items or fewer"),
        Kind::MinProperties { limit } => format!("must have {limit} properties or more"),
        Kind::MaxProperties { limit } => format!("must have {limit} properties or fewer"),
        Kind::UniqueItems => "must not have the same item twice".into(),
        Kind::Contains => "has no item that `contains` asks for".into(),
        Kind::PropertyNames { .. } => "has a property whose name the schema does not allow".into(),
        Kind::Pattern { pattern } => format!("must match the pattern {pattern}"),
        Kind::Format { format } => format!("must have the format \"{format}\""),
        Kind::AnyOf { .. } => "fits none of the schemas of `anyOf`".into(),
        Kind::OneOfNotValid { .. } => "fits none of the schemas of `oneOf`".into(),
        Kind::OneOfMultipleValid { .. } => "fits more than one of the schemas of `oneOf`".into(),
        Kind::Not { .. } => "fits the schema of `not`".into(),
        _ => "does not fit the schema".into(),
    }
}

fn sentence(path: &str, text: &str) -> String {
    let text = if path.is_empty() {
        text.to_owned()
    } else {
        format!("{}: {text}", short(path))
    };
    let text: String = text
        .chars()
        .map(|char| if char.is_control() { '\u{fffd}' } else { char })
        .collect();
    cut(&text, MAX_SENTENCE)
}

fn short(text: &str) -> String {
    cut(text, 80)
}

fn cut(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        None => text.to_owned(),
        Some(_) => text.chars().take(length - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
