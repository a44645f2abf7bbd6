//! What was answered to a POST with an `Idempotency-Key`, kept for 24 hours.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{Env, Moment},
};
use sea_orm::{Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "idempotency_keys")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    /// SHA-256 of method, path and body, hex.
    pub fingerprint: String,
    /// The id that the request's object has or will have, so that a crash between effect and answer makes no second one.
    pub object_id: Uuid,
    /// Null while the first request runs (or when a crash cut it off).
    pub status: Option<i32>,
    /// Sealed: an answer may carry a secret that is shown once.
    #[sea_orm(column_type = "Text", nullable)]
    pub sealed_body: Option<String>,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

#[boxed]
pub async fn find(db: &Connection, tenant: TenantId, env: Env, key: &str) -> Result<Option<Model>> {
    Ok(Entity::find_by_id((tenant, env, key.to_owned())).one(db).await?)
}

/// Claims a key; `false` if it was there before.
#[boxed]
pub async fn claim(db: &Connection, row: &Model) -> Result<bool> {
    Ok(bulk::save(db, std::slice::from_ref(row), OnConflict::Keep).await? == 1)
}

#[boxed]
pub async fn answer(db: &Connection, row: &Model, status: u16, sealed_body: String) -> Result<()> {
    let update = Entity::update_many()
        .col_expr(Column::Status, Expr::value(i32::from(status)))
        .col_expr(Column::SealedBody, Expr::value(sealed_body))
        // Of a form it is known only when it was read.
        .col_expr(Column::Fingerprint, Expr::value(row.fingerprint.clone()));
    of(update, row).exec(db).await?;
    Ok(())
}

/// Gives a key back: its request changed nothing and may be sent again.
#[boxed]
pub async fn release(db: &Connection, row: &Model) -> Result<()> {
    Entity::delete_many()
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Column::Env.eq(row.env))
        .filter(Column::Key.eq(&row.key))
        .exec(db)
        .await?;
    Ok(())
}

/// Until when so many of those that are older than `created_before` were made; `None`: there are none.
#[boxed]
pub async fn oldest(db: &Connection, created_before: Moment, rows: u64) -> Result<Option<Moment>> {
    let made: Vec<Moment> = Entity::find()
        .select_only()
        .column(Column::CreatedAt)
        .filter(Column::CreatedAt.lt(created_before))
        .order_by(Column::CreatedAt, Order::Asc)
        .limit(rows)
        .into_tuple()
        .all(db)
        .await?;
    Ok(made.last().copied())
}

/// Forgets those that were made until then.
#[boxed]
pub async fn prune(db: &Connection, created_until: Moment) -> Result<u64> {
    Ok(Entity::delete_many()
        .filter(Column::CreatedAt.lte(created_until))
        .exec(db)
        .await?
        .rows_affected)
}

fn of(update: sea_orm::UpdateMany<Entity>, row: &Model) -> sea_orm::UpdateMany<Entity> {
    update
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Column::Env.eq(row.env))
        .filter(Column::Key.eq(&row.key))
}

/// Every stored answer, of all tenants: for sealing them anew.
#[boxed]
pub async fn answered(db: &Connection) -> Result<Vec<Model>> {
    Ok(Entity::find().filter(Column::SealedBody.is_not_null()).all(db).await?)
}
