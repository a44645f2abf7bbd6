//! The API's documents, from the routes.
use super::{docs::Documents, openapi};
use crate::dashboard;
use std::sync::LazyLock;

pub static DOCUMENTS: LazyLock<Documents> = LazyLock::new(|| {
    let document = openapi::document();
    Documents {
        text: serde_json::to_string_pretty(&document).unwrap_or_default(),
        page: dashboard::docs::render(&document),
    }
});
