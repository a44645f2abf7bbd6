//! Workspaces that the operator has stopped: while a row is here, nothing is dialled in either env.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    dispatch_block::{self, Reason},
    error::Result,
    ids::TenantId,
    values::{Env, Moment},
};
use sea_orm::entity::prelude::*;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "suspensions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    /// For the operator's own eyes.
    pub reason: Option<String>,
    pub since: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

#[boxed]
pub async fn of(db: &Connection, tenant: TenantId) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(tenant).one(db).await?)
}

#[boxed]
pub async fn all(db: &Connection) -> Result<Vec<Model>> {
    Ok(Entity::find().all(db).await?)
}

/// Stops a workspace. A second time keeps the moment from which its contacts wait, and answers with it; a reason that is
/// given then replaces the one before.
#[boxed]
pub async fn begin(db: &Connection, row: Model) -> Result<Model> {
    let known = of(db, row.tenant_id).await?;
    let row = match known {
        Some(known) => Model {
            reason: row.reason.or(known.reason),
            ..known
        },
        None => row,
    };
    bulk::save(db, std::slice::from_ref(&row), OnConflict::Replace).await?;
    let blocks = [Env::Live, Env::Test].map(|env| dispatch_block::Model {
        tenant_id: row.tenant_id,
        env,
        reason: Reason::Suspension,
        since: row.since,
    });
    dispatch_block::add(db, &blocks).await?;
    Ok(row)
}

/// Lets it go on. Answers whether it was stopped.
#[boxed]
pub async fn lift(db: &Connection, tenant: TenantId) -> Result<bool> {
    for env in [Env::Live, Env::Test] {
        dispatch_block::remove(db, tenant, env, Reason::Suspension).await?;
    }
    Ok(Entity::delete_by_id(tenant).exec(db).await?.rows_affected > 0)
}
