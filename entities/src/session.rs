//! Sessions: calls, and what became of them.
use crate::{
    agent,
    db::Db,
    error::{Error, Result},
    ids::{AgentId, CampaignId, ContactId, NumberId, Owned, RecordingId, RoomId, SessionId, TenantId},
    page::{self, Listed, Page},
    values::{Bounded, Cents, E164, Env, Metadata, Moment, Text, Variables, Zone},
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DeriveActiveEnum, EnumIter, FromJsonQueryResult, Order, QueryOrder, QuerySelect, entity::prelude::*,
    sea_query::Expr,
};
use serde::{Deserialize, Serialize};

/// The specification's seven values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How far the session is, and at its end how it went.")]
pub enum Status {
    Queued,
    InProgress,
    Completed,
    Failed,
    NoAnswer,
    Voicemail,
    Busy,
}

/// Where in its life a session is; finer than `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waits for its time, or for somebody to join its room.
    Scheduled,
    /// Waits for a slot.
    Queued,
    Dialing,
    Ringing,
    /// A machine picked up, and is told a message.
    Answered,
    Conversing,
    /// Somebody else is being called to take over.
    Transferring,
    Ended,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Who called.")]
pub enum Direction {
    /// The agent.
    #[default]
    Outbound,
    /// The other side.
    Inbound,
}

/// Whether the other side agreed to be recorded.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    #[default]
    NotRequired,
    Pending,
    Granted,
    Refused,
}

/// Who decided a disposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Evaluator {
    /// During the talk.
    Agent,
    /// Through the API.
    Human,
    /// A language model, after the talk.
    Llm,
    /// Plain rules, after the talk.
    Rules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(24))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The conversation came to an end.
    Completed,
    /// Somebody else took it over.
    Transferred,
    /// Nobody said anything for too long.
    SilenceTimeout,
    /// Ended by its maximum duration.
    MaxDuration,
    /// Nothing more came from the other side.
    MediaTimeout,
    /// The other side does not want to be called again.
    OptOut,
    /// The other side does not want to be recorded.
    ConsentRefused,
    /// Rang, but nobody answered.
    NoAnswer,
    /// Turned down by hand.
    Declined,
    Busy,
    /// A machine picked up, and no message was left in full.
    Voicemail,
    /// A message was left.
    VoicemailLeft,
    InvalidNumber,
    /// The other side's browser could not be connected.
    Unreachable,
    /// Nobody joined the room in time.
    RoomExpired,
    /// The workspace could not pay for it.
    CreditsDepleted,
    /// The carrier refused the call.
    CarrierRejected,
    /// A fault of the agent's own.
    AgentError,
    /// The agent's model provider did not answer.
    ProviderError,
    /// Ended by the API, by a shutdown, or because no slot became free in time.
    Canceled,
    /// A crash cut it off; what became of the call is unknown, so it is never placed again by itself.
    NodeLost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    Caller,
    Agent,
    Api,
    System,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    Human,
    Voicemail,
}

/// How a call is handled: the agent's settings, with what its campaign or its request says instead.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(default)]
pub struct Options {
    /// `None`: it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recorded>,
    /// 0: it is never ended for silence.
    pub silence_seconds: i32,
    #[serde(skip_serializing_if = "is_plain")]
    pub voicemail: Voicemail,
    /// Has the agent dispositions to choose from, and questions to ask?
    pub has_dispositions: bool,
    pub has_questions: bool,
    /// Dispositions of the campaign, instead of the agent's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dispositions: Vec<agent::Disposition>,
    /// How the sandbox plays the other side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// The number that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_id: Option<NumberId>,
}
fn is_plain(voicemail: &Voicemail) -> bool {
    *voicemail == Voicemail::default()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    pub channels: agent::Channels,
    pub consent: agent::ConsentMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<i32>,
}

/// What happens when a machine picks up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Voicemail {
    #[serde(default)]
    pub detection: Detection,
    #[serde(default)]
    pub action: VoicemailAction,
    /// For `leave_message`; `{{first_name}}` and other variables are filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<1, 1_000>>,
    /// In a campaign: the contact is completed when a message was left.
    #[serde(default)]
    pub counts_as_reached: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detection {
    #[default]
    Auto,
    /// Whatever picks up is talked to.
    Off,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VoicemailAction {
    #[default]
    Hangup,
    LeaveMessage,
    /// The agent talks to it.
    Continue,
}

/// How the sandbox plays the other side, instead of by the number's last digit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// Null: by the number's last digit.
    #[serde(default)]
    pub outcome: Option<SandboxOutcome>,
    /// What the person does in the talk, step by step; at most 100. Then it hangs up.
    #[serde(default)]
    pub script: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxOutcome {
    Talk,
    Busy,
    NoAnswer,
    /// The person turns the call down.
    Declined,
    Voicemail,
    Failed,
    InvalidNumber,
    OptOut,
    ConsentRefused,
    Transfer,
    FunctionTimeout,
    /// Inbound only: the caller gives up before anybody answers.
    Abandoned,
}

/// One thing that the person does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Waits until the agent has finished, and says it.
    Say(Text<1, 1_000>),
    /// Says it while the agent speaks.
    Interrupt(Text<1, 1_000>),
    /// Says nothing for so many seconds.
    SilenceSeconds(Bounded<1, 600>),
    /// Presses keys.
    Press(Digits),
    /// Hangs up.
    HangUp(bool),
}

