//! Events, and what becomes of them.
use crate::http::openapi::Envelope;
use entities::{
    delivery, delivery_attempt, endpoint_hour, event,
    ids::{DeliveryId, EndpointId, EventId, RecoveryId},
    recovery,
    values::{Env, Moment, WebhookUrl},
    webhook_endpoint,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize, JsonSchema)]
pub struct EndpointView {
    pub id: EndpointId,
    pub url: WebhookUrl,
    pub event_types: webhook_endpoint::Patterns,
    pub description: Option<String>,
    pub env: Env,
    pub timeout_ms: i32,
    /// Names of the headers sent with every delivery; their values are not shown again.
    pub header_names: Vec<String>,
    pub max_concurrency: i32,
    pub ordering: webhook_endpoint::Ordering,
    pub status: webhook_endpoint::Status,
    /// Live deliveries that failed since the last success.
    pub failure_streak: i32,
    /// The last attempt's HTTP status; 0 when no answer came, null before the first.
    pub last_status: Option<i32>,
    pub last_success_at: Option<Moment>,
    pub suspended_at: Option<Moment>,
    /// The receiver asked for a pause until then.
    pub paused_until: Option<Moment>,
    /// The secret's last four characters.
    pub secret_hint: String,
    /// Until then the previous secret also signs.
    pub previous_secret_expires_at: Option<Moment>,
    /// The signing secret. Only in the answer to the endpoint's creation and to a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    pub created_at: Moment,
    pub updated_at: Moment,
}

/// How a test went.
#[derive(Serialize, JsonSchema)]
pub struct WebhookTestView {
    pub event_id: EventId,
    pub delivery_id: DeliveryId,
    /// Did the receiver answer 2xx in time?
    pub delivered: bool,
    /// The HTTP status; 0 when no answer came.
    pub status: i32,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub duration_ms: i32,
    /// The first 16 KiB.
    pub response_body: Option<String>,
}

/// What is sent again.
#[derive(Serialize, JsonSchema)]
pub struct RecoveryView {
    pub id: RecoveryId,
    pub endpoint_id: EndpointId,
    /// Events of this moment and later,
    pub since: Moment,
    /// and before this one.
    pub until: Moment,
    pub status: recovery::Status,
    /// Held deliveries that were released.
    pub released: i64,
    /// Failed deliveries that are sent again.
    pub replayed: i64,
    pub created_at: Moment,
    pub ended_at: Option<Moment>,
}

impl From<recovery::Model> for RecoveryView {
    fn from(job: recovery::Model) -> Self {
        RecoveryView {
            id: job.id,
            endpoint_id: job.endpoint_id,
            since: job.since,
            until: job.until,
            status: job.status,
            released: job.released,
            replayed: job.replayed,
            created_at: job.created_at,
            ended_at: job.ended_at,
        }
    }
}

/// How an endpoint is doing.
#[derive(Serialize, JsonSchema)]
pub struct EndpointStatsView {
    pub endpoint_id: EndpointId,
    pub last_24_hours: AttemptsView,
    pub last_7_days: AttemptsView,
    /// What is waiting now.
    pub open: WaitingView,
    /// The latest recovery.
    pub recovery: Option<RecoveryView>,
}

/// Counted by the hour, replays included, tests not.
#[derive(Serialize, JsonSchema)]
pub struct AttemptsView {
    pub attempts: i64,
    /// Attempts that were answered 2xx.
    pub succeeded: i64,
    /// `succeeded` by `attempts`, from 0 to 1; null without attempts.
    pub success_rate: Option<f64>,
    /// Deliveries that failed.
    pub failed_deliveries: i64,
    pub average_duration_ms: Option<i64>,
    pub longest_duration_ms: i64,
}

