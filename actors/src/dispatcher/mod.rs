//! The dispatcher of one tenant: decides which contact is called next, and when.
//!
//! Three gates must be open for a call: a token (of the trunk's, the tenant's and the campaign's rate), a slot (of the
//! tenant's and of the campaign's concurrency, and a channel of a trunk that is up) and the contact's eligibility. Sessions
//! that the API has queued come first; campaigns share what is left by weight. Contacts stay in the database and are read in small batches.
//!
//! The intent to call is one transaction: the contact's move, the session's row and their events, on condition that the
//! campaign and the tenant are still as they were known, and that the do-not-call list, the caps and the hours allow it. Only
//! after its commit is the call placed, at the moment that was planned for it.
mod admission;
mod brakes;
mod commit;
mod dial;
mod message;
mod moved;
mod opening;
pub mod pacing_report;
mod place;
mod rounds;
mod state;
mod trunks;
mod waiting;
mod windows;

use crate::{
    deps::Deps,
    router::{Admitted, Arrival, Turn},
};
use actix::prelude::*;
use entities::{
    Error, Result,
    ids::{TenantId, TrunkId},
    values::Moment,
};
use rounds::{Next, work};
use rules::{dispatch::round::WakeAt, effect::DispatchHint};
use runtime::{
    clock::{Busy, Clock},
    registry::{Child, Link, Stop, tell_itself},
};
use state::State;

/// There may be something to dispatch.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Hinted {
    hint: DispatchHint,
    busy: Busy,
}
impl Hinted {
    pub fn new(hint: DispatchHint, clock: &Clock) -> Self {
        Hinted {
            hint,
            busy: clock.busy(),
        }
    }
}

/// A call has come in: is there a slot for it? Then it is answered.
#[derive(Message)]
#[rtype(result = "Result<Admitted>")]
pub struct Admit {
    arrival: Arrival,
    busy: Busy,
}
impl Admit {
    pub fn new(arrival: Arrival, clock: &Clock) -> Self {
        Admit {
            arrival,
            busy: clock.busy(),
        }
    }
}

/// One more leg of a live call is to go over that trunk: when may it? Its token is taken; `None`: not by then.
#[derive(Message)]
#[rtype(result = "Result<Option<Turn>>")]
pub struct TakeTurn {
    trunk: TrunkId,
    by: Moment,
    busy: Busy,
}
impl TakeTurn {
    pub fn new(trunk: TrunkId, by: Moment, clock: &Clock) -> Self {
        let busy = clock.busy();
        TakeTurn { trunk, by, busy }
    }
}

/// The moment has come at which it was to look again.
#[derive(Message)]
#[rtype(result = "()")]
struct Rings(Busy);

/// Dispatch what may be dispatched. Queued behind all that has happened until now, so that one round answers to all of it.
#[derive(Message)]
#[rtype(result = "()")]
struct Round(Busy);

pub struct Dispatcher {
    deps: Deps,
    link: Link<Self>,
    state: Option<State>,
    round_wanted: bool,
    alarm: Option<(Moment, SpawnHandle)>,
}

impl Dispatcher {
    pub fn new(deps: Deps, link: Link<Self>) -> Self {
        Dispatcher {
            deps,
            link,
            state: None,
            round_wanted: false,
            alarm: None,
        }
    }

    fn want_round(&mut self, busy: Busy, ctx: &mut Context<Self>) {
        if !std::mem::replace(&mut self.round_wanted, true) {
            tell_itself(ctx, Round(busy));
        }
    }

    /// Runs a round with the mailbox shut: one round at a time.
    fn round(&mut self, busy: Busy) -> AtomicResponse<Self, ()> {
        let (deps, tenant) = (self.deps.clone(), self.link.id);
        let state = self.state.take();
        let round = async move {
            let outcome = work(&deps, tenant, state).await;
            (outcome, busy)
        };
        AtomicResponse::new(Box::pin(round.into_actor(self).map(
            |(outcome, busy), dispatcher, ctx| {
                let next = match outcome {
                    Ok((state, Next::Again)) => {
                        dispatcher.state = Some(state);
                        return dispatcher.want_round(busy, ctx);
                    }
                    Ok((state, Next::Wait(WakeAt(next)))) => {
                        dispatcher.state = Some(state);
                        next
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a dispatch round failed; trying again");
                        Some(dispatcher.deps.clock.now().plus_seconds(1))
                    }
                };
                dispatcher.set_alarm(next, ctx);
                drop(busy);
            },
        )))
    }

