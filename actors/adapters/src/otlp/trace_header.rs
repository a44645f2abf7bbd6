//! What a request to somebody else's server says of the trace that it is a part of. Source: W3C Trace Context, `traceparent`.
use entities::values::TraceContext;
use http::{HeaderMap, HeaderValue};

pub const TRACEPARENT: &str = "traceparent";

/// In place of whatever stood there: a header that is always the same belongs to no trace. No `tracestate` goes with it, and no
/// baggage: what strangers have said is not handed on.
pub fn add(headers: &mut HeaderMap, context: TraceContext) {
    if let Ok(value) = HeaderValue::try_from(context.to_string()) {
        headers.insert(TRACEPARENT, value);
    }
}
