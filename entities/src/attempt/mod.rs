//! The record of attempts: who was to be reached, with which law and on which facts, and what came of it. Only added to, and each row
//! holds the hash of the one before, per tenant and env: whoever changes, takes out or puts in a row is found out
//! (`rules::law::record`).
//!
//! What names a person stands in `content`, which has a digest of its own under the hash: it can be blanked, and the chain
//! still fits. Rows outlive what they are about; see `anchor` for how old ones go.
pub mod anchor;
pub mod chain;
pub mod head;
mod list;
mod person_rows;
mod prune;

pub use list::{Filter, NPage, list};
pub use person_rows::PersonRows;
pub use prune::{blank, has_older, remove};

use crate::{
    boxed, bulk,
    connection::Connection,
    error::{Error, Result},
    ids::{AttemptId, CampaignId, ConsentId, TenantId, TenantScoped},
    page,
    values::{Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, QueryTrait,
    entity::prelude::*,
    sea_query::{Expr, ExprTrait},
};
use serde::{Deserialize, Serialize};

/// What a row tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(12))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "What a row of the record tells.")]
pub enum RecordKind {
    /// Somebody was about to be called, or written to: the facts, and the verdict of each rule.
    Attempt,
    /// What came of it.
    Outcome,
    /// How it was classified after its end.
    Disposition,
    /// Somebody does not want to be reached any more.
    OptOut,
    /// They were taken off the do-not-call list again.
    Lifted,
    /// A consent was taken back.
    Revocation,
    /// The content of earlier rows was blanked.
    Erasure,
}

impl RecordKind {
    /// As it is stored and hashed.
    pub const fn as_str(self) -> &'static str {
        match self {
            RecordKind::Attempt => "attempt",
            RecordKind::Outcome => "outcome",
            RecordKind::Disposition => "disposition",
            RecordKind::OptOut => "opt_out",
            RecordKind::Lifted => "lifted",
            RecordKind::Revocation => "revocation",
            RecordKind::Erasure => "erasure",
        }
    }
}

/// One link of a chain.
#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "attempt_records")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    /// 1, 2, 3, …: its place in this chain.
    #[sea_orm(primary_key, auto_increment = false)]
    pub n: i64,
    pub kind: RecordKind,
    /// The id of the session, or of the message; of a wish that was told elsewhere that of its entry.
    pub attempt_id: AttemptId,
    /// The `n` of the intent that it belongs to: more than one intent of a session where its trunk had no room at first, or of a
    /// message where its provider had not taken it. 0 for what belongs to no single one.
    pub dial_n: i32,
    pub campaign_id: Option<CampaignId>,
    /// Keyed hashes of the number, and of the address in lower case, in hex: of both where both were known, so that the person is found
    /// by either. `None` where the opening tells it. They stay when the content is blanked.
    pub number_hash: Option<String>,
    pub email_hash: Option<String>,
    /// Of an opening: the consent that it rests on, as the body names it. Not hashed for itself: the body is.
    pub consent_id: Option<ConsentId>,
    /// When it was committed, by our time.
    pub at: Moment,
    /// JSON, as it was hashed.
    #[sea_orm(column_type = "Text")]
    pub body: String,
    /// JSON: what names a person. `None`: there was none, or it was blanked; the digest tells which.
    #[sea_orm(column_type = "Text", nullable)]
    pub content: Option<String>,
    /// SHA-256 of the content, in hex.
    pub content_sha256: Option<String>,
    /// Of the row before; empty for the first one.
    pub prev_hash: String,
    /// SHA-256, in hex.
    pub hash: String,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn owner(&self) -> (TenantId, Env) {
        (self.tenant_id, self.env)
    }

    /// It named somebody, and does no more.
    pub fn is_blanked(&self) -> bool {
        self.content.is_none() && self.content_sha256.is_some()
    }
}

/// A row that is to be added; the writer gives it its place, its time and its hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct New {
    pub tenant_id: TenantId,
    pub env: Env,
    pub kind: RecordKind,
    pub attempt_id: AttemptId,
    pub dial_n: i32,
    pub campaign_id: Option<CampaignId>,
    pub number_hash: Option<String>,
    pub email_hash: Option<String>,
    /// The one that the body of an opening names.
    pub consent_id: Option<ConsentId>,
    pub body: String,
    pub content: Option<String>,
    pub content_sha256: Option<String>,
}

impl New {
    pub fn owner(&self) -> (TenantId, Env) {
        (self.tenant_id, self.env)
    }
}

pub(super) fn owned((tenant, env): (TenantId, Env)) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
}

/// All that is recorded of one attempt, in order: its openings, and what came of them.
#[boxed]
pub async fn of_attempt(db: &Connection, key: TenantScoped<AttemptId>) -> Result<Vec<Model>> {
    let rows = of_attempts(db, (key.tenant_id, key.env), &[key.id]).await?;
    match rows.is_empty() {
        true => Err(Error::NotFound("attempt")),
        false => Ok(rows),
    }
}