    /// Answers between two rounds, with the mailbox shut; a round follows.
    fn answer<T: 'static>(
        &self,
        work: impl Future<Output = (Option<State>, T, Busy)> + 'static,
    ) -> AtomicResponse<Self, T> {
        AtomicResponse::new(Box::pin(work.into_actor(self).map(
            |(state, answer, busy), dispatcher, ctx| {
                dispatcher.state = state;
                dispatcher.want_round(busy, ctx);
                answer
            },
        )))
    }

    fn set_alarm(&mut self, at: Option<Moment>, ctx: &mut Context<Self>) {
        if let Some((_, alarm)) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let idle = self.state.as_ref().is_some_and(State::is_idle);
        let Some(at) = at else {
            if idle {
                self.link.rest();
            }
            return;
        };
        let rings = self.deps.clock.alarm(at).into_actor(self).map(|busy, dispatcher, ctx| {
            dispatcher.alarm = None;
            tell_itself(ctx, Rings(busy));
        });
        self.alarm = Some((at, ctx.spawn(rings)));
    }
}

impl Actor for Dispatcher {
    type Context = Context<Self>;
}

impl Supervised for Dispatcher {
    fn restarting(&mut self, ctx: &mut Context<Self>) {
        self.state = None;
        self.round_wanted = false;
        self.alarm = None;
        tell_itself(ctx, Hinted::new(DispatchHint::CampaignsChanged, &self.deps.clock));
    }
}

impl Child for Dispatcher {
    type Id = TenantId;
    const KIND: &'static str = "dispatcher";
}

impl Handler<Hinted> for Dispatcher {
    type Result = ();
    fn handle(&mut self, Hinted { hint, busy }: Hinted, ctx: &mut Context<Self>) {
        if let Some(state) = &mut self.state {
            state.hinted(hint, self.deps.clock.now());
        }
        self.want_round(busy, ctx);
    }
}

impl Handler<Rings> for Dispatcher {
    type Result = ();
    fn handle(&mut self, Rings(busy): Rings, ctx: &mut Context<Self>) {
        self.want_round(busy, ctx);
    }
}

impl Handler<Admit> for Dispatcher {
    type Result = AtomicResponse<Self, Result<Admitted>>;
    fn handle(&mut self, admit: Admit, _: &mut Context<Self>) -> Self::Result {
        let (deps, tenant, known) = (self.deps.clone(), self.link.id, self.state.take());
        self.answer(async move {
            let Admit { arrival, busy } = admit;
            let Arrival { session, call, commit } = arrival;
            let mut state = match State::current(&deps, tenant, known).await {
                Ok(state) => state,
                Err(error) => return (None, Err(error), busy),
            };
            let mut admitted = state.admit(&deps, session.clone(), call.clone(), commit.clone()).await;
            if let Err(Error::Stale) = admitted {
                // The tenant has changed since it was read: look again, once.
                state = match State::read(&deps, tenant, Some(state)).await {
                    Ok(state) => state,
                    Err(error) => return (None, Err(error), busy),
                };
                admitted = state.admit(&deps, session, call, commit).await;
            }
            (Some(state), admitted, busy)
        })
    }
}

impl Handler<TakeTurn> for Dispatcher {
    type Result = AtomicResponse<Self, Result<Option<Turn>>>;
    fn handle(&mut self, TakeTurn { trunk, by, busy }: TakeTurn, _: &mut Context<Self>) -> Self::Result {
        let (deps, tenant, known) = (self.deps.clone(), self.link.id, self.state.take());
        self.answer(async move {
            match State::current(&deps, tenant, known).await {
                Ok(mut state) => {
                    let turn = state.take_turn(&deps, trunk, by);
                    (Some(state), Ok(turn), busy)
                }
                Err(error) => (None, Err(error), busy),
            }
        })
    }
}

impl Handler<Round> for Dispatcher {
    type Result = AtomicResponse<Self, ()>;
    fn handle(&mut self, Round(busy): Round, _: &mut Context<Self>) -> Self::Result {
        self.round_wanted = false;
        self.round(busy)
    }
}

impl Handler<Stop> for Dispatcher {
    type Result = ();
    fn handle(&mut self, stop: Stop, ctx: &mut Context<Self>) {
        let idle = self.state.as_ref().is_some_and(State::is_idle);
        match stop {
            Stop::Idle if !idle => self.link.stay(),
            Stop::Idle | Stop::Shutdown => {
                // What was learnt of their rates ends with it.
                if let Some(state) = &self.state {
                    self.deps.trunks.unpaced(state.snapshot.trunks.live.keys());
                }
                ctx.stop();
            }
        }
    }
}
