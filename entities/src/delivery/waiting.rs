//! What has not been delivered: what is due, what is held, and what becomes of it.
use super::{Column, Entity, Model, Status};
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::{DeliveryId, EndpointId, TenantScoped},
    values::Moment,
    webhook_endpoint,
    workspace_lease::Share,
};
use sea_orm::{FromQueryResult, Order, QueryOrder, QuerySelect, QueryTrait, entity::prelude::*, sea_query::Expr};

/// Written out, not bound: only so do the databases see that the small index of open deliveries serves. The time, which every
/// open one has, makes SQLite prefer that index to a walk over the endpoint's whole log, even without statistics.
pub(super) fn is_open() -> Expr {
    Expr::cust("status IN ('pending', 'retrying') AND next_attempt_at >= 0")
}
fn is_held() -> Expr {
    Expr::cust("status = 'held'")
}
fn open_of(endpoint: EndpointId) -> sea_orm::Select<Entity> {
    Entity::find().filter(Column::EndpointId.eq(endpoint)).filter(is_open())
}
/// In the order of the small index of held deliveries, and from its start on: only so does SQLite prefer it to a walk over the
/// endpoint's whole log, even without statistics.
fn held_of(endpoint: EndpointId) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::EndpointId.eq(endpoint))
        .filter(is_held())
        .filter(Column::Id.gt(DeliveryId(Uuid::nil())))
        .order_by(Column::Id, Order::Asc)
}

/// The endpoint's open deliveries that are due until `until`, in their order.
#[boxed]
pub async fn due(db: &Connection, endpoint: EndpointId, until: Moment, limit: u64) -> Result<Vec<Model>> {
    let select = open_of(endpoint)
        .filter(Column::NextAttemptAt.lte(until))
        .order_by(Column::NextAttemptAt, Order::Asc)
        .order_by(Column::EventSeq, Order::Asc);
    Ok(select.limit(limit).all(db).await?)
}

#[boxed]
pub async fn has_open(db: &Connection, endpoint: EndpointId) -> Result<bool> {
    Ok(open_of(endpoint).limit(1).one(db).await?.is_some())
}

/// When the endpoint's next delivery after `after` is due.
#[boxed]
pub async fn next_due_at(db: &Connection, endpoint: EndpointId, after: Moment) -> Result<Option<Moment>> {
    let select = open_of(endpoint).filter(Column::NextAttemptAt.gt(after));
    let first = select
        .order_by(Column::NextAttemptAt, Order::Asc)
        .limit(1)
        .one(db)
        .await?;
    Ok(first.and_then(|row| row.next_attempt_at))
}

/// Endpoints with something to send: each needs its delivery lane.
#[boxed]
pub async fn endpoints_at_work(db: &Connection, share: Share) -> Result<Vec<TenantScoped<EndpointId>>> {
    // The index alone answers this; whose they are the endpoints' own rows tell.
    let select = Entity::find().select_only().column(Column::EndpointId);
    let ids: Vec<EndpointId> = select.filter(is_open()).distinct().into_tuple().all(db).await?;
    webhook_endpoint::keys(db, share, &ids).await
}

/// Deliveries that have not ended, over all endpoints.
#[boxed]
pub async fn count_open(db: &Connection) -> Result<u64> {
    Ok(Entity::find().filter(is_open()).count(db).await?)
}

/// The same, over those of these workspaces; no more are counted than that.
#[boxed]
pub async fn count_open_of(db: &Connection, share: Share, most: u64) -> Result<u64> {
    let endpoints = webhook_endpoint::Entity::find()
        .select_only()
        .column(webhook_endpoint::Column::Id)
        .filter(share.of(webhook_endpoint::Column::TenantId))
        .into_query();
    let open = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::EndpointId.in_subquery(endpoints))
        .filter(is_open())
        .limit(most);
    let ids: Vec<DeliveryId> = open.into_tuple().all(db).await?;
    Ok(ids.len() as u64)
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromQueryResult)]
pub struct Waiting {
    pub pending: i64,
    pub retrying: i64,
    pub held: i64,
    /// When the longest overdue one was due.
    pub oldest_due_at: Option<Moment>,
}

/// What waits for one endpoint, or for all.
#[boxed]
pub async fn waiting(db: &Connection, endpoint: Option<EndpointId>) -> Result<Waiting> {
    let narrowed = |select: sea_orm::Select<Entity>| match endpoint {
        Some(endpoint) => select.filter(Column::EndpointId.eq(endpoint)),
        None => select,
    };
    let open = narrowed(Entity::find())
        .filter(is_open())
        .select_only()
        .column_as(
            Expr::cust("COALESCE(SUM(CASE WHEN status = 'pending' THEN 1 ELSE 0 END), 0)"),
            "pending",
        )
        .column_as(
            Expr::cust("COALESCE(SUM(CASE WHEN status = 'retrying' THEN 1 ELSE 0 END), 0)"),
            "retrying",
        )
        .column_as(Expr::cust("CAST(0 AS BIGINT)"), "held")
        .column_as(Column::NextAttemptAt.min(), "oldest_due_at");
    let open = open.into_model::<Waiting>().one(db).await?.unwrap_or_default();
    let held = narrowed(Entity::find()).filter(is_held()).count(db).await?;
    Ok(Waiting {
        held: i64::try_from(held).unwrap_or(i64::MAX),
        ..open
    })
}

/// Deliveries that one statement moves: a queue of millions must not keep the writer from everything else.
const SLICE: u64 = 500;

/// Cancels, or holds, a slice of what the endpoint has not received. Whoever asks goes on until [`has_open`] says no.
#[boxed]
pub async fn put_away(db: &Connection, endpoint: EndpointId, what: PutAway) -> Result<u64> {
    let (which, status) = match what {
        PutAway::CancelOpen => (open_of(endpoint), Status::Cancelled),
        PutAway::CancelHeld => (held_of(endpoint), Status::Cancelled),
        PutAway::HoldOpen => (open_of(endpoint), Status::Held),
    };
    let ids: Vec<DeliveryId> = which
        .select_only()
        .column(Column::Id)
        .limit(SLICE)
        .into_tuple()
        .all(db)
        .await?;
    if ids.is_empty() {
        return Ok(0);
    }
    let update = Entity::update_many()
        .col_expr(Column::Status, Expr::value(status))
        .col_expr(Column::NextAttemptAt, Expr::value(Option::<Moment>::None));
    let these = update
        .filter(Column::EndpointId.eq(endpoint))
        .filter(Column::Id.is_in(ids));
    Ok(these.exec(db).await?.rows_affected)
}

/// What becomes of what an endpoint has not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutAway {
    CancelOpen,
    CancelHeld,
    HoldOpen,
}

#[boxed]
pub async fn has_held(db: &Connection, endpoint: EndpointId) -> Result<bool> {
    // The id alone: the index of held ones has it, and is then shorter than the key's.
    let ids = held_of(endpoint).select_only().column(Column::Id).limit(1);
    Ok(ids.into_tuple::<DeliveryId>().one(db).await?.is_some())
}

/// Lets held deliveries go: they are due at once.
#[boxed]
pub async fn release(db: &Connection, endpoint: EndpointId, ids: &[DeliveryId], now: Moment) -> Result<u64> {
    let update = Entity::update_many()
        .col_expr(Column::Status, Expr::value(Status::Pending))
        .col_expr(Column::NextAttemptAt, Expr::value(Some(now)));
    let these = update
        .filter(Column::EndpointId.eq(endpoint))
        .filter(Column::Id.is_in(ids.iter().copied()))
        .filter(is_held());
    Ok(these.exec(db).await?.rows_affected)
}
