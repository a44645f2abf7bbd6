//! The server whose events are listened to.
use super::{Event, client};
use crate::error::CannotStart;
use bytes::Bytes;
use entities::ids::EventId;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, header::CONTENT_TYPE};
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

pub struct Server {
    client: Client,
    url: Url,
    key: String,
}

/// Why a request brought nothing.
#[derive(Debug)]
pub enum Refusal {
    /// It may go better later.
    Passing(String),
    /// It never will.
    Final(CannotStart),
}

/// An event larger than this is none of Callboard's.
const MAX_EVENT_BYTES: usize = super::frames::MAX_FRAME_BYTES;
/// Three heartbeats of the stream: then the connection is dead, whatever TCP believes.
const SILENCE: Duration = Duration::from_secs(45);
const IS_IT_CALLBOARD: &str = "is --server the address of Callboard itself?";

impl Server {
    pub fn new(url: Url, key: &str) -> Result<Self, CannotStart> {
        let key = key.trim();
        // Not shown: it is a secret, whatever else it may be.
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(CannotStart("--key or CALLBOARD_KEY: this is not an API key".into()));
        }
        Ok(Server {
            client: client::build()?,
            url,
            key: key.to_owned(),
        })
    }

    /// The newest event. The stream starts behind it, so that what happens during a cut before the first one is not lost.
    pub async fn newest(&self) -> Result<EventId, Refusal> {
        let mut url = self.at(&["v1", "events"]);
        url.set_query(Some("limit=1"));
        let response = self.send(self.client.get(url), IS_IT_CALLBOARD).await?;
        let no_list = || Refusal::Final(self.no_stream());
        let list: Value = serde_json::from_slice(&self.body(response).await?).map_err(|_| no_list())?;
        match list["data"].as_array().ok_or_else(no_list)?.first() {
            Some(event) => event["id"].as_str().and_then(|id| id.parse().ok()).ok_or_else(no_list),
            // Before every event that there will be.
            None => Ok(EventId(Uuid::nil())),
        }
    }

    /// The events after this one, as they happen.
    pub async fn stream(&self, after: EventId) -> Result<Response, Refusal> {
        let request = self.client.get(self.at(&["v1", "events", "stream"]));
        let request = request.header("Last-Event-ID", after.to_string());
        let response = self.send(request, IS_IT_CALLBOARD).await?;
        let media_type = response.headers().get(CONTENT_TYPE).map(|value| value.as_bytes());
        if media_type.is_some_and(|value| value.starts_with(b"text/event-stream")) {
            Ok(response)
        } else {
            Err(Refusal::Final(self.no_stream()))
        }
    }

    /// One event, in the very bytes of its deliveries.
    pub async fn event(&self, id: EventId) -> Result<Event, CannotStart> {
        let request = self.client.get(self.at(&["v1", "events", &id.to_string()]));
        let missing = "a key sees the events of its own workspace and environment only";
        let body = match self.send(request, missing).await {
            Ok(response) => self.body(response).await,
            Err(refusal) => Err(refusal),
        };
        let body = body.map_err(|refusal| match refusal {
            Refusal::Passing(why) => CannotStart(why),
            Refusal::Final(error) => error,
        })?;
        let envelope: Value = serde_json::from_slice(&body).unwrap_or_default();
        match envelope["type"].as_str() {
            Some(event_type) => Ok(Event {
                id,
                event_type: event_type.to_owned(),
                body,
            }),
            None => Err(CannotStart(format!("{} did not answer with an event", self.shown()))),
        }
    }

    fn at(&self, path: &[&str]) -> Url {
        let mut url = self.url.clone();
        url.set_query(None);
        // Always possible with http and https, and the flag takes nothing else.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// An answer with 200, or what to do about another.
    async fn send(&self, request: RequestBuilder, missing: &str) -> Result<Response, Refusal> {
        let request = request.bearer_auth(&self.key);
        let response = self.in_time("cannot be reached", request.send()).await?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response);
        }
        let said = self.body(response).await.ok().and_then(said).unwrap_or_default();
        let answered = format!("{} answered {}", self.shown(), status.as_u16());
        let make = "`callboard keys create --workspace SLUG --env test --name listen --scopes webhooks:read` makes one";
        let text = match status.as_u16() {
            408 | 425 | 429 | 500 | 502..=504 | 506..=599 => {
                return Err(Refusal::Passing(format!("{answered}{said}")));
            }
            401 => format!("{answered}: give a valid key with --key or CALLBOARD_KEY; {make}"),
            403 => format!("{answered}: the key needs the scope webhooks:read; {make}"),
            404 => format!("{answered}{said}; {missing}"),
            300..=399 => format!("{answered}: redirects are not followed; give --server the final address"),
            _ => format!("{answered}{said}"),
        };
        Err(Refusal::Final(CannotStart(text)))
    }

    async fn body(&self, mut response: Response) -> Result<Bytes, Refusal> {
        let mut body = Vec::new();
        while let Some(chunk) = self.next(&mut response).await? {
            if body.len() + chunk.len() > MAX_EVENT_BYTES {
                let text = format!("{} answered more than {MAX_EVENT_BYTES} bytes", self.shown());
                return Err(Refusal::Final(CannotStart(text)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.into())
    }

    /// The next bytes of an answer; `None` at its end.
    pub async fn next(&self, response: &mut Response) -> Result<Option<Bytes>, Refusal> {
        self.in_time("was cut off", response.chunk()).await
    }

    /// Only the waiting counts: the client's own timeout would run on while an event is being forwarded.
    async fn in_time<T>(&self, what: &str, work: impl Future<Output = reqwest::Result<T>>) -> Result<T, Refusal> {
        let why = match tokio::time::timeout(SILENCE, work).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => client::root_cause(&error),
            Err(_) => format!("nothing came for {} s", SILENCE.as_secs()),
        };
        Err(Refusal::Passing(format!("{} {what}: {why}", self.shown())))
    }

    fn no_stream(&self) -> CannotStart {
        CannotStart(format!("{} has no event stream; {IS_IT_CALLBOARD}", self.shown()))
    }

    fn shown(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }
}

/// The message of an error body.
fn said(body: Bytes) -> Option<String> {
    let body: Value = serde_json::from_slice(&body).ok()?;
    Some(format!(": {}", body["error"]["message"].as_str()?))
}
