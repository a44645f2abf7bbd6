//! How many calls a workspace makes at once.
use super::{
    error::{ApiError, ApiResult},
    extract::Json,
    gate::Caller,
    views::{BySourceView, ConcurrencyView},
};
use crate::app::State;
use actix_web::web::{self, Data};
use actors::{
    effect::{self, Effect},
    writer::Commit,
};
use entities::{session, tenant};
use schemars::JsonSchema;
use serde::Deserialize;

/// GET /v1/concurrency
pub async fn get(state: Data<State>, caller: Caller) -> ApiResult<web::Json<ConcurrencyView>> {
    Ok(web::Json(view(&state, &caller).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// 1 to `max_limit`. Calls that are live when it sinks run on.
    pub limit: i32,
}

/// PATCH /v1/concurrency
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Json(asked): Json<Change>,
) -> ApiResult<web::Json<ConcurrencyView>> {
    let max = state.deps.limits.max_concurrency;
    if !(1..=max).contains(&asked.limit) {
        return Err(ApiError::validation(
            "limit",
            format!("{} is out of range: 1 to {max}", asked.limit),
        ));
    }
    let before = tenant::load(&state.deps.db.read, caller.tenant_id()).await?;
    let mut commit = Commit::default();
    commit.changes.tenants.push(tenant::Model {
        concurrency_limit: asked.limit,
        version: before.version + 1,
        ..before
    });
    state.deps.writer.commit(commit).await?;
    effect::perform(&state.deps, vec![Effect::CampaignsChanged(caller.tenant_id())]).await;
    Ok(web::Json(view(&state, &caller).await?))
}

async fn view(state: &State, caller: &Caller) -> ApiResult<ConcurrencyView> {
    let tenant = tenant::load(&state.deps.db.read, caller.tenant_id()).await?;
    let in_use = session::in_use(&state.deps.db.read, caller.tenant_id(), caller.env()).await?;
    let limits = &state.deps.limits;
    let limit = tenant.concurrency_limit.min(limits.max_concurrency);
    Ok(ConcurrencyView {
        limit,
        max_limit: limits.max_concurrency,
        in_use: in_use.total(),
        available: u64::try_from(limit).unwrap_or(0).saturating_sub(in_use.total()),
        by_source: BySourceView {
            campaign: in_use.campaign,
            api: in_use.api,
            inbound: in_use.inbound,
        },
        calls_per_second: limits.max_calls_per_second,
    })
}
