//! Which process owns the database: a number that grows with each process that begins to serve. Every commit asserts its
//! own, so that a process that has lost the database without knowing it writes nothing more (a fencing token).
//!
//! In `meta`: the number while its process serves, with `:released` behind it once that process has ended in order.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::{Connection, Transaction},
    error::{Error, Result},
    meta,
};
use sea_orm::{ConnectionTrait, DbBackend, EntityTrait, QuerySelect};

const KEY: &str = "generation";
const RELEASED: &str = ":released";

/// A new generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub generation: i64,
    /// The one before may still be alive, and does not know yet that it has lost the database.
    pub from_the_living: bool,
}

/// Begins a new generation. Waits until no transaction of the one before is open.
#[boxed]
pub async fn take(transaction: &Transaction) -> Result<Taken> {
    let db: &Connection = transaction;
    if db.get_database_backend() == DbBackend::Postgres {
        // A transaction that does not end must not keep us for ever; its connection can be ended by hand.
        db.execute_unprepared("SET LOCAL lock_timeout = '10s'").await?;
    }
    // Held until the commit: whoever asserts its generation at this moment waits, and finds that it is over.
    let row = meta::Entity::find_by_id(KEY).lock_exclusive().one(db).await?;
    let before = row.map(|row| row.value).unwrap_or_default();
    let (number, released) = match before.strip_suffix(RELEASED) {
        Some(number) => (number, true),
        None => (before.as_str(), before.is_empty()),
    };
    let generation = number.parse::<i64>().unwrap_or(0) + 1;
    let row = meta::Model {
        key: KEY.into(),
        value: generation.to_string(),
    };
    bulk::save(db, &[row], OnConflict::Replace).await?;
    Ok(Taken {
        generation,
        from_the_living: !released,
    })
}

/// Keeps every process from committing until the caller's transaction ends.
#[boxed]
pub async fn hold(db: &Connection) -> Result<()> {
    meta::Entity::find_by_id(KEY).lock_exclusive().one(db).await?;
    Ok(())
}

/// [`Error::Fenced`] if another process has begun to serve since. In a transaction nobody can until it ends.
#[boxed]
pub async fn assert(db: &Connection, generation: i64) -> Result<()> {
    let row = meta::Entity::find_by_id(KEY).lock_shared().one(db).await?;
    is_it(row, generation)
}

/// The same, of this moment only.
#[boxed]
pub async fn check(db: &Connection, generation: i64) -> Result<()> {
    is_it(meta::Entity::find_by_id(KEY).one(db).await?, generation)
}

fn is_it(row: Option<meta::Model>, generation: i64) -> Result<()> {
    match row {
        Some(row) if row.value == generation.to_string() => Ok(()),
        _ => Err(Error::Fenced),
    }
}

/// The process ends in order: it commits nothing more, and the next need not wait for it.
#[boxed]
pub async fn release(db: &Transaction, generation: i64) -> Result<()> {
    assert(db, generation).await?;
    let row = meta::Model {
        key: KEY.into(),
        value: format!("{generation}{RELEASED}"),
    };
    bulk::save(db, &[row], OnConflict::Replace).await.map(drop)
}
