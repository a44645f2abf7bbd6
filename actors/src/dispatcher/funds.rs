//! What a tenant's calls and messages may still set aside. Read anew each round: what ends gives back, what is paid in adds.
use crate::{credits::fall_short, deps::Deps};
use entities::{
    Result,
    ids::TenantId,
    ledger,
    values::{Cents, Env},
};
use rules::credits::terms::Terms;

/// What waits for credits that something live may give back is looked at again after this.
pub const LOOK_SECONDS: i64 = 60;

#[derive(Clone, Copy, Debug)]
pub struct Funds {
    live: Purse,
    test: Purse,
}

/// One env's, in cents.
#[derive(Clone, Copy, Debug)]
struct Purse {
    available: i64,
    balance: i64,
    /// The least that anything ready to go needs; `None`: nothing is.
    least: Option<i64>,
}

impl Funds {
    pub async fn read(deps: &Deps, tenant: TenantId) -> Result<Self> {
        let purse = async |env| {
            let terms = &deps.limits.credits;
            let opening = |tenant, env| terms.opening(tenant, env);
            let account = ledger::load(&deps.db.read, (tenant, env), opening).await?;
            Ok::<_, entities::Error>(Purse {
                available: account.available().0,
                balance: account.balance_cents.0,
                least: None,
            })
        };
        Ok(Funds {
            live: purse(Env::Live).await?,
            test: purse(Env::Test).await?,
        })
    }

    fn purse(&self, env: Env) -> &Purse {
        match env {
            Env::Live => &self.live,
            Env::Test => &self.test,
        }
    }

    fn purse_mut(&mut self, env: Env) -> &mut Purse {
        match env {
            Env::Live => &mut self.live,
            Env::Test => &mut self.test,
        }
    }

    pub fn available(&self, env: Env) -> Cents {
        Cents(self.purse(env).available)
    }

    /// What a call sets aside of `hold`; `None`: it is not covered.
    pub fn for_call(&self, terms: &Terms, env: Env, hold: Cents) -> Option<Cents> {
        terms.set_aside(hold, self.available(env))
    }

    /// Can so much be set aside? Nothing always can.
    pub fn cover(&self, env: Env, cents: Cents) -> bool {
        cents.0 <= 0 || cents.0 <= self.purse(env).available
    }

    pub fn take(&mut self, env: Env, cents: Cents) {
        self.purse_mut(env).available -= cents.0.max(0);
    }

    /// Something is ready to go that needs so much.
    pub fn want(&mut self, env: Env, cents: Cents) {
        let purse = self.purse_mut(env);
        purse.least = Some(purse.least.map_or(cents.0, |known| known.min(cents.0)));
    }

    /// What the least that is ready needs, if even the whole balance does not cover it: nothing that is live can give back
    /// enough.
    pub fn short(&self, env: Env) -> Option<Cents> {
        let purse = self.purse(env);
        purse.least.filter(|least| *least > purse.balance.max(0)).map(Cents)
    }

    /// Tells the tenant of each env in which nothing that is ready can go.
    pub async fn tell_short(&self, deps: &Deps, tenant: TenantId, is_blocked: impl Fn(Env) -> bool) -> Result<()> {
        for env in [Env::Live, Env::Test] {
            if let Some(cents) = self.short(env)
                && !is_blocked(env)
            {
                fall_short(deps, (tenant, env), cents).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn funds(available: i64, balance: i64) -> Funds {
        let purse = Purse {
            available,
            balance,
            least: None,
        };
        Funds {
            live: purse,
            test: purse,
        }
    }

    #[test]
    fn it_is_short_when_even_the_least_that_is_ready_costs_more_than_the_balance() {
        // Available, balance, what is ready: short of.
        for (available, balance, ready, expected) in [
            (599, 599, &[600][..], Some(600)),
            (599, 599, &[1_200, 600], Some(600)),
            // Something goes.
            (599, 599, &[600, 10], None),
            (600, 600, &[600], None),
            // What is held may come back.
            (0, 600, &[600], None),
            (0, 599, &[600], Some(600)),
            (0, 0, &[1], Some(1)),
            // What is free goes, however low.
            (-20, -20, &[0], None),
            (-20, -20, &[], None),
        ] {
            let mut funds = funds(available, balance);
            for cents in ready {
                funds.want(Env::Live, Cents(*cents));
            }
            let found = funds.short(Env::Live).map(|cents| cents.0);
            assert_eq!(found, expected, "{available} {balance} {ready:?}");
            assert_eq!(funds.short(Env::Test), None);
        }
    }
}
