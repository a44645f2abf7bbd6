//! May a look at the rows be left out? What they ask for changes by commits and with time alone. So where a full look has found
//! nothing at work, nothing comes due for a while, and nothing is committed meanwhile, another would find nothing either.
use entities::values::Moment;
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// In doubt: even where nothing seems to have happened, all rows are looked at so often.
pub const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(300);

/// What the last full look has found.
#[derive(Default)]
pub struct Quiet {
    since: Mutex<Option<Since>>,
    full_looks: AtomicU64,
}

/// Nothing was at work.
#[derive(Clone, Copy)]
struct Since {
    /// As the writer had counted them before the look.
    commits: u64,
    began: Moment,
}

impl Quiet {
    fn lock(&self) -> MutexGuard<'_, Option<Since>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A full look begins: until it has ended well, nothing is known.
    pub(crate) fn look_begins(&self) {
        self.full_looks.fetch_add(1, Ordering::SeqCst);
        *self.lock() = None;
    }

    /// It has found nothing at work, and nothing that comes due before the next one.
    pub(crate) fn begin(&self, commits: u64, began: Moment) {
        *self.lock() = Some(Since { commits, began });
    }

    /// Would another look find nothing either?
    pub(crate) fn holds(&self, commits: u64, now: Moment) -> bool {
        self.lock()
            .is_some_and(|since| since.commits == commits && now < since.began.plus(LOOK_AT_LEAST_EVERY))
    }

    /// Full looks since the start of the process.
    pub fn full_looks(&self) -> u64 {
        self.full_looks.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_for_a_while_and_until_something_is_committed() {
        let at = |seconds| Moment::from_millis(0).plus_seconds(seconds);
        let quiet = Quiet::default();
        assert!(!quiet.holds(0, at(0)), "nobody has looked yet");
        quiet.look_begins();
        quiet.begin(7, at(1_000));
        for (commits, now, holds) in [
            (7, 1_030, true),
            (7, 1_299, true),
            (7, 1_300, false),
            // Our time has leapt.
            (7, 90_000, false),
            // Committed since, or while the look went on.
            (8, 1_030, false),
        ] {
            assert_eq!(quiet.holds(commits, at(now)), holds, "{commits} commits, at {now}");
        }
    }

    #[test]
    fn a_look_that_fails_or_finds_something_leaves_nothing_to_rely_on() {
        let quiet = Quiet::default();
        quiet.begin(7, Moment::from_millis(0));
        quiet.look_begins();
        assert!(!quiet.holds(7, Moment::from_millis(1)));
        assert_eq!(quiet.full_looks(), 1);
    }
}
