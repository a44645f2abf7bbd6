//! Every version of every agent, so that a session tells with whom it was.
use crate::{
    agent::Definition,
    error::{Error, Result},
    ids::{AgentId, TenantId},
    values::Moment,
};
use sea_orm::{Order, QueryOrder, QuerySelect, entity::prelude::*};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "agent_versions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub agent_id: AgentId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub version: i32,
    pub tenant_id: TenantId,
    #[sea_orm(column_type = "JsonBinary")]
    pub definition: Definition,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

pub async fn load(db: &impl ConnectionTrait, tenant: TenantId, agent: AgentId, version: i32) -> Result<Model> {
    let found = Entity::find_by_id((agent, version)).filter(Column::TenantId.eq(tenant));
    found.one(db).await?.ok_or(Error::NotFound("version of the agent"))
}

/// The newest first, those before `before`.
pub async fn list(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    agent: AgentId,
    before: Option<i32>,
    limit: u64,
) -> Result<Vec<Model>> {
    let mut select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::AgentId.eq(agent));
    if let Some(before) = before {
        select = select.filter(Column::Version.lt(before));
    }
    Ok(select
        .order_by(Column::Version, Order::Desc)
        .limit(limit)
        .all(db)
        .await?)
}
