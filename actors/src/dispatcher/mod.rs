//! The dispatcher of one tenant: decides which contact is called next, and when.
//!
//! Three gates must be open for a call: a token (of the tenant's and of the campaign's rate), a slot (of the tenant's and of
//! the campaign's concurrency) and the contact's eligibility. Sessions that the API has queued come first; campaigns share
//! what is left by weight. Contacts stay in the database and are read in small batches.
//!
//! The intent to call is one transaction: the contact's move, the session's row and their events, on condition that the
//! campaign is still running. Only after its commit is the call placed.
mod dial;
pub mod fair;
mod queue;

use crate::{
    clock::{Busy, Clock},
    deps::Deps,
    registry::{Child, Link, Stop},
    session::machine::Command as SessionCommand,
    shell::{Adopt, Do},
    writer::Commit,
};
use actix::prelude::*;
use dial::{Dial, callable, dial, skip};
use entities::{
    Error, Result, campaign as campaigns,
    contact::SkipReason,
    ids::{CampaignId, SessionId, TenantId},
    session as sessions,
    values::{Env, Moment},
};
use fair::RoundRobin;
use futures_util::future::join_all;
use queue::Queue;
use std::collections::{BTreeMap, HashMap};

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

/// Dispatch what may be dispatched. Queued behind all that has happened until now, so that one round answers to all of it.
#[derive(Message)]
#[rtype(result = "()")]
struct Round(Busy);

/// Calls committed together.
const ROUND: usize = 128;

pub struct Dispatcher {
    deps: Deps,
    link: Link<Self>,
    state: Option<State>,
    round_wanted: bool,
    alarm: Option<(Moment, SpawnHandle)>,
}

/// What the dispatcher knows; rebuilt from the rows whenever in doubt.
struct State {
    limit: i32,
    tenant_rate: queue::Limiter,
    /// A token of the tenant's rate that was taken and not used.
    tenant_token: bool,
    campaigns: BTreeMap<CampaignId, Queue>,
    ring: RoundRobin<CampaignId>,
    /// The calls that take a slot.
    live: HashMap<SessionId, (Env, Option<CampaignId>)>,
    /// Are there sessions in the queue that were not looked at?
    queued: bool,
    /// The campaigns must be read again.
    outdated: bool,
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
            ctx.notify(Round(busy));
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
                    Ok((state, next)) => {
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
        let idle = self
            .state
            .as_ref()
            .is_some_and(|state| state.campaigns.is_empty() && state.live.is_empty() && !state.queued);
        let Some(at) = at else {
            if idle {
                self.link.rest();
            }
            return;
        };
        let clock = self.deps.clock.clone();
        let rings = async move { clock.sleep_until(at).await }
            .into_actor(self)
            .map(|busy, dispatcher, ctx| {
                dispatcher.alarm = None;
                ctx.notify(Wake {
                    campaigns_changed: false,
                    queue_changed: false,
                    busy,
                });
            });
        self.alarm = Some((at, ctx.spawn(rings)));
    }
}

/// One round: dispatches all that may be dispatched now; answers when to look again.
async fn work(deps: &Deps, tenant: TenantId, state: Option<State>) -> Result<(State, Option<Moment>)> {
    let mut state = match state {
        Some(state) if !state.outdated => state,
        known => State::read(deps, tenant, known).await?,
    };
    loop {
        let mut wake_at = None;
        if deps.is_draining() {
            return Ok((state, wake_at));
        }
        state.dispatch_queued(deps, tenant, &mut wake_at).await?;
        let plan = state.gather(deps, tenant, &mut wake_at).await?;
        if plan.is_empty() {
            return Ok((state, wake_at));
        }
        if !state.commit(deps, plan).await? {
            // A campaign was paused, or a contact changed: look at the rows again.
            state = State::read(deps, tenant, Some(state)).await?;
        }
    }
}

/// What one round commits.
#[derive(Default)]
struct Plan {
    dials: Vec<Dial>,
    /// Contacts that are not called at all.
    skips: Vec<Commit>,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.dials.is_empty() && self.skips.is_empty()
    }
    fn len(&self) -> usize {
        self.dials.len() + self.skips.len()
    }
}

