//! Time. In production the wall clock; in tests a clock that stands still until it is advanced.
//!
//! Advancing it runs every alarm on the way, in order, and waits after each until all is quiet: until no command, commit,
//! delivery or call step is under way. What is under way holds a [`Busy`], so the service needs no polling to be tested.
use entities::values::Moment;
use governor::nanos::Nanos;
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Notify, oneshot};

/// Where everything gets its time from. Cloning is cheap.
#[derive(Clone)]
pub struct Clock(Arc<Source>);

enum Source {
    /// Never goes back: when the wall clock is set back, ours runs on from where it was.
    Wall { started: Instant, steady: Mutex<Steady> },
    Manual {
        stand: Mutex<Stand>,
        activity: Arc<Activity>,
    },
}

/// The wall clock, made never to go back.
#[derive(Default)]
struct Steady {
    last: i64,
    /// Milliseconds that we are ahead of a clock that was set back.
    ahead: i64,
}

impl Steady {
    /// A small step back, as of a clock that is being corrected, is waited out; after a large one we run on from where we were.
    fn follow(&mut self, wall: i64) -> i64 {
        const WAITED_OUT: i64 = 1_000;
        if wall + self.ahead < self.last - WAITED_OUT {
            self.ahead = self.last - wall;
        }
        self.last = self.last.max(wall + self.ahead);
        self.last
    }
}

struct Stand {
    now: Moment,
    alarms: BinaryHeap<Reverse<Alarm>>,
    next_number: u64,
}

struct Alarm {
    at: Moment,
    /// Alarms of one moment fire in the order they were set.
    number: u64,
    wake: oneshot::Sender<Busy>,
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

#[derive(Default)]
struct Activity {
    count: AtomicU64,
    quiet: Notify,
}

/// Held by work under way. Costs nothing on the wall clock.
#[derive(Default)]
#[must_use = "dropping it says that the work is over"]
pub struct Busy(Option<Arc<Activity>>);

impl Clone for Busy {
    fn clone(&self) -> Self {
        if let Some(activity) = &self.0 {
            activity.count.fetch_add(1, Ordering::SeqCst);
        }
        Busy(self.0.clone())
    }
}
impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(activity) = &self.0
            && activity.count.fetch_sub(1, Ordering::SeqCst) == 1
        {
            activity.quiet.notify_waiters();
        }
    }
}

impl Clock {
    pub fn wall() -> Self {
        Clock(Arc::new(Source::Wall {
            started: Instant::now(),
            steady: Mutex::default(),
        }))
    }

    /// A clock that tests advance.
    pub fn manual(now: Moment) -> Self {
        let stand = Mutex::new(Stand {
            now,
            alarms: BinaryHeap::new(),
            next_number: 0,
        });
        Clock(Arc::new(Source::Manual {
            stand,
            activity: Arc::default(),
        }))
    }

    pub fn now(&self) -> Moment {
        match &*self.0 {
            Source::Wall { steady, .. } => {
                let mut steady = steady.lock().unwrap_or_else(PoisonError::into_inner);
                Moment::from_millis(steady.follow(wall_millis()))
            }
            Source::Manual { stand, .. } => lock(stand).now,
        }
    }

