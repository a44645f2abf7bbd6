//! A Twilio-shaped REST API: one POST hands a message over, signed callbacks tell what became of it.
//!
//! Only a refused connection, a 429 or a 503 says that the message was not taken and may be handed over again. A 502 or 504 is a
//! gateway's word about somebody who may have taken it, a 500 that of somebody who fell over, perhaps after taking it; so is
//! every answer that does not come.
use super::{
    provider::{Outgoing, Provider, Sent, SmsOutcome, fault},
    signature,
};
use crate::provider_http::{self, with_cause};
use entities::{ids::SmsId, values::E164};
use futures_util::future::BoxFuture;
use reqwest::{Response, StatusCode, header::RETRY_AFTER};
use rules::{
    message::Fault,
    sms::machine::{Progress, Report},
};
use std::{fmt, time::Duration};
use url::Url;
use zeroize::Zeroizing;

pub struct Twilio {
    account_sid: String,
    auth_token: Zeroizing<String>,
    from: From,
    endpoint: Url,
    http: reqwest::Client,
}

/// Who writes where the workspace has no number.
enum From {
    Number(E164),
    /// `MG…`: the service chooses one.
    Service(String),
    Nobody,
}

impl fmt::Debug for Twilio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Twilio({} ***)", self.endpoint)
    }
}

/// From the request to the end of the answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of one answer.
const MAX_ANSWER: usize = 64 * 1024;

impl Twilio {
    /// Fails, in words for an operator, on what cannot be used; each begins with its setting's name.
    pub fn new(url: &str, account_sid: &str, auth_token: &str, from: &str) -> Result<Self, String> {
        let base = Url::parse(url).map_err(|_| "sms_url: is not a URL; write https://api.twilio.com".to_owned())?;
        let plain = base.username().is_empty() && base.password().is_none() && base.query().is_none();
        if !matches!(base.scheme(), "http" | "https") || !plain {
            return Err("sms_url: is not of the form https://host".into());
        }
        if account_sid.is_empty() || !account_sid.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err("sms_account_sid: must be letters and digits, such as ACxxxxxxxx".into());
        }
        if auth_token.is_empty() {
            return Err("sms_auth_token: is needed with sms_account_sid".into());
        }
        let from = match from {
            "" => From::Nobody,
            service if service.starts_with("MG") && service.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                From::Service(service.to_owned())
            }
            number => From::Number(number.parse().map_err(|_| {
                format!(
                    "sms_from: `{number}` is neither a number such as +12025550123 nor a messaging service such as MGxxxxxxxx"
                )
            })?),
        };
        let mut endpoint = base;
        if let Ok(mut path) = endpoint.path_segments_mut() {
            path.pop_if_empty()
                .extend(["2010-04-01", "Accounts", account_sid, "Messages.json"]);
        }
        let http = provider_http::client(|builder| {
            // Nothing is sent by itself a second time; and a kept connection may be closed in the very moment of its use, after
            // which nobody knows what was read.
            let builder = builder.retry(reqwest::retry::never()).pool_max_idle_per_host(0);
            builder.timeout(TIMEOUT)
        })
        .map_err(|why| format!("sms_url: {why}"))?;
        Ok(Twilio {
            account_sid: account_sid.to_owned(),
            auth_token: Zeroizing::new(auth_token.to_owned()),
            from,
            endpoint,
            http,
        })
    }

    /// Was this posted by the service? `url`: as it knows it.
    pub fn is_authentic(&self, url: &str, fields: &[(String, String)], signature: &str) -> bool {
        signature::is_authentic(&self.auth_token, url, fields, signature)
    }

    fn request(&self, message: &Outgoing) -> reqwest::RequestBuilder {
        let mut form = vec![("To", message.to.as_str()), ("Body", message.body.as_str())];
        if let Some(url) = &message.report_to {
            form.push(("StatusCallback", url));
        }
        match (&message.from, &self.from) {
            (Some(number), _) | (None, From::Number(number)) => form.push(("From", number.as_str())),
            (None, From::Service(service)) => form.push(("MessagingServiceSid", service)),
            (None, From::Nobody) => {}
        }
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        self.http
            .post(self.endpoint.clone())
            .basic_auth(&self.account_sid, Some(self.auth_token.as_str()))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body)
    }
}

