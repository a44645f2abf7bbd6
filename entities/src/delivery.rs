//! Deliveries: one event on its way to one endpoint. The rows are the retry queue.
use crate::{
    bulk,
    error::Result,
    ids::{DeliveryId, EndpointId, EventId, TenantId},
    values::{Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{
    DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, Statement, Value, entity::prelude::*, sea_query::Expr,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not sent yet.
    Pending,
    /// Sent in vain; will be sent again.
    Retrying,
    Succeeded,
    /// Refused for good, or out of attempts.
    Failed,
    /// Its endpoint was disabled or deleted.
    Cancelled,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "deliveries")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: DeliveryId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub endpoint_id: EndpointId,
    pub event_id: EventId,
    pub event_seq: i64,
    pub status: Status,
    /// Attempts made.
    pub attempts: i32,
    pub first_attempt_at: Option<Moment>,
    /// When it is sent next; null once it has ended.
    pub next_attempt_at: Option<Moment>,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// Written out, not bound: only so do the databases see that the small index of open deliveries serves.
fn is_open() -> Expr {
    Expr::cust("status IN ('pending', 'retrying')")
}

/// The endpoint's open deliveries, those due first in front, beyond those already in hand.
pub async fn open(db: &impl ConnectionTrait, endpoint: EndpointId, until: Moment, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(Column::EndpointId.eq(endpoint))
        .filter(is_open())
        .filter(Column::NextAttemptAt.lte(until));
    let select = select
        .order_by(Column::NextAttemptAt, Order::Asc)
        .order_by(Column::EventSeq, Order::Asc);
    Ok(select.limit(limit).all(db).await?)
}

/// When the endpoint's next delivery after `after` is due.
pub async fn next_due_at(db: &impl ConnectionTrait, endpoint: EndpointId, after: Moment) -> Result<Option<Moment>> {
    let select = Entity::find()
        .filter(Column::EndpointId.eq(endpoint))
        .filter(is_open())
        .filter(Column::NextAttemptAt.gt(after));
    let first = select
        .order_by(Column::NextAttemptAt, Order::Asc)
        .limit(1)
        .one(db)
        .await?;
    Ok(first.and_then(|row| row.next_attempt_at))
}

/// Endpoints with something to send: each needs its delivery lane.
pub async fn endpoints_at_work(db: &impl ConnectionTrait) -> Result<Vec<(TenantId, Env, EndpointId)>> {
    let select = Entity::find()
        .select_only()
        .columns([Column::TenantId, Column::Env, Column::EndpointId]);
    let select = select.filter(is_open()).distinct();
    Ok(select.into_tuple().all(db).await?)
}

pub async fn of_event(db: &impl ConnectionTrait, tenant: TenantId, event: EventId) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::EventId.eq(event));
    Ok(select.order_by(Column::Id, Order::Asc).all(db).await?)
}

/// Deliveries not ended, over all endpoints: a gauge.
pub async fn count_open(db: &impl ConnectionTrait) -> Result<u64> {
    Ok(Entity::find().filter(is_open()).count(db).await?)
}

/// Ends what an endpoint that is no longer there would have received.
pub async fn cancel_open(db: &impl ConnectionTrait, endpoint: EndpointId) -> Result<u64> {
    let update = Entity::update_many()
        .col_expr(Column::Status, Expr::value(Status::Cancelled))
        .col_expr(Column::NextAttemptAt, Expr::value(Option::<Moment>::None));
    let open = update.filter(Column::EndpointId.eq(endpoint)).filter(is_open());
    Ok(open.exec(db).await?.rows_affected)
}

/// Writes the outcome of attempts. A delivery that was cancelled meanwhile stays cancelled.
pub async fn update(db: &impl ConnectionTrait, rows: &[Model]) -> Result<()> {
    for chunk in rows.chunks(100) {
        // A common table of the new values, joined by id: one statement for many rows on either database.
        let mut text = String::from("WITH v (id, status, attempts, first_attempt_at, next_attempt_at) AS (VALUES ");
        let mut values: Vec<Value> = Vec::with_capacity(chunk.len() * 5);
        for (index, row) in chunk.iter().enumerate() {
            text.push_str(if index == 0 { "(" } else { ", (" });
            for column in 1..=5 {
                if column > 1 {
                    text.push_str(", ");
                }
                bulk::placeholder(&mut text, db.get_database_backend(), index * 5 + column);
            }
            text.push(')');
            values.extend([
                row.id.into(),
                Value::from(sea_orm::ActiveEnum::to_value(&row.status)),
                row.attempts.into(),
                row.first_attempt_at.into(),
                row.next_attempt_at.into(),
            ]);
        }
        text.push_str(
            ") UPDATE deliveries SET status = v.status, attempts = v.attempts, first_attempt_at = v.first_attempt_at, \
             next_attempt_at = v.next_attempt_at FROM v WHERE deliveries.id = v.id AND deliveries.status IN ('pending', 'retrying')",
        );
        db.execute_raw(Statement::from_sql_and_values(db.get_database_backend(), text, values))
            .await?;
    }
    Ok(())
}
