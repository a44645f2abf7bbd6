//! Webhook endpoints: where events go.
use super::{
    error::{ApiError, ApiResult},
    extract::{self, Id, Json, Nothing, Params},
    gate::Caller,
    views::{EndpointView, List, WebhookTestView},
};
use crate::app::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::{
    delivery::{
        attempt::{self, Target},
        lane, machine,
    },
    endpoint::machine::{Change, Command},
    event::{self, Draft, Event, WebhookTest},
    keyring::purpose,
    signature,
    writer::Commit,
};
use entities::{
    Error, delivery,
    ids::{EndpointId, EventId},
    values::{Bounded, Text, WebhookUrl},
    webhook_endpoint::{self as store, Headers, Model, Patterns, Status},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the user decides about an endpoint.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `https://` and a public address.
    pub url: WebhookUrl,
    /// `*`, groups as `session.*`, or exact types; at most 50.
    pub event_types: Vec<String>,
    #[serde(default)]
    pub description: Option<Text<0, 500>>,
    /// From look-up to the answer's end.
    #[serde(default = "fifteen_seconds")]
    pub timeout_ms: Bounded<1000, 30_000>,
    /// Sent with every delivery; at most 16. Values are not shown again.
    #[serde(default)]
    pub headers: Headers,
    /// Deliveries at once.
    #[serde(default = "eight")]
    pub max_concurrency: Bounded<1, 64>,
    /// `disabled` receives nothing.
    #[serde(default = "active")]
    pub status: Status,
}
fn fifteen_seconds() -> Bounded<1000, 30_000> {
    Bounded::new(15_000).unwrap_or_else(|_| unreachable!("a constant"))
}
fn eight() -> Bounded<1, 64> {
    Bounded::new(8).unwrap_or_else(|_| unreachable!("a constant"))
}
fn active() -> Status {
    Status::Active
}

/// Endpoints of a tenant in one env.
const MAX_ENDPOINTS: u64 = 100;

/// POST /v1/webhook_endpoints
pub async fn create(state: Data<State>, caller: Caller, Json(asked): Json<Settings>) -> ApiResult<HttpResponse> {
    check(&state, &asked)?;
    if store::count(&state.deps.db.read, caller.tenant_id(), caller.env()).await? >= MAX_ENDPOINTS {
        return Err(Error::PlanLimit(format!(
            "a workspace has at most {MAX_ENDPOINTS} webhook endpoints; delete some"
        ))
        .into());
    }
    let now = state.deps.clock.now();
    let secret = signature::new_secret();
    let endpoint = Model {
        id: caller.new_id(&state),
        tenant_id: caller.tenant_id(),
        env: caller.env(),
        url: asked.url,
        event_types: Patterns(asked.event_types),
        description: asked.description.map(Text::into_string),
        timeout_ms: asked.timeout_ms.get(),
        sealed_headers: seal_headers(&state, &asked.headers),
        max_concurrency: asked.max_concurrency.get(),
        status: asked.status,
        sealed_secret: state.deps.keyring.seal(purpose::ENDPOINT_SECRET, &secret),
        secret_hint: secret[secret.len() - 4..].to_owned(),
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let mut commit = Commit::default();
    commit.changes.endpoints.push(endpoint.clone());
    let endpoint = match state.deps.writer.commit(commit).await {
        Ok(()) => endpoint,
        // A repeat of a request that a crash cut off after its commit: the secret it never showed is shown now.
        Err(Error::Stale) => store::load(&state.deps.db.read, caller.own(endpoint.id)).await?,
        Err(error) => return Err(error.into()),
    };
    let secret = state
        .deps
        .keyring
        .open(purpose::ENDPOINT_SECRET, &endpoint.sealed_secret)?;
    let mut view = view(&state, endpoint)?;
    view.secret = Some(secret.to_string());
    Ok(HttpResponse::Created().json(view))
}

/// GET /v1/webhook_endpoints
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<EndpointView>>> {
    let page = params.page()?;
    params.finish()?;
    let listed = store::list(&state.deps.db.read, caller.tenant_id(), caller.env(), page).await?;
    let views: Result<Vec<_>, _> = listed.rows.iter().cloned().map(|row| view(&state, row)).collect();
    let mut views = views?.into_iter();
    Ok(web::Json(List::of(
        listed,
        |row| row.id.0,
        |_| views.next().unwrap_or_else(|| unreachable!("one view per row")),
    )))
}

/// GET /v1/webhook_endpoints/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<EndpointId>) -> ApiResult<web::Json<EndpointView>> {
    Ok(web::Json(view(
        &state,
        store::load(&state.deps.db.read, caller.own(id)).await?,
    )?))
}

