//! A clock that stands still until it is advanced: for tests.
use super::{
    Clock, Source,
    busy::{Busy, quiet},
    lock, micros, moment,
    steady::Steady,
};
use entities::{boxed, values::Moment};
use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};
use tokio::sync::oneshot;

impl Clock {
    /// Moves a manual clock, running every alarm on the way, in order. No effect on the wall clock.
    #[boxed]
    pub async fn advance(&self, by: Duration) {
        let Source::Manual { stand, activity } = &*self.0 else {
            return;
        };
        let target = lock(stand).mono + i64::try_from(by.as_micros()).unwrap_or(i64::MAX / 2);
        loop {
            quiet(activity).await;
            let alarm = {
                let mut stand = lock(stand);
                let Some(next) = stand.alarms.peek().map(|Reverse(next)| next.at) else {
                    break;
                };
                if !stand.run_to(next, target) {
                    break;
                }
                let Some(Reverse(alarm)) = stand.alarms.pop() else {
                    break;
                };
                alarm
            };
            // An alarm nobody waits for any more hands the `Busy` back, which drops it.
            let _ = alarm.wake.send(self.busy());
        }
        {
            let mut stand = lock(stand);
            stand.mono = stand.mono.max(target);
            stand.follow();
        }
        quiet(activity).await;
    }

    /// Sets a manual clock, all of it, without running anything: as if it had been there all along.
    pub fn set(&self, now: Moment) {
        if let Source::Manual { stand, .. } = &*self.0 {
            let mut stand = lock(stand);
            (stand.mono, stand.offset) = (micros(now), 0);
            stand.steady = Steady::new(stand.mono, stand.mono);
        }
    }

    /// Sets only the wall clock of a manual clock, ahead or back: what an operator or a time server may do.
    pub fn step_wall(&self, by_ms: i64) {
        if let Source::Manual { stand, .. } = &*self.0 {
            let mut stand = lock(stand);
            stand.offset += by_ms * 1000;
            // Somebody always reads it soon.
            stand.follow();
        }
    }

    /// Waits until nothing is under way. Returns at once on the wall clock.
    #[boxed]
    pub async fn settle(&self) {
        if let Source::Manual { activity, .. } = &*self.0 {
            quiet(activity).await;
        }
    }
}

/// What moves a manual clock, in microseconds.
pub(super) struct Stand {
    /// The monotonic clock: the only one that `advance` moves.
    pub(super) mono: i64,
    /// How far the wall clock was set ahead of it.
    pub(super) offset: i64,
    pub(super) steady: Steady,
    pub(super) alarms: BinaryHeap<Reverse<Alarm>>,
    pub(super) next_number: u64,
}

impl Stand {
    pub(super) fn follow(&mut self) -> &mut Steady {
        self.steady.follow(self.mono + self.offset, self.mono);
        &mut self.steady
    }
    pub(super) fn now(&mut self) -> Moment {
        moment(self.follow().ours())
    }
    /// Runs until our time has come to `at`, or the monotonic clock to `target`. Answers whether it has come there.
    fn run_to(&mut self, at: Moment, target: i64) -> bool {
        // Our time may run slower than the clock below it, or leap.
        while self.now() < at && self.mono < target {
            let short = micros(at) - self.steady.ours();
            self.mono = (self.mono + short.max(1)).min(target);
        }
        self.now() >= at
    }
}

pub(super) struct Alarm {
    pub(super) at: Moment,
    /// Alarms of one moment fire in the order they were set.
    pub(super) number: u64,
    pub(super) wake: oneshot::Sender<Busy>,
}
impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Alarm {}
impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
