//! A real local MCP server (streamable HTTP), which checks what its client sends. Speaks the protocol with its own few lines.
//!
//! In the form of a stream every answer comes in pieces of five bytes, behind a comment, progress and a question of the server's own,
//! and the stream stays open behind it.
use super::http_server::serve;
use actix_web::{
    Error, HttpRequest, HttpResponse,
    http::StatusCode,
    web::{self, Bytes, Data},
};
use futures_util::stream::{self, Stream, StreamExt};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

/// What it does with a request, where it does not simply do its work.
#[derive(Clone, Debug)]
pub enum Reply {
    Result(Value),
    Error(i64, &'static str),
    Status(u16),
    /// A body of this content type.
    Raw(&'static str, String),
    /// This much of an event stream, then silence until the client goes.
    Stall(String),
    /// An event stream of comments without an end.
    Endless,
    /// No answer at all, until the client goes.
    Hang,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The method of JSON-RPC; of what is no request of JSON-RPC, that of HTTP; `reply` for an answer.
    pub method: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

type Decide = dyn Fn(&str, &Value) -> Option<Reply> + Send + Sync;

struct State {
    heard: Mutex<Vec<Heard>>,
    faults: Mutex<Vec<String>>,
    is_stream: bool,
    /// It has named a session.
    has_session: AtomicBool,
    decide: Box<Decide>,
    arrived: tokio::sync::Notify,
}

pub struct McpServer {
    pub url: String,
    state: Arc<State>,
    handle: actix_web::dev::ServerHandle,
}

/// The tool that it has.
pub fn tool() -> Value {
    json!({ "name": "book.day", "title": "Book", "description": "Books a day.", "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["day"],
        "additionalProperties": false, "properties": { "day": { "enum": ["monday", "tuesday"] } } } })
}

impl McpServer {
    /// `decide`: by method and parameters, for what it does not do as it should.
    pub fn start(is_stream: bool, decide: impl Fn(&str, &Value) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let state = Arc::new(State {
            heard: Mutex::default(),
            faults: Mutex::default(),
            is_stream,
            has_session: AtomicBool::new(false),
            decide: Box::new(decide),
            arrived: tokio::sync::Notify::new(),
        });
        let data = Data::from(state.clone());
        let (url, handle) = serve(move |config| {
            config.app_data(data.clone()).default_service(web::to(take));
        });
        McpServer {
            url: format!("{url}/mcp"),
            state,
            handle,
        }
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.state.heard.lock().unwrap().clone()
    }

    /// What its client waited for, in order: each is a round trip.
    pub fn round_trips(&self) -> Vec<String> {
        let heard = self.heard().into_iter().map(|heard| heard.method);
        heard
            .filter(|method| !matches!(method.as_str(), "DELETE" | "reply" | "notifications/cancelled"))
            .collect()
    }

    /// Waits until that many requests of that method have come.
    pub async fn arrived(&self, method: &str, count: usize) {
        loop {
            let arrived = self.state.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if self.heard().iter().filter(|heard| heard.method == method).count() >= count {
                return;
            }
            arrived.await;
        }
    }
}

impl Drop for McpServer {
    /// Whatever a scenario is about, what it was sent is as the protocol says.
    fn drop(&mut self) {
        let handle = self.handle.clone();
        actix_rt::spawn(async move { handle.stop(false).await });
        let faults = std::mem::take(&mut *self.state.faults.lock().unwrap());
        assert!(std::thread::panicking() || faults.is_empty(), "{faults:?}");
    }
}

const SESSION: &str = "session-0815";

async fn take(request: HttpRequest, raw: Bytes, state: Data<State>) -> HttpResponse {
    let headers = request.headers().iter();
    let headers: BTreeMap<_, _> = headers
        .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()))
        .collect();
    let body: Value = serde_json::from_slice(&raw).unwrap_or_default();
    let is_reply = body.get("result").or(body.get("error")).is_some();
    let method = match body["method"].as_str() {
        Some(method) => method.to_owned(),
        None if is_reply => "reply".to_owned(),
        None => request.method().to_string(),
    };
    let session = state.has_session.load(SeqCst).then_some(SESSION);
    let faults = faults(&method, &headers, &body, session);
    state.faults.lock().unwrap().extend(faults);
    state.heard.lock().unwrap().push(Heard {
        method: method.clone(),
        headers,
        body: body.clone(),
    });
    state.arrived.notify_waiters();
    let reply = match (state.decide)(&method, &body["params"]) {
        Some(reply) => reply,
        None => match method.as_str() {
            "initialize" => Reply::Result(json!({ "protocolVersion": body["params"]["protocolVersion"],
                "capabilities": { "tools": {} }, "serverInfo": { "name": "world", "version": "1" } })),
            "tools/list" => Reply::Result(json!({ "tools": [tool()] })),
            "tools/call" => Reply::Result(json!({ "content": [{ "type": "text", "text": "{\"booked\":true}" }] })),
            "DELETE" => Reply::Status(200),
            _ => Reply::Status(202),
        },
    };
    answer(&state, &body["id"], &method, reply).await
}

