//! Slots in use, and who may have one more.
use super::concurrency::{Concurrency, Slot};
use entities::{
    ids::{CampaignId, TrunkId},
    session::Direction,
    values::Env,
};
use std::collections::HashMap;

#[derive(Clone, Debug)]
pub struct Slots {
    concurrency: Concurrency,
    in_use: HashMap<(Env, Option<CampaignId>), i64>,
    outbound: HashMap<Env, i64>,
    of_trunk: HashMap<TrunkId, i64>,
}

impl Slots {
    pub fn new(concurrency: Concurrency, live: impl Iterator<Item = Slot>) -> Self {
        let mut slots = Slots {
            concurrency,
            in_use: HashMap::new(),
            outbound: HashMap::new(),
            of_trunk: HashMap::new(),
        };
        live.for_each(|slot| slots.take(slot));
        slots
    }

    pub fn take(&mut self, slot: Slot) {
        *self.in_use.entry((slot.env, None)).or_default() += 1;
        if slot.campaign_id.is_some() {
            *self.in_use.entry((slot.env, slot.campaign_id)).or_default() += 1;
        }
        if slot.direction == Direction::Outbound {
            *self.outbound.entry(slot.env).or_default() += 1;
        }
        if let Some(trunk) = slot.trunk_id {
            *self.of_trunk.entry(trunk).or_default() += 1;
        }
    }

    /// By the tenant, or by one of its campaigns.
    pub fn used(&self, env: Env, campaign: Option<CampaignId>) -> i64 {
        self.in_use.get(&(env, campaign)).copied().unwrap_or(0)
    }

    /// Calls on that trunk.
    pub fn used_of_trunk(&self, trunk: TrunkId) -> i64 {
        self.of_trunk.get(&trunk).copied().unwrap_or(0)
    }

    /// For a call that we place.
    pub fn tenant_has_one(&self, env: Env) -> bool {
        let outbound = self.outbound.get(&env).copied().unwrap_or(0);
        self.concurrency.has_for_outbound(self.used(env, None), outbound)
    }

    /// For one that comes in.
    pub fn tenant_has_one_for_inbound(&self, env: Env) -> bool {
        self.concurrency.has_for_inbound(self.used(env, None))
    }

    /// `max`: the campaign's own limit.
    pub fn campaign_has_one(&self, env: Env, campaign: CampaignId, max: Option<i32>) -> bool {
        max.is_none_or(|max| self.used(env, Some(campaign)) < i64::from(max))
    }
}
