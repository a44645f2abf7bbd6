//! What a node does to be one of several: it says that it lives, ends those that do not, takes workspaces that nobody has, and
//! gives some to whoever has fewer.
//!
//! | What | When |
//! |---|---|
//! | It says that it lives, and what it carries | each second |
//! | It ends a node that has been silent for 4 s | if it has itself been heard for as long: a database that was away for all is no reason |
//! | It takes workspaces that nobody has | its part of them, by what each node carries ([`balance`]) |
//! | It gives workspaces away in which nothing is live | when it carries more than the others, or leaves |
//! | It acts for a workspace | a second after it was taken: whoever had it does nothing more by then |
//!
//! A node that finds out that it was ended ends at once: its supervisor starts it again, as a new one.
#[cfg(test)]
mod simulation;

use crate::{
    deps::Deps,
    fence::handed_over,
    leases::{Leases, Of},
    reconcile::{reconcile, take_over},
    tree::Tree,
    trunk::elsewhere,
};
use entities::{
    Error, Result, boxed,
    db::Db,
    delivery, generation,
    ids::{NodeId, TenantId, TrunkId},
    node::{self, LIFE_MS, Load},
    workspace_lease::{self, INSTALLATION},
};
use rules::balance::{self, Peer, Plan, View};
use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Mutex;

const TICK: Duration = Duration::from_secs(1);
/// A question to the database that takes longer is asked again at the next tick.
const PATIENCE: Duration = Duration::from_secs(3);
/// Ticks between two looks at what is counted slowly.
const SELDOM: u32 = 10;
/// Ticks in which what was given shows in what the others carry.
const SETTLING: u32 = 3;
/// What is under way for a workspace that is about to leave has so long to end.
const LEAVING: Duration = Duration::from_secs(5);
/// Deliveries that are counted, at most.
const COUNTED: u64 = 10_000;
/// One commit takes so many workspaces, at most.
const AT_ONCE: u64 = 2_000;

