//! How many calls a workspace makes at once, and how many slots it keeps for calls that come in.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{self, Json},
    views::{BySourceView, ConcurrencyView},
};
use crate::state::State;
use actix_web::web::{self, Data};
use entities::{session, tenant};
use rules::{commit::Commit, dispatch::concurrency::Concurrency, effect::Hint};
use schemars::JsonSchema;
use serde::Deserialize;

/// GET /v1/concurrency
pub async fn get(state: Data<State>, caller: Caller) -> ApiResult<web::Json<ConcurrencyView>> {
    Ok(web::Json(view(&state, &caller).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// 1 to `max_limit`. Calls that are live when it is lowered continue.
    pub limit: i32,
    /// Slots that calls placed by campaigns and the API leave free; 0 to `limit` - 1. Null: none.
    #[serde(default)]
    pub inbound_reserve: i32,
}

/// PATCH /v1/concurrency: a JSON merge patch.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<ConcurrencyView>> {
    let max = state.deps.limits.max_concurrency;
    let named: Vec<String> = patch
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    if named.is_empty() {
        return Err(ApiError::validation(
            "limit",
            "is missing: give `limit`, `inbound_reserve` or both",
        ));
    }
    let before = tenant::load(&state.deps.db.read, caller.tenant_id()).await?;
    // What is in force: the operator's maximum may have sunk meanwhile.
    let concurrency = Concurrency::of(&before, &state.deps.limits);
    let settings = serde_json::json!({ "limit": concurrency.limit, "inbound_reserve": concurrency.reserve });
    let asked: Change = extract::merged(settings, patch)?;
    if !(1..=max).contains(&asked.limit) {
        let why = format!("must be from 1 to {max}, not {}", asked.limit);
        return Err(ApiError::validation("limit", why));
    }
    if !(0..asked.limit).contains(&asked.inbound_reserve) {
        let names_it = named.iter().any(|name| name == "inbound_reserve");
        let (param, why) = match names_it {
            true => (
                "inbound_reserve",
                format!("must be from 0 to {1}, not {0}", asked.inbound_reserve, asked.limit - 1),
            ),
            false => (
                "limit",
                format!(
                    "must be more than `inbound_reserve`, {}: lower that too",
                    asked.inbound_reserve
                ),
            ),
        };
        return Err(ApiError::validation(param, why));
    }
    let mut commit = Commit::default();
    let of = before.id.into();
    commit.changes.tenants.push(tenant::Model {
        concurrency_limit: asked.limit,
        inbound_reserve: asked.inbound_reserve,
        version: before.version + 1,
        ..before
    });
    state.deps.writer.commit(of, commit).await?;
    state
        .deps
        .router
        .perform(vec![Hint::CampaignsChanged(caller.tenant_id()).into()]);
    Ok(web::Json(view(&state, &caller).await?))
}

async fn view(state: &State, caller: &Caller) -> ApiResult<ConcurrencyView> {
    let tenant = tenant::load(&state.deps.db.read, caller.tenant_id()).await?;
    let in_use = session::in_use(&state.deps.db.read, caller.tenant_id(), caller.env()).await?;
    let limits = &state.deps.limits;
    let Concurrency { limit, reserve } = Concurrency::of(&tenant, limits);
    Ok(ConcurrencyView {
        limit,
        max_limit: limits.max_concurrency,
        inbound_reserve: reserve,
        in_use: in_use.total(),
        available: u64::try_from(limit).unwrap_or(0).saturating_sub(in_use.total()),
        by_source: BySourceView {
            campaign: in_use.campaign,
            api: in_use.api,
            inbound: in_use.inbound,
            room: in_use.room,
        },
        calls_per_second: limits.max_calls_per_second,
    })
}
