//! What all adapters share that ask a provider over HTTP: the client, and words about failures for the operator.
use reqwest::{Client, ClientBuilder, redirect};
use std::time::Duration;
use url::Url;

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

/// An error and what stands behind it, which says more.
pub fn with_cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
