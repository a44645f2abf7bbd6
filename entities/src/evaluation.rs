//! What is to be found out about a talk after its end: its disposition, and answers that were not noted during it.
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::{SessionId, TenantId, TenantScoped},
    keys, page,
    values::{Env, Moment},
    workspace_lease::Share,
};
use sea_orm::{DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Done,
    Failed,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "evaluations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub session_id: SessionId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub status: Status,
    /// Failed tries.
    pub tries: i32,
    pub give_up_at: Moment,
    pub error: Option<String>,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn key(&self) -> TenantScoped<SessionId> {
        TenantScoped::new(self.tenant_id, self.env, self.session_id)
    }
}

#[boxed]
pub async fn load(db: &Connection, session: SessionId) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(session).one(db).await?)
}

/// All of all tenants, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<SessionId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::SessionId, after, limit).await
}

/// Those that are not done, the oldest first.
#[boxed]
pub async fn pending(db: &Connection, share: Share, limit: u64) -> Result<Vec<Model>> {
    let mine = Entity::find().filter(share.of(Column::TenantId));
    let select = mine.filter(Expr::cust("status = 'pending'"));
    Ok(select
        .order_by(Column::SessionId, Order::Asc)
        .limit(limit)
        .all(db)
        .await?)
}

/// Of sessions that are removed, too.
#[boxed]
pub async fn remove(db: &Connection, sessions: &[SessionId]) -> Result<()> {
    keys::remove(db, Entity, Column::SessionId, sessions).await
}
