//! The other end: where it is, how we ask it, and what is made of its refusals.
use super::protocol::{Request, error_message};
pub use crate::provider_http::{ApiKey, Limits, Patience};
use crate::{
    brain::Failure,
    provider_http::{self, with_cause},
};
use entities::boxed;
use reqwest::{RequestBuilder, Response, StatusCode, header::RETRY_AFTER};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::time::timeout;
use url::Url;

/// Before the second and last try, unless the provider names another pause.
const PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// Bytes of one answer.
pub const MAX_BODY: usize = 2 * 1024 * 1024;

/// An OpenAI-compatible service, and the model that it is asked for. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The base, as `https://host/v1`.
    pub url: Arc<str>,
    pub api_key: Option<ApiKey>,
    pub model: Arc<str>,
    pub http: reqwest::Client,
    pub limits: Limits,
    endpoint: Url,
}

impl Provider {
    /// Fails, in words for an operator, on an address or a key that cannot be used. rustls must have its provider by then.
    pub fn new(url: &str, api_key: Option<&str>, model: &str) -> Result<Self, String> {
        Self::of(url, &["chat", "completions"], api_key, model)
    }

    /// For another of its endpoints, in segments after the base.
    pub fn of(url: &str, endpoint_path: &[&str], api_key: Option<&str>, model: &str) -> Result<Self, String> {
        let mut endpoint = provider_http::base_url(url, "https://host/v1")?;
        if let Ok(mut path) = endpoint.path_segments_mut() {
            path.pop_if_empty().extend(endpoint_path);
        }
        let api_key = ApiKey::of(api_key)?;
        if model.trim().is_empty() {
            return Err("the model has no name".into());
        }
        let http = provider_http::client(|builder| builder)?;
        Ok(Provider {
            url: url.into(),
            api_key,
            model: model.trim().into(),
            http,
            limits: Limits::default(),
            endpoint,
        })
    }

    /// The same, asked for another of its models.
    pub fn for_model(self, model: &str) -> Self {
        Provider {
            model: model.into(),
            ..self
        }
    }

    /// Is it there, and does it take the key? It is asked for its models; one that has no such list is there too.
    pub(super) async fn reach(&self) -> Result<(), Failure> {
        let mut models = self.endpoint.clone();
        if let Ok(mut path) = models.path_segments_mut() {
            // Of `chat/completions`.
            path.pop().pop().push("models");
        }
        let mut patience = Patience::new(self.limits);
        let refusal = match self.ask(|| self.http.get(models.clone()), &mut patience).await {
            Ok(list) => {
                // Read, so that the connection is kept for the first turn; what it says does not matter, and nobody waits long.
                let _ = timeout(Duration::from_secs(1), read(list, MAX_BODY, &mut patience)).await;
                return Ok(());
            }
            Err(refusal) => refusal,
        };
        let words = refusal.words.to_ascii_lowercase();
        let is_away = match refusal.status.map(|status| status.as_u16()) {
            // A key may be good for talking and not for lists.
            Some(401 | 403) => !["scope", "permission"].iter().any(|word| words.contains(word)),
            Some(501) => false,
            Some(500..=599) | None => true,
            Some(_) => false,
        };
        if is_away {
            Err(self.failure(&refusal.words))
        } else {
            Ok(())
        }
    }

    /// Asks, a second time if the first was bad luck. What comes back has a 2xx.
    pub(super) async fn send(&self, request: &Request<'_>, patience: &mut Patience) -> Result<Response, Refusal> {
        self.post(|post| post.json(request), patience).await
    }

    /// The same with any body: `fill` puts it in, for each try.
    pub async fn post(
        &self,
        fill: impl Fn(RequestBuilder) -> RequestBuilder,
        patience: &mut Patience,
    ) -> Result<Response, Refusal> {
        self.ask(|| fill(self.http.post(self.endpoint.clone())), patience).await
    }

