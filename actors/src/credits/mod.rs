//! Prepaid credits: what each movement does to an account, and its booking in the writer's transaction; and top-ups, by
//! which they are paid for.
pub mod grants;
pub mod payments;
pub mod posting;
pub mod processor;

use crate::deps::Deps;
use entities::{
    Error, Result, boxed, campaign,
    ids::TenantId,
    ledger::{self, Movement, account},
    session,
    values::{Cents, Env, Moment},
};
use rules::{commit::Commit, session::command::Command};
use std::{sync::Arc, time::Duration};

/// Is so much available? What is free costs nobody anything.
#[boxed]
pub async fn cover(deps: &Deps, owner: (TenantId, Env), cents: Cents) -> Result<bool> {
    if cents <= Cents(0) {
        return Ok(true);
    }
    Ok(account(deps, owner).await?.available() >= cents)
}

/// What a call may set aside now of `hold`; `None`: it is not dialled. Whoever books it may find less, and asks again.
#[boxed]
pub async fn set_aside(deps: &Deps, owner: (TenantId, Env), hold: Cents) -> Result<Option<Cents>> {
    if hold <= Cents(0) {
        return Ok(Some(Cents(0)));
    }
    let available = account(deps, owner).await?.available();
    Ok(deps.limits.credits.set_aside(hold, available))
}

/// Something waits that costs so much, and is not covered. If the whole balance does not cover it, so that nothing that ends
/// can help, the tenant is told, once.
#[boxed]
pub async fn fall_short(deps: &Deps, owner: (TenantId, Env), cents: Cents) -> Result<()> {
    let account = account(deps, owner).await?;
    if account.depleted_at.is_some() || cents <= account.balance_cents {
        return Ok(());
    }
    // A campaign that calls spends the last cent: as long as there is one, something can be dialled.
    if deps.limits.credits.hold_seconds != 0 && account.balance_cents > Cents(0) && calls(deps, owner).await? {
        return Ok(());
    }
    let mut commit = Commit::default();
    commit.changes.movements.push(Movement::short(owner, cents));
    deps.writer.commit(owner.0.into(), commit).await
}

/// Does a campaign of the tenant's place calls in that env?
async fn calls(deps: &Deps, (tenant, env): (TenantId, Env)) -> Result<bool> {
    let running = campaign::dispatchable(&deps.db.read, tenant).await?;
    Ok(running
        .iter()
        .any(|row| row.env == env && row.plan.channel == campaign::Channel::Phone))
}

/// A request is refused for want of credits, though the least of its kind costs no more than `least`. Then nothing of that kind
/// can be sent, and whoever pays by the event must hear of it. An account that never had anything has not fallen.
#[boxed]
pub async fn refuse(deps: &Deps, owner: (TenantId, Env), least: Cents) -> Result<()> {
    if account(deps, owner).await?.entries > 0 {
        fall_short(deps, owner, least).await?;
    }
    Err(Error::InsufficientCredits)
}

/// Times that it is tried to set more aside for a call, when somebody else took what was available.
const TRIES: u32 = 3;

/// Sets more aside for a live call, as much of what its next seconds cost as is available. Whatever comes of it, the call goes
/// on: it asks again.
pub fn extend(deps: &Deps, call: Arc<session::Model>, started_at: Moment) {
    let (its, busy) = (deps.clone(), deps.clock.busy());
    deps.runtime.spawn(async move {
        let _busy = busy;
        for _ in 0..TRIES {
            match try_extend(&its, &call, started_at).await {
                Ok(()) => return,
                Err(Error::Stale) => {}
                Err(error) => {
                    tracing::warn!(%error, session = %call.id, "no more could be set aside for a call; it goes on");
                    return;
                }
            }
        }
    });
}

async fn try_extend(deps: &Deps, call: &session::Model, started_at: Moment) -> Result<()> {
    let now = deps.clock.now();
    // Who was handed over costs as much once more.
    let twice = call.bridged_at.map_or(Duration::ZERO, |since| now.since(since));
    let lasted = i32::try_from(now.since(started_at).saturating_add(twice).as_secs()).unwrap_or(i32::MAX);
    let terms = &deps.limits.credits;
    let wanted = terms.hold_after(call.price_cents_per_minute, call.max_duration_seconds, lasted);
    let available = account(deps, (call.tenant_id, call.env)).await?.available();
    let by = Cents((wanted.0 - call.hold_cents.0).min(available.0));
    if by <= Cents(0) {
        return Ok(());
    }
    let held = call.hold_cents;
    let command = Command::Extend { held, by };
    deps.router.sessions().ask(call.key(), command).await?.map(drop)
}

async fn account(deps: &Deps, owner: (TenantId, Env)) -> Result<account::Model> {
    let opening = |tenant, env| deps.limits.credits.opening(tenant, env);
    ledger::load(&deps.db.read, owner, opening).await
}
