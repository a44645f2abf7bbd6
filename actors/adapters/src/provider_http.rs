//! What all adapters share that ask a provider over HTTP: the client, its key, how long it is waited for, and words about
//! failures for the operator.
use crate::outbound::trouble;
use reqwest::{Client, ClientBuilder, header::HeaderValue, redirect};
use std::{fmt, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};
use url::Url;
use zeroize::Zeroizing;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Characters of what a provider says of its failure.
pub const MAX_WORDS: usize = 300;

/// A client for a provider's address; `tune` adds what is the adapter's own. Redirects and proxies are not followed.
///
/// Fails, in words for an operator. rustls must have its provider by then.
pub fn client(tune: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<Client, String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        return Err("rustls has no crypto provider yet: main installs one first".into());
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the operator names the address, not a user; it may be an inner one"
    )]
    let builder = Client::builder()
        .user_agent(concat!("Callboard/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .no_proxy();
    tune(builder)
        .build()
        .map_err(|error| format!("no client can be made: {}", with_cause(&error)))
}

/// The address below which a provider's endpoints are, of the form of `example`. Fails in words for an operator.
pub fn base_url(url: &str, example: &str) -> Result<Url, String> {
    let base = Url::parse(url).map_err(|_| format!("is not a URL; write {example}"))?;
    let plain = base.username().is_empty() && base.password().is_none();
    if !matches!(base.scheme(), "http" | "https") || !plain || base.query().is_some() || base.fragment().is_some() {
        return Err(format!(
            "is not of the form {example}; the key has a setting of its own"
        ));
    }
    Ok(base)
}

/// Words that may be logged and shown: one line, bounded, without the key.
pub fn loggable(words: &str, key: Option<&str>) -> String {
    let words = match key {
        Some(key) => words.replace(key, "[key]"),
        None => words.to_owned(),
    };
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    words
        .chars()
        .filter(|letter| !letter.is_control())
        .take(MAX_WORDS)
        .collect()
}

/// An error and what stands behind it, which says more; of the network in our words.
pub fn with_cause(error: &(dyn std::error::Error + 'static)) -> String {
    trouble::of_system(error).map_or_else(|| trouble::words(error), trouble::unnamed)
}

/// Never printed. Cheap to clone.
#[derive(Clone)]
pub struct ApiKey(Arc<Zeroizing<String>>);

impl ApiKey {
    /// `None` for a service that asks for none. Fails in words for an operator.
    pub fn of(key: Option<&str>) -> Result<Option<Self>, String> {
        let Some(key) = key.map(str::trim).filter(|key| !key.is_empty()) else {
            return Ok(None);
        };
        let is_good = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if !key.bytes().all(is_good) {
            return Err("the API key has a character that keys cannot have".into());
        }
        Ok(Some(ApiKey(Arc::new(Zeroizing::new(key.to_owned())))))
    }

    /// For the one who is meant to see it.
    pub fn expose(&self) -> &str {
        self.0.as_str()
    }

    /// As a header that no library prints.
    pub fn header(&self) -> HeaderValue {
        hidden(self.expose())
    }

    /// The same behind the name of its scheme, such as `Bearer`.
    pub fn header_with(&self, scheme: &str) -> HeaderValue {
        hidden(&Zeroizing::new(format!("{scheme} {}", self.expose())))
    }
}

fn hidden(text: &str) -> HeaderValue {
    // It has been looked at: visible characters only.
    let mut value = HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// How long we wait for a provider. Only waiting counts, not the time in which its words are spoken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    pub first_byte: Duration,
    /// Between two pieces.
    pub silence: Duration,
    /// For one answer in all, a second try included.
    pub whole: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            first_byte: Duration::from_secs(10),
            silence: Duration::from_secs(10),
            whole: Duration::from_secs(60),
        }
    }
}

/// What is left of the time for one answer.
#[derive(Debug)]
pub struct Patience {
    pub limits: Limits,
    left: Duration,
}

impl Patience {
    pub fn new(limits: Limits) -> Self {
        Patience {
            limits,
            left: limits.whole,
        }
    }

    pub fn is_over(&self) -> bool {
        self.left.is_zero()
    }

    /// `None`: it took longer than `limit`, or than what is left.
    pub async fn wait<T>(&mut self, limit: Duration, answer: impl Future<Output = T>) -> Option<T> {
        let begun = Instant::now();
        let answer = timeout(limit.min(self.left), answer).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        answer.ok()
    }
}
