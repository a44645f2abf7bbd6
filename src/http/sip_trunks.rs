//! SIP trunks: a workspace's ways to the telephone network. Shared by its two envs.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{self, Id, Json, Nothing, Params},
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use adapters::trunk::ping;
use entities::{
    Error,
    campaign::CallsPerSecond,
    ids::TrunkId,
    number,
    sip_trunk::{self as store, Definition, Model, Status, Transport},
    values::{Bounded, Domain, Moment, SipHost, Text},
};
use rules::commit::Commit;
use runtime::keyring::purpose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the user decides about a trunk.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrunkSettings {
    pub name: Text<1, 200>,
    /// The peer: a name or an address, and a port if it is not 5060 (5061 with TLS): `sip.example.com`, `[2001:db8::1]:5080`.
    /// A public address; the port is 443, or 1024 or more.
    pub host: SipHost,
    #[serde(default)]
    pub transport: Transport,
    /// Who we are to the peer, where it asks.
    #[serde(default)]
    pub username: Option<Text<1, 255>>,
    /// Needs a `username`; not shown again.
    #[serde(default)]
    pub password: Option<Text<1, 255>>,
    /// The domain of our own addresses; null: the peer's host.
    #[serde(default)]
    pub from_domain: Option<Domain>,
    /// Calls started per second that the peer takes.
    #[serde(default)]
    pub max_calls_per_second: CallsPerSecond,
    /// Concurrent calls that the peer takes; null: as many as the workspace has.
    #[serde(default)]
    pub max_concurrency: Option<Bounded<1, 100_000>>,
}

#[derive(Serialize, JsonSchema)]
pub struct TrunkView {
    pub id: TrunkId,
    #[serde(flatten)]
    pub definition: Definition,
    /// Is there a password? It is not shown again.
    pub password_set: bool,
    /// What the last test found; `untested` again when host or transport are changed.
    pub status: Status,
    pub tested_at: Option<Moment>,
    pub created_at: Moment,
    pub updated_at: Moment,
}

