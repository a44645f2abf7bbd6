//! Exports spans to a collector: OTLP over HTTP, as protobuf.
//!
//! On a thread of its own with a runtime of its own, so that a collector that hangs keeps nobody waiting. Spans are sent some at a
//! time; what cannot be sent after some tries is counted and forgotten, as is what the queue has no room for meanwhile.
mod message;
pub mod trace_header;

use crate::provider_http::{self, loggable, with_cause};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use prost::Message;
use reqwest::{Client, Response, StatusCode};
use runtime::tracer::{self, Intake, Span};
use std::time::Duration;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};
use url::Url;

/// Spans of one request.
const BATCH: usize = 512;
/// So long a span waits for others.
const LINGER: Duration = Duration::from_secs(2);
/// One request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Before the second and the third try.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// The longest that a collector may ask for instead.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Bytes of an answer that are read.
const ANSWER: usize = 16 * 1024;
/// Nobody looks at it: there is nothing to wait for but a span.
const IDLE: Duration = Duration::from_secs(3600);
const PATH: &str = "v1/traces";

/// Where spans are sent, and what goes with each request. Never printed: the headers may hold a key.
#[derive(Clone)]
pub struct Collector {
    url: Url,
    headers: HeaderMap,
}

impl Collector {
    /// `endpoint`: where a collector's OTLP over HTTP begins, such as `http://127.0.0.1:4318`. `headers`: `name=value` with commas
    /// between, percent-encoded, as OTEL_EXPORTER_OTLP_HEADERS has them. Fails in words for an operator, with the setting.
    pub fn new(endpoint: &str, headers: &str) -> Result<Self, (&'static str, String)> {
        let bad = |why| ("otlp_endpoint", why);
        let mut url = provider_http::base_url(endpoint, "http://127.0.0.1:4318").map_err(bad)?;
        let path = url.path().trim_end_matches('/');
        if !path.ends_with(PATH) {
            let path = format!("{path}/{PATH}");
            url.set_path(&path);
        }
        let headers = read_headers(headers).map_err(|why| ("otlp_headers", why))?;
        Ok(Collector { url, headers })
    }

    /// Is anybody there who takes spans? Sends none; answers the status. Fails in words for an operator.
    pub async fn greet(&self) -> Result<u16, String> {
        let answer = self.post(&client()?, message::body(&[], &[]).into()).await?;
        Ok(answer.status().as_u16())
    }

    async fn post(&self, client: &Client, body: Bytes) -> Result<Response, String> {
        let sent = client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .timeout(PATIENCE)
            .body(body)
            .send();
        sent.await.map_err(|error| with_cause(&error.without_url()))
    }
}

fn client() -> Result<Client, String> {
    provider_http::client(|builder| builder)
}

fn read_headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        // What stands there may be a key: it is not repeated.
        let bad = || "is not of the form name=value,name=value; write a comma in a value as %2C".to_owned();
        let (name, value) = part.split_once('=').ok_or_else(bad)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| bad())?;
        let mut value = HeaderValue::try_from(decoded(value.trim()).ok_or_else(bad)?).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Without percent-encoding.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                u8::from_str_radix(digits, 16).ok()?
            }
            byte => byte,
        });
    }
    Some(decoded)
}

