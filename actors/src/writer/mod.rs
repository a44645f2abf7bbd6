//! Group commit: the one writer joins what many actors hand in at a moment into one transaction with multi-row statements,
//! so that they share one fsync. No time is waited for company: a batch is what queued up during the commit before.
//!
//! Events get their id, time and place in the order here, and their deliveries with them, in the same transaction.
//!
//! On PostgreSQL outcomes of deliveries, of which there are as many as of all else together and on which nothing else depends, are
//! written beside, on a connection of their own: events do not wait for them.
//!
//! A commit that fails may have reached the disk all the same, or may do so later: that is doubt. Before the next one whatever
//! may still land is ended ([`Db::renew_writer`]), and the order is read anew inside the new transaction.
mod batch;
mod engine;
mod health;
mod places;
mod subscriptions;

pub use health::Health;
pub use places::leave_free;
use rules::commit::{Commit, Committed};

use crate::{fence::Fence, leases::Of};
use engine::Engine;
use entities::{
    Error, Result, boxed,
    connection::Transaction,
    db::Db,
    delivery,
    ids::{CampaignId, EndpointId, NodeId, TenantId, TenantScoped},
};
use futures_util::future::BoxFuture;
use health::Vitals;
use rules::credits::terms::Terms;
use runtime::{clock::Clock, ids::Ids, keyring::Keyring};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{broadcast, mpsc, oneshot};

/// A write that must first look: runs inside a transaction of its own and answers what else to write in it.
/// `Fn`, because it may have to run again.
pub type Job = Box<dyn for<'a> Fn(&'a Transaction) -> BoxFuture<'a, Result<Commit>> + Send + Sync>;

enum Work {
    Commit(Box<Commit>),
    Job(Job),
    /// A job that leaves nobody anything to do.
    Upkeep(Job),
    /// Workspaces that come or go.
    Leases(Change),
}

/// What becomes of the workspaces that this node has.
#[derive(Clone, Debug)]
enum Change {
    /// So many more, of those that nobody has.
    Take(u64),
    /// This one, if nobody has it.
    TakeOne(TenantId),
    /// All that are this node's by the rows: a commit that took some was given up, and stood.
    Recall,
    GiveUp {
        tenants: Vec<TenantId>,
        wanted_by: Option<NodeId>,
    },
}

struct Item {
    of: Of,
    work: Work,
    handed_in: Instant,
    done: oneshot::Sender<Result<()>>,
}

/// Told after each commit, on the writer's thread: must be quick.
pub trait AfterCommit: Send + Sync {
    fn deliveries(&self, endpoint: TenantScoped<EndpointId>, new: Vec<(delivery::Model, Committed)>);
    fn drained(&self, campaign: TenantScoped<CampaignId>);
    /// What the tenant may spend is no longer what it was.
    fn credited(&self, tenant: TenantId);
}

/// `None` once the service has stopped.
type Inbox = Arc<Mutex<Option<mpsc::Sender<Item>>>>;

/// The door to the writer. Cloning is cheap.
#[derive(Clone)]
pub struct Writer {
    inbox: Inbox,
    /// `None`: there is one writer.
    outcomes: Option<Inbox>,
    watchers: broadcast::Sender<Committed>,
    vitals: Arc<Vitals>,
    commits: Arc<AtomicU64>,
    fail_next: Arc<AtomicU32>,
}

fn inbox() -> (Inbox, mpsc::Receiver<Item>) {
    let (sender, receiver) = mpsc::channel(INBOX);
    (Arc::new(Mutex::new(Some(sender))), receiver)
}

/// What the writer works with.
#[derive(Clone)]
pub struct Setup {
    pub db: Db,
    pub clock: Clock,
    pub ids: Arc<Ids>,
    /// What credits are booked by.
    pub terms: Terms,
    pub keyring: Arc<Keyring>,
    pub after: Arc<dyn AfterCommit>,
    pub fence: Arc<Fence>,
    /// A transaction that takes longer is given up.
    pub limit: Duration,
}

/// Items in one batch, and items that may wait; beyond that the senders wait.
const BATCH: usize = 1024;
const INBOX: usize = 8192;
/// Committed events a slow watcher may lag behind before it must read the rest from the database.
const WATCH_WINDOW: usize = 4096;

impl Writer {
    /// Starts the writer's loop on the current runtime. It ends after [`Writer::close`], when all is written.
    #[boxed]
    pub async fn start(setup: Setup) -> Result<(Self, tokio::task::JoinHandle<()>)> {
        let (inbox, receiver) = inbox();
        let (watchers, _) = broadcast::channel(WATCH_WINDOW);
        let beside = setup.db.beside().map(|db| (db, self::inbox()));
        let writer = Writer {
            outcomes: beside.as_ref().map(|(_, (outcomes, _))| outcomes.clone()),
            inbox,
            watchers,
            vitals: Arc::default(),
            commits: Arc::default(),
            fail_next: Arc::default(),
        };
        let of_outcomes = beside.map(|(db, (_, receiver))| {
            let setup = Setup { db, ..setup.clone() };
            tokio::spawn(Engine::of_outcomes(setup, &writer).run(receiver))
        });
        let engine = Engine::new(setup, &writer).await?.run(receiver);
        let all = async move {
            engine.await;
            if let Some(outcomes) = of_outcomes {
                // It has told its panics to those who waited.
                let _ = outcomes.await;
            }
        };
        Ok((writer, tokio::spawn(all)))
    }

