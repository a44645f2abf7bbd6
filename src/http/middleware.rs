//! In front of every route: request id, who is calling, what the key may do, how often.
use super::{
    caller::{Access, Caller},
    console::{self, Noted, Place},
    error::{ApiError, ApiResult, REQUEST_ID},
    extract::header_text,
    idempotency,
    nodes::{self, Place as Settled},
    peer::{peer, state_of},
    rate_limits::Left,
    signed_in::{self, Asks, Bodies},
    traced::Traced,
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
        header::{self, HeaderMap, HeaderName, HeaderValue},
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
    let hop = match nodes::enter(&state, &mut request) {
        Ok(hop) => hop,
        Err(error) => {
            let id = format!("req_{}", state.deps.ids.next::<uuid::Uuid>().simple());
            let answer = REQUEST_ID.sync_scope(id, || error.error_response());
            return Ok(request.into_response(keep_back(unread, answer)));
        }
    };
    console::enter(&mut request);
    // What the service asks of itself on the way to an answer is part of the same request.
    let own = REQUEST_ID.try_with(Clone::clone).ok();
    let traced = Traced::begin(&state.deps, &request, hop.is_some());
    let new_id = || format!("req_{}", state.deps.ids.next::<uuid::Uuid>().simple());
    let id = hop.map(|hop| hop.request_id).or(own).unwrap_or_else(new_id);
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
    let took = started.elapsed();
    let seconds = took.as_secs_f64();
    let known = named(&method);
    measured(known, &pattern, status).record(seconds);
    if let Some(traced) = traced {
        traced.end(&state.deps, (known, &pattern), &response, took);
    }
    tracing::debug!(request_id = id, %method, route = pattern, status, ms = seconds * 1000.0, "request");
    add_to_every_answer(response.headers_mut(), &id);
    let (request, mut response) = response.into_parts();
    if method == Method::HEAD {
        // Dropped here: what is streamed would otherwise go on for nobody.
        response = response.map_body(|_, body| BoxBody::new(LeftOut(body.size())));
    }
    Ok(ServiceResponse::new(request, keep_back(unread, response)))
}

/// What every answer carries.
fn add_to_every_answer(headers: &mut HeaderMap, id: &str) {
    let mut put = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    put("x-request-id", id);
    put("x-content-type-options", "nosniff");
    put("referrer-policy", "no-referrer");
    put("x-frame-options", "DENY");
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// Methods that nobody knows count as one: strangers make them up.
fn named(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn measured(method: &'static str, pattern: &str, status: u16) -> metrics::Histogram {
    let (route, status) = (pattern.to_owned(), (status / 100).to_string());
    metrics::histogram!("callboard_http_seconds", "method" => method, "route" => route, "status" => status)
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
    // Kept until it is answered.
    let _stay = match nodes::settle(&state, &mut request, access).await {
        Ok(Settled::Here(stay)) => stay,
        Ok(Settled::There(answer)) => return Ok(request.into_response(answer)),
        Err(error) => return Ok(request.into_response(error.error_response())),
    };
    let admitted = match console::place_of(request.request()) {
        Some(place) => admit_console(&state, &mut request, access, &place, &mut left).await,
        None => admit_here(&state, &mut request, access, &mut left).await.map(|()| None),
    };
    let noted = match admitted {
        Ok(noted) => noted,
        Err(error) => {
            // Not `Err`: that would skip what the outer layers add.
            let mut response = request.into_response(error.error_response());
            show_rate(&mut response, left);
            return Ok(response);
        }
    };
    let caller = request.extensions().get::<Caller>().cloned();
    let key = match idempotency::key_of(request.request()) {
        Ok(key) => key,
        Err(error) => return Ok(request.into_response(error.error_response())),
    };
    let mut response = match (request.method(), caller, key) {
        (&Method::POST, Some(caller), Some(key)) => idempotency::once(&state, caller, key, request, next).await?,
        _ => next.call(request).await?.map_into_boxed_body(),
    };
    if let Some(noted) = noted {
        console::answered(&state, noted, response.status());
    }
    show_rate(&mut response, left);
    Ok(response)
}

async fn admit_here(
    state: &State,
    request: &mut ServiceRequest,
    access: Access,
    left: &mut Option<Left>,
) -> ApiResult<()> {
    let slug = request.match_info().get("slug").unwrap_or_default().to_owned();
    let user = |role: Option<Role>, fresh| Asks {
        workspace: role.map(|role| (&*slug, role)),
        fresh,
        bodies: Bodies::Json,
    };
    let asks = match access {
        // The requests that are made with it pass here themselves.
        Access::Public | Access::Relayed => return Ok(()),
        Access::NeedsOrLink(_) if request.query_string().contains("sig=") => return Ok(()),
        Access::AnyKey => return admit_key(state, request, None, left).await,
        Access::Needs(scope) | Access::NeedsFresh(scope) | Access::NeedsOrLink(scope) => {
            return admit_key(state, request, Some(scope), left).await;
        }
        Access::SignedIn => user(None, false),
        Access::Member(role) => user(Some(role), false),
        Access::Fresh(role) => user(Some(role), true),
    };
    let member = signed_in::admit(state, request.request(), asks, left).await?;
    request.extensions_mut().insert(member);
    Ok(())
}

async fn admit_console(
    state: &State,
    request: &mut ServiceRequest,
    access: Access,
    place: &Place,
    left: &mut Option<Left>,
) -> ApiResult<Option<Noted>> {
    match access {
        Access::Needs(_) | Access::NeedsOrLink(_) => console::admit(state, request, (place, false), left).await,
        Access::NeedsFresh(_) => console::admit(state, request, (place, true), left).await,
        Access::Public | Access::AnyKey | Access::Relayed | Access::SignedIn | Access::Member(_) | Access::Fresh(_) => {
            Err(console::no_such_route(request.path()))
        }
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
    request.extensions_mut().insert(Caller::with_key(key));
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
