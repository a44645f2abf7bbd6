//! Numbers outside the sandbox block that test keys may call, once a code has proved whose they are. Shared by both envs. A
//! code of a live key also claims its number for live use.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult, Code},
    extract::{Id, Json, Params},
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::verify::{self, Answered, Confirmed, VerificationRequest};
use entities::{
    Error,
    ids::VerifiedNumberId,
    tenant,
    values::{E164, Env, Moment, Text},
    verified_number::{self as store, Method, Model, Status},
};
use rules::commit::Commit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A number that is yours to call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// However it is typed; without `+` it is read in the workspace's country.
    pub phone_number: Text<1, 40>,
    /// How the code reaches it, with a live key; the code then claims the number for live use. With a test key it is shown instead.
    #[serde(default)]
    pub method: Method,
    /// Null: unchanged.
    #[serde(default)]
    pub label: Option<Text<1, 200>>,
}

/// What can be changed about it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    #[serde(default)]
    pub label: Option<Text<1, 200>>,
}

/// The code that was received.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirm {
    /// Six digits; eight if a live key asked for it.
    pub code: Text<1, 20>,
}

#[derive(Serialize, JsonSchema)]
pub struct VerifiedNumberView {
    pub id: VerifiedNumberId,
    pub phone_number: E164,
    /// Only `verified` ones may be called by test keys.
    pub status: Status,
    pub method: Method,
    pub label: Option<String>,
    /// When the code expires; null when no code is open.
    pub expires_at: Option<Moment>,
    pub verified_at: Option<Moment>,
    /// The code itself: only with a test key, for a code that a test key asked for, until it expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_code: Option<String>,
    pub created_at: Moment,
}

/// POST /v1/verified_numbers: for a number that is known and not verified it makes a new code.
pub async fn create(state: Data<State>, caller: Caller, Json(asked): Json<Create>) -> ApiResult<HttpResponse> {
    let country = tenant::country(&state.deps.db.read, caller.tenant_id()).await?;
    let number = E164::parse(&asked.phone_number, country);
    let asked = VerificationRequest {
        phone_number: number.map_err(|why| ApiError::validation("phone_number", why))?,
        method: asked.method,
        label: asked.label,
    };
    let id = caller.new_id(&state.deps.ids);
    match verify::ask(&state.deps, (caller.tenant_id(), caller.env()), id, asked).await? {
        Answered::Made(row) => Ok(HttpResponse::Created().json(view(&state, &caller, *row)?)),
        Answered::TooMany { until } => {
            let wait_ms = until.millis() - state.deps.clock.now().millis();
            let seconds = u64::try_from(wait_ms / 1000 + 1).unwrap_or(1);
            let why = format!("too many codes were requested; ask for the next one at {until}");
            Err(ApiError::TooMany(Code::RateLimited, why, seconds))
        }
    }
}

/// GET /v1/verified_numbers
pub async fn list(
    state: Data<State>,
    caller: Caller,
    mut params: Params,
) -> ApiResult<web::Json<List<VerifiedNumberView>>> {
    let page = params.page()?;
    let status: Option<Status> = params.text("status")?;
    params.finish()?;
    let listed = store::list(&state.deps.db, caller.tenant_id(), status, page).await?;
    let views: Result<Vec<_>, Error> = listed
        .rows
        .iter()
        .map(|row| view(&state, &caller, row.clone()))
        .collect();
    Ok(web::Json(List::made(&listed, |row| row.id.0, views?)))
}

/// GET /v1/verified_numbers/{id}
pub async fn get(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<VerifiedNumberId>,
) -> ApiResult<web::Json<VerifiedNumberView>> {
    let row = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    Ok(web::Json(view(&state, &caller, row)?))
}

/// PATCH /v1/verified_numbers/{id}: a JSON merge patch.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<VerifiedNumberId>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<VerifiedNumberView>> {
    let before = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let settings = serde_json::json!({ "label": before.label });
    let asked: Change = super::extract::merged(settings, patch)?;
    let after = Model {
        label: asked.label.map(Text::into_string),
        version: before.version + 1,
        ..before
    };
    let row = after.clone();
    let saving = state.deps.writer.run(row.tenant_id, move |db| {
        let row = row.clone();
        Box::pin(async move {
            store::save(db, &row).await?;
            Ok(((), Commit::default()))
        })
    });
    saving.await?;
    Ok(web::Json(view(&state, &caller, after)?))
}

/// DELETE /v1/verified_numbers/{id}: from the next dial on test keys may not call it.
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<VerifiedNumberId>) -> ApiResult<HttpResponse> {
    let tenant = caller.tenant_id();
    let deleting = state.deps.writer.run(tenant, move |db| {
        Box::pin(async move {
            store::delete(db, tenant, id).await?;
            Ok(((), Commit::default()))
        })
    });
    deleting.await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST /v1/verified_numbers/{id}/confirm
pub async fn confirm(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<VerifiedNumberId>,
    Json(asked): Json<Confirm>,
) -> ApiResult<web::Json<VerifiedNumberView>> {
    let code = Zeroizing::new(asked.code.into_string());
    match verify::confirm(&state.deps, caller.tenant_id(), id, code).await? {
        Confirmed::Yes(row) => Ok(web::Json(view(&state, &caller, *row)?)),
        Confirmed::No { left: 0 } => {
            let why = "is not the code; after too many wrong tries the code is no longer valid: ask for a new one";
            Err(ApiError::validation("code", why))
        }
        Confirmed::No { left } => Err(ApiError::validation(
            "code",
            format!("is not the code; tries left: {left}"),
        )),
    }
}

fn view(state: &State, caller: &Caller, row: Model) -> Result<VerifiedNumberView, Error> {
    let sandbox_code = match caller.env() {
        Env::Test => verify::shown(&state.deps, &row)?,
        Env::Live => None,
    };
    Ok(VerifiedNumberView {
        id: row.id,
        phone_number: row.phone_number,
        status: row.status,
        method: row.method,
        label: row.label,
        expires_at: row.expires_at,
        verified_at: row.verified_at,
        sandbox_code,
        created_at: row.created_at,
    })
}
