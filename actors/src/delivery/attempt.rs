//! One attempt: the signed POST and what is logged of it.
use crate::{deps::Deps, leases::Of};
use adapters::{otlp::trace_header, signature};
use bytes::Bytes;
use entities::{
    Error, Result, boxed,
    delivery::{Model as Delivery, Origin},
    delivery_attempt::ResponseHeaders,
    event,
    ids::{EndpointId, EventId},
    values::Moment,
    webhook_endpoint::{Headers, Model as Endpoint},
};
use futures_util::FutureExt;
use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use rules::{
    commit::Commit,
    delivery::{
        machine::{AttemptOutcome, Schedule, Verdict},
        report::Report,
    },
    event::{Event, WebhookTest},
};
use runtime::{
    bulkhead::Permit,
    keyring::purpose,
    supervise::{join_text, panic_text},
    tracer::{Place, Span, SpanKind, span_id},
};
use std::{panic::AssertUnwindSafe, time::Duration};
use url::Url;
use zeroize::Zeroizing;

/// An endpoint, ready to be posted to: parsed and unsealed once, not per delivery.
pub struct Target {
    url: Url,
    timeout: Duration,
    secret: Zeroizing<String>,
    /// The secret before the last rotation signs along until then.
    previous: Option<(Zeroizing<String>, Moment)>,
    headers: HeaderMap,
}

impl Target {
    pub fn of(deps: &Deps, endpoint: &Endpoint) -> Result<Self> {
        let corrupt = |column| Error::Corrupt {
            table: "webhook_endpoints",
            column,
            id: endpoint.id.to_string(),
        };
        let headers = deps.keyring.open(purpose::ENDPOINT_HEADERS, &endpoint.sealed_headers)?;
        let headers: Headers = serde_json::from_str(&headers).map_err(|_| corrupt("sealed_headers"))?;
        let mut own = HeaderMap::new();
        for (name, value) in &headers.0 {
            if let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                value.set_sensitive(true);
                own.insert(name, value);
            }
        }
        let previous = endpoint
            .sealed_previous_secret
            .as_ref()
            .zip(endpoint.previous_secret_expires_at)
            .map(|(sealed, until)| Ok::<_, Error>((deps.keyring.open(purpose::ENDPOINT_SECRET, sealed)?, until)));
        Ok(Target {
            url: Url::parse(endpoint.url.as_str()).map_err(|_| corrupt("url"))?,
            timeout: Duration::from_millis(u64::try_from(endpoint.timeout_ms).unwrap_or(15_000)),
            secret: deps.keyring.open(purpose::ENDPOINT_SECRET, &endpoint.sealed_secret)?,
            previous: previous.transpose()?,
            headers: own,
        })
    }

    /// Signed by the secret, and for as long as they overlap by the one before; and the user's own headers.
    fn sign(&self, event: &event::Model, origin: Origin, timestamp: i64, now: Moment) -> HeaderMap {
        let previous = self.previous.as_ref().filter(|(_, until)| now < *until);
        let message = signature::Message {
            id: &event.id.to_string(),
            event_type: &event.event_type,
            body: event.body.as_bytes(),
            is_replay: origin == Origin::Replay,
        };
        let mut headers = message.headers(timestamp, &self.secret, previous.map(|(secret, _)| secret.as_str()));
        headers.extend(self.headers.clone());
        headers
    }
}

