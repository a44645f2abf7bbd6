//! The workspaces that this process serves. One process alone has all there are; of several nodes each knows here which ones it
//! has taken, and acts for no other.
//!
//! A workspace is taken and given up by the writer, between two of its commits: so no commit is written for one that is not held.
use entities::{
    Error, Result,
    ids::{NodeId, TenantId},
    values::Moment,
    workspace_lease::{INSTALLATION, Share},
};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// Whose something is that is written or done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Workspace(TenantId),
    /// Of no workspace: users, what waits for all to be tidied.
    Installation,
    /// What any node may write beside any other: it says only what has happened, and the later word counts.
    Anybody,
}

impl From<TenantId> for Of {
    fn from(tenant: TenantId) -> Self {
        Of::Workspace(tenant)
    }
}

pub struct Leases {
    share: Share,
    held: RwLock<HashMap<TenantId, Lease>>,
}

struct Lease {
    stage: Stage,
    since: Since,
    /// Nobody has ever had it before.
    is_new: bool,
    /// Held by each request for it that is being answered.
    in_hand: Arc<()>,
}

/// Keeps a workspace from being given up while something is done for it.
pub struct Stay {
    _in_hand: Option<Arc<()>>,
}

/// How far a workspace is in or out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Taken from a node that was ended, and may be about to find out.
    Arriving,
    Here,
    /// About to be given up: nothing new is begun.
    Leaving,
}

/// What is known of whoever carried a workspace's calls before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// When they were last known to be carried.
    pub last_seen: Option<Moment>,
    /// Since when they are this process's.
    pub taken_at: Moment,
}

impl Leases {
    /// One process that has them all.
    pub fn whole() -> Self {
        Leases {
            share: Share::Whole,
            held: RwLock::default(),
        }
    }

    pub fn of(node: NodeId) -> Self {
        Leases {
            share: Share::Of(node),
            held: RwLock::default(),
        }
    }

    /// Whose rows are looked at.
    pub fn share(&self) -> Share {
        self.share
    }

