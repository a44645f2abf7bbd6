//! Of which traces the calls, messages and campaigns of now are a part, so that nobody has to look them up.
use entities::values::TraceContext;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use uuid::Uuid;

/// Twice as many are remembered at most.
const MOST: usize = 10_000;

/// Those that were last heard of.
#[derive(Default)]
pub struct Contexts(Mutex<Generations>);

/// When the new ones are many, the old ones are forgotten.
#[derive(Default)]
struct Generations {
    new: HashMap<Uuid, Option<TraceContext>>,
    old: HashMap<Uuid, Option<TraceContext>>,
}

impl Contexts {
    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: it is known to be of its own trace.
    pub fn remember(&self, id: Uuid, context: Option<TraceContext>) {
        let mut all = self.lock();
        if all.new.len() >= MOST && !all.new.contains_key(&id) {
            all.old = std::mem::take(&mut all.new);
        }
        all.new.insert(id, context);
    }

    /// `None`: nothing is known of it here.
    pub fn of(&self, id: Uuid) -> Option<Option<TraceContext>> {
        let all = self.lock();
        all.new.get(&id).or_else(|| all.old.get(&id)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered_and_no_more() {
        let contexts = Contexts::default();
        let id = |n: usize| Uuid::from_u128(n as u128);
        let context = |n: usize| TraceContext {
            trace_id: 1,
            span_id: n as u64,
            sampled: true,
        };
        for n in 1..=5 * MOST {
            contexts.remember(id(n), Some(context(n)));
        }
        contexts.remember(id(5 * MOST), None);
        let known = (1..=5 * MOST).filter(|n| contexts.of(id(*n)).is_some()).count();
        assert!((MOST..=2 * MOST).contains(&known), "{known}");
        assert_eq!(contexts.of(id(1)), None);
        assert_eq!(contexts.of(id(5 * MOST - 1)), Some(Some(context(5 * MOST - 1))));
        assert_eq!(contexts.of(id(5 * MOST)), Some(None));
    }
}
