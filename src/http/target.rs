//! Addresses and headers that users give: what every field of that kind must keep to.
use crate::state::State;
use entities::{Error, Result, checks::Checks, values::WebhookUrl, webhook_endpoint::Headers};

/// May this address be called at all? Where it leads is checked again at every connect.
pub fn check_url(state: &State, url: &WebhookUrl) -> Result<()> {
    if let Ok(url) = url::Url::parse(url.as_str())
        && let Err(blocked) = state.deps.outbound.check(&url)
    {
        return Err(Error::invalid("url", blocked.0));
    }
    Ok(())
}

/// Headers that a user wants to be sent along.
pub fn check_headers(headers: &Headers) -> Result<()> {
    if headers.0.len() > 16 {
        return Err(Error::invalid(
            "headers",
            format!("has {} entries, at most 16 are allowed", headers.0.len()),
        ));
    }
    let (mut seen, mut checks) = (std::collections::BTreeSet::new(), Checks::default());
    for (name, value) in &headers.0 {
        let param = || format!("headers.{name}");
        if !seen.insert(name.to_lowercase()) {
            checks.refuse(param(), "is given twice: upper and lower case are the same");
            continue;
        }
        checks.add(check_header(param, name, value));
    }
    checks.end()
}

fn check_header(param: impl Fn() -> String, name: &str, value: &str) -> Result<()> {
    let lower = name.to_lowercase();
    let ours = ["x-webhook-", "webhook-", "x-function-"]
        .iter()
        .any(|start| lower.starts_with(start));
    let hop = [
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
    ];
    if ours || hop.contains(&lower.as_str()) {
        return Err(Error::invalid(param(), "is set by the service itself"));
    }
    if reqwest::header::HeaderName::try_from(name).is_err() {
        return Err(Error::invalid(param(), "is not a valid header name"));
    }
    if value.len() > 2000 || reqwest::header::HeaderValue::try_from(value).is_err() {
        return Err(Error::invalid(param(), "must be visible characters, at most 2000"));
    }
    Ok(())
}
