//! The log of attempts: what was tried, and what came back.
use crate::{error::Result, ids::DeliveryId, values::Moment};
use sea_orm::{FromJsonQueryResult, Order, QueryOrder, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// The answer's headers, names in lower case; the first 64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(transparent)]
pub struct ResponseHeaders(pub Vec<(String, String)>);

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "delivery_attempts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub delivery_id: DeliveryId,
    /// 1 for the first.
    #[sea_orm(primary_key, auto_increment = false)]
    pub n: i32,
    pub started_at: Moment,
    pub duration_ms: i32,
    /// The HTTP status; 0 when no answer came.
    pub status: i32,
    /// What went wrong: `timeout`, `connect_failed`, `dns_failed`, `tls_failed`, `blocked_target`, `http_status`, ….
    pub error_code: Option<String>,
    #[sea_orm(column_type = "JsonBinary")]
    pub response_headers: ResponseHeaders,
    /// The first 16 KiB, as text.
    #[sea_orm(column_type = "Text", nullable)]
    pub response_body: Option<String>,
}
impl ActiveModelBehavior for ActiveModel {}

pub async fn of(db: &impl ConnectionTrait, deliveries: &[DeliveryId]) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::DeliveryId.is_in(deliveries.iter().copied()));
    Ok(select
        .order_by(Column::DeliveryId, Order::Asc)
        .order_by(Column::N, Order::Asc)
        .all(db)
        .await?)
}
