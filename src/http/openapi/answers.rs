//! What an operation answers: its success, and the errors that it may have.
use super::{contracts::Contracts, errors};
use crate::http::routes::Route;
use serde_json::{Value, json};

pub(super) fn of(route: &Route, contracts: &mut Contracts) -> Value {
    let mut success = json!({ "description": success(route.status) });
    if let Some(content) = content(route, contracts) {
        success["content"] = content;
    }
    if route.summary.contains("`application/sdp`") {
        let place = json!({ "description": "What to `DELETE` to hang up; its last part is the participant.", "schema": { "type": "string" } });
        success["headers"] = json!({ "Location": place });
    }
    let mut answers = json!({ route.status.to_string(): success });
    if route.summary.contains("; 200 if it is there already") {
        answers["200"] = answers["201"].clone();
        answers["200"]["description"] = json!("It is there already.");
    }
    if route.summary.contains("another one, with 404,") {
        answers["404"] = json!({ "description": "No good link.", "content": texts("text/html") });
    }
    if route.path == "/mcp" {
        answers["202"] = json!({ "description": "Taken, and there is nothing to answer." });
    }
    answers["4XX"] = errors::answer(
        "What the request asks for cannot be done; `code` says why.",
        &errors::of(route),
    );
    if route.path == "/mcp" {
        // Or an error of JSON-RPC's, whose code is a number.
        answers["4XX"]["content"]["application/json"]["schema"] = json!({ "type": "object" });
    }
    answers["default"] = errors::answer("The service cannot do it now, or has failed.", &errors::OURS);
    answers
}

fn success(status: u16) -> &'static str {
    match status {
        201 => "It is made.",
        202 => "It is taken on, and finishes later.",
        204 => "It is done. There is nothing to say.",
        _ => "Success.",
    }
}

fn content(route: &Route, contracts: &mut Contracts) -> Option<Value> {
    if let Some(response) = route.response {
        return Some(json!({ "application/json": { "schema": contracts.given(response) } }));
    }
    let says = |words: &str| route.summary.contains(words);
    if route.path.ends_with("/files/{part}") {
        let text = json!({ "schema": { "type": "string" } });
        return Some(json!({ "application/x-ndjson": text, "text/csv": text }));
    }
    if says("`audio/wav`") || route.path.ends_with("/audio") {
        return Some(json!({ "audio/wav": { "schema": { "type": "string", "format": "binary" } } }));
    }
    if route.path.ends_with("evidence") {
        return Some(json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } }));
    }
    let kind = match route.path {
        _ if says("`text/html`") => "text/html",
        _ if says("`application/sdp`") => "application/sdp",
        _ if route.path.ends_with(".csv") => "text/csv",
        _ if route.path.ends_with("/stream") => "text/event-stream",
        "/metrics" => "text/plain",
        "/v1/_internal/twilio/inbound" => "text/xml",
        // JSON-RPC says what is in it; a list of messages is answered by a list.
        "/mcp" => {
            return Some(
                json!({ "application/json": { "schema": { "type": ["object", "array"], "items": { "type": "object" } } } }),
            );
        }
        "/healthz" | "/readyz" | "/openapi.json" => {
            return Some(json!({ "application/json": { "schema": { "type": "object" } } }));
        }
        _ => return None,
    };
    Some(texts(kind))
}

fn texts(kind: &str) -> Value {
    json!({ kind: { "schema": { "type": "string" } } })
}
