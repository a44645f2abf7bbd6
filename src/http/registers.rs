//! Registers of numbers that must not be called, as they are there.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::Params,
    views::List,
};
use crate::state::State;
use actix_web::{
    FromRequest, HttpRequest, HttpResponse,
    dev::Payload,
    web::{self, Data},
};
use actors::registers::upload;
use entities::{
    Error,
    ids::RegisterId,
    register::{self as store, Model},
    values::{Env, Moment},
};
use rules::registers::{aging::stale_at, known::check_name};
use schemars::JsonSchema;
use serde::Serialize;
use std::future::{Ready, ready};

/// Who keeps a register up to date.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegisterOwner {
    /// It serves all workspaces.
    Operator,
    Workspace,
}

/// A list of numbers that must not be called.
#[derive(Serialize, JsonSchema)]
pub struct RegisterView {
    pub id: RegisterId,
    /// As rules name it, such as `us_dnc`.
    pub name: String,
    pub owner: RegisterOwner,
    /// Whose national numbers it holds: ISO 3166-1 alpha-2.
    pub country: String,
    /// Grows with each file that differs from the one before.
    pub version: i32,
    /// Each counted once.
    pub numbers: i64,
    /// The area codes that it covers: of numbers with another it says nothing, and calls to them that need it are held back. Null: it
    /// covers all numbers, as a register does that is not given out by area codes.
    pub area_codes: Option<Vec<String>>,
    /// It says since when each number is listed.
    pub has_dates: bool,
    /// Of the file as it was uploaded, in hex.
    pub sha256: String,
    /// When its maker gave the file out.
    pub fetched_at: Moment,
    /// From then on it is too old, by the rule that is known of it; for a name of your own 31 days after it was given out.
    pub stale_at: Moment,
    pub uploaded_at: Moment,
    /// A member's address, or an API key's name and how it begins; null: the operator.
    pub uploaded_by: Option<String>,
    pub created_at: Moment,
}
impl From<Model> for RegisterView {
    fn from(row: Model) -> Self {
        RegisterView {
            id: row.id,
            owner: match row.is_operators() {
                true => RegisterOwner::Operator,
                false => RegisterOwner::Workspace,
            },
            stale_at: stale_at(&row),
            name: row.name,
            country: row.country,
            version: row.version,
            numbers: row.numbers,
            area_codes: row.area_codes.map(|codes| codes.0.iter().map(u16::to_string).collect()),
            has_dates: row.has_dates,
            sha256: row.sha256,
            fetched_at: row.fetched_at,
            uploaded_at: row.uploaded_at,
            uploaded_by: row.uploaded_by,
            created_at: row.created_at,
        }
    }
}

/// A page of registers, and those that have no file.
#[derive(Serialize, JsonSchema)]
pub struct RegisterListView {
    #[serde(flatten)]
    pub list: List<RegisterView>,
    /// Names of registers that the operator has asked about each number over an API: without their answer about a number no file clears
    /// it. With test keys none is asked.
    pub asked_over_api: Vec<String>,
}

/// The `{name}` of a path.
pub struct Name(pub String);

impl FromRequest for Name {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let name = request.match_info().get("name").unwrap_or_default();
        ready(check_name(name).map(|()| Name(name.to_owned())).map_err(ApiError::from))
    }
}

/// GET /v1/registers
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<RegisterListView>> {
    let page = params.page()?;
    params.finish()?;
    let rows = store::list(&state.deps.db.read, caller.owner(), page).await?;
    let over_api = state.deps.registers.over_api.keys();
    Ok(web::Json(RegisterListView {
        list: List::of(rows, |row| row.id.0, RegisterView::from),
        asked_over_api: over_api.filter(|_| caller.owner().1 == Env::Live).cloned().collect(),
    }))
}

/// GET /v1/registers/{name}
pub async fn get(state: Data<State>, caller: Caller, Name(name): Name) -> ApiResult<web::Json<RegisterView>> {
    let mut rows = store::of_names(&state.deps.db.read, caller.owner(), &[name.as_str()]).await?;
    // Its own first.
    rows.sort_by_key(Model::is_operators);
    let first = rows.into_iter().next();
    let row = first.ok_or(Error::NotFound("register"))?;
    Ok(web::Json(row.into()))
}

/// DELETE /v1/registers/{name}
pub async fn delete(state: Data<State>, caller: Caller, Name(name): Name) -> ApiResult<HttpResponse> {
    upload::delete(&state.deps, caller.owner(), name).await?;
    Ok(HttpResponse::NoContent().finish())
}
