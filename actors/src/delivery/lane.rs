//! The delivery actor of one endpoint: keeps its retry queue moving, a few attempts at a time.
//!
//! The rows are the queue; the lane holds a window of what is due (`Queue`). New deliveries come straight from the commit
//! that made them; what does not fit is read from the rows later, as is everything after a restart. How many are sent at
//! once follows what the receiver takes (`Width`). Outcomes are committed in groups (`settle`): those that arrive
//! during one commit share the next.
use super::{
    attempt::{self, Target},
    rows::{self, Due, Settings},
    settling,
};
use crate::{deps::Deps, router::LaneHint};
use actix::prelude::*;
use entities::{
    Error,
    delivery::{self, Model as Delivery, Origin},
    endpoint_health::Model as Health,
    ids::{EndpointId, Owned},
    values::Moment,
    webhook_endpoint::Ordering,
};
use rules::delivery::{
    machine::{self, Attempt, Verdict},
    queue::{Item, Queue, window},
    report::Report,
    settle::{Settled, Standing, Tried},
    width::Width,
};
use runtime::{
    clock::{Busy, Clock},
    registry::{Child, Link, Stop},
};
use std::sync::Arc;
use uuid::Uuid;

/// What its router has to say.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Hinted {
    hint: LaneHint,
    busy: Busy,
}
impl Hinted {
    pub fn new(hint: LaneHint, clock: &Clock) -> Self {
        Hinted {
            hint,
            busy: clock.busy(),
        }
    }
}

/// An attempt is over.
#[derive(Message)]
#[rtype(result = "()")]
struct Attempted {
    delivery: Delivery,
    subject: Uuid,
    /// Which attempt of the lane it was.
    number: u64,
    report: Report,
    busy: Busy,
}

/// How long an idle lane stays, so that a trickle of events does not start it anew for each.
const LINGER: std::time::Duration = std::time::Duration::from_secs(30);
/// While the clock is in doubt the lane looks again after this; it is woken when that is over.
const DOUBT_LOOK: std::time::Duration = std::time::Duration::from_secs(30);
/// Outcomes that may wait for their commit; beyond that nothing more is sent.
const MAX_UNSETTLED: usize = 2048;
/// The same, for each attempt at once: what is not committed is sent again after a crash, so it is kept in proportion.
const UNSETTLED_PER_ATTEMPT: usize = 4;

pub struct Lane {
    deps: Deps,
    link: Link<Self>,
    /// `None`: not loaded, or not active.
    target: Option<Arc<Target>>,
    ordering: Ordering,
    standing: Standing,
    /// The standing has been read; and it is up to date.
    known: bool,
    loaded: bool,
    width: Width,
    queue: Queue,
    in_flight: usize,
    /// Outcomes that wait for the commit under way.
    tried: Vec<Tried>,
    committing: bool,
    /// The last commit failed: nothing more is sent until one stands.
    failing: bool,
    /// Live deliveries that end failed by outcomes not committed yet, since the last success; and was one of them a 410?
    failures: i32,
    gone: bool,
    /// The rows may hold more that is due.
    more_in_rows: bool,
    reading: bool,
    /// The settings changed during that read.
    outdated: bool,
    /// The service ends: nothing new is sent, what was answered is written down.
    stopping: bool,
    /// Deliveries that arrived during that read, and that there were too many of them to keep.
    meanwhile: Vec<Item>,
    missed: bool,
    next_due_at: Option<Moment>,
    /// While idle: when the actor goes.
    rest_at: Option<Moment>,
    alarm: Option<(Moment, SpawnHandle)>,
}