impl From<endpoint_hour::Sum> for AttemptsView {
    fn from(sum: endpoint_hour::Sum) -> Self {
        let any = sum.attempts > 0;
        AttemptsView {
            attempts: sum.attempts,
            succeeded: sum.succeeded,
            success_rate: any.then(|| sum.succeeded as f64 / sum.attempts as f64),
            failed_deliveries: sum.failed,
            average_duration_ms: any.then(|| sum.duration_ms / sum.attempts),
            longest_duration_ms: sum.longest_ms,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct WaitingView {
    pub pending: i64,
    pub retrying: i64,
    pub held: i64,
    /// When the longest waiting one was or is due.
    pub oldest_due_at: Option<Moment>,
}

impl From<delivery::Waiting> for WaitingView {
    fn from(waiting: delivery::Waiting) -> Self {
        WaitingView {
            pending: waiting.pending,
            retrying: waiting.retrying,
            held: waiting.held,
            oldest_due_at: waiting.oldest_due_at,
        }
    }
}

/// A delivery with its attempts.
#[derive(Serialize, JsonSchema)]
pub struct DeliveryView {
    pub id: DeliveryId,
    pub event_id: EventId,
    pub event_type: String,
    pub endpoint_id: EndpointId,
    pub origin: delivery::Origin,
    /// For a replay: the delivery that it repeats, if there was one.
    pub replay_of: Option<DeliveryId>,
    pub status: delivery::Status,
    pub failed_reason: Option<delivery::FailedReason>,
    pub next_attempt_at: Option<Moment>,
    pub created_at: Moment,
    pub attempts: Vec<AttemptView>,
}

impl DeliveryView {
    pub fn new(row: delivery::Model, event_type: String, attempts: Vec<delivery_attempt::Model>) -> Self {
        DeliveryView {
            id: row.id,
            event_id: row.event_id,
            event_type,
            endpoint_id: row.endpoint_id,
            origin: row.origin,
            replay_of: row.replay_of,
            status: row.status,
            failed_reason: row.failed_reason,
            next_attempt_at: row.next_attempt_at,
            created_at: row.created_at,
            attempts: attempts.into_iter().map(Into::into).collect(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct AttemptView {
    pub n: i32,
    pub started_at: Moment,
    /// Unix seconds of X-Webhook-Timestamp: `<signed_at>.<body>` is what was signed.
    pub signed_at: i64,
    pub duration_ms: i32,
    pub timings: TimingsView,
    /// The address and port of the connection.
    pub remote_address: Option<String>,
    /// The HTTP status; 0 when no answer came.
    pub status: i32,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub response_headers: Vec<(String, String)>,
    /// The first 16 KiB.
    pub response_body: Option<String>,
}

/// Null where a step did not happen, as on a connection that was already open.
#[derive(Serialize, JsonSchema)]
pub struct TimingsView {
    pub dns_ms: Option<i32>,
    pub connect_ms: Option<i32>,
    pub tls_ms: Option<i32>,
    /// From the start to the status of the answer.
    pub first_byte_ms: Option<i32>,
}

impl From<delivery_attempt::Model> for AttemptView {
    fn from(attempt: delivery_attempt::Model) -> Self {
        AttemptView {
            n: attempt.n,
            started_at: attempt.started_at,
            signed_at: attempt.signed_at,
            duration_ms: attempt.duration_ms,
            timings: TimingsView {
                dns_ms: attempt.dns_ms,
                connect_ms: attempt.connect_ms,
                tls_ms: attempt.tls_ms,
                first_byte_ms: attempt.first_byte_ms,
            },
            remote_address: attempt.remote_address,
            status: attempt.status,
            error_code: attempt.error_code,
            error_message: attempt.error_message,
            response_headers: attempt.response_headers.0,
            response_body: attempt.response_body,
        }
    }
}

/// The event envelope: exactly the bytes that receivers get.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct EventView(#[schemars(with = "Envelope")] pub Box<RawValue>);

impl From<event::Model> for EventView {
    fn from(event: event::Model) -> Self {
        EventView(RawValue::from_string(event.body).unwrap_or_else(|_| unreachable!("a stored envelope is JSON")))
    }
}

#[derive(Serialize, JsonSchema)]
pub struct EventTypeView {
    pub name: &'static str,
    /// When it is emitted.
    pub description: &'static str,
}
