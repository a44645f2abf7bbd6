//! Numbers of a workspace that its calls do not show for a while, for what networks and people make of them.
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{E164, Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// Why a number is given a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum CallerRestCause {
    /// Networks block calls that show it.
    Blocked,
    /// Hardly anybody answers it any more.
    Unanswered,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "caller_rests")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    #[sea_orm(primary_key, auto_increment = false)]
    pub phone_number: E164,
    pub cause: CallerRestCause,
    pub since: Moment,
    pub ends_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// The last rest of a number, whether it lasts or is over.
#[boxed]
pub async fn of_number(db: &Connection, (tenant, env): (TenantId, Env), number: &E164) -> Result<Option<Model>> {
    Ok(Entity::find_by_id((tenant, env, number.clone())).one(db).await?)
}

/// Those of the workspace that last longer than until then.
#[boxed]
pub async fn lasting(db: &Connection, (tenant, env): (TenantId, Env), now: Moment) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::EndsAt.gt(now));
    Ok(select.all(db).await?)
}

/// Removes those that were over before then. There are as many as numbers.
#[boxed]
pub async fn prune(db: &Connection, before: Moment) -> Result<u64> {
    Ok(Entity::delete_many()
        .filter(Column::EndsAt.lt(before))
        .exec(db)
        .await?
        .rows_affected)
}
