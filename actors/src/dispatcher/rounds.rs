//! One round of a dispatcher: read what its plan needs, plan, build the intents, commit them, hand them over.
use super::{
    dial::{self, Dial},
    message::{self, MessageIntent, Places},
    state::{State, funds, learn_keys},
    trunks,
};
use crate::{credits::fall_short, deps::Deps, holds};
use entities::{
    Error, Result, boxed,
    ids::{CampaignId, TenantId, TenantScoped},
    tally,
    values::{Env, Moment},
};
use rules::{
    campaign::machine::Command as CampaignCommand,
    commit::Commit,
    dispatch::{
        key_limits::KeyLimits,
        plan::{Plan, plan},
        round::WakeAt,
        waiting::Begun,
    },
};
use runtime::permits::Permit;

/// What follows a round.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// There may be more; first what has happened meanwhile is heard.
    Again,
    Wait(WakeAt),
}

/// What one round commits.
#[derive(Default)]
pub struct Intents {
    pub dials: Vec<Dial>,
    pub messages: Vec<(MessageIntent, Permit)>,
    /// Contacts that are not called at all, or not now.
    pub settled: Vec<Commit>,
}

impl Intents {
    fn is_empty(&self) -> bool {
        self.dials.is_empty() && self.messages.is_empty() && self.settled.is_empty()
    }
}

/// Dispatches what may be dispatched now, as much as is committed together.
#[boxed]
pub async fn work(deps: &Deps, tenant: TenantId, state: Option<State>) -> Result<(State, Next)> {
    let mut state = State::current(deps, tenant, state).await?;
    if state.outdated {
        // More of its calls that wait have to be moved, or one has changed at this moment.
        return Ok((state, Next::Again));
    }
    let mut wake_at = WakeAt::default();
    if deps.is_draining() {
        return Ok((state, Next::Wait(wake_at)));
    }
    if let Some(hold) = holds::still(deps).await? {
        // Woken when it ends, and by each reconcile.
        state.held(deps, hold);
        return Ok((state, Next::Wait(wake_at)));
    }
    if state.sees_lifted(deps).await? {
        state = State::read(deps, tenant, Some(state)).await?;
    }
    trunks::look(deps, &mut state.snapshot.trunks);
    state.snapshot.trunks.grow(deps.clock.now(), &mut wake_at);
    state.snapshot.funds = funds(deps, tenant).await?;
    state.snapshot.keys = KeyLimits::default();
    let keys = state.snapshot.campaigns.values().filter_map(|queue| queue.api_key_id);
    let keys = keys.collect();
    learn_keys(deps, &mut state.snapshot.keys, keys, deps.clock.now()).await?;
    let (intents, mut wake_at) = state.intents(deps, wake_at).await?;
    if state.outdated {
        // Something that was planned was not to be done after all.
        wake_at.no_later_than(deps.clock.now().plus_seconds(1));
    }
    if intents.is_empty() {
        state.tell_short(deps).await?;
        return Ok((state, Next::Wait(wake_at)));
    }
    if !state.commit(deps, intents).await? {
        // A campaign was paused, or a contact changed: look at the rows again.
        state = State::read(deps, tenant, Some(state)).await?;
    }
    Ok((state, Next::Again))
}

impl State {
    /// What is to be committed now, and when to look again if that is nothing.
    async fn intents(&mut self, deps: &Deps, wake_at: WakeAt) -> Result<(Intents, WakeAt)> {
        let mut begun = Begun::new(&self.snapshot, wake_at);
        let dials = self.dial_waiting(deps, &mut begun, deps.clock.now()).await?;
        let mut intents = Intents {
            dials,
            ..Intents::default()
        };
        let now = deps.clock.now();
        self.fill(deps, &begun.slots, begun.turns == 0, now).await?;
        let places = Places::take(deps, self.known.tenant, &self.snapshot.campaigns);
        let plan = plan(&mut self.snapshot, begun, places.doors(), self.limiter.waiting(), now);
        let permits = places.of(&plan.messages)?;
        for (campaign, limiting) in &plan.limits {
            deps.pacing_report.limited(*campaign, *limiting);
        }
        if intents.is_empty() && plan.is_empty() {
            for (campaign, next_open_at) in &plan.resting {
                self.rest(deps, *campaign, *next_open_at).await?;
            }
        }
        let wake_at = plan.wake_at;
        self.build(deps, plan, permits, &mut intents).await?;
        Ok((intents, wake_at))
    }

    async fn build(&mut self, deps: &Deps, plan: Plan, permits: Vec<Permit>, intents: &mut Intents) -> Result<()> {
        let campaigns = &self.snapshot.campaigns;
        let of = |campaign: CampaignId| {
            let gone = || Error::Internal("a contact is planned of a campaign that does not run".into());
            campaigns.get(&campaign).ok_or_else(gone)
        };
        for settled in &plan.settled {
            let commit = dial::settle(deps, settled, of(settled.campaign)?)?;
            intents.settled.push(commit);
        }
        for call in plan.calls {
            let queue = of(call.campaign)?;
            let trunk = self.snapshot.trunks.as_known(call.trunk_id);
            // Who may not be called after all is read again.
            match dial::dial(deps, (self.known, trunk), queue, call).await? {
                Some(dial) => intents.dials.push(dial),
                None => self.outdated = true,
            }
        }
        for (planned, permit) in plan.messages.into_iter().zip(permits) {
            let queue = of(planned.campaign)?;
            match message::write(deps, self.known, queue, planned).await? {
                Some(intent) => intents.messages.push((intent, permit)),
                None => self.outdated = true,
            }
        }
        Ok(())
    }

    /// Nobody who is left may be called now: the campaign pauses until the first of them may.
    async fn rest(&self, deps: &Deps, campaign: CampaignId, next_open_at: Moment) -> Result<()> {
        let Some(queue) = self.snapshot.campaigns.get(&campaign) else {
            return Ok(());
        };
        let tally = tally::load(&deps.db.read, campaign).await?;
        let command = CampaignCommand::Rest {
            next_open_at,
            total: tally.total,
            waiting: tally.pending + tally.waiting,
            version: queue.version,
        };
        if tally.pending + tally.waiting > 0 {
            let campaign = TenantScoped::new(self.known.tenant, queue.env, campaign);
            deps.router.campaigns().tell(campaign, command);
        }
        Ok(())
    }

    /// Tells the tenant of each env in which nothing that is ready can go.
    async fn tell_short(&self, deps: &Deps) -> Result<()> {
        for env in [Env::Live, Env::Test] {
            if let Some(cents) = self.snapshot.funds.short(env)
                && !self.snapshot.is_blocked(env)
            {
                fall_short(deps, (self.known.tenant, env), cents).await?;
            }
        }
        Ok(())
    }
}
