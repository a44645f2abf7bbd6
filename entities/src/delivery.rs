//! Deliveries: one event on its way to one endpoint. The rows are the retry queue.
mod waiting;

pub use waiting::{
    PutAway, Waiting, count_open, count_open_of, due, endpoints_at_work, has_held, has_open, next_due_at, put_away,
    release, waiting,
};

use crate::{
    boxed,
    bulk::{batch::Batch, table::Table},
    connection::Connection,
    db::Db,
    error::Result,
    event,
    ids::{DeliveryId, EndpointId, EventId, TenantId, TenantScoped},
    page::{self, Listed, Page},
    values::{Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, QueryTrait,
    entity::prelude::*,
    sea_query::{Expr, ExprTrait},
};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use waiting::is_open;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not sent yet.
    Pending,
    /// Sent without success; will be sent again.
    Retrying,
    Succeeded,
    /// It will not be sent again; `failed_reason` says why.
    Failed,
    /// Its endpoint is suspended: kept for `recover`.
    Held,
    /// Its endpoint was disabled or deleted.
    Cancelled,
}

impl Status {
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Retrying => "retrying",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Held => "held",
            Status::Cancelled => "cancelled",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum FailedReason {
    /// The answer was final, or the target is closed.
    Permanent,
    /// No attempt is left.
    Exhausted,
    /// The next attempt would come too late after the first.
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Made with its event; counts for its endpoint's suspension.
    Live,
    /// Sent again by a replay or a recovery.
    Replay,
    /// One attempt, asked for by `…/test`.
    Test,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "deliveries")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub endpoint_id: EndpointId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: DeliveryId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub event_id: EventId,
    pub event_seq: i64,
    pub origin: Origin,
    /// For a replay: the delivery that it repeats, if there was one.
    pub replay_of: Option<DeliveryId>,
    pub status: Status,
    pub failed_reason: Option<FailedReason>,
    /// Attempts made.
    pub attempts: i32,
    pub first_attempt_at: Option<Moment>,
    /// When it is sent next; null when it is not.
    pub next_attempt_at: Option<Moment>,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// A delivery of `event` that is due at once.
    pub fn new(id: DeliveryId, endpoint: EndpointId, event: &event::Model, origin: Origin, now: Moment) -> Self {
        Model {
            endpoint_id: endpoint,
            id,
            tenant_id: event.tenant_id,
            env: event.env,
            event_id: event.id,
            event_seq: event.seq,
            origin,
            replay_of: None,
            status: Status::Pending,
            failed_reason: None,
            attempts: 0,
            first_attempt_at: None,
            next_attempt_at: Some(now),
            created_at: now,
        }
    }
}

/// The deliveries of one event, oldest first.
#[boxed]
pub async fn of_event(db: &Connection, event: &event::Model) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(event.tenant_id))
        .filter(Column::EventSeq.eq(event.seq));
    Ok(select
        .order_by(Column::Id, Order::Asc)
        .limit(MAX_OF_EVENT)
        .all(db)
        .await?)
}

/// Deliveries of one event that are shown: its first, and replays of it.
const MAX_OF_EVENT: u64 = 1000;

/// What a list of deliveries is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub origin: Option<Origin>,
    pub event_type: Option<String>,
}

/// The delivery log of one endpoint, each with its event's type.
#[boxed]
pub async fn log(db: &Db, endpoint: TenantScoped<EndpointId>, filter: Filter, page: Page) -> Result<Listed<Model>> {
    let all = Entity::find()
        .filter(Column::EndpointId.eq(endpoint.id))
        .filter(Column::TenantId.eq(endpoint.tenant_id))
        .filter(Column::Env.eq(endpoint.env));
    // Per delivery: the types of all the tenant's events may be many.
    let of_type = filter.event_type.map(|event_type| {
        let of_type = event::Entity::find()
            .select_only()
            .column(event::Column::Seq)
            .filter(Expr::col((event::Entity, event::Column::Seq)).equals((Entity, Column::EventSeq)))
            .filter(event::Column::EventType.eq(event_type));
        Expr::exists(of_type.into_query())
    });
    let wanted = Condition::all()
        .add_option(filter.status.map(|status| Column::Status.eq(status)))
        .add_option(filter.origin.map(|origin| Column::Origin.eq(origin)))
        .add_option(of_type);
    page::search(db, all, wanted, Column::Id, Column::CreatedAt, page).await
}

