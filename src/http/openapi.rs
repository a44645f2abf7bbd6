//! The OpenAPI 3.1 document, made from the list of routes and the catalogue of events: neither can be forgotten in it.
pub mod marks;
mod names;
mod shape;

use super::{
    caller::Access,
    routes::{self, Route},
    views::Envelope,
};
use marks::SCOPE;
use rules::event::CATALOGUE;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();

    let mut paths = Map::new();
    for route in routes::all().iter().filter(|route| !is_page(route)) {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_lowercase()] = operation(route, &mut generator);
    }
    let (mut webhooks, mut told) = (Map::new(), Map::new());
    let envelope = generator.subschema_for::<Envelope>();
    for event in CATALOGUE {
        let data = (event.schema)().to_value();
        let name = data["title"].as_str().unwrap_or(event.name).to_owned();
        let reference = json!({ "$ref": format!("#/components/schemas/{name}") });
        let schema =
            json!({ "allOf": [envelope], "properties": { "type": { "const": event.name }, "data": reference } });
        told.insert(name.clone(), data);
        let body = json!({ "content": { "application/json": { "schema": schema } } });
        let answers = json!({ "2XX": { "description": "Received. Anything else is tried again or refused; see docs/webhooks.md." } });
        webhooks.insert(
            event.name.into(),
            json!({ "post": {
                "operationId": format!("on{name}"), "summary": event.when.trim(), "security": [], "requestBody": body, "responses": answers,
            } }),
        );
    }
    let mut schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    schemas.extend(told);
    schemas.insert("Error".into(), error_schema());
    let mut document = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "/", "description": "This server." }],
        "tags": TAGS.iter().map(|(name, about)| json!({ "name": name, "description": about })).collect::<Vec<_>>(),
        "info": {
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "title": "Callboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Voice-agent calls, rooms in browsers, campaigns and signed webhooks. Every error has one shape; lists are read with cursors; every POST with an API key takes an Idempotency-Key. A request is answered within 30 seconds of its body, if need be with 503 `unavailable`: its outcome is then unknown, so repeat it with the same Idempotency-Key. Previews, simulations and tests take as long as the service they ask.",
        },
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer", "description": "An API key: vk_live_… or vk_test_…" },
                "session": { "type": "apiKey", "in": "cookie", "name": "__Host-callboard", "description": "A dashboard session." },
            },
        },
    });
    shape::enumerate(&mut document);
    names::rename(&mut document);
    document
}

/// In the order in which a newcomer needs them.
const TAGS: &[(&str, &str)] = &[
    (
        "agents",
        "Who speaks: instructions, a voice and what decides the words.",
    ),
    (
        "campaigns",
        "A list of contacts that an agent works through, with pacing and retries.",
    ),
    ("sessions", "One call each, placed by you or by a campaign."),
    (
        "rooms",
        "Links by which a person talks with an agent in a browser, and what stands behind them.",
    ),
    ("webhook_endpoints", "Your receivers of signed events."),
    ("events", "What happened, kept so that you can read it again."),
    ("event_types", "The catalogue of events."),
    ("concurrency", "How many calls run at once."),
    ("me", "The key you are using."),
    ("_sandbox", "What the outside does, simulated with a test key."),
    ("answers", "What people answered to the questions of agents."),
    ("contacts", "People in campaigns, found wherever they are."),
    ("credits", "What is left to spend, every movement of it, and top-ups."),
    ("dnc", "Whom nobody may call or write to."),
    ("email_messages", "E-mails to people."),
    (
        "functions",
        "What agents may call: your server, and tools of MCP servers.",
    ),
    ("imports", "Lists that are read in from files."),
    ("numbers", "Numbers that calls come from, and that agents answer."),
    ("questions", "What agents ask."),
    ("recordings", "What was said, as sound."),
    ("sip_trunks", "The ways to carriers and PBXs."),
    ("sms_messages", "SMS to people, and from them."),
    ("verified_numbers", "Numbers that test keys may call."),
    ("voices", "Built-in voices, and clones."),
    ("mcp", "For assistants: the Model Context Protocol over HTTP."),
    (
        "dashboard",
        "What the dashboard calls, in the browser that signed in. It changes as the dashboard does.",
    ),
    ("system", "For whoever operates the server."),
];

