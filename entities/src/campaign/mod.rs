//! Campaigns: what a user asked for, and the stored state of its machine.
mod pace;
mod plan;
mod schedule;

pub use pace::*;
pub use plan::*;
pub use schedule::*;

use crate::{
    agent, boxed,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{AgentId, ApiKeyId, CampaignId, TenantId, TenantScoped},
    keys,
    page::{self, Listed, Page},
    values::{Env, Moment},
    workspace_lease::Share,
};
use schemars::JsonSchema;
use sea_orm::{
    DeriveActiveEnum, EnumIter, ExprTrait, FromJsonQueryResult, Order, QueryOrder, QuerySelect, QueryTrait,
    entity::prelude::*, sea_query::Expr,
};
use serde::{Deserialize, Serialize};

/// The agent as it was when the campaign started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct AgentSnapshot {
    pub id: AgentId,
    pub version: i32,
    pub definition: agent::Definition,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Draft,
    Running,
    Paused,
    Completed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// `pause` was called; `resume` lifts it.
    Manual,
    /// None of the contacts left may be called now; it resumes by itself.
    QuietHours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum CompletedReason {
    /// Every contact reached its end.
    Finished,
    /// `schedule.ends_at` came first.
    Ended,
    /// `cancel` was called.
    Canceled,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "campaigns")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: CampaignId,
    pub tenant_id: TenantId,
    pub env: Env,
    #[sea_orm(column_type = "JsonBinary")]
    pub plan: Plan,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub agent: Option<AgentSnapshot>,
    pub status: Status,
    pub pause_reason: Option<PauseReason>,
    /// Since when what remains is put away, because it was canceled or its time is over; `completed_reason` says which.
    pub cancel_requested_at: Option<Moment>,
    /// `start` was called before `schedule.starts_at`.
    pub armed_at: Option<Moment>,
    /// While paused for quiet hours: when the first contact may be called again.
    pub next_open_at: Option<Moment>,
    /// The next moment at which its actor has something to do.
    pub wake_at: Option<Moment>,
    pub started_at: Option<Moment>,
    pub paused_at: Option<Moment>,
    pub completed_at: Option<Moment>,
    pub completed_reason: Option<CompletedReason>,
    /// The key that started it, if that one has limits.
    pub api_key_id: Option<ApiKeyId>,
    /// What it leaves behind is removed bit by bit.
    pub deleted_at: Option<Moment>,
    /// The version that changed its retries, caps or schedule last; 0: none has.
    pub rules_version: i32,
    /// Its rules have changed, and not everybody who waits was judged by the new ones yet: the version that changed them.
    pub review_of: Option<i32>,
    pub version: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// Written out, not bound: only so do the databases see that the small index of open campaigns serves.
fn is_running() -> Expr {
    Expr::cust("status IN ('running', 'paused') AND status = 'running'")
}

fn owned(tenant: TenantId, env: Env) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::DeletedAt.is_null())
}

#[boxed]
pub async fn load(db: &Connection, key: TenantScoped<CampaignId>) -> Result<Model> {
    owned(key.tenant_id, key.env)
        .filter(Column::Id.eq(key.id))
        .one(db)
        .await?
        .ok_or(Error::NotFound("campaign"))
}

/// Newest first.
#[boxed]
pub async fn newest(db: &Connection, tenant: TenantId, env: Env, limit: u64) -> Result<Vec<CampaignId>> {
    let ids = owned(tenant, env).select_only().column(Column::Id);
    Ok(ids
        .order_by(Column::Id, Order::Desc)
        .limit(limit)
        .into_tuple()
        .all(db)
        .await?)
}

/// The tenant's campaigns behind one, in the order of their ids, at most `limit`.
#[boxed]
pub async fn ids_after(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    after: Option<CampaignId>,
    limit: u64,
) -> Result<Vec<CampaignId>> {
    let ids = owned(tenant, env).select_only().column(Column::Id);
    Ok(page::next(ids, Column::Id, after, limit).into_tuple().all(db).await?)
}

/// For what follows the calls of a campaign that was deleted meanwhile.
#[boxed]
pub async fn load_even_deleted(db: &Connection, key: TenantScoped<CampaignId>) -> Result<Model> {
    let found = Entity::find_by_id(key.id)
        .filter(Column::TenantId.eq(key.tenant_id))
        .filter(Column::Env.eq(key.env));
    found.one(db).await?.ok_or(Error::NotFound("campaign"))
}