/// What of a request is not as the protocol says.
fn faults(method: &str, headers: &BTreeMap<String, String>, body: &Value, session: Option<&str>) -> Vec<String> {
    let header = |name: &str| headers.get(name).map_or("", String::as_str);
    let mut faults = Vec::new();
    let mut expect = |is_well: bool, what: &str| {
        if !is_well {
            faults.push(format!("{method}: {what}: {headers:?} {body}"));
        }
    };
    if method != "DELETE" {
        expect(header("content-type") == "application/json", "content type");
        let accepts = header("accept");
        let both = accepts.contains("application/json") && accepts.contains("text/event-stream");
        expect(both, "accept");
        expect(body["jsonrpc"] == "2.0", "JSON-RPC");
    }
    match method {
        "initialize" => {
            let params = &body["params"];
            expect(headers.get("mcp-session-id").is_none(), "a session before there is one");
            expect(params["protocolVersion"] == "2025-11-25", "revision");
            expect(params["capabilities"] == json!({}), "capabilities");
            expect(params["clientInfo"]["name"] == "Callboard", "its name");
        }
        // To a question that came with the greeting, before its end.
        "reply" => {}
        _ => {
            expect(header("mcp-session-id") == session.unwrap_or_default(), "session");
        }
    }
    let is_request = matches!(method, "initialize" | "tools/list" | "tools/call");
    expect(body["id"].is_u64() == is_request || method == "reply", "id");
    faults
}

async fn answer(state: &State, id: &Value, method: &str, reply: Reply) -> HttpResponse {
    let message = match reply {
        Reply::Result(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Reply::Error(code, message) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
        Reply::Status(status) => {
            let mut response = HttpResponse::build(StatusCode::from_u16(status).unwrap());
            return response
                .insert_header(("location", "/elsewhere"))
                .body("a page for people");
        }
        Reply::Raw(content_type, body) => return HttpResponse::Ok().content_type(content_type).body(body),
        Reply::Stall(begun) => return events(pieces(&begun).chain(stream::pending())),
        Reply::Endless => return events(stream::repeat_with(|| Ok(Bytes::from_static(b": and on\n")))),
        Reply::Hang => return std::future::pending().await,
    };
    let session = (method == "initialize").then_some(("mcp-session-id", SESSION));
    let mut response = HttpResponse::Ok();
    if let Some(session) = session {
        response.insert_header(session);
        state.has_session.store(true, SeqCst);
    }
    if !state.is_stream {
        return response.json(message);
    }
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": 1 } });
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {} });
    let text = format!(
        ": hello\r\n\r\nid: 1\ndata:\n\ndata: {progress}\n\nevent: message\ndata: {question}\n\ndata: {message}\n\n"
    );
    let open = pieces(&text).chain(stream::pending());
    response.content_type("text/event-stream").streaming(open)
}

fn events(body: impl Stream<Item = Result<Bytes, Error>> + 'static) -> HttpResponse {
    HttpResponse::Ok().content_type("text/event-stream").streaming(body)
}

fn pieces(text: &str) -> impl Stream<Item = Result<Bytes, Error>> + 'static {
    let pieces: Vec<_> = text.as_bytes().chunks(5).map(Bytes::copy_from_slice).map(Ok).collect();
    stream::iter(pieces)
}
