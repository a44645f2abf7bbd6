//! Attempts of one endpoint, counted by the hour: what its statistics are made of.
use crate::{
    boxed,
    bulk::{self, OnConflict, batch::Batch},
    connection::Connection,
    error::Result,
    ids::EndpointId,
    values::Moment,
};
use sea_orm::{FromQueryResult, QuerySelect, entity::prelude::*, sea_query::Expr};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "endpoint_hours")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub endpoint_id: EndpointId,
    /// Its first moment.
    #[sea_orm(primary_key, auto_increment = false)]
    pub hour: Moment,
    pub attempts: i64,
    /// Attempts that were answered 2xx.
    pub succeeded: i64,
    /// Deliveries that ended failed.
    pub failed: i64,
    /// Of all attempts together.
    pub duration_ms: i64,
    pub longest_ms: i64,
}
impl ActiveModelBehavior for ActiveModel {}

const HOUR_MS: i64 = 3_600_000;

impl Model {
    /// Nothing yet, in the hour of `at`.
    pub fn empty(endpoint_id: EndpointId, at: Moment) -> Self {
        Model {
            endpoint_id,
            hour: Moment::from_millis(at.millis().div_euclid(HOUR_MS) * HOUR_MS),
            attempts: 0,
            succeeded: 0,
            failed: 0,
            duration_ms: 0,
            longest_ms: 0,
        }
    }
}

/// Adds counts to the stored ones.
#[boxed]
pub async fn add(batch: &mut Batch<'_>, by: &[&Model]) -> Result<()> {
    let sums = bulk::sums(
        by,
        |row| (row.endpoint_id, row.hour),
        |sum, row| {
            sum.attempts += row.attempts;
            sum.succeeded += row.succeeded;
            sum.failed += row.failed;
            sum.duration_ms += row.duration_ms;
            sum.longest_ms = sum.longest_ms.max(row.longest_ms);
        },
    );
    batch
        .save(&sums.iter().collect::<Vec<_>>(), OnConflict::Add(Some("longest_ms")))
        .await
}

/// Counts over some hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromQueryResult)]
pub struct Sum {
    pub attempts: i64,
    pub succeeded: i64,
    pub failed: i64,
    pub duration_ms: i64,
    pub longest_ms: i64,
}

/// The endpoint's counts of the hours that began at `since` or later.
#[boxed]
pub async fn sum(db: &Connection, endpoint: EndpointId, since: Moment) -> Result<Sum> {
    // PostgreSQL's sum of bigints is a numeric.
    let sum = |column: &str| Expr::cust(format!("CAST(COALESCE(SUM({column}), 0) AS BIGINT)"));
    let select = Entity::find()
        .filter(Column::EndpointId.eq(endpoint))
        .filter(Column::Hour.gte(since))
        .select_only()
        .column_as(sum("attempts"), "attempts")
        .column_as(sum("succeeded"), "succeeded")
        .column_as(sum("failed"), "failed")
        .column_as(sum("duration_ms"), "duration_ms")
        .column_as(Expr::cust("CAST(COALESCE(MAX(longest_ms), 0) AS BIGINT)"), "longest_ms");
    Ok(select.into_model::<Sum>().one(db).await?.unwrap_or_default())
}

#[boxed]
pub async fn any_before(db: &Connection, before: Moment) -> Result<bool> {
    let select = Entity::find().filter(Column::Hour.lt(before));
    Ok(select.limit(1).one(db).await?.is_some())
}

#[boxed]
pub async fn prune(db: &Connection, before: Moment) -> Result<u64> {
    Ok(Entity::delete_many()
        .filter(Column::Hour.lt(before))
        .exec(db)
        .await?
        .rows_affected)
}