impl State {
    /// Reads campaigns and live calls; keeps the rates of campaigns that run on.
    async fn read(deps: &Deps, tenant: TenantId, known: Option<State>) -> Result<State> {
        let row = entities::tenant::load(&deps.db.read, tenant).await?;
        let running = campaigns::dispatchable(&deps.db.read, tenant).await?;
        let live = sessions::live(&deps.db.read, tenant).await?;
        let mut live: HashMap<_, _> = live
            .into_iter()
            .map(|live| (live.id, (live.env, live.campaign_id)))
            .collect();
        let fresh = || queue::limiter(deps.limits.max_calls_per_second, &deps.clock);
        let (mut old, tenant_rate, tenant_token, mut ring, told) = match known {
            Some(state) => (
                state.campaigns,
                state.tenant_rate,
                state.tenant_token,
                state.ring,
                state.live,
            ),
            None => (BTreeMap::new(), fresh(), false, RoundRobin::default(), HashMap::new()),
        };
        // Told to dial and not yet seen doing so: they keep their slots until they have ended.
        let told: HashMap<_, _> = told.into_iter().filter(|(id, _)| !live.contains_key(id)).collect();
        let ids: Vec<SessionId> = told.keys().copied().collect();
        for id in sessions::not_ended(&deps.db.read, &ids).await? {
            live.insert(id, told[&id]);
        }
        let mut campaigns = BTreeMap::new();
        for row in running {
            let id = row.id;
            let queue = Queue::of(row, old.remove(&id), deps)?;
            campaigns.insert(id, queue);
        }
        ring.keep(campaigns.keys().copied());
        Ok(State {
            limit: row.concurrency_limit.min(deps.limits.max_concurrency),
            tenant_rate,
            tenant_token,
            campaigns,
            ring,
            live,
            queued: true,
            outdated: false,
        })
    }

    fn free_slots(&self, env: Env) -> i64 {
        i64::from(self.limit) - self.live.values().filter(|(of, _)| *of == env).count() as i64
    }

    /// Sessions of the API wait for a slot and the tenant's rate.
    async fn dispatch_queued(&mut self, deps: &Deps, tenant: TenantId, wake_at: &mut Option<Moment>) -> Result<()> {
        if !self.queued {
            return Ok(());
        }
        let mut after = None;
        loop {
            let waiting = sessions::queued(&deps.db.read, tenant, after, ROUND as u64).await?;
            let Some(last) = waiting.last() else { break };
            after = Some(last.id);
            for row in waiting {
                if self.live.contains_key(&row.id) {
                    continue;
                }
                if self.free_slots(row.env) <= 0 {
                    // Woken by the slot that becomes free; the other env's calls go on.
                    continue;
                }
                if !self.take_token(deps, wake_at) {
                    return Ok(());
                }
                self.tenant_token = false;
                self.live.insert(row.id, (row.env, None));
                if let Some(tree) = deps.tree() {
                    tree.sessions
                        .tell(row.key(), Do::tell(SessionCommand::Dispatch, &deps.clock));
                }
            }
        }
        self.queued = self.free_slots(Env::Live) <= 0 || self.free_slots(Env::Test) <= 0;
        Ok(())
    }

    /// A token of the tenant's rate is at hand; if not, says when there will be one.
    fn take_token(&mut self, deps: &Deps, wake_at: &mut Option<Moment>) -> bool {
        if !self.tenant_token {
            match queue::take(&self.tenant_rate, &deps.clock) {
                Ok(()) => self.tenant_token = true,
                Err(at) => *wake_at = Some(wake_at.map_or(at, |known| known.min(at))),
            }
        }
        self.tenant_token
    }

