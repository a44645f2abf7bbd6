//! Whose number is whose, for live use: at most one workspace has it. Several may hold a number as configuration; only the
//! one that claimed it calls and texts from it live, and is called and texted on it.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{E164, Moment},
};
use sea_orm::{DeriveActiveEnum, EnumIter, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// What stands behind a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A code came to the number, and was said back.
    Code,
    /// The operator's word.
    Operator,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Code => "code",
            Source::Operator => "operator",
        }
    }
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "number_claims")]
pub struct Model {
    /// The key, so that no two workspaces have it.
    #[sea_orm(primary_key, auto_increment = false)]
    pub phone_number: E164,
    pub tenant_id: TenantId,
    pub source: Source,
    pub claimed_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// Who has it.
#[boxed]
pub async fn load(db: &Connection, number: &E164) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(number.clone()).one(db).await?)
}

/// Does the tenant have it?
#[boxed]
pub async fn holds(db: &Connection, tenant: TenantId, number: &E164) -> Result<bool> {
    Ok(load(db, number).await?.is_some_and(|claim| claim.tenant_id == tenant))
}

/// Whoever had it has it no longer. `false`: the operator has given it away at this moment, which no code undoes.
#[boxed]
pub async fn put(db: &Connection, row: Model) -> Result<bool> {
    let on_conflict = match row.source {
        Source::Operator => OnConflict::Replace,
        Source::Code => {
            let by_code = Entity::delete_many()
                .filter(Column::PhoneNumber.eq(row.phone_number.clone()))
                .filter(Column::Source.eq(Source::Code));
            by_code.exec(db).await?;
            OnConflict::Keep
        }
    };
    Ok(bulk::save(db, &[row], on_conflict).await? == 1)
}

/// The tenant gives it up; answers whether it had it.
#[boxed]
pub async fn release(db: &Connection, tenant: TenantId, number: &E164) -> Result<bool> {
    let its = Entity::delete_many()
        .filter(Column::PhoneNumber.eq(number.clone()))
        .filter(Column::TenantId.eq(tenant));
    Ok(its.exec(db).await?.rows_affected > 0)
}
