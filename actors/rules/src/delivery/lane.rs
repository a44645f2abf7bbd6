//! A lane: deliveries on their way to one endpoint, a few attempts at a time. Pure: what it hears is a [`LaneEvent`], what is
//! then to be done a [`LaneAct`].
//!
//! It is several small machines that move beside each other, each with a state of its own:
//!
//! | What | Its states |
//! |---|---|
//! | the endpoint's settings (`Known`) | nothing -> current <-> outdated. Nothing is begun unless they are current |
//! | the rows behind the queue (`Rows`) | more -> reading -> drained or more; drained -> more when something falls due or has no room |
//! | what is heard during a read (`Meanwhile`) | arrived -> missed -> outdated: it adds to the read, asks for another, or voids it |
//! | outcomes (`Outcomes`) | gathering; idle -> running -> idle, or after a failure backing off -> repeated |
//! | the lane itself (`Life`) | running -> stopping |
//!
//! Whatever is heard, the lane then goes on (`pump`): it reads when its queue runs low, begins as many attempts as it may,
//! commits what was answered, and says when it wants to be woken. All that it holds is a copy: what a crash takes from it stands
//! in the rows.
mod intake;
mod known;
mod message;
mod outcomes;

pub use message::{Attempted, Begin, Due, LaneAct, LaneEvent, LaneSettings, ReadRows};

use super::{
    concurrency::AdaptiveConcurrency,
    machine::{self, Verdict},
    queue::Queue,
    settle::EndpointState,
};
use crate::limits::Limits;
use entities::{
    delivery::Model as Delivery,
    ids::EndpointId,
    values::{Moment, Times},
};
use intake::Rows;
use known::{Known, newer, version};
use outcomes::Outcomes;
use std::time::Duration;

/// How long an idle lane stays, so that a trickle of events does not start it anew for each.
const LINGER: Duration = Duration::from_secs(30);
/// While the clock is in doubt the lane looks again after this; it is woken when that is over.
const DOUBT_LOOK: Duration = Duration::from_secs(30);

/// `T` is what an attempt needs to know of its receiver; the lane only hands it on.
pub struct Lane<T> {
    /// As of the last read or commit.
    endpoint_state: EndpointState,
    known: Known<T>,
    rows: Rows,
    queue: Queue,
    concurrency: AdaptiveConcurrency,
    in_flight: usize,
    outcomes: Outcomes,
    next_due_at: Option<Moment>,
    /// While idle: when the lane goes.
    rest_at: Option<Moment>,
    /// What was last asked for.
    timer: Option<Moment>,
    life: Life,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Running,
    /// The service ends: nothing new is begun, what was answered is written down.
    Stopping,
}

impl<T: Clone> Lane<T> {
    pub fn new(endpoint: EndpointId) -> Self {
        Lane {
            endpoint_state: EndpointState::new(endpoint),
            known: Known::Nothing,
            rows: Rows::More,
            queue: Queue::default(),
            concurrency: AdaptiveConcurrency::new(usize::MAX),
            in_flight: 0,
            outcomes: Outcomes::default(),
            next_due_at: None,
            rest_at: None,
            timer: None,
            life: Life::Running,
        }
    }

    /// The whole life of a lane. The acts are to be done in this order.
    pub fn on(&mut self, event: LaneEvent<T>, times: Times, limits: &Limits) -> Vec<LaneAct<T>> {
        let (now, mut acts) = (times.ours, Vec::new());
        match event {
            LaneEvent::Started => {}
            LaneEvent::Arrived(new) => self.arrived(new),
            LaneEvent::Changed => self.changed(),
            LaneEvent::Woken => self.woken(),
            LaneEvent::Read { settings, due } => self.take_in(settings, due),
            LaneEvent::ReadFailed => {
                self.read_failed(now);
                // Not at once again.
                self.rest_or_wait(times, &mut acts);
                return acts;
            }
            LaneEvent::Attempted(attempted) => {
                self.attempted(attempted, now, limits);
                self.commit(&mut acts);
            }
            LaneEvent::Committed {
                deliveries,
                endpoint_state,
            } => {
                self.settled(&deliveries, endpoint_state);
                self.commit(&mut acts);
            }
            LaneEvent::CommitFailed(tried) => {
                self.outcomes.failed(tried);
                return vec![LaneAct::BackOff];
            }
            LaneEvent::BackedOff => return self.outcomes.repeat().map(LaneAct::Commit).into_iter().collect(),
            LaneEvent::Rang => {
                self.timer = None;
                if self.is_idle() {
                    return vec![LaneAct::Rest];
                }
                self.look_again();
            }
            LaneEvent::MayGo if self.is_idle() => return vec![LaneAct::Stop],
            LaneEvent::MayGo => return vec![LaneAct::Stay],
            LaneEvent::Shutdown => self.life = Life::Stopping,
        }
        self.pump(times, limits, &mut acts);
        acts
    }

    /// What outcomes are counted on.
    pub fn endpoint_state(&self) -> &EndpointState {
        &self.endpoint_state
    }

    /// Attempts at once.
    pub fn concurrency(&self) -> usize {
        self.concurrency.get()
    }

