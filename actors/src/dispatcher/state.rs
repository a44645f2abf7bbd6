//! What a dispatcher knows, and one round of its work.
use super::{
    board::LimitingFactor,
    dial::{self, Dial, Known, Outcome},
    funds::{self, Funds},
    message::{self, Letters},
    queue::{Allowance, Circumstances, Queue, Turn, Within},
};
use crate::{
    call::in_hand::Call,
    deps::Deps,
    holds::{self, state::Hold},
    people::{People, people},
    router::Admitted,
};
use entities::{
    Error, Result,
    campaign::{self as campaigns, AgentSnapshot, Caps, Channel},
    changes::Guard,
    contact::{Address, SkipReason, WaitReason},
    dispatch_block::{self, Reason},
    ids::{CampaignId, Owned, SessionId, TenantId},
    session::{self as sessions, Direction},
    values::{Bounded, Cents, Env, Moment, Zone},
};
use futures_util::future::join_all;
use rules::{
    campaign::machine::Command as CampaignCommand,
    commit::Commit,
    dispatch::{
        fair::RoundRobin,
        gate::Gate,
        pace::{LEAD, Pace},
        room::{Room, Slot},
        trunk::Trunk,
    },
    effect::DispatchHint,
    eligibility::{self, PATIENCE_SECONDS, Rule, Terms, Verdict, ring_ms},
    hours::{self, Rules, Standing},
    session::{
        command::{Bar, Command as SessionCommand},
        machine::{PLACED_WITHIN_MS, Session},
    },
};
use runtime::permits::Permit;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Calls committed together.
const ROUND: usize = 128;
/// Contacts of one campaign among them that its own caps leave out.
const CAPPED: usize = 32;

/// Calls that may be late at their last gate, until no more are planned.
const MAX_LATE: usize = 64;

/// Rebuilt from the rows whenever in doubt.
pub struct State {
    known: Known,
    zone: Zone,
    room: Room,
    pace: Pace,
    gate: Arc<Gate>,
    trunks: HashMap<Env, Trunk>,
    blocks: Vec<dispatch_block::Model>,
    funds: Funds,
    pub campaigns: BTreeMap<CampaignId, Queue>,
    ring: RoundRobin<CampaignId>,
    /// The calls that take a slot.
    pub live: HashMap<SessionId, Slot>,
    /// Are there sessions in the queue that were not looked at?
    pub queued: bool,
    /// The rows must be read again.
    pub outdated: bool,
}

/// The moment at which there may be something to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct WakeAt(pub Option<Moment>);

impl WakeAt {
    fn no_later_than(&mut self, at: Moment) {
        self.0 = Some(self.0.map_or(at, |known| known.min(at)));
    }
}

/// One round: dispatches what may be dispatched now, as much as is committed together.
pub async fn work(deps: &Deps, tenant: TenantId, state: Option<State>) -> Result<(State, Next)> {
    let mut state = match state {
        Some(state) if !state.outdated => state,
        known => State::read(deps, tenant, known).await?,
    };
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
    state.grow_trunks(deps.clock.now(), &mut wake_at);
    state.funds = Funds::read(deps, tenant).await?;
    let mut plan = Plan::default();
    state.gather_queued(deps, &mut plan, &mut wake_at).await?;
    state.gather(deps, &mut plan, &mut wake_at).await?;
    if plan.is_empty() {
        let is_blocked = |env| state.is_blocked(env);
        state.funds.tell_short(deps, tenant, is_blocked).await?;
        return Ok((state, Next::Wait(wake_at)));
    }
    if !state.commit(deps, plan).await? {
        // A campaign was paused, or a contact changed: look at the rows again.
        state = State::read(deps, tenant, Some(state)).await?;
    }
    Ok((state, Next::Again))
}

/// What follows a round.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// There may be more; first what has happened meanwhile is heard.
    Again,
    Wait(WakeAt),
}

/// What one round commits.
#[derive(Default)]
struct Plan {
    dials: Vec<Dial>,
    letters: Vec<(Letters, Permit)>,
    /// Contacts that are not called at all, or not now.
    settled: Vec<Commit>,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.dials.is_empty() && self.letters.is_empty() && self.settled.is_empty()
    }
    fn len(&self) -> usize {
        self.dials.len() + self.letters.len() + self.settled.len()
    }
}

/// Slots in use, and who may have more.
struct Slots {
    room: Room,
    in_use: HashMap<(Env, Option<CampaignId>), i64>,
    outbound: HashMap<Env, i64>,
}

