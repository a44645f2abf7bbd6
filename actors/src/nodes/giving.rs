//! How workspaces leave a node that has more than the others, or that ends.
use super::{Keeper, Looks, real_time};
use crate::{leases::Of, reconcile::reconcile};
use entities::{
    Result, boxed,
    ids::{NodeId, TenantId},
    node,
    workspace_lease::INSTALLATION,
};
use std::{
    collections::HashSet,
    sync::atomic::Ordering::SeqCst,
    time::{Duration, Instant},
};

/// What is under way for workspaces that are about to leave has so long to end.
const LEAVING: Duration = Duration::from_secs(3);
/// One in which something went on is left alone for so long.
const BUSY_FOR: Duration = Duration::from_secs(20);

impl Keeper {
    /// Gives away workspaces in which nothing is live; answers how many.
    pub(super) async fn give(&self, looks: &mut Looks, draining: bool, to: NodeId, most: usize) -> Result<usize> {
        let live = self.live();
        let mut idle = self.leases().here();
        idle.retain(|tenant| !live.contains(tenant) && !looks.busy.contains_key(tenant));
        if !draining {
            // It counts as nothing, and moves with its node only.
            idle.retain(|tenant| *tenant != INSTALLATION);
        }
        idle.truncate(most);
        let mut leaving = self.leases().leave(&idle);
        if leaving.is_empty() {
            return Ok(0);
        }
        // First those that begin something: what they have begun is seen below. All others go on to hear what is said to them.
        let mut staying = self.tree.stop_dispatching(&leaving, LEAVING).await;
        let end = Instant::now() + LEAVING;
        while Instant::now() < end && !self.leases().are_quiet(&leaving) {
            real_time(Duration::from_millis(20)).await;
        }
        let live = self.live();
        let goes_on = |tenant: &TenantId| live.contains(tenant) || !self.leases().are_quiet(&[*tenant]);
        staying.extend(leaving.iter().copied().filter(goes_on));
        leaving.retain(|tenant| !staying.contains(tenant));
        let left = self.tree.leave(&leaving, LEAVING).await;
        let live = self.live();
        let goes_on =
            |tenant: &TenantId| left.contains(tenant) || live.contains(tenant) || !self.leases().are_quiet(&[*tenant]);
        staying.extend(leaving.iter().copied().filter(goes_on));
        leaving.retain(|tenant| !staying.contains(tenant));
        if !staying.is_empty() {
            let until = Instant::now() + BUSY_FOR;
            let all: Vec<TenantId> = staying.into_iter().collect();
            tracing::info!(
                workspaces = all.len(),
                "workspaces stay for now: something goes on in them"
            );
            looks.busy.extend(all.iter().map(|tenant| (*tenant, until)));
            self.stay(&all).await?;
        }
        if leaving.is_empty() {
            return Ok(0);
        }
        if let Err(error) = self.give_up(leaving.clone(), Some(to)).await {
            // Those that it did not come to; what is in doubt is found by the rows.
            self.stay(&leaving).await?;
            return Err(error);
        }
        tracing::info!(workspaces = leaving.len(), %to, "workspaces were given to another node");
        Ok(leaving.len())
    }

    async fn stay(&self, tenants: &[TenantId]) -> Result<()> {
        self.leases().stay(tenants);
        reconcile(&self.deps).await
    }

    fn live(&self) -> HashSet<TenantId> {
        self.deps.calls.sessions().iter().map(|key| key.tenant_id).collect()
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

    /// Hands over what can be, as soon as it can, for so long at most: what is live then ends with the service.
    #[boxed]
    pub async fn hand_over(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while Instant::now() < end && (self.leases().count() > 0 || self.leases().holds(Of::Installation)) {
            let told = node::set_draining(self.deps.db.aside(), self.id, true).await;
            let others = node::living(&self.deps.db.read).await;
            let is_alone = others.is_ok_and(|nodes| nodes.iter().all(|node| node.id == self.id || node.draining));
            if told.is_ok() && is_alone {
                break;
            }
            real_time(Duration::from_millis(100)).await;
        }
        self.handed_over.store(true, SeqCst);
        // The look that is under way ends first.
        drop(self.looks.lock().await);
    }
}
