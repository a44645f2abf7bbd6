//! How workspaces come to a node that has taken them.
use super::Keeper;
use crate::{
    fence::handed_over,
    leases::Of,
    reconcile::{reconcile, take_over},
};
use entities::{Result, boxed, ids::TenantId, workspace_lease::INSTALLATION};
use std::sync::PoisonError;

/// Workspaces that requests wait for, at once; who asks for one more asks again.
const WANTED: usize = 10_000;

impl Keeper {
    /// Those that were taken begin to be served here, by what repairs at a start.
    #[boxed]
    pub(super) async fn arrive(&self) -> Result<()> {
        let _one = self.arrival.lock().await;
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

    /// Somebody waits for that workspace: it is taken, if nobody has it.
    pub fn want(&self, tenant: TenantId) {
        if self.deps.is_draining() || self.pulse().draining {
            return;
        }
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.len() < WANTED && wanted.insert(tenant) {
            self.asked.notify_one();
        }
    }

    pub(super) async fn take_wanted(&self) {
        let wanted = std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        for tenant in wanted {
            if !self.leases().holds(of(tenant))
                && let Err(error) = self.deps.writer.take_one(tenant).await
            {
                tracing::warn!(%error, "a workspace that a request waits for could not be taken");
            }
        }
        if let Err(error) = self.arrive().await {
            tracing::warn!(%error, "workspaces that were taken have not arrived; trying again in a second");
        }
    }
}

fn of(tenant: TenantId) -> Of {
    match tenant {
        INSTALLATION => Of::Installation,
        tenant => Of::Workspace(tenant),
    }
}
