//! Top-ups: payments for credits. What they moved is in the ledger; here is how they went.
use crate::{
    boxed,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{TenantId, TenantScoped, TopupId},
    keys,
    owned::of_tenant_and_env,
    page::{self, Listed, Page},
    values::{Cents, Env, Moment},
    workspace_lease::Share,
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, FromJsonQueryResult, QueryTrait, entity::prelude::*, sea_query::Expr};
use serde::{Deserialize, Serialize};

/// Who takes the money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Who takes the money: `sandbox` with test keys, where no money is, `stripe` with live keys.")]
pub enum Processor {
    Sandbox,
    Stripe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How far the payment is.")]
pub enum Status {
    /// Not paid yet.
    Pending,
    /// Paid, and in the ledger.
    Succeeded,
    /// Not paid; `error` says why.
    Failed,
    /// Nobody paid in time.
    Expired,
}

/// What the processor has told of refunds, with its own times: its notices overtake each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(default)]
pub struct Refunds {
    /// The last sum, and when it was true.
    pub told_cents: Cents,
    pub told_at: Option<Moment>,
    pub failed: Vec<FailedRefund>,
}

/// A refund that came back to the processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRefund {
    pub id: String,
    pub cents: Cents,
    pub at: Moment,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "topups")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: TopupId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub amount_cents: Cents,
    /// ISO 4217, as USD.
    pub currency: String,
    pub processor: Processor,
    pub status: Status,
    /// Paid back in all, without what failed; never more than was paid.
    pub refunded_cents: Cents,
    #[sea_orm(column_type = "JsonBinary")]
    pub refunds: Refunds,
    /// One payment settles one top-up.
    pub processor_payment_intent_id: Option<String>,
    pub processor_session_id: Option<String>,
    /// The page on which it is paid.
    pub checkout_url: Option<String>,
    /// Where that page leads after the payment, and without it.
    pub success_url: Option<String>,
    pub cancel_url: Option<String>,
    pub error: Option<String>,
    /// When the processor is asked what became of it.
    pub ask_at: Option<Moment>,
    pub created_at: Moment,
    pub settled_at: Option<Moment>,
    /// When the page closes; none in the sandbox, which settles at once.
    pub expires_at: Option<Moment>,
    pub version: i32,
}
impl ActiveModelBehavior for ActiveModel {}

of_tenant_and_env!(TopupId, "top-up");

#[boxed]
pub async fn list(db: &Db, owner: (TenantId, Env), status: Option<Status>, page: Page) -> Result<Listed<Model>> {
    let all = owned(owner.0, owner.1).apply_if(status, |all, status| all.filter(Column::Status.eq(status)));
    page::fetch(&db.read, all, Column::Id, Column::CreatedAt, page).await
}

/// Top-ups that wait for their payment.
#[boxed]
pub async fn count_pending(db: &Connection, (tenant, env): (TenantId, Env)) -> Result<u64> {
    let pending = owned(tenant, env).filter(Expr::cust("status = 'pending'"));
    Ok(pending.count(db).await?)
}

/// A top-up that Stripe tells of: its notices name no tenant, and prove by their signature where they come from.
#[boxed]
pub async fn of_stripe(db: &Connection, id: TopupId) -> Result<Option<Model>> {
    let found = Entity::find_by_id(id).filter(Column::Processor.eq(Processor::Stripe));
    Ok(found.one(db).await?)
}

/// The one that this payment has settled.
#[boxed]
pub async fn of_payment(db: &Connection, payment_intent_id: &str) -> Result<Option<Model>> {
    let found = Entity::find().filter(Column::ProcessorPaymentIntentId.eq(payment_intent_id));
    Ok(found.one(db).await?)
}

/// Top-ups of which the processor is to be asked by then, the most overdue first.
#[boxed]
pub async fn due(db: &Connection, share: Share, by: Moment, limit: u64) -> Result<Vec<TenantScoped<TopupId>>> {
    let mine = Entity::find().filter(share.of(Column::TenantId));
    let waiting = mine.filter(Expr::cust("ask_at IS NOT NULL"));
    let due = keys::due(waiting, Column::AskAt, by, limit);
    keys::of(db, due, [Column::TenantId, Column::Env, Column::Id]).await
}

/// All of all tenants, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<TopupId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}
