//! Time. In production two clocks of the machine, of which [`steady`] makes one that never goes back; in tests the same, of
//! clocks that stand still until they are advanced.
//!
//! Advancing it runs every alarm on the way, in order, and waits after each until all is quiet: until no command, commit,
//! delivery or call step is under way. What is under way holds a [`Busy`], so the service needs no polling to be tested.
mod busy;
mod manual;
pub mod steady;
#[cfg(test)]
mod steady_tests;

pub use busy::Busy;

use busy::Activity;
use entities::{
    boxed,
    values::{Moment, Times},
};
use governor::nanos::Nanos;
use manual::{Alarm, Stand};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};
use steady::Steady;
use tokio::sync::oneshot;

/// Where everything gets its time from. Cloning is cheap.
#[derive(Clone)]
pub struct Clock(Arc<Source>);

enum Source {
    Wall {
        started: Instant,
        steady: Mutex<Steady>,
    },
    Manual {
        stand: Mutex<Stand>,
        activity: Arc<Activity>,
    },
}

/// The wall clock has stepped, and nobody knows yet whether it is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// By our time; no two steps have the same.
    pub since: Moment,
    /// By how much the wall clock is off; negative: it was set back.
    pub step_ms: i64,
    /// By our time: when it is believed if it stands still until then.
    pub believed_at: Moment,
}

fn moment(micros: i64) -> Moment {
    Moment::from_millis(micros.div_euclid(1000))
}
fn micros(moment: Moment) -> i64 {
    moment.millis().saturating_mul(1000)
}

impl Clock {
    pub fn wall() -> Self {
        Clock(Arc::new(Source::Wall {
            started: Instant::now(),
            steady: Mutex::new(Steady::new(wall_micros(), 0)),
        }))
    }

    /// A clock that tests advance.
    pub fn manual(now: Moment) -> Self {
        let mono = micros(now);
        let stand = Mutex::new(Stand {
            mono,
            offset: 0,
            steady: Steady::new(mono, mono),
            alarms: BinaryHeap::new(),
            next_number: 0,
        });
        Clock(Arc::new(Source::Manual {
            stand,
            activity: Arc::default(),
        }))
    }

    /// Reads both clocks and hands on our time as it is then, with what the wall clock shows.
    fn reading<T>(&self, look: impl FnOnce(&mut Steady, i64, i64) -> T) -> T {
        match &*self.0 {
            Source::Wall { started, steady } => {
                let mut steady = lock(steady);
                // Read with the lock in hand, so that readings come in their order.
                let (wall, mono) = (wall_micros(), mono_micros(*started));
                steady.follow(wall, mono);
                look(&mut steady, wall, mono)
            }
            Source::Manual { stand, .. } => {
                let mut stand = lock(stand);
                let (wall, mono) = (stand.mono + stand.offset, stand.mono);
                look(stand.follow(), wall, mono)
            }
        }
    }

    /// Our time: never goes back, and does not follow a wall clock of which nobody knows whether it is right.
    pub fn now(&self) -> Moment {
        self.reading(|steady, _, _| moment(steady.ours()))
    }

    /// Our time, and what the wall clock shows.
    pub fn times(&self) -> Times {
        self.reading(|steady, wall, _| Times {
            ours: moment(steady.ours()),
            wall: moment(wall),
            in_doubt: steady.in_doubt().is_some(),
        })
    }

    /// Nobody knows whether the wall clock is right.
    pub fn is_in_doubt(&self) -> bool {
        self.doubt().is_some()
    }

    pub fn doubt(&self) -> Option<Doubt> {
        self.reading(|steady, _, _| {
            let (doubt, believed_at) = (steady.in_doubt()?, steady.believed_at()?);
            Some(Doubt {
                since: moment(doubt.since),
                step_ms: doubt.step / 1000,
                believed_at: moment(believed_at),
            })
        })
    }

    /// The operator says that the wall clock is right, after the step of that moment. Answers whether that was in doubt; one that
    /// has been set again since still is.
    pub fn accept(&self, since: Moment) -> bool {
        self.reading(|steady, wall, mono| {
            steady.follow(wall, mono);
            let is_it = steady.in_doubt().is_some_and(|doubt| moment(doubt.since) == since);
            is_it && steady.accept(wall, mono)
        })
    }

