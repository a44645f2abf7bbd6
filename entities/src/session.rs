//! Sessions: calls, and what became of them.
use crate::{
    error::{Error, Result},
    ids::{AgentId, CampaignId, ContactId, Owned, SessionId, TenantId},
    page::{self, Listed, Page},
    values::{Cents, E164, Env, Metadata, Moment, Variables, Zone},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};
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
    /// Waits for its time.
    Scheduled,
    /// Waits for a slot.
    Queued,
    Dialing,
    Ringing,
    Conversing,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(24))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The conversation came to its end.
    Completed,
    /// Ended by its maximum duration.
    MaxDuration,
    /// Rang in vain.
    NoAnswer,
    Busy,
    Voicemail,
    InvalidNumber,
    /// The carrier refused the call.
    CarrierRejected,
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
    pub to_number: E164,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub client_reference_id: Option<String>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
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
    /// While queued: when waiting for a slot is given up.
    pub queued_until: Option<Moment>,
    pub dialed_at: Option<Moment>,
    pub started_at: Option<Moment>,
    pub ended_at: Option<Moment>,
    pub duration_seconds: i32,
    pub actual_cost_cents: Cents,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub version: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn key(&self) -> Owned<SessionId> {
        Owned::new(self.tenant_id, self.env, self.id)
    }
}

/// Written out, not bound: only so do the databases see that the small index of open sessions serves.
fn is_open() -> Expr {
    Expr::cust("phase <> 'ended'")
}
fn is_queued() -> Expr {
    Expr::cust("phase <> 'ended' AND phase = 'queued'")
}
/// Dialled and not ended: takes a slot.
fn is_live() -> Expr {
    Expr::cust("phase <> 'ended' AND phase IN ('dialing', 'ringing', 'conversing')")
}

fn owned(tenant: TenantId, env: Env) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
}

pub async fn load(db: &impl ConnectionTrait, key: Owned<SessionId>) -> Result<Model> {
    owned(key.tenant_id, key.env)
        .filter(Column::Id.eq(key.id))
        .one(db)
        .await?
        .ok_or(Error::NotFound("session"))
}

/// What a list of sessions is narrowed to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
}

pub async fn list(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    env: Env,
    filter: Filter,
    page: Page,
) -> Result<Listed<Model>> {
    let mut select = owned(tenant, env);
    if let Some(status) = filter.status {
        select = select.filter(Column::Status.eq(status));
    }
    if let Some(campaign) = filter.campaign_id {
        select = select.filter(Column::CampaignId.eq(campaign));
    }
    if let Some(contact) = filter.contact_id {
        select = select.filter(Column::ContactId.eq(contact));
    }
    page::fetch(db, select, Column::Id, Column::CreatedAt, page).await
}

/// A call that takes a slot, as the dispatcher counts it.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    pub id: SessionId,
    pub env: Env,
    pub campaign_id: Option<CampaignId>,
}

/// The tenant's sessions that take a slot: dialled and not ended.
pub async fn live(db: &impl ConnectionTrait, tenant: TenantId) -> Result<Vec<Live>> {
    let select = Entity::find().filter(Column::TenantId.eq(tenant)).filter(is_live());
    let rows: Vec<(SessionId, Env, Option<CampaignId>)> = select
        .select_only()
        .columns([Column::Id, Column::Env, Column::CampaignId])
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(id, env, campaign_id)| Live { id, env, campaign_id })
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

/// Sessions that have not ended, of all tenants: each should have an actor.
pub async fn open(db: &impl ConnectionTrait, after: Option<SessionId>, limit: u64) -> Result<Vec<Owned<SessionId>>> {
    let mut select = Entity::find()
        .select_only()
        .columns([Column::TenantId, Column::Env, Column::Id])
        .filter(is_open());
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

/// Calls in use now, by where they came from: (of campaigns, of the API).
pub async fn in_use(db: &impl ConnectionTrait, tenant: TenantId, env: Env) -> Result<(u64, u64)> {
    let mine = || owned(tenant, env).filter(is_live());
    let of_campaigns = mine().filter(Column::CampaignId.is_not_null()).count(db).await?;
    let of_the_api = mine().filter(Column::CampaignId.is_null()).count(db).await?;
    Ok((of_campaigns, of_the_api))
}

/// Sessions of the tenant and env that wait for a slot now.
pub async fn count_in_line(db: &impl ConnectionTrait, tenant: TenantId, env: Env) -> Result<u64> {
    Ok(owned(tenant, env).filter(is_queued()).count(db).await?)
}

/// Sessions of the tenant and env that wait for their time or for a slot.
pub async fn count_queued(db: &impl ConnectionTrait, tenant: TenantId, env: Env) -> Result<u64> {
    let waits = Expr::cust("phase <> 'ended' AND phase IN ('scheduled', 'queued')");
    Ok(owned(tenant, env).filter(waits).count(db).await?)
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