impl Slots {
    fn take(&mut self, slot: Slot) {
        *self.in_use.entry((slot.env, None)).or_default() += 1;
        if slot.campaign_id.is_some() {
            *self.in_use.entry((slot.env, slot.campaign_id)).or_default() += 1;
        }
        if slot.direction == Direction::Outbound {
            *self.outbound.entry(slot.env).or_default() += 1;
        }
    }
    fn used(&self, env: Env, campaign: Option<CampaignId>) -> i64 {
        self.in_use.get(&(env, campaign)).copied().unwrap_or(0)
    }
    /// For a call that we place.
    fn tenant_has_one(&self, env: Env) -> bool {
        let outbound = self.outbound.get(&env).copied().unwrap_or(0);
        self.room.has_for_outbound(self.used(env, None), outbound)
    }
    /// For one that comes in.
    fn tenant_has_one_for_inbound(&self, env: Env) -> bool {
        self.room.has_for_inbound(self.used(env, None))
    }
    /// A message takes none.
    fn has_one_for(&self, queue: &Queue) -> bool {
        match queue.letter {
            Some(_) => !queue.door_is_shut,
            None => self.tenant_has_one(queue.env) && self.campaign_has_one(queue),
        }
    }
    fn campaign_has_one(&self, queue: &Queue) -> bool {
        let max = queue.plan.pacing.max_concurrency;
        max.is_none_or(|max| self.used(queue.env, Some(queue.id)) < i64::from(max.get()))
    }
}

impl State {
    /// Reads the tenant, its campaigns and its live calls; paces of campaigns that run on do too.
    pub async fn read(deps: &Deps, tenant: TenantId, known: Option<State>) -> Result<State> {
        let db = &deps.db.read;
        // Of a pause that began a moment ago a dial is told only that something has changed.
        holds::look(deps).await?;
        let row = entities::tenant::load(db, tenant).await?;
        let running = campaigns::dispatchable(db, tenant).await?;
        let live = sessions::live(db, tenant).await?;
        let live = live.into_iter().map(|live| (live.id, Slot::from(live))).collect();
        let most = deps.limits.max_calls_per_second;
        let (mut old, pace, gate, trunks, mut ring) = match known {
            Some(state) => (state.campaigns, state.pace, state.gate, state.trunks, state.ring),
            None => {
                let trunks = [Env::Live, Env::Test].map(|env| (env, Trunk::new(most)));
                let gate = Arc::new(Gate::new(most));
                (
                    BTreeMap::new(),
                    Pace::new(most),
                    gate,
                    trunks.into(),
                    RoundRobin::default(),
                )
            }
        };
        let mut campaigns = BTreeMap::new();
        for campaign in running.into_iter().filter(|campaign| has_sender(deps, campaign)) {
            let id = campaign.id;
            let queue = Queue::of(campaign, old.remove(&id), row.timezone, deps).await?;
            // It waits, and it alone.
            if queue.lacks_caller() {
                deps.board.limited(id, LimitingFactor::Trunk);
            } else {
                campaigns.insert(id, queue);
            }
        }
        for gone in old.into_keys() {
            deps.board.forget(gone);
        }
        ring.keep(campaigns.keys().copied());
        gate.keep(|id| campaigns.contains_key(id), deps.clock.now());
        Ok(State {
            known: Known {
                tenant,
                version: row.version,
            },
            zone: row.timezone,
            room: Room::of(&row, &deps.limits),
            pace,
            gate,
            trunks,
            blocks: dispatch_block::of(db, tenant).await?,
            funds: Funds::read(deps, tenant).await?,
            campaigns,
            ring,
            live,
            queued: true,
            outdated: false,
        })
    }

    pub fn is_idle(&self) -> bool {
        self.campaigns.is_empty() && self.live.is_empty() && !self.queued
    }

    /// Notes what has happened.
    pub fn hinted(&mut self, hint: DispatchHint, now: Moment) {
        match hint {
            DispatchHint::CampaignsChanged => (self.outdated, self.queued) = (true, true),
            DispatchHint::SessionQueued => self.queued = true,
            DispatchHint::SlotFreed(session) => {
                let slot = self.live.remove(&session);
                if let Some(campaign) = slot.and_then(|slot| slot.campaign_id) {
                    self.one_ended(campaign);
                }
            }
            DispatchHint::MessageEnded(campaign) => self.one_ended(campaign),
            DispatchHint::TrunkCongested(env) => {
                if let Some(trunk) = self.trunks.remove(&env) {
                    self.trunks.insert(env, trunk.congested(now));
                }
            }
        }
    }

    fn one_ended(&mut self, campaign: CampaignId) {
        if let Some(queue) = self.campaigns.get_mut(&campaign) {
            queue.one_ended();
        }
    }

    fn grow_trunks(&mut self, now: Moment, wake_at: &mut WakeAt) {
        for env in [Env::Live, Env::Test] {
            if let Some(trunk) = self.trunks.remove(&env) {
                let trunk = trunk.grown(now);
                if let Some(at) = trunk.grows_at() {
                    wake_at.no_later_than(at);
                }
                self.trunks.insert(env, trunk);
            }
        }
    }

