//! Where a chain begins whose oldest rows are gone: the last of them, which the first that is kept follows.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{Env, Moment},
};
use sea_orm::{Order, QueryOrder, entity::prelude::*};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "attempt_anchors")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    pub n: i64,
    pub hash: String,
    /// When it was committed.
    pub recorded_at: Moment,
    pub pruned_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// `None`: the chain is there from its first row on.
#[boxed]
pub async fn load(db: &Connection, owner: (TenantId, Env)) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(owner).one(db).await?)
}

#[boxed]
pub async fn save(db: &Connection, row: Model) -> Result<()> {
    bulk::save(db, &[row], OnConflict::Replace).await.map(drop)
}

/// All of all tenants: for the audit.
#[boxed]
pub async fn all(db: &Connection) -> Result<Vec<Model>> {
    let select = Entity::find().order_by(Column::TenantId, Order::Asc);
    Ok(select.order_by(Column::Env, Order::Asc).all(db).await?)
}
