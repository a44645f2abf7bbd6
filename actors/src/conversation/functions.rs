//! Calls an agent's function through the one guarded client: one signed HTTP request, or one call of an MCP server's tool. Never a
//! second one.
use crate::deps::Deps;
use adapters::{
    mcp_client::{self, Fault},
    otlp::trace_header,
    outbound::Ask,
    signature,
};
use bytes::Bytes;
use entities::{
    Error, Result,
    function::{McpTool, Method, Model as Function},
    session,
    transcript::InvocationStatus,
    values::TraceContext,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use rules::delivery::failure::Failure;
use runtime::{
    keyring::purpose,
    tracer::{Span, SpanKind, span_id},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use url::Url;

/// Bytes of an answer; a larger one is a failure.
pub const ANSWER_LIMIT: usize = 64 * 1024;

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Invoked {
    pub status: InvocationStatus,
    /// The HTTP status; 0 when no answer came.
    pub http_status: u16,
    /// What the agent is told: the answer, or what went wrong. JSON.
    pub output: Value,
    pub duration_ms: i64,
}

/// For whom it is called.
#[derive(Clone, Copy, Debug)]
pub enum Occasion<'a> {
    Talk(&'a session::Model),
    /// `POST /v1/functions/{id}/test`.
    Test,
}

pub async fn invoke(deps: &Deps, function: &Function, arguments: &Value, occasion: Occasion<'_>) -> Result<Invoked> {
    let definition = &function.definition;
    let bad_url = |error| Error::Internal(format!("a stored URL is not valid: {error}"));
    let url = Url::parse(definition.url.as_str()).map_err(bad_url)?;
    let place = match occasion {
        Occasion::Talk(call) => deps.traces.in_talk(call),
        Occasion::Test => None,
    };
    let id: uuid::Uuid = deps.ids.next();
    let timeout = Duration::from_millis(u64::try_from(definition.timeout_ms.get()).unwrap_or(0));
    let began = deps.clock.now();
    let invoked = match time_left(deps, function, timeout).await? {
        Some(timeout) => {
            let asked = Asked {
                id,
                url: &url,
                timeout,
                context: place.as_ref().map(|place| place.context(span_id(id))),
            };
            match &definition.mcp {
                Some(mcp) => call_tool(deps, function, mcp, arguments, asked).await?,
                None => request(deps, function, arguments, occasion, asked).await?,
            }
        }
        None => Invoked {
            status: InvocationStatus::TimedOut,
            http_status: 0,
            output: timed_out(),
            duration_ms: i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX),
        },
    };
    if let Some(place) = place {
        let took = Duration::from_millis(u64::try_from(invoked.duration_ms).unwrap_or(0));
        let span = place.span(span_id(id), "function", began, took);
        deps.traces
            .record([told(span, function, invoked.status, invoked.http_status)]);
    }
    Ok(invoked)
}

/// What is left of its time once it is known that this process may call it. `None`: the database is away for longer than the talk
/// waits for a function.
async fn time_left(deps: &Deps, function: &Function, timeout: Duration) -> Result<Option<Duration>> {
    let begun = Instant::now();
    match tokio::time::timeout(timeout, deps.pass(function.tenant_id)).await {
        Ok(passed) => passed.map(|()| Some(timeout.saturating_sub(begun.elapsed()))),
        Err(_) => Ok(None),
    }
}

/// What is asked of whoever answers, whatever it speaks.
struct Asked<'a> {
    id: uuid::Uuid,
    url: &'a Url,
    timeout: Duration,
    /// The span that it is in.
    context: Option<TraceContext>,
}

/// A tool of an MCP server. It is told the arguments alone: the server may be anybody's, and who is on the line is not its business.
async fn call_tool(
    deps: &Deps,
    function: &Function,
    mcp: &McpTool,
    arguments: &Value,
    asked: Asked<'_>,
) -> Result<Invoked> {
    let mut headers = HeaderMap::new();
    add(&mut headers, own_headers(deps, function)?);
    if let Some(context) = asked.context {
        trace_header::add(&mut headers, context);
    }
    let server = mcp_client::Server {
        tenant: function.tenant_id,
        url: asked.url,
        headers: &headers,
    };
    let called = mcp_client::call(
        &deps.outbound,
        server,
        &mcp.tool,
        arguments,
        asked.timeout,
        ANSWER_LIMIT,
    )
    .await;
    let (status, output) = match called.outcome {
        Ok(output) => (InvocationStatus::Succeeded, output),
        Err(Fault::Failed(Failure::Timeout)) => (InvocationStatus::TimedOut, timed_out()),
        Err(fault) => (InvocationStatus::Failed, failed(&fault.to_string())),
    };
    Ok(Invoked {
        status,
        http_status: called.http_status,
        output,
        duration_ms: i64::try_from(called.took.as_millis()).unwrap_or(i64::MAX),
    })
}

