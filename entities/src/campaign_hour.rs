//! A campaign's calls, counted by the hour in which they were dialled: its answer rate, its cap per day, and how many of those that a
//! person answered were abandoned.
use crate::{
    abandonment::{Abandonment, Answers},
    boxed,
    bulk::{self, OnConflict, batch::Batch},
    connection::Connection,
    error::Result,
    ids::CampaignId,
    values::{Moment, Times},
};
use sea_orm::{Order, QueryOrder, QuerySelect, Statement, Value, entity::prelude::*, sea_query::Expr};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "campaign_hours")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub campaign_id: CampaignId,
    /// Its first moment; hours begin when the campaign's zone shows :00.
    #[sea_orm(primary_key, auto_increment = false)]
    pub hour: Moment,
    pub dialed: i64,
    /// A person or a machine picked up.
    pub answered: i64,
    pub ended: i64,
    /// Of all talks together.
    pub duration_seconds: i64,
    /// A person picked up.
    pub answered_live: i64,
    /// Of those: with nothing of ours to be heard in time, or nobody to talk with.
    pub abandoned: i64,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn empty(campaign_id: CampaignId, hour: Moment) -> Self {
        Model {
            campaign_id,
            hour,
            dialed: 0,
            answered: 0,
            ended: 0,
            duration_seconds: 0,
            answered_live: 0,
            abandoned: 0,
        }
    }
}

/// Adds counts to the stored ones.
#[boxed]
pub async fn add(batch: &mut Batch<'_>, by: &[&Model]) -> Result<()> {
    let sums = bulk::sums(
        by,
        |row| (row.campaign_id, row.hour),
        |sum, row| {
            sum.dialed += row.dialed;
            sum.answered += row.answered;
            sum.ended += row.ended;
            sum.duration_seconds += row.duration_seconds;
            sum.answered_live += row.answered_live;
            sum.abandoned += row.abandoned;
        },
    );
    batch
        .save(&sums.iter().collect::<Vec<_>>(), OnConflict::Add(None))
        .await
}

/// Calls dialled in hours that began at `since` or later.
#[boxed]
pub async fn dialed_since(db: &Connection, campaign: CampaignId, since: Moment) -> Result<i64> {
    let select = Entity::find()
        .filter(Column::CampaignId.eq(campaign))
        .filter(Column::Hour.gte(since))
        .select_only()
        .column_as(Expr::cust("CAST(COALESCE(SUM(dialed), 0) AS BIGINT)"), "dialed");
    Ok(select.into_tuple().one(db).await?.unwrap_or(0))
}

const HOUR_MS: i64 = 3_600_000;

/// The campaign's calls that a person answered, and those that were abandoned, in the last 24 hours and in the last 30 days. An hour
/// that lies only partly in a span counts with its abandoned calls, and not with its answered ones; each by the clock by which the
/// rate is higher.
#[boxed]
pub async fn abandonment(db: &Connection, campaign: CampaignId, now: Times) -> Result<Abandonment> {
    const TEXT: &str = "SELECT CAST(COALESCE(SUM(CASE WHEN hour >= $2 THEN answered_live ELSE 0 END), 0) AS BIGINT), \
        CAST(COALESCE(SUM(CASE WHEN hour > $3 THEN abandoned ELSE 0 END), 0) AS BIGINT), \
        CAST(COALESCE(SUM(CASE WHEN hour >= $4 THEN answered_live ELSE 0 END), 0) AS BIGINT), \
        CAST(COALESCE(SUM(abandoned), 0) AS BIGINT) FROM campaign_hours WHERE campaign_id = $1 AND hour > $5";
    let whole = |hours: i64| now.later().plus_millis(-hours * HOUR_MS);
    let partly = |hours: i64| now.earlier().plus_millis(-(hours + 1) * HOUR_MS);
    let values: [Value; 5] = [
        campaign.into(),
        whole(24).into(),
        partly(24).into(),
        whole(720).into(),
        partly(720).into(),
    ];
    let asked = Statement::from_sql_and_values(db.get_database_backend(), TEXT, values);
    let Some(row) = db.query_one_raw(asked).await? else {
        return Ok(Abandonment::default());
    };
    Ok(Abandonment {
        day: Answers {
            live: row.try_get_by_index(0)?,
            abandoned: row.try_get_by_index(1)?,
        },
        month: Answers {
            live: row.try_get_by_index(2)?,
            abandoned: row.try_get_by_index(3)?,
        },
    })
}

/// The campaign's last hours, oldest first.
#[boxed]
pub async fn last(db: &Connection, campaign: CampaignId, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::CampaignId.eq(campaign));
    let mut rows = select.order_by(Column::Hour, Order::Desc).limit(limit).all(db).await?;
    rows.reverse();
    Ok(rows)
}
