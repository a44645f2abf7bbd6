//! Reading schemas: references and variants resolved, fields as table rows, plausible samples.
use super::html::{breakable, enclose, escape, list, lookup, members, plain, prose, text};
use crate::http::openapi::marks::MEANINGS;
use serde_json::{Value, json};

/// Plausible values by name, or by event and name; others follow from their type.
const SAMPLES: &str = "session.ended.status: completed|session.ended.end_reason: completed
transfer_number: +14155550100|session.failed.status: voicemail|session.failed.end_reason: voicemail
from_number: +14155550100|slug: acme|to_number: +14155550123|phone_number: +14155550123|from_numbers: +14155550100
email: ada@example.com|first_name: Ada|last_name: Lovelace|currency: USD|error_code: timeout
error_message: No answer in time.|event_types: session.*|url: https://example.com/callboard
room_url: https://example.com/room|password: correct horse battery staple|name: Appointment booking
prompt: You help people book an appointment. Ask for a day, then confirm it.|content: Hello! How can I help you?
started_at: 2026-01-15T09:29:18.000Z|window_start: 2026-01-14T09:30:00.000Z|expires_at: 2026-01-16T09:30:00.000Z
purge_after: 2026-01-16T09:30:00.000Z|next_open_at: 2026-01-16T09:30:00.000Z
recording_url: https://example.com/recording|transcript_url: https://example.com/transcript.json|last_status: 503
client_reference_id: order-1042|processor_payment_intent_id: pi_example|threshold_cents: 1000";

/// A schema as one flat object, so that nothing else has to know of `$ref`, `allOf` and "or null".
pub fn resolve(document: &Value, schema: &Value, depth: usize) -> Value {
    let mut flat = Value::Null;
    fold(document, schema, depth, &mut flat);
    flat
}

/// Adds a schema to a flat one. What is said where a schema is used wins over what the schema says of itself.
pub fn fold(document: &Value, schema: &Value, depth: usize, into: &mut Value) {
    if let Some((_, name)) = text(&schema["$ref"]).rsplit_once('/') {
        fold(document, &document["components"]["schemas"][name], depth, into);
    }
    for part in list(&schema["allOf"]) {
        fold(document, part, depth, into);
    }
    fold_variants(document, list(&schema["anyOf"]), depth, into);
    if schema.get("discriminator").is_some() {
        fold_events(document, list(&schema["oneOf"]), depth, into);
    } else {
        fold_variants(document, list(&schema["oneOf"]), depth, into);
    }
    for (key, value) in members(schema) {
        match (key.as_str(), value) {
            ("$ref" | "allOf" | "anyOf" | "oneOf", _) => {}
            ("properties" | "items", _) if depth == 0 => {}
            ("properties", _) => {
                for (name, field) in members(value) {
                    into["properties"][name] = resolve(document, field, depth - 1);
                }
            }
            ("items", _) => into["items"] = resolve(document, value, depth - 1),
            ("type", Value::Array(kinds)) => {
                into["type"] = kinds.iter().find(|kind| *kind != "null").cloned().into();
                into["nullable"] = kinds.iter().any(|kind| kind == "null").into();
            }
            ("enum", _) => {
                let about = |value: &Value| schema[MEANINGS][text(value)].clone();
                into["choices"] = list(value).iter().map(|value| json!([value, about(value)])).collect();
            }
            ("const", _) => into["choices"] = json!([[value, ""]]),
            _ => into[key] = value.clone(),
        }
    }
}

/// What all events share: what each of them tells stands in a section of its own.
fn fold_events(document: &Value, events: &[Value], depth: usize, into: &mut Value) {
    let Some(first) = events.first() else { return };
    fold(document, first, depth, into);
    if into.get("properties").is_some() {
        into["properties"]["type"] = json!({ "type": "string", "description": "One of the event types." });
        into["properties"]["data"] =
            json!({ "type": "object", "description": "Its shape depends on `type`; see Webhook events." });
    }
}

/// Variants are "or null", values to choose from, or the forms of a tagged union.
pub fn fold_variants(document: &Value, variants: &[Value], depth: usize, into: &mut Value) {
    let is_null = |variant: &Value| variant["type"] == "null";
    if variants.iter().any(is_null) {
        into["nullable"] = true.into();
        for variant in variants.iter().filter(|variant| !is_null(variant)) {
            fold(document, variant, depth, into);
        }
        return;
    }
    let (mut choices, mut forms) = (Vec::new(), Vec::new());
    for variant in variants {
        let form = resolve(document, variant, depth);
        for choice in list(&form["choices"]) {
            choices.push(json!([choice[0], form["description"]]));
        }
        if form.get("properties").is_some() {
            forms.push(form);
        }
    }
    if !variants.is_empty() {
        into["choices"] = choices.into();
        into["forms"] = forms.into();
    }
}

/// The rows of a schema's fields; what is nested shows its whole path.
pub fn fields(schema: &Value, prefix: &str, mark: &str) -> String {
    let mut rows = String::new();
    for (name, field) in ordered(schema) {
        let path = format!("{prefix}.{name}");
        let path = path.trim_start_matches('.');
        rows += &row(path, field, if is_required(schema, name) { mark } else { "" });
        rows += &fields(field, path, mark);
    }
    if let Some(items) = schema.get("items") {
        rows += &fields(items, &format!("{prefix}[]"), mark);
    }
    for form in list(&schema["forms"]) {
        // The tag says which form it is, in its own row.
        let (name, about) = (breakable(prefix), prose(text(&form["description"])));
        rows += &format!("<tr><th scope=\"row\"><code>{name}</code></th><td>One form: {about}</td></tr>\n");
        rows += &fields(form, prefix, mark);
    }
    rows
}

