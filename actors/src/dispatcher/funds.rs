//! What a tenant's calls and messages may still set aside. Read anew each round: what ends gives back, what is paid in adds.
use crate::deps::Deps;
use entities::{
    Result,
    ids::TenantId,
    ledger,
    values::{Cents, Env},
};

#[derive(Clone, Copy, Debug)]
pub struct Funds {
    live: i64,
    test: i64,
}

impl Funds {
    pub async fn read(deps: &Deps, tenant: TenantId) -> Result<Self> {
        let available = async |env| {
            let terms = &deps.limits.credits;
            let opening = |tenant, env| terms.opening(tenant, env);
            let account = ledger::load(&deps.db.read, (tenant, env), opening).await?;
            Ok::<_, entities::Error>(account.available().0)
        };
        Ok(Funds {
            live: available(Env::Live).await?,
            test: available(Env::Test).await?,
        })
    }

    fn of(&mut self, env: Env) -> &mut i64 {
        match env {
            Env::Live => &mut self.live,
            Env::Test => &mut self.test,
        }
    }

    /// Can so much be set aside? Nothing always can.
    pub fn cover(&self, env: Env, hold: Cents) -> bool {
        let mut funds = *self;
        hold.0 <= 0 || hold.0 <= *funds.of(env)
    }

    pub fn take(&mut self, env: Env, hold: Cents) {
        *self.of(env) -= hold.0.max(0);
    }
}
