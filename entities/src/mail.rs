//! E-mails of the service to its users: an outbox. A row is a promise to send it.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::Result,
    ids::{MailId, TenantId},
    page,
    values::Moment,
};
use sea_orm::{
    DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect,
    entity::prelude::*,
    sea_query::{Expr, ExprTrait},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
pub enum Status {
    Queued,
    Sent,
    Failed,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "mails")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: MailId,
    pub tenant_id: TenantId,
    pub recipient: String,
    /// What it is about, as `webhook.endpoint_disabled_notice`.
    pub kind: String,
    pub subject: String,
    #[sea_orm(column_type = "Text")]
    pub body: String,
    pub status: Status,
    pub attempts: i32,
    /// When it is sent next; null once it has ended.
    pub next_attempt_at: Option<Moment>,
    pub last_error: Option<String>,
    pub created_at: Moment,
    pub ended_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

/// How the `kind` of a mail begins that holds a link which lets its reader in.
const LETS_IN: &str = "account.";

impl Model {
    /// Whoever reads the table must not get in by it: its body is sealed while it waits, and gone when it was sent or given up.
    pub fn lets_in(&self) -> bool {
        self.kind.starts_with(LETS_IN)
    }
}

/// Those that wait and are sealed.
pub async fn sealed_after(db: &Connection, after: Option<MailId>, limit: u64) -> Result<Vec<Model>> {
    let sealed = Entity::find()
        .filter(is_queued())
        .filter(Column::Kind.starts_with(LETS_IN));
    page::behind(db, sealed, Column::Id, after, limit).await
}

fn is_queued() -> Expr {
    Expr::cust("status = 'queued'")
}

/// What is due until `until`, oldest first.
#[boxed]
pub async fn due(db: &Connection, until: Moment, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(is_queued())
        .filter(Column::NextAttemptAt.lte(until));
    Ok(select
        .order_by(Column::NextAttemptAt, Order::Asc)
        .limit(limit)
        .all(db)
        .await?)
}

/// When the next one is due.
#[boxed]
pub async fn next_due_at(db: &Connection) -> Result<Option<Moment>> {
    let select = Entity::find().filter(is_queued());
    let first = select.order_by(Column::NextAttemptAt, Order::Asc).one(db).await?;
    Ok(first.and_then(|row| row.next_attempt_at))
}

#[boxed]
pub async fn save(db: &Connection, rows: &[Model]) -> Result<()> {
    bulk::save(db, rows, OnConflict::Replace).await?;
    Ok(())
}

#[boxed]
pub async fn any_before(db: &Connection, created_before: Moment) -> Result<bool> {
    let select = Entity::find()
        .filter(is_queued().not())
        .filter(Column::CreatedAt.lt(created_before));
    Ok(select.limit(1).one(db).await?.is_some())
}

#[boxed]
pub async fn prune(db: &Connection, created_before: Moment) -> Result<u64> {
    let ended = Entity::delete_many()
        .filter(is_queued().not())
        .filter(Column::CreatedAt.lt(created_before));
    Ok(ended.exec(db).await?.rows_affected)
}
