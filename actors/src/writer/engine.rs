//! The writer's loop: batches, their transactions, and what follows a commit.
use super::{
    BATCH, Change, Item, Setup, Work, Writer, batch::Batch, health::Vitals, places::Places,
    subscriptions::Subscriptions,
};
use crate::leases::Since;
use entities::{
    Error, Result, boxed,
    changes::{Applied, Changes, Guard},
    connection::Transaction,
    event as stored,
    ids::TenantId,
    meta,
    workspace_lease::{self, Taken},
};
use futures_util::FutureExt;
use rules::commit::{Commit, Committed};
use runtime::supervise::panic_text;
use std::{
    collections::{HashMap, HashSet},
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{broadcast, mpsc};

/// While commits fail, one is tried so often.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// After a failure nobody who has waited longer waits for another try. Together with one more transaction's limit this is
/// what a write waits at the most.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Engine {
    setup: Setup,
    watchers: broadcast::Sender<Committed>,
    subscriptions: Arc<Subscriptions>,
    places: Places,
    /// Nothing that it writes is an event, or has a place among all commits.
    of_outcomes: bool,
    /// A commit failed and may have reached the disk all the same, or may yet: before the next one the rest of it is ended,
    /// and the order is read anew.
    in_doubt: bool,
    vitals: Arc<Vitals>,
    commits: Arc<AtomicU64>,
    fail_next: Arc<AtomicU32>,
}

impl Engine {
    #[boxed]
    pub async fn new(setup: Setup, door: &Writer) -> Result<Self> {
        let share = setup.fence.leases().share();
        let subscriptions = Subscriptions::load(&setup.db.read, share).await?;
        Ok(Engine {
            places: Places::at_start(&setup.db.read, share).await?,
            of_outcomes: false,
            subscriptions: Arc::new(subscriptions),
            vitals: door.vitals.clone(),
            ..Self::of_outcomes(setup, door)
        })
    }

    /// For outcomes of deliveries alone, beside the one for all else.
    pub fn of_outcomes(setup: Setup, door: &Writer) -> Self {
        Engine {
            places: Places::none(),
            of_outcomes: true,
            subscriptions: Arc::default(),
            watchers: door.watchers.clone(),
            in_doubt: false,
            // Whether commits stand is said by the other.
            vitals: Arc::default(),
            commits: door.commits.clone(),
            fail_next: door.fail_next.clone(),
            setup,
        }
    }

