//! A delivery. Succeeded, failed and cancelled are final.
//!
//! | From | What happens | To |
//! |---|---|---|
//! | pending, retrying | an attempt is answered 2xx | succeeded |
//! | pending, retrying | 5xx, 408, 425, 429, or no answer | retrying, by the plan; failed (`exhausted`, `expired`) when it is over |
//! | pending, retrying | 3xx (never followed), another 4xx, a closed target | failed (`permanent`) |
//! | retrying | its time is over before it is tried again | failed (`expired`) |
//! | pending, retrying | its endpoint is suspended | held; an attempt under way may still end it |
//! | held | it is recovered | pending |
//! | pending, retrying, held | its endpoint is disabled (not held ones) or deleted | cancelled |
//!
//! The last three happen to whole queues, in `entities::delivery`. Source: CONTRACT §6.
use super::failure::Failure;
use entities::{
    delivery::{FailedReason, Model as Delivery, Status},
    values::Moment,
};
use std::time::Duration;

/// The plan of retries.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Waiting time before the 2nd, 3rd, … attempt; one more attempt than entries.
    pub delays: Vec<Duration>,
    /// No attempt starts later than this after the first.
    pub window: Duration,
}
impl Default for Schedule {
    fn default() -> Self {
        let delays = [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 36_000]
            .map(Duration::from_secs)
            .to_vec();
        Schedule {
            delays,
            window: Duration::from_secs(24 * 3600),
        }
    }
}

impl Schedule {
    /// One attempt and no more.
    pub fn once() -> Self {
        Schedule {
            delays: Vec::new(),
            ..Schedule::default()
        }
    }
}

/// How one attempt went.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptOutcome {
    Answered {
        status: u16,
        /// What `Retry-After` asks for.
        retry_after: Option<Duration>,
    },
    Failed(Failure),
}

/// One attempt, as the machine sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub outcome: AttemptOutcome,
    pub started_at: Moment,
    /// A random number from 0 to 1: up to a tenth more waiting, so that what failed together does not come back together.
    pub jitter: f64,
}

/// What an outcome means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    TryAgain,
    Refused,
}

impl AttemptOutcome {
    pub fn verdict(&self) -> Verdict {
        match self {
            AttemptOutcome::Answered { status: 200..=299, .. } => Verdict::Delivered,
            AttemptOutcome::Answered {
                status: 408 | 425 | 429 | 500..=599,
                ..
            } => Verdict::TryAgain,
            AttemptOutcome::Answered { .. } | AttemptOutcome::Failed(Failure::BlockedTarget(_)) => Verdict::Refused,
            AttemptOutcome::Failed(
                Failure::Timeout | Failure::Dns(_) | Failure::Connect(_) | Failure::Tls(_) | Failure::BadAnswer(_),
            ) => Verdict::TryAgain,
        }
    }

    /// The HTTP status; 0 when no answer came.
    pub fn status(&self) -> u16 {
        match self {
            AttemptOutcome::Answered { status, .. } => *status,
            AttemptOutcome::Failed(_) => 0,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            AttemptOutcome::Answered { retry_after, .. } => *retry_after,
            AttemptOutcome::Failed(_) => None,
        }
    }
}

/// The most that a `Retry-After` can put off one delivery, and its whole endpoint.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(6 * 3600);
const MAX_PAUSE: Duration = Duration::from_secs(15 * 60);

/// The delivery after an attempt that ended `now`. Pure.
pub fn attempted(mut delivery: Delivery, attempt: &Attempt, schedule: &Schedule, now: Moment) -> Delivery {
    let held = match delivery.status {
        Status::Pending | Status::Retrying => false,
        // Its endpoint was suspended while it was under way.
        Status::Held => true,
        Status::Succeeded | Status::Failed | Status::Cancelled => return delivery,
    };
    delivery.attempts += 1;
    delivery.first_attempt_at.get_or_insert(attempt.started_at);
    delivery.next_attempt_at = None;
    match attempt.outcome.verdict() {
        Verdict::Delivered => {
            delivery.status = Status::Succeeded;
            delivery
        }
        Verdict::Refused => failed(delivery, FailedReason::Permanent),
        Verdict::TryAgain => match plan(&delivery, attempt, schedule, now) {
            Ok(_) if held => delivery,
            Ok(due) => {
                delivery.status = Status::Retrying;
                delivery.next_attempt_at = Some(due);
                delivery
            }
            Err(reason) => failed(delivery, reason),
        },
    }
}

/// When it is tried again; `Err` says why it is not.
fn plan(delivery: &Delivery, attempt: &Attempt, schedule: &Schedule, now: Moment) -> Result<Moment, FailedReason> {
    let nth = usize::try_from(delivery.attempts - 1).unwrap_or(usize::MAX);
    let delay = schedule.delays.get(nth).ok_or(FailedReason::Exhausted)?;
    let delay = delay.mul_f64(1.0 + 0.1 * attempt.jitter.clamp(0.0, 1.0));
    let asked = attempt.outcome.retry_after().unwrap_or_default().min(MAX_RETRY_AFTER);
    let due = now.plus(delay.max(asked));
    if is_expired(delivery, schedule, due) {
        Err(FailedReason::Expired)
    } else {
        Ok(due)
    }
}

/// Would an attempt at `at` come too late after the first?
pub fn is_expired(delivery: &Delivery, schedule: &Schedule, at: Moment) -> bool {
    delivery
        .first_attempt_at
        .is_some_and(|first| at > first.plus(schedule.window))
}

/// It was not tried again in time: the service was down, or the endpoint paused.
pub fn expired(delivery: Delivery) -> Delivery {
    match delivery.status {
        Status::Pending | Status::Retrying => failed(delivery, FailedReason::Expired),
        Status::Held | Status::Succeeded | Status::Failed | Status::Cancelled => delivery,
    }
}

fn failed(mut delivery: Delivery, reason: FailedReason) -> Delivery {
    delivery.status = Status::Failed;
    delivery.failed_reason = Some(reason);
    delivery.next_attempt_at = None;
    delivery
}

/// Until when the whole endpoint is left alone: after a 429, or when the receiver says `Retry-After`.
pub fn pause_until(outcome: &AttemptOutcome, schedule: &Schedule, now: Moment) -> Option<Moment> {
    let asked = outcome.retry_after();
    if outcome.verdict() != Verdict::TryAgain || (outcome.status() != 429 && asked.is_none()) {
        return None;
    }
    let wait = asked.or(schedule.delays.first().copied()).unwrap_or_default();
    Some(now.plus(wait.min(MAX_PAUSE)))
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
