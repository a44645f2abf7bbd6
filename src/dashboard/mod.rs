//! The dashboard's pages, compiled into the binary.
pub mod console;
pub mod docs;
pub mod room;

use crate::http::error::{ApiError, ApiResult};
use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY},
    web::Path,
};

/// No inline script or style, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'";

pub fn html(page: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .content_type("text/html; charset=utf-8")
        .body(page)
}

/// GET /
pub async fn home() -> HttpResponse {
    html(include_str!("keys.html"))
}

/// GET /login
pub async fn login() -> HttpResponse {
    html(include_str!("login.html"))
}

/// GET /setup
pub async fn setup() -> HttpResponse {
    html(include_str!("setup.html"))
}

/// GET /join
pub async fn join() -> HttpResponse {
    html(include_str!("join.html"))
}

/// GET /reset
pub async fn reset() -> HttpResponse {
    html(include_str!("reset.html"))
}

/// GET /assets/{name}
pub async fn asset(name: Path<String>) -> ApiResult<HttpResponse> {
    let (kind, text) = match name.as_str() {
        "style.css" => ("text/css", include_str!("style.css")),
        "docs.css" => ("text/css", include_str!("docs.css")),
        "account.js" => ("text/javascript", include_str!("account.js")),
        "common.js" => ("text/javascript", include_str!("common.js")),
        "join.js" => ("text/javascript", include_str!("join.js")),
        "reset.js" => ("text/javascript", include_str!("reset.js")),
        "setup.js" => ("text/javascript", include_str!("setup.js")),
        "login.js" => ("text/javascript", include_str!("login.js")),
        "keys.js" => ("text/javascript", include_str!("keys.js")),
        "room.css" => ("text/css", include_str!("room/room.css")),
        "room.js" => ("text/javascript", include_str!("room/room.js")),
        "room-line.js" => ("text/javascript", include_str!("room/room-line.js")),
        "room-parts.js" => ("text/javascript", include_str!("room/room-parts.js")),
        "room-sound.js" => ("text/javascript", include_str!("room/room-sound.js")),
        "room-words.js" => ("text/javascript", include_str!("room/room-words.js")),
        _ => return Err(ApiError::not_found("no such asset")),
    };
    // Asked for again after an update of the binary.
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-cache"))
        .content_type(format!("{kind}; charset=utf-8"))
        .body(text))
}