/// Keeps a node among the others.
pub struct Keeper {
    deps: Deps,
    tree: Arc<Tree>,
    id: NodeId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ticks: u32,
    /// Since when each renewal has stood.
    steady_since: Option<Instant>,
    free_looks: u32,
    /// Ticks until something may be given again.
    settling: u32,
    deliveries_waiting: i64,
    draining: bool,
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
            state: Mutex::default(),
        }))
    }

    fn leases(&self) -> &Arc<Leases> {
        self.deps.fence.leases()
    }

    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Does so each second, until the service ends.
    pub fn start(self: &Arc<Self>) {
        let keeper = self.clone();
        self.deps.runtime.clone().spawn(async move {
            while !keeper.deps.is_draining() {
                keeper.tick().await;
                real_time(TICK).await;
            }
            // What is left is finished here, and given up at the end: until then others must know that it lives.
            while keeper.renew().await {
                real_time(TICK).await;
            }
        });
    }

    /// One look. What fails is tried again at the next.
    #[boxed]
    pub async fn tick(&self) {
        if !self.renew().await {
            return;
        }
        if let Err(error) = self.look().await
            && !matches!(error, Error::Fenced)
        {
            tracing::warn!(%error, "the nodes could not be looked at; trying again in a second");
        }
    }

    /// Answers whether it is known to live.
    async fn renew(&self) -> bool {
        let mut state = self.state.lock().await;
        if state.ticks.is_multiple_of(SELDOM) {
            let share = self.deps.share();
            match delivery::count_open_of(&self.deps.db.read, share, COUNTED).await {
                Ok(count) => state.deliveries_waiting = i64::try_from(count).unwrap_or(i64::MAX),
                Err(error) => tracing::debug!(%error, "waiting deliveries were not counted"),
            }
        }
        state.ticks = state.ticks.wrapping_add(1);
        let load = Load {
            workspaces: self.leases().count() as i64,
            live_calls: self.deps.calls.count() as i64,
            deliveries_waiting: state.deliveries_waiting,
        };
        metrics::gauge!("callboard_workspaces").set(load.workspaces as f64);
        let renewing = node::renew(self.deps.db.aside(), self.id, self.deps.clock.now(), load);
        match tokio::time::timeout(PATIENCE, renewing).await {
            Ok(Ok(draining)) => {
                state.draining = draining;
                state.steady_since.get_or_insert_with(Instant::now);
                return true;
            }
            Ok(Err(Error::Fenced)) => {
                self.deps.fence.give_up();
                return false;
            }
            Ok(Err(error)) => tracing::warn!(%error, "this node could not say that it lives; trying again in a second"),
            Err(_) => tracing::warn!("the database does not answer; this node could not say that it lives"),
        }
        state.steady_since = None;
        // The others may have ended it by then; it finds out before it does anything.
        true
    }

    async fn look(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        let Some(steady_since) = state.steady_since else {
            return Ok(());
        };
        let db = &self.deps.db;
        if steady_since.elapsed() >= Duration::from_millis(LIFE_MS as u64) {
            for silent in node::silent(&db.read).await? {
                self.end(silent).await?;
            }
        }
        if state.ticks % SELDOM == 1 {
            workspace_lease::open(&db.write).await?;
            let known = self.leases().count() + usize::from(self.leases().holds(Of::Installation));
            if workspace_lease::count_of(&db.read, self.id).await? != known as u64 {
                self.deps.writer.recall().await?;
                self.arrive().await?;
            }
            elsewhere::look(&self.deps, &mut state.trunks).await?;
            if self.leases().serves(Of::Installation) {
                node::prune(&db.write).await?;
            }
        }
        let free = workspace_lease::count_free(&db.read).await?;
        state.free_looks = if free > 0 { state.free_looks + 1 } else { 0 };
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
            free_looks: state.free_looks,
        });
        if take > 0 {
            self.deps.writer.take(take.min(AT_ONCE)).await?;
            self.arrive().await?;
        }
        state.settling = state.settling.saturating_sub(1);
        if let Some((to, some)) = give
            && state.settling == 0
        {
            let given = self.give(to, some as usize).await?;
            // One that leaves goes on as fast as it can.
            state.settling = if state.draining || given == 0 { 0 } else { SETTLING };
        }
        Ok(())
    }

    async fn end(&self, silent: NodeId) -> Result<()> {
        // What hangs in the middle of a commit would keep its row, and us.
        self.deps.db.end_writers_of(silent).await?;
        let transaction = self.deps.db.begin().await?;
        let ended = node::end_silent(&transaction, silent).await?;
        transaction.commit().await?;
        if ended {
            tracing::warn!(node = %silent, "a node has been silent for too long: its workspaces are taken over");
            metrics::counter!("callboard_nodes_ended_total").increment(1);
        }
        Ok(())
    }

    /// Those that were taken begin to be served here, by what repairs at a start.
    #[boxed]
    async fn arrive(&self) -> Result<()> {
        let arriving = self.leases().arriving();
        if arriving.is_empty() {
            return Ok(());
        }
        // Nobody who had them does anything outside by then, and no second holds calls of two nodes.
        if self.leases().are_second_hand(&arriving) {
            handed_over().await;
        }
        take_over(&self.deps, Some(&arriving)).await?;
        if let Some(phones) = &self.deps.carriers.phones {
            phones.take_over(&self.deps, &arriving).await?;
        }
        self.leases().arrived(&arriving);
        tracing::info!(workspaces = arriving.len(), "workspaces were taken");
        reconcile(&self.deps).await
    }

    /// Takes that workspace, if nobody has it; answers whether it is served here then.
    #[boxed]
    pub async fn take_one(&self, tenant: TenantId) -> Result<bool> {
        if self.deps.is_draining() || self.state.lock().await.draining {
            return Ok(false);
        }
        self.deps.writer.take_one(tenant).await?;
        self.arrive().await?;
        Ok(self.leases().serves(tenant_of(tenant)))
    }

    /// Gives away workspaces in which nothing is live; answers how many.
    async fn give(&self, to: NodeId, most: usize) -> Result<usize> {
        let live: HashSet<TenantId> = self.deps.calls.sessions().iter().map(|key| key.tenant_id).collect();
        let mut idle = self.leases().here();
        idle.retain(|tenant| !live.contains(tenant));
        // The installation's own stays as long as anything does.
        if idle.len() > 1 || !live.is_empty() {
            idle.retain(|tenant| *tenant != INSTALLATION);
        }
        idle.truncate(most);
        let leaving = self.leases().leave(&idle);
        if leaving.is_empty() {
            return Ok(0);
        }
        let ended = self.tree.leave(&leaving, LEAVING).await && self.are_quiet(&leaving).await;
        // A call may have begun before the door was shut.
        let live = self.deps.calls.sessions();
        let is_live = live.iter().any(|key| leaving.contains(&key.tenant_id));
        if !ended || is_live {
            self.leases().stay(&leaving);
            tracing::info!(
                workspaces = leaving.len(),
                "workspaces stay: something goes on in one of them"
            );
            reconcile(&self.deps).await?;
            return Ok(0);
        }
        self.give_up(leaving.clone(), Some(to)).await?;
        tracing::info!(workspaces = leaving.len(), %to, "workspaces were given to another node");
        Ok(leaving.len())
    }

    async fn give_up(&self, leaving: Vec<TenantId>, to: Option<NodeId>) -> Result<()> {
        for tries in 1.. {
            match self.deps.writer.give_up(leaving.clone(), to).await {
                Err(error) if error.retryable() && tries < 10 => self.deps.clock.back_off(tries).await,
                done => return done,
            }
        }
        Ok(())
    }

    async fn are_quiet(&self, leaving: &[TenantId]) -> bool {
        let end = Instant::now() + LEAVING;
        while !self.leases().are_quiet(leaving) {
            if Instant::now() > end {
                return false;
            }
            real_time(Duration::from_millis(20)).await;
        }
        true
    }

    /// Hands over what can be, one after the other, for so long at most: what is live then ends with the service.
    #[boxed]
    pub async fn hand_over(&self, limit: Duration) {
        let end = Instant::now() + limit.max(LEAVING * 2);
        while Instant::now() < end {
            let told = node::drain(self.deps.db.aside(), self.id).await;
            let others = node::living(&self.deps.db.read).await;
            let is_alone = others.is_ok_and(|nodes| nodes.iter().all(|node| node.id == self.id || node.draining));
            if (told.is_ok() && is_alone) || self.leases().here().is_empty() {
                return;
            }
            real_time(Duration::from_millis(100)).await;
        }
    }
}

fn tenant_of(tenant: TenantId) -> Of {
    match tenant {
        INSTALLATION => Of::Installation,
        tenant => Of::Workspace(tenant),
    }
}

/// A new node of the installation, which nobody has heard of yet.
#[boxed]
pub async fn join(db: &Db, row: &node::Model) -> Result<()> {
    let transaction = db.begin().await?;
    // One that had the database alone, and may still live, commits nothing more.
    generation::take(&transaction).await?;
    node::join(&transaction, row).await?;
    Ok(transaction.commit().await?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the other nodes and the database keep their own time"
)]
async fn real_time(time: Duration) {
    tokio::time::sleep(time).await;
}
