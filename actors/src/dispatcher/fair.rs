//! Deficit round-robin: shares calls by weight. A share that cannot be used is lent to the others, never saved up.
use std::collections::VecDeque;

/// The order of turns, and what each has left of its turn.
#[derive(Clone, Debug)]
pub struct RoundRobin<I> {
    ring: VecDeque<(I, i64)>,
}
impl<I> Default for RoundRobin<I> {
    fn default() -> Self {
        RoundRobin { ring: VecDeque::new() }
    }
}

impl<I: Copy + PartialEq> RoundRobin<I> {
    /// Drops those that are gone, adds new ones at the end.
    pub fn keep(&mut self, ids: impl Iterator<Item = I> + Clone) {
        self.ring.retain(|(id, _)| ids.clone().any(|kept| kept == *id));
        for id in ids {
            if !self.ring.iter().any(|(known, _)| *known == id) {
                self.ring.push_back((id, 0));
            }
        }
    }

    /// Whose turn it is among those that `can`; each call is one unit.
    pub fn next(&mut self, can: impl Fn(&I) -> bool, weight: impl Fn(&I) -> i64) -> Option<I> {
        for _ in 0..=self.ring.len() {
            let (id, left) = self.ring.front_mut()?;
            if !can(id) {
                *left = 0;
                self.ring.rotate_left(1);
                continue;
            }
            if *left <= 0 {
                *left = weight(id).max(1);
            }
            *left -= 1;
            let (id, spent) = (*id, *left == 0);
            if spent {
                self.ring.rotate_left(1);
            }
            return Some(id);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Over any run, each gets its weight's share to within one turn.
        #[test]
        fn shares_follow_the_weights(weights in proptest::collection::vec(1i64..=100, 1..8), calls in 1usize..5000) {
            let mut ring = RoundRobin::default();
            ring.keep(0..weights.len());
            let mut counts = vec![0i64; weights.len()];
            for _ in 0..calls {
                counts[ring.next(|_| true, |id| weights[*id]).unwrap()] += 1;
            }
            let total: i64 = weights.iter().sum();
            for (count, weight) in counts.iter().zip(&weights) {
                let share = calls as i64 * weight / total;
                prop_assert!((count - share).abs() <= weight + 1, "{counts:?} of {weights:?}");
            }
        }

        /// As long as anybody can, somebody gets the call.
        #[test]
        fn no_share_is_lost(able in proptest::collection::vec(any::<bool>(), 1..8)) {
            let mut ring = RoundRobin::default();
            ring.keep(0..able.len());
            for _ in 0..50 {
                let chosen = ring.next(|id| able[*id], |_| 10);
                prop_assert_eq!(chosen.is_some(), able.contains(&true));
                prop_assert!(chosen.is_none_or(|id| able[id]));
            }
        }
    }
}
