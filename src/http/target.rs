//! Addresses and headers that users give: what every field of that kind must keep to.
use super::error::{ApiError, ApiResult};
use crate::state::State;
use entities::{values::WebhookUrl, webhook_endpoint::Headers};

/// May this address be called at all? Where it leads is checked again at every connect.
pub fn check_url(state: &State, url: &WebhookUrl) -> ApiResult<()> {
    if let Ok(url) = url::Url::parse(url.as_str())
        && let Err(blocked) = state.deps.outbound.check(&url)
    {
        return Err(ApiError::validation("url", blocked.0));
    }
    Ok(())
}

/// Headers that a user wants to be sent along.
pub fn check_headers(headers: &Headers) -> ApiResult<()> {
    if headers.0.len() > 16 {
        return Err(ApiError::validation(
            "headers",
            format!("has {} entries, at most 16 are allowed", headers.0.len()),
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (name, value) in &headers.0 {
        if !seen.insert(name.to_lowercase()) {
            return Err(ApiError::validation(
                format!("headers.{name}"),
                "is given twice: upper and lower case are the same",
            ));
        }
        let param = || format!("headers.{name}");
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
            return Err(ApiError::validation(param(), "is set by the service itself"));
        }
        if reqwest::header::HeaderName::try_from(name).is_err() {
            return Err(ApiError::validation(param(), "is not a valid header name"));
        }
        if value.len() > 2000 || reqwest::header::HeaderValue::try_from(value).is_err() {
            return Err(ApiError::validation(
                param(),
                "must be visible characters, at most 2000",
            ));
        }
    }
    Ok(())
}