    async fn ask(&self, request: impl Fn() -> RequestBuilder, patience: &mut Patience) -> Result<Response, Refusal> {
        let refusal = match self.once(request(), patience).await {
            Err(refusal) if refusal.try_again => refusal,
            decided => return decided,
        };
        // What stands behind never comes: this is a pause. It counts as waiting.
        let _ = patience
            .wait(pause(refusal.retry_after.as_deref()), pending::<()>())
            .await;
        if patience.is_over() {
            return Err(refusal);
        }
        self.once(request(), patience).await
    }

    async fn once(&self, mut request: RequestBuilder, patience: &mut Patience) -> Result<Response, Refusal> {
        if let Some(key) = &self.api_key {
            request = request.bearer_auth(key.expose());
        }
        let Some(sent) = patience.wait(patience.limits.first_byte, request.send()).await else {
            return Err(Refusal::of("it did not answer in time"));
        };
        let response = sent.map_err(|error| Refusal {
            try_again: !error.is_timeout() && (error.is_connect() || error.is_request()),
            ..Refusal::of(&format!("it cannot be reached: {}", with_cause(&error.without_url())))
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        Err(Refusal {
            status: Some(status),
            try_again: matches!(status.as_u16(), 408 | 429 | 500..=599),
            retry_after: retry_after.map(str::to_owned),
            words: refused(status, &said(response, patience).await),
        })
    }

    /// A failure in words that may be logged and shown: one line, bounded, without the key.
    pub fn failure(&self, words: &str) -> Failure {
        let key = self.api_key.as_ref().map(ApiKey::expose);
        Failure::Provider(provider_http::loggable(words, key))
    }
}

/// Why there is no answer to a request.
#[derive(Debug)]
pub struct Refusal {
    pub status: Option<StatusCode>,
    pub words: String,
    try_again: bool,
    retry_after: Option<String>,
}

impl Refusal {
    pub fn of(words: &str) -> Self {
        Refusal {
            status: None,
            words: words.to_owned(),
            try_again: false,
            retry_after: None,
        }
    }
}

/// A whole body. Fails in words for an operator.
#[boxed]
pub async fn read(mut response: Response, limit: usize, patience: &mut Patience) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    loop {
        let piece = patience.wait(patience.limits.silence, response.chunk()).await;
        match piece.ok_or("it stopped in the middle of its answer")? {
            Ok(Some(piece)) if body.len() + piece.len() > limit => return Err("its answer is too large".into()),
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => return Ok(body),
            Err(error) => return Err(format!("its answer was cut off: {}", with_cause(&error.without_url()))),
        }
    }
}

/// What a provider says of a refusal; nothing where that cannot be read.
async fn said(response: Response, patience: &mut Patience) -> String {
    let body = read(response, 64 * 1024, patience).await.unwrap_or_default();
    match serde_json::from_slice(&body) {
        Ok(error) => error_message(&error).unwrap_or_else(|| error.to_string()),
        Err(_) => String::from_utf8_lossy(&body).into_owned(),
    }
}

fn refused(status: StatusCode, said: &str) -> String {
    let advice = match status.as_u16() {
        300..=399 => "; redirects are not followed, set its final address",
        401 | 403 => "; check the API key",
        404 => "; check the address and the name of the model",
        429 => "; its rate limit or the credit there is used up",
        _ => "",
    };
    // The advice first: what a provider says may be long.
    let colon = if said.trim().is_empty() { "" } else { ": " };
    format!("it answered {}{advice}{colon}{said}", status.as_u16())
}

fn pause(retry_after: Option<&str>) -> Duration {
    let seconds = retry_after.and_then(|text| text.trim().parse().ok());
    seconds.map_or(PAUSE, |seconds| Duration::from_secs(seconds).min(MAX_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_is_what_the_provider_asks_for_within_reason() {
        for (asked, expected) in [
            (None, 200),
            (Some("0"), 0),
            (Some(" 1 "), 1000),
            (Some("2"), 2000),
            (Some("3600"), 2000),
            (Some("Tue, 02 Mar 2027 13:02:00 GMT"), 200),
            (Some("-1"), 200),
        ] {
            assert_eq!(pause(asked), Duration::from_millis(expected), "{asked:?}");
        }
    }
}
