//! Functions: what agents may call during a talk. Shared by a workspace's two envs.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{self, Id, Json, Nothing, Params},
    mcp_tools, target,
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::conversation::functions::{self, Occasion};
use adapters::signature;
use entities::{
    Error, agent,
    checks::Checks,
    function::{self as store, Definition, FunctionName, McpTool, Method, Model},
    ids::FunctionId,
    transcript::InvocationStatus,
    values::{Bounded, Moment, Text, WebhookUrl},
    webhook_endpoint::Headers,
};
use rules::{
    commit::Commit,
    conversation::{schema::Parameters, tools},
};
use runtime::keyring::purpose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the user decides about a function.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FunctionSettings {
    /// Unique in its workspace; letters, digits, `_` and `-`. What the model calls it.
    pub name: FunctionName,
    /// When to call it and what it answers: the model reads this. Required; of an MCP tool, the server's own if it is left out.
    #[serde(default)]
    pub description: Option<Text<1, 2_000>>,
    /// JSON Schema of an object, at most 16 KiB: arguments that do not fit are refused before anything is sent. Required; of an MCP
    /// tool, the server's own if it is left out.
    #[serde(default)]
    pub parameters: Option<serde_json::Value>,
    /// `https://` and a public address; of an MCP tool, that of its server's endpoint (streamable HTTP).
    pub url: WebhookUrl,
    #[serde(default)]
    pub method: Method,
    /// Makes it a tool of the MCP server at `url`. The server is asked for it at once.
    #[serde(default)]
    pub mcp: Option<McpTool>,
    /// Sent with every call; at most 16. Values are not shown again.
    #[serde(default)]
    pub headers: Headers,
    /// Milliseconds until the agent says that it is still working, and the talk goes on without an answer.
    #[serde(default = "ten_seconds")]
    pub timeout_ms: Bounded<100, 120_000>,
}
fn ten_seconds() -> Bounded<100, 120_000> {
    Bounded::new(10_000).unwrap_or_else(|_| unreachable!("a constant"))
}

#[derive(Serialize, JsonSchema)]
pub struct FunctionView {
    pub id: FunctionId,
    #[serde(flatten)]
    pub definition: Definition,
    /// Names of the headers sent with every call; their values are not shown again.
    pub header_names: Vec<String>,
    /// The secret's last four characters.
    pub secret_hint: String,
    /// The signing secret, `fnsec_…`. Only in the answer to the function's creation and to a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Grows by one with every change.
    pub version: i32,
    pub created_at: Moment,
    pub updated_at: Moment,
}

/// The result of a test.
#[derive(Serialize, JsonSchema)]
pub struct FunctionTestView {
    pub status: InvocationStatus,
    /// The HTTP status; 0 when no answer came.
    pub http_status: u16,
    /// What an agent would get.
    pub output: serde_json::Value,
    pub duration_ms: i64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// Must fit the function's `parameters`.
    #[serde(default)]
    pub arguments: serde_json::Map<String, serde_json::Value>,
}

/// Functions of a workspace.
const MAX_FUNCTIONS: u64 = 200;

/// POST /v1/functions
pub async fn create(
    state: Data<State>,
    caller: Caller,
    Json(asked): Json<FunctionSettings>,
) -> ApiResult<HttpResponse> {
    let db = &state.deps.db.read;
    // A repeat of a request whose answer was lost: the secret it never showed is shown now.
    if let Some(id) = caller.object_id
        && let Ok(row) = store::load(db, caller.tenant_id(), id.into()).await
    {
        return Ok(HttpResponse::Created().json(with_secret(&state, row)?));
    }
    check(&state, &caller, &asked, None).await?;
    if store::count(db, caller.tenant_id()).await? >= MAX_FUNCTIONS {
        let why = format!("a workspace has at most {MAX_FUNCTIONS} functions; delete some");
        return Err(Error::PlanLimit(why).into());
    }
    let sealed_headers = seal_headers(&state, &asked.headers);
    let definition = definition(&state, &caller, asked, true).await?;
    let now = state.deps.clock.now();
    let (sealed_secret, secret_hint) = new_secret(&state);
    let row = Model {
        id: caller.new_id(&state.deps.ids),
        tenant_id: caller.tenant_id(),
        name: definition.name.to_string(),
        sealed_headers,
        definition,
        sealed_secret,
        secret_hint,
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let row = match save(&state, row.clone()).await {
        Ok(()) => row,
        Err(Error::AlreadyExists { .. }) => return Err(taken().into()),
        Err(error) => return Err(error.into()),
    };
    Ok(HttpResponse::Created().json(with_secret(&state, row)?))
}

/// GET /v1/functions
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<FunctionView>>> {
    let page = params.page()?;
    params.finish()?;
    let listed = store::list(&state.deps.db.read, caller.tenant_id(), page).await?;
    let views: ApiResult<Vec<_>> = listed.rows.iter().map(|row| view(&state, row.clone())).collect();
    Ok(web::Json(List::made(&listed, |row| row.id.0, views?)))
}

/// GET /v1/functions/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<FunctionId>) -> ApiResult<web::Json<FunctionView>> {
    let row = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    Ok(web::Json(view(&state, row)?))
}

