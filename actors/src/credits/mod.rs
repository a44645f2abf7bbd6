//! Prepaid credits: what each movement does to an account, and its booking in the writer's transaction; and top-ups, by
//! which they are paid for.
pub mod chain;
pub mod grants;
pub mod machine;
pub mod payments;
pub mod posting;
pub mod stripe;
pub mod topup;

use crate::deps::Deps;
use entities::{
    Result,
    ids::TenantId,
    ledger::{self, account},
    values::{Cents, Env, Moment},
};

/// The operator's terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// What every workspace has to play with in the test env.
    pub test_opening: Cents,
    /// Below that a workspace is warned that has not said otherwise; `None`: it is not.
    pub warning_threshold: Option<Cents>,
    /// ISO 4217, as USD.
    pub currency: String,
    /// A call sets aside at most so many seconds of its price; 0: all of its longest duration.
    pub hold_seconds: i32,
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            test_opening: Cents(1_000_000),
            warning_threshold: Some(Cents(1_000)),
            currency: "USD".into(),
            hold_seconds: 0,
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

    /// What a call of at most that duration sets aside.
    pub fn hold(&self, price_cents_per_minute: i32, max_duration_seconds: i32) -> Cents {
        let seconds = match self.hold_seconds {
            0 => max_duration_seconds,
            most => max_duration_seconds.min(most),
        };
        crate::session::machine::cost(price_cents_per_minute, seconds)
    }
}

/// Is so much available? What is free costs nobody anything.
pub async fn cover(deps: &Deps, owner: (TenantId, Env), cents: Cents) -> Result<bool> {
    if cents <= Cents(0) {
        return Ok(true);
    }
    let opening = |tenant, env| deps.limits.credits.opening(tenant, env);
    Ok(ledger::load(&deps.db.read, owner, opening).await?.available() >= cents)
}