/// A request to the user's own server.
async fn request(
    deps: &Deps,
    function: &Function,
    arguments: &Value,
    occasion: Occasion<'_>,
    asked: Asked<'_>,
) -> Result<Invoked> {
    let body = body(asked.id, function, arguments, occasion);
    let mut headers = headers(deps, function, asked.id, body.as_bytes())?;
    if let Some(context) = asked.context {
        trace_header::add(&mut headers, context);
    }
    let exchange = deps
        .outbound
        .send(Ask {
            method: match function.definition.method {
                Method::Post => http::Method::POST,
                Method::Put => http::Method::PUT,
                Method::Patch => http::Method::PATCH,
            },
            url: asked.url,
            headers,
            body: Bytes::from(body),
            timeout: asked.timeout,
            keep: ANSWER_LIMIT + 1,
        })
        .await;
    let duration_ms = i64::try_from(exchange.timings.total_us / 1000).unwrap_or(i64::MAX);
    let (status, http_status, output) = match exchange.outcome {
        Ok(code @ 200..=299) => match answer(&exchange.body) {
            Ok(output) => (InvocationStatus::Succeeded, code, output),
            Err(why) => (InvocationStatus::Failed, code, failed(why)),
        },
        Ok(code) => (
            InvocationStatus::Failed,
            code,
            failed(&format!("the function answered {code}")),
        ),
        Err(Failure::Timeout) => (InvocationStatus::TimedOut, 0, timed_out()),
        Err(failure) => (InvocationStatus::Failed, 0, failed(failure.code())),
    };
    Ok(Invoked {
        status,
        http_status,
        output,
        duration_ms,
    })
}

/// Neither what it was asked nor what it has answered.
fn told(mut span: Span, function: &Function, status: InvocationStatus, http_status: u16) -> Span {
    span.kind = SpanKind::Client;
    span.attributes = vec![
        ("callboard.function_id", function.id.to_string().into()),
        ("callboard.function_name", function.name.clone().into()),
    ];
    if http_status != 0 {
        let status = i32::from(http_status);
        span.attributes.push(("http.response.status_code", status.into()));
    }
    span.error = match status {
        InvocationStatus::Succeeded => None,
        InvocationStatus::Failed => Some("failed".into()),
        InvocationStatus::TimedOut => Some("timed_out".into()),
        InvocationStatus::Canceled => Some("canceled".into()),
    };
    span
}

/// What an agent is told of a function that takes too long.
pub fn timed_out() -> Value {
    json!({ "error": "timed_out", "message": "the function has not answered yet; go on without it" })
}

pub fn failed(why: &str) -> Value {
    json!({ "error": "failed", "message": why })
}

fn body(id: uuid::Uuid, function: &Function, arguments: &Value, occasion: Occasion<'_>) -> String {
    let session = match occasion {
        Occasion::Talk(call) => json!({
            "id": call.id,
            "direction": call.direction,
            "from_number": call.from_number,
            "to_number": call.to_number,
            "agent_id": call.agent_id,
            "campaign_id": call.campaign_id,
            "contact_id": call.contact_id,
            "client_reference_id": call.client_reference_id,
            "variables": call.variables,
            "metadata": call.metadata,
        }),
        Occasion::Test => Value::Null,
    };
    json!({ "id": id, "function": function.name, "function_id": function.id, "arguments": arguments, "session": session })
        .to_string()
}

/// The user's own, then ours over them: signed like webhooks, under names of their own.
fn headers(deps: &Deps, function: &Function, id: uuid::Uuid, body: &[u8]) -> Result<HeaderMap> {
    let secret = deps.keyring.open(purpose::FUNCTION_SECRET, &function.sealed_secret)?;
    let timestamp = deps.clock.unix_seconds();
    let ours = [
        ("content-type", "application/json".to_owned()),
        ("x-function-id", id.to_string()),
        ("x-function-timestamp", timestamp.to_string()),
        ("x-function-signature", signature::sign(&secret, timestamp, body)),
    ];
    let mut headers = HeaderMap::new();
    add(&mut headers, own_headers(deps, function)?);
    add(&mut headers, ours.map(|(name, value)| (name.to_owned(), value)));
    Ok(headers)
}

/// Those that the user has set.
fn own_headers(deps: &Deps, function: &Function) -> Result<BTreeMap<String, String>> {
    let sealed = deps.keyring.open(purpose::FUNCTION_HEADERS, &function.sealed_headers)?;
    Ok(serde_json::from_str(&sealed).unwrap_or_default())
}

fn add(headers: &mut HeaderMap, more: impl IntoIterator<Item = (String, String)>) {
    for (name, value) in more {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
}

/// JSON as it is; anything else as a text.
fn answer(body: &[u8]) -> Result<Value, &'static str> {
    if body.len() > ANSWER_LIMIT {
        return Err("the answer is larger than 64 KiB");
    }
    if body.is_empty() {
        return Ok(Value::Null);
    }
    let text = std::str::from_utf8(body).map_err(|_| "the answer is not text")?;
    Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
}