    fn since(&self, env: Env, reason: Reason) -> Option<Moment> {
        let found = self
            .blocks
            .iter()
            .find(|block| block.env == env && block.reason == reason);
        found.map(|block| block.since)
    }

    /// Who lifts a block may be another process, which sends no hints.
    async fn sees_lifted(&mut self, deps: &Deps) -> Result<bool> {
        if self.blocks.is_empty() {
            return Ok(false);
        }
        let blocks = dispatch_block::of(&deps.db.read, self.known.tenant).await?;
        Ok(std::mem::replace(&mut self.blocks, blocks) != self.blocks)
    }

    /// Nothing leaves, whoever's turn it is.
    fn held(&mut self, deps: &Deps, hold: Hold) {
        for queue in self.campaigns.values_mut() {
            // Who finds no slot waits for one from the end of it on.
            queue.turn_since = None;
            deps.board.limited(queue.id, hold.into());
        }
    }

    fn is_blocked(&self, env: Env) -> bool {
        self.blocks.iter().any(|block| block.env == env)
    }

    fn slots(&self, plan: &Plan) -> Slots {
        let mut slots = Slots {
            room: self.room,
            in_use: HashMap::new(),
            outbound: HashMap::new(),
        };
        let planned = plan.dials.iter().map(|dial| Slot::of(&dial.session));
        for slot in self.live.values().copied().chain(planned) {
            slots.take(slot);
        }
        slots
    }

    /// When the tenant's next call of that env may start.
    fn earliest(&self, env: Env, now: Moment) -> Moment {
        let trunk = self.trunks.get(&env).map_or(now, |trunk| trunk.pace.earliest(now));
        self.pace.earliest(now).max(trunk)
    }

    /// Takes the tenant's and the trunk's token.
    fn spend(&mut self, env: Env, at: Moment) -> bool {
        self.pace.spend(at) && self.trunks.get_mut(&env).is_none_or(|trunk| trunk.pace.spend(at))
    }

    /// Sessions that wait for a slot: the API's, and those that a trunk sent back. They come first.
    async fn gather_queued(&mut self, deps: &Deps, plan: &mut Plan, wake_at: &mut WakeAt) -> Result<()> {
        if !self.queued {
            return Ok(());
        }
        let now = deps.clock.now();
        let mut slots = self.slots(plan);
        let (mut after, mut left) = (None, false);
        loop {
            let waiting = sessions::queued(&deps.db.read, self.known.tenant, after, ROUND as u64).await?;
            let Some(last) = waiting.last() else { break };
            after = Some(last.id);
            for row in waiting {
                let (env, campaign) = (row.env, row.campaign_id);
                let of_campaign = match campaign.map(|id| self.campaigns.get(&id)) {
                    None => None,
                    Some(Some(queue)) => Some((queue.id, queue.version)),
                    // Its campaign is paused: it waits with it.
                    Some(None) => continue,
                };
                let campaign_is_full = of_campaign
                    .and_then(|(id, _)| self.campaigns.get(&id))
                    .is_some_and(|queue| !slots.campaign_has_one(queue));
                // One that was just sent back is let go of first.
                let is_in_hand = self.live.contains_key(&row.id) || deps.calls.contains(row.id);
                if campaign_is_full || is_in_hand {
                    left = true;
                    continue;
                }
                // One that a trunk sent back has its hold.
                let wanted = match row.hold_cents {
                    Cents(0) => hold_of(deps, &row),
                    _ => Cents(0),
                };
                let terms = &deps.limits.credits;
                self.funds.want(env, terms.least(wanted));
                let hold = self.funds.for_call(terms, env, wanted);
                if hold.is_none() && !self.is_blocked(env) {
                    wake_at.no_later_than(now.plus_seconds(funds::LOOK_SECONDS));
                }
                let Some(hold) = hold.filter(|_| {
                    // Woken by what frees it; the other env's calls go on.
                    !self.is_blocked(env) && slots.tenant_has_one(env) && plan.len() < ROUND
                }) else {
                    left = true;
                    continue;
                };
                let at = self.earliest(env, now);
                if at > now.plus(LEAD) {
                    wake_at.no_later_than(at.plus_millis(-lead_ms()));
                    left = true;
                    break;
                }
                if let Some(dial) = self.turn_of(deps, row, hold, (at, now), of_campaign).await?
                    && self.spend(env, at)
                {
                    slots.take(Slot::of(&dial.session));
                    self.funds.take(env, hold);
                    plan.dials.push(dial);
                }
            }
            if left {
                break;
            }
        }
        self.queued = left;
        Ok(())
    }

