//! How many calls a tenant may have at once, in each env, and how many of them it may place itself.
use crate::{limits::Limits, session::machine::Session};
use entities::{
    ids::{CampaignId, TrunkId},
    session::{Direction, Live},
    tenant,
    values::Env,
};

/// The tenant's slots. Calls that come in may take all of them; calls that it places leave those free that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// At least 1.
    pub limit: i32,
    /// Kept for calls that come in: 0 to `limit` - 1, so that a smaller limit of the operator's does not end all dialling.
    pub reserve: i32,
}

impl Concurrency {
    pub fn of(tenant: &tenant::Model, limits: &Limits) -> Self {
        Self::new(
            tenant.concurrency_limit.min(limits.max_concurrency),
            tenant.inbound_reserve,
        )
    }

    fn new(limit: i32, reserve: i32) -> Self {
        let reserve = reserve.clamp(0, (limit - 1).max(0));
        Concurrency { limit, reserve }
    }

    /// Calls at once that the tenant may place.
    pub fn outbound(self) -> i32 {
        self.limit - self.reserve
    }

    /// With so many calls live, so many of them placed by the tenant: may it place one more?
    pub fn has_for_outbound(self, live: i64, outbound: i64) -> bool {
        self.has_for_inbound(live) && outbound < i64::from(self.outbound())
    }

    pub fn has_for_inbound(self, live: i64) -> bool {
        live < i64::from(self.limit)
    }
}

/// A call that takes a slot.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub env: Env,
    pub campaign_id: Option<CampaignId>,
    pub direction: Direction,
    /// It takes one of that trunk's channels, too.
    pub trunk_id: Option<TrunkId>,
}

impl Slot {
    pub fn of(session: &Session) -> Self {
        Slot {
            env: session.call.env,
            campaign_id: session.call.campaign_id,
            direction: session.call.direction,
            trunk_id: session.call.trunk_id,
        }
    }
    pub fn outbound(env: Env, campaign_id: Option<CampaignId>, trunk_id: Option<TrunkId>) -> Self {
        Slot {
            env,
            campaign_id,
            direction: Direction::Outbound,
            trunk_id,
        }
    }
}

impl From<Live> for Slot {
    fn from(live: Live) -> Self {
        Slot {
            env: live.env,
            campaign_id: live.campaign_id,
            direction: live.direction,
            trunk_id: live.trunk_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_for_calls_that_come_in_is_left_free() {
        // Limit, reserve, live, placed by the tenant: may it place one more, may one come in?
        for (limit, reserve, live, outbound, places, takes) in [
            (3, 0, 2, 2, true, true),
            (3, 0, 3, 0, false, false),
            (3, 1, 1, 1, true, true),
            (3, 1, 2, 2, false, true),
            // Calls that come in use their own slots first: those that they do not take are not the tenant's.
            (3, 1, 2, 1, true, true),
            (3, 1, 2, 0, true, true),
            (3, 1, 3, 2, false, false),
            (3, 2, 1, 1, false, true),
            // The limit was lowered while calls were live.
            (1, 0, 4, 4, false, false),
            // The operator's limit is smaller than what is kept.
            (2, 5, 0, 0, true, true),
            (2, 5, 1, 1, false, true),
        ] {
            let concurrency = Concurrency::new(limit, reserve);
            let found = (
                concurrency.has_for_outbound(live, outbound),
                concurrency.has_for_inbound(live),
            );
            assert_eq!(found, (places, takes), "{limit} {reserve} {live} {outbound}");
        }
    }

    #[test]
    fn never_more_than_the_limit_whatever_comes() {
        for (limit, reserve) in [(1, 0), (4, 0), (4, 1), (4, 3), (3, 9)] {
            let concurrency = Concurrency::new(limit, reserve);
            // Every order of ten calls, each placed (1) or coming in (0).
            for order in 0..1024_u32 {
                let (mut live, mut outbound) = (0, 0);
                for call in 0..10 {
                    let places = order >> call & 1 == 1;
                    if places && concurrency.has_for_outbound(live, outbound) {
                        (live, outbound) = (live + 1, outbound + 1);
                    } else if !places && concurrency.has_for_inbound(live) {
                        live += 1;
                    }
                }
                assert!(live <= i64::from(limit) && outbound <= i64::from(concurrency.outbound()));
            }
        }
    }
}