/// PATCH /v1/functions/{id}: a JSON merge patch. `parameters` is replaced as a whole. An MCP tool's server is asked again where its
/// address, headers or tool change, and for what is set to null. Of another tool, what the patch does not name is that tool's own.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<FunctionId>,
    Json(mut patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<FunctionView>> {
    let before = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let internal = |error: serde_json::Error| Error::Internal(error.to_string());
    let headers = state
        .deps
        .keyring
        .open(purpose::FUNCTION_HEADERS, &before.sealed_headers)?;
    let mut kept = serde_json::to_value(&before.definition).map_err(internal)?;
    let headers: serde_json::Value = serde_json::from_str(&headers).map_err(internal)?;
    kept["headers"] = headers.clone();
    let mut settings = kept.clone();
    // A schema has nulls and keys of its own: merged, it would be neither the old nor the new one.
    let parameters = patch.as_object_mut().and_then(|fields| fields.remove("parameters"));
    let (has_description, has_parameters) = (patch.get("description").is_some(), parameters.is_some());
    rules::shape::merge(&mut settings, patch);
    if let Some(parameters) = parameters {
        settings["parameters"] = parameters;
    }
    let mut asked: FunctionSettings = extract::parse_value(settings, &kept)?;
    if asked.mcp.is_some() && asked.mcp != before.definition.mcp {
        // What was said of the one before would not be true of this one.
        asked.description = asked.description.filter(|_| has_description);
        asked.parameters = asked.parameters.filter(|_| has_parameters);
    }
    check(&state, &caller, &asked, Some(id)).await?;
    let is_elsewhere = (&asked.url, &asked.mcp) != (&before.definition.url, &before.definition.mcp)
        || serde_json::to_value(&asked.headers).map_err(internal)? != headers;
    let sealed_headers = seal_headers(&state, &asked.headers);
    let definition = definition(&state, &caller, asked, is_elsewhere).await?;
    let after = Model {
        name: definition.name.to_string(),
        sealed_headers,
        definition,
        version: before.version + 1,
        updated_at: state.deps.clock.now(),
        ..before
    };
    match save(&state, after.clone()).await {
        Err(Error::AlreadyExists { .. }) => return Err(taken().into()),
        saved => saved?,
    }
    Ok(web::Json(view(&state, after)?))
}

/// DELETE /v1/functions/{id}
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<FunctionId>) -> ApiResult<HttpResponse> {
    let db = &state.deps.db.read;
    let mut row = store::load(db, caller.tenant_id(), id).await?;
    let users = agent::that_use(db, caller.tenant_id(), id).await?;
    if !users.is_empty() {
        let why = format!(
            "agents use it: {}; remove it from their `function_ids` first",
            users.join(", ")
        );
        return Err(Error::InUse(why).into());
    }
    let now = state.deps.clock.now();
    row.version += 1;
    (row.updated_at, row.deleted_at) = (now, Some(now));
    save(&state, row).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST /v1/functions/{id}/rotate_secret
pub async fn rotate_secret(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<FunctionId>,
    _: Nothing,
) -> ApiResult<web::Json<FunctionView>> {
    let before = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let (sealed_secret, secret_hint) = new_secret(&state);
    let after = Model {
        sealed_secret,
        secret_hint,
        version: before.version + 1,
        updated_at: state.deps.clock.now(),
        ..before
    };
    save(&state, after.clone()).await?;
    Ok(web::Json(with_secret(&state, after)?))
}

/// POST /v1/functions/{id}/test: one real call, as in a talk.
pub async fn test(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<FunctionId>,
    Json(asked): Json<Test>,
) -> ApiResult<web::Json<FunctionTestView>> {
    let function = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let parameters = Parameters::parse(&function.definition.parameters).map_err(Error::Internal)?;
    let arguments = serde_json::Value::Object(asked.arguments).to_string();
    let arguments = parameters
        .check(&arguments)
        .map_err(|faults| ApiError::validation("arguments", faults.join("; ")))?;
    // Not on another task: when the client leaves, the call is broken off, and its place is free.
    let _permit = state.bulkheads.outside(caller.tenant_id())?;
    let invoked = functions::invoke(&state.deps, &function, &arguments, Occasion::Test).await?;
    Ok(web::Json(FunctionTestView {
        status: invoked.status,
        http_status: invoked.http_status,
        output: invoked.output,
        duration_ms: invoked.duration_ms,
    }))
}

/// What was asked for, with what its MCP server says of it. `asks`: the server is asked though nothing is missing, for it may not
/// have the tool.
async fn definition(state: &State, caller: &Caller, asked: FunctionSettings, asks: bool) -> ApiResult<Definition> {
    let is_whole = asked.description.is_some() && asked.parameters.is_some();
    let tool = match &asked.mcp {
        Some(mcp) if asks || !is_whole => Some(mcp_tools::find(state, caller, &asked.url, &asked.headers, mcp).await?),
        Some(_) | None => None,
    };
    let missing = |field: &str| ApiError::validation(field, "is required");
    let description = match (asked.description, &tool) {
        (Some(given), _) => given,
        (None, Some(tool)) => mcp_tools::description(tool)?,
        (None, None) => return Err(missing("description")),
    };
    let parameters = match (asked.parameters, tool) {
        (Some(given), _) => given,
        (None, Some(tool)) => mcp_tools::parameters(tool)?,
        (None, None) => return Err(missing("parameters")),
    };
    Ok(Definition {
        name: asked.name,
        description,
        parameters,
        url: asked.url,
        method: asked.method,
        mcp: asked.mcp,
        timeout_ms: asked.timeout_ms,
    })
}

async fn check(state: &State, caller: &Caller, asked: &FunctionSettings, id: Option<FunctionId>) -> ApiResult<()> {
    let mut checks = Checks::default();
    if tools::BUILT_IN.contains(&&*asked.name) {
        let why = format!("`{}` is the name of a built-in tool; choose another", &*asked.name);
        checks.refuse("name", why);
    }
    if let Some(parameters) = &asked.parameters {
        let parameters = Parameters::parse(parameters).map(drop);
        checks.add(parameters.map_err(|why| Error::invalid("parameters", why)));
    }
    checks.add(target::check_url(state, &asked.url));
    checks.add(target::check_headers(&asked.headers));
    if asked.mcp.is_some() {
        checks.add(mcp_tools::check_headers(&asked.headers));
        if asked.method != Method::Post {
            checks.refuse("method", "must be `POST` for an MCP tool; leave it out");
        }
    }
    checks.end()?;
    let known = store::of_name(&state.deps.db.read, caller.tenant_id(), &asked.name).await?;
    match known {
        Some(known) if Some(known.id) != id && caller.object_id != Some(known.id.0) => Err(taken().into()),
        Some(_) | None => Ok(()),
    }
}

fn taken() -> Error {
    Error::AlreadyExists { field: "name" }
}

async fn save(state: &State, row: Model) -> Result<(), Error> {
    let mut commit = Commit::default();
    let of = row.tenant_id.into();
    commit.changes.functions.push(row);
    state.deps.writer.commit(of, commit).await
}

/// A new secret, sealed, and its last four characters.
fn new_secret(state: &State) -> (String, String) {
    let secret = signature::new_function_secret();
    let hint = secret[secret.len() - 4..].to_owned();
    (state.deps.keyring.seal(purpose::FUNCTION_SECRET, &secret), hint)
}

fn seal_headers(state: &State, headers: &Headers) -> String {
    let plain = serde_json::to_string(headers).unwrap_or_else(|_| unreachable!("a map of texts"));
    state.deps.keyring.seal(purpose::FUNCTION_HEADERS, &plain)
}

fn view(state: &State, row: Model) -> ApiResult<FunctionView> {
    let headers = state
        .deps
        .keyring
        .open(purpose::FUNCTION_HEADERS, &row.sealed_headers)?;
    let headers: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&headers).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(FunctionView {
        id: row.id,
        definition: row.definition,
        header_names: headers.into_iter().map(|(name, _)| name).collect(),
        secret_hint: row.secret_hint,
        secret: None,
        version: row.version,
        created_at: row.created_at,
        updated_at: row.updated_at,
    })
}

fn with_secret(state: &State, row: Model) -> ApiResult<FunctionView> {
    let secret = state.deps.keyring.open(purpose::FUNCTION_SECRET, &row.sealed_secret)?;
    Ok(FunctionView {
        secret: Some(secret.to_string()),
        ..view(state, row)?
    })
}
