//! A campaign's calls, counted by the hour in which they were dialled: its answer rate, and its cap per day.
use crate::{
    boxed,
    bulk::{self, OnConflict, batch::Batch},
    connection::Connection,
    error::Result,
    ids::CampaignId,
    values::Moment,
};
use sea_orm::{Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};

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

/// The campaign's last hours, oldest first.
#[boxed]
pub async fn last(db: &Connection, campaign: CampaignId, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::CampaignId.eq(campaign));
    let mut rows = select.order_by(Column::Hour, Order::Desc).limit(limit).all(db).await?;
    rows.reverse();
    Ok(rows)
}
