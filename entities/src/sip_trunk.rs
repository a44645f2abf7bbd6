//! SIP trunks: a tenant's ways to the telephone network. Shared by its two envs.
mod definition;

pub use definition::{
    CallerId, Codec, Definition, Dtmf, InboundAuth, NumberFormat, Register, Srtp, Transfer, Transport,
};

use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::{Error, Result},
    ids::{TenantId, TrunkId},
    owned::of_tenant,
    page::{self, Listed, Page},
    values::Moment,
    workspace_lease::Share,
};
use schemars::JsonSchema;
use sea_orm::{Condition, DeriveActiveEnum, EnumIter, QuerySelect, entity::prelude::*, sea_query::Expr};
use serde::{Deserialize, Serialize};

/// What its last test found.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not tested since it was made, or since its peer was changed.
    #[default]
    Untested,
    /// The peer answered in SIP, whatever it said.
    Reachable,
    /// It did not.
    Unreachable,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "sip_trunks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: TrunkId,
    pub tenant_id: TenantId,
    #[sea_orm(column_type = "JsonBinary")]
    pub definition: Definition,
    pub sealed_password: Option<String>,
    /// What the peer proves itself with when it calls.
    pub sealed_inbound_password: Option<String>,
    pub status: Status,
    pub tested_at: Option<Moment>,
    pub version: i32,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub deleted_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

of_tenant!(TrunkId, "SIP trunk");

#[boxed]
pub async fn count(db: &Connection, tenant: TenantId) -> Result<u64> {
    Ok(owned(tenant).count(db).await?)
}

/// All that a tenant has: at most as many as one workspace may make.
#[boxed]
pub async fn all_of(db: &Connection, tenant: TenantId) -> Result<Vec<Model>> {
    Ok(owned(tenant).all(db).await?)
}

/// Whosever it is: for the operator.
#[boxed]
pub async fn by_id(db: &Connection, id: TrunkId) -> Result<Model> {
    let found = Entity::find_by_id(id).filter(Column::DeletedAt.is_null());
    found.one(db).await?.ok_or(Error::NotFound("SIP trunk"))
}

/// All that are there, of all tenants, a page at a time.
pub async fn all_after(db: &Connection, share: Share, after: Option<TrunkId>, limit: u64) -> Result<Vec<Model>> {
    let mine = Entity::find().filter(share.of(Column::TenantId));
    let there = mine.filter(Column::DeletedAt.is_null());
    page::behind(db, there, Column::Id, after, limit).await
}

/// Those that are there of these, whoever's they are: for a call that has come in from an address of theirs.
#[boxed]
pub async fn of_ids(db: &Connection, trunks: &[TrunkId]) -> Result<Vec<Model>> {
    let found = Entity::find()
        .filter(Column::Id.is_in(trunks.iter().copied()))
        .filter(Column::DeletedAt.is_null());
    Ok(found.all(db).await?)
}

/// Are these as they were known, and there? What was paused meanwhile is not. Asked inside the transaction that commits a dial.
#[boxed]
pub async fn are_as_known(db: &Connection, known: &[(TrunkId, i32)]) -> Result<bool> {
    let select = Entity::find()
        .select_only()
        .columns([Column::Id, Column::Version])
        .filter(Column::Id.is_in(known.iter().map(|(id, _)| *id)))
        .filter(Column::DeletedAt.is_null());
    let found: Vec<(TrunkId, i32)> = select.into_tuple().all(db).await?;
    Ok(known.iter().all(|known| found.contains(known)))
}

/// Inserts version 1, else replaces the predecessor.
#[boxed]
pub async fn save(db: &Connection, row: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(row), OnConflict::ReplacePredecessor)
        .await
        .map(drop)
}

/// What a test found; nothing, if the trunk was changed meanwhile.
#[boxed]
pub async fn tested(db: &Connection, row: &Model, status: Status, at: Moment) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(status))
        .col_expr(Column::TestedAt, Expr::value(at))
        .filter(Column::Id.eq(row.id))
        .filter(Column::Version.eq(row.version))
        .exec(db)
        .await?;
    Ok(())
}

/// All trunks with a password, a page at a time: to seal them anew.
pub async fn sealed_after(db: &Connection, after: Option<TrunkId>, limit: u64) -> Result<Vec<Model>> {
    let any = Condition::any()
        .add(Column::SealedPassword.is_not_null())
        .add(Column::SealedInboundPassword.is_not_null());
    page::behind(db, Entity::find().filter(any), Column::Id, after, limit).await
}

#[boxed]
pub async fn reseal(db: &Connection, id: TrunkId, password: Option<String>, inbound: Option<String>) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::SealedPassword, Expr::value(password))
        .col_expr(Column::SealedInboundPassword, Expr::value(inbound))
        .filter(Column::Id.eq(id))
        .exec(db)
        .await?;
    Ok(())
}
