//! One round of a dispatcher, decided: which calls and messages leave when, which contacts are settled without, what holds up
//! each campaign, and when to look again. Pure: the same snapshot has the same plan.
use super::{
    candidate::{Settlement, Turn},
    concurrency::Slot,
    funds,
    limiting::LimitingFactor,
    pace::{self, LEAD},
    per_env::PerEnv,
    queue::Queue,
    round::{ROUND, WakeAt},
    route::Route,
    slots::Slots,
    snapshot::Snapshot,
    usage::Allowance,
    waiting::Begun,
};
use crate::{campaign::message_template::Filled, eligibility::PATIENCE_SECONDS, law::NoRoom};
use entities::{
    campaign::Channel,
    contact::{Address, Model as Contact, SkipReason},
    dispatch_block::Reason,
    ids::{CampaignId, TrunkId},
    values::{Cents, E164, Env, Moment},
};
use std::collections::HashMap;

/// Contacts of one campaign among them that its own caps leave out.
const CAPPED: usize = 32;
/// Places of a round that are kept for calls and messages: those who are settled may be the whole of a long list.
const KEPT: usize = 32;
/// Calls that may be late at their last gate, until no more are planned.
const MAX_LATE: usize = 64;

/// What one round does, besides the sessions that had their turn before.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    pub calls: Vec<PlannedCall>,
    pub messages: Vec<PlannedMessage>,
    /// Contacts that are not dispatched at all, or not now.
    pub settled: Vec<Settled>,
    /// Campaigns of which nobody may be called before that moment.
    pub resting: Vec<(CampaignId, Moment)>,
    /// What holds each campaign up.
    pub limits: Vec<(CampaignId, LimitingFactor)>,
    pub wake_at: WakeAt,
}

#[derive(Debug, PartialEq)]
pub struct PlannedCall {
    pub campaign: CampaignId,
    pub turn: Turn,
    pub at: Moment,
    pub hold: Cents,
    pub from_number: Option<E164>,
    /// What a live call goes over.
    pub trunk_id: Option<TrunkId>,
}

#[derive(Debug, PartialEq)]
pub struct PlannedMessage {
    pub campaign: CampaignId,
    pub turn: Turn,
    pub at: Moment,
    pub text: Filled,
    pub from_number: Option<E164>,
}

#[derive(Debug, PartialEq)]
pub struct Settled {
    pub campaign: CampaignId,
    pub contact: Contact,
    pub settlement: Settlement,
    /// The rule of the law by which it is skipped, if one says so.
    pub law_rule: Option<String>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.messages.is_empty() && self.settled.is_empty()
    }
}

/// So many more messages may be on their way to those who hand them over.
#[derive(Clone, Copy, Debug)]
pub struct Doors {
    pub sms: PerEnv<usize>,
    pub email: usize,
}

impl Doors {
    fn left(&mut self, channel: Channel, env: Env) -> Option<&mut usize> {
        let left = match channel {
            Channel::Phone => return None,
            Channel::Sms => self.sms.get_mut(env),
            Channel::Email => &mut self.email,
        };
        Some(left).filter(|left| **left > 0)
    }
}

/// Chooses the campaigns' next calls and messages: as many as tokens, slots and contacts allow, a round at most. What they need is
/// taken from the snapshot. `late`: calls that are late at their last gate.
pub fn plan(snapshot: &mut Snapshot, begun: Begun, doors: Doors, late: usize, now: Moment) -> Plan {
    let Begun {
        slots, turns, wake_at, ..
    } = begun;
    let plan = Plan {
        wake_at,
        ..Plan::default()
    };
    let mut planner = Planner {
        snapshot,
        slots,
        doors,
        now,
        turns,
        plan,
    };
    planner.settle();
    planner.choose(late);
    planner.report();
    planner.plan
}

struct Planner<'a> {
    snapshot: &'a mut Snapshot,
    slots: Slots,
    doors: Doors,
    now: Moment,
    /// Sessions that have their turn in this round.
    turns: usize,
    plan: Plan,
}