/// The same of several, in the order of the chain.
#[boxed]
pub async fn of_attempts(db: &Connection, owner: (TenantId, Env), ids: &[AttemptId]) -> Result<Vec<Model>> {
    let mut found = Vec::new();
    for chunk in bulk::padded(ids) {
        let rows = owned(owner).filter(Column::AttemptId.is_in(chunk));
        found.extend(rows.all(db).await?);
    }
    found.sort_by_key(|row: &Model| row.n);
    Ok(found)
}

/// What is recorded about the person whose number or address has one of these hashes, in order, behind `n`: openings and wishes. What came
/// of them is found by [`of_attempts`], or with them all in their order by [`PersonRows`].
#[boxed]
pub async fn of_person(
    db: &Connection,
    owner: (TenantId, Env),
    hashes: &[String],
    after: i64,
    limit: u64,
) -> Result<Vec<Model>> {
    let mut found = Vec::new();
    for by in BOTH {
        let rows = owned(owner).filter(about(by, hashes));
        found.extend(page::behind(db, rows, Column::N, Some(after), limit).await?);
    }
    Ok(merged(found, false, limit))
}

/// By what a person is found. Each is asked for by itself: of an "or" neither database is sure to use both small indexes.
#[derive(Clone, Copy)]
pub(super) enum By {
    Number,
    Address,
}

pub(super) const BOTH: [By; 2] = [By::Number, By::Address];

/// Written out: only so do the databases see that the small index serves.
pub(super) fn about(by: By, hashes: &[String]) -> Condition {
    let (there, column) = match by {
        By::Number => ("number_hash IS NOT NULL", Column::NumberHash),
        By::Address => ("email_hash IS NOT NULL", Column::EmailHash),
    };
    Condition::all()
        .add(Expr::cust(there))
        .add(column.is_in(hashes.iter().map(String::as_str)))
}

/// The first so many of what was found by either, in order, each once.
pub(super) fn merged(mut found: Vec<Model>, newest_first: bool, limit: u64) -> Vec<Model> {
    found.sort_by_key(|row| row.n);
    found.dedup_by_key(|row| row.n);
    if newest_first {
        found.reverse();
    }
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    found
}

/// The rows of one chain behind its `n`th, in their order.
#[boxed]
pub async fn range(db: &Connection, owner: (TenantId, Env), after: i64, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, owned(owner), Column::N, Some(after), limit).await
}

/// Those of them that are about a campaign.
#[boxed]
pub async fn of_campaign(
    db: &Connection,
    owner: (TenantId, Env),
    campaign: CampaignId,
    after: i64,
    limit: u64,
) -> Result<Vec<Model>> {
    let rows = owned(owner).filter(of(campaign));
    page::behind(db, rows, Column::N, Some(after), limit).await
}

/// Written out: only so do the databases see that the small index serves.
pub(super) fn of(campaign: CampaignId) -> Condition {
    Condition::all()
        .add(Expr::cust("campaign_id IS NOT NULL"))
        .add(Column::CampaignId.eq(campaign))
}

/// All rows of all chains, a page at a time, in the order of their key: for the audit.
pub async fn all_after(db: &Connection, after: Option<(TenantId, Env, i64)>, limit: u64) -> Result<Vec<Model>> {
    let behind = after.map(|(tenant, env, n)| {
        let key = [Column::TenantId, Column::Env, Column::N].map(Expr::col);
        Expr::tuple(key).gt(Expr::tuple([Expr::value(tenant), Expr::value(env), Expr::value(n)]))
    });
    let select = Entity::find()
        .apply_if(behind, |rows, behind| rows.filter(behind))
        .order_by(Column::TenantId, Order::Asc)
        .order_by(Column::Env, Order::Asc)
        .order_by(Column::N, Order::Asc);
    Ok(select.limit(limit).all(db).await?)
}

/// The first row of a chain that was committed at that moment or later; the one behind the last where there is none. The times of
/// a chain grow: the place is looked for by halves.
#[boxed]
pub async fn first_since(db: &Connection, owner: (TenantId, Env), at: Moment) -> Result<i64> {
    let (first, last) = chain::bounds(db, owner).await?;
    let (mut low, mut high) = (first, last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let found: Option<Moment> = owned(owner)
            .filter(Column::N.eq(middle))
            .select_only()
            .column(Column::At)
            .into_tuple()
            .one(db)
            .await?;
        match found {
            Some(then) if then >= at => high = middle,
            // A row that is gone meanwhile was among the oldest.
            Some(_) | None => low = middle + 1,
        }
    }
    Ok(low)
}