pub fn row(name: &str, schema: &Value, mark: &str) -> String {
    let mut facts = limits(schema, "") + &limits(&schema["items"], "each ");
    let default = schema.get("default").filter(|value| !value.is_null());
    // The default of an object with fields stands at its fields.
    if let Some(value) = default.filter(|_| schema.get("properties").is_none()).map(plain) {
        facts += &format!("<li>default <code>{}</code></li>", escape(&value));
    }
    let (name, kind) = (breakable(name), kind(schema));
    let about = enclose("<p>", &prose(text(&schema["description"])), "</p>");
    let facts = enclose("<ul class=\"limits\">", &facts, "</ul>");
    let values = values(schema) + &values(&schema["items"]);
    format!(
        "<tr><th scope=\"row\"><code>{name}</code>{mark}</th>\
        <td><span class=\"type\">{kind}</span>{about}{facts}{values}</td></tr>\n"
    )
}

pub fn kind(schema: &Value) -> String {
    let values = text(&schema["additionalProperties"]["type"]);
    let mut name = match (text(&schema["type"]), text(&schema["format"])) {
        (_, "uuid") => "uuid".into(),
        (_, "date-time") => "timestamp".into(),
        ("array", _) => "array of ".to_owned() + &kind(&schema["items"]),
        ("object", _) if !values.is_empty() => format!("map of {}", escape(values)),
        ("", _) if schema["forms"][0].is_object() => "object".into(),
        ("", _) => "string".into(),
        (name, _) => escape(name),
    };
    if schema["nullable"] == true {
        name += " or null";
    }
    name
}

/// "1 to 200 characters" and the like.
pub fn limits(schema: &Value, each: &str) -> String {
    let mut facts = String::new();
    for (low, high, unit) in [("minLength", "maxLength", " characters"), ("minimum", "maximum", "")] {
        let low = schema.get(low).filter(|low| **low != 0 || unit.is_empty());
        let fact = match (low, schema.get(high)) {
            (Some(low), Some(high)) => format!("{low} to {high}"),
            (None, Some(high)) => format!("at most {high}"),
            (Some(low), None) if *low != 0 => format!("at least {low}"),
            _ => continue,
        };
        facts += &format!("<li>{each}{fact}{unit}</li>");
    }
    facts
}

/// The values to choose from, each with what is said about it.
pub fn values(schema: &Value) -> String {
    let mut items = String::new();
    for choice in list(&schema["choices"]) {
        let (value, about) = (escape(&plain(&choice[0])), prose(text(&choice[1])));
        items += &format!("<li><code>{value}</code> {about}</li>");
    }
    enclose("<ul class=\"values\">", &items, "</ul>")
}

/// An example as highlighted JSON: of an event everything, else only what is required.
pub fn sample(schema: &Value, name: &str, event: &str, depth: usize) -> String {
    let schema = schema["forms"].get(0).unwrap_or(schema);
    if let Some(items) = schema.get("items") {
        return format!("[{}]", sample(items, name, event, depth));
    }
    if schema.get("properties").is_none() {
        let value = likely(name, schema, event);
        let class = if value.is_string() { "text" } else { "other" };
        return format!("<span class=\"{class}\">{}</span>", escape(&value.to_string()));
    }
    let indent = "  ".repeat(depth);
    let mut lines = Vec::new();
    for (name, field) in ordered(schema) {
        if event.is_empty() && !is_required(schema, name) {
            continue;
        }
        let (name, value) = (escape(name), sample(field, name, event, depth + 1));
        lines.push(format!("\n{indent}  <span class=\"name\">\"{name}\"</span>: {value}"));
    }
    format!("{{{}\n{indent}}}", lines.join(","))
}

/// A value that a reader takes for real.
pub fn likely(name: &str, schema: &Value, event: &str) -> Value {
    let of_event = lookup(SAMPLES, &format!("{event}.{name}"));
    if let Some(first) = schema["choices"].get(0) {
        return of_event.map_or_else(|| first[0].clone(), Value::from);
    }
    // Descriptions of open sets begin with a value.
    let described = text(&schema["description"]).strip_prefix('`');
    let described = described.and_then(|rest| rest.split('`').next());
    if let Some(known) = lookup(SAMPLES, name).or(described) {
        return serde_json::from_str(known).unwrap_or_else(|_| known.into());
    }
    match (text(&schema["type"]), text(&schema["format"])) {
        (_, "date-time") => "2026-01-15T09:30:00.000Z".into(),
        ("integer", _) => 42.into(),
        ("number", _) => 0.5.into(),
        ("boolean", _) => true.into(),
        ("object", _) => json!({}),
        ("string", "") if !name.ends_with("_id") => "example".into(),
        _ => {
            // One id per name, so that examples fit each other.
            let sum: u64 = name.bytes().map(u64::from).sum();
            format!("0199a3f0-5d2c-7b41-9e6a-{:012x}", sum * 0x9_e377_9b97).into()
        }
    }
}

/// Fields as their author ordered them: `required` keeps the order that `properties` lost.
pub fn ordered(schema: &Value) -> Vec<(&String, &Value)> {
    let mut all: Vec<_> = members(&schema["properties"]).collect();
    let place = |name| list(&schema["required"]).iter().position(|it| it == name);
    all.sort_by_key(|(name, _)| place(name.as_str()).unwrap_or(usize::MAX));
    all
}

pub fn is_required(schema: &Value, name: &str) -> bool {
    list(&schema["required"]).iter().any(|required| required == name)
}
