//! Events: what happened, as the receivers see it. The body is stored once, as the bytes that are signed and sent.
use crate::{
    boxed,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{EventId, TenantId},
    meta,
    page::{self, Listed, Page},
    values::{Env, Moment},
    workspace_lease::Share,
};
use sea_orm::{Condition, Order, QueryOrder, QuerySelect, QueryTrait, Statement, entity::prelude::*, sea_query::Expr};
use std::collections::HashMap;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "events")]
pub struct Model {
    /// The order of commits: over all tenants, or, where several nodes serve, of each.
    #[sea_orm(primary_key, auto_increment = false)]
    pub seq: i64,
    pub id: EventId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub event_type: String,
    /// The session, campaign or endpoint that it is about.
    pub subject_id: Uuid,
    pub created_at: Moment,
    /// The envelope, UTF-8 JSON; sealed where it holds a link that is its own proof.
    #[sea_orm(column_type = "Text")]
    pub body: String,
}
impl ActiveModelBehavior for ActiveModel {}

/// The highest sequence number that was ever given; 0 before the first event. Pruning leaves it where it was.
#[boxed]
pub async fn last_seq(db: &Connection) -> Result<i64> {
    let pruned = meta::get(db, meta::PRUNED_SEQ).await?;
    let pruned = pruned.and_then(|seq| seq.parse().ok()).unwrap_or(0);
    let last: Option<i64> = Entity::find()
        .select_only()
        .column(Column::Seq)
        .order_by(Column::Seq, Order::Desc)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?;
    Ok(last.unwrap_or(0).max(pruned))
}

/// The newest event's id, of whatever tenant.
#[boxed]
pub async fn last_id(db: &Connection) -> Result<Option<EventId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::Id)
        .order_by(Column::Seq, Order::Desc)
        .limit(1);
    Ok(select.into_tuple().one(db).await?)
}

/// The largest id of the events of these workspaces. On PostgreSQL, which several nodes share.
#[boxed]
pub async fn newest_of(db: &Connection, tenants: &[TenantId]) -> Result<Option<EventId>> {
    let mut newest = None;
    for some in tenants.chunks(500) {
        let list: Vec<String> = some.iter().map(|tenant| format!("('{tenant}'::uuid)")).collect();
        // One look at the index for each of them and each env.
        let text = format!(
            "SELECT latest.id FROM (VALUES {}) AS t(id) CROSS JOIN (VALUES ('test'), ('live')) AS e(env) CROSS JOIN LATERAL \
             (SELECT id FROM events WHERE tenant_id = t.id AND env = e.env ORDER BY id DESC LIMIT 1) AS latest \
             ORDER BY latest.id DESC LIMIT 1",
            list.join(", ")
        );
        let row = db
            .query_one_raw(Statement::from_string(db.get_database_backend(), text))
            .await?;
        let id: Option<EventId> = row.map(|row| row.try_get_by_index(0)).transpose()?;
        newest = newest.max(id);
    }
    Ok(newest)
}

/// The largest id of a workspace's events.
#[boxed]
pub async fn newest(db: &Connection, tenant: TenantId, env: Env) -> Result<Option<EventId>> {
    let select = owned(tenant, env).select_only().column(Column::Id);
    Ok(select
        .order_by(Column::Id, Order::Desc)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?)
}

fn owned(tenant: TenantId, env: Env) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
}

#[boxed]
pub async fn load(db: &Connection, tenant: TenantId, env: Env, id: EventId) -> Result<Model> {
    owned(tenant, env)
        .filter(Column::Id.eq(id))
        .one(db)
        .await?
        .ok_or(Error::NotFound("event"))
}

/// What a list of events is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub event_type: Option<String>,
    pub subject_id: Option<Uuid>,
}

#[boxed]
pub async fn list(db: &Db, tenant: TenantId, env: Env, filter: Filter, page: Page) -> Result<Listed<Model>> {
    let event_type = filter.event_type.map(|event_type| Column::EventType.eq(event_type));
    let subject = filter.subject_id.map(|subject| Column::SubjectId.eq(subject));
    let wanted = Condition::all().add_option(event_type).add_option(subject);
    page::search(db, owned(tenant, env), wanted, Column::Id, Column::CreatedAt, page).await
}

