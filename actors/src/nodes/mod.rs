//! What a node does to be one of several: it says that it lives, ends those that do not, takes workspaces that nobody has, and
//! gives some to whoever has fewer.
//!
//! | What | When |
//! |---|---|
//! | It says that it lives, and what it carries | each second, whatever else it is at |
//! | It ends a node that has been silent for 4 s | if it has itself been heard for as long: a database that was away for all is no reason |
//! | It takes workspaces that nobody has | its part of them, by what each node carries ([`balance`]), and those that somebody asks for |
//! | It gives workspaces away in which nothing is live | when it carries more than the others, or leaves |
//! | It acts for a workspace | a second after it was taken: whoever had it does nothing more by then |
//!
//! A node that finds out that it was ended ends at once: its supervisor starts it again, as a new one.
mod arriving;
mod giving;
#[cfg(test)]
mod simulation_tests;

use crate::{
    deps::Deps,
    fence::handed_over,
    leases::{Leases, Of},
    tree::Tree,
    trunk::elsewhere,
};
use entities::{
    Error, Result, boxed,
    db::Db,
    delivery, generation,
    ids::{NodeId, TenantId, TrunkId},
    mail,
    node::{self, LIFE_MS, Load},
    node_end, workspace_lease,
};
use rules::balance::{self, Peer, Plan, View};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex as Lock, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Mutex, Notify};

const TICK: Duration = Duration::from_secs(1);
/// A question to the database that takes longer is asked again at the next tick.
const PATIENCE: Duration = Duration::from_secs(3);
/// Looks between two at what is counted slowly.
const SELDOM: u32 = 10;
/// Looks in which what was given shows in what the others carry.
const SETTLING: u32 = 3;
/// Deliveries that are counted, at most.
const COUNTED: u64 = 10_000;
/// One commit takes so many workspaces, at most.
const AT_ONCE: u64 = 2_000;

/// Keeps a node among the others.
pub struct Keeper {
    deps: Deps,
    tree: Arc<Tree>,
    id: NodeId,
    /// What the renewals know, which never wait for anything else.
    pulse: Lock<Pulse>,
    /// One look at a time.
    looks: Mutex<Looks>,
    /// One arrival at a time.
    arrival: Mutex<()>,
    /// Workspaces that requests wait for.
    wanted: Lock<HashSet<TenantId>>,
    asked: Notify,
    handed_over: AtomicBool,
}

#[derive(Default)]
struct Pulse {
    /// Since when each renewal has stood.
    steady_since: Option<Instant>,
    renewed_at: Option<Instant>,
    draining: bool,
    deliveries_waiting: i64,
}

#[derive(Default)]
struct Looks {
    count: u32,
    free_in_a_row: u32,
    /// Looks until something may be given again.
    settling: u32,
    /// Workspaces in which something went on when they were to leave, and until when they are left alone.
    busy: HashMap<TenantId, Instant>,
    /// Trunks that other nodes speak for.
    trunks: HashSet<TrunkId>,
}

impl Keeper {
    /// `None`: this process serves alone.
    pub fn new(deps: &Deps, tree: &Arc<Tree>) -> Option<Arc<Self>> {
        let id = deps.fence.leases().node()?;
        Some(Arc::new(Keeper {
            deps: deps.clone(),
            tree: tree.clone(),
            id,
            pulse: Lock::default(),
            looks: Mutex::default(),
            arrival: Mutex::default(),
            wanted: Lock::default(),
            asked: Notify::new(),
            handed_over: AtomicBool::new(false),
        }))
    }

    fn leases(&self) -> &Arc<Leases> {
        self.deps.fence.leases()
    }

    fn pulse(&self) -> MutexGuard<'_, Pulse> {
        self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Renews, and takes the first workspaces; then does so each second, until the service ends.
    pub async fn start(self: &Arc<Self>) {
        let (renewing, looking, taking) = (self.clone(), self.clone(), self.clone());
        self.renew().await;
        self.deps.runtime.spawn(async move {
            // Also while the service ends: until it has given up the last workspace the others must know that it lives.
            while renewing.renew().await {
                real_time(TICK).await;
            }
        });
        self.tick().await;
        self.deps.runtime.spawn(async move {
            while !looking.handed_over.load(SeqCst) {
                real_time(TICK).await;
                looking.tick().await;
            }
        });
        self.deps.runtime.spawn(async move {
            while !taking.handed_over.load(SeqCst) {
                taking.asked.notified().await;
                taking.take_wanted().await;
            }
        });
    }

    /// One look. What fails is tried again at the next.
    async fn tick(&self) {
        if let Err(error) = self.look().await
            && !matches!(error, Error::Fenced)
        {
            tracing::warn!(%error, "the nodes could not be looked at; trying again in a second");
        }
    }

