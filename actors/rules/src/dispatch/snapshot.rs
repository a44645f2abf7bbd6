//! What a tenant's next round is decided from: its rates, slots, credits and campaigns, and what is in flight.
use super::{
    concurrency::{Concurrency, Slot},
    fair::RoundRobin,
    funds::Funds,
    key_limits::KeyLimits,
    pace::Pace,
    queue::{Circumstances, Queue},
    route::Route,
    slots::Slots,
    trunk::Trunks,
};
use crate::{credits::terms::Terms, effect::DispatchHint, eligibility::PATIENCE_SECONDS};
use entities::{
    dispatch_block::{Model as Block, Reason},
    ids::{CampaignId, SessionId},
    values::{Env, Moment},
};
use std::collections::{BTreeMap, HashMap};

pub struct Snapshot {
    pub concurrency: Concurrency,
    pub terms: Terms,
    pub pace: Pace,
    pub trunks: Trunks,
    pub blocks: Vec<Block>,
    pub funds: Funds,
    pub keys: KeyLimits,
    pub campaigns: BTreeMap<CampaignId, Queue>,
    pub ring: RoundRobin<CampaignId>,
    /// The calls that take a slot.
    pub live: HashMap<SessionId, Slot>,
}

impl Snapshot {
    /// Notes what ended, or was refused; what else has happened shows in the rows.
    pub fn hinted(&mut self, hint: DispatchHint, now: Moment) {
        let ended = match hint {
            DispatchHint::SlotFreed(session) => self.live.remove(&session).and_then(|slot| slot.campaign_id),
            DispatchHint::MessageEnded(campaign) => Some(campaign),
            DispatchHint::TrunkCongested(route) => {
                self.trunks.congested(route, now);
                None
            }
            DispatchHint::NoRoom => {
                self.trunks.no_room(now);
                None
            }
            DispatchHint::CampaignsChanged | DispatchHint::SessionQueued => None,
        };
        if let Some(queue) = ended.and_then(|campaign| self.campaigns.get_mut(&campaign)) {
            queue.one_ended();
        }
    }

    pub fn is_blocked(&self, env: Env) -> bool {
        self.blocks.iter().any(|block| block.env == env)
    }

    fn since(&self, env: Env, reason: Reason) -> Option<Moment> {
        let of = |block: &&Block| block.env == env && block.reason == reason;
        self.blocks.iter().find(of).map(|block| block.since)
    }

    pub fn circumstances(&self, env: Env) -> Circumstances {
        Circumstances {
            suspended_since: self.since(env, Reason::Suspension),
            credits_gone: self.since(env, Reason::Credits).is_some(),
        }
    }

    /// Its contacts wait as they are.
    pub fn is_held(&self, env: Env, now: Moment) -> bool {
        let so = self.circumstances(env);
        match so.suspended_since {
            Some(since) => now < since.plus_seconds(PATIENCE_SECONDS),
            None => so.credits_gone,
        }
    }

    pub fn slots(&self) -> Slots {
        Slots::new(self.concurrency, self.live.values().copied())
    }

    /// Takes the tenant's token and the route's; a message has none. `false`: one of them is not due.
    pub(super) fn spend(&mut self, route: Option<Route>, at: Moment) -> bool {
        self.pace.spend(at) && route.is_none_or(|route| self.trunks.spend(route, at))
    }
}
