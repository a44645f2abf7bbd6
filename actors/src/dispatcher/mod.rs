//! The dispatcher of one tenant: decides which contact is called next, and when.
//!
//! Three gates must be open for a call: a token (of the trunk's, the tenant's and the campaign's rate), a slot (of the
//! tenant's and of the campaign's concurrency) and the contact's eligibility. Sessions that the API has queued come first; campaigns share
//! what is left by weight. Contacts stay in the database and are read in small batches.
//!
//! The intent to call is one transaction: the contact's move, the session's row and their events, on condition that the
//! campaign and the tenant are still as they were known, and that the do-not-call list, the caps and the hours allow it. Only
//! after its commit is the call placed, at the moment that was planned for it.
pub mod board;
mod dial;
pub mod fair;
mod funds;
mod gate;
mod message;
pub mod pace;
pub mod queue;
pub mod room;
mod state;
mod trunk;

pub use board::{Board, LimitingFactor};
pub use state::{Admitted, direct_caps};

use crate::{
    calls::Call,
    clock::{Busy, Clock},
    deps::Deps,
    registry::{Child, Link, Stop, tell_itself},
    session::machine::Session,
    writer::Commit,
};
use actix::prelude::*;
use entities::{
    Error, Result,
    ids::{CampaignId, SessionId, TenantId},
    values::{Env, Moment},
};
use state::{Next, State, WakeAt, work};

/// What there is to dispatch has changed.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Wake {
    campaigns_changed: bool,
    queue_changed: bool,
    busy: Busy,
}
impl Wake {
    /// Campaigns were started, paused, given contacts, ….
    pub fn campaigns(clock: &Clock) -> Self {
        Wake {
            campaigns_changed: true,
            queue_changed: true,
            busy: clock.busy(),
        }
    }
    /// Sessions wait for a slot.
    pub fn queue(clock: &Clock) -> Self {
        Wake {
            campaigns_changed: false,
            queue_changed: true,
            busy: clock.busy(),
        }
    }
}

/// A call has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Freed {
    session_id: SessionId,
    busy: Busy,
}
impl Freed {
    pub fn new(session_id: SessionId, clock: &Clock) -> Self {
        Freed {
            session_id,
            busy: clock.busy(),
        }
    }
}

/// A campaign's message has come to its end.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Ended {
    campaign: CampaignId,
    busy: Busy,
}
impl Ended {
    pub fn new(campaign: CampaignId, clock: &Clock) -> Self {
        Ended {
            campaign,
            busy: clock.busy(),
        }
    }
}

/// A call has come in: is there a slot for it? Then it is answered.
#[derive(Message)]
#[rtype(result = "Result<Admitted>")]
pub struct Admit {
    session: Session,
    call: Call,
    commit: Commit,
    busy: Busy,
}
impl Admit {
    /// `commit` holds the session's row and its event.
    pub fn new(session: Session, call: Call, commit: Commit, clock: &Clock) -> Self {
        Admit {
            session,
            call,
            commit,
            busy: clock.busy(),
        }
    }
}

/// A trunk had no room for a call.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Congested {
    env: Env,
    busy: Busy,
}
impl Congested {
    pub fn new(env: Env, clock: &Clock) -> Self {
        Congested {
            env,
            busy: clock.busy(),
        }
    }
}

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
        let clock = self.deps.clock.clone();
        let busy = clock.busy();
        let rings = async move { clock.busy_until(at, busy).await }
            .into_actor(self)
            .map(|busy, dispatcher, ctx| {
                dispatcher.alarm = None;
                let wake = Wake {
                    campaigns_changed: false,
                    queue_changed: false,
                    busy,
                };
                tell_itself(ctx, wake);
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
        tell_itself(ctx, Wake::campaigns(&self.deps.clock));
    }
}

impl Child for Dispatcher {
    type Id = TenantId;
    const KIND: &'static str = "dispatcher";
}

impl Handler<Wake> for Dispatcher {
    type Result = ();
    fn handle(
        &mut self,
        Wake {
            campaigns_changed,
            queue_changed,
            busy,
        }: Wake,
        ctx: &mut Context<Self>,
    ) {
        if let Some(state) = &mut self.state {
            state.outdated |= campaigns_changed;
            state.queued |= queue_changed;
        }
        self.want_round(busy, ctx);
    }
}

impl Handler<Freed> for Dispatcher {
    type Result = ();
    fn handle(&mut self, Freed { session_id, busy }: Freed, ctx: &mut Context<Self>) {
        if let Some(state) = &mut self.state
            && let Some(slot) = state.live.remove(&session_id)
            && let Some(queue) = slot.campaign_id.and_then(|id| state.campaigns.get_mut(&id))
        {
            queue.one_ended();
        }
        self.want_round(busy, ctx);
    }
}

impl Handler<Ended> for Dispatcher {
    type Result = ();
    fn handle(&mut self, Ended { campaign, busy }: Ended, ctx: &mut Context<Self>) {
        if let Some(state) = &mut self.state
            && let Some(queue) = state.campaigns.get_mut(&campaign)
        {
            queue.one_ended();
        }
        self.want_round(busy, ctx);
    }
}

impl Handler<Admit> for Dispatcher {
    type Result = AtomicResponse<Self, Result<Admitted>>;
    fn handle(&mut self, admit: Admit, _: &mut Context<Self>) -> Self::Result {
        let (deps, tenant, known) = (self.deps.clone(), self.link.id, self.state.take());
        let admitting = async move {
            let Admit {
                session,
                call,
                commit,
                busy,
            } = admit;
            let mut state = match known {
                Some(state) if !state.outdated => state,
                known => match State::read(&deps, tenant, known).await {
                    Ok(state) => state,
                    Err(error) => return (None, Err(error), busy),
                },
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
        };
        AtomicResponse::new(Box::pin(admitting.into_actor(self).map(
            |(state, admitted, busy), dispatcher, ctx| {
                dispatcher.state = state;
                dispatcher.want_round(busy, ctx);
                admitted
            },
        )))
    }
}

impl Handler<Congested> for Dispatcher {
    type Result = ();
    fn handle(&mut self, Congested { env, busy }: Congested, ctx: &mut Context<Self>) {
        if let Some(state) = &mut self.state {
            state.congested(env, self.deps.clock.now());
        }
        self.want_round(busy, ctx);
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
            Stop::Idle | Stop::Shutdown => ctx.stop(),
        }
    }
}