    /// The intent to place a call that waited; `None` if it may not be placed now, which its session is told.
    async fn turn_of(
        &self,
        deps: &Deps,
        row: sessions::Model,
        hold: Cents,
        (at, now): (Moment, Moment),
        campaign: Option<(CampaignId, i32)>,
    ) -> Result<Option<Dial>> {
        let queue = campaign.and_then(|(id, _)| self.campaigns.get(&id));
        let rules = match queue {
            Some(queue) => queue.rules.clone(),
            None => Rules::direct(row.env, self.zone),
        };
        let direct = direct_caps(deps);
        // A call that a trunk sent back was counted when it was dialled.
        let lifted = Caps {
            per_number_24h: None,
            per_number_7d: None,
            ..Caps::default()
        };
        let caps = if queue.is_some() { &lifted } else { &direct };
        let ring_ms = ring_ms(row.ring_timeout_seconds);
        let behind_ms = deps.clock.times().behind_ms();
        let terms = Terms {
            caps,
            ends_at: rules.ends_at,
            ring_ms,
            suspended_since: None,
            credits_gone: false,
            behind_ms,
        };
        let to_number = row.callee()?;
        let standing = rules.of(&hours::group(to_number, row.timezone));
        let whom = Address::Number(to_number.clone());
        let owner = (row.tenant_id, row.env);
        let whose = People {
            owner,
            channel: Channel::Phone,
            itself: Some(row.id),
        };
        let people = people(deps, &deps.db.read, whose, vec![whom.clone()], now).await?;
        let person = people.get(&whom).cloned().unwrap_or_default();
        let asked = [Rule::Number, Rule::Dnc, Rule::Caps, Rule::Hours];
        let command = match eligibility::first_no(&asked, &person, &standing, &terms, at) {
            None => {
                let Some(spell) = spell(&standing, at) else {
                    return Ok(None);
                };
                let agent = match queue.and_then(|queue| queue.agent.clone()) {
                    Some(agent) => agent,
                    None => agent_of(deps, &row).await?,
                };
                let caps = (
                    caps.per_number_24h.map(|cap| cap.get()),
                    caps.per_number_7d.map(|cap| cap.get()),
                );
                let hours = Within::of(
                    &standing,
                    at,
                    (spell.0, spell.1.plus_millis(-ring_ms)),
                    (ring_ms, behind_ms),
                );
                let session = Session::from_row(row, deps.base_url.clone())?;
                let dial = dial::dial_queued(
                    (deps, self.known),
                    session,
                    agent,
                    (at, hold, hours),
                    caps,
                    campaign,
                    now,
                );
                return dial.await.map(Some);
            }
            Some((Rule::Hours, Verdict::Wait(Some(until)))) if row.scheduled_at.is_some() || queue.is_some() => {
                SessionCommand::Postpone { until }
            }
            Some((Rule::Number, _)) if !person.has_number => SessionCommand::Bar(Bar::NotVerified),
            Some((Rule::Dnc, _)) => SessionCommand::Bar(Bar::OnDnc),
            Some((Rule::Caps, _)) => SessionCommand::Bar(Bar::CapReached),
            Some(_) => SessionCommand::Bar(Bar::OutsideHours),
        };
        deps.router.sessions().tell(row.key(), command);
        Ok(None)
    }

