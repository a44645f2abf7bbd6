//! One event to the program on this machine, as a delivery would bring it.
use super::{Event, client};
use crate::error::CannotStart;
use adapters::signature;
use entities::{ids::EventId, values::Moment};
use reqwest::{Client, Url};
use runtime::clock::Clock;
use serde::Serialize;
use std::time::{Duration, Instant};

/// An endpoint's own default.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of an answer that are waited for.
const ANSWER_BYTES: usize = 16 * 1024;

pub struct Forward {
    client: Client,
    url: Url,
    secret: String,
    clock: Clock,
}

/// What became of it: one line of the output.
#[derive(Debug, Serialize)]
pub struct Line {
    pub at: Moment,
    #[serde(rename = "type")]
    pub event_type: String,
    pub id: EventId,
    /// 0 when no answer came, as in the deliveries of the API.
    pub status: u16,
    pub duration_ms: u64,
    /// The codes of an attempt to deliver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<&'static str>,
    /// What failed, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub replay: bool,
}

impl Forward {
    pub fn new(url: Url, secret: String, clock: Clock) -> Result<Self, CannotStart> {
        Ok(Forward {
            client: client::build()?,
            url,
            secret,
            clock,
        })
    }

    pub async fn send(&self, event: &Event, replay: bool) -> Line {
        let at = self.clock.now();
        let started = Instant::now();
        let (status, failed) = match self.post(event, replay).await {
            Ok(status) => (status, refused(status).map(|why| ("http_status", why))),
            Err(error) => (0, Some((client::code(&error), self.words(&error)))),
        };
        let (error_code, error) = failed.unzip();
        Line {
            at,
            event_type: event.event_type.clone(),
            id: event.id,
            status,
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            error_code,
            error,
            replay,
        }
    }

    async fn post(&self, event: &Event, replay: bool) -> reqwest::Result<u16> {
        let message = signature::Message {
            id: &event.id.to_string(),
            event_type: &event.event_type,
            body: &event.body,
            is_replay: replay,
        };
        let headers = message.headers(self.clock.unix_seconds(), &self.secret, None);
        let request = self.client.post(self.url.clone()).headers(headers);
        // Covers all of it, to the end of the answer.
        let request = request.body(event.body.clone()).timeout(TIMEOUT);
        let mut response = request.send().await?;
        let mut room = ANSWER_BYTES;
        while room > 0
            && let Some(bytes) = response.chunk().await?
        {
            room = room.saturating_sub(bytes.len());
        }
        Ok(response.status().as_u16())
    }

    fn words(&self, error: &reqwest::Error) -> String {
        let url = &self.url;
        let why = client::root_cause(error);
        match client::code(error) {
            _ if client::is_refused(error) => format!("nothing listens at {url}"),
            "timeout" => format!("no complete answer from {url} in {} s", TIMEOUT.as_secs()),
            "dns_failed" => format!("{} cannot be found: {why}", url.host_str().unwrap_or_default()),
            "tls_failed" => format!("TLS with {url} failed: {why}"),
            "connect_failed" => format!("{url} cannot be reached: {why}"),
            _ => format!("{url} broke off, or does not speak HTTP: {why}"),
        }
    }
}

/// Why an answer is no success.
fn refused(status: u16) -> Option<String> {
    let hint = match status {
        200..=299 => return None,
        300..=399 => "; redirects are not followed",
        401 | 403 => "; does it use the secret of this command?",
        404 => "; is the path of --forward-to right?",
        405 => "; does it take POST?",
        _ => "",
    };
    Some(format!("the receiver answered {status}{hint}"))
}

impl Line {
    /// For people.
    pub fn text(&self) -> String {
        // 2026-11-20T20:09:49.005Z: the day is known to who watches.
        let at = self.at.to_string();
        let time = at.get(11..19).unwrap_or(&at);
        let outcome = match &self.error {
            None => format!("{} in {} ms", self.status, self.duration_ms),
            Some(why) => format!(
                "{why} ({} ms); not tried again, --replay {} sends it once more",
                self.duration_ms, self.id
            ),
        };
        format!("{time}Z  {:<27}  {}  {outcome}", self.event_type, self.id)
    }
}
