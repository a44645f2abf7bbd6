//! What is recorded of one line: when it began, when it ended, and whether its sound is wanted.
use super::failure::Unrecorded;
use crate::sound::HEARING;
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

/// Told once, why nothing more is recorded.
pub type Told = Box<dyn Fn(Unrecorded) + Send + Sync>;

pub struct Line {
    pub(super) name: String,
    began: Instant,
    /// The place beyond which nothing is kept.
    pub(super) most: u64,
    /// The place at which it ended; `GOES_ON` before.
    ended: AtomicU64,
    /// Nothing more of it is written.
    pub(super) is_over: AtomicBool,
    failure: Mutex<Option<Unrecorded>>,
    told: Told,
}

const GOES_ON: u64 = u64::MAX;

impl Line {
    pub(super) fn new(name: &str, most_seconds: u64, told: Told) -> Self {
        Line {
            name: name.to_owned(),
            began: Instant::now(),
            most: most_seconds.saturating_mul(HEARING.into()),
            ended: AtomicU64::new(GOES_ON),
            is_over: AtomicBool::new(false),
            failure: Mutex::default(),
            told,
        }
    }

    /// The place of that moment.
    pub(super) fn place(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.began).as_micros();
        u64::try_from(since * u128::from(HEARING) / 1_000_000).unwrap_or(u64::MAX)
    }

    /// Ends it there, unless it has ended.
    pub(super) fn end(&self, at: Instant) {
        let place = self.place(at).min(self.most);
        // Only the first one counts.
        let _ = self
            .ended
            .compare_exchange(GOES_ON, place, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The place of its end.
    pub(super) fn length(&self) -> u64 {
        self.ended.load(Ordering::Acquire).min(self.most)
    }

    pub(super) fn takes_sound(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed) && self.ended.load(Ordering::Relaxed) == GOES_ON
    }

    /// The first failure counts, and can be read when it is told.
    pub(super) fn fail(&self, why: Unrecorded) {
        self.is_over.store(true, Ordering::Relaxed);
        let known = {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            let known = *failure;
            *failure = Some(known.unwrap_or(why));
            known
        };
        if known.is_none() {
            (self.told)(why);
        }
    }

    pub(super) fn failure(&self) -> Option<Unrecorded> {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
