//! A delivery: pending -> succeeded | retrying | failed; retrying -> the same. Succeeded, failed and cancelled are final.
//!
//! Success is any 2xx. 5xx, 408, 425, 429 and every failure to get an answer are tried again; 3xx (never followed), every
//! other 4xx and a blocked target are refused for good. Source: CONTRACT §6.
use crate::outbound::Failure;
use entities::{
    delivery::{Model as Delivery, Status},
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

/// How one attempt went.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Answered { status: u16 },
    Failed(Failure),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Delivered,
    TryAgain,
    Refused,
}

fn verdict(outcome: &Outcome) -> Verdict {
    match outcome {
        Outcome::Answered { status: 200..=299 } => Verdict::Delivered,
        Outcome::Answered {
            status: 408 | 425 | 429 | 500..=599,
        } => Verdict::TryAgain,
        Outcome::Answered { .. } | Outcome::Failed(Failure::BlockedTarget(_)) => Verdict::Refused,
        Outcome::Failed(
            Failure::Timeout | Failure::Dns(_) | Failure::Connect(_) | Failure::Tls(_) | Failure::BadAnswer(_),
        ) => Verdict::TryAgain,
    }
}

/// The delivery after an attempt that started at `started_at`. Pure; `jitter` is a random number from 0 to 1.
pub fn attempted(
    mut delivery: Delivery,
    outcome: &Outcome,
    schedule: &Schedule,
    started_at: Moment,
    now: Moment,
    jitter: f64,
) -> Delivery {
    if !matches!(delivery.status, Status::Pending | Status::Retrying) {
        return delivery;
    }
    delivery.attempts += 1;
    let first = *delivery.first_attempt_at.get_or_insert(started_at);
    delivery.next_attempt_at = None;
    delivery.status = match verdict(outcome) {
        Verdict::Delivered => Status::Succeeded,
        Verdict::Refused => Status::Failed,
        Verdict::TryAgain => {
            let nth = usize::try_from(delivery.attempts - 1).unwrap_or(usize::MAX);
            // Up to a tenth more, so that what failed together does not come back together.
            let due = schedule
                .delays
                .get(nth)
                .map(|delay| now.plus(delay.mul_f64(1.0 + 0.1 * jitter.clamp(0.0, 1.0))));
            match due.filter(|due| *due <= first.plus(schedule.window)) {
                Some(due) => {
                    delivery.next_attempt_at = Some(due);
                    Status::Retrying
                }
                None => Status::Failed,
            }
        }
    };
    delivery
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
