//! The pace of calls: when the next one may start, to the millisecond.
//!
//! Calls are planned a little ahead ([`LEAD`]), committed, and placed at their planned moment: neither a late wake-up nor a
//! slow commit moves them. `governor` decides, on a clock that stands at the planned moment; what it allows in a row is so
//! little that no second holds more than the rate and this burst. Source: CONTRACT §5.
use entities::values::Moment;
use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{InMemoryState, NotKeyed},
};
use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How far ahead calls are planned: longer than a commit takes, and so short that nobody waits for it.
pub const LEAD: Duration = Duration::from_millis(100);

/// From when on a call at `at` is planned.
pub fn planned_from(at: Moment) -> Moment {
    at.plus_millis(-i64::try_from(LEAD.as_millis()).unwrap_or(0))
}

/// Stands at the moment that is planned for, in nanoseconds since 1970.
#[derive(Clone, Debug, Default)]
struct Planned(Arc<AtomicU64>);

impl Clock for Planned {
    type Instant = Nanos;
    fn now(&self) -> Nanos {
        Nanos::new(self.0.load(Ordering::Relaxed))
    }
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, Planned, NoOpMiddleware<Nanos>>;

/// One rate: a trunk's, a tenant's or a campaign's.
#[derive(Debug)]
pub struct Pace {
    limiter: Limiter,
    clock: Planned,
    rate: f64,
    /// Nanoseconds from one call to the next.
    period: u64,
    /// How far a late call may be made up for by those that follow: the burst, but for the call itself.
    slack: u64,
    /// When the next call is due, in nanoseconds since 1970.
    next: u64,
}

/// A call counts as on time that is planned so close to its due time: moments are whole milliseconds, and the gates of
/// tenant, trunk and campaign are due at different fractions of one.
const ON_TIME: u64 = 2_000_000;

fn nanos(at: Moment) -> u64 {
    u64::try_from(at.millis()).unwrap_or(0).saturating_mul(1_000_000)
}

impl Pace {
    /// At most 10,000 calls a second.
    pub fn new(per_second: f64) -> Self {
        let rate = per_second.clamp(0.001, 10_000.0);
        let period = Duration::from_secs_f64(1.0 / rate);
        let burst = burst(rate);
        let clock = Planned::default();
        let quota = Quota::with_period(period)
            .unwrap_or_else(|| unreachable!("a period is never zero"))
            .allow_burst(burst);
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        Pace {
            limiter: RateLimiter::direct_with_clock(quota, clock.clone()),
            clock,
            rate,
            period,
            slack: period.saturating_mul(u64::from(burst.get()) - 1),
            next: 0,
        }
    }

    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Another rate from now on. The next call comes not sooner than the old one allowed it, not later than the new one.
    pub fn set_rate(&mut self, per_second: f64) {
        if self.rate != per_second {
            let next = self.next;
            *self = Pace {
                next,
                ..Pace::new(per_second)
            };
        }
    }

    /// When the next call may start; not before `now`.
    pub fn earliest(&self, now: Moment) -> Moment {
        let due = i64::try_from(self.next / 1_000_000).unwrap_or(i64::MAX);
        now.max(Moment::from_millis(due))
    }

    /// Takes the token of a call at `at`, which is at or after [`Pace::earliest`] and never goes back. False: too soon.
    pub fn spend(&mut self, at: Moment) -> bool {
        // A call that is on time counts from its exact due time: rounding to milliseconds must not slow the rate.
        let at = nanos(at);
        let on_time = at.abs_diff(self.next) < ON_TIME;
        let exact = if on_time { self.next } else { at };
        self.clock.0.fetch_max(exact, Ordering::Relaxed);
        match self.limiter.check() {
            Ok(()) => {
                // What is late by no more than the burst is made up for.
                let behind = exact.saturating_add(self.period).saturating_sub(self.slack);
                self.next = self.next.saturating_add(self.period).max(behind);
                true
            }
            Err(not_yet) => {
                let wait = not_yet.wait_time_from(self.clock.now());
                let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
                self.next = self.next.max(exact.saturating_add(wait));
                false
            }
        }
    }
}

/// Calls at once at most: a fiftieth of the rate, at least one.
pub fn burst(rate: f64) -> NonZeroU32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number, at most some hundreds"
    )]
    NonZeroU32::new((rate / 50.0) as u32).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The moments of all calls until `until`, by somebody who wakes up at these delays.
    fn calls(rate: f64, delays: &[i64], until: i64) -> Vec<i64> {
        let (mut pace, mut now, mut calls) = (Pace::new(rate), 1_000_000, Vec::new());
        let mut delays = delays.iter().cycle();
        let lead = i64::try_from(LEAD.as_millis()).unwrap();
        let until = now + until;
        while now < until {
            let at = pace.earliest(Moment::from_millis(now));
            if at.millis() > now + lead {
                now = at.millis() - lead + delays.next().unwrap();
            } else if pace.spend(at) {
                calls.push(at.millis());
            }
        }
        calls
    }

    #[test]
    fn late_wake_ups_cost_no_call() {
        for rate in [0.5, 5.0, 7.0, 50.0, 60.0, 300.0, 500.0, 999.0] {
            let calls = calls(rate, &[0, 3, 40, 1, 90], 20_000);
            // The first one is due at once.
            let achieved = (calls.len() as f64 - 1.0) / 20.1 / rate;
            assert!((0.98..=1.01).contains(&achieved), "{rate}: {achieved}");
        }
    }

    #[test]
    fn a_new_rate_holds_from_the_next_call_on() {
        let mut pace = Pace::new(1.0);
        let now = Moment::from_millis(1_000_000);
        assert!(pace.spend(pace.earliest(now)));
        assert!(!pace.spend(now), "the next is due in a second");
        pace.set_rate(1000.0);
        let next = pace.earliest(now);
        assert!(
            next.millis() >= now.millis() + 1000,
            "what the old rate forbids stays forbidden"
        );
        assert!(pace.spend(next));
        assert!(pace.earliest(next).millis() <= next.millis() + 1);
    }

    proptest! {
        /// However late the wake-ups are: never more in any second than the rate and the burst.
        #[test]
        fn no_second_holds_more_than_rate_and_burst(rate in 0.1f64..2000.0, delays in proptest::collection::vec(0i64..3000, 1..20)) {
            let calls = calls(rate, &delays, 10_000);
            let most = rate + f64::from(burst(rate).get());
            for (n, first) in calls.iter().enumerate() {
                let within = calls[n..].iter().take_while(|at| **at < first + 1000).count();
                // Moments are rounded up to the millisecond.
                prop_assert!((within as f64) <= most.ceil(), "{within} at {rate}");
            }
        }
    }
}
