//! Outcomes that are in no row yet: they gather while a commit is under way, and share the next.
use crate::{
    delivery::{
        machine::{self, Attempt},
        report::Report,
        settle::Tried,
    },
    limits::Limits,
};
use entities::{
    delivery::{Model as Delivery, Origin, Status},
    values::Moment,
};

/// Outcomes that may wait for their commit; beyond that nothing more is sent.
const MAX_UNSETTLED: usize = 2048;
/// The same, for each attempt at once: what is not committed is sent again after a crash, so it is kept in proportion.
const UNSETTLED_PER_ATTEMPT: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Outcomes {
    /// Those that wait for the next commit.
    waiting: Vec<Tried>,
    committing: Committing,
    /// Live deliveries that end failed by outcomes not committed yet, since the last success; and was one of them a 410?
    failures: i32,
    gone: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Committing {
    #[default]
    Idle,
    Running,
    /// The commit failed: after a pause it is tried again, with what has gathered by then.
    BackingOff,
    /// It is tried again: nothing more is sent until it stands.
    Repeated,
}

impl Outcomes {
    pub(super) fn add(&mut self, delivery: Delivery, report: Report, limits: &Limits, now: Moment) {
        self.foresee(&delivery, &report, limits, now);
        self.waiting.push(Tried {
            delivery,
            report: Some(report),
        });
    }

    /// Its time was over before it was tried again.
    pub(super) fn add_expired(&mut self, delivery: Delivery) {
        self.failures += i32::from(delivery.origin == Origin::Live);
        self.waiting.push(Tried { delivery, report: None });
    }

    /// Counts what a live delivery's outcome will count for, before it is committed.
    fn foresee(&mut self, delivery: &Delivery, report: &Report, limits: &Limits, now: Moment) {
        let attempt = Attempt {
            outcome: report.outcome.clone(),
            started_at: report.started_at,
            jitter: 1.0,
        };
        let after = machine::attempted(delivery.clone(), &attempt, &limits.schedule, now);
        match (delivery.origin, after.status) {
            (Origin::Live, Status::Succeeded) => self.failures = 0,
            (Origin::Live, Status::Failed) => {
                self.failures += 1;
                self.gone |= report.outcome.status() == 410;
            }
            _ => {}
        }
    }

    /// What is to be committed now: all that has gathered, unless a commit is under way.
    pub(super) fn gathered(&mut self) -> Option<Vec<Tried>> {
        if self.committing != Committing::Idle || self.waiting.is_empty() {
            return None;
        }
        self.committing = Committing::Running;
        Some(std::mem::take(&mut self.waiting))
    }

    pub(super) fn landed(&mut self) {
        self.committing = Committing::Idle;
        if self.waiting.is_empty() {
            (self.failures, self.gone) = (0, false);
        }
    }

    /// What was answered must not be sent again for want of a commit: it is kept, before what came since.
    pub(super) fn failed(&mut self, mut tried: Vec<Tried>) {
        self.committing = Committing::BackingOff;
        tried.append(&mut self.waiting);
        self.waiting = tried;
    }

    /// The pause after a failure is over.
    pub(super) fn repeat(&mut self) -> Option<Vec<Tried>> {
        if self.committing != Committing::BackingOff {
            return None;
        }
        self.committing = Committing::Repeated;
        Some(std::mem::take(&mut self.waiting))
    }

    /// Is nothing left to commit, and no commit under way?
    pub(super) fn are_settled(&self) -> bool {
        self.waiting.is_empty() && self.committing == Committing::Idle
    }

    pub(super) fn are_too_many(&self, concurrency: usize) -> bool {
        self.waiting.len() >= MAX_UNSETTLED.min(UNSETTLED_PER_ATTEMPT * concurrency)
    }

    /// The last commit failed: until one stands.
    pub(super) fn are_failing(&self) -> bool {
        match self.committing {
            Committing::Idle | Committing::Running => false,
            Committing::BackingOff | Committing::Repeated => true,
        }
    }

    /// Do they suspend an endpoint with that streak, once they are committed?
    pub(super) fn may_suspend(&self, streak: i32, suspend_after: i32) -> bool {
        !self.are_settled() && (self.gone || streak + self.failures >= suspend_after)
    }

    #[cfg(test)]
    pub(super) fn shown(&self) -> (usize, Committing) {
        (self.waiting.len(), self.committing)
    }
}