    /// Chooses the campaigns' next calls: as many as tokens, slots and contacts allow, a round at most.
    async fn gather(&mut self, deps: &Deps, plan: &mut Plan, wake_at: &mut WakeAt) -> Result<()> {
        let now = deps.clock.now();
        let mut slots = self.slots(plan);
        self.prepare(deps, now, &slots, plan).await?;

        // When each campaign that has somebody to call, and may, has its next token.
        let mut ready: HashMap<CampaignId, Moment> = HashMap::new();
        let blocked: Vec<Env> = [Env::Live, Env::Test]
            .into_iter()
            .filter(|env| self.is_blocked(*env))
            .collect();
        for queue in self
            .campaigns
            .values_mut()
            .filter(|queue| !blocked.contains(&queue.env))
        {
            if queue.has_turn(now) && queue.allowance(now) == Allowance::Yes {
                ready.insert(queue.id, queue.pace.earliest(now));
            }
        }
        let mut at = now;
        while plan.len() < ROUND {
            let gates = [Env::Live, Env::Test].map(|env| (env, self.earliest(env, now)));
            let gate = |of: Env| gates.iter().find(|(env, _)| *env == of).map(|(_, at)| *at);
            let (campaigns, funds) = (&self.campaigns, &self.funds);
            let has_slot = |id: &CampaignId| {
                campaigns
                    .get(id)
                    .is_some_and(|queue| queue.is_covered(deps, funds) && slots.has_one_for(queue))
            };
            let starts = |id: &CampaignId| {
                let queue = campaigns.get(id)?;
                Some(gate(queue.env)?.max(*ready.get(id)?))
            };
            // Calls are planned in the order of their moments: the first at which anybody may start one.
            let next = ready.keys().filter(|id| has_slot(id)).filter_map(starts).min();
            let Some(next) = next else { break };
            at = at.max(next);
            if at > now.plus(LEAD) {
                wake_at.no_later_than(at.plus_millis(-lead_ms()));
                break;
            }
            if self.gate.waiting() > MAX_LATE {
                wake_at.no_later_than(now.plus(LEAD));
                break;
            }
            // The fractions of a millisecond in which the gates differ keep nobody from their turn.
            let soon = at.plus_millis(1);
            let can = |id: &CampaignId| has_slot(id) && starts(id).is_some_and(|starts| starts <= soon);
            let weight = |id: &CampaignId| campaigns.get(id).map_or(1, Queue::weight);
            let Some(id) = self.ring.next(can, weight) else { break };
            let Some(env) = campaigns.get(&id).map(|queue| queue.env) else {
                break;
            };
            if !self.spend(env, at) {
                continue;
            }
            let Some(queue) = self.campaigns.get_mut(&id) else {
                break;
            };
            let turn = if queue.pace.spend(at) { queue.pop_turn(at) } else { None };
            match turn {
                Some(turn) if queue.letter.is_some() => {
                    write(deps, (self.known, &mut self.funds), queue, (turn, at), plan).await?;
                }
                Some(turn) => {
                    let hold = self.funds.for_call(&deps.limits.credits, env, queue.hold);
                    let hold = hold.ok_or_else(|| Error::Internal("a call that is not covered has its turn".into()))?;
                    slots.take(Slot::outbound(env, Some(id)));
                    self.funds.take(env, hold);
                    queue.one_dispatched();
                    plan.dials
                        .push(dial::dial(deps, self.known, queue, turn, (at, hold)).await?);
                }
                None => {}
            }
            if queue.has_turn(at) && queue.allowance(at) == Allowance::Yes {
                ready.insert(id, queue.pace.earliest(now));
            } else {
                ready.remove(&id);
            }
        }
        self.look_around(deps, now, &slots, plan, wake_at).await
    }

    /// Reads who may be called next, and settles who may not.
    async fn prepare(&mut self, deps: &Deps, now: Moment, slots: &Slots, plan: &mut Plan) -> Result<()> {
        let (tenant, zone) = (self.known.tenant, self.zone);
        let so = |state: &State, env| Circumstances {
            tenant,
            zone,
            suspended_since: state.since(env, Reason::Suspension),
            credits_gone: state.since(env, Reason::Credits).is_some(),
        };
        let circumstances = [Env::Live, Env::Test].map(|env| (env, so(self, env)));
        for queue in self.campaigns.values_mut() {
            let Some((_, so)) = circumstances.iter().find(|(env, _)| *env == queue.env) else {
                continue;
            };
            let out_of_patience = so
                .suspended_since
                .is_some_and(|since| now >= since.plus_seconds(PATIENCE_SECONDS));
            if (so.credits_gone || so.suspended_since.is_some()) && !out_of_patience {
                // Contacts wait as they are.
                continue;
            }
            queue.door_is_shut = false;
            queue.reserve(deps, slots.used(queue.env, Some(queue.id))).await?;
            queue.refill(deps, now, *so).await?;
            let (caps_end_it, mut capped) = (queue.caps_end_it(now), 0);
            if caps_end_it && plan.is_empty() {
                queue.read_left(deps, now, *so).await?;
            }
            while plan.len() < ROUND {
                let settled = match queue.pop_settled() {
                    Some(settled) => Some(settled),
                    // Others have their turn in between: there may be many.
                    None if caps_end_it && capped < CAPPED => {
                        capped += 1;
                        queue.pop_capped()
                    }
                    None => None,
                };
                let Some(candidate) = settled else { break };
                let outcome = match (candidate.verdict, candidate.rule) {
                    (Verdict::Never(reason), _) => Outcome::Skip(reason),
                    (Verdict::Wait(Some(until)), Some(Rule::Caps)) => Outcome::Defer(until, WaitReason::Cap),
                    (Verdict::Wait(Some(until)), _) => {
                        let reason = candidate.contact.wait_reason.unwrap_or(WaitReason::NotBefore);
                        Outcome::Defer(until, reason)
                    }
                    // The tenant is held up; nothing is dialled, and the contact is read again when that is over.
                    (Verdict::Wait(None) | Verdict::Yes, _) => continue,
                };
                if matches!(outcome, Outcome::Defer(..)) {
                    queue.one_deferred();
                }
                plan.settled
                    .push(dial::settle(deps, &candidate.contact, queue, outcome)?);
            }
        }
        Ok(())
    }

