//! A moment is asked for where nothing would be heard for too long: while a function works, and while the brain thinks.
use entities::values::Moment;
use futures_util::future::{BoxFuture, FutureExt, pending};
use runtime::clock::Clock;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Of a function: what it asks for is heard within 1.2 s of its beginning, and most functions are faster.
pub const WORKING: Duration = Duration::from_millis(550);
/// Of a brain.
pub const THINKING: Duration = Duration::from_millis(1_500);
/// No sooner than that after the last time.
const AGAIN: Duration = Duration::from_secs(8);

/// Of one talk. Cloning is cheap: the talk has one and its voice a clone, so that what one asks for counts for both.
#[derive(Clone)]
pub struct Moments {
    /// None in a dry run, in which no time passes.
    clock: Option<Clock>,
    last: Arc<Mutex<Option<Moment>>>,
}

impl Moments {
    pub fn new(clock: Option<Clock>) -> Self {
        Moments {
            clock,
            last: Arc::default(),
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<Moment>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That moment, or a later one if it was asked for too short a time before.
    fn no_sooner_than(&self, due: Moment) -> Moment {
        self.last().map_or(due, |last| due.max(last.plus(AGAIN)))
    }

    /// Resolves when nothing has been heard for so long from now on. It is waited for and thrown away as often as one likes. A clock
    /// that is set by hand does not pass while a talk is busy: by such a one nobody is asked to wait in a room.
    pub fn due(&self, quiet: Duration) -> BoxFuture<'static, ()> {
        let Some(clock) = self.clock.clone() else {
            return pending().boxed();
        };
        let moments = self.clone();
        let mut due = self.no_sooner_than(clock.now().plus(quiet));
        async move {
            loop {
                drop(clock.sleep_until(due).await);
                // Somebody else may have asked meanwhile.
                let next = moments.no_sooner_than(due);
                if next == due {
                    return;
                }
                due = next;
            }
        }
        .boxed()
    }

    /// It is asked for now. `false`: it was asked for too short a time ago, and must not be again.
    pub fn ask(&self) -> bool {
        let Some(clock) = &self.clock else { return true };
        let now = clock.now();
        let mut last = self.last();
        if last.is_some_and(|last| now < last.plus(AGAIN)) {
            return false;
        }
        *last = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_moment_is_asked_for_in_time_and_not_over_and_over() {
        let clock = Clock::manual(Moment::from_millis(1_000_000));
        let moments = Moments::new(Some(clock.clone()));
        let mut first = moments.due(WORKING);
        assert!((&mut first).now_or_never().is_none());
        clock.advance(WORKING - Duration::from_millis(1)).await;
        assert!((&mut first).now_or_never().is_none());
        // Time stands still until whoever was woken has heard of it.
        tokio::join!(clock.advance(Duration::from_millis(1)), first);
        assert!(moments.ask());
        let mut second = moments.due(WORKING);
        assert!((&mut second).now_or_never().is_none());
        clock.advance(AGAIN.saturating_sub(Duration::from_millis(1))).await;
        assert!((&mut second).now_or_never().is_none());
        tokio::join!(clock.advance(Duration::from_millis(1)), second);
    }

    /// A voice that is slow asks, and so does the talk whose function is: together no more often than each alone.
    #[tokio::test]
    async fn who_asks_keeps_the_others_waiting() {
        let clock = Clock::manual(Moment::from_millis(1_000_000));
        let moments = Moments::new(Some(clock.clone()));
        let voice = moments.clone();
        let due = tokio::spawn(moments.due(WORKING));
        tokio::task::yield_now().await;
        clock.advance(Duration::from_millis(500)).await;
        assert!(voice.ask());
        assert!(!moments.ask() && !voice.ask());
        clock.advance(Duration::from_millis(7_999)).await;
        assert!(
            !due.is_finished() && !voice.ask(),
            "it was due after half a second, and waited on"
        );
        clock.advance(Duration::from_millis(1)).await;
        due.await.unwrap();
        assert!(moments.ask());
        assert!(!voice.ask());
    }

    #[test]
    fn in_a_dry_run_nobody_waits() {
        let moments = Moments::new(None);
        assert!(moments.due(Duration::ZERO).now_or_never().is_none());
        assert!(moments.ask() && moments.ask());
    }
}
