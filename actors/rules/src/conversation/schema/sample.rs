//! The smallest arguments that fit a simple schema: for a form's example, and for a brain that only pretends.
use serde_json::{Map, Number, Value, json};

/// Longest text and list that a sample makes up.
const MAX_LENGTH: u64 = 1000;
const MAX_ITEMS: u64 = 64;
/// Values in one sample; references and lists could ask for any number.
const MAX_VALUES: usize = 500;
const MAX_DEPTH: usize = 16;

/// Fits schemas whose values follow from `const`, `default`, `examples`, `enum` or `type`; `null` where nothing helps.
pub fn sample(schema: &Value) -> Value {
    let mut maker = Maker {
        root: schema,
        left: MAX_VALUES,
    };
    maker.make(schema, MAX_DEPTH)
}

struct Maker<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> Maker<'a> {
    fn make(&mut self, schema: &'a Value, depth: usize) -> Value {
        let Value::Object(keywords) = schema else {
            return Value::Null;
        };
        if depth == 0 || self.left == 0 {
            return Value::Null;
        }
        self.left -= 1;
        if let Some(value) = named(keywords) {
            return value;
        }
        if let Some(target) = keywords.get("$ref").and_then(|reference| self.target(reference)) {
            return self.make(target, depth - 1);
        }
        let kind = kind(keywords);
        if kind.is_none() {
            for alternatives in ["anyOf", "oneOf"] {
                if let Some(first) = keywords.get(alternatives).and_then(|list| list.get(0)) {
                    return self.make(first, depth - 1);
                }
            }
        }
        match kind {
            Some("object") => self.object(keywords, depth),
            Some("array") => {
                let item = keywords.get("items").unwrap_or(&Value::Bool(true));
                let length = whole(keywords, "minItems").min(MAX_ITEMS);
                Value::Array((0..length).map(|_| self.make(item, depth - 1)).collect())
            }
            Some("string") => text(keywords),
            Some("integer") => number(keywords, true),
            Some("number") => number(keywords, false),
            Some("boolean") => Value::Bool(false),
            _ => match keywords.get("allOf").and_then(|list| list.get(0)) {
                Some(first) => self.make(first, depth - 1),
                None => Value::Null,
            },
        }
    }

    /// The required properties, and those that every part of `allOf` requires.
    fn object(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Value {
        let mut members = Map::new();
        let required = keywords.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            let schema = keywords
                .get("properties")
                .and_then(|properties| properties.get(name))
                .or_else(|| keywords.get("additionalProperties"));
            let value = schema.map_or(Value::Null, |schema| self.make(schema, depth - 1));
            members.insert(name.to_owned(), value);
        }
        let parts = keywords.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            if let Value::Object(more) = self.make(part, depth - 1) {
                members.extend(more);
            }
        }
        Value::Object(members)
    }

    fn target(&self, reference: &Value) -> Option<&'a Value> {
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }
}

/// A value that the schema names itself.
fn named(keywords: &Map<String, Value>) -> Option<Value> {
    let first = |list: &str| keywords.get(list).and_then(|list| list.get(0));
    keywords
        .get("const")
        .or_else(|| keywords.get("default"))
        .or_else(|| first("examples"))
        .or_else(|| first("enum"))
        .cloned()
}

fn kind(keywords: &Map<String, Value>) -> Option<&str> {
    match keywords.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        _ => ["properties", "required"]
            .iter()
            .any(|keyword| keywords.contains_key(*keyword))
            .then_some("object"),
    }
}

fn text(keywords: &Map<String, Value>) -> Value {
    let text = match keywords.get("format").and_then(Value::as_str) {
        Some("date") => "2000-01-01",
        Some("date-time") => "2000-01-01T00:00:00Z",
        Some("time") => "00:00:00Z",
        Some("duration") => "PT0S",
        Some("email" | "idn-email") => "a@example.com",
        Some("hostname" | "idn-hostname") => "example.com",
        Some("uri" | "iri") => "https://example.com",
        Some("uuid") => "00000000-0000-0000-0000-000000000000",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        _ => "",
    };
    let missing = whole(keywords, "minLength")
        .min(MAX_LENGTH)
        .saturating_sub(text.len() as u64);
    json!(format!("{text}{}", "a".repeat(usize::try_from(missing).unwrap_or(0))))
}

/// The number nearest to zero in its bounds, as far as whole steps of `multipleOf` show it.
fn number(keywords: &Map<String, Value>, integer: bool) -> Value {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let grain = step.unwrap_or(1.0);
    // Rounded up to a whole step, and one further from a bound that does not count itself.
    let low = [
        bound("minimum").map(|low| up(low, grain, integer, step)),
        bound("exclusiveMinimum").map(|low| {
            let first = up(low, grain, integer, step);
            if first > low { first } else { first + grain }
        }),
    ];
    let high = [
        bound("maximum").map(|high| -up(-high, grain, integer, step)),
        bound("exclusiveMaximum").map(|high| {
            let last = -up(-high, grain, integer, step);
            if last < high { last } else { last - grain }
        }),
    ];
    let mut value = low.into_iter().flatten().fold(0.0, f64::max);
    let high = high.into_iter().flatten().fold(f64::INFINITY, f64::min);
    if value > high {
        value = high;
    }
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return json!(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn up(bound: f64, grain: f64, integer: bool, step: Option<f64>) -> f64 {
    if integer || step.is_some() {
        (bound / grain).ceil() * grain
    } else {
        bound
    }
}

/// A limit that is a whole number, zero without one.
fn whole(keywords: &Map<String, Value>, keyword: &str) -> u64 {
    keywords.get(keyword).and_then(Value::as_u64).unwrap_or_default()
}
