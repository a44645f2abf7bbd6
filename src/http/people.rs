//! One person: all that is kept, told and erased.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{Id, Params},
    person_file::{self, Format},
    views::{ErasureView, List},
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY},
    web::{self, Data},
};
use actors::erasure;
use entities::{
    erasure as store,
    ids::ErasureId,
    tenant,
    values::{E164, Moment},
};
use rules::barred::{self, Whom};

/// What a page may do that is made of strangers' words: nothing but look as it should.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `phone_number` or `email`; `None`: neither was given.
async fn whom(state: &State, caller: &Caller, params: &mut Params) -> ApiResult<Option<Whom>> {
    let (number, email) = (params.take("phone_number"), params.take("email"));
    match (number, email) {
        (Some(_), Some(_)) => Err(ApiError::validation("email", "give this or `phone_number`, not both")),
        (Some(typed), None) => {
            // A `+` that was not escaped arrives as a blank.
            let typed = match typed.strip_prefix(' ') {
                Some(rest) => format!("+{}", rest.trim()),
                None => typed,
            };
            let country = tenant::country(&state.deps.db.read, caller.tenant_id()).await?;
            let number = E164::parse(&typed, country).map_err(|why| ApiError::validation("phone_number", why))?;
            Ok(Some(Whom::Number(number)))
        }
        (None, Some(email)) => Ok(Some(Whom::Email(barred::email(&email)?))),
        (None, None) => Ok(None),
    }
}

fn somebody(whom: Option<Whom>) -> ApiResult<Whom> {
    whom.ok_or_else(|| ApiError::validation("phone_number", "give `phone_number` or `email`"))
}

/// DELETE /v1/people: 202 with the job; while one is under way for the same person, that one.
pub async fn erase(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<HttpResponse> {
    let whom = somebody(whom(&state, &caller, &mut params).await?)?;
    params.finish()?;
    let new = erasure::New {
        id: caller.new_id(&state.deps.ids),
        whom,
        created_by: caller.name(),
    };
    let row = erasure::start(&state.deps, caller.owner(), new).await?;
    Ok(HttpResponse::Accepted().json(ErasureView::from(row)))
}

/// GET /v1/people/erasures
pub async fn erasures(
    state: Data<State>,
    caller: Caller,
    mut params: Params,
) -> ApiResult<web::Json<List<ErasureView>>> {
    let page = params.page()?;
    let whom = whom(&state, &caller, &mut params).await?;
    params.finish()?;
    let hash = whom.map(|whom| erasure::hash(&state.deps, caller.tenant_id(), &whom));
    let _permit = (hash.is_some() || page.is_dated())
        .then(|| state.bulkheads.search(caller.tenant_id()))
        .transpose()?;
    let listed = store::list(&state.deps.db, caller.owner(), hash, page).await?;
    Ok(web::Json(List::of(listed, |row| row.id.0, ErasureView::from)))
}

/// GET /v1/people/erasures/{id}
pub async fn erasure(state: Data<State>, caller: Caller, Id(id): Id<ErasureId>) -> ApiResult<web::Json<ErasureView>> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    Ok(web::Json(row.into()))
}

/// GET /v1/people/file
pub async fn file(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<HttpResponse> {
    let format = match params.take("format").as_deref() {
        None | Some("json") => Format::Json,
        Some("html") => Format::Html,
        Some(_) => {
            let why = "must be `json` or `html`; a browser prints the page as PDF";
            return Err(ApiError::validation("format", why));
        }
    };
    let whom = somebody(whom(&state, &caller, &mut params).await?)?;
    params.finish()?;
    let _permit = state.bulkheads.report(caller.tenant_id())?;
    let file = person_file::of(&state, &caller, &whom).await?;
    Ok(match format {
        Format::Json => HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-store")).json(file),
        Format::Html => HttpResponse::Ok()
            .insert_header((CACHE_CONTROL, "no-store"))
            .insert_header((CONTENT_SECURITY_POLICY, POLICY))
            .insert_header((CONTENT_DISPOSITION, attachment(file.made_at)))
            .content_type("text/html; charset=utf-8")
            .body(person_file::page(&file)),
    })
}

/// By the day: a name says nothing of whom the file is about.
fn attachment(made_at: Moment) -> String {
    let day = made_at.datetime().date_naive();
    format!("attachment; filename=\"person-{day}.html\"")
}
