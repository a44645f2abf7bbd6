//! Bulkheads: so many at once of one tenant, and so many in all. What is slow, or held by somebody outside, then takes its own
//! tenant's share, and not everybody's.
use entities::ids::TenantId;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub struct Bulkhead {
    of_tenant: usize,
    in_all: usize,
    taken: Arc<Taken>,
}

#[derive(Default)]
struct Taken(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    in_all: usize,
    /// Those who have any.
    by_tenant: HashMap<TenantId, usize>,
}

impl Taken {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The tenant has as many as it may.
    Tenant,
    /// There are as many as there may be.
    Service,
}

/// Held by what is under way; dropped, its place is free.
#[must_use = "dropping it gives the place back"]
pub struct Permit {
    tenant: TenantId,
    taken: Arc<Taken>,
}

impl Bulkhead {
    pub fn new(of_tenant: usize, in_all: usize) -> Self {
        Bulkhead {
            of_tenant,
            in_all,
            taken: Arc::default(),
        }
    }

    /// Waits for nothing.
    pub fn enter(&self, tenant: TenantId) -> Result<Permit, Full> {
        let mut taken = self.taken.lock();
        let of_tenant = taken.by_tenant.get(&tenant).copied().unwrap_or(0);
        if of_tenant >= self.of_tenant {
            return Err(Full::Tenant);
        }
        if taken.in_all >= self.in_all {
            return Err(Full::Service);
        }
        taken.in_all += 1;
        taken.by_tenant.insert(tenant, of_tenant + 1);
        Ok(Permit {
            tenant,
            taken: self.taken.clone(),
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        taken.in_all = taken.in_all.saturating_sub(1);
        if let Some(of_tenant) = taken.by_tenant.get_mut(&self.tenant) {
            *of_tenant = of_tenant.saturating_sub(1);
            if *of_tenant == 0 {
                taken.by_tenant.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(n: u128) -> TenantId {
        TenantId(uuid::Uuid::from_u128(n))
    }

    #[test]
    fn nobody_takes_more_than_their_share_and_what_is_dropped_is_free() {
        let bulkhead = Bulkhead::new(2, 3);
        let first = bulkhead.enter(tenant(1)).unwrap();
        let second = bulkhead.enter(tenant(1)).unwrap();
        assert_eq!(bulkhead.enter(tenant(1)).err(), Some(Full::Tenant));
        let other = bulkhead.enter(tenant(2)).unwrap();
        assert_eq!(bulkhead.enter(tenant(3)).err(), Some(Full::Service));
        drop(first);
        let again = bulkhead.enter(tenant(1)).unwrap();
        assert_eq!(bulkhead.enter(tenant(1)).err(), Some(Full::Tenant));
        drop((second, other, again));
        assert!(
            bulkhead.taken.lock().by_tenant.is_empty(),
            "who has none is not remembered"
        );
        assert_eq!(bulkhead.taken.lock().in_all, 0);
    }
}
