//! One exchange with an MCP server: it is opened, a few things are asked, and it is ended, all before one deadline.
//!
//! A stream that breaks off before the answer is not resumed: a call is made once, and what it comes to is known in time or not at all.
//!
//! Source: Model Context Protocol, revisions 2025-11-25, 2025-06-18 and 2025-03-26, "Lifecycle", "Cancellation" and "Transports:
//! Streamable HTTP".
use super::{
    answer::{AnswerReader, Wrong},
    fault::Fault,
    rpc::{self, VERSIONS},
};
use crate::outbound::{Ask, Note, Outbound, Take};
use bytes::Bytes;
use entities::ids::TenantId;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use rules::delivery::failure::Failure;
use serde_json::{Value, json};
use std::{ops::ControlFlow, time::Duration};
use tokio::time::Instant;
use url::Url;

/// Whom we ask. Its headers go with every request; what the protocol needs is set over them.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// Who asks.
    pub tenant: TenantId,
    pub url: &'a Url,
    pub headers: &'a HeaderMap,
}

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Bytes of a session's id.
const MAX_SESSION: usize = 1024;
/// Bytes of what a server says of itself when it is greeted.
const GREETING_LIMIT: usize = 64 * 1024;
/// For each thing that nobody waits for: a cancellation, the end of a session, and answers to what the server asks.
const COURTESY: Duration = Duration::from_secs(5);

pub struct Exchange<'a> {
    outbound: &'a Outbound,
    server: Server<'a>,
    deadline: Instant,
    /// The server's own headers, and of ours those that are the same in all requests.
    headers: HeaderMap,
    last_id: u64,
    /// The request that has been sent, and neither been answered nor failed.
    unanswered: Option<u64>,
    /// The HTTP status of the latest answer; 0 before one has come.
    pub status: u16,
    /// Bytes of all answers.
    pub taken: usize,
}

impl<'a> Exchange<'a> {
    /// Not opened yet. `timeout`: for all of it.
    pub fn with(outbound: &'a Outbound, server: Server<'a>, timeout: Duration) -> Self {
        let mut headers = server.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        // They are the protocol's, whoever has set them.
        headers.remove(VERSION);
        headers.remove(SESSION);
        Exchange {
            outbound,
            server,
            deadline: Instant::now() + timeout,
            headers,
            last_id: 0,
            unanswered: None,
            status: 0,
            taken: 0,
        }
    }

    /// The greeting: `initialize`, and when the server has answered that, `notifications/initialized`.
    pub async fn open(&mut self) -> Result<(), Fault> {
        let params = json!({
            "protocolVersion": VERSIONS[0],
            "capabilities": {},
            "clientInfo": { "name": "Callboard", "version": env!("CARGO_PKG_VERSION") },
        });
        let greeting = self.ask("initialize", &params, GREETING_LIMIT).await?;
        let version = greeting["protocolVersion"].as_str().unwrap_or_default();
        let Some(version) = VERSIONS.into_iter().find(|known| *known == version) else {
            return Err(Fault::Version);
        };
        self.headers.insert(VERSION, HeaderValue::from_static(version));
        // No answer comes to a notification, and what a server sends in place of none does not matter.
        self.post(rpc::notification("notifications/initialized"), &mut |_, _, _| {
            ControlFlow::Break(())
        })
        .await
        .map(drop)
    }

    /// One request and the result in its answer, of at most so many bytes with all that the server says before it.
    pub async fn ask(&mut self, method: &str, params: &Value, limit: usize) -> Result<Value, Fault> {
        self.last_id += 1;
        let body = rpc::request(self.last_id, method, params);
        let mut reader = AnswerReader::new(self.last_id, limit);
        let (outbound, server, headers) = (self.outbound, self.server, self.headers.clone());
        let mut take = |status: u16, of_answer: &HeaderMap, piece: &[u8]| {
            if !is_success(status) {
                return ControlFlow::Break(());
            }
            let content_type = of_answer.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let flow = reader.take(content_type.unwrap_or_default(), piece);
            for (id, is_ping) in reader.asked() {
                let reply = Note::new(Method::POST, headers.clone(), rpc::reply(&id, is_ping));
                outbound.send_detached(server.tenant, server.url.clone(), vec![reply], COURTESY);
            }
            flow
        };
        // A client must not cancel its greeting.
        self.unanswered = (method != "initialize").then_some(self.last_id);
        let answered = self.post(body, &mut take).await;
        if !matches!(answered, Err(Fault::Failed(Failure::Timeout))) {
            self.unanswered = None;
        }
        let of_answer = answered?;
        self.taken += reader.taken();
        if method == "initialize" {
            self.note_session(&of_answer)?;
        }
        reader.finish().map_err(|wrong| match wrong {
            Wrong::TooLarge(limit) => Fault::TooLarge(limit),
            Wrong::Protocol(why) => Fault::Protocol(why),
            Wrong::Refused(refusal) => Fault::refused(refusal, self.server.headers),
        })
    }

    /// Answers the headers of a 2xx.
    async fn post(&mut self, body: Bytes, take: Take<'_>) -> Result<HeaderMap, Fault> {
        let timeout = self.deadline.saturating_duration_since(Instant::now());
        let ask = Ask {
            method: Method::POST,
            url: self.server.url,
            headers: self.headers.clone(),
            body,
            timeout,
            keep: 0,
        };
        let exchange = self.outbound.read(ask, take).await;
        match exchange.outcome {
            Ok(status) => {
                self.status = status;
                is_success(status)
                    .then_some(exchange.headers)
                    .ok_or(Fault::Status(status))
            }
            Err(failure) => {
                self.status = 0;
                Err(Fault::Failed(failure))
            }
        }
    }

    fn note_session(&mut self, of_answer: &HeaderMap) -> Result<(), Fault> {
        let Some(id) = of_answer.get(SESSION) else {
            return Ok(());
        };
        let is_good = |bytes: &[u8]| (1..=MAX_SESSION).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
        if !is_good(id.as_bytes()) {
            return Err(Fault::Protocol("names a session by something that is not a session id"));
        }
        let mut id = id.clone();
        // Whoever knows it is in the session.
        id.set_sensitive(true);
        self.headers.insert(SESSION, id);
        Ok(())
    }
}

/// However it went, also when nobody waits for it any more: the server need not go on with what was not answered, and may forget its
/// session. Servers without sessions are not told of the end.
impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        let headers = std::mem::take(&mut self.headers);
        let mut notes = Vec::new();
        if let Some(id) = self.unanswered {
            let reason = match Instant::now() >= self.deadline {
                true => "it took too long",
                false => "nobody waits for it any more",
            };
            notes.push(Note::new(Method::POST, headers.clone(), rpc::cancelled(id, reason)));
        }
        if headers.contains_key(SESSION) {
            notes.push(Note::new(Method::DELETE, headers, Bytes::new()));
        }
        if !notes.is_empty() {
            self.outbound
                .send_detached(self.server.tenant, self.server.url.clone(), notes, COURTESY);
        }
    }
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}
