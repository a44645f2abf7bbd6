//! Outcomes of attempts, committed: and what follows from them performed.
use crate::{deps::Deps, facts, leases::Of};
use entities::{
    Error, Result, boxed,
    webhook_endpoint::{self, Model as Endpoint},
};
use rules::delivery::settle::{EndpointState, Settled, Tried, settle};

/// Commits the outcomes, and performs what follows from them.
#[boxed]
pub async fn commit(deps: &Deps, of: Of, mut endpoint_state: EndpointState, tried: &[Tried]) -> Result<Settled> {
    let mut tries = 0;
    loop {
        let mut settled = settle(endpoint_state, tried, &deps.limits, deps.clock.now(), rand::random())?;
        if let Some(endpoint) = &settled.endpoint_state.endpoint {
            facts::add(deps, endpoint.key(), &settled.effects, &mut settled.commit).await?;
        }
        let commit = std::mem::take(&mut settled.commit);
        let moves_nothing_else = settled.effects.is_empty() && commit.changes.endpoints.is_empty();
        let committed = if moves_nothing_else {
            deps.writer.commit_outcomes(of, commit).await
        } else {
            deps.writer.commit(of, commit).await
        };
        match committed {
            Ok(()) => {
                deps.router.perform(std::mem::take(&mut settled.effects));
                return Ok(settled);
            }
            // Its user changed the endpoint meanwhile: count on what it is now.
            Err(Error::Stale) if tries < 5 => {
                tries += 1;
                endpoint_state = settled.endpoint_state;
                endpoint_state.endpoint = match endpoint_state.endpoint {
                    Some(endpoint) => found(webhook_endpoint::load(&deps.db.read, endpoint.key()).await)?,
                    None => None,
                };
            }
            Err(error) => return Err(error),
        }
    }
}

/// One that is not there is none.
pub fn found(loaded: Result<Endpoint>) -> Result<Option<Endpoint>> {
    match loaded {
        Ok(endpoint) => Ok(Some(endpoint)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
