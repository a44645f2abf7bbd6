//! Preflights: what is to be expected of a campaign. Each reads the campaign's whole list, so a workspace has one at a time;
//! those who ask meanwhile for the same thing get the same answer, and one that nobody waits for any more ends.
use super::{
    caller::Caller,
    error::ApiResult,
    extract::{Id, Nothing},
    preflights::{PreflightOutcome, Subject},
    views::OutlookView,
};
use crate::state::State;
use actix_web::{HttpResponse, web::Data};
use actors::{
    campaign::{outlook, plan},
    compliance,
};
use entities::{
    Error,
    campaign::{self, Model},
    ids::CampaignId,
    tally,
};
use futures_util::FutureExt;
use runtime::bulkhead::Permit;
use std::sync::Arc;

/// POST /v1/campaigns/{id}/preflight
pub async fn preflight(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    _: Nothing,
) -> ApiResult<HttpResponse> {
    let row = campaign::load(&state.deps.db.read, caller.own(id)).await?;
    let subject = Subject {
        campaign: id,
        version: row.version,
        tally: tally::load(&state.deps.db.read, id).await?,
        minute: state.deps.clock.now().millis() / 60_000,
    };
    let tenant = caller.tenant_id();
    let begin = |permit| look(state.clone(), caller, row, permit).boxed();
    let looking = state.preflights.join(&state.bulkheads, tenant, subject, begin)?;
    Ok(HttpResponse::Ok().json(&*looking.await?))
}

async fn look(state: Data<State>, caller: Caller, row: Model, permit: Permit) -> PreflightOutcome {
    let now = state.deps.clock.now();
    let outlook = outlook::look(&state.deps, &row).await?;
    let has_agent = holds(plan::agent_of(&state.deps, caller.tenant_id(), &row.plan).await)?;
    let has_sender = holds(plan::check_sender(&state.deps, caller.env(), &row.plan))?;
    let is_filled = holds(plan::check_variables(&state.deps, row.id, &row.plan).await)?;
    drop(permit);
    let checked = (has_agent, has_sender, is_filled);
    let law = compliance::law(&state.deps);
    Ok(Arc::new(OutlookView::of(&row, (outlook, law), checked, now)))
}

/// Does it hold? What could not be found out is no answer.
fn holds<T>(checked: Result<T, Error>) -> Result<bool, Error> {
    match checked {
        Ok(_) => Ok(true),
        Err(error) if error.retryable() => Err(error),
        Err(_) => Ok(false),
    }
}
