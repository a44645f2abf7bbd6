//! The delivery actor of one endpoint: the shell around `rules::delivery::lane`, which decides everything.
//!
//! The rows are the queue; the lane holds a window of what is due (`Queue`). New deliveries come straight from the commit
//! that made them; what does not fit is read from the rows later, as is everything after a restart. How many are sent at
//! once follows what the receiver takes (`Width`). Outcomes are committed in groups (`settle`): those that arrive
//! during one commit share the next.
use super::{
    attempt::{self, Target, Which},
    rows, settling,
};
use crate::{deps::Deps, router::LaneHint};
use actix::prelude::*;
use entities::{
    Error,
    delivery::{Model as Delivery, Origin},
    ids::{EndpointId, TenantScoped},
    values::Moment,
};
use rules::delivery::{
    lane::{self, Attempted, Begin, LaneAct, LaneEvent, ReadRows},
    settle::{Settled, Tried},
};
use runtime::{
    clock::{Busy, Clock},
    registry::{Child, Link, Stop},
};
use std::{sync::Arc, time::Duration};

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
struct Ended {
    attempted: Attempted,
    busy: Busy,
}

/// A read of the lane's rows, with what there is to put away.
const READ_LIMIT: Duration = Duration::from_secs(60);

pub struct Lane {
    deps: Deps,
    link: Link<Self>,
    state: lane::Lane<Arc<Target>>,
    alarm: Option<SpawnHandle>,
}

impl Lane {
    pub fn new(deps: Deps, link: Link<Self>) -> Self {
        Lane {
            state: lane::Lane::new(link.id.id),
            alarm: None,
            deps,
            link,
        }
    }

    /// Tells the lane, and does what it decides.
    fn hear(&mut self, event: LaneEvent<Arc<Target>>, busy: &Busy, ctx: &mut Context<Self>) {
        let times = self.deps.clock.times();
        let acts = self.state.on(event, times, &self.deps.limits);
        for act in acts {
            match act {
                LaneAct::Read(what) => self.read(what, busy.clone(), ctx),
                LaneAct::Begin(begin) => self.begin(begin, busy.clone(), ctx),
                LaneAct::Commit(tried) => self.commit(tried, ctx),
                LaneAct::BackOff => self.back_off(busy.clone(), ctx),
                LaneAct::SetTimer(at) => self.set_alarm(at, ctx),
                LaneAct::Rest => self.link.rest(),
                LaneAct::Stay => self.link.stay(),
                LaneAct::Stop => ctx.stop(),
            }
        }
    }

    fn read(&self, what: ReadRows, busy: Busy, ctx: &mut Context<Self>) {
        let (deps, id) = (self.deps.clone(), self.link.id);
        let read = async move {
            let read = async {
                let settings = if what.with_settings {
                    Some(rows::settings(&deps, id).await?)
                } else {
                    None
                };
                Ok((settings, rows::due(&deps, id, what.limit, &what.in_hand).await?))
            };
            // A database that vanished without a word must not keep the lane waiting for ever.
            let late = |_| Err(Error::Unavailable("a read took too long".into()));
            (tokio::time::timeout(READ_LIMIT, read).await.unwrap_or_else(late), busy)
        };
        ctx.spawn(read.into_actor(self).map(|(read, busy), lane, ctx| {
            let event = match read {
                Ok((settings, due)) => LaneEvent::Read { settings, due },
                Err(error) => {
                    tracing::warn!(%error, "a delivery lane could not read its rows; trying again");
                    LaneEvent::ReadFailed
                }
            };
            lane.hear(event, &busy, ctx);
        }));
    }

    fn begin(&self, begin: Begin<Arc<Target>>, busy: Busy, ctx: &Context<Self>) {
        let Begin {
            target,
            delivery,
            event,
            number,
        } = begin;
        if delivery.attempts == 0 && delivery.origin == Origin::Live {
            let lag = self.deps.clock.now().since(event.created_at);
            metrics::histogram!("callboard_delivery_lag_seconds").record(lag.as_secs_f64());
        }
        metrics::histogram!("callboard_delivery_lane_width").record(self.state.concurrency() as f64);
        let (deps, lane) = (self.deps.clone(), ctx.address());
        self.deps.runtime.spawn(async move {
            let in_flight = InFlight::count();
            let which = Which {
                endpoint: delivery.endpoint_id,
                origin: delivery.origin,
                number: delivery.attempts + 1,
            };
            let report = attempt::perform(&deps, &target, &event, which).await;
            drop(in_flight);
            let attempted = Attempted {
                subject: event.subject_id,
                delivery,
                number,
                report,
            };
            lane.do_send(Ended { attempted, busy });
        });
    }