/// The endpoint's log after a delivery, oldest first: a slice for a recovery to look at.
pub async fn log_after(db: &Connection, endpoint: EndpointId, after: DeliveryId, limit: u64) -> Result<Vec<Model>> {
    let log = Entity::find().filter(Column::EndpointId.eq(endpoint));
    page::behind(db, log, Column::Id, Some(after), limit).await
}

/// Those of the endpoint's deliveries, oldest first.
#[boxed]
pub async fn of_ids(db: &Connection, endpoint: EndpointId, ids: &[DeliveryId]) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(Column::EndpointId.eq(endpoint))
        .filter(Column::Id.is_in(ids.iter().copied()));
    Ok(select.order_by(Column::Id, Order::Asc).all(db).await?)
}

/// Which of these events the endpoint has received, live or as a replay, or is about to.
#[boxed]
pub async fn on_their_way(db: &Connection, endpoint: EndpointId, seqs: &[i64]) -> Result<HashSet<i64>> {
    // Found by the events, of which there are few, not in the endpoint's log.
    let found: Vec<(EndpointId, i64)> = Entity::find()
        .select_only()
        .columns([Column::EndpointId, Column::EventSeq])
        .filter(Column::EventSeq.is_in(seqs.iter().copied()))
        .filter(Column::Origin.ne(Origin::Test))
        .filter(Column::Status.is_in([Status::Pending, Status::Retrying, Status::Succeeded]))
        .into_tuple()
        .all(db)
        .await?;
    let to_it = found.into_iter().filter(|(receiver, _)| *receiver == endpoint);
    Ok(to_it.map(|(_, seq)| seq).collect())
}

/// What an attempt may change, behind the key.
const OUTCOME: [Column; 7] = [
    Column::EndpointId,
    Column::Id,
    Column::Status,
    Column::FailedReason,
    Column::Attempts,
    Column::FirstAttemptAt,
    Column::NextAttemptAt,
];

/// Writes the outcome of attempts. A delivery that was cancelled meanwhile stays cancelled.
#[boxed]
pub async fn update(batch: &mut Batch<'_>, rows: &[&Model]) -> Result<()> {
    let value = |row: &Model, column: usize| row.get(OUTCOME[column]);
    batch.update::<Model, { OUTCOME.len() }>(rows, value, outcomes).await
}

/// A common table of the new values, joined by key: one statement for many rows on either database.
fn outcomes(new: Table, text: &mut String, first: usize) {
    text.push_str("WITH v (endpoint_id, id, status, failed_reason, attempts, first_attempt_at, next_attempt_at) AS (");
    new.write(text, first);
    text.push_str(
        ") UPDATE deliveries SET status = v.status, failed_reason = v.failed_reason, attempts = v.attempts, \
         first_attempt_at = v.first_attempt_at, next_attempt_at = v.next_attempt_at FROM v \
         WHERE deliveries.endpoint_id = v.endpoint_id AND deliveries.id = v.id \
         AND deliveries.status IN ('pending', 'retrying', 'held')",
    );
}

/// Deletes the deliveries of these events that have ended or are held; open ones stay, and their events with them.
#[boxed]
pub async fn prune(db: &Connection, seqs: &[i64]) -> Result<Vec<DeliveryId>> {
    let ended = || Column::EventSeq.is_in(seqs.iter().copied()).and(is_open().not());
    let ids: Vec<DeliveryId> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(ended())
        .into_tuple()
        .all(db)
        .await?;
    Entity::delete_many().filter(ended()).exec(db).await?;
    Ok(ids)
}

/// All deliveries of all tenants in the order of their key, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<(EndpointId, DeliveryId)>, limit: u64) -> Result<Vec<Model>> {
    let mut select = Entity::find();
    if let Some((endpoint, id)) = after {
        // Compared as one value: only so is each page a leap to its place, also in the middle of a long log.
        let key = Expr::tuple([Expr::col(Column::EndpointId), Expr::col(Column::Id)]);
        select = select.filter(key.gt(Expr::tuple([Expr::value(endpoint), Expr::value(id)])));
    }
    let page = select
        .order_by(Column::EndpointId, Order::Asc)
        .order_by(Column::Id, Order::Asc)
        .limit(limit);
    Ok(page.all(db).await?)
}