    /// Resolves after the commit that holds all of it. `of`: whose it is, as for all that is handed in; [`Error::Moved`] if another
    /// node has that workspace.
    #[boxed]
    pub async fn commit(&self, of: Of, commit: Commit) -> Result<()> {
        self.hand_in(of, Work::Commit(Box::new(commit))).await
    }

    /// The same for outcomes of deliveries, if there is nothing else in it: neither an event nor a change of their endpoint.
    #[boxed]
    pub async fn commit_outcomes(&self, of: Of, commit: Commit) -> Result<()> {
        let inbox = self.outcomes.as_ref().unwrap_or(&self.inbox);
        Self::hand_in_to(inbox, of, Work::Commit(Box::new(commit))).await
    }

    /// Runs a job in a transaction; resolves after its commit.
    #[boxed]
    pub async fn job(&self, of: Of, job: Job) -> Result<()> {
        self.hand_in(of, Work::Job(job)).await
    }

    /// Runs `job` in a transaction and answers its value after the commit.
    pub async fn run<T, F>(&self, of: impl Into<Of>, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'a> Fn(&'a Transaction) -> BoxFuture<'a, Result<(T, Commit)>> + Send + Sync + 'static,
    {
        let slot: Arc<Mutex<Option<T>>> = Arc::default();
        let (filled, job) = (slot.clone(), Arc::new(job));
        self.job(
            of.into(),
            Box::new(move |transaction| {
                let (filled, job) = (filled.clone(), job.clone());
                Box::pin(async move {
                    let (value, commit) = job(transaction).await?;
                    *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                    Ok(commit)
                })
            }),
        )
        .await?;
        let value = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        value.ok_or_else(|| Error::Internal("a job was committed without a value".into()))
    }

    /// Runs a job that leaves no actor anything to do, as a note of the time does: [`Writer::commits`] does not count it.
    pub async fn upkeep<F>(&self, of: impl Into<Of>, job: F) -> Result<()>
    where
        F: for<'a> Fn(&'a Transaction) -> BoxFuture<'a, Result<()>> + Send + Sync + 'static,
    {
        let job: Job = Box::new(move |transaction| {
            let written = job(transaction);
            Box::pin(async move {
                written.await?;
                Ok(Commit::default())
            })
        });
        self.hand_in(of.into(), Work::Upkeep(job)).await
    }

    /// Takes so many workspaces that no node has, for this one. They are held from then on, and not served before they
    /// [arrive](crate::leases::Leases::arrived).
    pub async fn take(&self, most: u64) -> Result<()> {
        self.hand_in(Of::Anybody, Work::Leases(Change::Take(most))).await
    }

    /// Takes this one, if no node has it.
    pub async fn take_one(&self, tenant: TenantId) -> Result<()> {
        self.hand_in(Of::Anybody, Work::Leases(Change::TakeOne(tenant))).await
    }

    /// Holds all that are this node's by the rows.
    pub async fn recall(&self) -> Result<()> {
        self.hand_in(Of::Anybody, Work::Leases(Change::Recall)).await
    }

    /// Gives these up, so that another node can take them; behind all that was handed in for them.
    pub async fn give_up(&self, tenants: Vec<TenantId>, wanted_by: Option<NodeId>) -> Result<()> {
        self.commit_nothing().await?;
        self.hand_in(Of::Anybody, Work::Leases(Change::GiveUp { tenants, wanted_by }))
            .await
    }

    /// Counts all that may have left somebody something to do: commits, and attempts that failed, for they may stand all the same.
    /// While it stands still, the rows say what they said before, but for what only waits for its time.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// Resolves when all that was handed in before has been decided.
    #[boxed]
    pub async fn commit_nothing(&self) -> Result<()> {
        for inbox in self.inboxes() {
            let nothing: Job = Box::new(|_| Box::pin(async { Ok(Commit::default()) }));
            Self::hand_in_to(inbox, Of::Anybody, Work::Job(nothing)).await?;
        }
        Ok(())
    }

    fn inboxes(&self) -> impl Iterator<Item = &Inbox> {
        self.outcomes.iter().chain([&self.inbox])
    }

    async fn hand_in(&self, of: Of, work: Work) -> Result<()> {
        Self::hand_in_to(&self.inbox, of, work).await
    }

    async fn hand_in_to(inbox: &Inbox, of: Of, work: Work) -> Result<()> {
        let inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let stopped = || Error::Unavailable("the service is shutting down".into());
        let (done, committed) = oneshot::channel();
        inbox
            .ok_or_else(stopped)?
            .send(Item {
                of,
                work,
                handed_in: Instant::now(),
                done,
            })
            .await
            .map_err(|_| stopped())?;
        committed
            .await
            .map_err(|_| Error::Unavailable("the write was given up".into()))?
    }

    /// Every event committed from now on.
    pub fn watch(&self) -> broadcast::Receiver<Committed> {
        self.watchers.subscribe()
    }

    /// Do commits stand?
    pub fn health(&self) -> Health {
        self.vitals.health()
    }

    /// Takes nothing more; what is queued is still written.
    pub fn close(&self) {
        for inbox in self.inboxes() {
            inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    /// Test switch: the next commits fail as if the database were busy.
    pub fn fail_next(&self, commits: u32) {
        self.fail_next.store(commits, Ordering::SeqCst);
    }

    /// How many of them are still to fail.
    pub fn still_to_fail(&self) -> u32 {
        self.fail_next.load(Ordering::SeqCst)
    }
}