    fn commit(&self, tried: Vec<Tried>, ctx: &mut Context<Self>) {
        let of = self.link.id.tenant_id.into();
        let (deps, endpoint_state, busy) = (
            self.deps.clone(),
            self.state.endpoint_state().clone(),
            self.deps.clock.busy(),
        );
        let committed = async move {
            let settled = settling::commit(&deps, of, endpoint_state, &tried).await;
            (settled, tried, busy)
        };
        ctx.spawn(committed.into_actor(self).map(|(settled, tried, busy), lane, ctx| {
            let event = match settled {
                Ok(Settled {
                    deliveries,
                    endpoint_state,
                    ..
                }) => {
                    count_ended(&deliveries);
                    LaneEvent::Committed {
                        deliveries,
                        endpoint_state,
                    }
                }
                Err(error) => {
                    let outcomes = tried.len();
                    tracing::warn!(%error, outcomes, "outcomes of deliveries could not be committed; trying again");
                    LaneEvent::CommitFailed(tried)
                }
            };
            lane.hear(event, &busy, ctx);
        }));
    }

    fn back_off(&self, busy: Busy, ctx: &mut Context<Self>) {
        let clock = self.deps.clock.clone();
        let wait = async move { clock.back_off(10).await }.into_actor(self);
        ctx.spawn(wait.map(move |(), lane, ctx| lane.hear(LaneEvent::BackedOff, &busy, ctx)));
    }

    fn set_alarm(&mut self, at: Option<Moment>, ctx: &mut Context<Self>) {
        if let Some(alarm) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let Some(at) = at else { return };
        let rings = self.deps.clock.alarm(at).into_actor(self).map(|busy, lane, ctx| {
            lane.alarm = None;
            lane.hear(LaneEvent::Rang, &busy, ctx);
        });
        self.alarm = Some(ctx.spawn(rings));
    }
}

fn count_ended(deliveries: &[Delivery]) {
    for delivery in deliveries.iter().filter(|delivery| delivery.next_attempt_at.is_none()) {
        metrics::counter!("callboard_deliveries_total", "status" => delivery.status.as_str()).increment(1);
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

impl Actor for Lane {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Context<Self>) {
        let busy = self.deps.clock.busy();
        self.hear(LaneEvent::Started, &busy, ctx);
    }
}

impl Supervised for Lane {
    fn restarting(&mut self, _: &mut Context<Self>) {
        // Attempts in flight report to a lane that has forgotten them: their deliveries are sent again, as after a crash.
        *self = Lane::new(self.deps.clone(), self.link.clone());
    }
}

impl Child for Lane {
    type Id = TenantScoped<EndpointId>;
    const KIND: &'static str = "lane";
}

impl Handler<Hinted> for Lane {
    type Result = ();
    fn handle(&mut self, Hinted { hint, busy }: Hinted, ctx: &mut Context<Self>) {
        let event = match hint {
            LaneHint::Arrived(new) => LaneEvent::Arrived(new),
            LaneHint::Changed => LaneEvent::Changed,
            LaneHint::Wake => LaneEvent::Woken,
        };
        self.hear(event, &busy, ctx);
    }
}

impl Handler<Ended> for Lane {
    type Result = ();
    fn handle(&mut self, Ended { attempted, busy }: Ended, ctx: &mut Context<Self>) {
        self.hear(LaneEvent::Attempted(attempted), &busy, ctx);
    }
}

impl Handler<Stop> for Lane {
    type Result = ();
    fn handle(&mut self, stop: Stop, ctx: &mut Context<Self>) {
        let event = match stop {
            Stop::Idle => LaneEvent::MayGo,
            // What is still in flight when the shutdown's time is over is sent again after the start, as its row says.
            Stop::Shutdown => LaneEvent::Shutdown,
        };
        self.hear(event, &Busy::default(), ctx);
    }
}
