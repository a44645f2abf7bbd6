//! Contacts: the people in a campaign's list, and what became of each.
use crate::{
    bulk::{self, OnConflict},
    error::{Error, Result},
    ids::{CampaignId, ContactId, Owned, SessionId, TenantId},
    page::{self, Listed, Page},
    values::{Country, E164, Env, Moment, Variables},
};
use schemars::JsonSchema;
use sea_orm::{
    DeriveActiveEnum, EnumIter, ExprTrait, Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr,
};
use serde::{Deserialize, Serialize};

#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not called yet.
    Pending,
    /// Called in vain; waits for its next attempt.
    Waiting,
    /// Being called.
    Dispatched,
    Completed,
    Failed,
    Skipped,
    Canceled,
}

/// Why a contact was not called at all. Source: specification, "Campaign events".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(24))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Why a contact was not called at all.")]
pub enum SkipReason {
    Invalid,
    DncBlocked,
    DailyCapReached,
    QuietHoursExpired,
    ConcurrencyFull,
    TenantSuspended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    Retry,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "contacts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: ContactId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub campaign_id: CampaignId,
    pub external_id: Option<String>,
    /// E.164 where it could be read, else what was typed (it will be skipped as `invalid`).
    pub phone_number: String,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    #[sea_orm(column_type = "JsonBinary")]
    pub variables: Variables,
    /// Higher ones are called first.
    pub priority: i32,
    pub status: Status,
    pub wait_reason: Option<WaitReason>,
    pub attempts: i32,
    pub last_session_id: Option<SessionId>,
    /// When a waiting contact is due.
    pub next_attempt_at: Option<Moment>,
    pub skip_reason: Option<SkipReason>,
    pub version: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn key(&self) -> Owned<ContactId> {
        Owned::new(self.tenant_id, self.env, self.id)
    }
    /// The number, if it is one.
    pub fn e164(&self) -> Option<E164> {
        // Read anew: what could not be read when it came in was kept as it was typed, and may look like a number.
        E164::parse(&self.phone_number, Country::US)
            .ok()
            .filter(|number| number.as_str() == self.phone_number)
    }
}

pub async fn load(db: &impl ConnectionTrait, key: Owned<ContactId>) -> Result<Model> {
    let select = Entity::find_by_id(key.id)
        .filter(Column::TenantId.eq(key.tenant_id))
        .filter(Column::Env.eq(key.env));
    select.one(db).await?.ok_or(Error::NotFound("contact"))
}

pub async fn list(
    db: &impl ConnectionTrait,
    campaign: Owned<CampaignId>,
    status: Option<Status>,
    page: Page,
) -> Result<Listed<Model>> {
    let mut select = Entity::find()
        .filter(Column::CampaignId.eq(campaign.id))
        .filter(Column::TenantId.eq(campaign.tenant_id));
    if let Some(status) = status {
        select = select.filter(Column::Status.eq(status));
    }
    page::fetch(db, select, Column::Id, Column::CreatedAt, page).await
}

/// Adds new contacts; answers how many were new. One number, and one `external_id`, is in a campaign once.
pub async fn add(db: &impl ConnectionTrait, rows: &[Model]) -> Result<u64> {
    bulk::save(db, rows, OnConflict::Keep).await
}

/// Those of `external_ids` that the campaign holds with another number than the one given.
pub async fn with_external_ids(
    db: &impl ConnectionTrait,
    campaign: CampaignId,
    external_ids: &[String],
) -> Result<Vec<Model>> {
    let mut found = Vec::new();
    for chunk in external_ids.chunks(500) {
        let select = Entity::find()
            .filter(Column::CampaignId.eq(campaign))
            .filter(Column::ExternalId.is_in(chunk));
        found.extend(select.all(db).await?);
    }
    Ok(found)
}

/// Waiting contacts that are due, the longest due first.
pub async fn due(db: &impl ConnectionTrait, campaign: CampaignId, now: Moment, limit: u64) -> Result<Vec<Model>> {
    let select = of(campaign, Status::Waiting).filter(Column::NextAttemptAt.lte(now));
    Ok(select
        .order_by(Column::NextAttemptAt, Order::Asc)
        .limit(limit)
        .all(db)
        .await?)
}

/// Contacts not called yet: by priority, then in the list's order.
pub async fn fresh(db: &impl ConnectionTrait, campaign: CampaignId, limit: u64) -> Result<Vec<Model>> {
    let select = of(campaign, Status::Pending)
        .order_by(Column::Priority, Order::Desc)
        .order_by(Column::Id, Order::Asc);
    Ok(select.limit(limit).all(db).await?)
}

/// When the campaign's next waiting contact is due.
pub async fn next_due_at(db: &impl ConnectionTrait, campaign: CampaignId) -> Result<Option<Moment>> {
    let first = of(campaign, Status::Waiting)
        .order_by(Column::NextAttemptAt, Order::Asc)
        .limit(1)
        .one(db)
        .await?;
    Ok(first.and_then(|row| row.next_attempt_at))
}

fn of(campaign: CampaignId, status: Status) -> sea_orm::Select<Entity> {
    // Written out, not bound: only so do the databases see that the small indexes of the two queues serve.
    let is_of_status = match status {
        Status::Pending => Expr::cust("status = 'pending'"),
        Status::Waiting => Expr::cust("status = 'waiting'"),
        other => Column::Status.eq(other),
    };
    Entity::find()
        .filter(Column::CampaignId.eq(campaign))
        .filter(is_of_status)
}

/// Cancels at most `limit` contacts that are not being called; answers how many were pending and how many waiting.
pub async fn cancel_some(db: &impl ConnectionTrait, campaign: CampaignId, limit: u64) -> Result<(i64, i64)> {
    let mut canceled = (0, 0);
    for (status, count) in [(Status::Pending, &mut canceled.0), (Status::Waiting, &mut canceled.1)] {
        let rows = of(campaign, status).limit(limit).all(db).await?;
        let update = Entity::update_many()
            .col_expr(Column::Status, Expr::value(Status::Canceled))
            .col_expr(Column::NextAttemptAt, Expr::value(Option::<Moment>::None))
            .col_expr(Column::Version, Expr::col(Column::Version).add(1));
        let done = update
            .filter(Column::Id.is_in(rows.iter().map(|row| row.id)))
            .exec(db)
            .await?;
        *count = i64::try_from(done.rows_affected).unwrap_or(i64::MAX);
    }
    Ok(canceled)
}