    /// What holds each campaign up, and when that may be over.
    async fn look_around(
        &mut self,
        deps: &Deps,
        now: Moment,
        slots: &Slots,
        plan: &mut Plan,
        wake_at: &mut WakeAt,
    ) -> Result<()> {
        let gates: HashMap<Env, (Moment, Moment)> = [Env::Live, Env::Test]
            .map(|env| {
                let trunk = self.trunks.get(&env).map_or(now, |trunk| trunk.pace.earliest(now));
                (env, (self.pace.earliest(now), trunk))
            })
            .into();
        let blocks = self.blocks.clone();
        for queue in self.campaigns.values_mut() {
            let block = blocks.iter().find(|block| block.env == queue.env);
            let limiting = if let Some(block) = block {
                if block.reason == Reason::Suspension {
                    wake_at.no_later_than(block.since.plus_seconds(PATIENCE_SECONDS).max(now.plus_seconds(1)));
                }
                match block.reason {
                    Reason::Credits => LimitingFactor::Credits,
                    Reason::Suspension => LimitingFactor::Suspension,
                }
            } else if !queue.has_turn(now) {
                if let Some(at) = queue.wake_at() {
                    wake_at.no_later_than(at.max(now.plus_millis(1)));
                }
                match queue.rests_until(deps, now).await? {
                    Some(next_open_at) => {
                        if plan.is_empty() {
                            rest(deps, queue, self.known.tenant, next_open_at).await?;
                        }
                        LimitingFactor::QuietHours
                    }
                    None if queue.wake_at().is_some() || queue.in_review => LimitingFactor::Waiting,
                    None => LimitingFactor::NoneLeft,
                }
            } else {
                let allowance = queue.allowance(now);
                if allowance == Allowance::Yes {
                    self.funds.want(queue.env, queue.least_needed(deps));
                }
                match allowance {
                    Allowance::Never | Allowance::WhenOneEnds => LimitingFactor::Budget,
                    Allowance::From(at) => {
                        wake_at.no_later_than(at);
                        LimitingFactor::DailyCap
                    }
                    // Woken by a call that ends cheaper than it might have, and by what is paid in. A message that is sent off by
                    // itself wakes nobody.
                    Allowance::Yes if !queue.is_covered(deps, &self.funds) => {
                        wake_at.no_later_than(now.plus_seconds(funds::LOOK_SECONDS));
                        LimitingFactor::Credits
                    }
                    Allowance::Yes => {
                        let own = queue.pace.earliest(now);
                        let (tenant, trunk) = gates.get(&queue.env).copied().unwrap_or((now, now));
                        let tenant_full = queue.letter.is_none() && !slots.tenant_has_one(queue.env);
                        if !slots.has_one_for(queue) {
                            if own <= now {
                                turn_in_vain(deps, queue, now, plan, wake_at)?;
                            } else if queue.plan.pacing.max_wait_seconds.is_some() {
                                wake_at.no_later_than(own);
                            }
                            if queue.letter.is_some() {
                                LimitingFactor::Provider
                            } else if tenant_full {
                                LimitingFactor::Concurrency
                            } else {
                                LimitingFactor::CampaignConcurrency
                            }
                        } else if trunk > own && trunk > tenant {
                            LimitingFactor::Trunk
                        } else if tenant > own {
                            LimitingFactor::WorkspaceRate
                        } else {
                            LimitingFactor::Rate
                        }
                    }
                }
            };
            deps.board.limited(queue.id, limiting);
        }
        Ok(())
    }

    /// Commits the intents, all at once, and hands the calls over at their moments. Answers whether all rows were as
    /// expected.
    async fn commit(&mut self, deps: &Deps, plan: Plan) -> Result<bool> {
        let (mut as_expected, mut failed) = (true, None);
        let mut note = |error: Error| {
            as_expected = false;
            // Nothing was dialled; a database that does not answer is asked again later.
            if !matches!(error, Error::Stale) {
                failed.get_or_insert(error);
            }
        };
        let settled = join_all(plan.settled.into_iter().map(|commit| deps.writer.commit(commit)));
        let (calls, dials): (Vec<_>, Vec<_>) = plan
            .dials
            .into_iter()
            .map(
                |Dial {
                     call,
                     session,
                     at,
                     commit,
                     effects,
                 }| {
                    // Before the commit, so that nobody takes the call for one that a crash cut off.
                    deps.calls.insert(session.call.id, call);
                    ((session, at, effects), deps.writer.commit(commit))
                },
            )
            .unzip();
        let (letters, written): (Vec<_>, Vec<_>) = plan
            .letters
            .into_iter()
            .map(|(letters, permit)| {
                let Letters {
                    message,
                    at,
                    commit,
                    effects,
                } = letters;
                ((message, permit, at, effects), deps.writer.commit(commit))
            })
            .unzip();
        let (settled, dialed, written) = futures_util::future::join3(settled, join_all(dials), join_all(written)).await;
        for (outcome, (message, permit, at, effects)) in written.into_iter().zip(letters) {
            if let Err(error) = outcome {
                if !matches!(error, Error::Stale) {
                    message.undecided(deps);
                }
                note(error);
                continue;
            }
            deps.router.perform(effects);
            let campaign = message.campaign();
            if let Some(campaign) = campaign {
                deps.board.dialed(campaign, at);
            }
            let rate = campaign.and_then(|id| Some((id, self.campaigns.get(&id)?.pace.rate())));
            at_its_moment(deps, self.gate.clone(), rate, at, move |deps, _| {
                message.send(deps, permit)
            });
        }
        settled.into_iter().filter_map(Result::err).for_each(&mut note);
        for (outcome, (session, at, effects)) in dialed.into_iter().zip(calls) {
            let id = session.call.id;
            if let Err(error) = outcome {
                match error {
                    Error::Stale => deps.calls.remove(id),
                    _ => undecided(deps, session.key(), at),
                }
                note(error);
                continue;
            }
            deps.router.perform(effects);
            self.live.insert(id, Slot::of(&session));
            let campaign = session.call.campaign_id;
            if let Some(campaign) = campaign {
                deps.board.dialed(campaign, at);
            }
            let rate = campaign.and_then(|id| Some((id, self.campaigns.get(&id)?.pace.rate())));
            at_its_moment(deps, self.gate.clone(), rate, at, move |deps, late| {
                place(deps, session, at, late)
            });
        }
        failed.map_or(Ok(as_expected), Err)
    }
}

