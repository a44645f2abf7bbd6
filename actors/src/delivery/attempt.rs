//! One attempt: the signed POST and what is logged of it.
use super::machine::Outcome;
use crate::{
    deps::Deps,
    keyring::purpose,
    outbound::{Answer, Failure},
    signature,
};
use bytes::Bytes;
use entities::{
    Error, Result,
    delivery_attempt::ResponseHeaders,
    event,
    values::Moment,
    webhook_endpoint::{Headers, Model as Endpoint},
};
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use std::time::Duration;
use zeroize::Zeroizing;

/// An endpoint, ready to be posted to: parsed and unsealed once, not per delivery.
pub struct Target {
    url: Url,
    timeout: Duration,
    secret: Zeroizing<String>,
    headers: HeaderMap,
}

impl Target {
    pub fn of(deps: &Deps, endpoint: &Endpoint) -> Result<Self> {
        let corrupt = |column| Error::Corrupt {
            table: "webhook_endpoints",
            column,
            id: endpoint.id.to_string(),
        };
        let headers = deps.keyring.open(purpose::ENDPOINT_HEADERS, &endpoint.sealed_headers)?;
        let headers: Headers = serde_json::from_str(&headers).map_err(|_| corrupt("sealed_headers"))?;
        let mut own = HeaderMap::new();
        for (name, value) in &headers.0 {
            if let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                value.set_sensitive(true);
                own.insert(name, value);
            }
        }
        Ok(Target {
            url: Url::parse(endpoint.url.as_str()).map_err(|_| corrupt("url"))?,
            timeout: Duration::from_millis(u64::try_from(endpoint.timeout_ms).unwrap_or(15_000)),
            secret: deps.keyring.open(purpose::ENDPOINT_SECRET, &endpoint.sealed_secret)?,
            headers: own,
        })
    }

    /// The specification's headers, the Standard Webhooks set, and the user's own. Timestamp and signature are fresh.
    fn sign(&self, event: &event::Model, timestamp: i64) -> HeaderMap {
        let mut headers = self.headers.clone();
        let id = event.id.to_string();
        let body = event.body.as_bytes();
        let mut put = |name: &'static str, value: &str| {
            // Ids, numbers and signatures are always valid header values.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        put("content-type", "application/json");
        put("x-webhook-id", &id);
        put("x-webhook-event", &event.event_type);
        put("x-webhook-timestamp", &timestamp.to_string());
        put("x-webhook-signature", &signature::sign(&self.secret, timestamp, body));
        put("webhook-id", &id);
        put("webhook-timestamp", &timestamp.to_string());
        put(
            "webhook-signature",
            &signature::sign_standard(&self.secret, &id, timestamp, body),
        );
        headers
    }
}

/// What is known after an attempt.
#[derive(Clone, Debug)]
pub struct Report {
    pub outcome: Outcome,
    pub started_at: Moment,
    pub duration_ms: i32,
    pub response_headers: ResponseHeaders,
    pub response_body: Option<String>,
}

impl Report {
    /// For an attempt that ended in a fault of ours.
    pub fn of_panic(panic: String, at: Moment) -> Self {
        tracing::error!(panic, "an attempt to deliver panicked");
        Report {
            outcome: Outcome::Failed(Failure::BadAnswer("internal fault".into())),
            started_at: at,
            duration_ms: 0,
            response_headers: ResponseHeaders::default(),
            response_body: None,
        }
    }
    /// The HTTP status; 0 when no answer came.
    pub fn status(&self) -> u16 {
        match &self.outcome {
            Outcome::Answered { status } => *status,
            Outcome::Failed(_) => 0,
        }
    }
    /// `None` after a success.
    pub fn error_code(&self) -> Option<&'static str> {
        match &self.outcome {
            Outcome::Answered { status: 200..=299 } => None,
            Outcome::Answered { .. } => Some("http_status"),
            Outcome::Failed(failure) => Some(failure.code()),
        }
    }
    /// What went wrong, for people.
    pub fn error_message(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Answered { status: 200..=299 } => None,
            Outcome::Answered { status } => Some(format!("the receiver answered {status}; any 2xx counts as success")),
            Outcome::Failed(Failure::Timeout) => Some("no complete answer within the endpoint's timeout_ms".into()),
            Outcome::Failed(
                Failure::BlockedTarget(why)
                | Failure::Dns(why)
                | Failure::Connect(why)
                | Failure::Tls(why)
                | Failure::BadAnswer(why),
            ) => Some(why.clone()),
        }
    }
}

/// The first headers, 8 KiB together, a value cut at 1 KiB.
fn bounded(headers: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut room: usize = 8 * 1024;
    let cut = headers.map(|(name, value)| (name, value.chars().take(1024).collect::<String>()));
    cut.take_while(|(name, value)| {
        let size = name.len() + value.len();
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    })
    .collect()
}

pub async fn perform(deps: &Deps, target: &Target, event: &event::Model) -> Report {
    let started_at = deps.clock.now();
    let started = std::time::Instant::now();
    let headers = target.sign(event, deps.clock.unix_seconds());
    let body = Bytes::copy_from_slice(event.body.as_bytes());
    let answer = deps
        .outbound
        .post(target.url.clone(), headers, body, target.timeout)
        .await;
    let duration_ms = i32::try_from(started.elapsed().as_millis()).unwrap_or(i32::MAX);
    metrics::histogram!("callboard_delivery_attempt_seconds").record(started.elapsed().as_secs_f64());
    match answer {
        Ok(Answer { status, headers, body }) => {
            let kept = headers.iter().take(64).map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).replace('\0', "\u{fffd}"),
                )
            });
            // PostgreSQL's text holds no NUL.
            let text = String::from_utf8_lossy(&body).replace('\0', "\u{fffd}");
            Report {
                outcome: Outcome::Answered { status },
                started_at,
                duration_ms,
                response_headers: ResponseHeaders(bounded(kept)),
                response_body: (!text.is_empty()).then_some(text),
            }
        }
        Err(failure) => Report {
            outcome: Outcome::Failed(failure),
            started_at,
            duration_ms,
            response_headers: ResponseHeaders::default(),
            response_body: None,
        },
    }
}
