//! Sessions: calls, and what became of them.
mod by_key;
mod latency;
mod legal;
mod old;
mod options;
mod quality;
mod queries;
mod slots;
mod status;

pub use by_key::{KeyFull, KeyUse, key_use, waiting_of_key};
pub use latency::Latency;
pub use legal::{CallLegal, ConsentAsked, Disclose, Disclosure, MAX_DISCLOSURES, Said};
pub use old::{Old, made_before, old, remove};
pub use options::{
    Detection, Digits, Options, Recorded, SafeHarbour, Sandbox, SandboxOutcome, Step, Voicemail, VoicemailAction,
};
pub use quality::Quality;
pub use queries::{Filter, all_after, count_of_number, list, load, load_even_deleted, of_ids, trace};
pub use slots::{
    InUse, Live, Passed, count_in_line, count_queued, in_use, in_use_by_trunk, live, may_have_run, open, phases,
    queued, sent_back, tenants_in_queue, waiting_on_way, ways_of_waiting,
};
pub use status::{AnsweredBy, Consent, Direction, EndReason, EndedBy, Evaluator, Phase, Status, WhyAbandoned};

use crate::{
    agent::ConsentMode,
    boxed,
    bulk::{self, OnConflict, batch::Batch},
    error::{Error, Result},
    ids::{AgentId, ApiKeyId, CampaignId, ContactId, RecordingId, RoomId, SessionId, TenantId, TenantScoped, TrunkId},
    law::{DisclosureKind, LegalPerson},
    values::{Cents, E164, Env, Metadata, Moment, Place, Variables, Zone},
};
use sea_orm::entity::prelude::*;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "sessions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: SessionId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub status: Status,
    pub phase: Phase,
    pub end_reason: Option<EndReason>,
    pub ended_by: Option<EndedBy>,
    pub answered_by: Option<AnsweredBy>,
    pub agent_id: AgentId,
    pub agent_version: i32,
    pub voice_id: Option<String>,
    pub from_number: Option<E164>,
    /// None: a room has no number.
    pub to_number: Option<E164>,
    pub direction: Direction,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub client_reference_id: Option<String>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    /// The key that asked for it, if that one has limits; a campaign's calls are its key's that started it.
    pub api_key_id: Option<ApiKeyId>,
    /// The room that it is held in; none: it is a phone call.
    pub room_id: Option<RoomId>,
    /// The trunk that carries it; none: a room, or a call of the sandbox.
    pub trunk_id: Option<TrunkId>,
    /// 1 for the first call to its contact.
    pub attempt: i32,
    #[sea_orm(column_type = "JsonBinary")]
    pub variables: Variables,
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Metadata,
    pub ring_timeout_seconds: i32,
    pub max_duration_seconds: i32,
    /// Not dialled before this.
    pub scheduled_at: Option<Moment>,
    /// How long it waits for a slot.
    pub queue_ttl_seconds: i32,
    /// Where the person is, if it was said.
    pub timezone: Option<Zone>,
    /// What a minute of talk cost when the session was made.
    pub price_cents_per_minute: i32,
    /// What was set aside for it when it was first dialled.
    pub hold_cents: Cents,
    /// While queued: when waiting for a slot is given up.
    pub queued_until: Option<Moment>,
    pub dialed_at: Option<Moment>,
    /// The carrier bills from then on, whoever it was.
    pub picked_up_at: Option<Moment>,
    pub started_at: Option<Moment>,
    /// Since when somebody else talks, whose leg costs as much as the first.
    pub bridged_at: Option<Moment>,
    pub ended_at: Option<Moment>,
    pub duration_seconds: i32,
    /// How soon the other side was answered; none: it never was, or that is not measured.
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub latency: Option<Latency>,
    /// How well the other side could be heard; none: nobody has measured it.
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub quality: Option<Quality>,
    /// How long after the other side's greeting, or after the pick-up where there was none, the first sound of ours was sent; none:
    /// nothing was, or nobody has measured it. Of a live call it stands as soon as it is known.
    pub first_sound_ms: Option<i32>,
    /// Why a call that a person has answered counts as abandoned.
    pub abandoned: Option<WhyAbandoned>,
    pub actual_cost_cents: Cents,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    /// The final answer of its carrier, where it is a SIP trunk: 300 to 699.
    pub sip_code: Option<i32>,
    /// The cause that came with it, 1 to 127. Source: ITU-T Q.850.
    pub q850: Option<i32>,
    pub consent: Consent,
    /// What it was made with, beside the columns.
    #[sea_orm(column_type = "JsonBinary")]
    pub options: Options,
    pub disposition_code: Option<String>,
    pub disposition_note: Option<String>,
    pub disposition_by: Option<Evaluator>,
    /// Set when its recording begins.
    pub recording_id: Option<RecordingId>,
    pub opted_out_at: Option<Moment>,
    /// After an opt-out: when its recording is erased.
    pub purge_after: Option<Moment>,
    pub deleted_at: Option<Moment>,
    pub version: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// What a call is born with, and keeps until it is deleted.
const BORN_WITH: &[&str] = &[
    "tenant_id",
    "env",
    "agent_id",
    "to_number",
    "direction",
    "email",
    "first_name",
    "last_name",
    "client_reference_id",
    "campaign_id",
    "contact_id",
    "api_key_id",
    "room_id",
    "variables",
    "timezone",
    "created_at",
];

/// Each a new one, or the next version of the stored one.
#[boxed]
pub async fn advance(batch: &mut Batch<'_>, rows: &[&Model]) -> Result<()> {
    let (whole, same): (Vec<&Model>, Vec<&Model>) = rows.iter().copied().partition(|row| row.deleted_at.is_some());
    batch.save(&whole, OnConflict::ReplacePredecessor).await?;
    batch.save(&same, OnConflict::Advance(BORN_WITH)).await
}

