//! The operator's pause: while it lasts nothing leaves for people, of no workspace. A row of `meta`, so that it outlives a restart.
use crate::{
    boxed,
    connection::Connection,
    error::{Error, Result},
    generation,
    meta::{self, DISPATCH_PAUSED},
    node,
    values::Moment,
};

/// `None`: there is no pause.
#[boxed]
pub async fn since(db: &Connection) -> Result<Option<Moment>> {
    let Some(text) = meta::get(db, DISPATCH_PAUSED).await? else {
        return Ok(None);
    };
    let bad = |_| Error::Corrupt {
        table: "meta",
        column: "value",
        id: DISPATCH_PAUSED.into(),
    };
    Moment::parse(&text).map(Some).map_err(bad)
}

/// Asked inside the transaction of all that leaves: that there is a row is enough.
#[boxed]
pub async fn lasts(db: &Connection) -> Result<bool> {
    Ok(meta::get(db, DISPATCH_PAUSED).await?.is_some())
}

/// A second time keeps the moment of the first, and answers with it. Waits for the writer's transaction that is under way: from its
/// commit on nothing leaves.
#[boxed]
pub async fn begin(db: &Connection, now: Moment) -> Result<Moment> {
    generation::hold(db).await?;
    node::hold(db).await?;
    if let Some(since) = since(db).await? {
        return Ok(since);
    }
    meta::set(db, DISPATCH_PAUSED, &now.to_string()).await?;
    Ok(now)
}

/// Answers whether there was one.
#[boxed]
pub async fn lift(db: &Connection) -> Result<bool> {
    meta::remove(db, DISPATCH_PAUSED).await
}
