//! Is it still ours? One process asks that of the database, a node of its life: what it serves is taken by others once that is
//! over. Asserted inside every commit, and asked before each deed outside that no commit of this moment has asked for: a process
//! that was stopped for a minute, or cut off, finds out before its first deed.
//!
//! A SQLite file is locked by the one process that serves it, whether that runs or stands still: there nothing is asked before a deed.
//!
//! Commits are fenced in the database ([`generation::assert`], [`entities::node::assert()`]). Deeds cannot be: so an answer counts for 200 ms
//! only, and whoever takes over from the living waits longer than that (`handed_over`).
use crate::leases::{Leases, Of};
use entities::{
    Error, Result, boxed,
    connection::{Connection, Transaction},
    db::Db,
    generation::{self, Taken},
    ids::NodeId,
    meta, node, node_end,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::watch;

/// So long nobody asks again: at most five questions a second, however much is done.
pub(crate) const FRESH: Duration = Duration::from_millis(200);
/// What a process that takes over waits before its first deed.
pub(crate) const HANDOVER: Duration = Duration::from_millis(1_000);
/// A question that nobody answers is asked again, by a connection that may be better.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two questions to a database that does not answer.
const AGAIN: Duration = Duration::from_millis(100);

/// What is asked for.
enum Claim {
    /// The whole database.
    Generation(i64),
    /// That others know this node to live.
    Node(NodeId),
}

impl Claim {
    async fn assert(&self, transaction: &Transaction) -> Result<()> {
        match self {
            Claim::Generation(generation) => generation::assert(transaction, *generation).await,
            Claim::Node(id) => node::assert(transaction, *id).await,
        }
    }

    async fn check(&self, db: &Connection) -> Result<()> {
        match self {
            Claim::Generation(generation) => generation::check(db, *generation).await,
            Claim::Node(id) => node::check(db, *id).await,
        }
    }
}

pub struct Fence {
    claim: Claim,
    leases: Arc<Leases>,
    /// Nobody takes it over while this process exists.
    is_locked: bool,
    /// When it was last known to be ours.
    known_at: Mutex<(Instant, SystemTime)>,
    /// One asks for all who wait.
    asking: tokio::sync::Mutex<()>,
    lost: watch::Sender<bool>,
}

impl Fence {
    /// Makes the database ours, by a new generation.
    #[boxed]
    pub async fn take(db: &Db) -> Result<Self> {
        let transaction = db.begin().await?;
        let Taken {
            generation,
            from_the_living,
        } = generation::take(&transaction).await?;
        let nodes = match db.is_shared() {
            true => node_end::end_every(&transaction).await?,
            false => None,
        };
        if let Some(seen_at) = nodes {
            meta::set(&transaction, meta::HEARTBEAT, &seen_at.to_string()).await?;
        }
        transaction.commit().await?;
        // On SQLite the lock goes with its process, and nobody is left; but the calls of its last second count, and nobody
        // knows them here: so no second holds calls of two processes.
        if from_the_living || nodes.is_some() {
            handed_over().await;
        }
        metrics::gauge!("callboard_generation").set(generation as f64);
        let (claim, leases) = (Claim::Generation(generation), Arc::new(Leases::whole()));
        Ok(Self::new(claim, leases, !db.is_shared()))
    }

    /// Of a node that has just joined.
    pub fn of_node(id: NodeId) -> Self {
        Self::new(Claim::Node(id), Arc::new(Leases::of(id)), false)
    }

    fn new(claim: Claim, leases: Arc<Leases>, is_locked: bool) -> Self {
        Fence {
            claim,
            leases,
            is_locked,
            known_at: Mutex::new(now()),
            asking: tokio::sync::Mutex::default(),
            lost: watch::channel(false).0,
        }
    }

    /// What this process serves.
    pub fn leases(&self) -> &Arc<Leases> {
        &self.leases
    }

    /// In the writer's transaction, first of all.
    #[boxed]
    pub async fn assert(&self, transaction: &Transaction) -> Result<()> {
        let asked_at = now();
        self.noted(asked_at, self.claim.assert(transaction).await)
    }

    /// Answers whether the deed may be done: not if its workspace has moved to another node. Waits while it cannot be known whether
    /// the process still has anything. Once it has not, for ever: it is about to end.
    #[boxed]
    pub async fn pass(&self, db: &Db, of: Of) -> Result<()> {
        loop {
            if *self.lost.borrow() {
                return std::future::pending().await;
            }
            if self.is_locked || self.is_fresh() {
                // What is about to leave is still finished here.
                return if self.leases.holds(of) {
                    Ok(())
                } else {
                    Err(Error::Moved)
                };
            }
            if let Err(error) = self.ask(db).await
                && !matches!(error, Error::Fenced)
            {
                wait(AGAIN).await;
            }
        }
    }

    /// Looks now, and tells who watches.
    #[boxed]
    pub async fn ask(&self, db: &Db) -> Result<()> {
        let _asking = self.asking.lock().await;
        if self.is_fresh() {
            return Ok(());
        }
        let asked_at = now();
        let answer = tokio::time::timeout(PATIENCE, self.claim.check(db.aside())).await;
        let silent = |_| Err(Error::Unavailable("the database does not answer".into()));
        self.noted(asked_at, answer.unwrap_or_else(silent))
    }

    /// Ends it in order. The writer has ended before.
    #[boxed]
    pub async fn release(&self, db: &Db) -> Result<()> {
        let transaction = db.begin().await?;
        match self.claim {
            Claim::Generation(generation) => generation::release(&transaction, generation).await?,
            Claim::Node(id) => node_end::leave(&transaction, id).await?,
        }
        Ok(transaction.commit().await?)
    }

    /// Becomes true when another process has taken over.
    pub fn lost(&self) -> watch::Receiver<bool> {
        self.lost.subscribe()
    }

    /// Somebody else is about to take it over.
    pub fn give_up(&self) {
        self.lost.send_replace(true);
    }

    fn is_fresh(&self) -> bool {
        let (steady, wall) = *self.known_at.lock().unwrap_or_else(PoisonError::into_inner);
        // A machine that slept has not aged by the one, and a clock that was set back has not by the other.
        steady.elapsed() < FRESH && wall.elapsed().is_ok_and(|age| age < FRESH)
    }

    fn noted(&self, asked_at: (Instant, SystemTime), answer: Result<()>) -> Result<()> {
        match &answer {
            Ok(()) => {
                let mut known_at = self.known_at.lock().unwrap_or_else(PoisonError::into_inner);
                if asked_at.0 > known_at.0 {
                    *known_at = asked_at;
                }
            }
            Err(Error::Fenced) => self.give_up(),
            Err(_) => {}
        }
        answer
    }
}

/// By now whoever was taken over from does nothing more outside.
pub(crate) async fn handed_over() {
    wait(HANDOVER).await;
}

fn now() -> (Instant, SystemTime) {
    (Instant::now(), SystemTime::now())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the other process and the database keep their own time"
)]
async fn wait(time: Duration) {
    tokio::time::sleep(time).await;
}