/// Exports what comes in until the last tracer is gone. `resource` describes this process. Fails in words for an operator.
pub fn start(collector: Collector, resource: Vec<(&'static str, String)>, intake: Intake) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime can be made: {error}"))?;
    let mut exporter = Exporter {
        client: client()?,
        collector,
        resource,
        intake,
        failing: false,
    };
    let thread = std::thread::Builder::new().name("callboard-traces".into());
    let run = move || runtime.block_on(exporter.run());
    thread
        .spawn(run)
        .map(drop)
        .map_err(|error| format!("no thread can be made: {error}"))
}

type Done = oneshot::Sender<()>;

struct Exporter {
    client: Client,
    collector: Collector,
    resource: Vec<(&'static str, String)>,
    intake: Intake,
    /// The last request came to nothing: it was said, and is not said again.
    failing: bool,
}

impl Exporter {
    async fn run(&mut self) {
        let mut batch = Vec::new();
        while let Some(asked) = gather(&mut self.intake, &mut batch).await {
            let mut waiting: Vec<Done> = asked.into_iter().collect();
            loop {
                waiting.extend(self.export(std::mem::take(&mut batch)).await);
                // Who waits, waits for all that was there by then, and not for what comes meanwhile.
                if waiting.is_empty() || self.is_over() || !take_more(&mut self.intake.spans, &mut batch) {
                    break;
                }
            }
            // Whoever has stopped waiting has a process to end.
            for done in waiting {
                // Whoever waited may have gone.
                let _gone = done.send(());
            }
            if self.is_over() {
                break;
            }
        }
    }

    /// The service is gone, and the collector takes nothing: what is left would keep this thread for minutes.
    fn is_over(&self) -> bool {
        self.failing && self.intake.flushes.is_closed() && self.intake.flushes.is_empty()
    }

    /// Tries until they are taken or given up. Answers who has begun to wait for it meanwhile: then there is no time for pauses.
    async fn export(&mut self, spans: Vec<Span>) -> Option<Done> {
        if spans.is_empty() {
            return None;
        }
        let body = Bytes::from(message::body(&self.resource, &spans));
        let (mut asked, mut pauses) = (None, PAUSES.into_iter());
        let why = loop {
            let answer = self.collector.post(&self.client, body.clone()).await;
            let (why, wanted) = match answer {
                Ok(answer) if answer.status().is_success() => {
                    self.taken(answer).await;
                    return asked;
                }
                Ok(answer) => {
                    let why = format!("it answers {}", answer.status().as_u16());
                    if !may_pass(answer.status()) {
                        break why;
                    }
                    (why, retry_after(&answer))
                }
                Err(why) => (why, None),
            };
            let Some(pause) = pauses
                .next()
                .filter(|_| asked.is_none() && !self.intake.flushes.is_closed())
            else {
                break why;
            };
            if let Ok(done) = timeout(wanted.unwrap_or(pause), self.intake.flushes.recv()).await {
                asked = done;
            }
        };
        tracer::count_dropped("not_exported", spans.len() as u64);
        if !std::mem::replace(&mut self.failing, true) {
            let why = loggable(&why, None);
            tracing::warn!(%why, "the collector does not take traces (otlp_endpoint): they are dropped until it does");
        }
        asked
    }

    async fn taken(&mut self, answer: Response) {
        if std::mem::take(&mut self.failing) {
            tracing::info!("the collector takes traces again");
        }
        // An answer that does not come, or cannot be read, has still taken them.
        let Ok(Some(body)) = timeout(PATIENCE, read(answer)).await else {
            return;
        };
        let refused = message::Response::decode(body.as_slice())
            .ok()
            .and_then(|answer| answer.partial_success)
            .map_or(0, |partial| u64::try_from(partial.rejected_spans).unwrap_or(0));
        if refused > 0 {
            tracer::count_dropped("refused", refused.min(BATCH as u64));
        }
    }
}

/// The beginning of a batch, and what comes soon after it; or all that is there, if somebody asks for it. `None`: all tracers are gone.
async fn gather(intake: &mut Intake, batch: &mut Vec<Span>) -> Option<Option<Done>> {
    let mut until = Instant::now() + IDLE;
    while batch.len() < BATCH {
        let (begins, room) = (batch.is_empty(), BATCH - batch.len());
        let received = tokio::select! {
            biased;
            Some(done) = intake.flushes.recv() => {
                take_more(&mut intake.spans, batch);
                return Some(Some(done));
            }
            received = timeout_at(until, intake.spans.recv_many(batch, room)) => received,
        };
        match received {
            Ok(0) if begins => return None,
            // The rest of them.
            Ok(0) => break,
            Ok(_) if begins => until = Instant::now() + LINGER,
            Ok(_) => {}
            Err(_) if begins => until = Instant::now() + IDLE,
            Err(_) => break,
        }
    }
    Some(None)
}

/// What is there already. Answers whether there is any.
fn take_more(spans: &mut mpsc::Receiver<Span>, batch: &mut Vec<Span>) -> bool {
    while batch.len() < BATCH
        && let Ok(span) = spans.try_recv()
    {
        batch.push(span);
    }
    !batch.is_empty()
}

/// Source: OTLP specification, "Retryable Response Codes".
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

fn retry_after(answer: &Response) -> Option<Duration> {
    let text = answer.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    let seconds = text.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}

/// `None`: it is longer than an answer to spans can be, or broke off.
async fn read(mut answer: Response) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.ok()? {
        if body.len() + piece.len() > ANSWER {
            return None;
        }
        body.extend_from_slice(&piece);
    }
    Some(body)
}

#[cfg(test)]
mod tests;
