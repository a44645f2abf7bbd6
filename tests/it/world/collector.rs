//! A real local collector of traces: takes what any collector takes, and reads it with OpenTelemetry's own definitions, not with ours.
use super::http_server::serve;
use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{self, Bytes, Data},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value as Any},
};
use prost::Message;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// One span as it arrived; ids in hexadecimal.
#[derive(Clone, Debug)]
pub struct Span {
    pub trace_id: String,
    pub span_id: String,
    /// Empty: it is the first of its trace.
    pub parent: String,
    pub name: String,
    pub kind: i32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub attributes: BTreeMap<String, String>,
    pub error: Option<String>,
    /// Of the process that sent it.
    pub resource: BTreeMap<String, String>,
    /// Of the request that it came with.
    pub headers: BTreeMap<String, String>,
}

/// How it answers.
#[derive(Clone, Copy)]
pub enum Reply {
    Status(u16),
    /// Not at all, until the client goes.
    Hang,
}

struct State {
    spans: Mutex<Vec<Span>>,
    reply: Mutex<Reply>,
    asked: Mutex<usize>,
    arrived: tokio::sync::Notify,
}

pub struct Collector {
    pub url: String,
    state: Arc<State>,
    handle: actix_web::dev::ServerHandle,
}

impl Collector {
    pub fn start() -> Self {
        let state = Arc::new(State {
            spans: Mutex::default(),
            reply: Mutex::new(Reply::Status(200)),
            asked: Mutex::default(),
            arrived: tokio::sync::Notify::new(),
        });
        let data = Data::from(state.clone());
        let (url, handle) = serve(move |config| {
            let payloads = web::PayloadConfig::new(16 * 1024 * 1024);
            config
                .app_data(data.clone())
                .app_data(payloads)
                .route("/v1/traces", web::post().to(take));
        });
        Collector { url, state, handle }
    }

    pub fn reply(&self, reply: Reply) {
        *self.state.reply.lock().unwrap() = reply;
    }

    /// Requests so far, whatever they were answered.
    pub fn asked(&self) -> usize {
        *self.state.asked.lock().unwrap()
    }

    pub fn spans(&self) -> Vec<Span> {
        self.state.spans.lock().unwrap().clone()
    }

    /// Waits until what has arrived is so.
    pub async fn until(&self, is_so: impl Fn(&[Span]) -> bool) {
        self.wait(|| is_so(&self.spans())).await;
    }

    /// Waits until it was asked so often.
    pub async fn until_asked(&self, times: usize) {
        self.wait(|| self.asked() >= times).await;
    }

    async fn wait(&self, is_so: impl Fn() -> bool) {
        loop {
            let arrived = self.state.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if is_so() {
                return;
            }
            arrived.await;
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let handle = self.handle.clone();
        actix_rt::spawn(async move { handle.stop(false).await });
    }
}

async fn take(request: HttpRequest, raw: Bytes, state: Data<State>) -> HttpResponse {
    let reply = *state.reply.lock().unwrap();
    if matches!(reply, Reply::Status(200)) {
        let headers = request
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        let headers: BTreeMap<String, String> = headers.collect();
        assert_eq!(headers["content-type"], "application/x-protobuf");
        let export = ExportTraceServiceRequest::decode(raw).unwrap();
        state.spans.lock().unwrap().extend(read(export, &headers));
    }
    *state.asked.lock().unwrap() += 1;
    state.arrived.notify_waiters();
    match reply {
        Reply::Status(status) => HttpResponse::build(StatusCode::from_u16(status).unwrap()).finish(),
        Reply::Hang => std::future::pending().await,
    }
}

fn read(export: ExportTraceServiceRequest, headers: &BTreeMap<String, String>) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_process in export.resource_spans {
        let resource = attributes(of_process.resource.unwrap_or_default().attributes);
        for span in of_process.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8), "{span:?}");
            spans.push(Span {
                trace_id: hex(&span.trace_id),
                span_id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                name: span.name,
                kind: span.kind,
                start_ns: span.start_time_unix_nano,
                end_ns: span.end_time_unix_nano,
                attributes: attributes(span.attributes),
                error: span
                    .status
                    .filter(|status| status.code == 2)
                    .map(|status| status.message),
                resource: resource.clone(),
                headers: headers.clone(),
            });
        }
    }
    spans
}

fn attributes(all: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Any| match value {
        Any::StringValue(text) => text,
        Any::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let read = |pair: KeyValue| (pair.key, text(pair.value.unwrap().value.unwrap()));
    all.into_iter().map(read).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
