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

    /// Whose turn it is among those that `can`. Each visit adds the weight to what is owed; a call costs as much as the
    /// greatest weight, so that the turns of all are spread evenly instead of coming in rows.
    pub fn next(&mut self, can: impl Fn(&I) -> bool, weight: impl Fn(&I) -> i64) -> Option<I> {
        let weight = |id: &I| weight(id).max(1);
        let cost = self
            .ring
            .iter()
            .filter(|(id, _)| can(id))
            .map(|(id, _)| weight(id))
            .max()?;
        // Somebody who can has that weight, and is served at the first visit.
        for _ in 0..self.ring.len() {
            let (id, owed) = self.ring.front_mut()?;
            let id = *id;
            let is_able = can(&id);
            if is_able {
                *owed += weight(&id);
            }
            // One that waits for its own next call keeps what it is owed, and no more than one call.
            *owed = (*owed).min(2 * cost);
            let is_served = is_able && *owed >= cost;
            if is_served {
                *owed -= cost;
            }
            self.ring.rotate_left(1);
            if is_served {
                return Some(id);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Over any run, each gets its weight's share to within one call for each of the others.
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
                let share = calls as f64 * *weight as f64 / total as f64;
                prop_assert!((*count as f64 - share).abs() <= weights.len() as f64, "{counts:?} of {weights:?}");
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
