//! What the services that numbers are looked up at have in common: one POST of JSON with a bearer token, and an answer of bounded size
//! within a bounded time.
use crate::provider_http::{self, ApiKey, with_cause};
use reqwest::{Client, StatusCode, header::AUTHORIZATION};
use serde::Serialize;
use std::{fmt, time::Duration};
use url::Url;

/// Numbers that are asked about at once, at most.
pub const AT_ONCE: usize = 250;
/// From the request to the end of the answer.
pub const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of an answer about [`AT_ONCE`] numbers, with room to spare.
const MAX_BODY: usize = 256 * 1024;
/// Bytes of an error's body that are told.
const MAX_SAID: usize = 200;

/// Why there is no answer, in words for the operator's log: one line, bounded, without the key.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

/// One such service.
pub(crate) struct LookUp {
    http: Client,
    url: Url,
    key: Option<ApiKey>,
}

impl fmt::Debug for LookUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LookUp({} ***)", self.url)
    }
}

impl LookUp {
    /// Fails, in words for an operator, on an address or a key that cannot be used. rustls must have its provider by then.
    pub fn new(url: &str, key: Option<&str>, (example, timeout): (&str, Duration)) -> Result<Self, String> {
        let url = provider_http::base_url(url, example)?;
        let key = ApiKey::of(key)?;
        let http = provider_http::client(|builder| builder.timeout(timeout))?;
        Ok(LookUp { http, url, key })
    }

    /// What it answers, whatever its status.
    pub async fn post(&self, asked: &impl Serialize) -> Result<(StatusCode, Vec<u8>), String> {
        let mut request = self.http.post(self.url.clone()).json(asked);
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.header_with("Bearer"));
        }
        let broken = |error: reqwest::Error| with_cause(&error.without_url());
        let mut response = request.send().await.map_err(broken)?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(broken)? {
            if body.len() + piece.len() > MAX_BODY {
                return Err("its answer is too large".into());
            }
            body.extend_from_slice(&piece);
        }
        Ok((status, body))
    }

    pub fn failure(&self, words: &str) -> Failure {
        Failure(provider_http::loggable(words, self.key.as_ref().map(ApiKey::expose)))
    }
}

/// Only 200 is an answer. `url`, `key`: the settings that may be wrong.
pub(crate) fn check(status: StatusCode, body: &[u8], (url, key): (&str, &str)) -> Result<(), String> {
    if status == StatusCode::OK {
        return Ok(());
    }
    let advice = match status.as_u16() {
        300..=399 => format!("; redirects are not followed, check {url}"),
        401 | 403 => format!("; check {key}"),
        404 => format!("; check {url}"),
        _ => String::new(),
    };
    let said = String::from_utf8_lossy(body.get(..body.len().min(MAX_SAID)).unwrap_or_default()).into_owned();
    Err(format!("it answered {}{advice}: {said}", status.as_u16()))
}
