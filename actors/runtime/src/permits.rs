//! How many are at work at once: of all, and of one workspace, so that nobody waits behind somebody else's list.
use entities::{Error, Result, boxed, ids::TenantId};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many are at work at once: of all, and of one workspace.
pub struct Permits {
    all: Arc<Semaphore>,
    /// Of them, for one workspace.
    share: usize,
    of_tenants: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
}

/// Lets one be at work; given back when it is dropped.
#[derive(Debug)]
pub struct Permit {
    _of_tenant: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Permits {
    pub fn new(at_once: usize) -> Self {
        Permits {
            all: Arc::new(Semaphore::new(at_once)),
            share: (at_once / 2).max(1),
            of_tenants: Mutex::default(),
        }
    }

    fn of(&self, tenant: TenantId) -> Arc<Semaphore> {
        let mut all = self.of_tenants.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(tenant)
            .or_insert_with(|| Arc::new(Semaphore::new(self.share)))
            .clone()
    }

    /// Waits for its turn; the workspace's own messages first wait for each other.
    #[boxed]
    pub async fn take(&self, tenant: TenantId) -> Result<Permit> {
        let closed = |_| Error::Unavailable("the service is shutting down".into());
        Ok(Permit {
            _of_tenant: self.of(tenant).acquire_owned().await.map_err(closed)?,
            _of_all: self.all.clone().acquire_owned().await.map_err(closed)?,
        })
    }

    /// `None`: as many as may be are on their way.
    pub fn take_now(&self, tenant: TenantId) -> Option<Permit> {
        Some(Permit {
            _of_tenant: self.of(tenant).try_acquire_owned().ok()?,
            _of_all: self.all.clone().try_acquire_owned().ok()?,
        })
    }
}
