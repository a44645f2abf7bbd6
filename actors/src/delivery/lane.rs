//! The delivery actor of one endpoint: keeps its retry queue moving, a few attempts at a time.
//!
//! The rows are the queue; the lane holds a window of what is due. New deliveries come straight from the commit that made
//! them; what does not fit is read from the rows later, as is everything after a restart. Outcomes are committed in groups:
//! those that arrive during one commit share the next.
use super::{
    attempt::{self, Report, Target},
    machine,
};
use crate::{
    clock::{Busy, Clock},
    deps::Deps,
    registry::{Child, Link, Stop},
    supervise::panic_text,
    writer::{Commit, Committed},
};
use actix::prelude::*;
use entities::{
    Error, Result,
    delivery::{self, Model as Delivery},
    delivery_attempt, event,
    ids::{DeliveryId, EndpointId, Owned},
    values::Moment,
    webhook_endpoint as endpoint,
};
use futures_util::FutureExt;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    panic::AssertUnwindSafe,
    sync::Arc,
};

/// Deliveries that have just been committed.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Arrived {
    new: Vec<(Delivery, Committed)>,
    busy: Busy,
}
impl Arrived {
    pub fn new(new: Vec<(Delivery, Committed)>, clock: &Clock) -> Self {
        Arrived {
            new,
            busy: clock.busy(),
        }
    }
}

/// The endpoint's settings have changed.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Reload(Busy);
impl Reload {
    pub fn new(clock: &Clock) -> Self {
        Reload(clock.busy())
    }
}

/// Look at the rows: there may be something due.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Wake(Busy);
impl Wake {
    pub fn new(clock: &Clock) -> Self {
        Wake(clock.busy())
    }
}

/// An attempt is over.
#[derive(Message)]
#[rtype(result = "()")]
struct Attempted {
    delivery: Delivery,
    report: Report,
    busy: Busy,
}

/// How long an idle lane stays, so that a trickle of events does not start it anew for each.
const LINGER: std::time::Duration = std::time::Duration::from_secs(30);
/// Deliveries in hand; the rest of a backlog stays in its rows.
const WINDOW: usize = 512;

pub struct Lane {
    deps: Deps,
    link: Link<Self>,
    /// `None`: not loaded, or gone or disabled.
    target: Option<Arc<Target>>,
    max_concurrency: usize,
    loaded: bool,
    queue: VecDeque<(Delivery, Committed)>,
    /// In the queue, in flight or waiting for their commit: not to be read again.
    in_hand: HashSet<DeliveryId>,
    in_flight: usize,
    /// Outcomes that wait for the commit under way.
    outcomes: Vec<Attempted>,
    committing: bool,
    /// The rows may hold more that is due.
    more_in_rows: bool,
    reading: bool,
    /// The settings changed during that read.
    outdated: bool,
    /// The service ends: nothing new is sent, what was answered is written down.
    stopping: bool,
    /// Deliveries arrived during a read that may not have seen them.
    missed: bool,
    next_due_at: Option<Moment>,
    /// While idle: when the actor goes.
    rest_at: Option<Moment>,
    alarm: Option<(Moment, SpawnHandle)>,
}

impl Lane {
    pub fn new(deps: Deps, link: Link<Self>) -> Self {
        Lane {
            deps,
            link,
            target: None,
            max_concurrency: 1,
            loaded: false,
            queue: VecDeque::new(),
            in_hand: HashSet::new(),
            in_flight: 0,
            outcomes: Vec::new(),
            committing: false,
            more_in_rows: true,
            reading: false,
            outdated: false,
            stopping: false,
            missed: false,
            next_due_at: None,
            rest_at: None,
            alarm: None,
        }
    }

    fn arrived(&mut self, new: Vec<(Delivery, Committed)>) {
        for (delivery, event) in new {
            // Not while older ones wait in the rows: they come first. Nor during a read, which may bring the same ones.
            if self.queue.len() < WINDOW && !self.more_in_rows && !self.reading {
                if self.in_hand.insert(delivery.id) {
                    self.queue.push_back((delivery, event));
                }
            } else {
                self.more_in_rows = true;
                self.missed = self.reading;
            }
        }
    }

    /// Starts what can be started.
    fn pump(&mut self, busy: Busy, ctx: &mut Context<Self>) {
        if self.stopping {
            if self.in_flight == 0 && self.outcomes.is_empty() && !self.committing {
                ctx.stop();
            }
            return;
        }
        if !self.loaded || (self.more_in_rows && self.queue.len() < WINDOW / 2) {
            self.read(busy.clone(), ctx);
        }
        let Some(target) = self.target.clone() else {
            return self.rest_or_wait(ctx);
        };
        // Nothing more is sent while what was sent cannot be written down.
        while self.in_flight < self.max_concurrency
            && self.outcomes.len() < WINDOW
            && let Some((delivery, event)) = self.queue.pop_front()
        {
            self.in_flight += 1;
            self.attempt(target.clone(), delivery, event, busy.clone(), ctx);
        }
        self.rest_or_wait(ctx);
    }

