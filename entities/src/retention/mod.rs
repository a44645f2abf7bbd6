//! How long a workspace keeps what it has done, and how far that was carried out. Without a row all is kept.
pub mod sessions;

use crate::{
    boxed, bulk,
    bulk::OnConflict,
    connection::Connection,
    error::{Error, Result},
    ids::{SessionId, TenantId},
    page,
    values::{Bounded, Env, Moment},
    workspace_lease::Share,
};
use schemars::JsonSchema;
use sea_orm::{Condition, QuerySelect, entity::prelude::*, sea_query::Expr};
use serde::{Deserialize, Serialize};

/// How many days a workspace keeps things; null: for ever, and messages as long as the server keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    /// Calls and rooms, from their end on, with all that belongs to them: transcripts, answers, recordings. At least 31: the law's caps
    /// look back for 30 days.
    #[serde(default)]
    pub sessions_days: Option<Bounded<31, 3650>>,
    /// What was said in them, from the day on which they were made.
    #[serde(default)]
    pub transcripts_days: Option<Bounded<1, 3650>>,
    /// Contacts, from the day on which their campaign was completed.
    #[serde(default)]
    pub contacts_days: Option<Bounded<1, 3650>>,
    /// SMS and e-mails that have ended, from the day on which they were made, and what caps count of them; at least 8, and no longer than
    /// the server keeps them. E-mails by which somebody can unsubscribe are kept for 60 days at least.
    #[serde(default)]
    pub messages_days: Option<Bounded<8, 3650>>,
    /// Lists that were read in, without their contents, from the end of that on.
    #[serde(default)]
    pub imports_days: Option<Bounded<1, 3650>>,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "retentions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    pub sessions_days: Option<i32>,
    pub transcripts_days: Option<i32>,
    pub contacts_days: Option<i32>,
    pub messages_days: Option<i32>,
    pub imports_days: Option<i32>,
    /// Some that are older are gone: for whoever looks for what a ledger tells of.
    pub sessions_until: Option<Moment>,
    pub contacts_until: Option<Moment>,
    pub messages_until: Option<Moment>,
    /// Up to these sessions nothing of what was said is left.
    pub silent_live: Option<SessionId>,
    pub silent_test: Option<SessionId>,
    pub version: i32,
    pub updated_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    fn empty(tenant_id: TenantId, now: Moment) -> Self {
        Model {
            tenant_id,
            sessions_days: None,
            transcripts_days: None,
            contacts_days: None,
            messages_days: None,
            imports_days: None,
            sessions_until: None,
            contacts_until: None,
            messages_until: None,
            silent_live: None,
            silent_test: None,
            version: 0,
            updated_at: now,
        }
    }

    pub fn settings(&self) -> Retention {
        Retention {
            sessions_days: stored(self.sessions_days),
            transcripts_days: stored(self.transcripts_days),
            contacts_days: stored(self.contacts_days),
            messages_days: stored(self.messages_days),
            imports_days: stored(self.imports_days),
        }
    }

    /// Up to which session nothing of what was said is left.
    pub fn silent(&self, env: Env) -> Option<SessionId> {
        match env {
            Env::Live => self.silent_live,
            Env::Test => self.silent_test,
        }
    }
}

/// What is out of bounds was not written by us: all is kept.
fn stored<const MIN: i32, const MAX: i32>(days: Option<i32>) -> Option<Bounded<MIN, MAX>> {
    days.and_then(|days| Bounded::new(days.into()).ok())
}

/// A workspace's own, or what it is without one.
#[boxed]
pub async fn of(db: &Connection, tenant: TenantId, now: Moment) -> Result<Model> {
    let found = Entity::find_by_id(tenant).one(db).await?;
    Ok(found.unwrap_or_else(|| Model::empty(tenant, now)))
}

/// Workspaces that do not keep everything, a page at a time.
#[boxed]
pub async fn all_after(db: &Connection, share: Share, after: Option<TenantId>, limit: u64) -> Result<Vec<Model>> {
    let any =
        Expr::cust("COALESCE(sessions_days, transcripts_days, contacts_days, messages_days, imports_days) IS NOT NULL");
    let select = Entity::find().filter(share.of(Column::TenantId)).filter(any);
    page::behind(db, select, Column::TenantId, after, limit).await
}

/// All there are, a page at a time: for the audit.
pub async fn every_after(db: &Connection, after: Option<TenantId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::TenantId, after, limit).await
}

/// `known` is what was decided by. `Stale`: somebody else has changed it since.
#[boxed]
pub async fn set(db: &Connection, known: &Model, to: &Retention, now: Moment) -> Result<Model> {
    bulk::save(
        db,
        std::slice::from_ref(&Model::empty(known.tenant_id, now)),
        OnConflict::Keep,
    )
    .await?;
    let days = |days: Option<i32>| Expr::value(days);
    let changed = Entity::update_many()
        .col_expr(Column::SessionsDays, days(to.sessions_days.map(Bounded::get)))
        .col_expr(Column::TranscriptsDays, days(to.transcripts_days.map(Bounded::get)))
        .col_expr(Column::ContactsDays, days(to.contacts_days.map(Bounded::get)))
        .col_expr(Column::MessagesDays, days(to.messages_days.map(Bounded::get)))
        .col_expr(Column::ImportsDays, days(to.imports_days.map(Bounded::get)))
        .col_expr(Column::Version, Expr::value(known.version + 1))
        .col_expr(Column::UpdatedAt, Expr::value(now))
        .filter(Column::TenantId.eq(known.tenant_id))
        .filter(Column::Version.eq(known.version))
        .exec(db)
        .await?;
    match changed.rows_affected {
        1 => of(db, known.tenant_id, now).await,
        _ => Err(Error::Stale),
    }
}

/// Is it as it was known? Asked inside the transaction that removes something; whoever changes it meanwhile waits for that.
#[boxed]
pub async fn still(db: &Connection, tenant: TenantId, version: i32) -> Result<()> {
    let held = Entity::find_by_id(tenant).lock_shared().one(db).await?;
    match held {
        Some(row) if row.version == version => Ok(()),
        Some(_) | None => Err(Error::Stale),
    }
}

/// What a mark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    Sessions(Moment),
    Contacts(Moment),
    Messages(Moment),
    /// What was said in sessions up to this one.
    Words(Env, SessionId),
}

/// Notes that what is older is gone, or some of it. A mark never goes back.
#[boxed]
pub async fn note(db: &Connection, tenant: TenantId, gone: Gone) -> Result<()> {
    let (column, value) = match gone {
        Gone::Sessions(until) => (Column::SessionsUntil, Value::from(until)),
        Gone::Contacts(until) => (Column::ContactsUntil, until.into()),
        Gone::Messages(until) => (Column::MessagesUntil, until.into()),
        Gone::Words(Env::Live, last) => (Column::SilentLive, last.into()),
        Gone::Words(Env::Test, last) => (Column::SilentTest, last.into()),
    };
    let is_earlier = Condition::any().add(column.is_null()).add(column.lt(value.clone()));
    Entity::update_many()
        .col_expr(column, Expr::value(value))
        .filter(Column::TenantId.eq(tenant))
        .filter(is_earlier)
        .exec(db)
        .await?;
    Ok(())
}