impl Model {
    /// What is known of the person beside the number.
    pub fn person(&self) -> LegalPerson {
        self.options
            .legal
            .as_ref()
            .map(|bound| bound.person.clone())
            .unwrap_or_default()
    }
    /// In which country, or part of one, the person is, if it was said.
    pub fn region(&self) -> Option<&Place> {
        self.options
            .legal
            .as_ref()
            .and_then(|bound| bound.person.region.as_ref())
    }
    /// What [`advance`] leaves as it is stored.
    pub fn born_with(&self) -> Vec<Value> {
        bulk::of_columns(self, BORN_WITH)
    }
    /// Sound goes over it: a room's, or a real phone's. A call of the sandbox is only played.
    pub fn has_line(&self) -> bool {
        self.room_id.is_some() || self.env == Env::Live
    }

    /// How it is recorded, if it is: as it was made with, and somebody must agree to it as strictly as the law of the place wants.
    pub fn recorded(&self) -> Option<Recorded> {
        let mut recorded = self.options.recording.clone()?;
        recorded.consent = recorded.consent.max(self.least_consent());
        Some(recorded)
    }

    /// A live call of which the law is known is never recorded without a word.
    fn least_consent(&self) -> ConsentMode {
        let Some(legal) = &self.options.legal else {
            return ConsentMode::None;
        };
        let is_told = legal.asks_for(DisclosureKind::Recording) || self.env == Env::Live;
        let least = if is_told {
            ConsentMode::Notice
        } else {
            ConsentMode::None
        };
        legal.recording.unwrap_or_default().max(least)
    }

    /// What the service has said in it for the law, in its order.
    pub fn disclosures(&self) -> &[Disclosure] {
        self.options
            .legal
            .as_ref()
            .map_or(&[], |legal| legal.said.disclosures.as_slice())
    }

    /// Whether the recording was agreed to, as it was asked for the last time.
    pub fn consent_asked(&self) -> Option<ConsentAsked> {
        self.options.legal.as_ref()?.said.consent
    }

    /// The service itself answers who asks whether it is a machine, and lets no model say otherwise.
    pub fn is_truthful(&self) -> bool {
        let is_disclosed = self
            .options
            .legal
            .as_ref()
            .is_some_and(|legal| legal.disclose.is_some());
        is_disclosed || self.env == Env::Live
    }

    /// What the agent's words may mention: the variables, and the other side's names.
    pub fn mentions(&self) -> Variables {
        self.variables.clone().naming([
            ("first_name", &self.first_name),
            ("last_name", &self.last_name),
            ("email", &self.email),
        ])
    }

    /// A session that is made now: an outbound call of its own, with the defaults.
    pub fn new(owner: (TenantId, Env), id: SessionId, agent: (AgentId, i32), to_number: E164, now: Moment) -> Self {
        Self::with(owner, id, agent, Some(to_number), now)
    }

    fn with(
        owner: (TenantId, Env),
        id: SessionId,
        agent: (AgentId, i32),
        to_number: Option<E164>,
        now: Moment,
    ) -> Self {
        Model {
            id,
            tenant_id: owner.0,
            env: owner.1,
            status: Status::Queued,
            phase: Phase::Queued,
            end_reason: None,
            ended_by: None,
            answered_by: None,
            agent_id: agent.0,
            agent_version: agent.1,
            voice_id: None,
            from_number: None,
            to_number,
            direction: Direction::Outbound,
            email: None,
            first_name: None,
            last_name: None,
            client_reference_id: None,
            campaign_id: None,
            contact_id: None,
            api_key_id: None,
            room_id: None,
            trunk_id: None,
            attempt: 1,
            variables: Variables::default(),
            metadata: Metadata::default(),
            ring_timeout_seconds: 30,
            max_duration_seconds: 600,
            scheduled_at: None,
            queue_ttl_seconds: 300,
            timezone: None,
            price_cents_per_minute: 0,
            hold_cents: Cents(0),
            queued_until: None,
            dialed_at: None,
            picked_up_at: None,
            started_at: None,
            bridged_at: None,
            ended_at: None,
            duration_seconds: 0,
            latency: None,
            quality: None,
            first_sound_ms: None,
            abandoned: None,
            actual_cost_cents: Cents(0),
            error_code: None,
            error_message: None,
            sip_code: None,
            q850: None,
            consent: Consent::NotRequired,
            options: Options::default(),
            disposition_code: None,
            disposition_note: None,
            disposition_by: None,
            recording_id: None,
            opted_out_at: None,
            purge_after: None,
            deleted_at: None,
            version: 1,
            created_at: now,
        }
    }

    /// The session of a room that is made now; the room's id follows.
    pub fn of_room(owner: (TenantId, Env), id: SessionId, agent: (AgentId, i32), now: Moment) -> Self {
        Self::with(owner, id, agent, None, now)
    }

    /// The other party's.
    pub fn phone_number(&self) -> Option<&E164> {
        match self.direction {
            Direction::Outbound => self.to_number.as_ref(),
            Direction::Inbound => self.from_number.as_ref(),
        }
    }
    /// Who is called, of a call by telephone.
    pub fn callee(&self) -> Result<&E164> {
        self.to_number.as_ref().ok_or_else(|| Error::Corrupt {
            table: "sessions",
            column: "to_number",
            id: self.id.to_string(),
        })
    }
    pub fn key(&self) -> TenantScoped<SessionId> {
        TenantScoped::new(self.tenant_id, self.env, self.id)
    }
}

fn owned(tenant: TenantId, env: Env) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::DeletedAt.is_null())
}
