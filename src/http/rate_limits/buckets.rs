//! The buckets of one limit: as many as there are keys, up to a bound.
use governor::{
    NotUntil, Quota, RateLimiter,
    middleware::{NoOpMiddleware, StateInformationMiddleware, StateSnapshot},
    nanos::Nanos,
    state::{
        InMemoryState, NotKeyed, StateStore,
        keyed::{DashMapStateStore, ShrinkableKeyedStateStore},
    },
};
use runtime::clock::Clock;
use std::{
    hash::Hash,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

/// Buckets of one limit. Who comes when they are all in use shares one bucket with all others who do.
pub const MOST: usize = 50_000;

/// A limit with a bucket for each key, at most [`MOST`].
pub struct Keyed<K: Hash + Eq + Clone> {
    limiter: RateLimiter<K, Buckets<K>, Clock, StateInformationMiddleware>,
    buckets: Buckets<K>,
    clock: Clock,
    /// When the quiet ones were last forgotten because there was no room, in milliseconds.
    swept: AtomicI64,
}

impl<K: Hash + Eq + Clone> Keyed<K> {
    pub fn new(quota: Quota, clock: &Clock) -> Self {
        Self::of(quota, clock, MOST)
    }

    fn of(quota: Quota, clock: &Clock, most: usize) -> Self {
        let buckets = Buckets(Arc::new(Store {
            by_key: DashMapStateStore::default(),
            shared: InMemoryState::default(),
            most,
        }));
        let limiter = RateLimiter::<_, _, _, NoOpMiddleware<Nanos>>::new(quota, buckets.clone(), clock.clone());
        Keyed {
            limiter: limiter.with_middleware(),
            buckets,
            clock: clock.clone(),
            swept: AtomicI64::new(i64::MIN),
        }
    }

    pub fn check(&self, key: &K) -> Result<StateSnapshot, NotUntil<Nanos>> {
        self.make_room(key);
        self.limiter.check_key(key)
    }

    pub fn allows(&self, key: &K, n: NonZeroU32) -> bool {
        self.make_room(key);
        matches!(self.limiter.check_key_n(key, n), Ok(Ok(_)))
    }

    /// Forgets the quiet ones if there is no room for another, once a second at most: it walks over all of them.
    fn make_room(&self, key: &K) {
        if self.buckets.0.has_room_for(key) {
            return;
        }
        let (now, swept) = (self.clock.now().millis(), self.swept.load(Ordering::Relaxed));
        let is_due = now.saturating_sub(swept) >= 1_000 || now < swept;
        if is_due
            && self
                .swept
                .compare_exchange(swept, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.tidy();
        }
    }

    pub fn tidy(&self) {
        self.limiter.retain_recent();
    }

    /// Buckets in use.
    pub fn count(&self) -> usize {
        self.buckets.0.by_key.len()
    }
}

/// The buckets of a limit; cloning gives another hand on the same ones.
struct Buckets<K: Hash + Eq + Clone>(Arc<Store<K>>);

impl<K: Hash + Eq + Clone> Clone for Buckets<K> {
    fn clone(&self) -> Self {
        Buckets(self.0.clone())
    }
}

struct Store<K: Hash + Eq + Clone> {
    by_key: DashMapStateStore<K>,
    /// Of all who come when there is no room.
    shared: InMemoryState,
    most: usize,
}

impl<K: Hash + Eq + Clone> Store<K> {
    fn has_room_for(&self, key: &K) -> bool {
        self.by_key.contains_key(key) || self.by_key.len() < self.most
    }
}

impl<K: Hash + Eq + Clone> StateStore for Buckets<K> {
    type Key = K;
    fn measure_and_replace<T, F, E>(&self, key: &K, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let store = &*self.0;
        if store.has_room_for(key) {
            store.by_key.measure_and_replace(key, decide)
        } else {
            store.shared.measure_and_replace(&NotKeyed::NonKey, decide)
        }
    }
}

impl<K: Hash + Eq + Clone> ShrinkableKeyedStateStore<K> for Buckets<K> {
    fn retain_recent(&self, drop_below: Nanos) {
        self.0.by_key.retain_recent(drop_below);
    }
    fn len(&self) -> usize {
        self.0.by_key.len()
    }
    fn is_empty(&self) -> bool {
        self.0.by_key.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::values::Moment;

    #[test]
    fn strangers_fill_no_more_than_the_limit_and_share_what_is_beyond() {
        let clock = Clock::manual(Moment::parse("2027-03-02T13:00:00Z").unwrap());
        let sixty = NonZeroU32::new(60).unwrap();
        let quota = Quota::per_second(NonZeroU32::MIN).allow_burst(sixty);
        let limit = Keyed::of(quota, &clock, 100);
        // Twice, so that nothing of the first has run out yet.
        for n in (0..1_000).chain(0..100) {
            let _ = limit.check(&n);
        }
        assert_eq!(limit.count(), 100);
        assert!(limit.check(&5_000).is_err(), "the shared bucket is used up");
        assert!(
            limit.check(&7).is_ok(),
            "who was there before has a bucket of their own"
        );
        clock.set(clock.now().plus_seconds(10));
        assert!(limit.check(&5_000).is_ok(), "the quiet ones made room");
        assert_eq!(limit.count(), 1);
    }
}
