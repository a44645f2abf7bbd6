//! Webhook endpoints: where events go.
use super::{
    caller::Caller,
    error::ApiResult,
    extract::{self, Id, Json, Nothing, OptionalJson, Params},
    target,
    views::{EndpointView, List},
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::endpoint;
use adapters::signature;
use entities::{
    Error,
    checks::Checks,
    endpoint_health,
    ids::EndpointId,
    values::{Bounded, Text, WebhookUrl},
    webhook_endpoint::{self as store, Headers, Model, Ordering, Patterns, Status},
};
use rules::{
    endpoint::machine::{Change, Command, Switch},
    event,
};
use runtime::keyring::purpose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, time::Duration};

/// What the user decides about an endpoint.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointSettings {
    /// `https://` and a public address.
    pub url: WebhookUrl,
    /// `*`, groups such as `session.*`, or exact types; at most 50.
    pub event_types: Vec<String>,
    #[serde(default)]
    pub description: Option<Text<0, 500>>,
    /// From the DNS look-up to the end of the answer; 15000 unless the operator has set another default.
    #[serde(default)]
    pub timeout_ms: Option<Bounded<1000, 30_000>>,
    /// Sent with every delivery; at most 16. Values are not shown again.
    #[serde(default)]
    pub headers: Headers,
    /// Concurrent deliveries.
    #[serde(default = "eight")]
    pub max_concurrency: Bounded<1, 64>,
    /// `session`: first attempts of events about one session, campaign or contact arrive in order. `none`: nothing waits.
    #[serde(default = "session")]
    pub ordering: Ordering,
    /// `disabled` receives nothing. `active` on a suspended endpoint enables it.
    #[serde(default = "active")]
    pub status: Switch,
}
fn session() -> Ordering {
    Ordering::Session
}
fn eight() -> Bounded<1, 64> {
    Bounded::new(8).unwrap_or_else(|_| unreachable!("a constant"))
}
fn active() -> Switch {
    Switch::Active
}

/// Endpoints of a tenant in one env.
const MAX_ENDPOINTS: u64 = 100;

/// POST /v1/webhook_endpoints
pub async fn create(
    state: Data<State>,
    caller: Caller,
    Json(asked): Json<EndpointSettings>,
) -> ApiResult<HttpResponse> {
    check(&state, &asked)?;
    if store::count(&state.deps.db.read, caller.tenant_id(), caller.env()).await? >= MAX_ENDPOINTS {
        return Err(Error::PlanLimit(format!(
            "a workspace has at most {MAX_ENDPOINTS} webhook endpoints; delete some"
        ))
        .into());
    }
    // Of a repeat of a request that a crash cut off after its commit, the secret it never showed is shown now.
    let endpoint = endpoint::create(&state.deps, new(&state, &caller, asked)).await?;
    Ok(HttpResponse::Created().json(with_secret(&state, endpoint).await?))
}

fn new(state: &State, caller: &Caller, asked: EndpointSettings) -> Model {
    let now = state.deps.clock.now();
    let (sealed_secret, secret_hint) = new_secret(state);
    let timeout_ms = asked.timeout_ms.map_or(state.settings.webhook_timeout_ms, Bounded::get);
    Model {
        id: caller.new_id(&state.deps.ids),
        tenant_id: caller.tenant_id(),
        env: caller.env(),
        url: asked.url,
        event_types: Patterns(asked.event_types),
        description: asked.description.map(Text::into_string),
        timeout_ms,
        sealed_headers: seal_headers(state, &asked.headers),
        max_concurrency: asked.max_concurrency.get(),
        ordering: asked.ordering,
        status: match asked.status {
            Switch::Active => Status::Active,
            Switch::Disabled => Status::Disabled,
        },
        failure_streak: 0,
        suspended_at: None,
        sealed_secret,
        secret_hint,
        sealed_previous_secret: None,
        previous_secret_expires_at: None,
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    }
}

/// A new secret, sealed, and its last four characters.
fn new_secret(state: &State) -> (String, String) {
    let secret = signature::new_secret();
    let hint = secret[secret.len() - 4..].to_owned();
    (state.deps.keyring.seal(purpose::ENDPOINT_SECRET, &secret), hint)
}

