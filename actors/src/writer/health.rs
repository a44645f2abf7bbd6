//! Do commits stand? Asked by `/readyz`, so that whoever spreads requests finds out before their senders do.
use entities::Error;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// A commit that takes longer has stalled: a disk or a server that keeps everybody waiting.
const STALLED: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Well,
    /// A commit has been under way for longer than 5 s.
    Stalled,
    /// The last one failed, and none has stood since. Why, for the operator.
    Failing(String),
}

#[derive(Default)]
pub(super) struct Vitals(Mutex<State>);

#[derive(Default)]
struct State {
    under_way_since: Option<Instant>,
    failure: Option<String>,
}

impl Vitals {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begun(&self) {
        self.lock().under_way_since = Some(Instant::now());
    }

    pub fn stood(&self) {
        *self.lock() = State::default();
    }

    /// A rule said no: the database has answered.
    pub fn refused(&self) {
        self.lock().under_way_since = None;
    }

    pub fn failed(&self, error: &Error) {
        let mut state = self.lock();
        state.under_way_since = None;
        state.failure = Some(error.to_string());
    }

    pub fn is_failing(&self) -> bool {
        self.lock().failure.is_some()
    }

    pub fn health(&self) -> Health {
        let state = self.lock();
        match (&state.failure, state.under_way_since) {
            (Some(why), _) => Health::Failing(why.clone()),
            (None, Some(since)) if since.elapsed() > STALLED => Health::Stalled,
            (None, _) => Health::Well,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_stands_ends_a_failure_and_a_refusal_does_not() {
        let vitals = Vitals::default();
        assert_eq!(vitals.health(), Health::Well);
        vitals.begun();
        let full = Error::Unavailable("disk is full".into());
        vitals.failed(&full);
        let failing = Health::Failing(full.to_string());
        assert_eq!(vitals.health(), failing);
        vitals.begun();
        vitals.refused();
        assert_eq!(
            vitals.health(),
            failing,
            "a rule that says no shows nothing of the disk"
        );
        vitals.begun();
        vitals.stood();
        assert_eq!(vitals.health(), Health::Well);
    }
}