impl Lane {
    pub fn new(deps: Deps, link: Link<Self>) -> Self {
        Lane {
            target: None,
            ordering: Ordering::None,
            standing: Standing::new(link.id.id),
            known: false,
            loaded: false,
            width: Width::new(usize::MAX),
            queue: Queue::default(),
            in_flight: 0,
            tried: Vec::new(),
            committing: false,
            failing: false,
            failures: 0,
            gone: false,
            more_in_rows: true,
            reading: false,
            outdated: false,
            stopping: false,
            meanwhile: Vec::new(),
            missed: false,
            next_due_at: None,
            rest_at: None,
            alarm: None,
            deps,
            link,
        }
    }

    fn arrived(&mut self, new: Vec<Item>) {
        if self.reading {
            // The read under way may have begun before they were there.
            self.meanwhile.extend(new);
            if self.meanwhile.len() > window(self.width.get()) {
                self.meanwhile.clear();
                self.missed = true;
            }
            return;
        }
        self.take(new);
    }

    /// What has just been committed goes straight to the queue, unless older ones wait in the rows: they come first.
    fn take(&mut self, new: Vec<Item>) {
        for item in new {
            let takes = self.target.is_some() && !self.more_in_rows;
            if takes && self.queue.has_room(self.width.get()) {
                self.queue.push(item, self.ordering);
            } else {
                self.more_in_rows = true;
            }
        }
    }

    /// Starts what can be started.
    fn pump(&mut self, busy: &Busy, ctx: &mut Context<Self>) {
        if self.stopping {
            if self.in_flight == 0 && self.tried.is_empty() && !self.committing {
                ctx.stop();
            }
            return;
        }
        if !self.loaded || (self.more_in_rows && self.queue.runs_low(self.width.get())) {
            self.read(busy.clone(), ctx);
        }
        if let Some(target) = self.target.clone()
            && self.loaded
            && self.paused_until().is_none()
        {
            // Nothing more is sent while what was sent cannot be written down.
            while self.in_flight < self.width.get()
                && self.tried.len() < MAX_UNSETTLED.min(UNSETTLED_PER_ATTEMPT * self.width.get())
                && !self.failing
                && !self.may_be_suspended()
                && let Some(item) = self.queue.pop()
            {
                self.begin(&target, item, busy, ctx);
            }
        }
        self.commit(ctx);
        self.rest_or_wait(ctx);
    }

    /// Do outcomes that are not committed yet suspend the endpoint? Then nothing more is sent until it is known.
    fn may_be_suspended(&self) -> bool {
        let streak = self
            .standing
            .endpoint
            .as_ref()
            .map_or(0, |endpoint| endpoint.failure_streak);
        let unsettled = self.committing || !self.tried.is_empty();
        unsettled && (self.gone || streak + self.failures >= self.deps.limits.suspend_after)
    }

    fn paused_until(&self) -> Option<Moment> {
        let now = self.deps.clock.now();
        // A signature with a wrong time would be refused, for good, and count as a failure.
        if self.deps.clock.is_in_doubt() {
            return Some(now.plus(DOUBT_LOOK));
        }
        self.standing.health.paused_until.filter(|until| *until > now)
    }

    fn begin(&mut self, target: &Arc<Target>, (delivery, event): Item, busy: &Busy, ctx: &Context<Self>) {
        let now = self.deps.clock.now();
        if machine::is_expired(&delivery, &self.deps.limits.schedule, now) {
            self.failures += i32::from(delivery.origin == Origin::Live);
            return self.tried.push(Tried { delivery, report: None });
        }
        if delivery.attempts == 0 && delivery.origin == Origin::Live {
            metrics::histogram!("callboard_delivery_lag_seconds").record(now.since(event.created_at).as_secs_f64());
        }
        metrics::histogram!("callboard_delivery_lane_width").record(self.width.get() as f64);
        self.in_flight += 1;
        let number = self.width.start();
        let (deps, lane, target, busy) = (self.deps.clone(), ctx.address(), target.clone(), busy.clone());
        self.deps.runtime.spawn(async move {
            let in_flight = InFlight::count();
            let report = attempt::perform(&deps, &target, &event, delivery.origin).await;
            drop(in_flight);
            lane.do_send(Attempted {
                subject: event.subject_id,
                delivery,
                number,
                report,
                busy,
            });
        });
    }

