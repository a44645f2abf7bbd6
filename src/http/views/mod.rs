//! What clients see of each kind of object.
mod campaigns;

pub use campaigns::*;

use entities::{
    agent, agent_version, api_key, delivery, delivery_attempt, endpoint_hour, event,
    ids::{
        AgentId, ApiKeyId, CampaignId, ContactId, DeliveryId, EndpointId, EventId, RecordingId, RecoveryId, RoomId,
        SessionId, TenantId,
    },
    page::Listed,
    recovery, session, tenant,
    transcript::{Entry, Invocation, Turn},
    values::{Cents, E164, Env, Metadata, Moment, Role, Scopes, Text, Variables, WebhookUrl, Zone},
    webhook_endpoint,
};
use rules::session::machine::{Phase, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// One page of a list.
#[derive(Serialize, JsonSchema)]
pub struct List<T> {
    pub data: Vec<T>,
    pub has_more: bool,
    /// Give it as `cursor` to read on; null at the end.
    pub next_cursor: Option<String>,
}

impl<T> List<T> {
    /// A list that has one page.
    pub fn whole(data: Vec<T>) -> Self {
        List {
            data,
            has_more: false,
            next_cursor: None,
        }
    }

    pub fn of<M>(listed: Listed<M>, id: impl Fn(&M) -> uuid::Uuid, view: impl FnMut(M) -> T) -> Self {
        let last = listed.rows.last().map(id).filter(|_| listed.has_more);
        let next_cursor = last.map(super::extract::encode_cursor);
        List {
            has_more: listed.has_more,
            next_cursor,
            data: listed.rows.into_iter().map(view).collect(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct ApiKeyView {
    pub id: ApiKeyId,
    pub name: String,
    /// The key's first 12 characters.
    pub prefix: String,
    pub env: Env,
    pub scopes: Scopes,
    /// The full key. Only in the answer to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plaintext: Option<String>,
    pub expires_at: Option<Moment>,
    pub created_at: Moment,
    pub last_used_at: Option<Moment>,
    pub revoked_at: Option<Moment>,
}
impl From<api_key::Model> for ApiKeyView {
    fn from(key: api_key::Model) -> Self {
        ApiKeyView {
            id: key.id,
            name: key.name,
            prefix: key.key_prefix,
            env: key.env,
            scopes: key.scopes,
            plaintext: None,
            expires_at: key.expires_at,
            created_at: key.created_at,
            last_used_at: key.last_used_at,
            revoked_at: key.revoked_at,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct WorkspaceView {
    pub id: TenantId,
    pub slug: String,
    pub name: String,
    /// How numbers without `+` are read.
    pub country: String,
    /// Where calls are placed whose zone is unknown.
    pub timezone: Zone,
}
impl From<&tenant::Model> for WorkspaceView {
    fn from(tenant: &tenant::Model) -> Self {
        WorkspaceView {
            id: tenant.id,
            slug: tenant.slug.clone(),
            name: tenant.name.clone(),
            country: tenant.country.clone(),
            timezone: tenant.timezone,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct MeView {
    pub tenant: WorkspaceView,
    pub key: ApiKeyView,
    pub env: Env,
    pub scopes: Scopes,
    pub expires_at: Option<Moment>,
    pub last_used_at: Option<Moment>,
}

#[derive(Serialize, JsonSchema)]
pub struct SignedInView {
    pub user: UserView,
    pub workspaces: Vec<MembershipView>,
}
#[derive(Serialize, JsonSchema)]
pub struct UserView {
    pub id: entities::ids::UserId,
    pub email: String,
}
#[derive(Serialize, JsonSchema)]
pub struct MembershipView {
    pub slug: String,
    pub name: String,
    pub role: Role,
}

#[derive(Serialize, JsonSchema)]
pub struct AgentView {
    pub id: AgentId,
    #[serde(flatten)]
    pub definition: agent::Definition,
    /// Grows by one with every change.
    pub version: i32,
    pub created_at: Moment,
    pub updated_at: Moment,
}
impl From<agent::Model> for AgentView {
    fn from(agent: agent::Model) -> Self {
        AgentView {
            id: agent.id,
            definition: agent.definition,
            version: agent.version,
            created_at: agent.created_at,
            updated_at: agent.updated_at,
        }
    }
}

/// An agent as it was.
#[derive(Serialize, JsonSchema)]
pub struct AgentVersionView {
    pub agent_id: AgentId,
    pub version: i32,
    #[serde(flatten)]
    pub definition: agent::Definition,
    pub created_at: Moment,
}
impl From<agent_version::Model> for AgentVersionView {
    fn from(row: agent_version::Model) -> Self {
        AgentVersionView {
            agent_id: row.agent_id,
            version: row.version,
            definition: row.definition,
            created_at: row.created_at,
        }
    }
}

/// How a dry run went.
#[derive(Serialize, JsonSchema)]
pub struct SimulationView {
    pub turns: Vec<Turn>,
    /// What else happened, as refused tool calls.
    pub timeline: Vec<Entry>,
    pub function_invocations: Vec<Invocation>,
    /// How the call would have ended; null: the agent was still talking.
    pub end_reason: Option<session::EndReason>,
    /// Why it broke off.
    pub error: Option<String>,
    pub disposition_code: Option<String>,
    pub disposition_note: Option<String>,
    pub answers: BTreeMap<String, serde_json::Value>,
}
impl SimulationView {
    pub fn of(session: Session) -> Self {
        let end = match &session.phase {
            Phase::Ended(end) => Some(end.clone()),
            _ => None,
        };
        // What was typed had come to its end: that is no hanging up.
        let typed_out = end.as_ref().is_some_and(|end| end.by == session::EndedBy::Caller);
        SimulationView {
            end_reason: end.as_ref().filter(|_| !typed_out).map(|end| end.reason),
            error: end.and_then(|end| end.error),
            disposition_code: session.call.disposition_code.clone(),
            disposition_note: session.call.disposition_note.clone(),
            answers: session
                .log
                .answers
                .into_iter()
                .map(|answer| (answer.key, answer.value))
                .collect(),
            turns: session.log.turns,
            timeline: session.log.timeline,
            function_invocations: session.log.invocations,
        }
    }
}

/// Everything that happened to a session, in its order.
#[derive(Serialize, JsonSchema)]
pub struct TimelineView {
    pub session_id: SessionId,
    pub entries: Vec<Entry>,
}

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
    /// Live deliveries that ended failed since the last success.
    pub failure_streak: i32,
    /// The last attempt's HTTP status; 0 when no answer came, null before the first.
    pub last_status: Option<i32>,
    pub last_success_at: Option<Moment>,
    pub suspended_at: Option<Moment>,
    /// The receiver asked for a pause until then.
    pub paused_until: Option<Moment>,
    /// The secret's last four characters.
    pub secret_hint: String,
    /// Until then the secret before the last rotation signs along.
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

/// What was sent again.
#[derive(Serialize, JsonSchema)]
pub struct RecoveryView {
    pub id: RecoveryId,
    pub endpoint_id: EndpointId,
    /// Events of this moment and later,
    pub since: Moment,
    /// and before this one.
    pub until: Moment,
    pub status: recovery::Status,
    /// Held deliveries that were let go.
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

/// How an endpoint does.
#[derive(Serialize, JsonSchema)]
pub struct EndpointStatsView {
    pub endpoint_id: EndpointId,
    pub last_24_hours: AttemptsView,
    pub last_7_days: AttemptsView,
    /// What waits now.
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
    /// Deliveries that ended failed.
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
    /// Address and port that were connected to.
    pub remote_address: Option<String>,
    /// The HTTP status; 0 when no answer came.
    pub status: i32,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub response_headers: Vec<(String, String)>,
    /// The first 16 KiB.
    pub response_body: Option<String>,
}
/// Null where nothing of it happened, as on a connection that was open already.
#[derive(Serialize, JsonSchema)]
pub struct TimingsView {
    pub dns_ms: Option<i32>,
    pub connect_ms: Option<i32>,
    pub tls_ms: Option<i32>,
    /// From the start to the answer's status.
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

/// The event envelope: the very bytes that receivers get.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
pub struct EventView(#[schemars(with = "Envelope")] pub Box<RawValue>);

/// What an event looks like.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct Envelope {
    id: EventId,
    /// One of the event types.
    r#type: String,
    tenant_id: TenantId,
    created_at: Moment,
    /// Its shape depends on `type`; see `webhooks`.
    data: serde_json::Map<String, serde_json::Value>,
}
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

#[derive(Serialize, JsonSchema)]
pub struct SessionView {
    pub id: SessionId,
    /// `phone` or `webrtc`.
    pub r#type: &'static str,
    pub direction: session::Direction,
    pub status: session::Status,
    pub phase: session::Phase,
    pub end_reason: Option<session::EndReason>,
    pub ended_by: Option<session::EndedBy>,
    pub answered_by: Option<session::AnsweredBy>,
    pub agent_id: AgentId,
    pub agent_version: i32,
    pub voice_id: Option<String>,
    pub from_number: Option<E164>,
    /// Null in rooms.
    pub to_number: Option<E164>,
    /// The other party's number.
    pub phone_number: Option<E164>,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub client_reference_id: Option<String>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    /// Null for phone calls.
    pub room_id: Option<RoomId>,
    pub attempt: i32,
    /// Did the other side agree to be recorded?
    pub consent: session::Consent,
    pub disposition_code: Option<String>,
    pub disposition_note: Option<String>,
    /// Who decided the disposition.
    pub disposition_by: Option<session::Evaluator>,
    pub recording_id: Option<RecordingId>,
    pub variables: Variables,
    pub metadata: Metadata,
    pub ring_timeout_seconds: i32,
    pub max_duration_seconds: i32,
    /// Not dialled before this.
    pub scheduled_at: Option<Moment>,
    pub started_at: Option<Moment>,
    pub ended_at: Option<Moment>,
    pub duration_seconds: i32,
    pub actual_cost_cents: Cents,
    pub transcript_url: Option<String>,
    pub error: Option<SessionErrorView>,
    pub created_at: Moment,
}
#[derive(Serialize, JsonSchema)]
pub struct SessionErrorView {
    pub code: String,
    pub message: String,
    /// The carrier's, where it is a SIP trunk.
    pub sip_code: Option<i32>,
}
impl SessionView {
    pub fn of(row: session::Model, base_url: &str) -> Self {
        let talked = row.started_at.is_some();
        let phone_number = row.phone_number().cloned();
        let error = row
            .error_code
            .zip(row.error_message)
            .map(|(code, message)| SessionErrorView {
                code,
                message,
                sip_code: None,
            });
        SessionView {
            id: row.id,
            r#type: if row.room_id.is_some() { "webrtc" } else { "phone" },
            direction: row.direction,
            status: row.status,
            phase: row.phase,
            end_reason: row.end_reason,
            ended_by: row.ended_by,
            answered_by: row.answered_by,
            agent_id: row.agent_id,
            agent_version: row.agent_version,
            voice_id: row.voice_id,
            from_number: row.from_number.clone(),
            phone_number,
            to_number: row.to_number,
            email: row.email,
            first_name: row.first_name,
            last_name: row.last_name,
            client_reference_id: row.client_reference_id,
            campaign_id: row.campaign_id,
            contact_id: row.contact_id,
            room_id: row.room_id,
            attempt: row.attempt,
            consent: row.consent,
            disposition_code: row.disposition_code,
            disposition_note: row.disposition_note,
            disposition_by: row.disposition_by,
            recording_id: row.recording_id,
            variables: row.variables,
            metadata: row.metadata,
            ring_timeout_seconds: row.ring_timeout_seconds,
            max_duration_seconds: row.max_duration_seconds,
            scheduled_at: row.scheduled_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
            duration_seconds: row.duration_seconds,
            actual_cost_cents: row.actual_cost_cents,
            transcript_url: talked.then(|| format!("{base_url}/v1/sessions/{}/transcript.json", row.id)),
            error,
            created_at: row.created_at,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct TranscriptView {
    pub session_id: SessionId,
    /// `partial` while the call is live, then `final`.
    pub state: &'static str,
    pub language: Text<2, 35>,
    pub turns: Vec<Turn>,
}

#[derive(Serialize, JsonSchema)]
pub struct ConcurrencyView {
    /// Calls at once, in this env.
    pub limit: i32,
    /// The most that `limit` can be set to.
    pub max_limit: i32,
    /// Of these, left free by calls that the workspace places, for calls that come in.
    pub inbound_reserve: i32,
    pub in_use: u64,
    /// Free slots; calls that come in may take them all.
    pub available: u64,
    pub by_source: BySourceView,
    /// Calls started per second, at most.
    pub calls_per_second: f64,
}
#[derive(Serialize, JsonSchema)]
pub struct BySourceView {
    pub campaign: u64,
    pub api: u64,
    pub inbound: u64,
    pub room: u64,
}