impl Planner<'_> {
    fn len(&self) -> usize {
        self.turns + self.plan.calls.len() + self.plan.messages.len() + self.plan.settled.len()
    }

    /// Contacts that are not dispatched, whoever's turn it is.
    fn settle(&mut self) {
        let held = PerEnv::new(|env| self.snapshot.is_held(env, self.now));
        for queue in self
            .snapshot
            .campaigns
            .values_mut()
            .filter(|queue| !held.get(queue.env))
        {
            let (caps_end_it, mut capped) = (queue.caps_end_it(self.now), 0);
            while self.turns + self.plan.settled.len() < ROUND - KEPT {
                let candidate = match queue.pop_settled() {
                    Some(settled) => Some(settled),
                    // Others have their turn in between: there may be many.
                    None if caps_end_it && capped < CAPPED => {
                        capped += 1;
                        queue.pop_capped()
                    }
                    None => None,
                };
                let Some(candidate) = candidate else { break };
                let Some(settlement) = candidate.settlement() else {
                    continue;
                };
                if matches!(settlement, Settlement::Defer(..)) {
                    queue.one_deferred();
                }
                self.plan.settled.push(Settled {
                    campaign: queue.id,
                    contact: candidate.contact,
                    settlement,
                    law_rule: candidate.law_rule,
                });
            }
        }
    }

    /// The calls and messages, in the order of their moments: the first at which anybody may start one, and of those who may start
    /// then whoever's turn it is.
    fn choose(&mut self, late: usize) {
        let now = self.now;
        // When each campaign that has somebody to dispatch, and may, has its next token.
        let mut ready: HashMap<CampaignId, Moment> = HashMap::new();
        for queue in self.snapshot.campaigns.values() {
            if !self.snapshot.is_blocked(queue.env) && may_go_on(queue, now) {
                ready.insert(queue.id, queue.pace.earliest(now));
            }
        }
        let mut at = now;
        while self.len() < ROUND {
            let Snapshot {
                campaigns,
                funds,
                keys,
                ring,
                pace,
                trunks,
                ..
            } = &mut *self.snapshot;
            let (tenant, slots) = (pace.earliest(now), &self.slots);
            let starts = |id: &CampaignId| {
                let has_room = |queue: &&Queue| queue.is_covered(funds) && queue.key_full_until(keys, now).is_none();
                let queue = campaigns
                    .get(id)
                    .filter(has_room)
                    .filter(|queue| queue.has_slot(slots))?;
                let opens = queue.opens_at(trunks, slots, now)?;
                Some(tenant.max(opens).max(*ready.get(id)?))
            };
            let Some(next) = ready.keys().filter_map(starts).min() else {
                break;
            };
            at = at.max(next);
            if at > now.plus(LEAD) {
                self.plan.wake_at.no_later_than(pace::planned_from(at));
                break;
            }
            if late > MAX_LATE {
                self.plan.wake_at.no_later_than(now.plus(LEAD));
                break;
            }
            // The fractions of a millisecond in which the gates differ keep nobody from their turn.
            let soon = at.plus_millis(1);
            let can = |id: &CampaignId| starts(id).is_some_and(|starts| starts <= soon);
            let weight = |id: &CampaignId| campaigns.get(id).map_or(1, Queue::weight);
            let Some(id) = ring.next(can, weight) else { break };
            let is_open = |route: Route| trunks.opens_at(route, slots, now).is_some_and(|opens| opens <= soon);
            let Some(route) = campaigns.get(&id).map(|queue| queue.route(at, is_open)) else {
                break;
            };
            if !self.snapshot.spend(route, at) {
                continue;
            }
            self.dispatch(id, route, at);
            match self.snapshot.campaigns.get(&id) {
                Some(queue) if may_go_on(queue, at) => ready.insert(id, queue.pace.earliest(now)),
                Some(_) | None => ready.remove(&id),
            };
        }
    }

    /// The next of that campaign, at that moment. `route`: what a call goes over.
    fn dispatch(&mut self, campaign: CampaignId, route: Option<Route>, at: Moment) {
        let Snapshot {
            campaigns,
            funds,
            keys,
            terms,
            ..
        } = &mut *self.snapshot;
        let Some(queue) = campaigns.get_mut(&campaign) else {
            return;
        };
        let turn = if queue.pace.spend(at) { queue.pop_turn(at) } else { None };
        let Some(turn) = turn else { return };
        if queue.template.is_some() {
            return self.write(campaign, turn, at);
        }
        // Less than the least is never set aside; it was covered when it was chosen.
        let Some(hold) = funds.for_call(terms, queue.env, queue.hold) else {
            return queue.put_back(turn);
        };
        let trunk_id = route.and_then(Route::trunk);
        self.slots.take(Slot::outbound(queue.env, Some(campaign), trunk_id));
        funds.take(queue.env, hold);
        queue.one_called(keys, at);
        let from_number = queue.next_from_number(route, &turn, at);
        self.plan.calls.push(PlannedCall {
            campaign,
            turn,
            at,
            hold,
            from_number,
            trunk_id,
        });
    }

    fn write(&mut self, campaign: CampaignId, turn: Turn, at: Moment) {
        let Snapshot { campaigns, funds, .. } = &mut *self.snapshot;
        let Some(queue) = campaigns.get_mut(&campaign) else {
            return;
        };
        let Some(left) = self.doors.left(queue.plan.channel, queue.env) else {
            // Woken when one of those on their way has been handed over.
            queue.provider_full = true;
            return queue.put_back(turn);
        };
        let text = queue
            .template
            .as_ref()
            .map(|template| template.fill(&queue.plan, &turn.contact));
        let (text, parts) = match (text, &turn.address) {
            (Some(Ok(Filled::Sms(body))), Address::Number(_)) => match queue.text(&turn, body) {
                Ok(text) => (Filled::Sms(text.body), text.segments),
                Err(NoRoom { rule, .. }) => {
                    return self.plan.settled.push(unwritable(campaign, turn.contact, Some(rule)));
                }
            },
            (Some(Ok(mail @ Filled::Email { .. })), Address::Email(_)) => (mail, 1),
            // Its variables have changed since it was taken in.
            _ => return self.plan.settled.push(unwritable(campaign, turn.contact, None)),
        };
        let price = queue.price_of(parts);
        if !funds.cover(queue.env, price) {
            return queue.wait_for_credits(turn, price);
        }
        *left -= 1;
        funds.take(queue.env, price);
        queue.one_written(price, at);
        let from_number = match text {
            Filled::Sms(_) => queue.next_from_number(None, &turn, at),
            Filled::Email { .. } => None,
        };
        self.plan.messages.push(PlannedMessage {
            campaign,
            turn,
            at,
            text,
            from_number,
        });
    }

    /// What holds each campaign up, and when that may be over.
    fn report(&mut self) {
        let ids: Vec<CampaignId> = self.snapshot.campaigns.keys().copied().collect();
        for id in ids {
            if let Some(limiting) = self.limiting(id) {
                self.plan.limits.push((id, limiting));
            }
        }
    }

    fn limiting(&mut self, id: CampaignId) -> Option<LimitingFactor> {
        let now = self.now;
        let env = self.snapshot.campaigns.get(&id)?.env;
        if let Some(block) = self.snapshot.blocks.iter().find(|block| block.env == env) {
            return Some(match block.reason {
                Reason::Credits => LimitingFactor::Credits,
                Reason::Suspension => {
                    let ends = block.since.plus_seconds(PATIENCE_SECONDS);
                    self.plan.wake_at.no_later_than(ends.max(now.plus_seconds(1)));
                    LimitingFactor::Suspension
                }
            });
        }
        let Snapshot {
            campaigns,
            funds,
            keys,
            pace,
            trunks,
            ..
        } = &mut *self.snapshot;
        let (queue, plan) = (campaigns.get_mut(&id)?, &mut self.plan);
        if !queue.has_turn(now) {
            return Some(nobody_has_a_turn(queue, plan, now));
        }
        let own_limit = own_limit(queue, plan, now);
        if own_limit.is_some() {
            return own_limit;
        }
        if let Some(until) = queue.key_full_until(keys, now) {
            plan.wake_at.no_later_than(until);
            return Some(LimitingFactor::ApiKey);
        }
        funds.want(env, queue.least_needed());
        if !queue.is_covered(funds) {
            // Woken by a call that ends cheaper than it might have, and by what is paid in. A message that is sent off by itself
            // wakes nobody.
            plan.wake_at.no_later_than(now.plus_seconds(funds::LOOK_SECONDS));
            return Some(LimitingFactor::Credits);
        }
        let own = queue.pace.earliest(now);
        if !queue.has_slot(&self.slots) {
            if own <= now {
                no_slot_for(queue, plan, now);
            } else if queue.plan.pacing.max_wait_seconds.is_some() {
                plan.wake_at.no_later_than(own);
            }
            return Some(match queue.template {
                Some(_) => LimitingFactor::Provider,
                None if !self.slots.tenant_has_one(env) => LimitingFactor::Concurrency,
                None => LimitingFactor::CampaignConcurrency,
            });
        }
        let tenant = pace.earliest(now);
        // Down, paused or with all its channels in use: woken when that changes.
        let Some(trunk) = queue.opens_at(trunks, &self.slots, now) else {
            return Some(LimitingFactor::Trunk);
        };
        Some(if trunk > own && trunk > tenant {
            LimitingFactor::Trunk
        } else if tenant > own {
            LimitingFactor::WorkspaceRate
        } else {
            LimitingFactor::Rate
        })
    }
}

