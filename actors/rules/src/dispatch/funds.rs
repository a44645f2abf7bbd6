//! What a tenant's calls and messages may still set aside. Read anew each round: what ends gives back, what is paid in adds.
use super::per_env::PerEnv;
use crate::credits::terms::Terms;
use entities::values::{Cents, Env};

/// What waits for credits that something live may give back is looked at again after this.
pub const LOOK_SECONDS: i64 = 60;

#[derive(Clone, Copy, Debug)]
pub struct Funds(PerEnv<Purse>);

/// One env's, in cents.
#[derive(Clone, Copy, Debug)]
pub struct Purse {
    available: i64,
    balance: i64,
    /// The least that anything ready to go needs; `None`: nothing is.
    least: Option<i64>,
}

impl Purse {
    pub fn new(available: Cents, balance: Cents) -> Self {
        Purse {
            available: available.0,
            balance: balance.0,
            least: None,
        }
    }
}

impl Funds {
    pub fn new(of: impl Fn(Env) -> Purse) -> Self {
        Funds(PerEnv::new(of))
    }

    fn purse(&self, env: Env) -> &Purse {
        self.0.get(env)
    }

    fn purse_mut(&mut self, env: Env) -> &mut Purse {
        self.0.get_mut(env)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn funds(available: i64, balance: i64) -> Funds {
        Funds::new(|_| Purse::new(Cents(available), Cents(balance)))
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
