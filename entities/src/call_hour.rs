//! Calls of a workspace that have ended, counted by the hour in which they began.
use crate::{
    boxed,
    bulk::{self, OnConflict, batch::Batch},
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{Env, Moment},
};
use sea_orm::{Order, QueryOrder, entity::prelude::*};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "call_hours")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    /// Its first moment.
    #[sea_orm(primary_key, auto_increment = false)]
    pub hour: Moment,
    /// Placed, or come in.
    pub started: i64,
    /// A person or a machine picked up.
    pub answered: i64,
    /// Of all talks together.
    pub duration_seconds: i64,
    pub cost_cents: i64,
}
impl ActiveModelBehavior for ActiveModel {}

const HOUR_MS: i64 = 3_600_000;

impl Model {
    /// Nothing yet, in the hour of `at`.
    pub fn empty(tenant_id: TenantId, env: Env, at: Moment) -> Self {
        Model {
            tenant_id,
            env,
            hour: Moment::from_millis(at.millis().div_euclid(HOUR_MS) * HOUR_MS),
            started: 0,
            answered: 0,
            duration_seconds: 0,
            cost_cents: 0,
        }
    }

    pub fn add(&mut self, other: &Model) {
        self.started += other.started;
        self.answered += other.answered;
        self.duration_seconds += other.duration_seconds;
        self.cost_cents += other.cost_cents;
    }
}

/// Adds counts to the stored ones.
#[boxed]
pub async fn add(batch: &mut Batch<'_>, by: &[&Model]) -> Result<()> {
    let sums = bulk::sums(by, |row| (row.tenant_id, row.env.as_str(), row.hour), Model::add);
    batch
        .save(&sums.iter().collect::<Vec<_>>(), OnConflict::Add(None))
        .await
}

/// The hours that began at `since` or later and have any, oldest first.
#[boxed]
pub async fn since(db: &Connection, tenant: TenantId, env: Env, since: Moment) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::Hour.gte(since));
    Ok(select.order_by(Column::Hour, Order::Asc).all(db).await?)
}
