//! A moment is asked for where nothing would be heard for too long: while a function works, and while the brain thinks.
use entities::values::Moment;
use futures_util::future::{BoxFuture, FutureExt, pending};
use runtime::clock::Clock;
use std::time::Duration;

/// Of a function: what it asks for is heard within 1.2 s of its beginning, and most functions are faster.
pub const WORKING: Duration = Duration::from_millis(600);
/// Of a brain.
pub const THINKING: Duration = Duration::from_millis(1_500);
/// No sooner than that after the last time.
const AGAIN: Duration = Duration::from_secs(8);

/// Of one talk.
pub struct Moments {
    /// None in a dry run, in which no time passes.
    clock: Option<Clock>,
    last: Option<Moment>,
}

impl Moments {
    pub fn new(clock: Option<Clock>) -> Self {
        Moments { clock, last: None }
    }

    /// Resolves when nothing has been heard for so long from now on. It is waited for and thrown away as often as one likes. A clock
    /// that is set by hand does not pass while a talk is busy: by such a one nobody is asked to wait in a room.
    pub fn due(&self, quiet: Duration) -> BoxFuture<'static, ()> {
        let Some(clock) = self.clock.clone() else {
            return pending().boxed();
        };
        let due = clock.now().plus(quiet);
        let due = self.last.map_or(due, |last| due.max(last.plus(AGAIN)));
        async move { drop(clock.sleep_until(due).await) }.boxed()
    }

    /// It is asked for now.
    pub fn ask(&mut self) {
        self.last = self.clock.as_ref().map(Clock::now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_moment_is_asked_for_in_time_and_not_over_and_over() {
        let clock = Clock::manual(Moment::from_millis(1_000_000));
        let mut moments = Moments::new(Some(clock.clone()));
        let mut first = moments.due(WORKING);
        assert!((&mut first).now_or_never().is_none());
        clock.advance(Duration::from_millis(599)).await;
        assert!((&mut first).now_or_never().is_none());
        // Time stands still until whoever was woken has heard of it.
        tokio::join!(clock.advance(Duration::from_millis(1)), first);
        moments.ask();
        let mut second = moments.due(WORKING);
        assert!((&mut second).now_or_never().is_none());
        clock.advance(AGAIN.saturating_sub(Duration::from_millis(1))).await;
        assert!((&mut second).now_or_never().is_none());
        tokio::join!(clock.advance(Duration::from_millis(1)), second);
    }

    #[test]
    fn in_a_dry_run_nobody_waits() {
        assert!(Moments::new(None).due(Duration::ZERO).now_or_never().is_none());
    }
}
