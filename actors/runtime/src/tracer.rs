//! Traces, of whatever product: spans are made where the facts are known, with their beginning and their end, and put into a queue. Who
//! takes them from there has a thread of its own; nobody waits for it. What the queue has no room for is counted and forgotten.
use entities::values::{Moment, TraceContext};
use std::{borrow::Cow, sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

/// Spans that wait to be exported: some megabytes, and at 512 a request some seconds of a busy service.
const WAITING: usize = 8_192;
/// Those who wait for all of them to be exported.
const FLUSHES: usize = 8;

/// What has happened, from its beginning to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Its own.
    pub context: TraceContext,
    /// `None`: it is the first of its trace.
    pub parent: Option<u64>,
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    pub began: Moment,
    pub took: Duration,
    pub attributes: Vec<(&'static str, Attribute)>,
    /// In one word, why it came to nothing.
    pub error: Option<Cow<'static, str>>,
}

/// Source: OpenTelemetry, "SpanKind".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// We were asked.
    Server,
    /// We have asked somebody.
    Client,
}

/// Never a person's name, address or number, nor what was said.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    Text(Cow<'static, str>),
    Whole(i64),
}

impl From<&'static str> for Attribute {
    fn from(text: &'static str) -> Self {
        Attribute::Text(Cow::Borrowed(text))
    }
}
impl From<String> for Attribute {
    fn from(text: String) -> Self {
        Attribute::Text(Cow::Owned(text))
    }
}
impl From<i32> for Attribute {
    fn from(number: i32) -> Self {
        Attribute::Whole(number.into())
    }
}

/// Where a new span belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub trace_id: u128,
    pub parent: Option<u64>,
    pub sampled: bool,
}

impl Place {
    /// Below that span.
    pub fn under(context: TraceContext) -> Self {
        Place {
            trace_id: context.trace_id,
            parent: Some(context.span_id),
            sampled: context.sampled,
        }
    }

    /// A span of that id here.
    pub fn context(self, span_id: u64) -> TraceContext {
        TraceContext {
            trace_id: self.trace_id,
            span_id,
            sampled: self.sampled,
        }
    }

    /// A span that begins and ends here; whoever needs its id takes one of [`span_id`].
    pub fn span(self, span_id: u64, name: &'static str, began: Moment, took: Duration) -> Span {
        Span {
            context: self.context(span_id),
            parent: self.parent,
            name: Cow::Borrowed(name),
            kind: SpanKind::Internal,
            began,
            took,
            attributes: Vec::new(),
            error: None,
        }
    }
}

/// The span that stands for something with that id: the half of a UUID that is chance, and by its variant never zero.
pub fn span_id(id: Uuid) -> u64 {
    id.as_u64_pair().1
}

/// Where spans go. The default is off: it keeps nothing. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Queue>>);

struct Queue {
    spans: mpsc::Sender<Span>,
    flushes: mpsc::Sender<oneshot::Sender<()>>,
    /// Of 2⁵⁶ traces so many are sampled.
    share: u64,
}

/// The other end, for who exports them. It ends with the last tracer.
pub struct Intake {
    pub spans: mpsc::Receiver<Span>,
    /// Somebody waits until all that was handed in before is exported.
    pub flushes: mpsc::Receiver<oneshot::Sender<()>>,
}

const RANDOM_BITS: u32 = 56;

impl Tracer {
    /// `ratio`: how many of all traces are sampled, 0 to 1.
    pub fn on(ratio: f64) -> (Self, Intake) {
        let (spans, spans_taken) = mpsc::channel(WAITING);
        let (flushes, flushes_taken) = mpsc::channel(FLUSHES);
        let share = (ratio.clamp(0.0, 1.0) * (1_u64 << RANDOM_BITS) as f64) as u64;
        let intake = Intake {
            spans: spans_taken,
            flushes: flushes_taken,
        };
        (Tracer(Some(Arc::new(Queue { spans, flushes, share }))), intake)
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Is a trace sampled that begins with this id of ours? The same answer on every node and after a restart, for the same ratio: by
    /// the lowest 56 bits, which are chance. No id that a stranger has made up is ever asked about.
    pub fn samples(&self, id: Uuid) -> bool {
        let chance = span_id(id) & ((1 << RANDOM_BITS) - 1);
        self.0.as_ref().is_some_and(|queue| chance < queue.share)
    }

    /// Nothing, if its trace is not sampled. Never waits.
    pub fn record(&self, span: Span) {
        let Some(queue) = self.0.as_ref().filter(|_| span.context.sampled) else {
            return;
        };
        if queue.spans.try_send(span).is_err() {
            count_dropped("queue_full", 1);
        }
    }

    /// Resolves when all spans of before are exported or given up, or after `limit`.
    pub async fn flush(&self, limit: Duration) {
        let Some(queue) = &self.0 else { return };
        let (done, exported) = oneshot::channel();
        if queue.flushes.try_send(done).is_err() {
            return;
        }
        // Whatever is left then goes with the process.
        let _ = tokio::time::timeout(limit, exported).await;
    }
}

/// Spans that nobody will see.
pub fn count_dropped(reason: &'static str, spans: u64) {
    metrics::counter!("callboard_trace_spans_dropped_total", "reason" => reason).increment(spans);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(chance: u128) -> Uuid {
        Uuid::from_u128(0x0198_c2f4_7d3a_7c1e_8000_0000_0000_0000 | chance)
    }

    fn span(sampled: bool) -> Span {
        let place = Place {
            trace_id: 1,
            parent: None,
            sampled,
        };
        place.span(2, "x", Moment::from_millis(0), Duration::ZERO)
    }

    #[test]
    fn so_many_are_sampled_as_were_asked_for() {
        let (all, _intake) = Tracer::on(1.0);
        let (half, _intake) = Tracer::on(0.5);
        let (none, _intake) = Tracer::on(0.0);
        let most = (1 << RANDOM_BITS) - 1;
        for chance in [0, 1, most / 4, most] {
            assert!(all.samples(id(chance)) && !none.samples(id(chance)), "{chance}");
            assert_eq!(half.samples(id(chance)), chance < most / 2, "{chance}");
            assert!(!Tracer::default().samples(id(chance)));
        }
    }

    #[tokio::test]
    async fn what_is_not_sampled_goes_nowhere_and_what_has_no_room_does_not_wait() {
        let (tracer, mut intake) = Tracer::on(1.0);
        tracer.record(span(false));
        for _ in 0..WAITING + 1 {
            tracer.record(span(true));
        }
        drop(tracer);
        let mut taken = 0;
        while intake.spans.recv().await.is_some() {
            taken += 1;
        }
        assert_eq!(taken, WAITING);
    }

    #[tokio::test]
    async fn a_flush_ends_although_nobody_exports() {
        let (tracer, intake) = Tracer::on(1.0);
        tracer.flush(Duration::from_millis(1)).await;
        drop(intake);
        // At once: there is nobody to wait for.
        tracer.flush(Duration::from_secs(3600)).await;
        Tracer::default().flush(Duration::from_secs(3600)).await;
    }
}
