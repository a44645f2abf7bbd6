//! Campaigns: what a user asked for, and the stored state of its machine.
use crate::{
    agent,
    error::{Error, Result},
    ids::{AgentId, CampaignId, Owned, TenantId},
    page::{self, Listed, Page},
    values::{Bounded, Env, Metadata, Moment, Text, Variables},
};
use schemars::JsonSchema;
use sea_orm::{
    DeriveActiveEnum, EnumIter, FromJsonQueryResult, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr,
};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::collections::BTreeMap;

/// What a campaign is to do. Fixed at creation but for `name` and `pacing`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub name: Text<1, 200>,
    #[serde(default)]
    pub channel: Channel,
    #[serde(default)]
    pub session_type: SessionType,
    /// Needed before `start`.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// Overrides the agent's voice.
    #[serde(default)]
    pub voice_id: Option<Text<1, 100>>,
    /// Caller ids, used in turn; at most 100. Empty: the carrier's default.
    #[serde(default)]
    pub from_numbers: Vec<crate::values::E164>,
    /// Given to every contact that has no variable of that name.
    #[serde(default, deserialize_with = "Variables::limited")]
    pub variables: Variables,
    #[serde(default, deserialize_with = "Metadata::limited")]
    pub metadata: Metadata,
    #[serde(default)]
    pub pacing: Pacing,
    #[serde(default)]
    pub retry: Retry,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    #[default]
    Phone,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionType {
    #[default]
    Phone,
}

/// How fast contacts are dispatched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pacing {
    /// Calls started per second, 0.1 to the operator's maximum.
    #[serde(default)]
    pub calls_per_second: CallsPerSecond,
    /// Calls of this campaign at once; null: the tenant's limit.
    #[serde(default)]
    pub max_concurrency: Option<Bounded<1, 100_000>>,
    /// The campaign's share of the tenant's calls, against the tenant's other running campaigns.
    #[serde(default = "ten")]
    pub weight: Bounded<1, 100>,
}
impl Default for Pacing {
    fn default() -> Self {
        Pacing {
            calls_per_second: CallsPerSecond::default(),
            max_concurrency: None,
            weight: ten(),
        }
    }
}
fn ten() -> Bounded<1, 100> {
    Bounded::new(10).unwrap_or_else(|_| unreachable!("a constant"))
}

/// 0.1 to 10,000; the operator's maximum may be lower.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct CallsPerSecond(f64);
impl CallsPerSecond {
    pub fn new(value: f64) -> Result<Self, String> {
        if (0.1..=10_000.0).contains(&value) {
            Ok(CallsPerSecond(value))
        } else {
            Err(format!("{value} is out of range: 0.1 to 10000"))
        }
    }
    pub fn get(self) -> f64 {
        self.0
    }
}
impl Default for CallsPerSecond {
    fn default() -> Self {
        CallsPerSecond(1.0)
    }
}
impl<'de> Deserialize<'de> for CallsPerSecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
impl JsonSchema for CallsPerSecond {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CallsPerSecond".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0.1, "maximum": 10000, "default": 1 })
    }
}

/// When a contact that was not reached is called again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Calls to one contact, the first included.
    #[serde(default = "one")]
    pub max_attempts: Bounded<1, 10>,
    /// Minutes from the end of one attempt to the start of the next, at least.
    #[serde(default = "half_an_hour")]
    pub min_gap_minutes: Bounded<0, 10_080>,
    /// Exceptions by outcome: `busy`, `no_answer`, `voicemail`, `failed`.
    #[serde(default)]
    pub rules: BTreeMap<Outcome, RetryRule>,
}
impl Default for Retry {
    fn default() -> Self {
        Retry {
            max_attempts: one(),
            min_gap_minutes: half_an_hour(),
            rules: BTreeMap::new(),
        }
    }
}
fn one() -> Bounded<1, 10> {
    Bounded::new(1).unwrap_or_else(|_| unreachable!("a constant"))
}
fn half_an_hour() -> Bounded<0, 10_080> {
    Bounded::new(30).unwrap_or_else(|_| unreachable!("a constant"))
}

/// How a session that reached nobody ended: its final status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Busy,
    NoAnswer,
    Voicemail,
    Failed,
}

/// The retries after one kind of outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRule {
    /// Minutes to wait before the second, third, … attempt; the last one repeats. Never less than `min_gap_minutes`.
    #[serde(default)]
    pub delays_minutes: Vec<Bounded<0, 10_080>>,
    /// Overrides `max_attempts` downwards.
    #[serde(default)]
    pub max_attempts: Option<Bounded<1, 10>>,
    /// No retry after this outcome.
    #[serde(default)]
    pub never: bool,
}

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
    Manual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum CompletedReason {
    /// Every contact reached its end.
    Finished,
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
    /// Set while what remains is being canceled, and after.
    pub cancel_requested_at: Option<Moment>,
    pub started_at: Option<Moment>,
    pub paused_at: Option<Moment>,
    pub completed_at: Option<Moment>,
    pub completed_reason: Option<CompletedReason>,
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
}

pub async fn load(db: &impl ConnectionTrait, key: Owned<CampaignId>) -> Result<Model> {
    owned(key.tenant_id, key.env)
        .filter(Column::Id.eq(key.id))
        .one(db)
        .await?
        .ok_or(Error::NotFound("campaign"))
}

pub async fn list(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    env: Env,
    status: Option<Status>,
    page: Page,
) -> Result<Listed<Model>> {
    let mut select = owned(tenant, env);
    if let Some(status) = status {
        select = select.filter(Column::Status.eq(status));
    }
    page::fetch(db, select, Column::Id, Column::CreatedAt, page).await
}

/// The campaigns that the tenant's dispatcher works on.
pub async fn dispatchable(db: &impl ConnectionTrait, tenant: TenantId) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Status.eq(Status::Running));
    Ok(select
        .filter(Column::CancelRequestedAt.is_null())
        .order_by(Column::Id, sea_orm::Order::Asc)
        .all(db)
        .await?)
}

/// How many of `ids` may dispatch at this moment. Asked inside the transaction that commits a dial.
pub async fn count_dispatchable(db: &impl ConnectionTrait, ids: &[CampaignId]) -> Result<u64> {
    let select = Entity::find()
        .filter(Column::Id.is_in(ids.iter().copied()))
        .filter(Column::Status.eq(Status::Running));
    Ok(select.filter(Column::CancelRequestedAt.is_null()).count(db).await?)
}

/// Tenants with a running campaign: each needs its dispatcher.
pub async fn tenants_at_work(db: &impl ConnectionTrait) -> Result<Vec<TenantId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::TenantId)
        .filter(is_running())
        .distinct();
    Ok(select.into_tuple().all(db).await?)
}

/// Campaigns whose actor has something to do that only their rows tell: nothing left to call, or a cancel to finish.
pub async fn unattended(db: &impl ConnectionTrait) -> Result<Vec<Owned<CampaignId>>> {
    let due = Expr::cust(
        "status IN ('running', 'paused') AND (cancel_requested_at IS NOT NULL OR (status = 'running' AND NOT EXISTS \
         (SELECT 1 FROM campaign_tallies WHERE campaign_id = campaigns.id AND pending + waiting + dispatched > 0)))",
    );
    let select = Entity::find()
        .select_only()
        .columns([Column::TenantId, Column::Env, Column::Id])
        .filter(due);
    let rows: Vec<(TenantId, Env, CampaignId)> = select.into_tuple().all(db).await?;
    Ok(rows
        .into_iter()
        .map(|(tenant, env, id)| Owned::new(tenant, env, id))
        .collect())
}