/// Pages of the dashboard are no operations; what stands behind a link that is its own proof is one.
fn is_page(route: &Route) -> bool {
    let is_open = |prefix: &&str| route.path.starts_with(*prefix);
    !["/v1/", "/r/", "/u/"].iter().any(is_open)
        && !matches!(
            route.path,
            "/healthz" | "/readyz" | "/metrics" | "/openapi.json" | "/mcp"
        )
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "summary": first_sentence(route.summary),
        "description": route.summary,
        "operationId": names::operation(route.method.as_str(), route.path),
        "tags": [tag(route.path)],
        "parameters": parameters(route),
    });
    operation["security"] = match route.access {
        Access::Public => json!([]),
        Access::AnyKey | Access::Relayed => json!([{ "key": [] }]),
        Access::Needs(_) | Access::NeedsFresh(_) => json!([{ "key": [] }]),
        Access::NeedsOrLink(_) => json!([{ "key": [] }, {}]),
        Access::SignedIn | Access::Member(_) | Access::Fresh(_) => json!([{ "session": [] }]),
    };
    if let Access::Needs(scope) | Access::NeedsFresh(scope) | Access::NeedsOrLink(scope) = route.access {
        operation[SCOPE] = json!(scope);
    }
    if let Some(request) = route.request {
        let schema = request(generator);
        // A body without a required field may be left out.
        let name = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|path| path.rsplit('/').next());
        let named = name.and_then(|name| generator.definitions().get(name));
        let required = named.is_none_or(|schema| schema.get("required").is_some());
        operation["requestBody"] =
            json!({ "required": required, "content": { "application/json": { "schema": schema } } });
    }
    if route.summary.contains("`Content-Type: text/csv`") {
        operation["requestBody"] =
            json!({ "required": true, "content": { "text/csv": { "schema": { "type": "string" } } } });
    }
    if route.summary.contains("`multipart/form-data`")
        && let Some(content) = operation["requestBody"]["content"].as_object_mut()
        && let Some(schema) = content.remove("application/json")
    {
        content.insert("multipart/form-data".into(), schema);
    }
    let mut success = json!({ "description": "Success." });
    if route.summary.contains("`audio/wav`") {
        success["content"] = json!({ "audio/wav": { "schema": { "type": "string", "format": "binary" } } });
    }
    let page = json!({ "text/html": { "schema": { "type": "string" } } });
    if route.summary.contains("`text/html`") {
        success["content"] = page.clone();
    }
    if route.summary.contains("`application/sdp`") {
        let sdp = json!({ "application/sdp": { "schema": { "type": "string" } } });
        let place = json!({ "description": "What to `DELETE` to hang up; its last part is the participant.", "schema": { "type": "string" } });
        operation["requestBody"] = json!({ "required": true, "content": sdp });
        success["content"] = sdp;
        success["headers"] = json!({ "Location": place });
    }
    if route.path.ends_with(".csv") {
        success["content"] = json!({ "text/csv": { "schema": { "type": "string" } } });
    }
    if route.path == "/mcp" {
        // JSON-RPC says what is in them.
        let message = json!({ "application/json": { "schema": { "type": "object" } } });
        operation["requestBody"] = json!({ "required": true, "content": message });
        success["content"] = message;
    }
    if let Some(response) = route.response {
        success["content"] = json!({ "application/json": { "schema": response(generator) } });
    }
    let error = json!({ "description": "An error.", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } } });
    operation["responses"] = json!({ route.status.to_string(): success, "4XX": error, "default": error });
    if route.path == "/mcp" {
        operation["responses"]["202"] = json!({ "description": "Taken, and there is nothing to answer." });
    }
    if route.summary.contains("another one, with 404,") {
        operation["responses"]["404"] = json!({ "description": "No good link.", "content": page });
    }
    operation
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

fn parameters(route: &Route) -> Vec<Value> {
    let in_path = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut all: Vec<Value> = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if route.path.starts_with("/r/") {
        let about = "The value in `room_url`.";
        all.push(json!({ "name": "sig", "in": "query", "required": true, "schema": { "type": "string" }, "description": about }));
    }
    let is_list = route.summary.starts_with("List ");
    let query = |name: &str, schema: Value| json!({ "name": name, "in": "query", "schema": schema });
    // A summary that says `?name=` names a parameter.
    let said = route
        .summary
        .split('`')
        .filter_map(|part| part.strip_prefix('?')?.strip_suffix('='));
    all.extend(said.map(|name| query(name, json!({ "type": "string" }))));
    if is_list {
        all.push(query(
            "limit",
            json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 50 }),
        ));
        all.push(query("cursor", json!({ "type": "string" })));
        all.push(query("order", json!({ "enum": ["desc", "asc"], "default": "desc" })));
        all.push(query(
            "created_after",
            json!({ "type": "string", "format": "date-time" }),
        ));
        all.push(query(
            "created_before",
            json!({ "type": "string", "format": "date-time" }),
        ));
        // The summary names what else narrows.
        for name in route.summary.split('`').skip(1).step_by(2) {
            all.push(query(name, json!({ "type": "string" })));
        }
    }
    if route.method == actix_web::http::Method::POST && matches!(route.access, Access::Needs(_) | Access::NeedsFresh(_))
    {
        let schema = json!({ "type": "string", "maxLength": 255 });
        all.push(json!({ "name": "Idempotency-Key", "in": "header", "schema": schema, "description": "A request repeated with the same key takes effect only once; keys are kept for 24 hours." }));
    }
    all
}

/// By status.
const CODES: &str = "400 invalid_json, invalid_request, invalid_signature; 401 unauthenticated; 402 insufficient_credits; \
    403 forbidden, number_not_verified, plan_limit; 404 not_found; 405 method_not_allowed; 408 request_timeout; \
    409 invalid_state, in_use, already_exists, recipient_on_dnc, outside_calling_hours, daily_cap_reached, idempotency_in_progress; \
    413 payload_too_large; 415 unsupported_media_type; 422 validation_failed, idempotency_key_reused; \
    429 rate_limited, concurrency_full; 500 internal_error; 501 not_configured; 503 unavailable.";

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": { "type": "string", "description": CODES },
                "message": { "type": "string", "description": "What is wrong and what to do." },
                "param": { "type": "string", "description": "The field that is wrong." },
                "request_id": { "type": "string" },
            },
        } },
    })
}
