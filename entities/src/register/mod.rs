//! Registers: lists of numbers that must not be called, such as the national do-not-call lists, as they were uploaded last.
//!
//! A register is the operator's, for all workspaces, or a workspace's own. Its row says which file it has now, and is written when
//! all of that file is stored ([`chunk`]): until then, whatever happens, the file before it stays.
pub mod answer;
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
use sea_orm::{Condition, FromQueryResult, QuerySelect, entity::prelude::*, sea_query::Expr};
use std::collections::BTreeSet;

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

/// What was there when registers were looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// For whom.
    pub owner: (TenantId, Env),
    /// Those that were asked for.
    pub names: BTreeSet<String>,
    /// All that is seen of these names, each with its version: also what says nothing of the number that was looked for.
    pub copies: BTreeSet<(RegisterId, i32)>,
}

impl Seen {
    /// `rows`: what [`of_names`] has answered.
    pub fn of(owner: (TenantId, Env), names: &[&str], rows: &[Model]) -> Self {
        Seen {
            owner,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            copies: rows.iter().map(|row| (row.id, row.version)).collect(),
        }
    }

    /// Would the same be seen of these rows? A copy that has come since is one more.
    fn is_still_so(&self, rows: &[Version]) -> bool {
        let is_seen = |row: &&Version| {
            let is_theirs = row.tenant_id == INSTALLATION || (row.tenant_id, row.env) == self.owner;
            is_theirs && self.names.contains(&row.name)
        };
        let now: BTreeSet<(RegisterId, i32)> = rows.iter().filter(is_seen).map(|row| (row.id, row.version)).collect();
        now == self.copies
    }
}

/// Of a row what tells whether it is another one now.
#[derive(FromQueryResult)]
struct Version {
    id: RegisterId,
    tenant_id: TenantId,
    env: Env,
    name: String,
    version: i32,
}

/// Is all as it was seen in each of these looks? Asked inside the transaction that commits a dial, once for all of its dials.
#[boxed]
pub async fn are_as_seen(db: &Connection, looks: &[&Seen]) -> Result<bool> {
    let owners: BTreeSet<TenantId> = looks.iter().map(|seen| seen.owner.0).chain([INSTALLATION]).collect();
    let names: BTreeSet<&str> = looks
        .iter()
        .flat_map(|seen| seen.names.iter().map(String::as_str))
        .collect();
    let select = Entity::find()
        .select_only()
        .columns([Column::Id, Column::TenantId, Column::Env, Column::Name, Column::Version])
        .filter(Column::TenantId.is_in(owners))
        .filter(Column::Name.is_in(names));
    let rows: Vec<Version> = select.into_model::<Version>().all(db).await?;
    Ok(looks.iter().all(|seen| seen.is_still_so(&rows)))
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

/// What its file holds is left to [`chunk::remove_some`].
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
