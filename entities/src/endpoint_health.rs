//! What the lane of an endpoint last saw of its receiver. Written with the outcomes of attempts, by the lane alone.
use crate::{boxed, connection::Connection, error::Result, ids::EndpointId, values::Moment};
use sea_orm::entity::prelude::*;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "endpoint_health")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub endpoint_id: EndpointId,
    /// The last attempt's HTTP status; 0 when no answer came.
    pub last_status: i32,
    pub last_success_at: Option<Moment>,
    /// The receiver asked for a pause.
    pub paused_until: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

pub async fn of(db: &Connection, endpoints: impl IntoIterator<Item = EndpointId>) -> Result<Vec<Model>> {
    Ok(Entity::find()
        .filter(Column::EndpointId.is_in(endpoints))
        .all(db)
        .await?)
}

#[boxed]
pub async fn find(db: &Connection, endpoint: EndpointId) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(endpoint).one(db).await?)
}