    /// Unix seconds as the world's clocks show them, for what others compare with theirs.
    pub fn unix_seconds(&self) -> i64 {
        match &*self.0 {
            Source::Wall { .. } => wall_millis().div_euclid(1000),
            Source::Manual { stand, .. } => lock(stand).now.millis().div_euclid(1000),
        }
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
    pub async fn sleep_until(&self, at: Moment) -> Busy {
        self.wait(at, Busy(None)).await
    }

    /// The same for something that is under way until its alarm stands, so that a manual clock cannot pass the moment before.
    pub async fn busy_until(&self, at: Moment, busy: Busy) -> Busy {
        self.wait(at, busy).await
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
                    if stand.now >= at {
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

    pub async fn sleep(&self, duration: Duration) -> Busy {
        self.sleep_until(self.now().plus(duration)).await
    }

    /// Waits a little for something that keeps its own time, as a busy database does. Passes in real time on either clock,
    /// so that what waits here may stay `Busy`.
    pub async fn back_off(&self, tries: u32) {
        #[expect(clippy::disallowed_methods, reason = "what is waited for does not know our clock")]
        tokio::time::sleep(Duration::from_millis(50) * tries.min(20)).await;
    }

    /// Leaves that time to others. Passes in real time on either clock, as what they do does.
    pub async fn rest(&self, time: Duration) {
        #[expect(clippy::disallowed_methods, reason = "others' work does not know our clock")]
        tokio::time::sleep(time).await;
    }

    /// Moves a manual clock, running every alarm on the way, in order. No effect on the wall clock.
    pub async fn advance(&self, by: Duration) {
        let Source::Manual { stand, activity } = &*self.0 else {
            return;
        };
        let target = lock(stand).now.plus(by);
        loop {
            quiet(activity).await;
            let alarm = {
                let mut stand = lock(stand);
                if stand.alarms.peek().is_none_or(|Reverse(next)| next.at > target) {
                    break;
                }
                let Some(Reverse(alarm)) = stand.alarms.pop() else {
                    break;
                };
                stand.now = stand.now.max(alarm.at);
                alarm
            };
            // An alarm nobody waits for any more hands the `Busy` back, which drops it.
            let _ = alarm.wake.send(self.busy());
        }
        {
            let mut stand = lock(stand);
            stand.now = stand.now.max(target);
        }
        quiet(activity).await;
    }

    /// Sets a manual clock without running anything, backwards too: what an operator or a time server may do.
    pub fn set(&self, now: Moment) {
        if let Source::Manual { stand, .. } = &*self.0 {
            lock(stand).now = now;
        }
    }

    /// Waits until nothing is under way. Returns at once on the wall clock.
    pub async fn settle(&self) {
        if let Source::Manual { activity, .. } = &*self.0 {
            quiet(activity).await;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn wall_millis() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

async fn quiet(activity: &Activity) {
    loop {
        let notified = activity.quiet.notified();
        tokio::pin!(notified);
        // Registered before the look at the counter, so that no wake-up falls between the two.
        notified.as_mut().enable();
        if activity.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        notified.await;
    }
}

fn lock(stand: &Mutex<Stand>) -> MutexGuard<'_, Stand> {
    stand.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `governor` limiters run on our clock.
impl governor::clock::Clock for Clock {
    type Instant = Nanos;
    fn now(&self) -> Nanos {
        match &*self.0 {
            Source::Wall { started, .. } => Nanos::from(started.elapsed()),
            Source::Manual { stand, .. } => Nanos::from(Duration::from_millis(lock(stand).now.millis().unsigned_abs())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_steps_back_does_not_take_us_along() {
        let mut steady = Steady::default();
        let walls = [5_000, 6_000, 5_990, 6_010, 2_000, 2_500, 9_000];
        let seen: Vec<i64> = walls.map(|wall| steady.follow(wall)).to_vec();
        assert_eq!(seen, [5_000, 6_000, 6_000, 6_010, 6_010, 6_510, 13_010]);
    }

    #[tokio::test]
    async fn alarms_fire_in_order_and_each_is_worked_off_before_the_next() {
        let clock = Clock::manual(Moment::from_millis(0));
        let log = Arc::new(Mutex::new(Vec::new()));
        for at in [30, 10, 20] {
            let (clock, log) = (clock.clone(), log.clone());
            tokio::spawn(async move {
                let _busy = clock.sleep_until(Moment::from_millis(at)).await;
                tokio::task::yield_now().await;
                log.lock().unwrap().push((at, clock.now().millis()));
            });
        }
        tokio::task::yield_now().await;
        clock.advance(Duration::from_millis(25)).await;
        assert_eq!(*log.lock().unwrap(), [(10, 10), (20, 20)]);
        assert_eq!(clock.now().millis(), 25);
    }
}