impl From<Model> for TrunkView {
    fn from(row: Model) -> Self {
        TrunkView {
            id: row.id,
            definition: row.definition,
            password_set: row.sealed_password.is_some(),
            status: row.status,
            tested_at: row.tested_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// How a test went.
#[derive(Serialize, JsonSchema)]
pub struct TrunkTestView {
    /// Did the peer answer in SIP? Any answer counts: 401, 404, 405 and 503 come from a peer that is there.
    pub reachable: bool,
    /// Its SIP status, 100 to 699; null: no answer.
    pub status_code: Option<u16>,
    /// In the peer's words, at most 100 characters.
    pub reason: Option<String>,
    /// Milliseconds from the request to the answer.
    pub rtt_ms: Option<u64>,
    /// Why there was no answer.
    pub error: Option<TrunkTestError>,
}
#[derive(Serialize, JsonSchema)]
pub struct TrunkTestError {
    /// `blocked_target`, `dns_failed`, `connect_failed`, `tls_failed`, `timeout` or `bad_answer`.
    pub code: &'static str,
    pub message: String,
}

/// Trunks of a workspace.
const MAX_TRUNKS: u64 = 100;

/// POST /v1/sip_trunks
pub async fn create(state: Data<State>, caller: Caller, Json(asked): Json<TrunkSettings>) -> ApiResult<HttpResponse> {
    let db = &state.deps.db.read;
    // A repeat of a request whose answer was lost.
    if let Some(id) = caller.object_id
        && let Ok(row) = store::load(db, caller.tenant_id(), id.into()).await
    {
        return Ok(HttpResponse::Created().json(TrunkView::from(row)));
    }
    let (definition, password) = check(&state, asked)?;
    if password.is_some() && definition.username.is_none() {
        return Err(without_username());
    }
    if store::count(db, caller.tenant_id()).await? >= MAX_TRUNKS {
        let why = format!("a workspace has at most {MAX_TRUNKS} SIP trunks; delete some");
        return Err(Error::PlanLimit(why).into());
    }
    let now = state.deps.clock.now();
    let row = Model {
        id: caller.new_id(&state.deps.ids),
        tenant_id: caller.tenant_id(),
        definition,
        sealed_password: password.map(|password| seal(&state, &password)),
        status: Status::Untested,
        tested_at: None,
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    save(&state, row.clone()).await?;
    Ok(HttpResponse::Created().json(TrunkView::from(row)))
}

/// GET /v1/sip_trunks
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<TrunkView>>> {
    let page = params.page()?;
    params.finish()?;
    let listed = store::list(&state.deps.db.read, caller.tenant_id(), page).await?;
    Ok(web::Json(List::of(listed, |row| row.id.0, TrunkView::from)))
}

/// GET /v1/sip_trunks/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<TrunkId>) -> ApiResult<web::Json<TrunkView>> {
    let row = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    Ok(web::Json(row.into()))
}

/// PATCH /v1/sip_trunks/{id}: a JSON merge patch. A password that is not named stays; null removes it.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<TrunkId>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<TrunkView>> {
    let before = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let names_password = patch.get("password").is_some();
    let mut settings = serde_json::to_value(&before.definition).map_err(|error| Error::Internal(error.to_string()))?;
    rules::shape::merge(&mut settings, patch);
    let (definition, password) = check(&state, extract::parse_value(settings)?)?;
    let sealed_password = match names_password {
        true => password.map(|password| seal(&state, &password)),
        false => before.sealed_password.clone(),
    };
    if sealed_password.is_some() && definition.username.is_none() {
        return Err(without_username());
    }
    let same_peer = (&definition.host, definition.transport) == (&before.definition.host, before.definition.transport);
    let after = Model {
        status: if same_peer { before.status } else { Status::Untested },
        tested_at: before.tested_at.filter(|_| same_peer),
        definition,
        sealed_password,
        version: before.version + 1,
        updated_at: state.deps.clock.now(),
        ..before
    };
    save(&state, after.clone()).await?;
    Ok(web::Json(after.into()))
}

/// DELETE /v1/sip_trunks/{id}
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<TrunkId>) -> ApiResult<HttpResponse> {
    let (tenant, now) = (caller.tenant_id(), state.deps.clock.now());
    // In the writer's own transaction: no number takes it up meanwhile.
    let deleting = state.deps.writer.run(move |db| {
        Box::pin(async move {
            let before = store::load(db, tenant, id).await?;
            let users = number::of_trunk(db, tenant, id).await?;
            if !users.is_empty() {
                return Err(in_use(&users));
            }
            let after = Model {
                sealed_password: None,
                version: before.version + 1,
                updated_at: now,
                deleted_at: Some(now),
                ..before
            };
            store::save(db, &after).await?;
            Ok(((), Commit::default()))
        })
    });
    deleting.await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST /v1/sip_trunks/{id}/test: one OPTIONS request, over the trunk's own transport.
pub async fn test(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<TrunkId>,
    _: Nothing,
) -> ApiResult<web::Json<TrunkTestView>> {
    let deps = &state.deps;
    let trunk = store::load(&deps.db.read, caller.tenant_id(), id).await?;
    let _permit = state.bulkheads.outside(caller.tenant_id())?;
    state.limits.trunk_test(&caller)?;
    let outcome = ping::ping(&deps.outbound, &trunk.definition).await;
    let (status, at) = match outcome {
        Ok(_) => (Status::Reachable, deps.clock.now()),
        Err(_) => (Status::Unreachable, deps.clock.now()),
    };
    let noting = deps.writer.run(move |db| {
        let trunk = trunk.clone();
        Box::pin(async move {
            store::tested(db, &trunk, status, at).await?;
            Ok(((), Commit::default()))
        })
    });
    noting.await?;
    Ok(web::Json(match outcome {
        Ok(pong) => TrunkTestView {
            reachable: true,
            status_code: Some(pong.status),
            reason: Some(pong.reason),
            rtt_ms: Some(u64::try_from(pong.took.as_millis()).unwrap_or(u64::MAX)),
            error: None,
        },
        Err(failure) => TrunkTestView {
            reachable: false,
            status_code: None,
            reason: None,
            rtt_ms: None,
            error: Some(TrunkTestError {
                code: failure.code(),
                message: ping::words(&failure),
            }),
        },
    }))
}

/// The parts, each as it is stored.
fn check(state: &State, asked: TrunkSettings) -> ApiResult<(Definition, Option<Text<1, 255>>)> {
    // They travel in headers.
    for (param, value) in [("username", &asked.username), ("password", &asked.password)] {
        if value.as_ref().is_some_and(|value| value.chars().any(char::is_control)) {
            return Err(ApiError::validation(param, "must not contain control characters"));
        }
    }
    let definition = Definition {
        name: asked.name,
        host: asked.host,
        transport: asked.transport,
        username: asked.username,
        from_domain: asked.from_domain,
        max_calls_per_second: asked.max_calls_per_second,
        max_concurrency: asked.max_concurrency,
    };
    let reach = state
        .deps
        .outbound
        .check_host(&definition.host.host(), definition.port());
    reach.map_err(|blocked| ApiError::validation("host", blocked.0))?;
    Ok((definition, asked.password))
}

fn without_username() -> ApiError {
    ApiError::validation(
        "username",
        "is needed with a password; remove the password with null, or give both",
    )
}

/// The first of the numbers that use a trunk, and how many more.
fn in_use(numbers: &[entities::values::E164]) -> Error {
    const NAMED: usize = 10;
    let named: Vec<_> = numbers.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match numbers.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Error::InUse(format!(
        "numbers use this trunk: {}{more}; set their `trunk_id` to another first",
        named.join(", ")
    ))
}

fn seal(state: &State, password: &str) -> String {
    state.deps.keyring.seal(purpose::TRUNK_PASSWORD, password)
}

async fn save(state: &State, row: Model) -> Result<(), Error> {
    let saving = state.deps.writer.run(move |db| {
        let row = row.clone();
        Box::pin(async move {
            store::save(db, &row).await?;
            Ok(((), Commit::default()))
        })
    });
    saving.await
}
