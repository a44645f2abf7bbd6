//! The last look before a call leaves: whatever stalled between its plan and this moment, no second holds more calls than the
//! rate and the burst, of the tenant, of each campaign and of each trunk. What is late comes later; it does not come at once.
use super::pace::burst;
use entities::{
    ids::{CampaignId, TrunkId},
    values::Moment,
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The moments of the last calls, as many as one second may hold.
struct Window {
    calls: VecDeque<Moment>,
    most: usize,
}

/// A second, and what may lie between this look at the clock and the carrier's.
const SPAN_MS: i64 = 1010;

impl Window {
    fn new(rate: f64) -> Self {
        Window {
            calls: VecDeque::new(),
            most: most_in_a_second(rate),
        }
    }

    /// When there is room for one more.
    fn free_at(&self) -> Option<Moment> {
        let first = self.calls.len().checked_sub(self.most)?;
        self.calls.get(first).map(|at| at.plus_millis(SPAN_MS))
    }

    fn note(&mut self, now: Moment) {
        self.calls.push_back(now);
        while self.calls.len() > self.most {
            self.calls.pop_front();
        }
    }

    /// Does its last call still count?
    fn is_recent(&self, now: Moment) -> bool {
        self.calls.back().is_some_and(|at| at.plus_millis(SPAN_MS) > now)
    }
}

fn most_in_a_second(rate: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number, at most some thousands"
    )]
    let most = (rate + f64::from(burst(rate).get())) as usize;
    most.max(1)
}

/// One tenant's.
pub struct LastSecondLimiter {
    windows: Mutex<Windows>,
    waiting: AtomicUsize,
}

struct Windows {
    tenant: Window,
    others: HashMap<Paced, Window>,
}

/// What has a rate beside the tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Paced {
    Campaign(CampaignId),
    Trunk(TrunkId),
}

impl LastSecondLimiter {
    pub fn new(rate: f64) -> Self {
        LastSecondLimiter {
            windows: Mutex::new(Windows {
                tenant: Window::new(rate),
                others: HashMap::new(),
            }),
            waiting: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call go, or says when to ask again. `others`: its campaign and its trunk, with their rates.
    pub fn pass(&self, others: &[(Paced, f64)], now: Moment) -> Result<(), Moment> {
        let mut windows = self.lock();
        let mut free_at = windows.tenant.free_at();
        for (id, rate) in others {
            let window = windows.others.entry(*id).or_insert_with(|| Window::new(*rate));
            // Calls made at another rate count at this one.
            window.most = most_in_a_second(*rate);
            free_at = free_at.max(window.free_at());
        }
        if let Some(at) = free_at.filter(|at| *at > now) {
            return Err(at);
        }
        windows.tenant.note(now);
        for (id, _) in others {
            if let Some(window) = windows.others.get_mut(id) {
                window.note(now);
            }
        }
        Ok(())
    }

    /// Only these are left. A campaign that was paused a moment ago may be resumed within the second.
    pub fn keep(&self, is_left: impl Fn(&Paced) -> bool, now: Moment) {
        let is_kept = |id: &Paced, window: &mut Window| is_left(id) || window.is_recent(now);
        self.lock().others.retain(is_kept);
    }

    pub fn begin_to_wait(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }
    pub fn end_to_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
    /// Calls that are late: while there are many, no more are planned.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How many of its calls pass at that moment.
    fn passing(limiter: &LastSecondLimiter, its: Paced, rate: f64, now: Moment) -> usize {
        (0..100)
            .take_while(|_| limiter.pass(&[(its, rate)], now).is_ok())
            .count()
    }

    #[test]
    fn a_call_needs_room_in_each_of_its_windows_and_takes_it_in_all_or_none() {
        let limiter = LastSecondLimiter::new(100.0);
        let campaign = |n| Paced::Campaign(CampaignId(uuid::Uuid::from_u128(n)));
        let trunk = Paced::Trunk(TrunkId(uuid::Uuid::from_u128(9)));
        let now = Moment::from_millis(0);
        // Two calls and the burst of the trunk, whichever campaigns they are of.
        let passes = |n: u128| limiter.pass(&[(campaign(n), 50.0), (trunk, 2.0)], now).is_ok();
        assert_eq!([passes(1), passes(2), passes(1), passes(2)], [true, true, true, false]);
        // Over another trunk it goes, and what was refused has taken nothing.
        assert_eq!(passing(&limiter, campaign(2), 50.0, now), 50);
    }

    #[test]
    fn neither_a_pause_nor_another_rate_begins_the_second_anew() {
        let (limiter, campaign) = (
            LastSecondLimiter::new(100.0),
            Paced::Campaign(CampaignId::from(uuid::Uuid::from_u128(1))),
        );
        let at = Moment::from_millis;
        assert_eq!(passing(&limiter, campaign, 2.0, at(0)), 3);
        limiter.keep(|_| false, at(500));
        assert_eq!(passing(&limiter, campaign, 2.0, at(500)), 0, "resumed at once");
        assert_eq!(
            passing(&limiter, campaign, 4.0, at(500)),
            2,
            "five in a second at the new rate"
        );
        assert_eq!(passing(&limiter, campaign, 2.0, at(1_000)), 0);
        assert_eq!(passing(&limiter, campaign, 2.0, at(1_510)), 3);
        limiter.keep(|_| false, at(10_000));
        assert!(limiter.lock().others.is_empty());
    }

    proptest! {
        /// However the calls come in, in rows after stalls too.
        #[test]
        fn no_second_holds_more_than_rate_and_burst(rate in 0.1f64..300.0, gaps in proptest::collection::vec(0i64..50, 1..2000)) {
            let (limiter, mut now, mut passed) = (LastSecondLimiter::new(rate), Moment::from_millis(0), Vec::new());
            for gap in gaps {
                now = now.plus_millis(gap);
                while let Err(at) = limiter.pass(&[], now) {
                    prop_assert!(at > now);
                    now = at;
                }
                passed.push(now);
            }
            let most = rate + f64::from(burst(rate).get());
            for (n, first) in passed.iter().enumerate() {
                let within = passed[n..].iter().take_while(|at| **at < first.plus_millis(1000)).count();
                prop_assert!(within as f64 <= most.max(1.0), "{within} at {rate}");
            }
        }
    }
}
