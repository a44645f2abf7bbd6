//! Where the peers of SIP trunks call from, as the node that speaks with them has found out: for the other nodes, so that they know whom to
//! send on to it.
use crate::{
    boxed, bulk,
    bulk::OnConflict,
    connection::Connection,
    error::Result,
    ids::{TenantId, TrunkId},
    page,
};
use ipnet::IpNet;
use sea_orm::{FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct Networks(pub Vec<IpNet>);

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "trunk_sources")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub trunk_id: TrunkId,
    pub tenant_id: TenantId,
    #[sea_orm(column_type = "JsonBinary")]
    pub networks: Networks,
}
impl ActiveModelBehavior for ActiveModel {}

#[boxed]
pub async fn save(db: &Connection, row: Model) -> Result<()> {
    bulk::save(db, &[row], OnConflict::Replace).await.map(drop)
}

/// A page of all, by trunk.
pub async fn all_after(db: &Connection, after: Option<TrunkId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::TrunkId, after, limit).await
}