/// The first 64 headers, 8 KiB together, a value cut at 1 KiB.
fn bounded(headers: &HeaderMap) -> ResponseHeaders {
    let mut room: usize = 8 * 1024;
    let texts = headers.iter().take(64).map(|(name, value)| {
        let value = without_nul(value.as_bytes());
        (name.to_string(), value.chars().take(1024).collect::<String>())
    });
    let fitting = texts.take_while(|(name, value)| {
        let size = name.len() + value.len();
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    ResponseHeaders(fitting.collect())
}

/// PostgreSQL's text holds no NUL.
fn without_nul(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

/// `Retry-After`, in seconds or as an HTTP date. What is neither, or past, asks for nothing.
fn retry_after(headers: &HeaderMap, now: Moment) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    date.duration_since(now.datetime().into()).ok()
}

/// Which attempt of which delivery.
#[derive(Clone, Copy)]
pub struct Which {
    pub endpoint: EndpointId,
    pub origin: Origin,
    /// 1 for the first.
    pub number: i32,
}

#[boxed]
pub async fn perform(deps: &Deps, target: &Target, event: &event::Model, which: Which) -> Report {
    let attempt = AssertUnwindSafe(post(deps, target, event, which)).catch_unwind().await;
    // One that panicked must not keep its place in the lane for ever.
    attempt.unwrap_or_else(|panic| {
        tracing::error!(panic = panic_text(&*panic), "an attempt to deliver panicked");
        Report::of_fault(deps.clock.now())
    })
}

async fn post(deps: &Deps, target: &Target, event: &event::Model, which: Which) -> Report {
    if deps.pass(event.tenant_id).await.is_err() {
        // The node that has the workspace sends it; nothing is noted of this one.
        return Report::of_fault(deps.clock.now());
    }
    let place = deps.traces.of_event(&deps.db.read, event).await;
    let traced = place.map(|place| (place, span_id(deps.ids.next())));
    let (started_at, signed_at) = (deps.clock.now(), deps.clock.unix_seconds());
    let mut headers = target.sign(event, which.origin, signed_at, started_at);
    if let Some((place, id)) = traced {
        trace_header::add(&mut headers, place.context(id));
    }
    let body = Bytes::copy_from_slice(event.body.as_bytes());
    let exchange = deps.outbound.post(&target.url, headers, body, target.timeout).await;
    let outcome = match exchange.outcome {
        Ok(status) => AttemptOutcome::Answered {
            status,
            retry_after: retry_after(&exchange.headers, deps.clock.now()),
        },
        Err(failure) => AttemptOutcome::Failed(failure),
    };
    metrics::histogram!("callboard_delivery_attempt_seconds").record(exchange.timings.total_us as f64 / 1e6);
    let result = match outcome.verdict() {
        Verdict::Delivered => "delivered",
        Verdict::TryAgain => "try_again",
        Verdict::Refused => "refused",
    };
    metrics::counter!("callboard_delivery_attempts_total", "result" => result).increment(1);
    let report = Report {
        outcome,
        started_at,
        signed_at,
        timings: exchange.timings,
        remote: exchange.remote,
        response_headers: bounded(&exchange.headers),
        response_body: (!exchange.body.is_empty()).then(|| without_nul(&exchange.body)),
    };
    if let Some((place, id)) = traced {
        deps.traces.record([span(place, id, event, which, &report)]);
    }
    report
}

/// Not the address: it may hold a key of the receiver's.
fn span(place: Place, id: u64, event: &event::Model, which: Which, report: &Report) -> Span {
    let took = Duration::from_micros(report.timings.total_us);
    let mut span = place.span(id, "webhook", report.started_at, took);
    span.kind = SpanKind::Client;
    span.attributes = vec![
        ("callboard.event_id", event.id.to_string().into()),
        ("callboard.event_type", event.event_type.clone().into()),
        ("callboard.tenant_id", event.tenant_id.to_string().into()),
        ("callboard.endpoint_id", which.endpoint.to_string().into()),
        ("callboard.delivery_attempt", which.number.into()),
    ];
    if let AttemptOutcome::Answered { status, .. } = report.outcome {
        let status = i32::from(status);
        span.attributes.push(("http.response.status_code", status.into()));
    }
    span.error = report.error_code().map(Into::into);
    span
}

/// A `webhook.test` event, sent once to this endpoint, whatever state it is in; logged, and counted nowhere.
///
/// It goes on to its end, `timeout_ms` at most, also when nobody waits for it any more: what was sent is logged. It holds its
/// permit for as long.
#[boxed]
pub async fn test(deps: &Deps, endpoint: &Endpoint, permit: Permit) -> Result<(Delivery, Report)> {
    let target = Target::of(deps, endpoint)?;
    let now = deps.clock.now();
    let test = WebhookTest {
        endpoint_id: endpoint.id,
        emitted_at: now,
    };
    let mut draft = Event::from(test).draft(endpoint.key());
    let id: EventId = deps.ids.next();
    draft.id = Some(id);
    let mut commit = Commit::default();
    commit.events.push(draft);
    let of = Of::from(endpoint.tenant_id);
    deps.writer.commit(of, commit).await?;
    let event = event::load(&deps.db.read, endpoint.tenant_id, endpoint.env, id).await?;

    let delivery = Delivery::new(deps.ids.next(), endpoint.id, &event, Origin::Test, now);
    // On the service's own threads: its connection may be kept for others.
    let testing = deps.runtime.spawn({
        let (deps, busy) = (deps.clone(), deps.clock.busy());
        async move {
            let (_permit, _busy) = (permit, busy);
            let which = Which {
                endpoint: delivery.endpoint_id,
                origin: Origin::Test,
                number: 1,
            };
            let report = perform(&deps, &target, &event, which).await;
            let delivery = log_test(&deps, of, delivery, &report).await?;
            Ok::<_, Error>((delivery, report))
        }
    });
    testing.await.map_err(|error| Error::Internal(join_text(error)))?
}

async fn log_test(deps: &Deps, of: Of, delivery: Delivery, report: &Report) -> Result<Delivery> {
    let attempt = rules::delivery::machine::Attempt {
        outcome: report.outcome.clone(),
        started_at: report.started_at,
        jitter: 0.0,
    };
    let delivery = rules::delivery::machine::attempted(delivery, &attempt, &Schedule::once(), deps.clock.now());
    let mut commit = Commit::default();
    commit.changes.attempts.push(report.log(&delivery));
    commit.changes.deliveries.push(delivery.clone());
    deps.writer.commit(of, commit).await?;
    Ok(delivery)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Moment::parse("2027-03-02T13:00:00Z").unwrap();
        for (text, expected) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Tue, 02 Mar 2027 13:02:00 GMT", Some(120)),
            ("Tue, 02 Mar 2027 12:00:00 GMT", None),
            ("soon", None),
            ("-5", None),
            ("1.5", None),
            ("99999999999999999999999", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn what_is_kept_of_the_answers_headers_is_bounded() {
        let mut headers = HeaderMap::new();
        for n in 0..200 {
            let name = HeaderName::try_from(format!("x-{n}")).unwrap();
            headers.insert(name, HeaderValue::try_from("v".repeat(3000)).unwrap());
        }
        let kept = bounded(&headers).0;
        assert!(kept.iter().all(|(_, value)| value.len() == 1024));
        assert_eq!(kept.len(), 7);
    }
}