#[boxed]
pub async fn list(db: &Db, owner: (TenantId, Env), status: Option<Status>, page: Page) -> Result<Listed<Model>> {
    let all = owned(owner.0, owner.1).apply_if(status, |all, status| all.filter(Column::Status.eq(status)));
    page::fetch(&db.read, all, Column::Id, Column::CreatedAt, page).await
}

/// The campaigns that the tenant's dispatcher works on.
#[boxed]
pub async fn dispatchable(db: &Connection, tenant: TenantId) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::TenantId.eq(tenant)).filter(is_running());
    Ok(select
        .filter(Column::CancelRequestedAt.is_null())
        .order_by(Column::Id, sea_orm::Order::Asc)
        .all(db)
        .await?)
}

/// Those of `known` (id and version) that may dispatch as they were known. Asked inside the transaction that commits a dial.
#[boxed]
pub async fn still_dispatchable(db: &Connection, known: &[(CampaignId, i32)]) -> Result<bool> {
    let select = Entity::find()
        .select_only()
        .columns([Column::Id, Column::Version])
        .filter(Column::Id.is_in(known.iter().map(|(id, _)| *id)))
        .filter(Column::Status.eq(Status::Running))
        .filter(Column::CancelRequestedAt.is_null());
    let found: Vec<(CampaignId, i32)> = select.into_tuple().all(db).await?;
    Ok(known.iter().all(|known| found.contains(known)))
}

/// Are these the rules of those campaigns still? Asked inside the transaction that commits what follows from them.
#[boxed]
pub async fn have_rules(db: &Connection, known: &[(CampaignId, i32)]) -> Result<bool> {
    let select = Entity::find()
        .select_only()
        .columns([Column::Id, Column::RulesVersion])
        .filter(Column::Id.is_in(known.iter().map(|(id, _)| *id)));
    let found: Vec<(CampaignId, i32)> = select.into_tuple().all(db).await?;
    Ok(known.iter().all(|known| found.contains(known)))
}

/// Do all of these run? Asked inside the transaction that commits another attempt of something they have begun.
#[boxed]
pub async fn all_run(db: &Connection, ids: &[CampaignId]) -> Result<bool> {
    let select = Entity::find()
        .filter(Column::Id.is_in(ids.iter().copied()))
        .filter(Column::Status.eq(Status::Running))
        .filter(Column::CancelRequestedAt.is_null());
    Ok(select.count(db).await? == ids.len() as u64)
}

/// Names of campaigns that have not started and want this agent.
#[boxed]
pub async fn drafts_of_agent(db: &Connection, tenant: TenantId, agent: AgentId) -> Result<Vec<String>> {
    let rows = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null())
        .filter(Column::Status.eq(Status::Draft))
        .filter(Expr::cust("CAST(plan AS TEXT)").like(format!("%{agent}%")))
        .limit(10)
        .all(db)
        .await?;
    let wants = |row: &Model| row.plan.agent_id == Some(agent);
    Ok(rows
        .into_iter()
        .filter(wants)
        .map(|row| row.plan.name.into_string())
        .collect())
}

/// Names of campaigns that are not over and whose calls speak with this voice: by their plan, or by the agent as it was at
/// their start.
#[boxed]
pub async fn that_speak_with(db: &Connection, tenant: TenantId, voice: &str) -> Result<Vec<String>> {
    let named = |column: &str| Expr::cust(format!("CAST({column} AS TEXT)")).like(format!("%{voice}%"));
    let rows = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null())
        .filter(Column::Status.ne(Status::Completed))
        .filter(named("plan").or(named("agent")))
        .all(db)
        .await?;
    let speaks = |row: &Model| {
        let agents = row
            .agent
            .as_ref()
            .and_then(|agent| agent.definition.voice_id.as_deref());
        row.plan.voice_id.as_deref().or(agents) == Some(voice)
    };
    Ok(rows
        .into_iter()
        .filter(speaks)
        .map(|row| row.plan.name.into_string())
        .collect())
}

