//! Examples of what the API takes and says, all in one file: those of requests are bodies that the service accepts. The OpenAPI
//! document shows them, and where a body is bad they stand in for what is wrong with it, so that the rest can be read.
use actix_web::HttpRequest;
use serde_json::{Map, Value};
use std::sync::LazyLock;

static ALL: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("examples.json"))
        .unwrap_or_else(|_| unreachable!("a test reads every part of it"))
});

/// The body of a request, by method and path: JSON, or a text.
pub fn request(method: &str, path: &str) -> Option<&'static Value> {
    ALL["requests"].get(format!("{method} {path}"))
}

/// Texts that are answered, by method and path, and by kind where there are several.
pub fn answer(method: &str, path: &str, kind: &str) -> Option<&'static Value> {
    let of_kind = ALL["answers"].get(format!("{method} {path} {kind}"));
    of_kind.or_else(|| ALL["answers"].get(format!("{method} {path}")))
}

/// Values of fields: by `Schema.field`, by field, or by schema.
pub fn values() -> Map<String, Value> {
    ALL["values"].as_object().cloned().unwrap_or_default()
}

/// A body that this route can read.
pub fn good_body(of: &HttpRequest) -> Option<&'static Value> {
    request(of.method().as_str(), &of.match_pattern()?)
}
