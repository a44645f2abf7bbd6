//! Recoveries: sending again what an endpoint missed, as stored jobs that go on after a crash.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::Result,
    ids::{DeliveryId, EndpointId, RecoveryId, TenantId, TenantScoped},
    values::{Env, Moment},
    workspace_lease::Share,
};
use schemars::JsonSchema;
use sea_orm::{
    DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect,
    entity::prelude::*,
    sea_query::{Expr, ExprTrait},
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Running,
    /// Everything that was missed is on its way.
    Completed,
    /// The endpoint stopped being active; the rest stays as it was.
    Stopped,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "recoveries")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: RecoveryId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub endpoint_id: EndpointId,
    /// Events of this moment and later,
    pub since: Moment,
    /// and before this one.
    pub until: Moment,
    pub status: Status,
    /// The last delivery that was dealt with.
    pub after_id: Option<DeliveryId>,
    /// Held deliveries that were let go.
    pub released: i64,
    /// Failed deliveries that are sent again.
    pub replayed: i64,
    pub created_at: Moment,
    pub ended_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn endpoint(&self) -> TenantScoped<EndpointId> {
        TenantScoped::new(self.tenant_id, self.env, self.endpoint_id)
    }
}

fn is_running() -> Expr {
    Expr::cust("status = 'running'")
}

/// The endpoint's newest.
#[boxed]
pub async fn latest(db: &Connection, endpoint: EndpointId) -> Result<Option<Model>> {
    let select = Entity::find().filter(Column::EndpointId.eq(endpoint));
    Ok(select.order_by(Column::Id, Order::Desc).one(db).await?)
}

#[boxed]
pub async fn load(db: &Connection, id: RecoveryId) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(id).one(db).await?)
}

#[boxed]
pub async fn running(db: &Connection, share: Share) -> Result<Vec<Model>> {
    let mine = Entity::find().filter(share.of(Column::TenantId));
    Ok(mine.filter(is_running()).all(db).await?)
}

#[boxed]
pub async fn save(db: &Connection, row: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(row), OnConflict::Replace).await?;
    Ok(())
}

#[boxed]
pub async fn any_before(db: &Connection, created_before: Moment) -> Result<bool> {
    let select = Entity::find()
        .filter(is_running().not())
        .filter(Column::CreatedAt.lt(created_before));
    Ok(select.limit(1).one(db).await?.is_some())
}

#[boxed]
pub async fn prune(db: &Connection, created_before: Moment) -> Result<u64> {
    let ended = Entity::delete_many()
        .filter(is_running().not())
        .filter(Column::CreatedAt.lt(created_before));
    Ok(ended.exec(db).await?.rows_affected)
}