    fn attempted(&mut self, delivery: Delivery, subject: Uuid, number: u64, report: Report) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match report.outcome.verdict() {
            // A refusal was an answer, and a quick one: no reason to send less at once.
            Verdict::Delivered | Verdict::Refused => self.width.succeeded(),
            Verdict::TryAgain => self.width.failed(number),
        }
        self.foresee(&delivery, &report);
        // At once, not with the commit: those behind it have only to wait for the attempt.
        self.queue.tried(&delivery, subject);
        let pause = machine::pause_until(&report.outcome, &self.deps.limits.schedule, self.deps.clock.now());
        self.standing.health.paused_until = self.standing.health.paused_until.max(pause);
        self.tried.push(Tried {
            delivery,
            report: Some(report),
        });
    }

    /// Counts what a live delivery's outcome will count for, before it is committed.
    fn foresee(&mut self, delivery: &Delivery, report: &Report) {
        let attempt = Attempt {
            outcome: report.outcome.clone(),
            started_at: report.started_at,
            jitter: 1.0,
        };
        let now = self.deps.clock.now();
        let after = machine::attempted(delivery.clone(), &attempt, &self.deps.limits.schedule, now);
        match (delivery.origin, after.status) {
            (Origin::Live, delivery::Status::Succeeded) => self.failures = 0,
            (Origin::Live, delivery::Status::Failed) => {
                self.failures += 1;
                self.gone |= report.outcome.status() == 410;
            }
            _ => {}
        }
    }

    /// Commits the outcomes that have gathered; those that arrive meanwhile share the next commit.
    fn commit(&mut self, ctx: &mut Context<Self>) {
        if self.committing || self.tried.is_empty() || !self.known {
            return;
        }
        self.committing = true;
        let (tried, standing) = (std::mem::take(&mut self.tried), self.standing.clone());
        let (deps, busy) = (self.deps.clone(), self.deps.clock.busy());
        let committed = async move {
            let settled = settling::commit(&deps, standing, &tried).await;
            (settled, tried, busy)
        };
        ctx.spawn(committed.into_actor(self).map(|(settled, tried, busy), lane, ctx| {
            match settled {
                Ok(settled) => lane.settled(settled),
                Err(error) => return lane.unsettled(&error, tried, busy, ctx),
            }
            lane.committing = false;
            lane.commit(ctx);
            lane.pump(&busy, ctx);
        }));
    }

    fn settled(
        &mut self,
        Settled {
            deliveries, standing, ..
        }: Settled,
    ) {
        for delivery in &deliveries {
            self.queue.settled(delivery.id);
            if delivery.next_attempt_at.is_none() {
                metrics::counter!("callboard_deliveries_total", "status" => delivery.status.as_str()).increment(1);
            }
            self.due_at(delivery.next_attempt_at);
        }
        self.failing = false;
        if self.tried.is_empty() {
            (self.failures, self.gone) = (0, false);
        }
        let health = newer(&self.standing.health, standing.health.clone());
        // A reload may have read a newer endpoint than the one that was counted on.
        if rows::version(&standing) >= rows::version(&self.standing) {
            self.standing = standing;
        }
        self.standing.health = health;
        if !self.standing.is_active() {
            self.stop_sending();
        }
    }

    /// What was answered must not be sent again for want of a commit: keep it and try again.
    fn unsettled(&mut self, error: &Error, mut tried: Vec<Tried>, busy: Busy, ctx: &mut Context<Self>) {
        tracing::warn!(%error, outcomes = tried.len(), "outcomes of deliveries could not be committed; trying again");
        self.failing = true;
        tried.append(&mut self.tried);
        self.tried = tried;
        let clock = self.deps.clock.clone();
        let wait = async move { clock.back_off(10).await }.into_actor(self);
        ctx.spawn(wait.map(|(), lane, ctx| {
            let _busy = busy;
            lane.committing = false;
            lane.commit(ctx);
        }));
    }

    /// The endpoint is not active: its rows are held or cancelled.
    fn stop_sending(&mut self) {
        self.target = None;
        self.queue.clear();
        self.next_due_at = None;
    }

    fn due_at(&mut self, at: Option<Moment>) {
        self.next_due_at = match (self.next_due_at, at) {
            (Some(known), Some(new)) => Some(known.min(new)),
            (known, new) => known.or(new),
        };
    }

    /// Reads the settings if they are not known, and what is due.
    fn read(&mut self, busy: Busy, ctx: &mut Context<Self>) {
        if self.reading {
            return;
        }
        self.reading = true;
        let (deps, id, loaded) = (self.deps.clone(), self.link.id, self.loaded);
        let in_hand = self.queue.in_hand().clone();
        let limit = window(self.width.get()) + in_hand.len();
        let read = async move {
            let read = async {
                let settings = if loaded {
                    None
                } else {
                    Some(rows::settings(&deps, id).await?)
                };
                Ok((settings, rows::due(&deps, id.id, limit, &in_hand).await?))
            };
            // A database that vanished without a word must not keep the lane waiting for ever.
            let late = |_| Err(Error::Unavailable("a read took too long".into()));
            (tokio::time::timeout(READ_LIMIT, read).await.unwrap_or_else(late), busy)
        };
        ctx.spawn(read.into_actor(self).map(|(read, busy), lane, ctx| {
            lane.reading = false;
            match read {
                Ok((settings, due)) => lane.take_in(settings, due),
                Err(error) => {
                    tracing::warn!(%error, "a delivery lane could not read its rows; trying again");
                    drop(busy);
                    lane.more_in_rows = true;
                    lane.due_at(Some(lane.deps.clock.now().plus_seconds(1)));
                    return lane.rest_or_wait(ctx);
                }
            }
            lane.pump(&busy, ctx);
        }));
    }

    fn take_in(&mut self, settings: Option<Settings>, due: Due) {
        // The endpoint changed meanwhile: what was read of it and of its queue may be over. Read again.
        if std::mem::take(&mut self.outdated)
            || settings.as_ref().is_some_and(|read| read.is_older_than(&self.standing))
        {
            (self.loaded, self.more_in_rows) = (false, true);
            return;
        }
        if let Some(Settings { target, standing }) = settings {
            (self.loaded, self.known) = (true, true);
            self.target = target.map(Arc::new);
            self.standing = Standing {
                endpoint: standing.endpoint,
                health: newer(&self.standing.health, standing.health),
            };
            if let Some(endpoint) = &self.standing.endpoint {
                self.ordering = endpoint.ordering;
                self.width
                    .set_max(usize::try_from(endpoint.max_concurrency).unwrap_or(1));
            }
        }
        if self.target.is_none() {
            self.stop_sending();
            self.meanwhile.clear();
            self.more_in_rows = false;
            return;
        }
        self.more_in_rows = due.more || std::mem::take(&mut self.missed);
        self.due_at(due.next_due_at);
        for item in due.deliveries {
            self.queue.push(item, self.ordering);
        }
        let meanwhile = std::mem::take(&mut self.meanwhile);
        self.take(meanwhile);
    }

    /// Sets the alarm for the next retry or the pause's end, or goes when there is nothing left.
    fn rest_or_wait(&mut self, ctx: &mut Context<Self>) {
        let now = self.deps.clock.now();
        self.rest_at = if self.is_idle() {
            Some(self.rest_at.unwrap_or(now.plus(LINGER)))
        } else {
            None
        };
        let wake_at = match self.paused_until() {
            Some(until) if !self.is_idle() => Some(until),
            _ => self.next_due_at.or(self.rest_at),
        };
        if self.alarm.as_ref().map(|(at, _)| *at) == wake_at {
            return;
        }
        if let Some((_, alarm)) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let Some(at) = wake_at else { return };
        let clock = self.deps.clock.clone();
        let busy = clock.busy();
        let rings = async move { clock.busy_until(at, busy).await }
            .into_actor(self)
            .map(|busy, lane, ctx| {
                lane.alarm = None;
                lane.rings(&busy, ctx);
            });
        self.alarm = Some((at, ctx.spawn(rings)));
    }

    fn rings(&mut self, busy: &Busy, ctx: &mut Context<Self>) {
        if self.is_idle() {
            return self.link.rest();
        }
        self.next_due_at = None;
        self.more_in_rows = true;
        self.pump(busy, ctx);
    }

    fn is_idle(&self) -> bool {
        let nothing_due = self.queue.is_empty() && self.next_due_at.is_none() && !self.more_in_rows;
        let nothing_under_way = self.in_flight == 0 && self.tried.is_empty() && !self.committing && !self.reading;
        (nothing_due || (self.loaded && self.target.is_none())) && nothing_under_way
    }
}