    /// At a start, before anything is stored: the latest moment that the last run is known to have come to.
    pub fn start_after(&self, last: Moment) {
        self.reading(|steady, wall, mono| steady.start_after(micros(last), wall, mono));
    }

    /// Time that has passed since a moment of its own choice, by a clock that nobody can set: for how long something takes.
    pub fn monotonic(&self) -> Duration {
        match &*self.0 {
            Source::Wall { started, .. } => started.elapsed(),
            Source::Manual { stand, .. } => Duration::from_micros(lock(stand).mono.unsigned_abs()),
        }
    }

    /// Unix seconds as the world's clocks show them, for what others compare with theirs.
    pub fn unix_seconds(&self) -> i64 {
        self.times().wall.millis().div_euclid(1000)
    }

    /// Marks work as under way until the answer is dropped.
    pub fn busy(&self) -> Busy {
        match &*self.0 {
            Source::Wall { .. } => Busy(None),
            Source::Manual { activity, .. } => {
                activity.count.fetch_add(1, Ordering::SeqCst);
                Busy(Some(activity.clone()))
            }
        }
    }

    /// Waits for a moment. Hold no `Busy` while waiting; the answer is one, for what the moment brings.
    #[boxed]
    pub async fn sleep_until(&self, at: Moment) -> Busy {
        self.wait(at, Busy(None)).await
    }

    /// The same for something that is under way until its alarm stands, so that a manual clock cannot pass the moment before.
    #[boxed]
    pub async fn busy_until(&self, at: Moment, busy: Busy) -> Busy {
        self.wait(at, busy).await
    }

    /// An alarm of an actor, armed now: what it brings is under way from its moment on.
    pub fn alarm(&self, at: Moment) -> impl Future<Output = Busy> + use<> {
        let (clock, busy) = (self.clone(), self.busy());
        async move { clock.busy_until(at, busy).await }
    }

    async fn wait(&self, at: Moment, before: Busy) -> Busy {
        match &*self.0 {
            Source::Wall { .. } => {
                // In steps, because the wall clock may be set while we wait.
                loop {
                    let rest = at.since(self.now());
                    if rest.is_zero() {
                        return Busy(None);
                    }
                    #[expect(clippy::disallowed_methods, reason = "the one place that sleeps")]
                    tokio::time::sleep(rest.min(Duration::from_secs(30))).await;
                }
            }
            Source::Manual { stand, .. } => {
                let woken = {
                    let mut stand = lock(stand);
                    if stand.now() >= at {
                        drop(stand);
                        return self.busy();
                    }
                    let (wake, woken) = oneshot::channel();
                    stand.next_number += 1;
                    let number = stand.next_number;
                    stand.alarms.push(Reverse(Alarm { at, number, wake }));
                    woken
                };
                drop(before);
                match woken.await {
                    Ok(busy) => busy,
                    // The clock itself is gone: so is everything that waits for it.
                    Err(_) => std::future::pending().await,
                }
            }
        }
    }

    #[boxed]
    pub async fn sleep(&self, duration: Duration) -> Busy {
        self.sleep_until(self.now().plus(duration)).await
    }

    /// Waits a little for something that keeps its own time, as a busy database does. Passes in real time on either clock,
    /// so that what waits here may stay `Busy`.
    #[boxed]
    pub async fn back_off(&self, tries: u32) {
        #[expect(clippy::disallowed_methods, reason = "what is waited for does not know our clock")]
        tokio::time::sleep(Duration::from_millis(50) * tries.min(20)).await;
    }

    /// Leaves that time to others. Passes in real time on either clock, as what they do does.
    #[boxed]
    pub async fn rest(&self, time: Duration) {
        #[expect(clippy::disallowed_methods, reason = "others' work does not know our clock")]
        tokio::time::sleep(time).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn wall_micros() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

fn mono_micros(started: Instant) -> i64 {
    i64::try_from(started.elapsed().as_micros()).unwrap_or(i64::MAX)
}

fn lock<T>(one: &Mutex<T>) -> MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `governor` limiters run on the monotonic clock.
impl governor::clock::Clock for Clock {
    type Instant = Nanos;
    fn now(&self) -> Nanos {
        Nanos::from(self.monotonic())
    }
}

#[cfg(test)]
mod tests;
