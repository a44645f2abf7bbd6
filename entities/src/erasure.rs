//! Erasures: by each all that can be erased of one person goes, and it says afterwards what went, what stays and why. Whom it is about
//! is known until it has ended; from then on only a keyed hash is, by which somebody who asks again is told that it was done.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{ErasureId, TenantId, TenantScoped},
    owned::of_tenant_and_env,
    page::{self, Listed, Page},
    values::{E164, Env, Moment},
    workspace_lease::Share,
};
use schemars::JsonSchema;
use sea_orm::{
    DeriveActiveEnum, EnumIter, FromJsonQueryResult, QuerySelect, QueryTrait, entity::prelude::*, sea_query::Expr,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ErasureStatus", description = "How far an erasure is.")]
pub enum Status {
    Queued,
    Running,
    Done,
    /// Some of it could not be erased; `error` says why. Ask again once that is mended.
    Failed,
}

impl Status {
    pub fn is_open(self) -> bool {
        matches!(self, Status::Queued | Status::Running)
    }
}

/// What is in use, and is erased when it is not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ErasureWait")]
pub enum Wait {
    /// A call with the person, or a room that it may still join.
    Call,
    /// A message that is being handed over.
    Message,
    /// A list that is being read in, and may name the person.
    Import,
}

/// How many of each kind were erased. A crash in between may leave some of the last uncounted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
pub struct Erased {
    /// Texts of SMS, sent and received.
    pub sms: i64,
    pub emails: i64,
    /// Of campaigns: removed, or without anything that names the person.
    pub contacts: i64,
    /// Calls and talks in rooms: what was said, answered and noted in them.
    pub sessions: i64,
    /// Of these, those that had a recording; it is erased at once, or within 30 seconds.
    pub recordings: i64,
    /// Evidence of consents that no law keeps any more.
    pub consents: i64,
    /// Of the record of attempts: names, words and the number in clear. The record itself stays.
    pub attempts: i64,
    /// Exports of that record that named the person, with everybody else who is in them: they can be asked for again.
    #[serde(default)]
    pub exports: i64,
}

impl Erased {
    pub fn total(&self) -> i64 {
        self.sms + self.emails + self.contacts + self.sessions + self.consents + self.attempts
    }
}

/// What stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ErasureKeptKind")]
pub enum KeptKind {
    /// When, from and to which number, for how long and at what cost; not what was said.
    Calls,
    /// That somebody was in a campaign, and what became of that; not who.
    Contacts,
    /// To whom and when; not what was written.
    Messages,
    /// The record of attempts, without what can be erased of it.
    Attempts,
    Consents,
    DoNotCall,
    /// What receivers of webhooks were told, until it is pruned.
    Events,
    /// What your own receivers have stored.
    Receivers,
    /// Answers to requests with an `Idempotency-Key`, for 24 hours.
    Answers,
    /// Entries that name a call or a message by its id.
    Ledger,
    /// Copies of the database, as long as the operator keeps them.
    Backups,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ErasureKept")]
pub struct Kept {
    pub what: KeptKind,
    /// How many, where they are counted.
    pub count: Option<i64>,
    /// Why it stays, and until when.
    pub why: String,
    /// The rules of the law pack that want it kept.
    #[serde(default)]
    pub rules: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(transparent)]
pub struct AllKept(pub Vec<Kept>);

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "erasures")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: ErasureId,
    pub tenant_id: TenantId,
    pub env: Env,
    /// This or `email`, until it has ended.
    pub phone_number: Option<E164>,
    /// In its one spelling.
    pub email: Option<String>,
    /// Of the number, or the address; keyed.
    pub whom_hash: String,
    pub status: Status,
    #[sea_orm(column_type = "JsonBinary")]
    pub erased: Erased,
    /// Known at its end.
    #[sea_orm(column_type = "JsonBinary")]
    pub kept: AllKept,
    pub waits_for: Option<Wait>,
    pub error: Option<String>,
    /// A member's address, or an API key's name and how it begins.
    pub created_by: String,
    pub version: i32,
    pub created_at: Moment,
    pub finished_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

of_tenant_and_env!(ErasureId, "erasure");

/// Written out, not bound: only so do the databases see that the small index of open ones serves.
fn is_open() -> Expr {
    Expr::cust("status IN ('queued', 'running')")
}

/// `whom`: the hashes of one person; none: of all.
#[boxed]
pub async fn list(db: &Db, (tenant, env): (TenantId, Env), whom: Option<String>, page: Page) -> Result<Listed<Model>> {
    let all = owned(tenant, env).apply_if(whom, |all, hash| all.filter(Column::WhomHash.eq(hash)));
    page::fetch(&db.read, all, Column::Id, Column::CreatedAt, page).await
}

/// The tenant's that are not over, in their order, behind `after`.
#[boxed]
pub async fn open_after(db: &Connection, tenant: TenantId, after: Option<ErasureId>, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::TenantId.eq(tenant)).filter(is_open());
    page::behind(db, select, Column::Id, after, limit).await
}

/// The one that is under way for a person.
#[boxed]
pub async fn open_of(db: &Connection, (tenant, env): (TenantId, Env), whom_hash: &str) -> Result<Option<Model>> {
    let select = owned(tenant, env)
        .filter(is_open())
        .filter(Column::WhomHash.eq(whom_hash));
    Ok(select.one(db).await?)
}

#[boxed]
pub async fn count_open(db: &Connection, tenant: TenantId) -> Result<u64> {
    let select = Entity::find().filter(Column::TenantId.eq(tenant)).filter(is_open());
    Ok(select.count(db).await?)
}

/// Tenants of which some are not over.
#[boxed]
pub async fn tenants_at_work(db: &Connection, share: Share) -> Result<Vec<TenantId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::TenantId)
        .distinct()
        .filter(share.of(Column::TenantId))
        .filter(is_open());
    Ok(select.into_tuple().all(db).await?)
}

/// Writes a new one, or the next version of the stored one. `Stale`: somebody else has been at it.
#[boxed]
pub async fn save(db: &Connection, row: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(row), OnConflict::ReplacePredecessor)
        .await
        .map(drop)
}