/// GET /v1/webhook_endpoints
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<EndpointView>>> {
    let page = params.page()?;
    params.finish()?;
    let db = &state.deps.db.read;
    let listed = store::list(db, caller.tenant_id(), caller.env(), page).await?;
    let healths = endpoint_health::of(db, listed.rows.iter().map(|row| row.id)).await?;
    let mut healths: HashMap<_, _> = healths.into_iter().map(|health| (health.endpoint_id, health)).collect();
    let views: Result<Vec<_>, _> = listed
        .rows
        .iter()
        .map(|row| view(&state, row.clone(), healths.remove(&row.id)))
        .collect();
    Ok(web::Json(List::made(&listed, |row| row.id.0, views?)))
}

/// GET /v1/webhook_endpoints/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<EndpointId>) -> ApiResult<web::Json<EndpointView>> {
    let endpoint = store::load(&state.deps.db.read, caller.own(id)).await?;
    Ok(web::Json(shown(&state, endpoint).await?))
}

/// PATCH /v1/webhook_endpoints/{id}: a JSON merge patch.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EndpointId>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<EndpointView>> {
    let before = store::load(&state.deps.db.read, caller.own(id)).await?;
    let settings =
        serde_json::to_value(settings_of(&state, &before)?).map_err(|error| Error::Internal(error.to_string()))?;
    let names: Vec<String> = patch
        .as_object()
        .map(|fields| fields.keys().cloned().collect())
        .unwrap_or_default();
    let named = |name: &str| names.iter().any(|given| given == name);
    let asked: EndpointSettings = extract::merged(settings, patch)?;
    check(&state, &asked)?;
    let timeout_ms = asked.timeout_ms.map_or(state.settings.webhook_timeout_ms, Bounded::get);
    // Only what was named is written, so that two changes at once of different fields both stand.
    let change = Change {
        url: named("url").then_some(asked.url),
        event_types: named("event_types").then_some(Patterns(asked.event_types)),
        description: named("description").then_some(asked.description.map(Text::into_string)),
        timeout_ms: named("timeout_ms").then_some(timeout_ms),
        sealed_headers: named("headers").then(|| seal_headers(&state, &asked.headers)),
        max_concurrency: named("max_concurrency").then_some(asked.max_concurrency.get()),
        ordering: named("ordering").then_some(asked.ordering),
        status: named("status").then_some(asked.status),
    };
    let endpoint = ask(&state, &caller, id, Command::Change(change)).await?;
    Ok(web::Json(shown(&state, endpoint).await?))
}

async fn ask(state: &State, caller: &Caller, id: EndpointId, command: Command) -> ApiResult<Model> {
    Ok(state.deps.router.endpoints().request(caller.own(id), command).await?)
}

/// DELETE /v1/webhook_endpoints/{id}
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<EndpointId>) -> ApiResult<HttpResponse> {
    ask(&state, &caller, id, Command::Delete).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST /v1/webhook_endpoints/{id}/enable
pub async fn enable(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EndpointId>,
    _: Nothing,
) -> ApiResult<web::Json<EndpointView>> {
    let endpoint = ask(&state, &caller, id, Command::Enable).await?;
    Ok(web::Json(shown(&state, endpoint).await?))
}

/// How a secret is replaced.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rotation {
    /// Seconds for which the old secret also signs; 0 ends it at once.
    #[serde(default = "a_day")]
    pub overlap_seconds: Bounded<0, 604_800>,
}
impl Default for Rotation {
    fn default() -> Self {
        Rotation {
            overlap_seconds: a_day(),
        }
    }
}
fn a_day() -> Bounded<0, 604_800> {
    Bounded::new(86_400).unwrap_or_else(|_| unreachable!("a constant"))
}