impl State {
    /// A call that has come in takes a slot, if one is free, and is answered.
    pub async fn admit(&mut self, deps: &Deps, session: Session, call: Call, mut commit: Commit) -> Result<Admitted> {
        let env = session.call.env;
        self.outdated |= self.sees_lifted(deps).await?;
        let funds = Funds::read(deps, self.known.tenant).await?;
        if self.is_blocked(env) || deps.is_draining() {
            return Ok(Admitted::Blocked);
        }
        // Less is available than a moment ago, when its hold was decided: whoever asked decides anew.
        if !funds.cover(env, session.call.hold_cents) {
            return Err(Error::Stale);
        }
        if !self.slots(&Plan::default()).tenant_has_one_for_inbound(env) {
            return Ok(Admitted::NoSlot);
        }
        // A limit or a suspension holds from its commit on.
        let guard = Guard::Free(self.known.tenant, env, self.known.version);
        commit.changes.guards.push(guard);
        let (id, leg) = (session.call.id, call.leg.clone());
        // Before the commit, so that nobody takes the call for one that a crash cut off.
        deps.calls.insert(id, call);
        if let Err(error) = deps.writer.commit(commit).await {
            deps.calls.remove(id);
            return Err(error);
        }
        self.live.insert(id, Slot::of(&session));
        deps.calls.place(id, |_| deps.carriers.take(deps, leg));
        deps.router.sessions().adopt(session);
        Ok(Admitted::Yes)
    }
}

/// Hands a committed call, or message, over at its moment; and says whether that has passed too long ago for a call.
fn at_its_moment(
    deps: &Deps,
    gate: Arc<Gate>,
    campaign: Option<(CampaignId, f64)>,
    at: Moment,
    hand_over: impl FnOnce(&Deps, bool) + Send + 'static,
) {
    let (deps, mut busy) = (deps.clone(), deps.clock.busy());
    // A machine that sleeps stands still by our time, and by no other.
    let wall_at = at.plus_millis(-deps.clock.times().behind_ms());
    deps.runtime.clone().spawn(async move {
        busy = deps.clock.busy_until(at, busy).await;
        gate.begin_to_wait();
        while let Err(free_at) = gate.pass(campaign, deps.clock.now()) {
            busy = deps.clock.busy_until(free_at, busy).await;
        }
        gate.end_to_wait();
        deps.fence.pass(&deps.db).await;
        // The last look at the clock: what stalled the process has stalled everything above.
        let times = deps.clock.times();
        let late = times.in_doubt
            || times.ours > at.plus_millis(PLACED_WITHIN_MS)
            || times.wall > wall_at.plus_millis(PLACED_WITHIN_MS);
        hand_over(&deps, late);
        drop(busy);
    });
}

/// Plans a message to the contact whose turn it is.
async fn write(
    deps: &Deps,
    (known, funds): (Known, &mut Funds),
    queue: &mut Queue,
    (turn, at): (Turn, Moment),
    plan: &mut Plan,
) -> Result<()> {
    let Some(permit) = message::room(deps, known.tenant, queue) else {
        // Woken when one of those on their way has been handed over.
        queue.door_is_shut = true;
        queue.put_back(turn);
        return Ok(());
    };
    match message::write(deps, known, queue, &turn, at).await? {
        Ok(letters) => {
            let price = letters.message.price();
            if funds.cover(queue.env, price) {
                funds.take(queue.env, price);
                queue.one_written(price);
                plan.letters.push((letters, permit));
            } else {
                // Longer than others, and not covered: the campaign waits with it.
                queue.hold = price;
                queue.put_back(turn);
            }
        }
        Err(outcome) => plan.settled.push(dial::settle(deps, &turn.contact, queue, outcome)?),
    }
    Ok(())
}

