//! A database that came back from a backup does not know what has run since. Each workspace has a mark, a row of `meta`, until all that may
//! have run is put away; while there is one, dispatch stays paused. Nor does it know who has opted out since, or has taken a consent back:
//! until the operator says that they are entered, the pause is not ended.
use crate::{
    boxed, bulk,
    bulk::OnConflict,
    connection::Connection,
    consent, dispatch_pause,
    error::{Error, Result},
    event,
    ids::TenantId,
    import, login, meta, password_reset, tally, tenant,
    values::Moment,
};
use sea_orm::entity::prelude::*;
use serde::Serialize;

/// What is made together has ids of about one time.
const TOGETHER_SECONDS: i64 = 1;
const INTERRUPTED: &str =
    "the service came back from a backup: read the list in again, without those who were called since";
/// How the keys of the marks begin; the workspace's id follows.
const PREFIX: &str = "restored/";

/// What may have run between a backup and its restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MayHaveRun {
    pub workspaces: u64,
    /// Contacts that were waiting for a call or a message.
    pub contacts: i64,
    /// Consents that stand again: some may have been taken back.
    pub consents: u64,
}

/// From here on until [`end`] no service begins with this database. Works with the schema of any version.
#[boxed]
pub async fn begin(db: &Connection, now: Moment) -> Result<()> {
    meta::set(db, meta::RESTORING, &now.to_string()).await
}

#[boxed]
pub async fn end(db: &Connection) -> Result<()> {
    meta::remove(db, meta::RESTORING).await.map(drop)
}

/// Has [`begin`] been called, and not [`end`]?
#[boxed]
pub async fn is_under_way(db: &Connection) -> Result<bool> {
    Ok(meta::get(db, meta::RESTORING).await?.is_some())
}

/// Marks every workspace, pauses dispatch, and lets go of sign-ins and of links for new passwords, for one that was used or ended since would
/// be valid again. `as_of`: until when something may have run.
#[boxed]
pub async fn mark(db: &Connection, taken_at: Moment, as_of: Moment, now: Moment) -> Result<MayHaveRun> {
    dispatch_pause::begin(db, now).await?;
    // Our time may have been ahead of the clock by which the operator goes: by as much as the newest event is ahead of the backup.
    let newest = event::last_id(db).await?;
    let newest = newest.map(|id| Moment::from_millis(i64::try_from(id.0.as_u128() >> 80).unwrap_or(0)));
    let ahead = newest.map_or(0, |newest| (newest.millis() - taken_at.millis()).max(0));
    let as_of = as_of.plus_millis(ahead).plus_seconds(TOGETHER_SECONDS);
    import::give_up_contacts(db, INTERRUPTED, now).await?;
    login::remove_all(db).await?;
    password_reset::void_all(db).await?;
    let row = |tenant: tenant::Model| meta::Model {
        key: format!("{PREFIX}{}", tenant.id),
        value: as_of.to_string(),
    };
    let rows: Vec<_> = tenant::all(db).await?.into_iter().map(row).collect();
    bulk::save(db, &rows, OnConflict::Replace).await?;
    // Where nobody has seen to it since an earlier restore, it is unknown since then.
    if !rows.is_empty() && opt_outs_unknown_since(db).await?.is_none() {
        meta::set(db, meta::OPT_OUTS_UNKNOWN_SINCE, &taken_at.to_string()).await?;
    }
    Ok(MayHaveRun {
        workspaces: rows.len() as u64,
        contacts: tally::waiting(db).await?,
        consents: consent::count_standing(db).await?,
    })
}

/// Since when nobody can tell from this database who has opted out or taken a consent back.
#[boxed]
pub async fn opt_outs_unknown_since(db: &Connection) -> Result<Option<Moment>> {
    let Some(text) = meta::get(db, meta::OPT_OUTS_UNKNOWN_SINCE).await? else {
        return Ok(None);
    };
    let bad = |_| Error::Corrupt {
        table: "meta",
        column: "value",
        id: meta::OPT_OUTS_UNKNOWN_SINCE.into(),
    };
    Moment::parse(&text).map(Some).map_err(bad)
}

/// The operator says that they are entered, or that there was nobody.
#[boxed]
pub async fn opt_outs_are_entered(db: &Connection) -> Result<()> {
    meta::remove(db, meta::OPT_OUTS_UNKNOWN_SINCE).await.map(drop)
}

/// The workspaces that have one, and until when something of theirs may have run.
#[boxed]
pub async fn marks(db: &Connection) -> Result<Vec<(TenantId, Moment)>> {
    let select = meta::Entity::find().filter(meta::Column::Key.starts_with(PREFIX));
    let read = |row: meta::Model| {
        let tenant = row.key.strip_prefix(PREFIX).and_then(|id| Uuid::parse_str(id).ok());
        let bad = || Error::Corrupt {
            table: "meta",
            column: "value",
            id: row.key.clone(),
        };
        let tenant = tenant.map(TenantId).ok_or_else(bad)?;
        Ok((tenant, Moment::parse(&row.value).map_err(|_| bad())?))
    };
    select.all(db).await?.into_iter().map(read).collect()
}

/// Nothing of that workspace is left that may have run.
#[boxed]
pub async fn settle(db: &Connection, tenant: TenantId) -> Result<()> {
    meta::remove(db, &format!("{PREFIX}{tenant}")).await.map(drop)
}
