//! In front of every route: request id, who is calling, what the key may do, how often.
use super::{
    caller::{Access, Caller, Member},
    error::{ApiError, ApiResult, REQUEST_ID},
    extract::header_text,
    idempotency,
    peer::{peer, state_of},
    rate_limits::Left,
    unread::Unread,
};
use crate::{access, state::State};
use actix_web::{
    Error as ActixError, HttpMessage, HttpRequest, HttpResponse, ResponseError,
    body::{BodySize, BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    error::InternalError,
    http::{
        Method,
        header::{self, HeaderName, HeaderValue},
    },
    middleware::Next,
    web::Bytes,
};
use entities::{
    api_key,
    values::{Role, Scope},
};
use futures_util::FutureExt;
use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
};

/// Outermost: gives the request its id, turns panics into answers, adds what every answer carries.
pub async fn frame(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let state = state_of(request.request());
    let unread = Unread::watch(&mut request);
    let id = format!("req_{}", state.deps.ids.next::<uuid::Uuid>().simple());
    let (method, path, started) = (
        request.method().clone(),
        request.match_pattern().unwrap_or_default(),
        std::time::Instant::now(),
    );
    let answer = REQUEST_ID
        .scope(id.clone(), AssertUnwindSafe(next.call(request)).catch_unwind())
        .await;
    let mut response = match answer {
        Ok(Ok(response)) => response.map_into_boxed_body(),
        Ok(Err(error)) => return Err(error),
        // The request went down with the panic (and a second handle to it would have broken the routing), so that this
        // answer goes without the headers below but for its id.
        Err(panic) => {
            let error = entities::Error::Internal(format!(
                "a handler panicked: {}",
                runtime::supervise::panic_text(&*panic)
            ));
            let mut answer = REQUEST_ID.sync_scope(id.clone(), || ApiError::from(error).error_response());
            if let Ok(id) = HeaderValue::from_str(&id) {
                answer.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
            }
            let answer = keep_back(unread, answer);
            return Err(InternalError::from_response("a handler panicked", answer).into());
        }
    };
    let pattern = response.request().match_pattern().unwrap_or(path);
    let status = response.status().as_u16();
    let seconds = started.elapsed().as_secs_f64();
    metrics::histogram!("callboard_http_seconds", "route" => pattern.clone(), "status" => (status / 100).to_string())
        .record(seconds);
    tracing::debug!(request_id = id, %method, route = pattern, status, ms = seconds * 1000.0, "request");
    let headers = response.headers_mut();
    let mut put = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    put("x-request-id", &id);
    put("x-content-type-options", "nosniff");
    put("referrer-policy", "no-referrer");
    put("x-frame-options", "DENY");
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let (request, mut response) = response.into_parts();
    if method == Method::HEAD {
        // Dropped here: what is streamed would otherwise go on for nobody.
        response = response.map_body(|_, body| BoxBody::new(LeftOut(body.size())));
    }
    Ok(ServiceResponse::new(request, keep_back(unread, response)))
}

/// Whatever is left of the request's body does not come in faster than it is wanted.
fn keep_back(unread: Option<Unread>, response: HttpResponse<BoxBody>) -> HttpResponse<BoxBody> {
    match unread {
        Some(unread) => unread.answer(response),
        None => response,
    }
}

/// In the place of a body of that size: HEAD is answered as GET is, without it.
struct LeftOut(BodySize);

impl MessageBody for LeftOut {
    type Error = Infallible;
    fn size(&self) -> BodySize {
        self.0
    }
    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        Poll::Ready(None)
    }
}

/// In front of one route.
pub async fn admit(
    access: Access,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let state = state_of(request.request());
    let mut left = None;
    let admitted = match access {
        Access::Public => Ok(()),
        Access::AnyKey => admit_key(&state, &mut request, None, &mut left).await,
        Access::Needs(scope) => admit_key(&state, &mut request, Some(scope), &mut left).await,
        Access::NeedsOrLink(_) if request.query_string().contains("sig=") => Ok(()),
        Access::NeedsOrLink(scope) => admit_key(&state, &mut request, Some(scope), &mut left).await,
        Access::SignedIn => admit_user(&state, &request, None, false, &mut left).await,
        Access::Member(role) => admit_user(&state, &request, Some(role), false, &mut left).await,
        Access::Fresh(role) => admit_user(&state, &request, Some(role), true, &mut left).await,
    };
    if let Err(error) = admitted {
        // Not `Err`: that would skip what the outer layers add.
        let mut response = request.into_response(error.error_response());
        show_rate(&mut response, left);
        return Ok(response);
    }
    let caller = request.extensions().get::<Caller>().cloned();
    let key = match idempotency_key(request.request()) {
        Ok(key) => key,
        Err(error) => return Ok(request.into_response(error.error_response())),
    };
    let mut response = match (request.method(), caller, key) {
        (&Method::POST, Some(caller), Some(key)) => idempotency::once(&state, caller, key, request, next).await?,
        _ => next.call(request).await?.map_into_boxed_body(),
    };
    show_rate(&mut response, left);
    Ok(response)
}

