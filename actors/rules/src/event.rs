//! The catalogue: all 36 event types and the shape of each one's `data`. Source: specification, "Events".
//!
//! `Option` with `skip_serializing_if` is a field that may be absent; a plain `Option` is one that may be null. The published
//! schemas say exactly that.
mod draft;
mod pattern;
mod schema;

pub use draft::{EventDraft, envelope};
pub use pattern::check_pattern;
pub use schema::never_null_where_absent;

use entities::{
    agent::Channels,
    campaign::{Channel, SessionType},
    contact::SkipReason,
    ids::{CampaignId, ContactId, EndpointId, FunctionId, ParticipantId, RecordingId, RoomId, SessionId, TenantScoped},
    recording, room,
    session::{EndReason, Evaluator, Status},
    transcript::{Invocation, Turn},
    values::{Cents, E164, Moment},
};
use schema::exact;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use uuid::Uuid;

/// One line of the catalogue.
pub struct EventType {
    pub name: &'static str,
    /// When it is emitted.
    pub when: &'static str,
    /// JSON Schema of `data`, which refers to nothing outside itself. Its `title` is its name.
    pub schema: fn() -> Schema,
}

macro_rules! catalogue { ($($(#[doc = $when:literal])* $name:literal $variant:ident { subject: $subject:ident; $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)? })*) => {
    $(
        $(#[doc = $when])*
        #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
        pub struct $variant { $($(#[$attribute])* pub $field: $type),* }
        impl From<$variant> for Event { fn from(event: $variant) -> Event { Event::$variant(event) } }
    )*
    /// Everything that a receiver can be told.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    #[serde(untagged)]
    pub enum Event { $($variant($variant)),* }
    impl Event {
        /// The specification's name for it.
        pub fn event_type(&self) -> &'static str { match self { $(Event::$variant(_) => $name),* } }
        fn subject_id(&self) -> Uuid { match self { $(Event::$variant(event) => event.$subject.clone().into()),* } }
        pub fn draft<I>(&self, owner: TenantScoped<I>) -> EventDraft {
            let data = serde_json::to_string(self).unwrap_or_else(|_| unreachable!("plain structs have no map keys that fail"));
            EventDraft { id: None, tenant_id: owner.tenant_id, env: owner.env, event_type: self.event_type(), subject_id: self.subject_id(), data }
        }
    }
    /// All types, in the specification's order.
    pub const CATALOGUE: &[EventType] = &[$(EventType { name: $name, when: concat!($($when),*), schema: exact::<$variant> }),*];
} }

/// A subject that has no UUID of its own is about its tenant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(description = "ISO 4217, as USD.")]
pub struct Currency(pub String);
impl From<Currency> for Uuid {
    fn from(_: Currency) -> Uuid {
        Uuid::nil()
    }
}
/// An inbound number as a subject.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(description = "One of the tenant's own numbers, E.164.")]
pub struct InboundNumber(pub E164);
impl From<InboundNumber> for Uuid {
    fn from(_: InboundNumber) -> Uuid {
        Uuid::nil()
    }
}

catalogue! {
    /// Session row inserted; call queued for dispatch.
    "session.created" SessionCreated { subject: session_id;
        session_id: SessionId,
        /// Null: a room has no number.
        to_number: Option<E164>,
        /// Null for a room, and for a caller who hides the number.
        from_number: Option<E164>,
        #[serde(skip_serializing_if = "Option::is_none")]
        campaign_id: Option<CampaignId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        contact_id: Option<ContactId>,
        voice_id: String,
        #[schemars(extend("enum" = ["queued"]))]
        status: Status,
    }
    /// The agent's conversation began.
    "session.started" SessionStarted { subject: session_id; session_id: SessionId, started_at: Moment }
    /// Session finished with status `completed`.
    "session.ended" SessionEnded { subject: session_id;
        session_id: SessionId,
        client_reference_id: Option<String>,
        campaign_id: Option<CampaignId>,
        contact_id: Option<ContactId>,
        from_number: Option<E164>,
        to_number: Option<E164>,
        phone_number: Option<E164>,
        email: Option<String>,
        first_name: Option<String>,
        last_name: Option<String>,
        #[schemars(extend("enum" = ["completed"]))]
        status: Status,
        end_reason: EndReason,
        started_at: Moment,
        ended_at: Moment,
        duration_seconds: i32,
        actual_cost_cents: Cents,
        transcript: Vec<Turn>,
        transcript_url: Option<String>,
        function_invocations: Vec<Invocation>,
    }
    /// Session ended with a status other than `completed`: `failed`, `no_answer`, `voicemail` or `busy`. Shape of session.ended.
    "session.failed" SessionFailed { subject: session_id;
        session_id: SessionId,
        client_reference_id: Option<String>,
        campaign_id: Option<CampaignId>,
        contact_id: Option<ContactId>,
        from_number: Option<E164>,
        to_number: Option<E164>,
        phone_number: Option<E164>,
        email: Option<String>,
        first_name: Option<String>,
        last_name: Option<String>,
        #[schemars(extend("enum" = ["failed", "no_answer", "voicemail", "busy"]))]
        status: Status,
        end_reason: EndReason,
        /// Absent where nobody picked up.
        #[serde(skip_serializing_if = "Option::is_none")]
        started_at: Option<Moment>,
        ended_at: Moment,
        duration_seconds: i32,
        actual_cost_cents: Cents,
        transcript: Vec<Turn>,
        transcript_url: Option<String>,
        function_invocations: Vec<Invocation>,
    }
    /// A campaign call was classified, after session.ended.
    "session.disposition_set" SessionDispositionSet { subject: session_id;
        session_id: SessionId,
        campaign_id: CampaignId,
        contact_id: ContactId,
        disposition_code: String,
        disposition_note: String,
        evaluated_at: Moment,
        evaluator: Evaluator,
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    }
    /// Recording finalized and stored.
    "session.recording_completed" SessionRecordingCompleted { subject: session_id;
        session_id: SessionId,
        #[serde(skip_serializing_if = "Option::is_none")]
        campaign_id: Option<CampaignId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        contact_id: Option<ContactId>,
        from_number: Option<E164>,
        to_number: Option<E164>,
        phone_number: Option<E164>,
        #[serde(skip_serializing_if = "Option::is_none")]
        email: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        first_name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_name: Option<String>,
        recording_id: RecordingId,
        #[schemars(extend("enum" = ["completed"]))]
        status: recording::Status,
        channels: Channels,
        #[serde(skip_serializing_if = "Option::is_none")]
        started_at: Option<Moment>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ended_at: Option<Moment>,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_seconds: Option<i32>,
        recording_url: String,
    }
    /// The agent transferred the live call to a human operator.
    "session.transfer_initiated" SessionTransferInitiated { subject: session_id;
        session_id: SessionId,
        to_number: E164,
        /// Null for a caller who hides the number.
        from_number: Option<E164>,
        transfer_number: E164,
        transferred_at: Moment,
    }
    /// The other side asked not to be called again; the number is on the do-not-call list.
    "session.opt_out_detected" SessionOptOutDetected { subject: session_id; session_id: SessionId, phone_number: E164, detected_at: Moment }
    /// A recording is kept only until `purge_after`, because of an opt-out.
    "session.opt_out_recording_pending_purge" SessionOptOutRecordingPendingPurge { subject: session_id;
        session_id: SessionId, recording_id: RecordingId, purge_after: Moment }
    /// The recording is gone; its `recording_url` answers 404.
    "session.opt_out_recording_purged" SessionOptOutRecordingPurged { subject: session_id; session_id: SessionId, recording_id: RecordingId, purged_at: Moment }
    /// The other side refused to be recorded; the call ended.
    "session.consent_refused" SessionConsentRefused { subject: session_id; session_id: SessionId, refused_at: Moment }

    /// Campaign created; it stays `draft` until started.
    "campaign.created" CampaignCreated { subject: campaign_id; campaign_id: CampaignId, name: String, channel: Channel, session_type: SessionType }
    /// Campaign moved from draft to running.
    "campaign.started" CampaignStarted { subject: campaign_id; campaign_id: CampaignId, started_at: Moment }
    /// Campaign paused by hand.
    "campaign.paused" CampaignPaused { subject: campaign_id;
        campaign_id: CampaignId,
        paused_at: Moment,
        #[schemars(extend("enum" = ["manual"]))]
        reason: entities::campaign::PauseReason,
    }
    /// Every remaining contact is in its quiet hours; the campaign resumes by itself.
    "campaign.paused_quiet_hours" CampaignPausedQuietHours { subject: campaign_id; campaign_id: CampaignId, paused_at: Moment, next_open_at: Moment }
    /// Every contact reached a terminal state.
    "campaign.completed" CampaignCompleted { subject: campaign_id;
        campaign_id: CampaignId, completed_at: Moment, total_contacts: i64, completed_sessions: i64, failed_sessions: i64 }
    /// One contact handed to the dispatcher; a session is created.
    "campaign.contact_dispatched" CampaignContactDispatched { subject: contact_id;
        contact_id: ContactId,
        campaign_id: CampaignId,
        /// Null for a contact that has none.
        phone_number: Option<String>,
        email: Option<String>,
        first_name: Option<String>,
        last_name: Option<String>,
        /// The id of the session, or of the SMS or e-mail.
        delivery_row_id: Uuid,
    }
    /// A contact was reached.
    "campaign.contact_completed" CampaignContactCompleted { subject: contact_id;
        contact_id: ContactId,
        campaign_id: CampaignId,
        /// Null for a contact that has none.
        phone_number: Option<String>,
        email: Option<String>,
        first_name: Option<String>,
        last_name: Option<String>,
        /// Null for contacts who were written, not called.
        session_id: Option<SessionId>,
        duration_seconds: i32,
        actual_cost_cents: Cents,
    }
    /// A contact was not reached and will not be called again.
    "campaign.contact_failed" CampaignContactFailed { subject: contact_id;
        contact_id: ContactId,
        campaign_id: CampaignId,
        /// Null for a contact that has none.
        phone_number: Option<String>,
        email: Option<String>,
        first_name: Option<String>,
        last_name: Option<String>,
        /// Null for contacts who were written, not called.
        session_id: Option<SessionId>,
        duration_seconds: i32,
        actual_cost_cents: Cents,
    }
    /// A contact was skipped before any session.
    "campaign.contact_skipped" CampaignContactSkipped { subject: contact_id;
        contact_id: ContactId,
        campaign_id: CampaignId,
        /// Null for a contact that has none.
        phone_number: Option<String>,
        email: Option<String>,
        first_name: Option<String>,
        last_name: Option<String>,
        skip_reason: SkipReason,
    }

    /// The balance dropped below the warning threshold; once per drop.
    "credits.low_balance" CreditsLowBalance { subject: currency; balance_cents: Cents, threshold_cents: Cents, currency: Currency }
    /// The balance hit zero: no new dispatches until a top-up settles.
    "credits.depleted" CreditsDepleted { subject: currency; balance_cents: Cents, depleted_at: Moment, currency: Currency }
    /// A top-up settled and is in the balance.
    "credits.topup_succeeded" CreditsTopupSucceeded { subject: currency;
        amount_cents: Cents, new_balance_cents: Cents, currency: Currency, processor_payment_intent_id: String }

    /// Samples uploaded and picked up.
    "voice_clone.training_started" VoiceCloneTrainingStarted { subject: voice_id; voice_id: Uuid, name: String, samples: i32 }
    /// The voice is usable.
    "voice_clone.training_succeeded" VoiceCloneTrainingSucceeded { subject: voice_id; voice_id: Uuid, name: String, ready_at: Moment }
    /// Training failed.
    "voice_clone.training_failed" VoiceCloneTrainingFailed { subject: voice_id; voice_id: Uuid, name: String, error_code: String, error_message: String }

    /// A room was created and its signed URL minted.
    "room.created" RoomCreated { subject: room_id; room_id: RoomId, room_url: String, expires_at: Moment }
    /// The participant opened the room's page and has not joined yet.
    "room.landing_viewed" RoomLandingViewed { subject: room_id; room_id: RoomId, viewed_at: Moment }
    /// The participant joined; the agent is connected.
    "room.joined" RoomJoined { subject: room_id; room_id: RoomId, participant_id: ParticipantId, joined_at: Moment }
    /// Both sides hung up.
    "room.completed" RoomCompleted { subject: room_id; room_id: RoomId, completed_at: Moment, duration_seconds: i32 }
    /// `expires_at` passed before anyone joined.
    "room.expired" RoomExpired { subject: room_id; room_id: RoomId, expired_at: Moment }
    /// The room could not be established.
    "room.failed" RoomFailed { subject: room_id; room_id: RoomId, error_code: room::ErrorCode, error_message: String }

    /// An inbound number's answer rate fell below 80 % over 24 hours.
    "number.answer_rate_degraded" NumberAnswerRateDegraded { subject: phone_number;
        phone_number: InboundNumber,
        /// From 0 to 1.
        #[schemars(range(min = 0, max = 1))]
        answer_rate: f64,
        window_start: Moment,
        window_end: Moment,
    }
    /// A function call exceeded its `timeout_ms`; the conversation goes on.
    "function.timeout" FunctionTimeout { subject: session_id; session_id: SessionId, function_id: FunctionId, name: String, timeout_ms: i64 }
    /// Sent by POST /v1/webhook_endpoints/{id}/test.
    "webhook.test" WebhookTest { subject: endpoint_id; endpoint_id: EndpointId, emitted_at: Moment }
    /// An endpoint was suspended after sustained failures.
    "webhook.endpoint_disabled_notice" WebhookEndpointDisabledNotice { subject: endpoint_id;
        endpoint_id: EndpointId, url: String, disabled_at: Moment, failure_streak: i32, last_status: i32 }
}

impl From<SessionEnded> for SessionFailed {
    /// The two share their shape; only who has talked must have begun to.
    fn from(ended: SessionEnded) -> Self {
        let SessionEnded {
            session_id,
            client_reference_id,
            campaign_id,
            contact_id,
            from_number,
            to_number,
            phone_number,
            email,
            first_name,
            last_name,
            status,
            end_reason,
            started_at,
            ended_at,
            duration_seconds,
            actual_cost_cents,
            transcript,
            transcript_url,
            function_invocations,
        } = ended;
        SessionFailed {
            session_id,
            client_reference_id,
            campaign_id,
            contact_id,
            from_number,
            to_number,
            phone_number,
            email,
            first_name,
            last_name,
            status,
            end_reason,
            started_at: Some(started_at),
            ended_at,
            duration_seconds,
            actual_cost_cents,
            transcript,
            transcript_url,
            function_invocations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::{
        ids::{EventId, TenantId},
        values::Env,
    };

    #[test]
    fn the_catalogue_is_the_specifications() {
        assert_eq!(CATALOGUE.len(), 36);
        let mut names: Vec<_> = CATALOGUE.iter().map(|event| event.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 36);
        assert!(CATALOGUE.iter().all(|event| !event.when.trim().is_empty()));
    }

    #[test]
    fn an_envelope_is_the_specifications() {
        let owner = TenantScoped::new(TenantId(Uuid::nil()), Env::Test, ());
        let event = Event::from(CampaignStarted {
            campaign_id: CampaignId(Uuid::nil()),
            started_at: Moment::from_millis(0),
        });
        let body = envelope(EventId(Uuid::nil()), &event.draft(owner), Moment::from_millis(1));
        let nil = Uuid::nil();
        assert_eq!(
            body,
            format!(
                r#"{{"id":"{nil}","type":"campaign.started","tenant_id":"{nil}","created_at":"1970-01-01T00:00:00.001Z","data":{{"campaign_id":"{nil}","started_at":"1970-01-01T00:00:00.000Z"}}}}"#
            )
        );
    }
}
