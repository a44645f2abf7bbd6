//! Requests to the API in traces: the span of each, and what it hands down to what it makes.
//!
//! A stranger's `traceparent` says in which trace a request is, and that is all that is taken from it. Whether it is recorded the
//! operator decides by the ratio, for each request by an id of ours; whoever asked may only say that it is not.
use super::caller::Caller;
use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::{Payload, ServiceRequest, ServiceResponse},
};
use actors::{deps::Deps, traces::RequestTrace};
use adapters::otlp::trace_header::TRACEPARENT;
use entities::values::{Moment, TraceContext};
use runtime::tracer::{Place, SpanKind, span_id};
use std::{
    cell::Cell,
    convert::Infallible,
    future::{Ready, ready},
    rc::Rc,
    time::Duration,
};
use uuid::Uuid;

/// The trace of a request, for its handler. Off, or for what is not of the API, there is none.
#[derive(Clone, Default)]
pub struct Traced(Option<Rc<Begun>>);

struct Begun {
    began: Moment,
    trace: Cell<RequestTrace>,
    /// The span of whoever sent it.
    parent: Option<u64>,
}

impl Traced {
    /// A request comes in, from another node or from outside. `None`: it is not traced.
    pub fn begin(deps: &Deps, request: &ServiceRequest, is_handed_on: bool) -> Option<Self> {
        if !deps.traces.is_on() || !request.path().starts_with("/v1/") {
            return None;
        }
        let id: Uuid = deps.ids.next();
        let sender = sender(request.request());
        let sampled = match sender {
            // The node that was asked has decided.
            Some(sender) if is_handed_on => sender.sampled,
            Some(sender) => sender.sampled && deps.traces.tracer.samples(id),
            None => deps.traces.tracer.samples(id),
        };
        let context = TraceContext {
            trace_id: sender.map_or(id.as_u128(), |sender| sender.trace_id),
            span_id: span_id(id),
            sampled,
        };
        let traced = Traced(Some(Rc::new(Begun {
            began: deps.clock.now(),
            trace: Cell::new(RequestTrace {
                context,
                has_parent: sender.is_some(),
            }),
            parent: sender.map(|sender| sender.span_id),
        })));
        request.extensions_mut().insert(traced.clone());
        Some(traced)
    }

    /// For what the request makes.
    pub fn trace(&self) -> Option<RequestTrace> {
        self.0.as_ref().map(|begun| begun.trace.get())
    }

    /// It has made a call: unless somebody else has begun the trace, it is the call's.
    pub fn made(&self, id: impl Into<Uuid>) {
        if let Some(begun) = &self.0 {
            let trace = begun.trace.get();
            let context = trace.context_of(id.into());
            begun.trace.set(RequestTrace { context, ..trace });
        }
    }

    /// It is about to make or to start something of that id, of whose trace it is the beginning.
    pub fn makes(&self, deps: &Deps, id: impl Into<Uuid>) {
        if let Some(trace) = self.trace() {
            let id = id.into();
            deps.traces.begin(trace, id);
            self.made(id);
        }
    }

    /// It was answered.
    pub fn end<B>(
        self,
        deps: &Deps,
        (method, route): (&'static str, &str),
        response: &ServiceResponse<B>,
        took: Duration,
    ) {
        let Some(begun) = self.0 else { return };
        let (context, status) = (begun.trace.get().context, response.status());
        // Strangers, and whoever asks too often, take no room from what there is to see.
        let is_turned_away = matches!(status.as_u16(), 401 | 429) || route.is_empty();
        if !context.sampled || is_turned_away {
            return;
        }
        let place = Place {
            trace_id: context.trace_id,
            parent: begun.parent,
            sampled: true,
        };
        let mut span = place.span(context.span_id, "", begun.began, took);
        span.name = format!("{method} {route}").into();
        span.kind = SpanKind::Server;
        span.attributes = vec![
            ("http.request.method", method.into()),
            ("http.route", route.to_owned().into()),
            ("http.response.status_code", i32::from(status.as_u16()).into()),
        ];
        if let Some(caller) = response.request().extensions().get::<Caller>() {
            let tenant = caller.tenant_id().to_string();
            span.attributes.push(("callboard.tenant_id", tenant.into()));
            span.attributes.push(("callboard.env", caller.env().as_str().into()));
        }
        span.error = status.is_server_error().then(|| status.as_str().to_owned().into());
        deps.traces.record([span]);
    }
}

/// What its one `traceparent` says; of several nobody knows which one counts.
fn sender(request: &HttpRequest) -> Option<TraceContext> {
    let mut values = request.headers().get_all(TRACEPARENT);
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()?.trim().parse().ok()
}

impl FromRequest for Traced {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;
    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(of(request)))
    }
}

/// That of a request; none, if it is not traced.
pub fn of(request: &HttpRequest) -> Traced {
    request.extensions().get::<Traced>().cloned().unwrap_or_default()
}
