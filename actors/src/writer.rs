//! Group commit: the one writer joins what many actors hand in at a moment into one transaction with multi-row statements,
//! so that they share one fsync. No time is waited for company: a batch is what queued up during the commit before.
//!
//! Events get their id, time and place in the order here, and their deliveries with them, in the same transaction.
use crate::{
    at_rest,
    clock::Clock,
    credits::{Terms, posting::Booking},
    event::{self, Draft},
    ids::Ids,
    keyring::Keyring,
    supervise::panic_text,
};
use entities::{
    Error, Result, campaign_move,
    changes::{Applied, Changes, Guard},
    db::Db,
    delivery::{self, Origin},
    event as stored,
    ids::{CampaignId, EndpointId, Owned, TenantId},
    values::Env,
    webhook_endpoint as endpoint,
};
use futures_util::{FutureExt, future::BoxFuture};
use sea_orm::DatabaseTransaction;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::sync::{broadcast, mpsc, oneshot};

/// What one actor wants written, all or nothing.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    pub changes: Changes,
    pub events: Vec<Draft>,
}

impl Commit {
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.changes.is_empty()
    }
}

/// A write that must first look: runs inside a transaction of its own and answers what else to write in it.
/// `Fn`, because it may have to run again.
pub type Job = Box<dyn for<'a> Fn(&'a DatabaseTransaction) -> BoxFuture<'a, Result<Commit>> + Send + Sync>;

enum Work {
    Commit(Box<Commit>),
    Job(Job),
}

struct Item {
    work: Work,
    done: oneshot::Sender<Result<()>>,
}

/// An event that has just been committed, for those who watch.
pub type Committed = Arc<stored::Model>;

/// Told after each commit, on the writer's thread: must be quick.
pub trait AfterCommit: Send + Sync {
    fn deliveries(&self, endpoint: Owned<EndpointId>, new: Vec<(delivery::Model, Committed)>);
    fn drained(&self, campaign: Owned<CampaignId>);
    /// What the tenant may spend is no longer what it was.
    fn credited(&self, tenant: TenantId);
}

/// The door to the writer. Cloning is cheap.
#[derive(Clone)]
pub struct Writer {
    /// `None` once the service has stopped.
    inbox: Arc<Mutex<Option<mpsc::Sender<Item>>>>,
    watchers: broadcast::Sender<Committed>,
    fail_next: Arc<AtomicU32>,
}

/// A transaction that takes longer is given up.
const LIMIT: Duration = Duration::from_secs(30);
/// Items in one batch, and items that may wait; beyond that the senders wait.
const BATCH: usize = 1024;
const INBOX: usize = 8192;
/// Committed events a slow watcher may lag behind before it must read the rest from the database.
const WATCH_WINDOW: usize = 4096;

impl Writer {
    /// Starts the writer's loop on the current runtime. It ends after [`Writer::close`], when all is written.
    pub async fn start(
        db: Db,
        clock: Clock,
        ids: Arc<Ids>,
        terms: Terms,
        keyring: Arc<Keyring>,
        after: Arc<dyn AfterCommit>,
    ) -> Result<(Self, tokio::task::JoinHandle<()>)> {
        let (sender, receiver) = mpsc::channel(INBOX);
        let (watchers, _) = broadcast::channel(WATCH_WINDOW);
        let fail_next = Arc::new(AtomicU32::new(0));
        let next_seq = next_seq(&db).await?;
        let subscriptions = Arc::new(Subscriptions::load(&db).await?);
        let engine = Engine {
            db,
            clock,
            ids,
            terms,
            keyring,
            after,
            watchers: watchers.clone(),
            subscriptions,
            next_seq,
            in_doubt: false,
            fail_next: fail_next.clone(),
        };
        let handle = tokio::spawn(engine.run(receiver));
        Ok((
            Writer {
                inbox: Arc::new(Mutex::new(Some(sender))),
                watchers,
                fail_next,
            },
            handle,
        ))
    }

    /// Resolves after the commit that holds all of it.
    pub async fn commit(&self, commit: Commit) -> Result<()> {
        self.hand_in(Work::Commit(Box::new(commit))).await
    }

    /// Runs a job in a transaction; resolves after its commit.
    pub async fn job(&self, job: Job) -> Result<()> {
        self.hand_in(Work::Job(job)).await
    }

