//! What a second leg needs of its trunk: a channel, one of those that the trunk has for all calls, and its turn at the trunk's rate.
use crate::{deps::Deps, reach, router::Turn, trunk::board::SecondLeg};
use entities::{
    Error, boxed,
    ids::{TenantId, TrunkId},
    session,
    sip_trunk::{self, Definition},
    values::E164,
};
use rules::{dispatch::last_second::Paced, effect::DispatchHint};
use std::time::Duration;

/// Dropping it gives it back, and tells whoever waits for one: the call that had it may go on.
pub struct Channel {
    leg: Option<SecondLeg>,
    deps: Deps,
    tenant: TenantId,
}

impl Channel {
    /// For a leg to that number, once it is its turn. Whoever no longer waits for it drops this, and its channel is free. Errors: why it
    /// may not go, in words for users.
    #[boxed]
    pub async fn in_turn(
        deps: &Deps,
        (tenant, trunk): (TenantId, TrunkId),
        to: &E164,
        within: Duration,
    ) -> Result<Self, String> {
        let channel = Self::take(deps, tenant, trunk).await?;
        turn(deps, tenant, trunk, within).await?;
        // Either may have been forbidden while it waited.
        open(deps, tenant, trunk).await?;
        let callable = reach::is_callable(deps, tenant, to).await;
        callable.map_err(|error| error.to_string())?;
        Ok(channel)
    }

    /// Errors: why another leg may not go over the trunk, as it is now. Words for users.
    #[boxed]
    async fn take(deps: &Deps, tenant: TenantId, trunk: TrunkId) -> Result<Self, String> {
        // Taken before it is looked whether there was one: two who want the last do not both get it.
        let channel = Channel {
            leg: Some(deps.trunks.second_leg(trunk)),
            deps: deps.clone(),
            tenant,
        };
        let definition = open(deps, tenant, trunk).await?;
        if let Some(most) = definition.max_concurrency {
            let calls = session::in_use_by_trunk(&deps.db.read, tenant).await;
            let calls = calls.map_err(|error| error.to_string())?;
            let in_use = calls.get(&trunk).copied().unwrap_or(0) + deps.trunks.seen(trunk).more_legs;
            if in_use > i64::from(most.get()) {
                return Err("all channels of the trunk are taken".into());
            }
        }
        Ok(channel)
    }
}

/// Waits for the turn of one more leg. Errors: it does not come within that time; words for users.
#[boxed]
async fn turn(deps: &Deps, tenant: TenantId, trunk: TrunkId, within: Duration) -> Result<(), String> {
    // Nothing is dialled any more that it could be too fast with, and who paces is gone.
    if deps.is_draining() {
        return Ok(());
    }
    let busy = || "the trunk is busy: its rate leaves no room for one more call in time".to_owned();
    let by = deps.clock.now().plus(within);
    let turn = deps.router.turn(tenant, trunk, by).await;
    let turn = turn.map_err(|error| error.to_string())?.ok_or_else(busy)?;
    let Turn {
        mut at,
        limiter,
        calls_per_second,
    } = turn;
    loop {
        let _busy = deps.clock.sleep_until(at).await;
        match limiter.pass(&[(Paced::Trunk(trunk), calls_per_second)], deps.clock.now()) {
            Ok(()) => return Ok(()),
            Err(free_at) if free_at > by => return Err(busy()),
            Err(free_at) => at = free_at,
        }
    }
}

/// The trunk's settings, if anything more may go over it as it is now. Errors: why not, in words for users.
#[boxed]
pub async fn open(deps: &Deps, tenant: TenantId, trunk: TrunkId) -> Result<Definition, String> {
    let definition = match sip_trunk::load(&deps.db.read, tenant, trunk).await {
        Ok(row) => row.definition,
        Err(Error::NotFound(_)) => return Err("the trunk is deleted".into()),
        Err(error) => return Err(error.to_string()),
    };
    if definition.paused {
        return Err("the trunk is paused".into());
    }
    match deps.trunks.is_up(trunk) {
        true => Ok(definition),
        false => Err("the trunk is down".into()),
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.leg = None;
        self.deps.router.dispatcher(self.tenant, DispatchHint::CampaignsChanged);
    }
}
