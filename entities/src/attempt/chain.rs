//! How far each chain goes: the row that the next one follows. Replaced with each commit that adds to it, only from the version that was
//! read, so that of two processes that both believe they own it one commits.
use super::anchor;
use crate::{
    boxed, bulk,
    connection::Connection,
    error::Result,
    ids::TenantId,
    page,
    values::{Env, Moment},
    workspace_lease::Share,
};
use sea_orm::{Order, QueryOrder, entity::prelude::*};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "attempt_chains")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    /// The last row's.
    pub n: i64,
    pub hash: String,
    pub version: i32,
    pub updated_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// Before its first row.
    pub fn empty((tenant_id, env): (TenantId, Env), now: Moment) -> Self {
        Model {
            tenant_id,
            env,
            n: 0,
            hash: String::new(),
            version: 0,
            updated_at: now,
        }
    }
}

/// Where these chains end, of those that have begun: one look-up, however many rows there are.
#[boxed]
pub async fn of(db: &Connection, owners: &[(TenantId, Env)]) -> Result<Vec<Model>> {
    let mut tenants: Vec<TenantId> = owners.iter().map(|(tenant, _)| *tenant).collect();
    tenants.sort();
    tenants.dedup();
    let mut found = Vec::new();
    for chunk in bulk::padded(&tenants) {
        found.extend(Entity::find().filter(Column::TenantId.is_in(chunk)).all(db).await?);
    }
    Ok(found)
}

/// `None`: nothing was ever recorded.
#[boxed]
pub async fn load(db: &Connection, owner: (TenantId, Env)) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(owner).one(db).await?)
}

/// The first row that is kept, and the last: `(1, 0)` where there is none.
#[boxed]
pub async fn bounds(db: &Connection, owner: (TenantId, Env)) -> Result<(i64, i64)> {
    let last = load(db, owner).await?.map_or(0, |chain| chain.n);
    let anchor = anchor::load(db, owner).await?.map_or(0, |anchor| anchor.n);
    Ok((anchor + 1, last))
}

/// The chains of the workspaces that this process has, a page at a time, by tenant.
#[boxed]
pub async fn all_after(db: &Connection, share: Share, after: Option<TenantId>, limit: u64) -> Result<Vec<Model>> {
    let mine = Entity::find().filter(share.of(Column::TenantId));
    // Two at most have one tenant: the page is cut between tenants.
    let mut rows = page::behind(db, mine, Column::TenantId, after, limit).await?;
    if rows.len() as u64 == limit
        && let Some(last) = rows.last().map(|row| row.tenant_id)
        && rows.first().is_some_and(|first| first.tenant_id != last)
    {
        rows.retain(|row| row.tenant_id != last);
    }
    Ok(rows)
}

/// All of all tenants: for the audit.
#[boxed]
pub async fn all(db: &Connection) -> Result<Vec<Model>> {
    let select = Entity::find().order_by(Column::TenantId, Order::Asc);
    Ok(select.order_by(Column::Env, Order::Asc).all(db).await?)
}
