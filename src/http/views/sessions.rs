//! Sessions.
use entities::{
    ids::{AgentId, CampaignId, ContactId, RecordingId, RoomId, SessionId, TrunkId},
    session,
    transcript::Turn,
    values::{Cents, E164, Metadata, Moment, Text, Variables},
};
use schemars::JsonSchema;
use serde::Serialize;

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
    /// The SIP trunk that carries the call; null with a test key.
    pub trunk_id: Option<TrunkId>,
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
    /// When somebody, or something, picked up: the carrier bills from then on. Null in rooms.
    pub picked_up_at: Option<Moment>,
    /// When the talk began, which is when it was picked up; null if nobody was talked to.
    pub started_at: Option<Moment>,
    pub ended_at: Option<Moment>,
    pub duration_seconds: i32,
    /// Null before the agent has answered for the first time, and for sandbox calls. In lists: once the talk is over.
    pub latency: Option<session::Latency>,
    /// How well the other side could be heard; null where nobody has measured it, as in rooms and with a test key. In lists: once the
    /// talk is over.
    pub quality: Option<session::Quality>,
    /// How long after the other side's greeting, or after the pick-up where there was none, the agent's first sound was sent; null where
    /// nobody has measured it, as in rooms and with a test key.
    pub first_sound_ms: Option<i32>,
    /// Why the call counts as abandoned, if it does: a person has answered, and nothing of the agent's was there in time.
    pub abandoned: Option<session::WhyAbandoned>,
    pub actual_cost_cents: Cents,
    pub transcript_url: Option<String>,
    pub error: Option<SessionErrorView>,
    pub created_at: Moment,
}

#[derive(Serialize, JsonSchema)]
pub struct SessionErrorView {
    pub code: String,
    pub message: String,
    /// The carrier's final answer, where it is a SIP trunk.
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
                sip_code: row.sip_code,
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
            trunk_id: row.trunk_id,
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
            picked_up_at: row.picked_up_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
            duration_seconds: row.duration_seconds,
            latency: row.latency,
            quality: row.quality,
            first_sound_ms: row.first_sound_ms,
            abandoned: row.abandoned,
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
