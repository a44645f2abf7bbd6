//! The OpenAPI 3.1 document, made from the list of routes and the catalogue of events: neither can be forgotten in it.
mod answers;
mod contracts;
mod errors;
mod events;
mod examples;
pub mod marks;
mod names;
mod parameters;
mod partial;
mod sample;
mod schema_names;
mod shape;
mod tags;

pub use events::Envelope;

use super::{
    caller::Access,
    routes::{self, Route},
};
use contracts::Contracts;
use marks::SCOPE;
use rules::consent::evidence;
use serde_json::{Map, Value, json};

/// Who is asked about this API: not whoever wrote the service, but whoever runs it.
const CONTACT: &str = "The operator of this server";
const ABOUT: &str = "Voice-agent calls, rooms in browsers, campaigns and signed webhooks. Every error has one shape; lists are read with cursors; every POST with an API key takes an Idempotency-Key. A request is answered within 30 seconds of its body, if need be with 503 `unavailable`: its outcome is then unknown, so repeat it with the same Idempotency-Key. Previews, simulations and tests take as long as the service they ask.";

pub fn document() -> Value {
    let mut contracts = Contracts::new();
    let routes = routes::all();
    let routes = || routes.iter().filter(|route| !is_page(route));
    let mut paths = Map::new();
    for route in routes() {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_lowercase()] = operation(route, &mut contracts);
    }
    let (webhooks, told) = events::webhooks(&mut contracts);
    // Behind everything else, so that they name nothing: what they choose from is called by whose it is.
    for route in routes() {
        let parameters = parameters::parameters(route, &mut contracts);
        paths[route.path][route.method.as_str().to_lowercase()]["parameters"] = parameters.into();
    }
    let (mut asked, mut given) = contracts.take();
    for (name, schema) in told.into_iter().chain(errors::schemas()) {
        asked.insert(name.clone(), schema.clone());
        given.insert(name, schema);
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "/", "description": "This server." }],
        "tags": tags::all(),
        "info": {
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "contact": { "name": CONTACT },
            "title": "Callboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
        },
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "schemas": asked,
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer", "description": "An API key: vk_live_… or vk_test_…" },
                "session": { "type": "apiKey", "in": "cookie", "name": "__Host-callboard", "description": "A dashboard session." },
            },
        },
    });
    shape::enumerate(&mut document);
    given.values_mut().for_each(shape::enumerate);
    let mut renamed = schema_names::renamings(&document);
    for name in contracts::part(&mut document, given) {
        let new = renamed.get(&name).unwrap_or(&name).clone();
        renamed.insert(
            format!("{name}{}", contracts::OUTPUT),
            format!("{new}{}", contracts::OUTPUT),
        );
    }
    schema_names::rename(&mut document, &renamed);
    partial::part(&mut document);
    examples::add(&mut document);
    document
}

/// Pages of the dashboard are no operations; what stands behind a link that is its own proof is one.
fn is_page(route: &Route) -> bool {
    let is_open = |prefix: &&str| route.path.starts_with(*prefix);
    !["/v1/", "/r/", "/u/"].iter().any(is_open)
        && !matches!(
            route.path,
            "/healthz" | "/readyz" | "/metrics" | "/openapi.json" | "/mcp"
        )
}

fn operation(route: &Route, contracts: &mut Contracts) -> Value {
    let mut operation = json!({
        "summary": first_sentence(route.summary),
        "description": route.summary,
        "operationId": names::operation(route.method.as_str(), route.path),
        "tags": [tag(route.path)],
        // In its place in the document; filled when all schemas have their names.
        "parameters": [],
    });
    operation["security"] = match route.access {
        Access::Public => json!([]),
        Access::AnyKey | Access::Relayed | Access::Needs(_) | Access::NeedsFresh(_) => json!([{ "key": [] }]),
        Access::NeedsOrLink(_) => json!([{ "key": [] }, {}]),
        Access::SignedIn | Access::Member(_) | Access::Fresh(_) => json!([{ "session": [] }]),
    };
    if let Access::Needs(scope) | Access::NeedsFresh(scope) | Access::NeedsOrLink(scope) = route.access {
        operation[SCOPE] = json!(scope);
    }
    if let Some(body) = body(route, contracts) {
        operation["requestBody"] = body;
    }
    operation["responses"] = answers::of(route, contracts);
    operation
}

/// Requests that are whole without a body.
const MAY_LACK_BODY: [&str; 5] = ["/duplicate", "/transfer", "/replay", "/rotate_secret", "/revoke"];

fn body(route: &Route, contracts: &mut Contracts) -> Option<Value> {
    let texts = |kind: &str| json!({ "required": true, "content": { kind: { "schema": { "type": "string" } } } });
    if route.summary.contains("`Content-Type: text/csv`") {
        return Some(texts("text/csv"));
    }
    if route.summary.contains("`application/sdp`") {
        return Some(texts("application/sdp"));
    }
    if route.method == "PUT" && route.path.ends_with("/evidence") {
        let schema = |kind: &str| match kind.starts_with("text/") {
            true => json!({ "type": "string" }),
            false => json!({ "type": "string", "format": "binary" }),
        };
        let content: Map<String, Value> = evidence::KINDS
            .iter()
            .map(|kind| {
                (
                    kind.content_type.to_owned(),
                    json!({ "schema": schema(kind.content_type) }),
                )
            })
            .collect();
        return Some(json!({ "required": true, "content": content }));
    }
    if route.path == "/mcp" {
        // JSON-RPC says what is in it.
        let message =
            json!({ "application/json": { "schema": { "type": ["object", "array"], "items": { "type": "object" } } } });
        return Some(json!({ "required": true, "content": message }));
    }
    let schema = contracts.asked(route.request?);
    let kind = match route.summary.contains("`multipart/form-data`") {
        true => "multipart/form-data",
        false => "application/json",
    };
    Some(
        json!({ "required": !MAY_LACK_BODY.iter().any(|end| route.path.ends_with(end)), "content": { kind: { "schema": schema } } }),
    )
}

/// Without its full stop.
fn first_sentence(text: &str) -> &str {
    let end = text.find(". ").unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

fn tag(path: &str) -> &str {
    let mut parts = path.trim_start_matches('/').split('/');
    match (parts.next(), parts.next()) {
        (Some("v1"), Some("_internal")) => "dashboard",
        (Some("v1"), Some("answers.csv")) => "answers",
        (Some("v1"), Some(resource)) => resource,
        (Some("r"), _) => "rooms",
        (Some("u"), _) => "email_messages",
        (Some("mcp"), _) => "mcp",
        _ => "system",
    }
}