    /// `None`: there are no others.
    pub fn node(&self) -> Option<NodeId> {
        match self.share {
            Share::Whole => None,
            Share::Of(node) => Some(node),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<TenantId, Lease>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<TenantId, Lease>> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// May something be written for it?
    pub fn holds(&self, of: impl Into<Of>) -> bool {
        let tenant = match (self.share, of.into()) {
            (Share::Whole, _) | (_, Of::Anybody) => return true,
            (Share::Of(_), Of::Workspace(tenant)) => tenant,
            (Share::Of(_), Of::Installation) => INSTALLATION,
        };
        self.read().contains_key(&tenant)
    }

    /// May something be begun for it? Not before it has arrived, nor once it is about to leave.
    pub fn serves(&self, of: impl Into<Of>) -> bool {
        let tenant = match (self.share, of.into()) {
            (Share::Whole, _) | (_, Of::Anybody) => return true,
            (Share::Of(_), Of::Workspace(tenant)) => tenant,
            (Share::Of(_), Of::Installation) => INSTALLATION,
        };
        self.read().get(&tenant).is_some_and(|lease| lease.stage == Stage::Here)
    }

    /// May its actors be spoken with? [`Error::Moved`] if not: until the workspace has left, they are told what becomes of their work.
    pub fn check(&self, of: impl Into<Of>) -> Result<()> {
        let tenant = match (self.share, of.into()) {
            (Share::Whole, _) | (_, Of::Anybody) => return Ok(()),
            (Share::Of(_), Of::Workspace(tenant)) => tenant,
            (Share::Of(_), Of::Installation) => INSTALLATION,
        };
        let held = self.read();
        let lease = held.get(&tenant).filter(|lease| lease.stage != Stage::Arriving);
        lease.map(drop).ok_or(Error::Moved)
    }

    /// May something be begun by somebody who begins by himself?
    pub fn check_serves(&self, of: impl Into<Of>) -> Result<()> {
        if self.serves(of) { Ok(()) } else { Err(Error::Moved) }
    }

    /// The same, and it is not given up while the answer is kept.
    pub fn enter(&self, of: impl Into<Of>) -> Result<Stay> {
        let tenant = match (self.share, of.into()) {
            (Share::Whole, _) | (_, Of::Anybody) => return Ok(Stay { _in_hand: None }),
            (Share::Of(_), Of::Workspace(tenant)) => tenant,
            (Share::Of(_), Of::Installation) => INSTALLATION,
        };
        let held = self.read();
        let lease = held.get(&tenant).filter(|lease| lease.stage == Stage::Here);
        let lease = lease.ok_or(Error::Moved)?;
        Ok(Stay {
            _in_hand: Some(lease.in_hand.clone()),
        })
    }

    /// It is not given up while the answer is kept, for what goes on in it already.
    pub fn keep(&self, tenant: TenantId) -> Option<Stay> {
        let in_hand = self.read().get(&tenant)?.in_hand.clone();
        Some(Stay {
            _in_hand: Some(in_hand),
        })
    }

    /// Is nothing done for any of these any more?
    pub fn are_quiet(&self, tenants: &[TenantId]) -> bool {
        let held = self.read();
        let mut leases = tenants.iter().filter_map(|tenant| held.get(tenant));
        leases.all(|lease| Arc::strong_count(&lease.in_hand) == 1)
    }

    /// Those that are about to come.
    pub fn arriving(&self) -> Vec<TenantId> {
        let held = self.read();
        let arriving = held.iter().filter(|(_, lease)| lease.stage == Stage::Arriving);
        arriving.map(|(tenant, _)| *tenant).collect()
    }

    /// Has any of these been another node's?
    pub fn are_second_hand(&self, tenants: &[TenantId]) -> bool {
        let held = self.read();
        let mut leases = tenants.iter().filter_map(|tenant| held.get(tenant));
        leases.any(|lease| !lease.is_new)
    }

    /// How many it has, the installation's own not counted.
    pub fn count(&self) -> usize {
        let held = self.read();
        held.len() - usize::from(held.contains_key(&INSTALLATION))
    }

    /// All that are here.
    pub fn here(&self) -> Vec<TenantId> {
        let held = self.read();
        let here = held.iter().filter(|(_, lease)| lease.stage == Stage::Here);
        here.map(|(tenant, _)| *tenant).collect()
    }

    /// `None`: it always was this process's.
    pub fn since(&self, tenant: TenantId) -> Option<Since> {
        self.read().get(&tenant).map(|lease| lease.since)
    }

    /// By the writer, after the commit that took it.
    pub(crate) fn took(&self, tenant: TenantId, is_new: bool, since: Since) {
        let lease = Lease {
            stage: Stage::Arriving,
            since,
            is_new,
            in_hand: Arc::default(),
        };
        self.write().insert(tenant, lease);
    }

    /// Everything may begin.
    pub fn arrived(&self, tenants: &[TenantId]) {
        self.set(tenants, Stage::Arriving, Stage::Here);
    }

    /// Nothing new begins. Answers those that were here.
    pub fn leave(&self, tenants: &[TenantId]) -> Vec<TenantId> {
        self.set(tenants, Stage::Here, Stage::Leaving)
    }

    /// They stay after all.
    pub fn stay(&self, tenants: &[TenantId]) {
        self.set(tenants, Stage::Leaving, Stage::Here);
    }

    fn set(&self, tenants: &[TenantId], from: Stage, to: Stage) -> Vec<TenantId> {
        let mut held = self.write();
        let mut set = Vec::new();
        for tenant in tenants {
            if let Some(lease) = held.get_mut(tenant)
                && lease.stage == from
            {
                lease.stage = to;
                set.push(*tenant);
            }
        }
        set
    }

    /// By the writer, before the commit that gives them up: should that fail in doubt, nothing is written for them any more.
    pub(crate) fn gave_up(&self, tenants: &[TenantId]) {
        let mut held = self.write();
        for tenant in tenants {
            held.remove(tenant);
        }
    }
}

#[cfg(test)]
#[path = "leases_tests.rs"]
mod tests;