    fn attempt(&self, target: Arc<Target>, delivery: Delivery, event: Committed, busy: Busy, ctx: &Context<Self>) {
        let (deps, lane) = (self.deps.clone(), ctx.address());
        self.deps.runtime.spawn(async move {
            let attempt = AssertUnwindSafe(attempt::perform(&deps, &target, &event))
                .catch_unwind()
                .await;
            // One that panicked must not keep its place in the lane for ever.
            let report = attempt.unwrap_or_else(|panic| Report::of_panic(panic_text(&*panic), deps.clock.now()));
            lane.do_send(Attempted { delivery, report, busy });
        });
    }

    /// Commits the outcomes that have gathered; those that arrive meanwhile share the next commit.
    fn commit(&mut self, ctx: &mut Context<Self>) {
        if self.committing || self.outcomes.is_empty() {
            return;
        }
        self.committing = true;
        let outcomes = std::mem::take(&mut self.outcomes);
        let deps = self.deps.clone();
        let committed = async move {
            let (settled, attempts): (Vec<_>, Vec<_>) = outcomes.iter().map(|outcome| settle(&deps, outcome)).unzip();
            let mut commit = Commit::default();
            commit.changes.delivery_updates = settled.clone();
            commit.changes.attempts = attempts;
            let result = deps.writer.commit(commit).await;
            (result, settled, outcomes)
        };
        ctx.spawn(
            committed
                .into_actor(self)
                .map(|(result, settled, outcomes), lane, ctx| lane.committed(result, settled, outcomes, ctx)),
        );
    }

    fn committed(
        &mut self,
        result: Result<()>,
        settled: Vec<Delivery>,
        mut outcomes: Vec<Attempted>,
        ctx: &mut Context<Self>,
    ) {
        self.committing = false;
        if let Err(error) = result {
            // What was answered must not be sent again for want of a commit: keep it and try again.
            tracing::warn!(%error, outcomes = outcomes.len(), "outcomes of deliveries could not be committed; trying again");
            outcomes.append(&mut self.outcomes);
            self.outcomes = outcomes;
            self.committing = true;
            let clock = self.deps.clock.clone();
            let wait = async move { clock.back_off(10).await }.into_actor(self);
            ctx.spawn(wait.map(|(), lane, ctx| {
                lane.committing = false;
                lane.commit(ctx);
            }));
            return;
        }
        for delivery in &settled {
            self.in_hand.remove(&delivery.id);
            metrics::counter!("callboard_deliveries_total", "status" => status_word(delivery.status))
                .increment(u64::from(delivery.next_attempt_at.is_none()));
            self.due_at(delivery.next_attempt_at);
        }
        self.commit(ctx);
        let busy = outcomes.pop().map(|outcome| outcome.busy).unwrap_or_default();
        self.pump(busy, ctx);
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
        let limit = WINDOW + self.in_hand.len();
        let in_hand = self.in_hand.clone();
        let read = async move {
            let settings = if loaded { None } else { Some(settings(&deps, id).await) };
            let due = due(&deps, id.id, limit, &in_hand).await;
            (settings, due, busy)
        };
        ctx.spawn(read.into_actor(self).map(|(settings, due, busy), lane, ctx| {
            lane.reading = false;
            if let Err(error) = lane.take_in(settings, due) {
                tracing::warn!(%error, "a delivery lane could not read its rows; trying again");
                drop(busy);
                lane.due_at(Some(lane.deps.clock.now().plus_seconds(1)));
                return lane.rest_or_wait(ctx);
            }
            lane.pump(busy, ctx);
        }));
    }

    fn take_in(&mut self, settings: Option<Result<Option<(Target, usize)>>>, due: Result<Due>) -> Result<()> {
        if let Some(settings) = settings {
            let settings = settings?;
            self.loaded = !std::mem::take(&mut self.outdated);
            self.max_concurrency = settings.as_ref().map_or(1, |(_, max)| *max);
            self.target = settings.map(|(target, _)| Arc::new(target));
        }
        let Due {
            deliveries,
            more,
            next_due_at,
        } = due?;
        if self.target.is_none() {
            self.queue.clear();
            self.in_hand.clear();
            self.more_in_rows = false;
            return Ok(());
        }
        self.more_in_rows = more || std::mem::take(&mut self.missed);
        self.due_at(next_due_at);
        for (delivery, event) in deliveries {
            if self.in_hand.insert(delivery.id) {
                self.queue.push_back((delivery, event));
            }
        }
        Ok(())
    }

    /// Sets the alarm for the next retry, or goes when there is nothing left.
    fn rest_or_wait(&mut self, ctx: &mut Context<Self>) {
        let now = self.deps.clock.now();
        self.rest_at = if self.is_idle() {
            Some(self.rest_at.unwrap_or(now.plus(LINGER)))
        } else {
            None
        };
        let wake_at = self.next_due_at.or(self.rest_at);
        if self.alarm.as_ref().map(|(at, _)| *at) == wake_at {
            return;
        }
        if let Some((_, alarm)) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let Some(at) = wake_at else { return };
        let clock = self.deps.clock.clone();
        let rings = async move { clock.sleep_until(at).await }
            .into_actor(self)
            .map(|busy, lane, ctx| {
                lane.alarm = None;
                lane.rings(busy, ctx);
            });
        self.alarm = Some((at, ctx.spawn(rings)));
    }