fn idempotency_key(request: &HttpRequest) -> ApiResult<Option<String>> {
    let mut given = request.headers().get_all("idempotency-key");
    let (first, second) = (given.next(), given.next());
    let readable = first.map(|value| value.to_str().map(str::to_owned)).transpose();
    match (readable, second) {
        (Ok(key), None) => Ok(key),
        _ => Err(ApiError::validation(
            "Idempotency-Key",
            "must be given once, in visible ASCII characters",
        )),
    }
}

/// What is left of the caller's rate.
fn show_rate(response: &mut ServiceResponse<BoxBody>, left: Option<Left>) {
    let Some(left) = left else { return };
    let shown = [
        ("ratelimit-limit", left.burst),
        ("ratelimit-remaining", left.remaining),
        ("ratelimit-reset", left.reset),
    ];
    for (name, value) in shown {
        let headers = response.headers_mut();
        headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
    }
}

async fn admit_key(
    state: &State,
    request: &mut ServiceRequest,
    scope: Option<Scope>,
    left: &mut Option<Left>,
) -> ApiResult<()> {
    let key = authenticate(state, request.request()).await?;
    state.limits.request(key.id, key.tenant_id, left)?;
    if let Some(scope) = scope
        && !key.scopes.contains(scope)
    {
        return Err(ApiError::forbidden(format!(
            "this key lacks the scope `{scope}`; use a key that has it"
        )));
    }
    state.keys_used.note(key.id, state.deps.clock.now());
    request.extensions_mut().insert(Caller { key, object_id: None });
    Ok(())
}

/// The key that the request shows. One message for every wrong key: it tells nobody which keys exist.
async fn authenticate(state: &State, request: &HttpRequest) -> ApiResult<api_key::Model> {
    if request.headers().get_all("authorization").nth(1).is_some() {
        // Which of them counts would be anybody's guess.
        return Err(ApiError::invalid_request("send one Authorization header, not several"));
    }
    let header = header_text(request, "authorization")
        .ok_or_else(|| ApiError::unauthenticated("no API key: send `Authorization: Bearer vk_…`"))?;
    let key = match header.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim(),
        _ => {
            return Err(ApiError::unauthenticated(
                "the Authorization header must be `Bearer <API_KEY>`",
            ));
        }
    };
    let invalid = || ApiError::unauthenticated("this API key is not valid: it is unknown, revoked or expired");
    let found = match access::looks_like_a_key(key) {
        true => api_key::by_hash(&state.deps.db.read, &runtime::keyring::sha256_hex(key.as_bytes())).await?,
        false => None,
    };
    let Some(found) = found else {
        state.limits.unknown_key(peer(state, request), key)?;
        return Err(invalid());
    };
    // Not counted as guessing: a revoked key is answered 401, however often it comes.
    // By the clock that shows more: a key that has expired stays so when the other one is set back.
    if access::is_valid(&found, state.deps.clock.times().later()) {
        Ok(found)
    } else {
        Err(invalid())
    }
}

async fn admit_user(
    state: &State,
    request: &ServiceRequest,
    role: Option<Role>,
    fresh: bool,
    left: &mut Option<Left>,
) -> ApiResult<()> {
    let http = request.request();
    if !http.method().is_safe() {
        same_origin(http)?;
    }
    let signed_out = || ApiError::unauthenticated("you are not signed in");
    let token = http.cookie(state.cookie_name()).ok_or_else(signed_out)?;
    let (user, login) = access::signed_in(state, token.value()).await?.ok_or_else(signed_out)?;
    state.limits.dashboard(&login.token_hash, left)?;
    let mut workspace = None;
    if let Some(role) = role {
        let slug = http.match_info().get("slug").unwrap_or_default();
        let memberships = entities::membership::of_user(&state.deps.db.read, user.id).await?;
        let found = memberships.into_iter().find(|(tenant, _)| tenant.slug == slug);
        let (tenant, has) = found.ok_or_else(|| ApiError::not_found("no such workspace"))?;
        if has < role {
            return Err(ApiError::forbidden(
                "your role in this workspace does not allow this; ask an owner",
            ));
        }
        workspace = Some((tenant, has));
    }
    // After the role: whoever may not do it at all is not asked for a password.
    if fresh && !access::is_fresh(&login, state.deps.clock.now()) {
        return Err(ApiError::password_wanted());
    }
    request.extensions_mut().insert(Member {
        user,
        login_hash: login.token_hash,
        workspace,
    });
    Ok(())
}

/// Against requests that another site makes in a signed-in browser: JSON only, and from our own pages only.
pub fn same_origin(request: &HttpRequest) -> ApiResult<()> {
    let has_body = *request.method() != Method::DELETE;
    if has_body && !request.content_type().eq_ignore_ascii_case("application/json") {
        return Err(ApiError::unsupported_media_type("application/json"));
    }
    let foreign = || ApiError::forbidden("this request does not come from the dashboard's own pages");
    if let Some(site) = header_text(request, "sec-fetch-site") {
        return if matches!(&*site, "same-origin" | "none") {
            Ok(())
        } else {
            Err(foreign())
        };
    }
    // Without either header it is no browser: there is no session of somebody else's to ride on.
    let Some(origin) = header_text(request, "origin") else {
        return Ok(());
    };
    let host = header_text(request, "host").unwrap_or_default();
    let same = origin.split_once("://").is_some_and(|(_, authority)| authority == host);
    if same { Ok(()) } else { Err(foreign()) }
}