/// Events after the one of that id, in order: what a stream that was cut off has missed.
pub async fn after(db: &Connection, tenant: TenantId, env: Env, id: EventId, limit: u64) -> Result<Vec<Model>> {
    Ok(owned(tenant, env)
        .filter(Column::Id.gt(id))
        .order_by(Column::Id, Order::Asc)
        .limit(limit)
        .all(db)
        .await?)
}

/// Some events by their sequence numbers, for the delivery lane that has only these.
#[boxed]
pub async fn of_seqs(db: &Connection, seqs: &[i64]) -> Result<Vec<Model>> {
    Ok(Entity::find()
        .filter(Column::Seq.is_in(seqs.iter().copied()))
        .all(db)
        .await?)
}

/// The oldest events made before `before`, at most `limit`, beginning after `after`. Times grow with the numbers; of several nodes
/// within each [`BLOCK`](meta::BLOCK) only, so that the next one is looked at where one has come to what is newer.
#[boxed]
pub async fn oldest(db: &Connection, share: Share, after: i64, before: Moment, limit: u64) -> Result<Vec<i64>> {
    let mut after = after;
    loop {
        let rows: Vec<(i64, Moment)> = Entity::find()
            .select_only()
            .columns([Column::Seq, Column::CreatedAt])
            .filter(Column::Seq.gt(after))
            .order_by(Column::Seq, Order::Asc)
            .limit(limit)
            .into_tuple()
            .all(db)
            .await?;
        let old = rows.iter().take_while(|(_, created_at)| *created_at < before);
        let old: Vec<i64> = old.map(|(seq, _)| *seq).collect();
        match rows.first() {
            Some((newer, _)) if old.is_empty() && share != Share::Whole => {
                after = (newer / meta::BLOCK + 1) * meta::BLOCK - 1;
            }
            Some(_) | None => return Ok(old),
        }
    }
}

/// Deletes these events, but for those that are still to be delivered.
#[boxed]
pub async fn prune(db: &Connection, seqs: &[i64]) -> Result<u64> {
    let needed = crate::delivery::Entity::find()
        .select_only()
        .column(crate::delivery::Column::EventSeq)
        .filter(crate::delivery::Column::EventSeq.is_in(seqs.iter().copied()));
    let these = Entity::delete_many()
        .filter(Column::Seq.is_in(seqs.iter().copied()))
        .filter(Column::Seq.not_in_subquery(needed.into_query()));
    // Numbers are never given twice, not even after the last event is gone.
    let last = last_seq(db).await?;
    meta::set(db, meta::PRUNED_SEQ, &last.to_string()).await?;
    Ok(these.exec(db).await?.rows_affected)
}

/// The types of these events.
#[boxed]
pub async fn types(db: &Connection, tenant: TenantId, env: Env, ids: &[EventId]) -> Result<HashMap<EventId, String>> {
    let select = owned(tenant, env)
        .filter(Column::Id.is_in(ids.iter().copied()))
        .select_only()
        .columns([Column::Id, Column::EventType]);
    let rows: Vec<(EventId, String)> = select.into_tuple().all(db).await?;
    Ok(rows.into_iter().collect())
}

/// Events of all tenants whose bodies are sealed, a page at a time.
pub async fn sealed_after(db: &Connection, after: Option<i64>, limit: u64) -> Result<Vec<Model>> {
    let sealed = Entity::find().filter(Column::Body.starts_with("~"));
    page::behind(db, sealed, Column::Seq, after, limit).await
}

/// The same body under another key.
#[boxed]
pub async fn reseal(db: &Connection, seq: i64, body: String) -> Result<()> {
    let update = Entity::update_many()
        .col_expr(Column::Body, Expr::value(body))
        .filter(Column::Seq.eq(seq));
    update.exec(db).await?;
    Ok(())
}

/// All events of all tenants in their order, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<i64>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Seq, after, limit).await
}
