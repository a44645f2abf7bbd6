//! The database is opened, migrated and taken over, and what is read from it before anything begins.
use super::threads::spawn_on;
use crate::{error::CannotStart, settings::NodeOptions};
use actors::{fence::Fence, heartbeat, holds, leases::Since, nodes};
use entities::{
    Error,
    db::{Db, Location},
    ids::NodeId,
    lock::{Holders, Lock},
    meta, node, restored,
    values::Moment,
};
use runtime::{
    clock::Clock,
    ids::Ids,
    keyring::{Keyring, purpose},
    link_keys::{self, LinkKeys},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// A database that is this process's own.
pub(super) struct Opened {
    pub(super) lock: Arc<Lock>,
    pub(super) db: Db,
    pub(super) fence: Arc<Fence>,
    pub(super) links: LinkKeys,
    pub(super) heartbeat: Since,
    pub(super) ids: Arc<Ids>,
}

pub(super) async fn open(
    location: Location,
    node: Option<NodeOptions>,
    sip_address: Option<String>,
    keyring: &Keyring,
    start_paused: bool,
    clock: &Clock,
    runtime: &tokio::runtime::Handle,
) -> Result<Opened, CannotStart> {
    let ids = Arc::new(Ids::new(clock.clone()));
    let row = node.map(|node| joining(node, sip_address, ids.next(), clock.now()));
    // Opened on the runtime that drives it, not on the caller's.
    let (lock, db, fence) = spawn_on(runtime, async move { take(&location, row).await })
        .await
        .map_err(|why| CannotStart(format!("database_url: {why}")))?;
    let (lock, fence) = (Arc::new(lock), Arc::new(fence));
    if restored::is_under_way(&db.read).await.map_err(unreadable)? {
        return Err(CannotStart(
            "database_url: a backup is being put into this database, or that broke off: wait for `callboard restore`, or empty the database \
             and restore again"
                .into(),
        ));
    }
    let links = open_secrets(&db, keyring).await?;
    lock.opened().await.map_err(unreadable)?;
    // Before anything takes its time from it.
    holds::begin(&db, clock, start_paused).await.map_err(unreadable)?;
    let heartbeat = heartbeat::begin(&db, clock).await.map_err(unreadable)?;
    if let Some(newest) = entities::event::last_id(&db.read).await.map_err(unreadable)? {
        ids.start_after(newest.0);
    }
    Ok(Opened {
        lock,
        db,
        fence,
        links,
        heartbeat,
        ids,
    })
}

pub(super) fn unreadable(error: Error) -> CannotStart {
    CannotStart(format!("database_url: cannot be read: {error}"))
}

fn joining(options: NodeOptions, sip_address: Option<String>, id: NodeId, now: Moment) -> node::Model {
    node::Model {
        id,
        name: options.name,
        address: options.address,
        sip_address,
        version: env!("CARGO_PKG_VERSION").into(),
        started_at: now,
        seen_at: now,
        until_ms: 0,
        ended_ms: None,
        draining: false,
        workspaces: 0,
        live_calls: 0,
        deliveries_waiting: 0,
    }
}

/// The database, migrated, and what makes it, or a part of it, this process's own.
async fn take(location: &Location, node: Option<node::Model>) -> Result<(Lock, Db, Fence), String> {
    let cannot = |what: &'static str| move |error: Error| format!("cannot {what} {}: {error}", location.shown());
    let holders = if node.is_some() { Holders::Nodes } else { Holders::One };
    let lock = Lock::take(location, holders).await?;
    lock.opening().await.map_err(cannot("open"))?;
    let id = node.as_ref().map(|row| row.id);
    let opened = patiently(move || async move {
        match id {
            Some(id) => Db::serve_as(location, id).await,
            None => Db::serve(location).await,
        }
    });
    let db = opened.await.map_err(cannot("open"))?;
    let file = &db;
    patiently(move || async move { Ok(migration::up(file.write.pool()?).await?) })
        .await
        .map_err(cannot("migrate"))?;
    if let Some(row) = node {
        nodes::join(file, &row).await.map_err(cannot("join"))?;
        return Ok((lock, db, Fence::of_node(row.id)));
    }
    // From here on an earlier process that is still alive commits nothing more.
    let fence = patiently(move || Fence::take(file))
        .await
        .map_err(cannot("take over"))?;
    Ok((lock, db, fence))
}

/// A start waits so long for a SQLite file that another program has locked, a backup or a shell.
const PATIENCE: Duration = Duration::from_secs(60);

#[expect(clippy::disallowed_methods, reason = "a lock is held in real time")]
async fn patiently<T, F: Future<Output = Result<T, Error>>>(step: impl Fn() -> F) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match step().await {
            Err(error) if error.is_locked() && begun.elapsed() < PATIENCE => {
                tracing::warn!("the database is locked by another program; startup waits for it");
                // Each try has waited for some seconds by itself, where SQLite lets it.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            done => return done,
        }
    }
}

/// Is it the key that the stored secrets were sealed with? Answers the keys of links that it opens; the first start makes them.
async fn open_secrets(db: &Db, keyring: &Keyring) -> Result<LinkKeys, CannotStart> {
    let check = meta::get(&db.read, meta::SECRET_CHECK).await.map_err(unreadable)?;
    if let Some(sealed) = &check {
        keyring.open(purpose::SECRET_CHECK, sealed).map(drop).map_err(|_| {
            let wanted = sealed.split_once('.').map_or("another key", |(id, _)| id);
            CannotStart(format!(
                "secret_key: this database's secrets were sealed with key {wanted}, and the configured key is {}. \
                 Set CALLBOARD_SECRET_KEY to the key that was used, or list it in CALLBOARD_SECRET_KEYS_PREVIOUS and run `callboard secrets rotate`.",
                keyring.key_id()
            ))
        })?;
    }
    let transaction = db.begin().await.map_err(|error| unreadable(error.into()))?;
    // Before the check is stored: a database without one has never sent a link.
    let links = link_keys::stored(&transaction, keyring).await.map_err(unreadable)?;
    if check.is_none() {
        let sealed = keyring.seal(purpose::SECRET_CHECK, "callboard");
        meta::set(&transaction, meta::SECRET_CHECK, &sealed)
            .await
            .map_err(unreadable)?;
    }
    transaction.commit().await.map_err(|error| unreadable(error.into()))?;
    Ok(links)
}