    /// Chooses the next calls: as many as tokens, slots and contacts allow, a round at most.
    async fn gather(&mut self, deps: &Deps, tenant: TenantId, wake_at: &mut Option<Moment>) -> Result<Plan> {
        let now = deps.clock.now();
        let mut in_use: HashMap<(Env, Option<CampaignId>), i64> = HashMap::new();
        for (env, campaign) in self.live.values() {
            *in_use.entry((*env, None)).or_default() += 1;
            if campaign.is_some() {
                *in_use.entry((*env, *campaign)).or_default() += 1;
            }
        }
        let mut plan = Plan::default();
        for queue in self.campaigns.values_mut() {
            queue.refill(deps, now).await?;
        }
        while plan.len() < ROUND {
            let (campaigns, limit) = (&self.campaigns, i64::from(self.limit));
            let can = |id: &CampaignId| {
                campaigns.get(id).is_some_and(|queue| {
                    let used = |campaign| in_use.get(&(queue.env, campaign)).copied().unwrap_or(0);
                    queue.is_ready(now)
                        && used(None) < limit
                        && queue.max_concurrency.is_none_or(|max| used(Some(*id)) < i64::from(max))
                })
            };
            let Some(id) = self
                .ring
                .next(can, |id| campaigns.get(id).map_or(1, |queue| queue.weight))
            else {
                break;
            };
            let Some(queue) = self.campaigns.get_mut(&id) else {
                break;
            };
            // A contact that cannot be called costs neither token nor slot.
            let Some(contact) = queue.peek().cloned() else { continue };
            let Some(number) = callable(deps, tenant, queue.env, &contact).await? else {
                queue.pop();
                plan.skips.push(skip(deps, &contact, queue, SkipReason::Invalid)?);
                continue;
            };
            if !queue.take_token(&deps.clock) {
                continue;
            }
            if !self.take_token(deps, wake_at) {
                break;
            }
            let Some(queue) = self.campaigns.get_mut(&id) else {
                break;
            };
            self.tenant_token = false;
            queue.token = false;
            queue.pop();
            *in_use.entry((queue.env, None)).or_default() += 1;
            *in_use.entry((queue.env, Some(id))).or_default() += 1;
            plan.dials.push(dial(deps, queue, contact, number)?);
        }
        for queue in self.campaigns.values() {
            // Full slots wake us by themselves when one is freed.
            if self.free_slots(queue.env) > 0
                && let Some(at) = queue.wake_at()
            {
                *wake_at = Some(wake_at.map_or(at, |known| known.min(at)));
            }
        }
        Ok(plan)
    }

    /// Commits the intents, all at once, and hands the calls over. Answers whether all rows were as expected.
    async fn commit(&mut self, deps: &Deps, plan: Plan) -> Result<bool> {
        let (mut as_expected, mut failed) = (true, None);
        let mut note = |error: Error| {
            as_expected = false;
            // Nothing was dialled; a database that does not answer is asked again later.
            if !matches!(error, Error::Stale) {
                failed.get_or_insert(error);
            }
        };
        let skips = join_all(plan.skips.into_iter().map(|commit| deps.writer.commit(commit)));
        let (sessions, dials): (Vec<_>, Vec<_>) = plan
            .dials
            .into_iter()
            .map(|Dial { call, session, commit }| {
                // Before the commit, so that nobody takes the call for one that a crash cut off.
                deps.calls.insert(session.call.id, call);
                (session, deps.writer.commit(commit))
            })
            .unzip();
        let (skipped, dialed) = futures_util::future::join(skips, join_all(dials)).await;
        skipped.into_iter().filter_map(Result::err).for_each(&mut note);
        for (outcome, session) in dialed.into_iter().zip(sessions) {
            let id = session.call.id;
            if let Err(error) = outcome {
                deps.calls.remove(id);
                note(error);
                continue;
            }
            self.live.insert(id, (session.call.env, session.call.campaign_id));
            if let Some(tree) = deps.tree() {
                tree.sessions.tell(session.key(), Adopt(session, deps.clock.busy()));
            }
        }
        failed.map_or(Ok(as_expected), Err)
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
        ctx.notify(Wake::campaigns(&self.deps.clock));
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
            && let Some((_, campaign)) = state.live.remove(&session_id)
            && let Some(queue) = campaign.and_then(|id| state.campaigns.get_mut(&id))
        {
            queue.one_ended();
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
        let idle = self
            .state
            .as_ref()
            .is_some_and(|state| state.campaigns.is_empty() && state.live.is_empty() && !state.queued);
        match stop {
            Stop::Idle if !idle => self.link.stay(),
            Stop::Idle | Stop::Shutdown => ctx.stop(),
        }
    }
}
