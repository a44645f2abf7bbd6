//! Every version of every agent, so that a session tells with whom it was.
use crate::{
    agent::Definition,
    boxed,
    connection::Connection,
    error::{Error, Result},
    ids::{AgentId, TenantId},
    page::{Listed, Page},
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

#[boxed]
pub async fn load(db: &Connection, tenant: TenantId, agent: AgentId, version: i32) -> Result<Model> {
    let found = Entity::find_by_id((agent, version)).filter(Column::TenantId.eq(tenant));
    found.one(db).await?.ok_or(Error::NotFound("version of the agent"))
}

/// One page, after that version in its order; one row more than asked for tells whether another page follows.
#[boxed]
pub async fn list(
    db: &Connection,
    tenant: TenantId,
    agent: AgentId,
    after: Option<i32>,
    page: Page,
) -> Result<Listed<Model>> {
    let mut select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::AgentId.eq(agent));
    let order = if page.newest_first { Order::Desc } else { Order::Asc };
    if let Some(after) = after {
        select = select.filter(if page.newest_first {
            Column::Version.lt(after)
        } else {
            Column::Version.gt(after)
        });
    }
    let select = select.order_by(Column::Version, order).limit(page.limit + 1);
    let mut rows = select.all(db).await?;
    let has_more = rows.len() as u64 > page.limit;
    rows.truncate(usize::try_from(page.limit).unwrap_or(usize::MAX));
    Ok(Listed { rows, has_more })
}
