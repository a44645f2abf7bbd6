//! The log of attempts: what was tried, and what came back.
use crate::{boxed, connection::Connection, error::Result, ids::DeliveryId, values::Moment};
use sea_orm::{DeriveValueType, FromQueryResult, Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};
use std::{fmt, str::FromStr};

/// The answer's headers, names in lower case; the first 64.
///
/// Stored as text, not as JSON: nothing queries it, and every attempt writes one.
#[derive(Clone, Debug, Default, PartialEq, Eq, DeriveValueType)]
#[sea_orm(value_type = "String")]
pub struct ResponseHeaders(pub Vec<(String, String)>);

impl fmt::Display for ResponseHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).map_err(|_| fmt::Error)?)
    }
}
impl FromStr for ResponseHeaders {
    type Err = serde_json::Error;
    fn from_str(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(ResponseHeaders)
    }
}

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
    /// Unix seconds in the signature's base, `<signed_at>.<body>`.
    pub signed_at: i64,
    pub duration_ms: i32,
    /// The look-up, the connection and the TLS handshake: null on a connection that was open already.
    pub dns_ms: Option<i32>,
    pub connect_ms: Option<i32>,
    pub tls_ms: Option<i32>,
    /// From the start to the answer's status; null when none came.
    pub first_byte_ms: Option<i32>,
    /// Address and port that were connected to.
    pub remote_address: Option<String>,
    /// The HTTP status; 0 when no answer came.
    pub status: i32,
    /// What went wrong: `timeout`, `connect_failed`, `dns_failed`, `tls_failed`, `blocked_target`, `http_status`, ….
    pub error_code: Option<String>,
    /// The same in words.
    #[sea_orm(column_type = "Text", nullable)]
    pub error_message: Option<String>,
    #[sea_orm(column_type = "Text")]
    pub response_headers: ResponseHeaders,
    /// The first 16 KiB, as text.
    #[sea_orm(column_type = "Text", nullable)]
    pub response_body: Option<String>,
}
impl ActiveModelBehavior for ActiveModel {}

#[boxed]
pub async fn of(db: &Connection, deliveries: &[DeliveryId]) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::DeliveryId.is_in(deliveries.iter().copied()));
    Ok(select
        .order_by(Column::DeliveryId, Order::Asc)
        .order_by(Column::N, Order::Asc)
        .all(db)
        .await?)
}

/// Deletes the attempts of these deliveries.
#[boxed]
pub async fn prune(db: &Connection, deliveries: &[DeliveryId]) -> Result<u64> {
    let these = Entity::delete_many().filter(Column::DeliveryId.is_in(deliveries.iter().copied()));
    Ok(these.exec(db).await?.rows_affected)
}

/// Is there an attempt of a delivery after `after` and before `before`?
#[boxed]
pub async fn any_between(db: &Connection, after: Option<DeliveryId>, before: DeliveryId) -> Result<bool> {
    let mut select = Entity::find().filter(Column::DeliveryId.lt(before));
    if let Some(after) = after {
        select = select.filter(Column::DeliveryId.gt(after));
    }
    Ok(select.limit(1).one(db).await?.is_some())
}

/// Forgets what receivers answered to successful attempts, in one slice of the log: deliveries after `after` and before
/// `before`, oldest first. Answers the last one looked at; `None` when there is none left.
#[boxed]
pub async fn forget_answers(
    db: &Connection,
    after: Option<DeliveryId>,
    before: DeliveryId,
    limit: u64,
) -> Result<Option<DeliveryId>> {
    let mut select = Entity::find()
        .select_only()
        .column(Column::DeliveryId)
        .filter(Column::DeliveryId.lt(before));
    if let Some(after) = after {
        select = select.filter(Column::DeliveryId.gt(after));
    }
    let ids: Vec<DeliveryId> = select
        .order_by(Column::DeliveryId, Order::Asc)
        .limit(limit)
        .into_tuple()
        .all(db)
        .await?;
    let (Some(first), Some(last)) = (ids.first().copied(), ids.last().copied()) else {
        return Ok(None);
    };
    Entity::update_many()
        .col_expr(Column::ResponseBody, Expr::value(Option::<String>::None))
        .filter(Column::DeliveryId.between(first, last))
        .filter(Column::Status.between(200, 299))
        .filter(Column::ResponseBody.is_not_null())
        .exec(db)
        .await?;
    Ok(Some(last))
}

/// An attempt without what was said in it.
#[derive(Clone, Debug, PartialEq, Eq, FromQueryResult)]
pub struct AttemptSummary {
    pub delivery_id: DeliveryId,
    pub n: i32,
    pub started_at: Moment,
    pub duration_ms: i32,
    pub status: i32,
    pub error_code: Option<String>,
}

/// How the attempts of these deliveries went, in order: for the audit.
#[boxed]
pub async fn outcomes(db: &Connection, deliveries: &[DeliveryId]) -> Result<Vec<AttemptSummary>> {
    let select = Entity::find()
        .select_only()
        .columns([
            Column::DeliveryId,
            Column::N,
            Column::StartedAt,
            Column::DurationMs,
            Column::Status,
            Column::ErrorCode,
        ])
        .filter(Column::DeliveryId.is_in(deliveries.iter().copied()));
    Ok(select
        .order_by(Column::DeliveryId, Order::Asc)
        .order_by(Column::N, Order::Asc)
        .into_model()
        .all(db)
        .await?)
}