    fn rings(&mut self, busy: Busy, ctx: &mut Context<Self>) {
        if self.is_idle() {
            return self.link.rest();
        }
        self.next_due_at = None;
        self.more_in_rows = true;
        self.pump(busy, ctx);
    }

    fn is_idle(&self) -> bool {
        let nothing_due = self.queue.is_empty() && self.next_due_at.is_none() && !self.more_in_rows;
        let nothing_under_way = self.in_flight == 0 && self.outcomes.is_empty() && !self.committing && !self.reading;
        (nothing_due || (self.loaded && self.target.is_none())) && nothing_under_way
    }
}

async fn settings(deps: &Deps, id: Owned<EndpointId>) -> Result<Option<(Target, usize)>> {
    match endpoint::load(&deps.db.read, id).await {
        Ok(row) if row.status == endpoint::Status::Active => {
            let target = Target::of(deps, &row)?;
            Ok(Some((target, usize::try_from(row.max_concurrency).unwrap_or(1))))
        }
        Ok(_) | Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

struct Due {
    deliveries: Vec<(Delivery, Committed)>,
    more: bool,
    next_due_at: Option<Moment>,
}

async fn due(deps: &Deps, endpoint: EndpointId, limit: usize, in_hand: &HashSet<DeliveryId>) -> Result<Due> {
    let now = deps.clock.now();
    let rows = delivery::open(&deps.db.read, endpoint, now, limit as u64).await?;
    let more = rows.len() == limit;
    let rows: Vec<_> = rows.into_iter().filter(|row| !in_hand.contains(&row.id)).collect();
    let seqs: Vec<i64> = rows.iter().map(|row| row.event_seq).collect();
    let events = event::of_seqs(&deps.db.read, &seqs).await?;
    let events: HashMap<i64, Committed> = events.into_iter().map(|event| (event.seq, Arc::new(event))).collect();
    let deliveries = rows
        .into_iter()
        .filter_map(|row| events.get(&row.event_seq).cloned().map(|event| (row, event)))
        .collect();
    let next_due_at = delivery::next_due_at(&deps.db.read, endpoint, now).await?;
    Ok(Due {
        deliveries,
        more,
        next_due_at,
    })
}

fn settle(deps: &Deps, Attempted { delivery, report, .. }: &Attempted) -> (Delivery, delivery_attempt::Model) {
    let now = deps.clock.now();
    let settled = machine::attempted(
        delivery.clone(),
        &report.outcome,
        &deps.limits.schedule,
        report.started_at,
        now,
        rand::random(),
    );
    let log = log(&settled, report);
    (settled, log)
}

/// The attempt as it is logged; `delivery` has counted it.
pub fn log(delivery: &Delivery, report: &Report) -> delivery_attempt::Model {
    delivery_attempt::Model {
        delivery_id: delivery.id,
        n: delivery.attempts,
        started_at: report.started_at,
        duration_ms: report.duration_ms,
        status: report.status().into(),
        error_code: report.error_code().map(str::to_owned),
        response_headers: report.response_headers.clone(),
        response_body: report.response_body.clone(),
    }
}

fn status_word(status: delivery::Status) -> &'static str {
    match status {
        delivery::Status::Pending => "pending",
        delivery::Status::Retrying => "retrying",
        delivery::Status::Succeeded => "succeeded",
        delivery::Status::Failed => "failed",
        delivery::Status::Cancelled => "cancelled",
    }
}

impl Actor for Lane {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Context<Self>) {
        let busy = self.deps.clock.busy();
        self.pump(busy, ctx);
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

impl Handler<Arrived> for Lane {
    type Result = ();
    fn handle(&mut self, Arrived { new, busy }: Arrived, ctx: &mut Context<Self>) {
        self.arrived(new);
        self.pump(busy, ctx);
    }
}

impl Handler<Reload> for Lane {
    type Result = ();
    fn handle(&mut self, Reload(busy): Reload, ctx: &mut Context<Self>) {
        self.loaded = false;
        // A read under way may have seen the old ones.
        self.outdated = self.reading;
        self.pump(busy, ctx);
    }
}

impl Handler<Wake> for Lane {
    type Result = ();
    fn handle(&mut self, Wake(busy): Wake, ctx: &mut Context<Self>) {
        // A lost `Reload` is made good here.
        self.loaded = false;
        self.more_in_rows = true;
        self.pump(busy, ctx);
    }
}

impl Handler<Attempted> for Lane {
    type Result = ();
    fn handle(&mut self, outcome: Attempted, ctx: &mut Context<Self>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let busy = outcome.busy.clone();
        self.outcomes.push(outcome);
        self.commit(ctx);
        self.pump(busy, ctx);
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
                self.pump(Busy::default(), ctx);
            }
        }
    }
}