/// PATCH /v1/webhook_endpoints/{id}: a JSON merge patch.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EndpointId>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<EndpointView>> {
    let before = store::load(&state.deps.db.read, caller.own(id)).await?;
    let mut settings =
        serde_json::to_value(settings_of(&state, &before)?).map_err(|error| Error::Internal(error.to_string()))?;
    let names: Vec<String> = patch
        .as_object()
        .map(|fields| fields.keys().cloned().collect())
        .unwrap_or_default();
    let named = |name: &str| names.iter().any(|given| given == name);
    extract::merge(&mut settings, patch);
    let asked: Settings = extract::parse_value(settings)?;
    check(&state, &asked)?;
    // Only what was named is written, so that two changes at once of different fields both stand.
    let change = Change {
        url: named("url").then_some(asked.url),
        event_types: named("event_types").then_some(Patterns(asked.event_types)),
        description: named("description").then_some(asked.description.map(Text::into_string)),
        timeout_ms: named("timeout_ms").then_some(asked.timeout_ms.get()),
        sealed_headers: named("headers").then(|| seal_headers(&state, &asked.headers)),
        max_concurrency: named("max_concurrency").then_some(asked.max_concurrency.get()),
        status: named("status").then_some(asked.status),
    };
    let tree = state.tree()?;
    let after = tree
        .ask(&tree.endpoints, &state.deps, caller.own(id), Command::Change(change))
        .await?;
    Ok(web::Json(view(&state, after)?))
}

