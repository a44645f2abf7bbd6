//! The states that a campaign has been in, in the order of everything that was committed: for the audit.
use crate::{
    boxed,
    campaign::{self, Status},
    connection::Connection,
    error::Result,
    ids::CampaignId,
    values::Moment,
};
use sea_orm::{Order, QueryOrder, entity::prelude::*};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "campaign_moves")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub campaign_id: CampaignId,
    /// Its place among all commits.
    #[sea_orm(primary_key, auto_increment = false)]
    pub seq: i64,
    pub moved_to: String,
    pub reason: Option<String>,
    pub at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// The state that a row says.
    pub fn of(row: &campaign::Model, seq: i64, at: Moment) -> Self {
        let pause = row.pause_reason.map(|reason| match reason {
            campaign::PauseReason::Manual => "manual",
            campaign::PauseReason::QuietHours => "quiet_hours",
        });
        let end = row.completed_reason.map(|reason| match reason {
            campaign::CompletedReason::Finished => "finished",
            campaign::CompletedReason::Ended => "ended",
            campaign::CompletedReason::Canceled => "canceled",
        });
        let (moved_to, reason) = match row.status {
            Status::Completed => ("completed", end),
            _ if row.cancel_requested_at.is_some() => ("closing", end),
            Status::Draft if row.armed_at.is_some() => ("armed", None),
            Status::Draft => ("draft", None),
            Status::Running => ("running", None),
            Status::Paused => ("paused", pause),
        };
        Model {
            campaign_id: row.id,
            seq,
            moved_to: moved_to.into(),
            reason: reason.map(str::to_owned),
            at,
        }
    }
}

#[boxed]
pub async fn of(db: &Connection, campaign: CampaignId) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::CampaignId.eq(campaign));
    Ok(select.order_by(Column::Seq, Order::Asc).all(db).await?)
}

#[boxed]
pub async fn last_seq(db: &Connection) -> Result<i64> {
    let last = Entity::find().order_by(Column::Seq, Order::Desc).one(db).await?;
    Ok(last.map_or(0, |row| row.seq))
}