    #[boxed]
    pub async fn run(mut self, mut inbox: mpsc::Receiver<Item>) {
        let mut queue = Vec::with_capacity(BATCH);
        loop {
            let received = inbox.recv_many(&mut queue, BATCH);
            if self.vitals.is_failing() {
                match tokio::time::timeout(PROBE_EVERY, received).await {
                    Ok(0) => return,
                    Ok(_) => {}
                    // Nobody writes, because we are said not to be ready: so we find out when it is over.
                    Err(_) => drop(self.transact(&mut []).await),
                }
            } else if received.await == 0 {
                return;
            }
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
                        Work::Job(_) | Work::Upkeep(_) | Work::Leases(_) => false,
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
                    self.count();
                    self.failed(&Error::Internal("a batch of writes panicked".into()));
                }
            }
        }
    }

    async fn write(&mut self, mut batch: Vec<Item>) {
        // Between two batches workspaces come and go, and never within one.
        for moved in batch.extract_if(.., |item| !self.setup.fence.leases().holds(item.of)) {
            let _ = moved.done.send(Err(Error::Moved));
        }
        if batch.is_empty() {
            return;
        }
        if self.in_doubt {
            // They have waited behind what failed: with one more that takes as long they would wait longer than is promised.
            for late in batch.extract_if(.., |item| item.handed_in.elapsed() > PATIENCE) {
                let _ = late.done.send(Err(given_up()));
            }
            if batch.is_empty() {
                return;
            }
        }
        metrics::histogram!("callboard_writer_batch_items").record(batch.len() as f64);
        let together = self.transact(&mut batch).await;
        match together {
            Err(error) if batch.len() > 1 && !matches!(error, Error::Unavailable(_)) => {
                // One of them spoils it: each on its own, so that only that one fails.
                for mut item in batch {
                    let alone = if self.in_doubt && item.handed_in.elapsed() > PATIENCE {
                        Err(given_up())
                    } else {
                        self.transact(std::slice::from_mut(&mut item)).await
                    };
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
    async fn transact(&mut self, items: &mut [Item]) -> Result<()> {
        if !items.is_empty() && self.fail_next.load(Ordering::SeqCst) > 0 {
            self.fail_next.fetch_sub(1, Ordering::SeqCst);
            let error = Error::Unavailable("database is locked (test switch)".into());
            self.failed(&error);
            return Err(error);
        }
        // After doubt something older may have landed with it.
        let is_upkeep = !self.in_doubt && matches!(&*items, [item] if matches!(item.work, Work::Upkeep(_)));
        self.vitals.begun();
        // A database that is cut off without a word must not keep everybody waiting.
        let limit = self.setup.limit;
        let outcome = match tokio::time::timeout(limit, self.attempt(items)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Unavailable(format!("no commit within {limit:?}"))),
        };
        if !(is_upkeep && outcome.is_ok()) {
            self.count();
        }
        match &outcome {
            Ok(()) => {
                self.vitals.stood();
                self.say_failing(false);
            }
            Err(
                error @ (Error::Unavailable(_)
                | Error::Fenced
                | Error::Collision(_)
                | Error::Internal(_)
                | Error::Corrupt { .. }),
            ) => {
                self.in_doubt = true;
                self.failed(error);
                tracing::warn!(%error, items = items.len(), "a transaction failed");
            }
            // A job, or a rule of the database, that said no before the commit.
            Err(_) => self.vitals.refused(),
        }
        outcome
    }

    fn failed(&self, error: &Error) {
        self.vitals.failed(error);
        self.say_failing(true);
    }

    /// Of outcomes nobody speaks: what fails for all fails for the other one too.
    fn say_failing(&self, failing: bool) {
        if !self.of_outcomes {
            metrics::gauge!("callboard_commits_failing").set(f64::from(u8::from(failing)));
        }
    }

    /// Before anybody is told what became of it: who looks at the rows then knows that they may have changed.
    fn count(&self) {
        self.commits.fetch_add(1, Ordering::SeqCst);
    }

    async fn attempt(&mut self, items: &mut [Item]) -> Result<()> {
        if self.in_doubt {
            self.setup.db.renew_writer().await?;
        }
        let transaction = self.setup.db.begin().await?;
        self.setup.fence.assert(&transaction).await?;
        // What is read or reserved here counts once this transaction stands: else it is rolled back.
        let (mut places, mut subscriptions) = (self.places, self.subscriptions.clone());
        if self.in_doubt {
            // Inside the transaction: nothing can land between this look and what is written by it.
            (places, subscriptions) = self.renewed(&transaction).await?;
        }
        if let [
            Item {
                work: Work::Leases(change),
                ..
            },
        ] = &*items
        {
            return self.change(transaction, change.clone()).await;
        }
        if !self.of_outcomes {
            places.make_room(&transaction).await?;
        }
        let mut draught = Batch::new(places, subscriptions);
        let mut of_jobs = Vec::new();
        for item in items.iter_mut() {
            match &mut item.work {
                Work::Leases(_) => {}
                Work::Commit(commit) => draught.add(&self.setup, commit),
                Work::Job(job) | Work::Upkeep(job) => {
                    let mut commit = job(&transaction).await?;
                    draught.add(&self.setup, &mut commit);
                    of_jobs.push(commit.changes);
                }
            }
        }
        let handed_in = items.iter().filter_map(|item| match &item.work {
            Work::Commit(commit) => Some(&commit.changes),
            Work::Job(_) | Work::Upkeep(_) | Work::Leases(_) => None,
        });
        let mut all: Vec<&Changes> = handed_in.chain(&of_jobs).collect();
        let booked = draught.book(&self.setup, &transaction, &all).await?;
        all.push(&booked);
        let chained = draught.chain(&self.setup, &transaction, &all).await?;
        all.push(&chained);
        let times = self.setup.clock.times();
        draught.places.check()?;
        let made = std::mem::take(&mut draught.made);
        all.push(&made);
        let applied = Changes::apply_all(&all, &transaction, times).await?;
        if items.is_empty() {
            // A commit of nothing would stand on a full disk too.
            meta::set(&transaction, meta::LAST_PROBE, &self.setup.clock.now().to_string()).await?;
        }
        transaction.commit().await?;
        self.in_doubt = false;
        self.committed(draught, applied);
        Ok(())
    }

    /// Reads anew what others may have changed: places, and who receives what.
    async fn renewed(&self, db: &Transaction) -> Result<(Places, Arc<Subscriptions>)> {
        if self.of_outcomes {
            return Ok((self.places, self.subscriptions.clone()));
        }
        let share = self.setup.fence.leases().share();
        let places = Places::renewed(db, share).await?;
        Ok((places, Arc::new(Subscriptions::load(db, share).await?)))
    }

    /// Workspaces come or go.
    async fn change(&mut self, db: Transaction, change: Change) -> Result<()> {
        let leases = self.setup.fence.leases().clone();
        let Some(node) = leases.node() else {
            return Err(Error::Internal("one process alone has every workspace".into()));
        };
        let taken = match change {
            Change::Take(most) => workspace_lease::take(&db, node, most).await?,
            Change::TakeOne(tenant) => workspace_lease::take_one(&db, node, tenant).await?,
            Change::Recall => {
                let all = workspace_lease::of(&db, node).await?;
                let unknown = all.into_iter().filter(|taken| !leases.holds(taken.tenant_id));
                unknown.collect()
            }
            Change::GiveUp { tenants, wanted_by } => {
                workspace_lease::give_up(&db, node, &tenants, wanted_by).await?;
                // Should it fail in doubt, nothing is written for them any more; a restart finds whose they are.
                leases.gave_up(&tenants);
                return Ok(db.commit().await?);
            }
        };
        if taken.is_empty() {
            return Ok(db.commit().await?);
        }
        // Whoever had them has written since this node last looked.
        let (places, subscriptions) = self.renewed(&db).await?;
        let tenants: Vec<TenantId> = taken.iter().map(|taken| taken.tenant_id).collect();
        if let Some(newest) = stored::newest_of(&db, &tenants).await? {
            self.setup.ids.start_after(newest.0);
        }
        db.commit().await?;
        (self.places, self.subscriptions, self.in_doubt) = (places, subscriptions, false);
        let taken_at = self.setup.clock.now();
        for Taken {
            tenant_id,
            is_new,
            last_seen_at: last_seen,
        } in taken
        {
            leases.took(tenant_id, is_new, Since { last_seen, taken_at });
        }
        Ok(())
    }

    fn committed(&mut self, draught: Batch, applied: Applied) {
        self.subscriptions = draught.subscriptions;
        self.places = draught.places;
        metrics::counter!("callboard_events_total").increment(draught.events.len() as u64);
        metrics::counter!("callboard_deliveries_begun_total").increment(draught.deliveries.len() as u64);
        for event in draught.events {
            // Nobody may be watching.
            let _ = self.watchers.send(event);
        }
        let mut by_endpoint: HashMap<_, Vec<_>> = HashMap::new();
        for (endpoint, delivery, event) in draught.deliveries {
            by_endpoint.entry(endpoint).or_default().push((delivery, event));
        }
        for (endpoint, new) in by_endpoint {
            self.setup.after.deliveries(endpoint, new);
        }
        for campaign in applied.drained {
            self.setup.after.drained(campaign);
        }
        for tenant in draught.credited {
            self.setup.after.credited(tenant);
        }
    }
}

fn given_up() -> Error {
    Error::Unavailable("commits have failed for a while".into())
}

/// Does it depend on a campaign's counts? Then it is written alone, after all that count.
fn drains(commit: &Commit) -> bool {
    commit
        .changes
        .guards
        .iter()
        .any(|guard| matches!(guard, Guard::Drained { .. } | Guard::Counted { .. }))
}
