//! How the calls went that showed a number, counted by the hour in which they were placed: whether people still pick up when they
//! see it, and whether networks block it.
use crate::{
    boxed,
    bulk::{self, OnConflict, batch::Batch},
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{E164, Env, Moment},
    workspace_lease::Share,
};
use sea_orm::{FromQueryResult, QuerySelect, entity::prelude::*, sea_query::Expr};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "number_hours")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    /// The one that the calls showed.
    #[sea_orm(primary_key, auto_increment = false)]
    pub phone_number: E164,
    /// Its first moment.
    #[sea_orm(primary_key, auto_increment = false)]
    pub hour: Moment,
    pub dialed: i64,
    /// A person or a machine picked up.
    pub answered: i64,
    /// A network, or what somebody has set up, turned the call down for the number that it showed: SIP 608, and 603 "Network
    /// Blocked" (603+).
    pub blocked: i64,
}
impl ActiveModelBehavior for ActiveModel {}

const HOUR_MS: i64 = 3_600_000;

impl Model {
    /// Nothing yet, in the hour of `at`.
    pub fn empty((tenant_id, env): (TenantId, Env), phone_number: E164, at: Moment) -> Self {
        Model {
            tenant_id,
            env,
            phone_number,
            hour: Moment::from_millis(at.millis().div_euclid(HOUR_MS) * HOUR_MS),
            dialed: 0,
            answered: 0,
            blocked: 0,
        }
    }
}

/// Adds counts to the stored ones.
#[boxed]
pub async fn add(batch: &mut Batch<'_>, by: &[&Model]) -> Result<()> {
    let sums = bulk::sums(
        by,
        |row| (row.tenant_id, row.env.as_str(), row.phone_number.clone(), row.hour),
        |sum, row| {
            sum.dialed += row.dialed;
            sum.answered += row.answered;
            sum.blocked += row.blocked;
        },
    );
    batch
        .save(&sums.iter().collect::<Vec<_>>(), OnConflict::Add(None))
        .await
}

/// Calls of some hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromQueryResult)]
pub struct Counts {
    pub dialed: i64,
    pub answered: i64,
    pub blocked: i64,
}

/// PostgreSQL's sum of bigints is a numeric.
fn sum(column: &str) -> Expr {
    Expr::cust(format!("CAST(COALESCE(SUM({column}), 0) AS BIGINT)"))
}

/// A number's counts of the hours that began at `since` or later.
#[boxed]
pub async fn counts_since(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    number: &E164,
    since: Moment,
) -> Result<Counts> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::PhoneNumber.eq(number.clone()))
        .filter(Column::Hour.gte(since))
        .select_only()
        .column_as(sum("dialed"), "dialed")
        .column_as(sum("answered"), "answered")
        .column_as(sum("blocked"), "blocked");
    Ok(select.into_model::<Counts>().one(db).await?.unwrap_or_default())
}

/// A number that was shown, and how its calls went.
#[derive(Clone, Debug, PartialEq, Eq, FromQueryResult)]
pub struct Shown {
    pub tenant_id: TenantId,
    pub phone_number: E164,
    pub dialed: i64,
    pub answered: i64,
    pub blocked: i64,
}

impl Shown {
    pub fn counts(&self) -> Counts {
        let Shown {
            dialed,
            answered,
            blocked,
            ..
        } = *self;
        Counts {
            dialed,
            answered,
            blocked,
        }
    }
}

/// Numbers that were shown in at least so many live calls since then, of the workspaces of that share.
#[boxed]
pub async fn shown_since(db: &Connection, share: Share, since: Moment, least: i64) -> Result<Vec<Shown>> {
    let select = Entity::find()
        .filter(Column::Env.eq(Env::Live))
        .filter(Column::Hour.gte(since))
        .filter(share.of(Column::TenantId))
        .select_only()
        .column(Column::TenantId)
        .column(Column::PhoneNumber)
        .column_as(sum("dialed"), "dialed")
        .column_as(sum("answered"), "answered")
        .column_as(sum("blocked"), "blocked")
        .group_by(Column::TenantId)
        .group_by(Column::PhoneNumber)
        .having(Expr::cust(format!("SUM(dialed) >= {least}")));
    Ok(select.into_model::<Shown>().all(db).await?)
}

#[boxed]
pub async fn any_before(db: &Connection, before: Moment) -> Result<bool> {
    let select = Entity::find().filter(Column::Hour.lt(before));
    Ok(select.limit(1).one(db).await?.is_some())
}

#[boxed]
pub async fn prune(db: &Connection, before: Moment) -> Result<u64> {
    Ok(Entity::delete_many()
        .filter(Column::Hour.lt(before))
        .exec(db)
        .await?
        .rows_affected)
}