    /// Runs `job` in a transaction and answers its value after the commit.
    pub async fn run<T, F>(&self, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'a> Fn(&'a DatabaseTransaction) -> BoxFuture<'a, Result<(T, Commit)>> + Send + Sync + 'static,
    {
        let slot: Arc<Mutex<Option<T>>> = Arc::default();
        let (filled, job) = (slot.clone(), Arc::new(job));
        self.job(Box::new(move |transaction| {
            let (filled, job) = (filled.clone(), job.clone());
            Box::pin(async move {
                let (value, commit) = job(transaction).await?;
                *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                Ok(commit)
            })
        }))
        .await?;
        let value = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        value.ok_or_else(|| Error::Internal("a job was committed without a value".into()))
    }

    async fn hand_in(&self, work: Work) -> Result<()> {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let stopped = || Error::Unavailable("the service is shutting down".into());
        let (done, committed) = oneshot::channel();
        inbox
            .ok_or_else(stopped)?
            .send(Item { work, done })
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

    /// Takes nothing more; what is queued is still written.
    pub fn close(&self) {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Test switch: the next commits fail as if the database were busy.
    pub fn fail_next(&self, commits: u32) {
        self.fail_next.store(commits, Ordering::SeqCst);
    }
}

/// Who receives what: kept in step by the writer, which alone changes endpoints.
#[derive(Clone, Default)]
struct Subscriptions(HashMap<(TenantId, Env), Vec<Receiver>>);

/// An endpoint for which deliveries are made.
#[derive(Clone)]
struct Receiver {
    key: Owned<EndpointId>,
    event_types: Arc<endpoint::Patterns>,
    /// Its deliveries are held.
    suspended: bool,
}

impl Receiver {
    fn wants(&self, event: &stored::Model) -> bool {
        // That an endpoint was suspended is told to the others.
        let own_notice = event.event_type == NOTICE && event.subject_id == self.key.id.0;
        self.event_types.matches(&event.event_type) && !own_notice
    }
}

const NOTICE: &str = "webhook.endpoint_disabled_notice";

impl Subscriptions {
    async fn load(db: &Db) -> Result<Self> {
        const PAGE: u64 = 500;
        let (mut all, mut after) = (Subscriptions::default(), None);
        loop {
            let page = endpoint::receiving(&db.read, after, PAGE).await?;
            after = page.last().map(|row| row.id);
            let ends = (page.len() as u64) < PAGE;
            for row in page {
                all.add(row);
            }
            if ends {
                return Ok(all);
            }
        }
    }

    fn apply(&mut self, row: &endpoint::Model) {
        let of_tenant = self.0.entry((row.tenant_id, row.env)).or_default();
        of_tenant.retain(|known| known.key.id != row.id);
        if row.deleted_at.is_none() {
            self.add(row.subscriber());
        }
    }

    fn add(&mut self, row: endpoint::Subscriber) {
        let suspended = match row.status {
            endpoint::Status::Active => false,
            endpoint::Status::Suspended => true,
            endpoint::Status::Disabled => return,
        };
        self.0.entry((row.tenant_id, row.env)).or_default().push(Receiver {
            key: Owned::new(row.tenant_id, row.env, row.id),
            event_types: Arc::new(row.event_types),
            suspended,
        });
    }
}

struct Engine {
    db: Db,
    clock: Clock,
    ids: Arc<Ids>,
    /// What credits are booked by.
    terms: Terms,
    keyring: Arc<Keyring>,
    after: Arc<dyn AfterCommit>,
    watchers: broadcast::Sender<Committed>,
    subscriptions: Arc<Subscriptions>,
    next_seq: i64,
    /// A commit failed and may have reached the disk all the same: ask the database before the next one.
    in_doubt: bool,
    fail_next: Arc<AtomicU32>,
}

/// A batch on its way: what is written, and what follows once it is.
struct Draught {
    subscriptions: Arc<Subscriptions>,
    next_seq: i64,
    events: Vec<Committed>,
    deliveries: Vec<(Owned<EndpointId>, delivery::Model, Committed)>,
    /// Tenants that may spend more, or less, than before.
    credited: Vec<TenantId>,
}

impl Engine {
    async fn run(mut self, mut inbox: mpsc::Receiver<Item>) {
        let mut queue = Vec::with_capacity(BATCH);
        while inbox.recv_many(&mut queue, BATCH).await > 0 {
            let mut items = queue.drain(..).peekable();
            while let Some(first) = items.next() {
                let mut batch = vec![first];
                if let Work::Commit(commit) = &batch[0].work {
                    let mut written: HashSet<_> = commit.changes.written().into_iter().collect();
                    // The batch ends before a change that depends on a row the batch has written already.
                    while let Some(next) = items.next_if(|item| match &item.work {
                        Work::Commit(commit) => {
                            !commit
                                .changes
                                .touched()
                                .iter()
                                .any(|key| key.0 != "tally" && written.contains(key))
                                && !drains(commit)
                        }
                        Work::Job(_) => false,
                    }) {
                        if let Work::Commit(commit) = &next.work {
                            written.extend(commit.changes.written());
                        }
                        batch.push(next);
                    }
                }
                // A panic costs its batch, whose senders are told, not the writer.
                if let Err(panic) = AssertUnwindSafe(self.write(batch)).catch_unwind().await {
                    tracing::error!(panic = panic_text(&*panic), "a batch of writes panicked");
                    self.in_doubt = true;
                }
            }
        }
    }

    async fn write(&mut self, batch: Vec<Item>) {
        metrics::histogram!("callboard_writer_batch_items").record(batch.len() as f64);
        let together = self.transact(&batch).await;
        match together {
            Err(error) if batch.len() > 1 && !matches!(error, Error::Unavailable(_)) => {
                // One of them spoils it: each on its own, so that only that one fails.
                for item in batch {
                    let alone = self.transact(std::slice::from_ref(&item)).await;
                    let _ = item.done.send(alone);
                }
            }
            outcome => {
                for item in batch {
                    let _ = item.done.send(outcome.clone());
                }
            }
        }
    }

    /// One transaction with all of `items`, and what follows its commit.
    async fn transact(&mut self, items: &[Item]) -> Result<()> {
        if self.fail_next.load(Ordering::SeqCst) > 0 {
            self.fail_next.fetch_sub(1, Ordering::SeqCst);
            return Err(Error::Unavailable("database is locked (test switch)".into()));
        }
        if self.in_doubt {
            self.db.renew_writer().await?;
            self.next_seq = next_seq(&self.db).await?;
            self.subscriptions = Arc::new(Subscriptions::load(&self.db).await?);
            self.in_doubt = false;
        }
        // A database that is cut off without a word must not keep everybody waiting.
        let outcome = match tokio::time::timeout(LIMIT, self.attempt(items)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Unavailable(format!(
                "no commit within {} seconds",
                LIMIT.as_secs()
            ))),
        };
        // Other errors are a job, or a rule of the database, that said no before the commit.
        if let Err(error @ (Error::Unavailable(_) | Error::Internal(_) | Error::Corrupt { .. })) = &outcome {
            self.in_doubt = true;
            tracing::warn!(%error, items = items.len(), "a transaction failed");
        }
        outcome
    }

    async fn attempt(&mut self, items: &[Item]) -> Result<()> {
        let transaction = self.db.begin().await?;
        let mut draught = Draught {
            subscriptions: self.subscriptions.clone(),
            next_seq: self.next_seq,
            events: Vec::new(),
            deliveries: Vec::new(),
            credited: Vec::new(),
        };
        let mut changes = Changes::default();
        for item in items {
            match &item.work {
                Work::Commit(commit) => self.add(&mut changes, &mut draught, &commit.changes, &commit.events),
                Work::Job(job) => {
                    let commit = job(&transaction).await?;
                    self.add(&mut changes, &mut draught, &commit.changes, &commit.events);
                }
            }
        }
        self.book(&transaction, &mut changes, &mut draught).await?;
        let applied = changes.apply(&transaction, self.clock.times()).await?;
        transaction.commit().await?;
        self.committed(draught, applied);
        Ok(())
    }

    /// Books what the batch moves, after all that moves it.
    async fn book(&self, db: &DatabaseTransaction, changes: &mut Changes, draught: &mut Draught) -> Result<()> {
        let movements = std::mem::take(&mut changes.movements);
        if movements.is_empty() {
            return Ok(());
        }
        let booking = Booking {
            terms: &self.terms,
            ids: &self.ids,
            now: self.clock.now(),
            seq: draught.next_seq,
        };
        draught.next_seq += 1;
        let booked = booking.book(db, &movements).await?;
        self.add(changes, draught, &booked.changes, &booked.events);
        draught.credited.extend(booked.turned);
        Ok(())
    }

    fn add(&self, all: &mut Changes, draught: &mut Draught, changes: &Changes, events: &[Draft]) {
        for row in &changes.endpoints {
            Arc::make_mut(&mut draught.subscriptions).apply(row);
        }
        all.merge(self.placed(changes.clone(), draught));
        for draft in events {
            let id = draft.id.unwrap_or_else(|| self.ids.next());
            let now = self.clock.now();
            let event = Arc::new(stored::Model {
                seq: draught.next_seq,
                id,
                tenant_id: draft.tenant_id,
                env: draft.env,
                event_type: draft.event_type.into(),
                subject_id: draft.subject_id,
                created_at: now,
                body: event::envelope(id, draft, now),
            });
            draught.next_seq += 1;
            all.events.push(at_rest::sealed(&self.keyring, &event));
            // A test goes to the endpoint that was named, by the request that asked for it.
            let receivers = if draft.event_type == "webhook.test" {
                None
            } else {
                draught.subscriptions.0.get(&(draft.tenant_id, draft.env))
            };
            for receiver in receivers
                .into_iter()
                .flatten()
                .filter(|receiver| receiver.wants(&event))
            {
                let delivery = delivery::Model::new(self.ids.next(), receiver.key.id, &event, Origin::Live, now);
                if receiver.suspended {
                    all.deliveries.push(delivery::Model {
                        status: delivery::Status::Held,
                        next_attempt_at: None,
                        ..delivery
                    });
                } else {
                    all.deliveries.push(delivery.clone());
                    draught.deliveries.push((receiver.key, delivery, event.clone()));
                }
            }
            draught.events.push(event);
        }
    }

    /// Gives the facts whose order counts, and which no event tells, their place among all commits.
    fn placed(&self, mut changes: Changes, draught: &mut Draught) -> Changes {
        if changes.dials.is_empty()
            && changes.message_sends.is_empty()
            && changes.dnc.is_empty()
            && changes.campaigns.is_empty()
        {
            return changes;
        }
        let seq = draught.next_seq;
        draught.next_seq += 1;
        for dial in &mut changes.dials {
            dial.seq = seq;
        }
        for send in &mut changes.message_sends {
            send.seq = seq;
        }
        for entry in &mut changes.dnc {
            match entry.removed_at {
                // What it bars, it bars from here on.
                None => entry.added_seq = seq,
                Some(_) => entry.removed_seq = Some(seq),
            }
        }
        let now = self.clock.now();
        // A campaign whose draft and start are one commit has moved twice; the last is what counts.
        let moves: BTreeMap<_, _> = changes
            .campaigns
            .iter()
            .map(|row| (row.id, campaign_move::Model::of(row, seq, now)))
            .collect();
        changes.campaign_moves.extend(moves.into_values());
        changes
    }

    fn committed(&mut self, draught: Draught, applied: Applied) {
        self.subscriptions = draught.subscriptions;
        self.next_seq = draught.next_seq;
        metrics::counter!("callboard_events_total").increment(draught.events.len() as u64);
        for event in draught.events {
            // Nobody may be watching.
            let _ = self.watchers.send(event);
        }
        let mut by_endpoint: HashMap<_, Vec<_>> = HashMap::new();
        for (endpoint, delivery, event) in draught.deliveries {
            by_endpoint.entry(endpoint).or_default().push((delivery, event));
        }
        for (endpoint, new) in by_endpoint {
            self.after.deliveries(endpoint, new);
        }
        for campaign in applied.drained {
            self.after.drained(campaign);
        }
        for tenant in draught.credited {
            self.after.credited(tenant);
        }
    }
}

/// What follows the last place that anything was given.
async fn next_seq(db: &Db) -> Result<i64> {
    let last = [
        stored::last_seq(&db.read).await?,
        entities::dnc::last_seq(&db.read).await?,
        campaign_move::last_seq(&db.read).await?,
        entities::dial::last_seq_of_open(&db.read).await?,
        entities::ledger::last_seq(&db.read).await?,
        entities::message_send::last_seq(&db.read).await?,
    ];
    Ok(last.into_iter().max().unwrap_or(0) + 1)
}

/// Does it depend on a campaign's counts? Then it is written alone, after all that count.
fn drains(commit: &Commit) -> bool {
    commit
        .changes
        .guards
        .iter()
        .any(|guard| matches!(guard, Guard::Drained { .. } | Guard::Counted { .. }))
}