/// Tenants with a running campaign: each needs its dispatcher.
#[boxed]
pub async fn tenants_at_work(db: &Connection, share: Share) -> Result<Vec<TenantId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::TenantId)
        .filter(share.of(Column::TenantId))
        .filter(is_running())
        .distinct();
    Ok(select.into_tuple().all(db).await?)
}

/// The tenant's campaigns whose waiting contacts are to be judged anew, at most `limit`.
#[boxed]
pub async fn to_review(db: &Connection, tenant: TenantId, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Expr::cust(TO_REVIEW));
    Ok(select
        .order_by(Column::Id, sea_orm::Order::Asc)
        .limit(limit)
        .all(db)
        .await?)
}

/// Tenants with such campaigns.
#[boxed]
pub async fn tenants_to_review(db: &Connection, share: Share) -> Result<Vec<TenantId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::TenantId)
        .filter(share.of(Column::TenantId))
        .filter(Expr::cust(TO_REVIEW))
        .distinct();
    Ok(select.into_tuple().all(db).await?)
}

/// Is it still that change of its rules that the campaign's contacts are judged by?
#[boxed]
pub async fn is_review_of(db: &Connection, id: CampaignId, version: i32) -> Result<bool> {
    let select = Entity::find()
        .filter(Column::Id.eq(id))
        .filter(Column::ReviewOf.eq(version));
    Ok(select.count(db).await? == 1)
}

// Written out for its small index.
const TO_REVIEW: &str = "review_of IS NOT NULL";

/// Campaigns whose actor has something to do that only their rows tell: nothing left to call, what remains to be put away,
/// or a moment that has come.
#[boxed]
pub async fn unattended(db: &Connection, share: Share, now: Moment) -> Result<Vec<TenantScoped<CampaignId>>> {
    let idle = Expr::cust(
        "status IN ('running', 'paused') AND (cancel_requested_at IS NOT NULL OR (status = 'running' AND NOT EXISTS \
         (SELECT 1 FROM campaign_tallies WHERE campaign_id = campaigns.id AND pending + waiting + dispatched > 0)))",
    );
    let mut found = owners(db, share, idle).await?;
    let due = Expr::cust("wake_at IS NOT NULL").and(Column::WakeAt.lte(now));
    found.extend(owners(db, share, due).await?);
    Ok(found)
}

async fn owners(db: &Connection, share: Share, which: Expr) -> Result<Vec<TenantScoped<CampaignId>>> {
    let key = [Column::TenantId, Column::Env, Column::Id];
    let mine = Entity::find().filter(share.of(Column::TenantId));
    keys::of(db, mine.filter(which), key).await
}

/// The tenant's campaigns that were made by then and are not over, a page at a time.
#[boxed]
pub async fn not_over(
    db: &Connection,
    tenant: TenantId,
    by: Moment,
    after: Option<CampaignId>,
    limit: u64,
) -> Result<Vec<Model>> {
    let open = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Status.ne(Status::Completed))
        .filter(Column::DeletedAt.is_null())
        .filter(Column::CreatedAt.lte(by));
    page::behind(db, open, Column::Id, after, limit).await
}

/// All campaigns of all tenants, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<CampaignId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

/// A campaign that was deleted and has left contacts behind.
#[boxed]
pub async fn first_deleted(db: &Connection) -> Result<Option<CampaignId>> {
    let left =
        Expr::cust("deleted_at IS NOT NULL AND EXISTS (SELECT 1 FROM contacts WHERE campaign_id = campaigns.id)");
    let select = Entity::find().select_only().column(Column::Id).filter(left).limit(1);
    Ok(select.into_tuple().one(db).await?)
}

/// A campaign of the tenant's that was completed before then and has contacts still.
#[boxed]
pub async fn completed_before(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    before: Moment,
) -> Result<Option<CampaignId>> {
    let has_contacts = Expr::cust("EXISTS (SELECT 1 FROM contacts WHERE contacts.campaign_id = campaigns.id)");
    let select = owned(tenant, env)
        .filter(Column::Status.eq(Status::Completed))
        .filter(Column::CompletedAt.lt(before))
        .filter(has_contacts)
        .select_only()
        .column(Column::Id)
        .limit(1);
    Ok(select.into_tuple().one(db).await?)
}
