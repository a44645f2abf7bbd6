//! The do-not-call list.
use super::{
    bodies::MIB,
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{Csv, Id, Json, Params},
    imports::ImportView,
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::{dnc, import};
use entities::{
    dnc::{self as store, Channels, DncChannel, Filter, Model, Source},
    ids::{DncId, SessionId},
    import::Kind,
    tenant,
    values::{E164, Moment, Text},
};
use rules::{
    barred::{self, Entry, Whom},
    consent,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number or an address that must not be used.
#[derive(Serialize, JsonSchema)]
pub struct DncView {
    pub id: DncId,
    pub phone_number: Option<E164>,
    pub email: Option<String>,
    /// What is barred.
    pub channels: Channels,
    pub reason: Option<String>,
    pub source: Source,
    /// The call in which the person said so.
    pub session_id: Option<SessionId>,
    /// When the person asked for it, as whoever added it says.
    pub requested_at: Option<Moment>,
    /// When the person has last said so to the service itself: in a call, by STOP, or by a link.
    pub opted_out_at: Option<Moment>,
    /// A member's address, or an API key's name and how it begins; null: the person it is about, or long ago.
    pub created_by: Option<String>,
    pub created_at: Moment,
    /// Null: it is on the list.
    pub removed_at: Option<Moment>,
    pub removed_reason: Option<String>,
    pub removed_by: Option<String>,
    /// Only in the answer to the request that adds it: it was entered late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}
impl From<Model> for DncView {
    fn from(entry: Model) -> Self {
        DncView {
            opted_out_at: entry.own_wish_at(),
            requested_at: entry.requested_at,
            warning: None,
            id: entry.id,
            phone_number: entry.phone_number,
            email: entry.email,
            channels: entry.channels,
            reason: entry.reason,
            source: entry.source,
            session_id: entry.session_id,
            created_by: entry.created_by,
            created_at: entry.created_at,
            removed_at: entry.removed_at,
            removed_reason: entry.removed_reason,
            removed_by: entry.removed_by,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// However it is typed; without `+` it is read in the workspace's country. This or `email`.
    #[serde(default)]
    pub phone_number: Option<Text<1, 40>>,
    #[serde(default)]
    pub email: Option<Text<3, 254>>,
    /// Default: phone and sms for a number, email for an address.
    #[serde(default)]
    pub channels: Vec<DncChannel>,
    #[serde(default)]
    pub reason: Option<Text<1, 500>>,
    /// When the person asked for it elsewhere, such as by letter: at most a year ago.
    #[serde(default)]
    pub requested_at: Option<Moment>,
}

/// POST /v1/dnc: 201 for a new entry; 200 for one that is there already, with its channels added to.
pub async fn create(state: Data<State>, caller: Caller, Json(asked): Json<Create>) -> ApiResult<HttpResponse> {
    let times = state.deps.clock.times();
    let requested = asked.requested_at.map(|at| consent::requested(at, times)).transpose()?;
    let whom = match (asked.phone_number, asked.email) {
        (Some(number), None) => number_of(&state, &caller, &number).await?,
        (None, Some(email)) => Whom::Email(barred::email(&email)?),
        (Some(_), Some(_)) => return Err(ApiError::validation("email", "give a number or an address, not both")),
        (None, None) => return Err(ApiError::validation("phone_number", "give a number or an address")),
    };
    let entry = Entry {
        id: caller.new_id(&state.deps.ids),
        whom,
        channels: asked.channels,
        reason: asked.reason.map(Text::into_string),
        source: Source::Manual,
        session_id: None,
        requested_at: requested.map(|requested| requested.at),
        created_by: Some(caller.name()),
    };
    let (row, is_new) = dnc::add(&state.deps, (caller.tenant_id(), caller.env()), entry).await?;
    let mut response = if is_new {
        HttpResponse::Created()
    } else {
        HttpResponse::Ok()
    };
    Ok(response.json(DncView {
        warning: requested.and_then(consent::Requested::warning),
        ..DncView::from(row)
    }))
}

pub(super) async fn number_of(state: &State, caller: &Caller, text: &str) -> ApiResult<Whom> {
    // Doubt goes against us: whoever is behind an extension, the line is not called.
    let country = tenant::country(&state.deps.db.read, caller.tenant_id()).await?;
    E164::parse_line(text, country)
        .map(Whom::Number)
        .map_err(|why| ApiError::validation("phone_number", why))
}

/// POST /v1/dnc/import
pub async fn import(state: Data<State>, caller: Caller, Csv(body): Csv<{ 10 * MIB }>) -> ApiResult<HttpResponse> {
    let new = import::New {
        id: caller.new_id(&state.deps.ids),
        kind: Kind::Dnc,
        campaign: None,
        created_by: caller.name(),
        body,
    };
    let job = import::start(&state.deps, caller.own(()), new).await?;
    Ok(HttpResponse::Accepted().json(ImportView::from(job)))
}

/// GET /v1/dnc
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<DncView>>> {
    let page = params.page()?;
    let mut filter = Filter {
        source: params.text("source")?,
        removed: params.flag("removed")?,
        ..Filter::default()
    };
    match whom(&state, &caller, &mut params).await? {
        Some(Whom::Number(number)) => filter.phone_number = Some(number),
        Some(Whom::Email(email)) => filter.email = Some(email),
        None => {}
    }
    params.finish()?;
    let _permit = (filter.source.is_some() || filter.removed)
        .then(|| state.bulkheads.search(caller.tenant_id()))
        .transpose()?;
    let entries = store::list(&state.deps.db, caller.owner(), filter, page).await?;
    Ok(web::Json(List::of(entries, |entry| entry.id.0, DncView::from)))
}

pub(super) async fn whom(state: &State, caller: &Caller, params: &mut Params) -> ApiResult<Option<Whom>> {
    if let Some(number) = params.take("phone_number") {
        // A `+` that was not escaped arrives as a blank.
        let number = if number.starts_with(' ') {
            format!("+{}", number.trim())
        } else {
            number
        };
        return number_of(state, caller, &number).await.map(Some);
    }
    match params.take("email") {
        Some(email) => Ok(Some(Whom::Email(barred::email(&email)?))),
        None => Ok(None),
    }
}

/// Is it on the list?
#[derive(Serialize, JsonSchema)]
pub struct CheckView {
    pub listed: bool,
    pub entry: Option<DncView>,
}

/// GET /v1/dnc/check
pub async fn check(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<CheckView>> {
    let asked = whom(&state, &caller, &mut params).await?;
    params.finish()?;
    let (db, owner) = (&state.deps.db.read, (caller.tenant_id(), caller.env()));
    let entry = match asked {
        Some(Whom::Number(number)) => store::of_number(db, owner, &number).await?,
        Some(Whom::Email(email)) => store::of_email(db, owner, &email).await?,
        None => return Err(ApiError::validation("phone_number", "give `phone_number` or `email`")),
    };
    Ok(web::Json(CheckView {
        listed: entry.is_some(),
        entry: entry.map(DncView::from),
    }))
}

/// DELETE /v1/dnc/{id}?reason=: in the live environment who has opted out must have agreed anew.
pub async fn delete(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<DncId>,
    mut params: Params,
) -> ApiResult<HttpResponse> {
    let reason = params.take("reason").unwrap_or_default();
    params.finish()?;
    let key = caller.own(id);
    store::load(&state.deps.db.read, key).await?;
    let why = |why| ApiError::validation("reason", format!("{why}: say why this person may be called again"));
    let reason = Text::<1, 500>::parse(&reason).map_err(why)?;
    dnc::remove(&state.deps, key, reason.into_string(), caller.name()).await?;
    Ok(HttpResponse::NoContent().finish())
}
