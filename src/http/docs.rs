//! The API's documents, served from the binary.
use actix_web::{HttpRequest, HttpResponse};
use std::sync::LazyLock;

/// What both are made from: given to the server by whoever knows the routes, which name these two.
pub struct Documents {
    /// The OpenAPI document.
    pub text: String,
    /// The same, as a page.
    pub page: String,
}

/// They are made when somebody asks first.
pub type Lazy = &'static LazyLock<Documents>;

fn of(request: &HttpRequest) -> &'static Documents {
    let documents = request.app_data::<Lazy>().copied();
    documents.unwrap_or_else(|| unreachable!("every app is built with its documents"))
}

/// GET /openapi.json
pub async fn openapi(request: HttpRequest) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(of(&request).text.as_str())
}

/// GET /docs
pub async fn page(request: HttpRequest) -> HttpResponse {
    crate::dashboard::html(&of(&request).page)
}