/// Counts an attempt under way, however it ends.
struct InFlight;
impl InFlight {
    fn count() -> Self {
        metrics::gauge!("callboard_deliveries_in_flight").increment(1.0);
        InFlight
    }
}
impl Drop for InFlight {
    fn drop(&mut self) {
        metrics::gauge!("callboard_deliveries_in_flight").decrement(1.0);
    }
}

/// The newer of what is known and what was read or committed: an attempt since then may have asked for a longer pause.
fn newer(known: &Health, other: Health) -> Health {
    Health {
        last_success_at: known.last_success_at.max(other.last_success_at),
        paused_until: known.paused_until.max(other.paused_until),
        ..other
    }
}

/// A read of the lane's rows, with what there is to put away.
const READ_LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

impl Actor for Lane {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Context<Self>) {
        let busy = self.deps.clock.busy();
        self.pump(&busy, ctx);
    }
}

impl Supervised for Lane {
    fn restarting(&mut self, _: &mut Context<Self>) {
        // Attempts in flight report to a lane that has forgotten them: their deliveries are sent again, as after a crash.
        *self = Lane::new(self.deps.clone(), self.link.clone());
    }
}

impl Child for Lane {
    type Id = Owned<EndpointId>;
    const KIND: &'static str = "lane";
}

impl Handler<Hinted> for Lane {
    type Result = ();
    fn handle(&mut self, Hinted { hint, busy }: Hinted, ctx: &mut Context<Self>) {
        match hint {
            LaneHint::Arrived(new) => self.arrived(new),
            LaneHint::Changed => {
                self.loaded = false;
                self.more_in_rows = true;
                // A read under way may have seen the old ones.
                self.outdated = self.reading;
            }
            LaneHint::Wake => {
                // A lost `Changed` is made good here.
                self.loaded = false;
                self.more_in_rows = true;
                // A read under way may not see what this is about.
                self.missed = self.reading;
            }
        }
        self.pump(&busy, ctx);
    }
}

impl Handler<Attempted> for Lane {
    type Result = ();
    fn handle(&mut self, attempted: Attempted, ctx: &mut Context<Self>) {
        let Attempted {
            delivery,
            subject,
            number,
            report,
            busy,
        } = attempted;
        self.attempted(delivery, subject, number, report);
        self.commit(ctx);
        self.pump(&busy, ctx);
    }
}

impl Handler<Stop> for Lane {
    type Result = ();
    fn handle(&mut self, stop: Stop, ctx: &mut Context<Self>) {
        match stop {
            Stop::Idle if !self.is_idle() => self.link.stay(),
            Stop::Idle => ctx.stop(),
            // What is still in flight when the shutdown's time is over is sent again after the start, as its row says.
            Stop::Shutdown => {
                self.stopping = true;
                self.pump(&Busy::default(), ctx);
            }
        }
    }
}
