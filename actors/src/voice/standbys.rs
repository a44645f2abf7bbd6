//! Messages that stand ready for people whom no agent takes in time: those that are there, and those that are being made.
use adapters::recording::messages::{MessageKey, Messages};
use entities::{ids::TenantId, values::Moment};
use runtime::{bulkhead::Bulkhead, job::Running};
use std::{
    collections::HashMap,
    path::Path,
    sync::{Mutex, PoisonError},
};
use tokio::sync::Semaphore;

/// Of one workspace, and of all, that wait or are being made; a further one is made ready by the next call.
const WAITING: (usize, usize) = (4, 32);
/// That are made at once.
const AT_ONCE: usize = 4;
/// That are made of one workspace in a day of UTC: each costs a request to the provider of voices, and a file.
const MOST_OF_DAY: usize = 200;
const DAY_MS: i64 = 24 * 3_600_000;

pub struct Standbys {
    pub(super) messages: Messages,
    pub(super) making: Running<MessageKey>,
    pub(super) waiting: Bulkhead,
    pub(super) at_once: Semaphore,
    /// How many were made in which day, counted from 1970.
    made: Mutex<HashMap<TenantId, (i64, usize)>>,
}

impl Standbys {
    /// `spools`: the folder of spools; theirs is beside it.
    pub fn beside(spools: &Path) -> Self {
        Standbys {
            messages: Messages::beside(spools),
            making: Running::default(),
            waiting: Bulkhead::new(WAITING.0, WAITING.1),
            at_once: Semaphore::new(AT_ONCE),
            made: Mutex::default(),
        }
    }

    /// May one more be made today? Then it counts. A clock that is set back begins no day anew.
    pub(super) fn may_make(&self, tenant: TenantId, now: Moment) -> bool {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let today = now.millis().div_euclid(DAY_MS);
        let (day, count) = made.entry(tenant).or_default();
        if today > *day {
            (*day, *count) = (today, 0);
        }
        let is_free = *count < MOST_OF_DAY;
        *count += usize::from(is_free);
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn no_workspace_has_more_made_in_a_day_than_it_may() {
        let standbys = Standbys::beside(Path::new("spool"));
        let (one, other) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let (today, tomorrow) = (Moment::from_millis(5 * DAY_MS), Moment::from_millis(6 * DAY_MS));
        let made = (0..2 * MOST_OF_DAY).filter(|_| standbys.may_make(one, today)).count();
        assert_eq!(made, MOST_OF_DAY);
        assert!(standbys.may_make(other, today));
        assert!(!standbys.may_make(one, Moment::from_millis(0)));
        assert!(standbys.may_make(one, tomorrow));
    }
}