/// 1 to 32 of `0-9*#`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Digits(String);
impl std::ops::Deref for Digits {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}
impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fits = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'*' | b'#');
        if (1..=32).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Digits(text))
        } else {
            Err(serde::de::Error::custom("must have 1 to 32 of 0-9, * and #"))
        }
    }
}

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
    /// The room that it is held in; none: it is a phone call.
    pub room_id: Option<RoomId>,
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
    pub started_at: Option<Moment>,
    pub ended_at: Option<Moment>,
    pub duration_seconds: i32,
    pub actual_cost_cents: Cents,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
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

impl Model {
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
            room_id: None,
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
            started_at: None,
            ended_at: None,
            duration_seconds: 0,
            actual_cost_cents: Cents(0),
            error_code: None,
            error_message: None,
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
    pub fn key(&self) -> Owned<SessionId> {
        Owned::new(self.tenant_id, self.env, self.id)
    }
}

/// Written out, not bound: only so do the databases see that the small index of open sessions serves.
fn is_open() -> Expr {
    Expr::cust("phase <> 'ended'")
}
/// Nobody has joined its room: only the room knows whether somebody will.
fn awaits_nobody() -> Expr {
    Expr::cust("(phase <> 'scheduled' OR room_id IS NULL)")
}
fn is_queued() -> Expr {
    Expr::cust("phase <> 'ended' AND phase = 'queued'")
}
/// Dialled and not ended: takes a slot.
fn is_live() -> Expr {
    Expr::cust("phase <> 'ended' AND phase IN ('dialing', 'ringing', 'answered', 'conversing', 'transferring')")
}

fn owned(tenant: TenantId, env: Env) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::DeletedAt.is_null())
}

pub async fn load(db: &impl ConnectionTrait, key: Owned<SessionId>) -> Result<Model> {
    owned(key.tenant_id, key.env)
        .filter(Column::Id.eq(key.id))
        .one(db)
        .await?
        .ok_or(Error::NotFound("session"))
}

/// For what follows a session that was deleted meanwhile.
pub async fn load_even_deleted(db: &impl ConnectionTrait, key: Owned<SessionId>) -> Result<Model> {
    let found = Entity::find_by_id(key.id)
        .filter(Column::TenantId.eq(key.tenant_id))
        .filter(Column::Env.eq(key.env));
    found.one(db).await?.ok_or(Error::NotFound("session"))
}

/// What a list of sessions is narrowed to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    pub direction: Option<Direction>,
    pub room_id: Option<RoomId>,
}

impl Filter {
    /// Does an index know which sessions it lets through?
    pub fn is_indexed(&self) -> bool {
        self.status.is_none() && self.contact_id.is_none() && self.direction.is_none() && self.room_id.is_none()
    }
}

pub async fn list(db: &Db, tenant: TenantId, env: Env, filter: Filter, page: Page) -> Result<Listed<Model>> {
    let mut all = owned(tenant, env);
    // A campaign's have an index of their own.
    if let Some(campaign) = filter.campaign_id {
        all = all.filter(Column::CampaignId.eq(campaign));
    }
    let wanted = Condition::all()
        .add_option(filter.status.map(|status| Column::Status.eq(status)))
        .add_option(filter.contact_id.map(|contact| Column::ContactId.eq(contact)))
        .add_option(filter.direction.map(|direction| Column::Direction.eq(direction)))
        .add_option(filter.room_id.map(|room| Column::RoomId.eq(room)));
    page::search(db, all, wanted, Column::Id, Column::CreatedAt, page).await
}

/// A call that takes a slot, as the dispatcher counts it.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    pub id: SessionId,
    pub env: Env,
    pub campaign_id: Option<CampaignId>,
    pub direction: Direction,
}

/// The tenant's sessions that take a slot: dialled and not ended.
pub async fn live(db: &impl ConnectionTrait, tenant: TenantId) -> Result<Vec<Live>> {
    let select = Entity::find().filter(Column::TenantId.eq(tenant)).filter(is_live());
    let rows: Vec<(SessionId, Env, Option<CampaignId>, Direction)> = select
        .select_only()
        .columns([Column::Id, Column::Env, Column::CampaignId, Column::Direction])
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(id, env, campaign_id, direction)| Live {
            id,
            env,
            campaign_id,
            direction,
        })
        .collect())
}

/// The tenant's sessions that wait for a slot, the oldest first.
pub async fn queued(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    after: Option<SessionId>,
    limit: u64,
) -> Result<Vec<Model>> {
    let mut select = Entity::find().filter(Column::TenantId.eq(tenant)).filter(is_queued());
    if let Some(after) = after {
        select = select.filter(Column::Id.gt(after));
    }
    Ok(select.order_by(Column::Id, Order::Asc).limit(limit).all(db).await?)
}