impl Provider for Twilio {
    fn send(&self, message: Outgoing) -> BoxFuture<'static, Sent> {
        let request = self.request(&message);
        Box::pin(async move {
            let outcome = match request.send().await {
                Ok(response) => judge(response).await,
                Err(error) if error.is_connect() || error.is_builder() => SmsOutcome::Busy {
                    retry_after: None,
                    why: Fault::new("provider_unavailable", unreachable_words(error)),
                },
                Err(error) => SmsOutcome::Lost(format!(
                    "no answer from the provider: {}",
                    with_cause(&error.without_url())
                )),
            };
            outcome.into()
        })
    }

    fn default_from(&self) -> Option<&E164> {
        match &self.from {
            From::Number(number) => Some(number),
            From::Service(_) | From::Nobody => None,
        }
    }
}

fn unreachable_words(error: reqwest::Error) -> String {
    format!("the provider cannot be reached: {}", with_cause(&error.without_url()))
}

/// Where a message's reports go.
pub fn status_url(base_url: &str, id: SmsId) -> String {
    format!("{base_url}/v1/_internal/twilio/status/{id}")
}

/// Where messages that come in go.
pub fn inbound_url(base_url: &str) -> String {
    format!("{base_url}/v1/_internal/twilio/inbound")
}

#[derive(Default, serde::Deserialize)]
struct Answer {
    sid: Option<String>,
    code: Option<i64>,
    message: Option<String>,
}

async fn judge(response: Response) -> SmsOutcome {
    let status = response.status();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let retry_after = retry_after
        .and_then(|text| text.trim().parse().ok())
        .map(Duration::from_secs);
    // The status decides; what cannot be read of the rest is missing.
    let answer: Answer = serde_json::from_slice(&read(response).await).unwrap_or_default();
    if status.is_success() {
        let id = answer.sid.filter(|id| (1..=64).contains(&id.len()));
        return SmsOutcome::Taken(id);
    }
    let words = match &answer.message {
        Some(message) => format!("the provider answered {}: {message}", status.as_u16()),
        None => format!("the provider answered {}", status.as_u16()),
    };
    let why = |code| fault(answer.code, &words, code);
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => SmsOutcome::Busy {
            retry_after,
            why: why("provider_unavailable"),
        },
        // The operator's slip, which will be mended.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if answer.code.is_none_or(|code| code == 20_003) => {
            tracing::error!(
                status = status.as_u16(),
                "the SMS provider refuses our account; check sms_account_sid and sms_auth_token"
            );
            SmsOutcome::Busy {
                retry_after,
                why: why("provider_unavailable"),
            }
        }
        status if status.is_server_error() => SmsOutcome::Lost(words),
        _ => SmsOutcome::Refused(why("provider_rejected")),
    }
}

async fn read(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        if body.len() + piece.len() > MAX_ANSWER {
            return Vec::new();
        }
        body.extend_from_slice(&piece);
    }
    body
}

/// What a status callback says; `None`: nothing that we know.
pub fn report(fields: &[(String, String)]) -> Option<Report> {
    let field = |name: &str| {
        let found = fields.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    };
    let number = field("ErrorCode").and_then(|text| text.parse().ok());
    let words = field("ErrorMessage").unwrap_or_default();
    let progress = match field("MessageStatus").or_else(|| field("SmsStatus"))? {
        "accepted" | "scheduled" | "queued" | "sending" | "sent" => Progress::OnItsWay,
        "delivered" | "read" => Progress::Delivered,
        "undelivered" => Progress::Undelivered(fault(number, words, "undelivered")),
        "failed" | "canceled" => Progress::Failed(fault(number, words, "provider_failed")),
        _ => return None,
    };
    let id = field("MessageSid")
        .or_else(|| field("SmsSid"))
        .filter(|id| id.len() <= 64);
    Some(Report {
        provider_message_id: id.map(str::to_owned),
        progress,
    })
}

#[cfg(test)]
#[path = "twilio_tests.rs"]
mod tests;
