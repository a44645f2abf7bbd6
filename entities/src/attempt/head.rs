//! Where a chain stood on each day, signed: whoever keeps a copy can show later that nothing before it was changed.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{Env, Moment},
};
use sea_orm::{Order, QueryOrder, QuerySelect, QueryTrait, entity::prelude::*};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "attempt_heads")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    /// In UTC, as `2026-11-30`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub day: String,
    pub n: i64,
    pub hash: String,
    pub signed_at: Moment,
    /// Ed25519, base64.
    pub public_key: String,
    pub signature: String,
}
impl ActiveModelBehavior for ActiveModel {}

/// The newest first, those before `day`.
#[boxed]
pub async fn list(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    before: Option<String>,
    limit: u64,
) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .apply_if(before, |rows, day| rows.filter(Column::Day.lt(day)))
        .order_by(Column::Day, Order::Desc)
        .limit(limit);
    Ok(select.all(db).await?)
}

/// One a day: what was signed first stays.
#[boxed]
pub async fn add(db: &Connection, rows: &[Model]) -> Result<()> {
    bulk::save(db, rows, OnConflict::Keep).await.map(drop)
}

/// All of all tenants: for the audit.
#[boxed]
pub async fn all(db: &Connection) -> Result<Vec<Model>> {
    let select = Entity::find()
        .order_by(Column::TenantId, Order::Asc)
        .order_by(Column::Env, Order::Asc)
        .order_by(Column::Day, Order::Asc);
    Ok(select.all(db).await?)
}