/// A campaign's calls that a trunk sent back and that wait for their turn again.
pub async fn sent_back(db: &impl ConnectionTrait, campaign: Owned<CampaignId>) -> Result<Vec<Owned<SessionId>>> {
    let waits = Expr::cust("phase <> 'ended' AND phase IN ('scheduled', 'queued')");
    let select = owned(campaign.tenant_id, campaign.env)
        .filter(waits)
        .filter(Column::CampaignId.eq(campaign.id))
        .select_only()
        .column(Column::Id);
    let ids: Vec<SessionId> = select.into_tuple().all(db).await?;
    let key = |id| Owned::new(campaign.tenant_id, campaign.env, id);
    Ok(ids.into_iter().map(key).collect())
}

/// Sessions that have not ended, of all tenants, and for which nobody else waits: each should have an actor.
pub async fn open(db: &impl ConnectionTrait, after: Option<SessionId>, limit: u64) -> Result<Vec<Owned<SessionId>>> {
    let mut select = Entity::find()
        .select_only()
        .columns([Column::TenantId, Column::Env, Column::Id])
        .filter(is_open())
        .filter(awaits_nobody());
    if let Some(after) = after {
        select = select.filter(Column::Id.gt(after));
    }
    let rows: Vec<(TenantId, Env, SessionId)> = select
        .order_by(Column::Id, Order::Asc)
        .limit(limit)
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(tenant, env, id)| Owned::new(tenant, env, id))
        .collect())
}

/// Tenants with a session that waits for a slot.
pub async fn tenants_in_queue(db: &impl ConnectionTrait) -> Result<Vec<TenantId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::TenantId)
        .filter(is_queued())
        .distinct();
    Ok(select.into_tuple().all(db).await?)
}

/// Calls in use now, by where they came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    pub campaign: u64,
    pub api: u64,
    pub inbound: u64,
    pub room: u64,
}
impl InUse {
    pub fn total(self) -> u64 {
        self.outbound() + self.inbound + self.room
    }
    pub fn outbound(self) -> u64 {
        self.campaign + self.api
    }
}

pub async fn in_use(db: &impl ConnectionTrait, tenant: TenantId, env: Env) -> Result<InUse> {
    let mine = || owned(tenant, env).filter(is_live());
    let outbound = || mine().filter(Column::Direction.eq(Direction::Outbound));
    Ok(InUse {
        campaign: outbound().filter(Column::CampaignId.is_not_null()).count(db).await?,
        api: outbound().filter(Column::CampaignId.is_null()).count(db).await?,
        inbound: mine()
            .filter(Column::Direction.eq(Direction::Inbound))
            .filter(Column::RoomId.is_null())
            .count(db)
            .await?,
        room: mine().filter(Column::RoomId.is_not_null()).count(db).await?,
    })
}

/// Sessions of the tenant and env that wait for a slot now.
pub async fn count_in_line(db: &impl ConnectionTrait, tenant: TenantId, env: Env) -> Result<u64> {
    Ok(owned(tenant, env).filter(is_queued()).count(db).await?)
}

/// Sessions of the tenant and env that wait for their time or for a slot.
pub async fn count_queued(db: &impl ConnectionTrait, tenant: TenantId, env: Env) -> Result<u64> {
    let waits = Expr::cust("phase <> 'ended' AND phase IN ('scheduled', 'queued')");
    Ok(owned(tenant, env)
        .filter(waits)
        .filter(awaits_nobody())
        .count(db)
        .await?)
}

/// Those of `ids` that have not ended.
pub async fn not_ended(db: &impl ConnectionTrait, ids: &[SessionId]) -> Result<Vec<SessionId>> {
    let mut found = Vec::new();
    for chunk in ids.chunks(500) {
        let select = Entity::find()
            .select_only()
            .column(Column::Id)
            .filter(Column::Id.is_in(chunk.iter().copied()));
        found.extend(select.filter(is_open()).into_tuple::<SessionId>().all(db).await?);
    }
    Ok(found)
}

/// These sessions, in no order.
pub async fn of_ids(db: &impl ConnectionTrait, ids: &[SessionId]) -> Result<Vec<Model>> {
    let mut found = Vec::new();
    for chunk in ids.chunks(500) {
        found.extend(
            Entity::find()
                .filter(Column::Id.is_in(chunk.iter().copied()))
                .all(db)
                .await?,
        );
    }
    Ok(found)
}

/// All sessions of all tenants, a page at a time: for the audit.
pub async fn all_after(db: &impl ConnectionTrait, after: Option<SessionId>, limit: u64) -> Result<Vec<Model>> {
    let mut select = Entity::find();
    if let Some(after) = after {
        select = select.filter(Column::Id.gt(after));
    }
    Ok(select.order_by(Column::Id, Order::Asc).limit(limit).all(db).await?)
}
