//! The nodes of an installation: serving processes that share one PostgreSQL database.
//!
//! A node says each second that it lives. Whether it still does goes by the database's own clock, so that nodes whose clocks
//! differ agree. One that has been silent for [`LIFE_MS`] is ended by any other (`node_end`): from then on it commits nothing
//! more ([`assert()`]), and its workspaces are free.
use crate::{
    boxed, bulk,
    bulk::OnConflict,
    connection::{Connection, Transaction},
    error::{Error, Result},
    ids::NodeId,
    values::Moment,
};
use sea_orm::{
    DbBackend, Order, QueryOrder, QuerySelect,
    entity::prelude::*,
    sea_query::{Expr, LockType},
};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "nodes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: NodeId,
    /// What the operator calls it.
    pub name: String,
    /// Where the other nodes reach it, `host:port`.
    pub address: String,
    /// Where its calls come in, `host:port`, if it carries any.
    pub sip_address: Option<String>,
    pub version: String,
    pub started_at: Moment,
    /// When it last said that it lives, by its own clock.
    pub seen_at: Moment,
    /// Until when it counts as alive, in milliseconds by the database's clock.
    pub until_ms: i64,
    /// When it ended or was ended, by the database's clock.
    pub ended_ms: Option<i64>,
    /// It hands its workspaces over, and takes none.
    pub draining: bool,
    pub workspaces: i64,
    pub live_calls: i64,
    pub deliveries_waiting: i64,
}
impl ActiveModelBehavior for ActiveModel {}

/// What a node carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub workspaces: i64,
    pub live_calls: i64,
    pub deliveries_waiting: i64,
}

impl Model {
    pub fn load(&self) -> Load {
        Load {
            workspaces: self.workspaces,
            live_calls: self.live_calls,
            deliveries_waiting: self.deliveries_waiting,
        }
    }
}

/// A node that is silent for so long may be ended.
pub const LIFE_MS: i64 = 4_000;
/// So long a node that has ended is kept for whoever asks what became of it.
const KEPT_MS: i64 = 24 * 3600 * 1000;

/// The database's clock.
pub(crate) const NOW_MS: &str = "(extract(epoch from clock_timestamp()) * 1000)::bigint";

pub(crate) fn lives() -> Expr {
    // Written out for its small index.
    Expr::cust("ended_ms IS NULL")
}

fn until() -> Expr {
    Expr::cust(format!("{NOW_MS} + {LIFE_MS}"))
}

/// A new node. It has no workspace yet.
#[boxed]
pub async fn join(db: &Transaction, row: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(row), OnConflict::Fail).await?;
    Entity::update_many()
        .col_expr(Column::UntilMs, until())
        .filter(Column::Id.eq(row.id))
        .exec(&**db)
        .await?;
    Ok(())
}

/// It lives. Answers whether it is to hand its workspaces over; [`Error::Fenced`] if it was ended meanwhile.
#[boxed]
pub async fn renew(db: &Connection, id: NodeId, seen_at: Moment, load: Load) -> Result<bool> {
    // Not a lock that commits would wait for: see `assert`.
    let renewed = Entity::update_many()
        .col_expr(Column::UntilMs, until())
        .col_expr(Column::SeenAt, Expr::value(seen_at))
        .col_expr(Column::Workspaces, Expr::value(load.workspaces))
        .col_expr(Column::LiveCalls, Expr::value(load.live_calls))
        .col_expr(Column::DeliveriesWaiting, Expr::value(load.deliveries_waiting))
        .filter(Column::Id.eq(id))
        .filter(lives())
        .exec(db)
        .await?;
    if renewed.rows_affected == 0 {
        return Err(Error::Fenced);
    }
    let draining = Entity::find_by_id(id).select_only().column(Column::Draining);
    Ok(draining.into_tuple().one(db).await?.unwrap_or(true))
}

/// [`Error::Fenced`] if it was ended. In a transaction nobody can end it before that does.
#[boxed]
pub async fn assert(db: &Connection, id: NodeId) -> Result<()> {
    // The weakest lock that meets `end_silent`'s, and no renewal.
    let select = Entity::find_by_id(id).select_only().column(Column::Id).filter(lives());
    is_it(select.lock(LockType::KeyShare).into_tuple().one(db).await?)
}

/// The same, of this moment only.
#[boxed]
pub async fn check(db: &Connection, id: NodeId) -> Result<()> {
    let select = Entity::find_by_id(id).select_only().column(Column::Id).filter(lives());
    is_it(select.into_tuple().one(db).await?)
}

fn is_it(found: Option<NodeId>) -> Result<()> {
    found.map(drop).ok_or(Error::Fenced)
}

/// The database has heard of that node within the time that others may be silent: so it was not away for all.
pub(crate) fn is_heard(me: NodeId) -> Expr {
    Expr::cust(format!(
        "EXISTS (SELECT 1 FROM nodes AS mine WHERE mine.id = '{me}'::uuid AND mine.ended_ms IS NULL AND mine.until_ms > {NOW_MS})"
    ))
}

/// Those whose time is over, as one that is heard itself sees it.
#[boxed]
pub async fn silent(db: &Connection, me: NodeId) -> Result<Vec<NodeId>> {
    let select = Entity::find().select_only().column(Column::Id).filter(lives());
    let over = Expr::cust(format!("until_ms < {NOW_MS}"));
    Ok(select.filter(over).filter(is_heard(me)).into_tuple().all(db).await?)
}

/// Keeps every node from committing until the caller's transaction ends.
#[boxed]
pub async fn hold(db: &Connection) -> Result<()> {
    if db.get_database_backend() == DbBackend::Postgres {
        // One that hangs in the middle of a commit must not stop all the others while it is waited for.
        db.execute_unprepared("SET LOCAL lock_timeout = '3s'").await?;
    }
    let all = Entity::find().filter(lives()).order_by(Column::Id, Order::Asc);
    all.lock_exclusive().all(db).await?;
    Ok(())
}

/// Those that live, by their names.
#[boxed]
pub async fn living(db: &Connection) -> Result<Vec<Model>> {
    let select = Entity::find().filter(lives());
    Ok(select
        .order_by(Column::Name, Order::Asc)
        .order_by(Column::Id, Order::Asc)
        .all(db)
        .await?)
}

/// Those and the ones that have ended within a day, the latest first.
#[boxed]
pub async fn all(db: &Connection) -> Result<Vec<Model>> {
    Ok(Entity::find().order_by(Column::StartedAt, Order::Desc).all(db).await?)
}

#[boxed]
pub async fn set_draining(db: &Connection, id: NodeId, draining: bool) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::Draining, Expr::value(draining))
        .filter(Column::Id.eq(id))
        .exec(db)
        .await?;
    Ok(())
}

/// Forgets those that ended long ago.
#[boxed]
pub async fn prune(db: &Connection) -> Result<()> {
    let over = Expr::cust(format!("ended_ms < {NOW_MS} - {KEPT_MS}"));
    Entity::delete_many().filter(over).exec(db).await?;
    Ok(())
}
