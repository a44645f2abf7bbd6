//! How much room spools take, and who may have more of it: all of them together have a limit, and no tenant has more than half.
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

pub struct Space {
    /// Bytes that all may take.
    most: u64,
    /// Bytes by the spool's name, and of all spools of a tenant.
    spools: HashMap<String, u64>,
    tenants: HashMap<String, u64>,
    /// Of all; others read it.
    used: Arc<AtomicU64>,
}

fn tenant(name: &str) -> &str {
    name.split_once('/').map_or(name, |(tenant, _)| tenant)
}

impl Space {
    /// With what lies there already.
    pub fn new(most: u64, found: HashMap<String, u64>) -> Self {
        let mut space = Space {
            most,
            spools: HashMap::new(),
            tenants: HashMap::new(),
            used: Arc::default(),
        };
        found.iter().for_each(|(name, bytes)| space.take(name, *bytes));
        space
    }

    pub fn used(&self) -> Arc<AtomicU64> {
        self.used.clone()
    }

    /// So many more bytes a spool may take.
    pub fn room(&self, name: &str) -> u64 {
        let of_tenant = self.tenants.get(tenant(name)).copied().unwrap_or(0);
        let left = self.most.saturating_sub(self.used.load(Ordering::Relaxed));
        left.min((self.most / 2).saturating_sub(of_tenant))
    }

    pub fn take(&mut self, name: &str, bytes: u64) {
        *self.spools.entry(name.to_owned()).or_default() += bytes;
        *self.tenants.entry(tenant(name).to_owned()).or_default() += bytes;
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A spool is gone.
    pub fn free(&mut self, name: &str) {
        let Some(bytes) = self.spools.remove(name) else {
            return;
        };
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(left) = self.tenants.get_mut(tenant(name)) {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.tenants.remove(tenant(name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_more_than_half_and_all_no_more_than_there_is() {
        let found = HashMap::from([("a/1".to_owned(), 30), ("b/1".to_owned(), 5)]);
        let mut space = Space::new(100, found);
        assert_eq!(space.used().load(Ordering::Relaxed), 35);
        let room = |space: &Space| ["a/2", "b/1", "c/1"].map(|name| space.room(name));
        assert_eq!(room(&space), [20, 45, 50]);
        space.take("a/2", 20);
        assert_eq!(room(&space), [0, 45, 45]);
        space.take("b/1", 40);
        assert_eq!(room(&space), [0, 5, 5], "what is left is for all");
        space.free("a/1");
        space.free("a/1");
        assert_eq!(room(&space), [30, 5, 35], "once");
        ["a/2", "b/1"].into_iter().for_each(|name| space.free(name));
        assert_eq!((room(&space), space.tenants.len()), ([50; 3], 0));
    }
}
