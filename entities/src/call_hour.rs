//! Calls of a workspace that have ended, counted by the hour in which they began.
use crate::{
    boxed, bulk,
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{Env, Moment},
};
use sea_orm::{Order, QueryOrder, Statement, Value, entity::prelude::*};
use std::collections::BTreeMap;

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
pub async fn add(db: &Connection, by: &[Model]) -> Result<()> {
    const COLUMNS: usize = 7;
    // One statement takes no row twice.
    let mut sums: BTreeMap<(TenantId, &str, Moment), Model> = BTreeMap::new();
    for row in by {
        sums.entry((row.tenant_id, row.env.as_str(), row.hour))
            .or_insert_with(|| Model::empty(row.tenant_id, row.env, row.hour))
            .add(row);
    }
    let sums: Vec<Model> = sums.into_values().collect();
    for chunk in bulk::chunks(&sums, COLUMNS) {
        let mut text = String::from(
            "INSERT INTO call_hours (tenant_id, env, hour, started, answered, duration_seconds, cost_cents) VALUES ",
        );
        bulk::placeholders(&mut text, db.get_database_backend(), chunk.len(), COLUMNS);
        text.push_str(
            " ON CONFLICT (tenant_id, env, hour) DO UPDATE SET started = call_hours.started + excluded.started, \
             answered = call_hours.answered + excluded.answered, \
             duration_seconds = call_hours.duration_seconds + excluded.duration_seconds, \
             cost_cents = call_hours.cost_cents + excluded.cost_cents",
        );
        let values = chunk.iter().flat_map(|row| {
            [
                Value::from(row.tenant_id),
                row.env.into(),
                row.hour.into(),
                row.started.into(),
                row.answered.into(),
                row.duration_seconds.into(),
                row.cost_cents.into(),
            ]
        });
        let values: Vec<Value> = values.collect();
        db.execute_raw(Statement::from_sql_and_values(db.get_database_backend(), text, values))
            .await?;
    }
    Ok(())
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
