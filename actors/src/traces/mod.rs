//! What is told of calls to a collector of traces: one trace per call, from the request that made it to the last webhook.
//!
//! Nothing is kept open meanwhile: a span is made when what it tells of is over, with the beginning that the rows know. Whoever knows a
//! session knows its trace: its id is that of the session, and so is the second half of the span of the call. Only where a request was
//! traced by whoever sent it is the trace another one, and then the session's row says which.
pub mod call;
mod contexts;

use contexts::Contexts;
use entities::{
    Result,
    connection::Connection,
    event,
    ids::{SessionId, TenantScoped},
    room, session,
    values::TraceContext,
};
use rules::session::machine::{Phase, Session};
use runtime::{
    ids::Ids,
    tracer::{Place, Span, Tracer, span_id},
};
use serde::Deserialize;
use std::time::Duration;
use uuid::Uuid;

/// So long a delivery may wait to be told of which trace it is a part.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Default)]
pub struct Traces {
    pub tracer: Tracer,
    contexts: Contexts,
    /// What requests have begun: the calls of campaigns, which are many, do not push it out.
    begun: Contexts,
}

impl Traces {
    pub fn new(tracer: Tracer) -> Self {
        Traces {
            tracer,
            contexts: Contexts::default(),
            begun: Contexts::default(),
        }
    }

    pub fn is_on(&self) -> bool {
        self.tracer.is_on()
    }

    /// A request makes something, or starts it: that is a part of the request's trace.
    pub fn begin(&self, request: RequestTrace, id: Uuid) -> TraceContext {
        let context = request.context_of(id);
        self.begun.remember(id, Some(context));
        context
    }

    /// Where something itself stands, be it a part of a request's trace or of its own.
    fn place(&self, id: Uuid, context: Option<TraceContext>) -> Place {
        context.map_or_else(
            || Place {
                trace_id: id.as_u128(),
                parent: None,
                sampled: self.tracer.samples(id),
            },
            Place::under,
        )
    }

    /// Where that stands of which a call is a part. `None`: nothing is traced.
    pub fn in_call(&self, call: &session::Model) -> Option<Place> {
        self.below(call, call::of_call(call))
    }

    /// The same of its talk.
    pub fn in_talk(&self, call: &session::Model) -> Option<Place> {
        self.below(call, call::of_talk(call))
    }

    fn below(&self, call: &session::Model, span: u64) -> Option<Place> {
        let place = || self.place(call.id.0, call.options.trace);
        self.is_on().then(|| Place::under(place().context(span)))
    }

    /// A message's, as far as is known here. Its own span has its id.
    pub fn of_message(&self, id: Uuid) -> Option<Place> {
        self.is_on().then(|| self.place(id, self.begun.of(id).flatten()))
    }

    /// A session was committed: how it began is remembered, and once it has ended it is told of.
    pub fn committed(&self, before: &Session, session: &Session, ids: &Ids) {
        if !self.is_on() {
            return;
        }
        let call = &session.call;
        self.contexts.remember(call.id.0, call.options.trace);
        let is_over = |session: &Session| matches!(session.phase, Phase::Ended(_));
        if is_over(before) || !is_over(session) {
            return;
        }
        let place = self.place(call.id.0, call.options.trace);
        if place.sampled {
            self.record(call::spans(&session.row(), place, || ids.next()));
        }
    }

    pub fn record(&self, spans: impl IntoIterator<Item = Span>) {
        spans.into_iter().for_each(|span| self.tracer.record(span));
    }

    /// Where the deliveries of an event stand. What cannot be found out in time begins a trace of its own.
    pub async fn of_event(&self, db: &Connection, event: &event::Model) -> Option<Place> {
        if !self.is_on() {
            return None;
        }
        let about = tokio::time::timeout(LOOK, self.about(db, event)).await;
        Some(match about.unwrap_or(Ok(About::Itself)).unwrap_or(About::Itself) {
            About::Session(id, context) => Place::under(self.place(id, context).context(span_id(id))),
            About::Request(context) => Place::under(context),
            About::Itself => self.place(event.id.0, None),
        })
    }

    async fn about(&self, db: &Connection, event: &event::Model) -> Result<About> {
        let key = |id| TenantScoped::new(event.tenant_id, event.env, SessionId(id));
        // Only these two are read of what may be long.
        let named = serde_json::from_str::<Envelope>(&event.body).unwrap_or_default().data;
        let session = match named.session_id.or(named.delivery_row_id) {
            None if event.event_type.starts_with("room.") => {
                let key = TenantScoped::new(event.tenant_id, event.env, event.subject_id.into());
                Some(room::load(db, key).await?.session_id.0)
            }
            named => named,
        };
        Ok(match session {
            Some(id) => About::Session(id, self.context(db, key(id)).await?),
            // A campaign is too long for one trace: only what is told of it itself belongs to the request that has started it.
            None => match self.begun.of(event.subject_id).flatten() {
                Some(context) => About::Request(context),
                None => About::Itself,
            },
        })
    }

    /// The request's trace of which a session is a part; a message is none, and is only remembered.
    async fn context(&self, db: &Connection, key: TenantScoped<SessionId>) -> Result<Option<TraceContext>> {
        if let Some(known) = self.contexts.of(key.id.0).or_else(|| self.begun.of(key.id.0)) {
            return Ok(known);
        }
        let found = session::trace(db, key).await?;
        self.contexts.remember(key.id.0, found);
        Ok(found)
    }
}

/// The span of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTrace {
    pub context: TraceContext,
    /// Its trace was begun by whoever sent it; else it is that of what it makes.
    pub has_parent: bool,
}

impl RequestTrace {
    /// The same span, in the trace of what the request has made.
    pub fn context_of(self, id: Uuid) -> TraceContext {
        TraceContext {
            trace_id: if self.has_parent {
                self.context.trace_id
            } else {
                id.as_u128()
            },
            ..self.context
        }
    }
}

/// What an event is about, for its trace.
enum About {
    /// A session or a message, with its request's trace.
    Session(Uuid, Option<TraceContext>),
    Request(TraceContext),
    Itself,
}

#[derive(Default, Deserialize)]
struct Envelope {
    data: Named,
}

#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    session_id: Option<Uuid>,
    /// Of a contact: the session, SMS or e-mail.
    #[serde(default)]
    delivery_row_id: Option<Uuid>,
}