/// There is no text that could be sent.
fn unwritable(campaign: CampaignId, contact: Contact, law_rule: Option<String>) -> Settled {
    Settled {
        campaign,
        contact,
        settlement: Settlement::Skip(SkipReason::Invalid),
        law_rule,
    }
}

fn may_go_on(queue: &Queue, at: Moment) -> bool {
    queue.has_turn(at) && !queue.is_braked() && queue.allowance(at) == Allowance::Yes
}

/// What it has abandoned, and its own caps.
fn own_limit(queue: &Queue, plan: &mut Plan, now: Moment) -> Option<LimitingFactor> {
    if queue.is_braked() {
        // Its rows are read anew every half minute.
        return Some(LimitingFactor::Abandonment);
    }
    match queue.allowance(now) {
        Allowance::Never | Allowance::WhenOneEnds => Some(LimitingFactor::Budget),
        Allowance::From(at) => {
            plan.wake_at.no_later_than(at);
            Some(LimitingFactor::DailyCap)
        }
        Allowance::Yes => None,
    }
}

fn nobody_has_a_turn(queue: &Queue, plan: &mut Plan, now: Moment) -> LimitingFactor {
    if let Some(at) = queue.wake_at() {
        plan.wake_at.no_later_than(at.max(now.plus_millis(1)));
    }
    if let Some(held) = queue.held_by() {
        return held;
    }
    match queue.rests_until(now) {
        Some(next_open_at) => {
            plan.resting.push((queue.id, next_open_at));
            LimitingFactor::QuietHours
        }
        None if queue.wake_at().is_some() || queue.in_review => LimitingFactor::Waiting,
        None => LimitingFactor::NoneLeft,
    }
}

/// The contact whose turn it is finds no slot: it waits, but not longer than its campaign wants.
fn no_slot_for(queue: &mut Queue, plan: &mut Plan, now: Moment) {
    let Some(max_wait) = queue.plan.pacing.max_wait_seconds else {
        return;
    };
    let Some(since) = queue.no_slot_since(now) else {
        return;
    };
    let until = since.plus_seconds(max_wait.get().into());
    if now < until {
        plan.wake_at.no_later_than(until);
    } else if let Some(turn) = queue.pop_turn(now) {
        plan.settled.push(Settled {
            campaign: queue.id,
            contact: turn.contact,
            settlement: Settlement::Skip(SkipReason::ConcurrencyFull),
            law_rule: None,
        });
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
