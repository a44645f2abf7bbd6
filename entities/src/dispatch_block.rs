//! What keeps a tenant from dialling in one env, whatever its campaigns say. Whoever sees the cause gone removes the row.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, entity::prelude::*};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The prepaid credits are used up.
    Credits,
    /// The operator has suspended the workspace.
    Suspension,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "dispatch_blocks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    #[sea_orm(primary_key, auto_increment = false)]
    pub reason: Reason,
    pub since: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

#[boxed]
pub async fn of(db: &Connection, tenant: TenantId) -> Result<Vec<Model>> {
    Ok(Entity::find().filter(Column::TenantId.eq(tenant)).all(db).await?)
}

/// A second time changes nothing.
#[boxed]
pub async fn add(db: &Connection, rows: &[Model]) -> Result<()> {
    bulk::save(db, rows, OnConflict::Keep).await.map(drop)
}

#[boxed]
pub async fn remove(db: &Connection, tenant: TenantId, env: Env, reason: Reason) -> Result<()> {
    Entity::delete_by_id((tenant, env, reason)).exec(db).await?;
    Ok(())
}
