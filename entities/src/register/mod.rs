//! Registers: lists of numbers that must not be called, such as the national do-not-call lists, as they were uploaded last.
//!
//! A register is the operator's, for all workspaces, or a workspace's own. Its row says which file it has now, and is written when
//! all of that file is stored ([`chunk`]): until then, whatever happens, the file before it stays.
mod area_codes;
pub mod chunk;

pub use area_codes::AreaCodes;

use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::{Error, Result},
    ids::{RegisterFileId, RegisterId, TenantId},
    page::{self, Listed, Page},
    values::{Env, Moment},
    workspace_lease::{INSTALLATION, Share},
};
use sea_orm::{Condition, QuerySelect, entity::prelude::*, sea_query::Expr};

/// Whose the operator's registers are: no workspace's. They serve both environments.
pub const OPERATOR: (TenantId, Env) = (INSTALLATION, Env::Live);

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "registers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: RegisterId,
    pub tenant_id: TenantId,
    pub env: Env,
    /// As rules name it, such as `us_dnc`.
    pub name: String,
    /// Whose national numbers it holds: ISO 3166-1 alpha-2.
    pub country: String,
    /// Grows with each file that differs from the one before.
    pub version: i32,
    pub file_id: RegisterFileId,
    /// Tells the key that the numbers were hashed with from others: with another one nobody would be found in it.
    pub key_check: String,
    /// Its file says since when each number is listed.
    pub has_dates: bool,
    /// The area codes that its file covers, of a register that is given out by area codes; none: it covers all numbers.
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub area_codes: Option<AreaCodes>,
    /// Each counted once.
    pub numbers: i64,
    /// Of the file as it was uploaded, in hex.
    pub sha256: String,
    /// When its maker gave the file out.
    pub fetched_at: Moment,
    pub uploaded_at: Moment,
    /// Who has uploaded it; none: the operator.
    pub uploaded_by: Option<String>,
    /// Of how much of its age the owners were told: 0 of nothing, 1 that it ends soon, 2 that it is too old.
    pub warned: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn is_operators(&self) -> bool {
        self.tenant_id == INSTALLATION
    }

    /// Does it say of that number, in E.164, whether it is listed?
    pub fn covers(&self, number: &str) -> bool {
        self.area_codes.as_ref().is_none_or(|codes| codes.cover(number))
    }
}

fn owned((tenant, env): (TenantId, Env)) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
}

/// The workspace's own, and those of the operator.
fn seen_by((tenant, env): (TenantId, Env)) -> sea_orm::Select<Entity> {
    let own = Condition::all()
        .add(Column::TenantId.eq(tenant))
        .add(Column::Env.eq(env));
    let any = Condition::any().add(own).add(Column::TenantId.eq(INSTALLATION));
    Entity::find().filter(any)
}

/// That owner's register of that name, and nobody else's.
#[boxed]
pub async fn of_name(db: &Connection, owner: (TenantId, Env), name: &str) -> Result<Option<Model>> {
    Ok(owned(owner).filter(Column::Name.eq(name)).one(db).await?)
}

/// Those of these names that are looked into for a workspace: its own, and the operator's.
#[boxed]
pub async fn of_names(db: &Connection, owner: (TenantId, Env), names: &[&str]) -> Result<Vec<Model>> {
    let select = seen_by(owner).filter(Column::Name.is_in(names.iter().copied()));
    Ok(select.all(db).await?)
}

/// Those that a workspace sees.
#[boxed]
pub async fn list(db: &Connection, owner: (TenantId, Env), page: Page) -> Result<Listed<Model>> {
    page::fetch(db, seen_by(owner), Column::Id, Column::CreatedAt, page).await
}

/// All of one owner, in both environments: there are few.
#[boxed]
pub async fn of_owner(db: &Connection, tenant: TenantId) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::TenantId.eq(tenant));
    Ok(select.all(db).await?)
}

/// Of everybody's, those of the share, behind `after`.
#[boxed]
pub async fn all_after(db: &Connection, share: Share, after: Option<RegisterId>, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find().filter(share.of(Column::TenantId));
    page::behind(db, select, Column::Id, after, limit).await
}

/// Is each of these still at the version that was looked into? Asked inside the transaction that commits a dial.
#[boxed]
pub async fn still_current(db: &Connection, known: &[(RegisterId, i32)]) -> Result<bool> {
    let select = Entity::find()
        .select_only()
        .columns([Column::Id, Column::Version])
        .filter(Column::Id.is_in(known.iter().map(|(id, _)| *id)));
    let found: Vec<(RegisterId, i32)> = select.into_tuple().all(db).await?;
    Ok(known.iter().all(|known| found.contains(known)))
}

/// A new register at version 1, or the next version of one that is there; [`Error::Stale`]: somebody was faster.
#[boxed]
pub async fn put(db: &Connection, row: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(row), OnConflict::ReplacePredecessor)
        .await
        .map(drop)
}

/// The same file was given out anew, on the day that `row` says.
#[boxed]
pub async fn refresh(db: &Connection, row: &Model) -> Result<()> {
    let done = Entity::update_many()
        .col_expr(Column::FetchedAt, Expr::value(row.fetched_at))
        .col_expr(Column::UploadedAt, Expr::value(row.uploaded_at))
        .col_expr(Column::UploadedBy, Expr::value(row.uploaded_by.clone()))
        .col_expr(Column::Warned, Expr::value(row.warned))
        .filter(Column::Id.eq(row.id))
        .filter(Column::Version.eq(row.version))
        .exec(db)
        .await?;
    if done.rows_affected == 1 {
        Ok(())
    } else {
        Err(Error::Stale)
    }
}

/// Notes of what its owners are told now; answers whether they are still to be told: the register is as it was known.
#[boxed]
pub async fn warn(db: &Connection, known: &Model, warned: i32) -> Result<bool> {
    let done = Entity::update_many()
        .col_expr(Column::Warned, Expr::value(warned))
        .filter(Column::Id.eq(known.id))
        .filter(Column::FetchedAt.eq(known.fetched_at))
        .filter(Column::Warned.lt(warned))
        .exec(db)
        .await?;
    Ok(done.rows_affected == 1)
}

/// What its file holds is removed later: [`chunk::orphan`].
#[boxed]
pub async fn remove(db: &Connection, owner: (TenantId, Env), name: &str) -> Result<()> {
    let gone = Entity::delete_many()
        .filter(Column::TenantId.eq(owner.0))
        .filter(Column::Env.eq(owner.1))
        .filter(Column::Name.eq(name))
        .exec(db)
        .await?;
    if gone.rows_affected == 1 {
        Ok(())
    } else {
        Err(Error::NotFound("register"))
    }
}
