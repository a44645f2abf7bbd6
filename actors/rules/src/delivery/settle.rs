//! From outcomes of attempts to rows: the deliveries, the log, the endpoint's streak (and with the tenth failure its
//! suspension), its health and its hour's counts. All of it one commit.
use super::{
    machine::{self, Attempt, Verdict},
    report::Report,
};
use crate::{commit::Commit, effect::Effect, endpoint, limits::Limits};
use entities::{
    Result,
    delivery::{Model as Delivery, Origin, Status},
    endpoint_health::Model as Health,
    endpoint_hour::Model as Hour,
    ids::EndpointId,
    values::Moment,
    webhook_endpoint::{Model as Endpoint, Status as EndpointStatus},
};

/// A delivery that was tried, or whose time was over before.
#[derive(Clone, Debug)]
pub struct Tried {
    pub delivery: Delivery,
    pub report: Option<Report>,
}

/// What a lane knows of its endpoint, as of the last commit.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointState {
    /// `None`: deleted.
    pub endpoint: Option<Endpoint>,
    pub health: Health,
}

impl EndpointState {
    pub fn new(id: EndpointId) -> Self {
        EndpointState {
            endpoint: None,
            health: Health {
                endpoint_id: id,
                last_status: 0,
                last_success_at: None,
                paused_until: None,
            },
        }
    }

    pub fn is_active(&self) -> bool {
        self.status() == Some(EndpointStatus::Active)
    }

    fn status(&self) -> Option<EndpointStatus> {
        self.endpoint.as_ref().map(|endpoint| endpoint.status)
    }
}

/// What became of it.
#[derive(Debug)]
pub struct Settled {
    pub deliveries: Vec<Delivery>,
    pub endpoint_state: EndpointState,
    pub commit: Commit,
    pub effects: Vec<Effect>,
}

/// The rules, in the order of the outcomes. Pure.
pub fn settle(
    mut endpoint_state: EndpointState,
    tried: &[Tried],
    limits: &Limits,
    now: Moment,
    jitter: f64,
) -> Result<Settled> {
    let before = endpoint_state.endpoint.clone();
    let mut hour = Hour::empty(endpoint_state.health.endpoint_id, now);
    let (mut commit, mut effects) = (Commit::default(), Vec::new());
    let mut deliveries = Vec::with_capacity(tried.len());
    for (nth, Tried { delivery, report }) in tried.iter().enumerate() {
        // One random number serves a group: spread by its place.
        let jitter = (jitter + nth as f64 * 0.618).fract();
        let after = match report {
            Some(report) => {
                let after = attempted(delivery, report, limits, now, jitter);
                note(&mut endpoint_state.health, &mut hour, report, limits, now);
                let mut log = report.log(&after);
                // The forgetting of answers has gone past this delivery already.
                if report.outcome.verdict() == Verdict::Delivered
                    && now > after.created_at.plus(limits.retention.answers)
                {
                    log.response_body = None;
                }
                commit.changes.attempts.push(log);
                after
            }
            None => machine::expired(delivery.clone()),
        };
        hour.failed += i64::from(after.status == Status::Failed);
        // One whose time was over before it was tried again has no answer of its own.
        let last_status = report.as_ref().map_or(0, |report| report.outcome.status());
        effects.extend(count(&mut endpoint_state, &after, last_status, limits, now)?);
        deliveries.push(after);
    }
    if endpoint_state.status() == Some(EndpointStatus::Suspended) {
        // Suspended while these were under way, or by one of them.
        for delivery in deliveries
            .iter_mut()
            .filter(|delivery| delivery.status == Status::Retrying)
        {
            delivery.status = Status::Held;
            delivery.next_attempt_at = None;
        }
    }
    if endpoint_state.endpoint != before
        && let Some(endpoint) = &mut endpoint_state.endpoint
    {
        endpoint.version += 1;
        commit.changes.endpoints.push(endpoint.clone());
    }
    commit.changes.delivery_updates = deliveries.clone();
    commit.changes.healths.push(endpoint_state.health.clone());
    commit.changes.hours.push(hour);
    Ok(Settled {
        deliveries,
        endpoint_state,
        commit,
        effects,
    })
}

fn attempted(delivery: &Delivery, report: &Report, limits: &Limits, now: Moment, jitter: f64) -> Delivery {
    let attempt = Attempt {
        outcome: report.outcome.clone(),
        started_at: report.started_at,
        jitter,
    };
    machine::attempted(delivery.clone(), &attempt, &limits.schedule, now)
}

fn note(health: &mut Health, hour: &mut Hour, report: &Report, limits: &Limits, now: Moment) {
    let delivered = report.outcome.verdict() == Verdict::Delivered;
    let took = i64::from(report.duration_ms());
    hour.attempts += 1;
    hour.succeeded += i64::from(delivered);
    hour.duration_ms += took;
    hour.longest_ms = hour.longest_ms.max(took);
    health.last_status = report.outcome.status().into();
    if delivered {
        health.last_success_at = Some(now);
    }
    health.paused_until = health
        .paused_until
        .max(machine::pause_until(&report.outcome, &limits.schedule, now))
        .filter(|until| *until > now);
}

/// A live delivery that has ended counts for its endpoint's streak.
fn count(
    endpoint_state: &mut EndpointState,
    after: &Delivery,
    last_status: u16,
    limits: &Limits,
    now: Moment,
) -> Result<Vec<Effect>> {
    let command = match (after.origin, after.status) {
        (Origin::Live, Status::Succeeded) => endpoint::machine::Command::CountSuccess,
        (Origin::Live, Status::Failed) => endpoint::machine::Command::CountFailure {
            last_status,
            suspend_after: limits.suspend_after,
        },
        _ => return Ok(Vec::new()),
    };
    let Some(endpoint) = endpoint_state.endpoint.take() else {
        return Ok(Vec::new());
    };
    let (endpoint, effects) = endpoint::machine::transition(endpoint, command, now)?;
    endpoint_state.endpoint = Some(endpoint);
    Ok(effects)
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
