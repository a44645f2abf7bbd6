//! The API's documents, served from the binary.
use super::openapi;
use actix_web::HttpResponse;
use std::sync::LazyLock;

static DOCUMENT: LazyLock<serde_json::Value> = LazyLock::new(openapi::document);
static TEXT: LazyLock<String> = LazyLock::new(|| serde_json::to_string_pretty(&*DOCUMENT).unwrap_or_default());
static PAGE: LazyLock<String> = LazyLock::new(|| crate::dashboard::docs::render(&DOCUMENT));

/// GET /openapi.json
pub async fn openapi() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(TEXT.as_str())
}

/// GET /docs
pub async fn page() -> HttpResponse {
    crate::dashboard::html(&PAGE)
}
