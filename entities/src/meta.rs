//! Facts about the installation itself: the secret key's check value, the keys of links, the set-up link's hash.
use crate::{boxed, bulk, bulk::OnConflict, connection::Connection, error::Result};
use sea_orm::{QuerySelect, entity::prelude::*};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "meta")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    pub value: String,
}
impl ActiveModelBehavior for ActiveModel {}

/// A sealed constant: opens only with the secret key that the data was sealed with.
pub const SECRET_CHECK: &str = "secret_check";
/// The keys that links are signed with, sealed.
pub const LINK_KEYS: &str = "link_keys";
/// SHA-256 of the one-time set-up token, hex.
pub const SETUP_TOKEN: &str = "setup_token_sha256";

/// When commits were last tried out, after some had failed.
pub const LAST_PROBE: &str = "last_probe";

/// The first place of commits that no node has reserved.
pub const PLACES: &str = "places";
/// The highest sequence number of events when some were last pruned.
pub const PRUNED_SEQ: &str = "pruned_seq";
/// The last delivery of which the answers were forgotten.
pub const FORGOTTEN_ANSWERS: &str = "forgotten_answers";

/// Since when the operator has paused all dispatch, ISO 8601; no row: there is no pause.
pub const DISPATCH_PAUSED: &str = "dispatch_paused";
/// There while a backup is being put into this database: no service begins with it.
pub const RESTORING: &str = "restoring";
/// Since when this database does not know who has opted out or taken a consent back: it came from a backup of then, ISO 8601; no row: it
/// knows, or the operator says that they are entered.
pub const OPT_OUTS_UNKNOWN_SINCE: &str = "opt_outs_unknown_since";
/// When the service that carries calls was last alive, ISO 8601.
pub const HEARTBEAT: &str = "heartbeat";
/// The clock as the running service last saw it, in JSON: the next start compares its own with it.
pub const CLOCK: &str = "clock";
/// The step of the wall clock that the operator has found good, by its `since`.
pub const CLOCK_ACCEPTED: &str = "clock_accepted";

#[boxed]
pub async fn get(db: &Connection, key: &str) -> Result<Option<String>> {
    Ok(Entity::find_by_id(key.to_owned()).one(db).await?.map(|row| row.value))
}

#[boxed]
pub async fn set(db: &Connection, key: &str, value: &str) -> Result<()> {
    let row = Model {
        key: key.into(),
        value: value.into(),
    };
    bulk::save(db, &[row], OnConflict::Replace).await.map(drop)
}

/// Removes `key` if it still holds `value`; answers whether it did. Makes a token single-use.
#[boxed]
pub async fn take(db: &Connection, key: &str, value: &str) -> Result<bool> {
    let removed = Entity::delete_many()
        .filter(Column::Key.eq(key))
        .filter(Column::Value.eq(value))
        .exec(db)
        .await?;
    Ok(removed.rows_affected == 1)
}

/// Answers whether it was there.
#[boxed]
pub async fn remove(db: &Connection, key: &str) -> Result<bool> {
    Ok(Entity::delete_by_id(key.to_owned()).exec(db).await?.rows_affected > 0)
}

/// Numbers that are reserved at once; the first is a multiple of it.
pub const BLOCK: i64 = 100_000;

/// Reserves a [`BLOCK`] of numbers for the caller, and answers the first: above all that were reserved before, and at least `at_least`.
/// Whoever reserves at the same moment waits for the caller's transaction.
#[boxed]
pub async fn reserve(db: &Connection, key: &str, at_least: i64) -> Result<i64> {
    let row = Model {
        key: key.into(),
        value: at_least.to_string(),
    };
    bulk::save(db, &[row], OnConflict::Keep).await?;
    let held = Entity::find_by_id(key.to_owned()).lock_exclusive().one(db).await?;
    let reserved = held.and_then(|row| row.value.parse().ok()).unwrap_or(at_least);
    let first = (at_least.max(reserved) + BLOCK - 1) / BLOCK * BLOCK;
    set(db, key, &(first + BLOCK).to_string()).await?;
    Ok(first)
}