    /// Goes on with whatever can go on.
    fn pump(&mut self, times: Times, limits: &Limits, acts: &mut Vec<LaneAct<T>>) {
        if self.life == Life::Stopping {
            if self.in_flight == 0 && self.outcomes.are_settled() {
                acts.push(LaneAct::Stop);
            }
            return;
        }
        let runs_low = matches!(self.rows, Rows::More) && self.queue.runs_low(self.concurrency.get());
        if runs_low || !self.known.is_current() {
            self.read(times.ours, acts);
        }
        if self.paused_until(times).is_none() {
            self.begin(times.ours, limits, acts);
        }
        self.commit(acts);
        self.rest_or_wait(times, acts);
    }

    fn begin(&mut self, now: Moment, limits: &Limits, acts: &mut Vec<LaneAct<T>>) {
        while self.may_begin(limits)
            && let Known::Current(Some(receiver)) = &self.known
            && let Some((delivery, event)) = self.queue.pop()
        {
            if machine::is_expired(&delivery, &limits.schedule, now) {
                self.outcomes.add_expired(delivery);
                continue;
            }
            self.in_flight += 1;
            acts.push(LaneAct::Begin(Begin {
                target: receiver.target.clone(),
                delivery,
                event,
                number: self.concurrency.start(),
            }));
        }
    }

    /// Nothing more is sent while what was sent cannot be written down, nor while outcomes that are not committed yet may
    /// suspend the endpoint.
    fn may_begin(&self, limits: &Limits) -> bool {
        let endpoint = self.endpoint_state.endpoint.as_ref();
        let streak = endpoint.map_or(0, |endpoint| endpoint.failure_streak);
        self.in_flight < self.concurrency.get()
            && !self.outcomes.are_too_many(self.concurrency.get())
            && !self.outcomes.are_failing()
            && !self.outcomes.may_suspend(streak, limits.suspend_after)
    }

    fn paused_until(&self, times: Times) -> Option<Moment> {
        // A signature with a wrong time would be refused, for good, and count as a failure.
        if times.in_doubt {
            return Some(times.ours.plus(DOUBT_LOOK));
        }
        self.endpoint_state
            .health
            .paused_until
            .filter(|until| *until > times.ours)
    }

    fn attempted(&mut self, attempted: Attempted, now: Moment, limits: &Limits) {
        let Attempted {
            delivery,
            subject,
            number,
            report,
        } = attempted;
        // One that began before a restart is not counted any more.
        self.in_flight = self.in_flight.saturating_sub(1);
        match report.outcome.verdict() {
            // A refusal was an answer, and a quick one: no reason to send less at once.
            Verdict::Delivered | Verdict::Refused => self.concurrency.succeeded(),
            Verdict::TryAgain => self.concurrency.failed(number),
        }
        // At once, not with the commit: those behind it have only to wait for the attempt.
        self.queue.tried(&delivery, subject);
        let pause = machine::pause_until(&report.outcome, &limits.schedule, now);
        self.endpoint_state.health.paused_until = self.endpoint_state.health.paused_until.max(pause);
        self.outcomes.add(delivery, report, limits, now);
    }

    /// Commits the outcomes that have gathered; those that arrive meanwhile share the next commit.
    fn commit(&mut self, acts: &mut Vec<LaneAct<T>>) {
        if !matches!(self.known, Known::Nothing) {
            acts.extend(self.outcomes.gathered().map(LaneAct::Commit));
        }
    }

    fn settled(&mut self, deliveries: &[Delivery], EndpointState { endpoint, health }: EndpointState) {
        for delivery in deliveries {
            self.queue.settled(delivery.id);
            self.due_at(delivery.next_attempt_at);
        }
        self.outcomes.landed();
        // A reload may have read a newer endpoint than the one that was counted on.
        if version(endpoint.as_ref()) >= version(self.endpoint_state.endpoint.as_ref()) {
            self.endpoint_state.endpoint = endpoint;
        }
        self.endpoint_state.health = newer(&self.endpoint_state.health, health);
        if !self.endpoint_state.is_active() {
            self.stop_sending();
        }
    }

    fn due_at(&mut self, at: Option<Moment>) {
        self.next_due_at = match (self.next_due_at, at) {
            (Some(known), Some(new)) => Some(known.min(new)),
            (known, new) => known.or(new),
        };
    }

    /// Asks to be woken for the next retry or at the pause's end, or to be let go when there is nothing left.
    fn rest_or_wait(&mut self, times: Times, acts: &mut Vec<LaneAct<T>>) {
        let is_idle = self.is_idle();
        let rest_at = self.rest_at.unwrap_or(times.ours.plus(LINGER));
        self.rest_at = is_idle.then_some(rest_at);
        let due_at = match self.rows {
            // What falls due during a read is looked for after it.
            Rows::Reading(_) => self.next_due_at.filter(|at| *at > times.ours),
            Rows::Drained | Rows::More => self.next_due_at,
        };
        let wake_at = match self.paused_until(times) {
            Some(until) if !is_idle => Some(until),
            Some(_) | None => due_at.or(self.rest_at),
        };
        if self.timer != wake_at {
            self.timer = wake_at;
            acts.push(LaneAct::SetTimer(wake_at));
        }
    }

    fn is_idle(&self) -> bool {
        let nothing_due = matches!(self.rows, Rows::Drained) && self.queue.is_empty() && self.next_due_at.is_none();
        let nothing_under_way = self.in_flight == 0 && self.outcomes.are_settled() && !self.is_reading();
        (nothing_due || matches!(self.known, Known::Current(None))) && nothing_under_way
    }
}

#[cfg(test)]
#[path = "lane_simulation_tests.rs"]
mod simulation;
#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
