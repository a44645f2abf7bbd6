//! What a tenant's next round is decided from: its rates, slots, credits and campaigns, and what is in flight.
use super::{
    concurrency::{Concurrency, Slot},
    fair::RoundRobin,
    funds::Funds,
    pace::Pace,
    per_env::PerEnv,
    queue::{Circumstances, Queue},
    round::WakeAt,
    slots::Slots,
    trunk::Trunk,
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
    pub trunks: PerEnv<Trunk>,
    pub blocks: Vec<Block>,
    pub funds: Funds,
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
            DispatchHint::TrunkCongested(env) => {
                self.trunks.get_mut(env).congested(now);
                None
            }
            DispatchHint::CampaignsChanged | DispatchHint::SessionQueued => None,
        };
        if let Some(queue) = ended.and_then(|campaign| self.campaigns.get_mut(&campaign)) {
            queue.one_ended();
        }
    }

    /// Time has passed without a refusal.
    pub fn grow_trunks(&mut self, now: Moment, wake_at: &mut WakeAt) {
        for env in [Env::Live, Env::Test] {
            let trunk = self.trunks.get_mut(env);
            trunk.grow(now);
            if let Some(at) = trunk.grows_at() {
                wake_at.no_later_than(at);
            }
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

    /// When the tenant's next call of that env may start.
    pub(super) fn earliest(&self, env: Env, now: Moment) -> Moment {
        let trunk = self.trunks.get(env).pace.earliest(now);
        self.pace.earliest(now).max(trunk)
    }

    /// Takes the tenant's and the trunk's token.
    pub(super) fn spend(&mut self, env: Env, at: Moment) -> bool {
        self.pace.spend(at) && self.trunks.get_mut(env).pace.spend(at)
    }
}
