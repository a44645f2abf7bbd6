//! Consents: who agreed to be called or written to, and what proves it.
use super::{
    bodies::MIB,
    caller::Caller,
    console,
    error::{ApiError, ApiResult},
    extract::{self, Csv, Id, Json, OptionalJson, Params},
    imports::ImportView,
    views::{ConsentRecordView, List},
};
use crate::state::State;
use actix_web::{
    HttpMessage, HttpRequest, HttpResponse,
    body::SizedStream,
    http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY},
    web::{self, Data},
};
use actors::{
    consent::{self, Wish, files},
    import,
};
use adapters::recording::vault;
use entities::{
    Error,
    consent::{self as store, Evidence, Filter, Model, seller_key, text},
    dnc::DncChannel,
    ids::ConsentId,
    import::Kind,
    tenant,
    values::{E164, Moment, Text},
};
use futures_util::{StreamExt, stream};
use rules::{
    barred,
    consent::{ConsentGiven, Reading, Requested, accept, evidence, kept, requested},
};
use schemars::JsonSchema;
use serde::Deserialize;

/// What a file that somebody has sent may do in a browser.
const POLICY: &str = "default-src 'none'; sandbox";

/// POST /v1/consents: 201 for a new one, 200 for one of the same facts.
pub async fn create(state: Data<State>, caller: Caller, Json(given): Json<ConsentGiven>) -> ApiResult<HttpResponse> {
    let reading = Reading {
        owner: caller.owner(),
        country: tenant::country(&state.deps.db.read, caller.tenant_id()).await?,
        now: state.deps.clock.times(),
        by: Some(caller.name()),
    };
    let accepted = accept(given, &reading, caller.new_id(&state.deps.ids))?;
    let (row, is_new) = consent::give(&state.deps, accepted).await?;
    let mut response = if is_new {
        HttpResponse::Created()
    } else {
        HttpResponse::Ok()
    };
    Ok(response.json(whole(&state, row).await?))
}

/// With its words, and how long it is kept.
pub async fn whole(state: &State, row: Model) -> ApiResult<ConsentRecordView> {
    let db = &state.deps.db.read;
    let text = text::of(db, row.id).await?;
    let last_used_at = store::last_used(db, row.key()).await?;
    let (request_copy, consent_copy) = text.map_or((None, None), |text| (text.request_copy, text.consent_copy));
    Ok(ConsentRecordView {
        request_copy,
        consent_copy,
        last_used_at,
        kept_until: Some(kept::kept_until(row.given_at, last_used_at)),
        ..shown(state, row)
    })
}

fn shown(state: &State, row: Model) -> ConsentRecordView {
    ConsentRecordView::of(row, state.deps.clock.times().later())
}

/// GET /v1/consents
pub async fn list(
    state: Data<State>,
    caller: Caller,
    mut params: Params,
) -> ApiResult<web::Json<List<ConsentRecordView>>> {
    let page = params.page()?;
    let seller = params.text::<Text<1, 200>>("seller")?;
    let filter = Filter {
        phone_number: number(&state, &caller, &mut params).await?,
        email: params.take("email").map(|email| barred::email(&email)).transpose()?,
        seller_key: seller.map(|seller| seller_key(&seller)),
        tier: params.text("tier")?,
        purpose: params.text("purpose")?,
        status: params.text("status")?,
        at: Some(state.deps.clock.times().later()),
    };
    params.finish()?;
    let _permit = filter
        .is_a_search()
        .then(|| state.bulkheads.search(caller.tenant_id()))
        .transpose()?;
    let listed = store::list(&state.deps.db, caller.owner(), filter, page).await?;
    Ok(web::Json(List::of(listed, |row| row.id.0, |row| shown(&state, row))))
}

async fn number(state: &State, caller: &Caller, params: &mut Params) -> ApiResult<Option<E164>> {
    let Some(number) = params.take("phone_number") else {
        return Ok(None);
    };
    // A `+` that was not escaped arrives as a blank.
    let number = if number.starts_with(' ') {
        format!("+{}", number.trim())
    } else {
        number
    };
    let country = tenant::country(&state.deps.db.read, caller.tenant_id()).await?;
    let number = E164::parse(&number, country);
    number
        .map(Some)
        .map_err(|why| ApiError::validation("phone_number", why))
}

/// GET /v1/consents/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<ConsentId>) -> ApiResult<web::Json<ConsentRecordView>> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    Ok(web::Json(whole(&state, row).await?))
}

/// How a consent is taken back.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Revoke {
    /// Those that are taken back. Default: all that it covers.
    #[serde(default)]
    pub channels: Vec<DncChannel>,
    #[serde(default)]
    pub reason: Option<Text<1, 500>>,
    /// When the person said so elsewhere, such as by letter: at most a year ago.
    #[serde(default)]
    pub requested_at: Option<Moment>,
    /// `true`: it is no wish of the person's not to be reached, so the do-not-call list and other consents stay as they are.
    #[serde(default)]
    pub only_this: bool,
}

