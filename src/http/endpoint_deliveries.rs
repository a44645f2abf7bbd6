//! What goes to a webhook endpoint: a test, what is sent again, the log, and how it fares.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{Id, Json, Nothing, Params},
    views::{DeliveryView, EndpointStatsView, List, RecoveryView, WebhookTestView},
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::delivery::{attempt, recovery};
use entities::{delivery, endpoint_hour, ids::EndpointId, values::Moment, webhook_endpoint as store};
use schemars::JsonSchema;
use serde::Deserialize;

/// POST /v1/webhook_endpoints/{id}/test: one attempt, its result in the answer; not retried.
pub async fn test(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EndpointId>,
    _: Nothing,
) -> ApiResult<web::Json<WebhookTestView>> {
    let endpoint = store::load(&state.deps.db.read, caller.own(id)).await?;
    let permit = state.bulkheads.outside(caller.tenant_id())?;
    let (delivery, report) = attempt::test(&state.deps, &endpoint, permit).await?;
    Ok(web::Json(WebhookTestView {
        event_id: delivery.event_id,
        delivery_id: delivery.id,
        delivered: delivery.status == delivery::Status::Succeeded,
        status: report.outcome.status().into(),
        error_code: report.error_code().map(str::to_owned),
        error_message: report.error_message(),
        duration_ms: report.duration_ms(),
        response_body: report.response_body,
    }))
}

/// What is sent again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recover {
    /// Events of this moment and later.
    pub since: Moment,
    /// Events before this moment; without it, before now.
    #[serde(default)]
    pub until: Option<Moment>,
}

/// POST /v1/webhook_endpoints/{id}/recover: finishes later.
pub async fn recover(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EndpointId>,
    Json(asked): Json<Recover>,
) -> ApiResult<HttpResponse> {
    if asked.until.is_some_and(|until| until <= asked.since) {
        return Err(ApiError::validation("until", "must be after `since`"));
    }
    if asked.since > state.deps.clock.now() {
        return Err(ApiError::validation(
            "since",
            "is in the future: nothing has been missed yet",
        ));
    }
    let span = (asked.since, asked.until);
    let job = recovery::start(&state.deps, caller.new_id(&state.deps.ids), caller.own(id), span).await?;
    Ok(HttpResponse::Accepted().json(RecoveryView::from(job)))
}

/// GET /v1/webhook_endpoints/{id}/deliveries
pub async fn deliveries(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EndpointId>,
    mut params: Params,
) -> ApiResult<web::Json<List<DeliveryView>>> {
    let page = params.page()?;
    let filter = delivery::Filter {
        status: params.text("status")?,
        origin: params.text("origin")?,
        event_type: params.event_type("event_type")?,
    };
    params.finish()?;
    let db = &state.deps.db.read;
    store::load(db, caller.own(id)).await?;
    let narrowed = filter.status.is_some() || filter.origin.is_some() || filter.event_type.is_some();
    let _permit = narrowed
        .then(|| state.bulkheads.search(caller.tenant_id()))
        .transpose()?;
    let listed = delivery::log(&state.deps.db, caller.own(id), filter, page).await?;
    let views = super::events::delivery_views(&state, &caller, &listed.rows).await?;
    Ok(web::Json(List::made(&listed, |row| row.id.0, views)))
}

/// GET /v1/webhook_endpoints/{id}/stats
pub async fn stats(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EndpointId>,
) -> ApiResult<web::Json<EndpointStatsView>> {
    let (db, now) = (&state.deps.db.read, state.deps.clock.now());
    store::load(db, caller.own(id)).await?;
    let since = |hours: i64| now.plus_seconds(-hours * 3600);
    Ok(web::Json(EndpointStatsView {
        endpoint_id: id,
        last_24_hours: endpoint_hour::sum(db, id, since(24)).await?.into(),
        last_7_days: endpoint_hour::sum(db, id, since(7 * 24)).await?.into(),
        open: delivery::waiting(db, Some(id)).await?.into(),
        recovery: entities::recovery::latest(db, id).await?.map(Into::into),
    }))
}
