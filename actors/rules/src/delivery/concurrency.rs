//! How many deliveries a lane sends at once. Pure.
//!
//! It starts narrow and doubles with each full round of successes until something fails, then grows by one a round. A failure
//! to take deliveries (timeout, no connection, 5xx, 429) halves it, once for all that were under way together, down to 1.

#[derive(Clone, Debug, PartialEq)]
pub struct AdaptiveConcurrency {
    now: usize,
    max: usize,
    /// Successes since it last grew.
    successes: usize,
    /// Nothing has failed yet: it doubles.
    opening: bool,
    /// Attempts started so far; those up to `halved_at` were under way at the last halving.
    started: u64,
    halved_at: u64,
}

/// Where a lane starts: what an unknown receiver is trusted with.
const FIRST: usize = 2;

impl AdaptiveConcurrency {
    pub fn new(max: usize) -> Self {
        let max = max.max(1);
        AdaptiveConcurrency {
            now: FIRST.min(max),
            max,
            successes: 0,
            opening: true,
            started: 0,
            halved_at: 0,
        }
    }

    pub fn get(&self) -> usize {
        self.now
    }

    /// The user's own limit.
    pub fn set_max(&mut self, max: usize) {
        self.max = max.max(1);
        self.now = self.now.clamp(1, self.max);
    }

    /// An attempt starts; the answer is its number, to be given back with its outcome.
    pub fn start(&mut self) -> u64 {
        self.started += 1;
        self.started
    }

    pub fn succeeded(&mut self) {
        self.successes += 1;
        if self.successes >= self.now {
            self.successes = 0;
            let wider = if self.opening { self.now * 2 } else { self.now + 1 };
            self.now = wider.min(self.max);
        }
    }

    pub fn failed(&mut self, number: u64) {
        self.successes = 0;
        self.opening = false;
        if number > self.halved_at {
            self.now = (self.now / 2).max(1);
            self.halved_at = self.started;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn succeed(concurrency: &mut AdaptiveConcurrency, times: usize) {
        for _ in 0..times {
            concurrency.start();
            concurrency.succeeded();
        }
    }

    #[test]
    fn it_doubles_until_something_fails_then_grows_by_one() {
        let mut concurrency = AdaptiveConcurrency::new(64);
        let mut seen = vec![concurrency.get()];
        for _ in 0..4 {
            let round = concurrency.get();
            succeed(&mut concurrency, round);
            seen.push(concurrency.get());
        }
        assert_eq!(seen, [2, 4, 8, 16, 32]);
        let number = concurrency.start();
        concurrency.failed(number);
        assert_eq!(concurrency.get(), 16);
        succeed(&mut concurrency, 16);
        assert_eq!(concurrency.get(), 17);
    }

    #[test]
    fn what_was_under_way_together_halves_it_once() {
        let mut concurrency = AdaptiveConcurrency::new(8);
        succeed(&mut concurrency, 2 + 4);
        assert_eq!(concurrency.get(), 8);
        let numbers: Vec<u64> = (0..8).map(|_| concurrency.start()).collect();
        for number in numbers {
            concurrency.failed(number);
        }
        assert_eq!(concurrency.get(), 4);
    }

    #[test]
    fn it_stays_between_one_and_its_users_limit() {
        let mut concurrency = AdaptiveConcurrency::new(8);
        for _ in 0..20 {
            let number = concurrency.start();
            concurrency.failed(number);
        }
        assert_eq!(concurrency.get(), 1);
        succeed(&mut concurrency, 1000);
        assert_eq!(concurrency.get(), 8);
        concurrency.set_max(3);
        assert_eq!(concurrency.get(), 3);
        assert_eq!(AdaptiveConcurrency::new(1).get(), 1);
    }
}
