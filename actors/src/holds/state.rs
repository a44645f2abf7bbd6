//! What keeps everything from leaving for people, as far as it is known.
use entities::values::Moment;
use rules::dispatch::limiting::LimitingFactor;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why nothing leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The operator has paused dispatch.
    Operator,
    /// The wall clock is in doubt: nobody can say whose hours are open.
    Clock,
}

impl Hold {
    /// For those who ask that something is sent at once.
    pub(super) fn why(self) -> &'static str {
        match self {
            Hold::Operator => "the operator has paused all calls and messages; try again later, or set a time for it",
            Hold::Clock => {
                "the service's clock is in doubt, so nothing is dialled now; try again in a few minutes, or set a time for it"
            }
        }
    }
}

impl From<Hold> for LimitingFactor {
    fn from(hold: Hold) -> Self {
        match hold {
            Hold::Operator => LimitingFactor::OperatorPause,
            Hold::Clock => LimitingFactor::Clock,
        }
    }
}

/// What is known of the pause, and what was told of both.
#[derive(Default)]
pub struct Holds(Mutex<Known>);

#[derive(Default)]
pub struct Known {
    pub(super) paused_since: Option<Moment>,
    pub(super) told: Seen,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub(super) paused_since: Option<Moment>,
    pub(super) in_doubt_since: Option<Moment>,
}

impl Seen {
    pub(super) fn holds(self) -> bool {
        self != Seen::default()
    }
}

impl Holds {
    pub(super) fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As of the last look.
    pub fn paused_since(&self) -> Option<Moment> {
        self.lock().paused_since
    }
}
