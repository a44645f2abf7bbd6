//! Numbers outside the sandbox block that a tenant's test keys may call.
use crate::{
    bulk::{self, OnConflict},
    error::Result,
    ids::{TenantId, VerifiedNumberId},
    values::{E164, Moment},
};
use sea_orm::{QuerySelect, entity::prelude::*};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "verified_numbers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: VerifiedNumberId,
    pub tenant_id: TenantId,
    pub phone_number: E164,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

pub async fn contains(db: &impl ConnectionTrait, tenant: TenantId, number: &E164) -> Result<bool> {
    let found = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::PhoneNumber.eq(number.clone()));
    Ok(found.count(db).await? > 0)
}

/// A second time changes nothing.
pub async fn add(db: &impl ConnectionTrait, row: Model) -> Result<()> {
    bulk::save(db, &[row], OnConflict::Keep).await.map(drop)
}

/// Those of `numbers` that are verified.
pub async fn among(db: &impl ConnectionTrait, tenant: TenantId, numbers: &[E164]) -> Result<Vec<E164>> {
    let mut found = Vec::new();
    for chunk in numbers.chunks(500) {
        let select = Entity::find()
            .select_only()
            .column(Column::PhoneNumber)
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::PhoneNumber.is_in(chunk.iter().cloned()));
        found.extend(select.into_tuple::<E164>().all(db).await?);
    }
    Ok(found)
}
