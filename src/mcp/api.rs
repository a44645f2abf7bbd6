//! Requests of the public API, as tools make them, and whoever carries them there.
use futures_util::future::LocalBoxFuture;
use serde_json::Value;

/// Bytes of an answer that are read, such as a page of a list.
pub const MAX_ANSWER: usize = 2 * 1024 * 1024;
/// The same of a long call's whole transcript, with the answers of its functions, or its timeline. Few are read at once.
pub const MAX_LONG_ANSWER: usize = 16 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    /// With no body.
    Post,
}

impl Method {
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiRequest {
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// Bytes of the answer that are wanted; the rest is not read.
    pub most: usize,
}

impl ApiRequest {
    pub fn get(target: impl Into<String>) -> Self {
        ApiRequest {
            method: Method::Get,
            target: target.into(),
            most: MAX_ANSWER,
        }
    }
}

/// Who the caller's key is.
pub fn me() -> ApiRequest {
    ApiRequest::get("/v1/me")
}

#[derive(Clone, Debug, Default)]
pub struct ApiAnswer {
    pub status: u16,
    /// Seconds, if the answer names them.
    pub retry_after: Option<u64>,
    pub body: Vec<u8>,
    /// There was more than [`ApiRequest::most`].
    pub is_cut: bool,
}

impl ApiAnswer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// Asks the API with the caller's key. An error says in words why there is no answer.
pub trait Api {
    fn send<'a>(&'a self, request: &'a ApiRequest) -> LocalBoxFuture<'a, Result<ApiAnswer, String>>;
}
