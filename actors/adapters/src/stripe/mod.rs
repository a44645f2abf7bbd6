//! Stripe: opens payment pages (Checkout) and is asked what became of them. What it tells by itself is in [`notice`].
//!
//! A page is opened with the top-up's id as `Idempotency-Key`: asked twice, Stripe opens one.
pub mod notice;
pub mod signature;

use crate::provider_http::{self, with_cause};
use entities::{boxed, topup::Model as Topup};
use notice::{METADATA, Story};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::Value;
use std::{fmt, sync::Arc, time::Duration};
use url::{Host, Url, form_urlencoded};
use zeroize::Zeroizing;

/// The version of Stripe's API that requests and answers here are written for.
const VERSION: &str = "2025-03-31.basil";
/// For one request, from the connection to the answer's last byte.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of one answer.
const MAX_BODY: usize = 256 * 1024;
const MAX_URL: usize = 4096;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stripe {
    http: reqwest::Client,
    sessions: Url,
    key: SecretKey,
}

/// Never printed.
#[derive(Clone)]
struct SecretKey(Arc<Zeroizing<String>>);

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// A page on which a top-up can be paid.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub session_id: String,
    pub url: String,
}

/// Why there is no answer, in words for the operator's log: one line, bounded, without the key.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The same request may succeed later.
    #[error("Stripe cannot be asked now: {0}")]
    Passing(String),
    #[error("Stripe refused: {0}")]
    Refused(String),
}

impl Stripe {
    /// Fails, in words for an operator, on an address or a key that cannot be used. rustls must have its provider by then.
    pub fn new(url: &str, secret_key: &str) -> Result<Self, String> {
        let mut sessions =
            Url::parse(url).map_err(|_| "stripe_url: is not a URL; write https://api.stripe.com".to_owned())?;
        let plain = sessions.username().is_empty() && sessions.password().is_none();
        if !plain || sessions.query().is_some() || sessions.fragment().is_some() || !is_safe(&sessions) {
            return Err(
                "stripe_url: is not of the form https://api.stripe.com; http:// is for this machine only".into(),
            );
        }
        if let Ok(mut path) = sessions.path_segments_mut() {
            path.pop_if_empty().extend(["v1", "checkout", "sessions"]);
        }
        let is_key = |key: &str| {
            let start = ["sk_", "rk_"].iter().any(|start| key.starts_with(start));
            start
                && (12..=255).contains(&key.len())
                && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let secret_key = secret_key.trim();
        if !is_key(secret_key) {
            return Err("stripe_secret_key: is not Stripe's secret key, which starts with sk_ or rk_".into());
        }
        let http = provider_http::client(|builder| builder).map_err(|why| format!("stripe_url: {why}"))?;
        let key = SecretKey(Arc::new(Zeroizing::new(secret_key.to_owned())));
        Ok(Stripe { http, sessions, key })
    }

    /// Opens the page for a top-up; asked again, the same one.
    #[boxed]
    pub async fn open(&self, topup: &Topup, home: &str) -> Result<Page, Failure> {
        let post = self.http.post(self.sessions.clone());
        let post = post
            .header("content-type", "application/x-www-form-urlencoded")
            .header("idempotency-key", topup.id.to_string())
            .body(form(topup, home));
        let session = self.send(post).await?;
        let unusable = |what: &str| Failure::Passing(format!("its answer has no usable {what}"));
        let session_id = notice::id_of(&session["id"], "id").map_err(|_| unusable("id"))?;
        let url = session["url"].as_str().filter(|url| url.len() <= MAX_URL);
        let url = url.filter(|url| Url::parse(url).is_ok_and(|url| is_safe(&url)));
        let url = url.ok_or_else(|| unusable("url"))?.to_owned();
        Ok(Page { session_id, url })
    }

    /// What became of a page; `None`: nothing yet.
    #[boxed]
    pub async fn look(&self, session_id: &str) -> Result<Option<Story>, Failure> {
        let mut url = self.sessions.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(session_id);
        }
        let session = self.send(self.http.get(url)).await?;
        notice::seen(&session).map_err(|error| Failure::Passing(format!("in its answer {error}")))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let request = request
            .bearer_auth(self.key.0.as_str())
            .header("stripe-version", VERSION);
        let (status, body) = match tokio::time::timeout(TIMEOUT, whole(request)).await {
            Ok(answer) => answer.map_err(|words| Failure::Passing(self.words(&words)))?,
            Err(_) => {
                return Err(Failure::Passing(format!(
                    "no answer within {} seconds",
                    TIMEOUT.as_secs()
                )));
            }
        };
        if status.is_success() {
            let json = serde_json::from_slice(&body);
            return json.map_err(|_| Failure::Passing("its answer is not JSON".into()));
        }
        let words = self.words(&refused(status, &body));
        // A conflict is another request with the same key that is still under way.
        if matches!(status.as_u16(), 408 | 409 | 425 | 429 | 500..=599) {
            Err(Failure::Passing(words))
        } else {
            Err(Failure::Refused(words))
        }
    }

    /// What may be logged.
    fn words(&self, words: &str) -> String {
        provider_http::loggable(words, Some(self.key.0.as_str()))
    }
}

/// Over TLS, or to this machine.
fn is_safe(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_local)
}

/// Deterministic: with one `Idempotency-Key` Stripe takes one body only.
fn form(topup: &Topup, home: &str) -> String {
    let (id, cents) = (topup.id.to_string(), topup.amount_cents.0.to_string());
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("mode", "payment")
        .append_pair("client_reference_id", &id)
        .append_pair(&format!("metadata[{METADATA}]"), &id)
        .append_pair(&format!("payment_intent_data[metadata][{METADATA}]"), &id)
        .append_pair("line_items[0][quantity]", "1")
        .append_pair("line_items[0][price_data][currency]", &topup.currency.to_lowercase())
        .append_pair("line_items[0][price_data][unit_amount]", &cents)
        .append_pair("line_items[0][price_data][product_data][name]", "Callboard credits")
        // Shown in other currencies, the payment would come in one of them.
        .append_pair("adaptive_pricing[enabled]", "false")
        .append_pair("success_url", topup.success_url.as_deref().unwrap_or(home));
    if let Some(url) = &topup.cancel_url {
        form.append_pair("cancel_url", url);
    }
    if let Some(at) = topup.expires_at {
        form.append_pair("expires_at", &at.millis().div_euclid(1000).to_string());
    }
    form.finish()
}

/// An answer with its whole body. Fails in words for an operator.
async fn whole(request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), String> {
    let mut response = request.send().await.map_err(|error| with_cause(&error.without_url()))?;
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| with_cause(&error.without_url()))?
    {
        if body.len() + piece.len() > MAX_BODY {
            return Err("its answer is too large".into());
        }
        body.extend_from_slice(&piece);
    }
    Ok((response.status(), body))
}

fn refused(status: StatusCode, body: &[u8]) -> String {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = said["error"]["message"].as_str().unwrap_or_default();
    let advice = match status.as_u16() {
        300..=399 => "; redirects are not followed, check stripe_url",
        401 | 403 => "; check stripe_secret_key",
        404 => "; check stripe_url, and that the key is of the account that opened the page",
        _ => "",
    };
    format!("it answered {}{advice}: {message}", status.as_u16())
}

#[cfg(test)]
mod tests;
