//! Prepaid credits: what each movement does to an account, and its booking in the writer's transaction; and top-ups, by
//! which they are paid for.
pub mod chain;
pub mod grants;
pub mod machine;
pub mod payments;
pub mod posting;
pub mod stripe;
pub mod topup;

use crate::{
    deps::Deps,
    session::machine::{Command, cost},
    writer::Commit,
};
use entities::{
    Error, Result, campaign,
    ids::TenantId,
    ledger::{self, Movement, account},
    session,
    values::{Cents, Env, Moment},
};
use std::sync::Arc;

/// The operator's terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// What every workspace has to play with in the test env.
    pub test_opening: Cents,
    /// Below that a workspace is warned that has not said otherwise; `None`: it is not.
    pub warning_threshold: Option<Cents>,
    /// ISO 4217, as USD.
    pub currency: String,
    /// A call sets aside so many seconds of its price, or what there is, and again when they are over; 0: all of its longest
    /// duration, or it is not dialled.
    pub hold_seconds: i32,
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            test_opening: Cents(1_000_000),
            warning_threshold: Some(Cents(1_000)),
            currency: "USD".into(),
            hold_seconds: 60,
        }
    }
}

impl Terms {
    /// An account that nothing has ever moved.
    pub fn opening(&self, tenant_id: TenantId, env: Env) -> account::Model {
        let balance_cents = match env {
            Env::Live => Cents(0),
            Env::Test => self.test_opening,
        };
        account::Model {
            tenant_id,
            env,
            balance_cents,
            held_cents: Cents(0),
            warning_threshold_cents: self.warning_threshold,
            depleted_at: None,
            entries: 0,
            last_hash: String::new(),
            last_seq: 0,
            version: 0,
            updated_at: Moment::from_millis(0),
        }
    }

    /// What a call of at most that duration sets aside, if there is enough.
    pub fn hold(&self, price_cents_per_minute: i32, max_duration_seconds: i32) -> Cents {
        self.hold_after(price_cents_per_minute, max_duration_seconds, 0)
    }

    /// What a call is to have set aside in all when it has lasted so long: what it has cost, and as much more as at its start.
    pub fn hold_after(&self, price_cents_per_minute: i32, max_duration_seconds: i32, seconds: i32) -> Cents {
        let seconds = match self.hold_seconds {
            0 => max_duration_seconds,
            more => max_duration_seconds.min(seconds.saturating_add(more)),
        };
        cost(price_cents_per_minute, seconds)
    }

    /// The least that must be available for a call that would set `hold` aside. What is free needs nothing.
    pub fn least(&self, hold: Cents) -> Cents {
        match self.hold_seconds {
            0 => hold,
            _ => hold.min(Cents(1)),
        }
    }

    /// What of `hold` a call sets aside when so much is available; `None`: it is not dialled.
    pub fn set_aside(&self, hold: Cents, available: Cents) -> Option<Cents> {
        if hold <= Cents(0) {
            return Some(Cents(0));
        }
        (available >= self.least(hold)).then(|| hold.min(available))
    }
}

/// Is so much available? What is free costs nobody anything.
pub async fn cover(deps: &Deps, owner: (TenantId, Env), cents: Cents) -> Result<bool> {
    if cents <= Cents(0) {
        return Ok(true);
    }
    Ok(account(deps, owner).await?.available() >= cents)
}

/// What a call may set aside now of `hold`; `None`: it is not dialled. Whoever books it may find less, and asks again.
pub async fn set_aside(deps: &Deps, owner: (TenantId, Env), hold: Cents) -> Result<Option<Cents>> {
    if hold <= Cents(0) {
        return Ok(Some(Cents(0)));
    }
    let available = account(deps, owner).await?.available();
    Ok(deps.limits.credits.set_aside(hold, available))
}

/// Something waits that costs so much, and is not covered. If the whole balance does not cover it, so that nothing that ends
/// can help, the tenant is told, once.
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
    deps.writer.commit(commit).await
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
    let lasted = i32::try_from(deps.clock.now().since(started_at).as_secs()).unwrap_or(i32::MAX);
    let terms = &deps.limits.credits;
    let wanted = terms.hold_after(call.price_cents_per_minute, call.max_duration_seconds, lasted);
    let available = account(deps, (call.tenant_id, call.env)).await?.available();
    let by = Cents((wanted.0 - call.hold_cents.0).min(available.0));
    if by <= Cents(0) {
        return Ok(());
    }
    let held = call.hold_cents;
    let command = Command::Extend { held, by };
    deps.router.sessions().ask(call.key(), command).await.map(drop)
}

async fn account(deps: &Deps, owner: (TenantId, Env)) -> Result<account::Model> {
    let opening = |tenant, env| deps.limits.credits.opening(tenant, env);
    ledger::load(&deps.db.read, owner, opening).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(hold_seconds: i32) -> Terms {
        Terms {
            hold_seconds,
            ..Terms::default()
        }
    }

    #[test]
    fn what_a_call_sets_aside() {
        // Seconds of the hold, price of a minute, longest duration, available: set aside.
        for (seconds, price, longest, available, expected) in [
            (60, 10, 600, 599, Some(10)),
            (60, 10, 600, 10, Some(10)),
            (60, 10, 600, 9, Some(9)),
            (60, 10, 600, 1, Some(1)),
            (60, 10, 600, 0, None),
            (60, 10, 600, -5, None),
            // No more than it can ever cost.
            (60, 10, 30, 599, Some(5)),
            (7_200, 10, 600, 599, Some(100)),
            // All or nothing.
            (0, 60, 600, 600, Some(600)),
            (0, 60, 600, 599, None),
            // What is free needs nothing.
            (60, 0, 600, -5, Some(0)),
            (0, 0, 600, 0, Some(0)),
        ] {
            let terms = terms(seconds);
            let hold = terms.hold(price, longest);
            let found = terms.set_aside(hold, Cents(available)).map(|cents| cents.0);
            assert_eq!(found, expected, "{seconds} {price} {longest} {available}");
        }
    }

    #[test]
    fn a_call_that_lasts_is_to_have_more_set_aside_until_its_longest_duration() {
        for (lasted, expected) in [(0, 10), (60, 20), (61, 21), (539, 100), (600, 100), (i32::MAX, 100)] {
            assert_eq!(terms(60).hold_after(10, 600, lasted), Cents(expected), "{lasted}");
            assert_eq!(terms(0).hold_after(10, 600, lasted), Cents(100), "{lasted}");
        }
    }
}
