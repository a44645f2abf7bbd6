//! Campaigns whose dispatch is held for the calls that they have abandoned, and since when: whoever is told is told once.
//!
//! The row only notes that. Whether a campaign is held is reckoned each time from its hours ([`crate::campaign_hour`]).
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::{CampaignId, TenantId},
    values::Moment,
};
use sea_orm::entity::prelude::*;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "campaign_brakes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub campaign_id: CampaignId,
    pub tenant_id: TenantId,
    pub since: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

#[boxed]
pub async fn of(db: &Connection, tenant: TenantId) -> Result<Vec<Model>> {
    Ok(Entity::find().filter(Column::TenantId.eq(tenant)).all(db).await?)
}

#[boxed]
pub async fn load(db: &Connection, campaign: CampaignId) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(campaign).one(db).await?)
}

/// They are held no longer.
#[boxed]
pub async fn release(db: &Connection, campaigns: &[CampaignId]) -> Result<()> {
    let these = Entity::delete_many().filter(Column::CampaignId.is_in(campaigns.iter().copied()));
    these.exec(db).await?;
    Ok(())
}
