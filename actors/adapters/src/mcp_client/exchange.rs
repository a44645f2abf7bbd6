//! One exchange with an MCP server: it is opened, a few things are asked, and it is ended, all before one deadline.
//!
//! Source: Model Context Protocol, revisions 2025-06-18 and 2025-03-26, "Lifecycle" and "Transports: Streamable HTTP".
use super::{
    answer::{AnswerReader, Wrong},
    fault::Fault,
    rpc,
};
use crate::outbound::{Ask, Outbound, Take};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde_json::{Value, json};
use std::{ops::ControlFlow, time::Duration};
use tokio::time::Instant;
use url::Url;

/// Whom we ask. Its headers go with every request; what the protocol needs is set over them.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    pub url: &'a Url,
    pub headers: &'a HeaderMap,
}

/// Revisions that are spoken here, the one that is asked for first.
const VERSIONS: [&str; 2] = ["2025-06-18", "2025-03-26"];
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Bytes of a session's id.
const MAX_SESSION: usize = 1024;
/// Bytes of what a server says of itself when it is greeted.
const GREETING_LIMIT: usize = 64 * 1024;
/// For what nobody waits for: the end of a session, and answers to what the server asks.
const COURTESY: Duration = Duration::from_secs(5);

pub struct Exchange<'a> {
    outbound: &'a Outbound,
    server: Server<'a>,
    deadline: Instant,
    /// The server's own headers, and of ours those that are the same in all requests.
    headers: HeaderMap,
    last_id: u64,
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
        let (outbound, url, headers) = (self.outbound, self.server.url, self.headers.clone());
        let mut take = |status: u16, of_answer: &HeaderMap, piece: &[u8]| {
            if !is_success(status) {
                return ControlFlow::Break(());
            }
            let content_type = of_answer.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let flow = reader.take(content_type.unwrap_or_default(), piece);
            for (id, is_ping) in reader.asked() {
                let reply = rpc::reply(&id, is_ping);
                outbound.send_detached(Method::POST, url.clone(), headers.clone(), reply, COURTESY);
            }
            flow
        };
        let of_answer = self.post(body, &mut take).await?;
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
            return Err(Fault::Protocol("names a session by what is no session's id"));
        }
        let mut id = id.clone();
        // Whoever knows it is in the session.
        id.set_sensitive(true);
        self.headers.insert(SESSION, id);
        Ok(())
    }
}

/// However it went, also when nobody waits for it any more: the server may forget its session. Servers without sessions are not told.
impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        if self.headers.contains_key(SESSION) {
            let (url, headers) = (self.server.url.clone(), std::mem::take(&mut self.headers));
            self.outbound
                .send_detached(Method::DELETE, url, headers, Bytes::new(), COURTESY);
        }
    }
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}