/// POST /v1/webhook_endpoints/{id}/rotate_secret: the answer holds the new secret, once.
pub async fn rotate_secret(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EndpointId>,
    OptionalJson(asked): OptionalJson<Rotation>,
) -> ApiResult<web::Json<EndpointView>> {
    let (sealed_secret, secret_hint) = new_secret(&state);
    let command = Command::RotateSecret {
        sealed_secret,
        secret_hint,
        overlap: Duration::from_secs(u64::from(asked.overlap_seconds.get().unsigned_abs())),
    };
    let endpoint = ask(&state, &caller, id, command).await?;
    Ok(web::Json(with_secret(&state, endpoint).await?))
}

/// POST /v1/webhook_endpoints/{id}/revoke_previous_secret
pub async fn revoke_previous_secret(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EndpointId>,
    _: Nothing,
) -> ApiResult<web::Json<EndpointView>> {
    let endpoint = ask(&state, &caller, id, Command::RevokePreviousSecret).await?;
    Ok(web::Json(shown(&state, endpoint).await?))
}

fn check(state: &State, asked: &EndpointSettings) -> ApiResult<()> {
    let mut checks = Checks::default();
    checks.add(target::check_url(state, &asked.url));
    if asked.event_types.is_empty() || asked.event_types.len() > 50 {
        checks.refuse("event_types", "needs 1 to 50 entries; `[\"*\"]` subscribes to all");
    }
    for (at, pattern) in asked.event_types.iter().enumerate().take(50) {
        let checked = event::check_pattern(pattern);
        checks.add(checked.map_err(|why| Error::invalid(format!("event_types[{at}]"), why)));
    }
    checks.add(target::check_headers(&asked.headers));
    Ok(checks.end()?)
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

fn settings_of(state: &State, endpoint: &Model) -> ApiResult<EndpointSettings> {
    let bad = |why: String| Error::Internal(why);
    Ok(EndpointSettings {
        url: endpoint.url.clone(),
        event_types: endpoint.event_types.0.clone(),
        description: endpoint
            .description
            .as_deref()
            .map(Text::parse)
            .transpose()
            .map_err(bad)?,
        timeout_ms: Some(Bounded::new(endpoint.timeout_ms.into()).map_err(bad)?),
        headers: headers_of(state, endpoint)?,
        max_concurrency: Bounded::new(endpoint.max_concurrency.into()).map_err(bad)?,
        ordering: endpoint.ordering,
        // Not written unless it is named.
        status: match endpoint.status {
            Status::Active | Status::Suspended => Switch::Active,
            Status::Disabled => Switch::Disabled,
        },
    })
}

async fn with_secret(state: &State, endpoint: Model) -> ApiResult<EndpointView> {
    let secret = state
        .deps
        .keyring
        .open(purpose::ENDPOINT_SECRET, &endpoint.sealed_secret)?;
    let mut view = shown(state, endpoint).await?;
    view.secret = Some(secret.to_string());
    Ok(view)
}

async fn shown(state: &State, endpoint: Model) -> ApiResult<EndpointView> {
    let health = endpoint_health::find(&state.deps.db.read, endpoint.id).await?;
    Ok(view(state, endpoint, health)?)
}

fn view(state: &State, endpoint: Model, health: Option<endpoint_health::Model>) -> Result<EndpointView, Error> {
    let header_names = headers_of(state, &endpoint)?.0.into_keys().collect();
    let now = state.deps.clock.now();
    Ok(EndpointView {
        id: endpoint.id,
        url: endpoint.url,
        event_types: endpoint.event_types,
        description: endpoint.description,
        env: endpoint.env,
        timeout_ms: endpoint.timeout_ms,
        header_names,
        max_concurrency: endpoint.max_concurrency,
        ordering: endpoint.ordering,
        status: endpoint.status,
        failure_streak: endpoint.failure_streak,
        last_status: health.as_ref().map(|health| health.last_status),
        last_success_at: health.as_ref().and_then(|health| health.last_success_at),
        suspended_at: endpoint.suspended_at,
        paused_until: health
            .and_then(|health| health.paused_until)
            .filter(|until| *until > now),
        secret_hint: endpoint.secret_hint,
        previous_secret_expires_at: endpoint.previous_secret_expires_at.filter(|until| *until > now),
        secret: None,
        created_at: endpoint.created_at,
        updated_at: endpoint.updated_at,
    })
}