/// Is there who hands over what it writes? The operator may have taken the provider away: the campaign waits, and it alone.
fn has_sender(deps: &Deps, campaign: &campaigns::Model) -> bool {
    let sender = match campaign.plan.channel {
        Channel::Phone => Ok(()),
        Channel::Sms => crate::sms::check_configured(deps, campaign.env),
        Channel::Email => crate::email::check_configured(deps, campaign.env),
    };
    sender.is_ok()
}

fn place(deps: &Deps, session: Session, at: Moment, late: bool) {
    if late {
        metrics::counter!("callboard_calls_late_total").increment(1);
        let back = SessionCommand::Requeue { dialed_at: at };
        deps.router.sessions().tell(session.key(), back);
        return;
    }
    if let Some(carrier) = deps.carriers.of(session.call.env) {
        // An end that comes first keeps it from being dialled at all.
        deps.calls.place(session.call.id, |leg| carrier.place(deps, leg));
    }
    deps.router.sessions().adopt(session);
}

/// The intent to call may stand all the same, though its commit was given up. Nothing was placed: the call stays in hand until that
/// is known, and then waits for its turn again, with the same attempt.
fn undecided(deps: &Deps, key: Owned<SessionId>, at: Moment) {
    let (its, busy) = (deps.clone(), deps.clock.busy());
    deps.runtime.spawn(async move {
        let _busy = busy;
        its.decided().await;
        let row = loop {
            match sessions::load(&its.db.read, key).await {
                Err(error) if error.retryable() && !its.is_draining() => its.clock.back_off(20).await,
                row => break row,
            }
        };
        match row {
            Ok(row) if row.phase == sessions::Phase::Dialing => {
                let back = SessionCommand::Requeue { dialed_at: at };
                its.router.sessions().tell(key, back);
            }
            _ => its.calls.remove(key.id),
        }
    });
}

/// Nobody who is left may be called now: the campaign pauses until the first of them may.
async fn rest(deps: &Deps, queue: &Queue, tenant: TenantId, next_open_at: Moment) -> Result<()> {
    let tally = entities::tally::load(&deps.db.read, queue.id).await?;
    let campaign = Owned::new(tenant, queue.env, queue.id);
    let command = CampaignCommand::Rest {
        next_open_at,
        total: tally.total,
        waiting: tally.pending + tally.waiting,
        version: queue.version,
    };
    if tally.pending + tally.waiting > 0 {
        deps.router.campaigns().tell(campaign, command);
    }
    Ok(())
}

/// The contact whose turn it is finds no slot: it waits, but not longer than its campaign wants.
fn turn_in_vain(deps: &Deps, queue: &mut Queue, now: Moment, plan: &mut Plan, wake_at: &mut WakeAt) -> Result<()> {
    let Some(max_wait) = queue.plan.pacing.max_wait_seconds else {
        return Ok(());
    };
    let since = *queue.turn_since.get_or_insert(now);
    let until = since.plus_seconds(max_wait.get().into());
    if now < until {
        wake_at.no_later_than(until);
    } else if let Some(turn) = queue.pop_turn(now) {
        let outcome = Outcome::Skip(SkipReason::ConcurrencyFull);
        plan.settled.push(dial::settle(deps, &turn.contact, queue, outcome)?);
    }
    Ok(())
}

/// What a call sets aside.
fn hold_of(deps: &Deps, row: &sessions::Model) -> Cents {
    let terms = &deps.limits.credits;
    terms.hold(row.price_cents_per_minute, row.max_duration_seconds)
}

fn lead_ms() -> i64 {
    i64::try_from(LEAD.as_millis()).unwrap_or(0)
}

fn spell(standing: &Standing, at: Moment) -> Option<(Moment, Moment)> {
    match standing {
        Standing::Hours(hours) => hours.spell(at).map(|spell| (spell.from, spell.until)),
        Standing::Uncallable => None,
    }
}

/// What guards direct calls, which have no campaign to say it.
pub fn direct_caps(deps: &Deps) -> Caps {
    let cap = |cap: i32| Bounded::new(i64::from(cap)).ok();
    Caps {
        per_number_24h: cap(deps.limits.number_cap_24h),
        per_number_7d: cap(deps.limits.number_cap_7d),
        ..Caps::default()
    }
}

/// The agent as it was when the call was made.
async fn agent_of(deps: &Deps, row: &sessions::Model) -> Result<Arc<AgentSnapshot>> {
    let version = entities::agent_version::load(&deps.db.read, row.tenant_id, row.agent_id, row.agent_version).await?;
    Ok(Arc::new(AgentSnapshot {
        id: version.agent_id,
        version: version.version,
        definition: version.definition,
    }))
}