    /// Answers whether it may still live.
    async fn renew(&self) -> bool {
        let load = Load {
            workspaces: self.leases().count() as i64,
            live_calls: self.deps.calls.count() as i64,
            deliveries_waiting: self.pulse().deliveries_waiting,
        };
        metrics::gauge!("callboard_workspaces").set(load.workspaces as f64);
        let renewing = node::renew(self.deps.db.aside(), self.id, self.deps.clock.now(), load);
        let renewed = tokio::time::timeout(PATIENCE, renewing).await;
        let mut pulse = self.pulse();
        match renewed {
            Ok(Ok(draining)) => {
                pulse.draining = draining;
                let now = Instant::now();
                // One that stood still itself knows nothing of the others.
                let was_away = pulse.renewed_at.is_none_or(|at| now.duration_since(at) > TICK * 2);
                if was_away || pulse.steady_since.is_none() {
                    pulse.steady_since = Some(now);
                }
                pulse.renewed_at = Some(now);
                return true;
            }
            Ok(Err(Error::Fenced)) => {
                self.deps.fence.give_up();
                return false;
            }
            Ok(Err(error)) => tracing::warn!(%error, "this node could not renew its lease; trying again in a second"),
            Err(_) => tracing::warn!("the database does not answer: this node could not renew its lease"),
        }
        pulse.steady_since = None;
        // The others may have ended it by then; it finds out before it does anything.
        true
    }

    async fn look(&self) -> Result<()> {
        let mut looks = self.looks.lock().await;
        looks.count = looks.count.wrapping_add(1);
        let (steady_since, draining) = {
            let pulse = self.pulse();
            (pulse.steady_since, pulse.draining)
        };
        let Some(steady_since) = steady_since else {
            return Ok(());
        };
        let db = &self.deps.db;
        if steady_since.elapsed() >= Duration::from_millis(LIFE_MS as u64) {
            for silent in node::silent(&db.read, self.id).await? {
                self.end(silent).await?;
            }
        }
        // What was taken, and did not arrive: whoever took it has failed, or left.
        self.arrive().await?;
        if looks.count % SELDOM == 1 {
            self.look_around(&mut looks).await?;
        }
        if self.leases().serves(Of::Installation) && mail::next_due_at(&db.read).await?.is_some() {
            // Whoever wrote it may be another node, whose hint reaches nobody here.
            self.deps.router.mailer();
        }
        let free = workspace_lease::count_free(&db.read).await?;
        looks.free_in_a_row = if free > 0 { looks.free_in_a_row + 1 } else { 0 };
        let living = node::living(&db.read).await?;
        let nodes: Vec<Peer> = living
            .iter()
            .map(|row| Peer {
                id: row.id,
                load: row.load(),
                draining: row.draining,
            })
            .collect();
        let Plan { take, give } = balance::plan(&View {
            me: self.id,
            nodes: &nodes,
            free,
            free_looks: looks.free_in_a_row,
        });
        if take > 0 && !self.deps.is_draining() {
            self.deps.writer.take(take.min(AT_ONCE)).await?;
            self.arrive().await?;
        }
        looks.settling = looks.settling.saturating_sub(1);
        if let Some((to, some)) = give
            && looks.settling == 0
        {
            let given = self.give(&mut looks, draining, to, some as usize).await?;
            // One that leaves goes on as fast as it can.
            looks.settling = if draining || given == 0 { 0 } else { SETTLING };
        }
        Ok(())
    }

    /// What changes seldom, or takes longer to count.
    async fn look_around(&self, looks: &mut Looks) -> Result<()> {
        let db = &self.deps.db;
        // By one of them; the first look of each makes what there is not yet at a first start.
        if looks.count == 1 || self.leases().serves(Of::Installation) {
            workspace_lease::open(&db.write).await?;
        }
        let known = self.leases().count() + usize::from(self.leases().holds(Of::Installation));
        if workspace_lease::count_of(&db.read, self.id).await? != known as u64 {
            self.deps.writer.recall().await?;
            self.arrive().await?;
        }
        let count = delivery::count_open_of(&db.read, self.deps.share(), COUNTED).await?;
        self.pulse().deliveries_waiting = i64::try_from(count).unwrap_or(i64::MAX);
        elsewhere::look(&self.deps, &mut looks.trunks).await?;
        let now = Instant::now();
        looks.busy.retain(|_, until| *until > now);
        if self.leases().serves(Of::Installation) {
            node::prune(&db.write).await?;
        }
        Ok(())
    }

    async fn end(&self, silent: NodeId) -> Result<()> {
        // What hangs in the middle of a commit would keep its row, and us.
        self.deps.db.end_writers_of(silent).await?;
        let transaction = self.deps.db.begin().await?;
        let ended = node_end::end_silent(&transaction, self.id, silent).await?;
        transaction.commit().await?;
        if ended {
            tracing::warn!(node = %silent, "a node has been silent for too long: its workspaces are taken over");
            metrics::counter!("callboard_nodes_ended_total").increment(1);
        }
        Ok(())
    }
}

/// A new node of the installation, which nobody has heard of yet.
#[boxed]
pub async fn join(db: &Db, row: &node::Model) -> Result<()> {
    let transaction = db.begin().await?;
    // One that had the database alone, and may still live, commits nothing more.
    let before = generation::take(&transaction).await?;
    node::join(&transaction, row).await?;
    transaction.commit().await?;
    if before.from_the_living {
        handed_over().await;
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the other nodes and the database keep their own time"
)]
async fn real_time(time: Duration) {
    tokio::time::sleep(time).await;
}