/// DELETE /v1/webhook_endpoints/{id}
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<EndpointId>) -> ApiResult<HttpResponse> {
    let tree = state.tree()?;
    tree.ask(&tree.endpoints, &state.deps, caller.own(id), Command::Delete)
        .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST /v1/webhook_endpoints/{id}/test: one attempt, its result in the answer; not retried.
pub async fn test(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EndpointId>,
    _: Nothing,
) -> ApiResult<web::Json<WebhookTestView>> {
    let deps = &state.deps;
    let endpoint = store::load(&deps.db.read, caller.own(id)).await?;
    let target = Target::of(deps, &endpoint)?;
    let now = deps.clock.now();
    let test: Event = WebhookTest {
        endpoint_id: id,
        emitted_at: now,
    }
    .into();
    let draft = test.draft(caller.own(id));
    let event = committed(&state, draft).await?;

    let report = attempt::perform(deps, &target, &event).await;
    let delivery = delivery::Model {
        id: deps.ids.next(),
        tenant_id: caller.tenant_id(),
        env: caller.env(),
        endpoint_id: id,
        event_id: event.id,
        event_seq: event.seq,
        status: delivery::Status::Pending,
        attempts: 0,
        first_attempt_at: None,
        next_attempt_at: None,
        created_at: now,
    };
    let once = machine::Schedule {
        delays: Vec::new(),
        ..machine::Schedule::default()
    };
    let delivery = machine::attempted(
        delivery,
        &report.outcome,
        &once,
        report.started_at,
        deps.clock.now(),
        0.0,
    );
    let mut commit = Commit::default();
    commit.changes.attempts.push(lane::log(&delivery, &report));
    commit.changes.deliveries.push(delivery.clone());
    deps.writer.commit(commit).await?;
    Ok(web::Json(WebhookTestView {
        event_id: event.id,
        delivery_id: delivery.id,
        delivered: delivery.status == delivery::Status::Succeeded,
        status: report.status().into(),
        error_code: report.error_code().map(str::to_owned),
        error_message: report.error_message(),
        duration_ms: report.duration_ms,
        response_body: report.response_body,
    }))
}

/// Commits one event and answers it as it was stored.
async fn committed(state: &State, mut draft: Draft) -> ApiResult<entities::event::Model> {
    let id: EventId = state.deps.ids.next();
    let (tenant, env) = (draft.tenant_id, draft.env);
    draft.id = Some(id);
    state
        .deps
        .writer
        .commit(Commit {
            events: vec![draft],
            ..Commit::default()
        })
        .await?;
    Ok(entities::event::load(&state.deps.db.read, tenant, env, id).await?)
}

fn check(state: &State, asked: &Settings) -> ApiResult<()> {
    if let Ok(url) = url::Url::parse(asked.url.as_str())
        && let Err(blocked) = state.deps.outbound.check(&url)
    {
        return Err(ApiError::validation("url", blocked.0));
    }
    if asked.event_types.is_empty() || asked.event_types.len() > 50 {
        return Err(ApiError::validation(
            "event_types",
            "needs 1 to 50 entries; `[\"*\"]` subscribes to all",
        ));
    }
    for (at, pattern) in asked.event_types.iter().enumerate() {
        event::check_pattern(pattern).map_err(|why| ApiError::validation(format!("event_types[{at}]"), why))?;
    }
    check_headers(&asked.headers)
}

fn check_headers(headers: &Headers) -> ApiResult<()> {
    if headers.0.len() > 16 {
        return Err(ApiError::validation(
            "headers",
            format!("has {} entries, at most 16 are allowed", headers.0.len()),
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (name, value) in &headers.0 {
        if !seen.insert(name.to_lowercase()) {
            return Err(ApiError::validation(
                format!("headers.{name}"),
                "is given twice: case makes no difference",
            ));
        }
        let param = || format!("headers.{name}");
        let lower = name.to_lowercase();
        let ours = lower.starts_with("x-webhook-") || lower.starts_with("webhook-");
        let hop = [
            "host",
            "content-length",
            "content-type",
            "transfer-encoding",
            "connection",
            "upgrade",
            "te",
            "trailer",
            "expect",
        ];
        if ours || hop.contains(&lower.as_str()) {
            return Err(ApiError::validation(param(), "is set by the service itself"));
        }
        if reqwest::header::HeaderName::try_from(name).is_err() {
            return Err(ApiError::validation(param(), "is no valid header name"));
        }
        if value.len() > 2000 || reqwest::header::HeaderValue::try_from(value).is_err() {
            return Err(ApiError::validation(
                param(),
                "must be visible characters, at most 2000",
            ));
        }
    }
    Ok(())
}

fn seal_headers(state: &State, headers: &Headers) -> String {
    let text = serde_json::to_string(headers).unwrap_or_else(|_| unreachable!("a map of texts"));
    state.deps.keyring.seal(purpose::ENDPOINT_HEADERS, &text)
}

fn headers_of(state: &State, endpoint: &Model) -> Result<Headers, Error> {
    let text = state
        .deps
        .keyring
        .open(purpose::ENDPOINT_HEADERS, &endpoint.sealed_headers)?;
    let corrupt = |_| Error::Corrupt {
        table: "webhook_endpoints",
        column: "sealed_headers",
        id: endpoint.id.to_string(),
    };
    serde_json::from_str(&text).map_err(corrupt)
}

fn settings_of(state: &State, endpoint: &Model) -> ApiResult<Settings> {
    let bad = |why: String| Error::Internal(why);
    Ok(Settings {
        url: endpoint.url.clone(),
        event_types: endpoint.event_types.0.clone(),
        description: endpoint
            .description
            .as_deref()
            .map(Text::parse)
            .transpose()
            .map_err(bad)?,
        timeout_ms: Bounded::new(endpoint.timeout_ms.into()).map_err(bad)?,
        headers: headers_of(state, endpoint)?,
        max_concurrency: Bounded::new(endpoint.max_concurrency.into()).map_err(bad)?,
        status: endpoint.status,
    })
}

fn view(state: &State, endpoint: Model) -> Result<EndpointView, Error> {
    let header_names = headers_of(state, &endpoint)?.0.into_keys().collect();
    Ok(EndpointView {
        id: endpoint.id,
        url: endpoint.url,
        event_types: endpoint.event_types,
        description: endpoint.description,
        env: endpoint.env,
        timeout_ms: endpoint.timeout_ms,
        header_names,
        max_concurrency: endpoint.max_concurrency,
        status: endpoint.status,
        secret_hint: endpoint.secret_hint,
        secret: None,
        created_at: endpoint.created_at,
        updated_at: endpoint.updated_at,
    })
}