/// POST /v1/consents/{id}/revoke
pub async fn revoke(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<ConsentId>,
    OptionalJson(asked): OptionalJson<Revoke>,
) -> ApiResult<web::Json<ConsentRecordView>> {
    let key = caller.own(id);
    let row = store::load(&state.deps.db.read, key).await?;
    if asked.channels.iter().any(|channel| !row.channels.contain(*channel)) {
        return Err(ApiError::validation(
            "channels",
            "names one that this consent does not cover",
        ));
    }
    let times = state.deps.clock.times();
    let late = asked.requested_at.map(|at| requested(at, times)).transpose()?;
    let reason = asked.reason.map(Text::into_string);
    let wish = Wish {
        channels: asked.channels,
        reason: reason.unwrap_or_else(|| "the person has taken it back".into()),
        requested_at: asked.requested_at,
        do_not_call: !asked.only_this,
        by: caller.name(),
    };
    let row = consent::revoke(&state.deps, key, wish).await?;
    Ok(web::Json(ConsentRecordView {
        warning: late.and_then(Requested::warning),
        ..whole(&state, row).await?
    }))
}

/// DELETE /v1/consents/{id}: what the law wants kept is kept.
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<ConsentId>) -> ApiResult<HttpResponse> {
    consent::delete(&state.deps, caller.own(id)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST /v1/consents/import
pub async fn import(state: Data<State>, caller: Caller, Csv(body): Csv<{ 10 * MIB }>) -> ApiResult<HttpResponse> {
    let new = import::New {
        id: caller.new_id(&state.deps.ids),
        kind: Kind::Consents,
        campaign: None,
        created_by: caller.name(),
        body,
    };
    let job = import::start(&state.deps, caller.own(()), new).await?;
    Ok(HttpResponse::Accepted().json(ImportView::from(job)))
}

/// PUT /v1/consents/{id}/evidence: the file as the body, with its own type.
pub async fn attach(
    state: Data<State>,
    request: HttpRequest,
    caller: Caller,
    Id(id): Id<ConsentId>,
    payload: web::Payload,
) -> ApiResult<web::Json<ConsentRecordView>> {
    let key = caller.own(id);
    store::load(&state.deps.db.read, key).await?;
    let wanted = || evidence::KINDS.map(|kind| kind.content_type).join(", ");
    let kind = evidence::named(request.content_type()).ok_or_else(|| ApiError::unsupported_media_type(&wanted()))?;
    let file = extract::read(&request, &mut payload.into_inner(), evidence::MAX_FILE).await?;
    evidence::check(kind, &file).map_err(|why| ApiError::validation("", why))?;
    let row = files::attach(&state.deps, key, kind, file.to_vec(), caller.name()).await?;
    Ok(web::Json(whole(&state, row).await?))
}

/// GET /v1/consents/{id}/evidence: the file, to be saved and not shown.
pub async fn download(
    state: Data<State>,
    request: HttpRequest,
    caller: Caller,
    Id(id): Id<ConsentId>,
) -> ApiResult<HttpResponse> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    let known = row.evidence.clone();
    let known = known.ok_or_else(|| ApiError::not_found("this consent has no evidence; add it with PUT"))?;
    console::hears(&state, &request).await?;
    send(&state, &row, &known).await
}

async fn send(state: &Data<State>, row: &Model, known: &Evidence) -> ApiResult<HttpResponse> {
    let permit = state.bulkheads.download(row.tenant_id)?;
    let (vault, name) = (state.deps.studio.vault.clone(), files::name(row.tenant_id, known.id));
    let unavailable = |why: String| ApiError::from(Error::Unavailable(why));
    let size = vault
        .size(&name)
        .await
        .map_err(|failure| unavailable(failure.to_string()))?;
    let size = size.ok_or_else(|| unavailable("the file is not in the recordings' store".into()))?;
    let kind = evidence::stored(&known.content_type);
    let pieces: Vec<_> = vault::pieces(0..size).collect();
    let body = stream::iter(pieces).then(move |piece| {
        // Held until the last piece is read, or nobody wants it any more.
        let _held = &permit;
        let (vault, name) = (vault.clone(), name.clone());
        async move { vault.read(&name, piece).await.map_err(std::io::Error::other) }
    });
    let file_name = format!("attachment; filename=\"consent-{}.{}\"", row.id, kind.extension);
    Ok(HttpResponse::Ok()
        .content_type(kind.content_type)
        .insert_header((CONTENT_DISPOSITION, file_name))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .body(SizedStream::new(size, Box::pin(body))))
}
