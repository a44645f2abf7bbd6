//! The gate in front of every route: request id, who is calling, what the key may do, how often.
use super::{
    error::{ApiError, ApiResult, REQUEST_ID},
    extract::header_text,
    idempotency,
};
use crate::{access, app::State};
use actix_web::{
    Error as ActixError, FromRequest, HttpMessage, HttpRequest, ResponseError,
    body::{BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    error::InternalError,
    http::{
        Method,
        header::{self, HeaderName, HeaderValue},
    },
    middleware::Next,
    web::Data,
};
use entities::{
    api_key,
    ids::{ApiKeyId, Owned, RoomId, TenantId, UserId},
    tenant, user,
    values::{Env, Role, Scope},
};
use futures_util::FutureExt;
use governor::{
    Quota, RateLimiter,
    middleware::{NoOpMiddleware, StateInformationMiddleware},
    nanos::Nanos,
    state::keyed::DashMapStateStore,
};
use std::{
    future::{Ready, ready},
    net::IpAddr,
    num::NonZeroU32,
    panic::AssertUnwindSafe,
};

/// What a route asks of its caller. Part of the route's declaration: there is no route without one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Anybody.
    Public,
    /// Any valid API key.
    AnyKey,
    /// A key with this scope.
    Needs(Scope),
    /// A key with this scope, or a link of ours that carries its own proof (`sig`), which the handler checks.
    NeedsOrLink(Scope),
    /// A signed-in user.
    SignedIn,
    /// A member of the workspace in the path, with at least this role.
    Member(Role),
    /// The same, who has given the password within the last ten minutes: what gives others access.
    Fresh(Role),
}

/// The key behind a request.
#[derive(Clone)]
pub struct Caller {
    pub key: api_key::Model,
    /// The id that an object made by this request is to have; given by its `Idempotency-Key`.
    pub object_id: Option<uuid::Uuid>,
}

impl Caller {
    pub fn tenant_id(&self) -> TenantId {
        self.key.tenant_id
    }
    pub fn env(&self) -> Env {
        self.key.env
    }
    /// An object of the caller's.
    pub fn own<I>(&self, id: I) -> Owned<I> {
        Owned::new(self.key.tenant_id, self.key.env, id)
    }
    /// The id for a new object: the same one when a request is repeated after a crash.
    pub fn new_id<I: From<uuid::Uuid>>(&self, state: &State) -> I {
        self.object_id.map_or_else(|| state.deps.ids.next(), I::from)
    }
}

/// The signed-in user behind a dashboard request, and the workspace in its path.
#[derive(Clone)]
pub struct Member {
    pub user: user::Model,
    pub login_hash: String,
    pub workspace: Option<(tenant::Model, Role)>,
}

impl Member {
    pub fn user_id(&self) -> UserId {
        self.user.id
    }
    pub fn tenant(&self) -> ApiResult<&tenant::Model> {
        self.workspace
            .as_ref()
            .map(|(tenant, _)| tenant)
            .ok_or_else(|| ApiError::not_found("no such workspace"))
    }
}

macro_rules! from_extensions { ($($type:ty),*) => {$(
    impl FromRequest for $type {
        type Error = ApiError;
        type Future = Ready<Result<Self, ApiError>>;
        fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
            // The gate has put it there; a route whose access does not provide it is our mistake.
            let found = request.extensions().get::<$type>().cloned();
            ready(found.ok_or_else(|| entities::Error::Internal("a route's access does not provide its caller".into()).into()))
        }
    }
)*} }
from_extensions!(Caller, Member);

pub(super) type Keyed<K> = RateLimiter<K, DashMapStateStore<K>, actors::clock::Clock, StateInformationMiddleware>;

/// Limits on how often.
pub struct Limits {
    per_key: Keyed<ApiKeyId>,
    /// Keys that nobody has, by address.
    unknown_keys: Keyed<IpAddr>,
    /// Sign-ins and sign-ups, by address and by e-mail: guessing from many places gains nothing.
    logins: Keyed<IpAddr>,
    logins_by_email: Keyed<String>,
    /// Requests to peers that a workspace names.
    trunk_tests: Keyed<TenantId>,
    /// Characters of previews of voices, by workspace.
    previews: Keyed<TenantId>,
    /// Offers to join, by room.
    joins: Keyed<RoomId>,
}

/// Source: CONTRACT §1.
const REQUESTS_PER_SECOND: u32 = 50;
const BURST: u32 = 100;
/// Unknown keys of one address, and its sign-ins: so many at once, and one more every second.
const GUESSES: u32 = 60;
/// Sign-ins of one e-mail address: so many at once, and one more every five seconds.
const GUESSES_BY_EMAIL: u32 = 20;
/// Tests of a workspace's trunks: so many at once, and as many more every minute.
const TRUNK_TESTS: u32 = 20;
/// Offers to join a room: so many at once, and one more every second. A page whose network comes and goes needs fewer.
const JOINS: u32 = 30;
/// Characters that a workspace can have spoken in a minute: twenty of the longest previews.
const PREVIEW_CHARACTERS: u32 = 10_000;

impl Limits {
    pub fn new(clock: &actors::clock::Clock) -> Self {
        let count = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        let per_key = Quota::per_second(count(REQUESTS_PER_SECOND)).allow_burst(count(BURST));
        let guesses = Quota::per_second(count(1)).allow_burst(count(GUESSES));
        let by_email = Quota::per_minute(count(12)).allow_burst(count(GUESSES_BY_EMAIL));
        Limits {
            per_key: keyed(per_key, clock),
            unknown_keys: keyed(guesses, clock),
            logins: keyed(guesses, clock),
            logins_by_email: keyed(by_email, clock),
            trunk_tests: keyed(Quota::per_minute(count(TRUNK_TESTS)), clock),
            previews: keyed(Quota::per_minute(count(PREVIEW_CHARACTERS)), clock),
            joins: keyed(Quota::per_second(count(1)).allow_burst(count(JOINS)), clock),
        }
    }

    /// Forgets keys and addresses that have been quiet.
    pub fn tidy(&self) {
        self.per_key.retain_recent();
        self.unknown_keys.retain_recent();
        self.logins.retain_recent();
        self.logins_by_email.retain_recent();
        self.trunk_tests.retain_recent();
        self.previews.retain_recent();
        self.joins.retain_recent();
    }

    /// A key that nobody has; `Err` when there were too many from this address.
    pub fn unknown_key(&self, address: Option<IpAddr>) -> ApiResult<()> {
        let allowed = address.is_none_or(|address| self.unknown_keys.check_key(&address).is_ok());
        if allowed {
            Ok(())
        } else {
            Err(ApiError::TooMany(
                "rate_limited",
                "too many unknown keys from this address".into(),
                1,
            ))
        }
    }

    /// A request to the peer of a trunk.
    pub fn trunk_test(&self, caller: &Caller) -> ApiResult<()> {
        if self.trunk_tests.check_key(&caller.tenant_id()).is_ok() {
            return Ok(());
        }
        let message = format!("at most {TRUNK_TESTS} tests of trunks a minute");
        Err(ApiError::TooMany("rate_limited", message, 60 / u64::from(TRUNK_TESTS)))
    }

    /// Somebody with the room's link offers to join it: each offer is work, also one that is refused.
    pub fn join(&self, room: RoomId) -> ApiResult<()> {
        if self.joins.check_key(&room).is_ok() {
            return Ok(());
        }
        let message = "too many offers to join this room".into();
        Err(ApiError::TooMany("rate_limited", message, 1))
    }

    /// A preview of so many characters.
    pub fn preview(&self, tenant: TenantId, characters: usize) -> ApiResult<()> {
        let characters = u32::try_from(characters).ok().and_then(NonZeroU32::new);
        let allowed = characters.is_none_or(|n| matches!(self.previews.check_key_n(&tenant, n), Ok(Ok(_))));
        if allowed {
            Ok(())
        } else {
            let message = format!("at most {PREVIEW_CHARACTERS} characters of previews a minute");
            Err(ApiError::TooMany("rate_limited", message, 5))
        }
    }

    /// A try to sign in or up.
    pub fn login(&self, address: Option<IpAddr>, email: &str) -> ApiResult<()> {
        let by_address = address.is_none_or(|address| self.logins.check_key(&address).is_ok());
        let by_email = self.logins_by_email.check_key(&email.trim().to_lowercase()).is_ok();
        if by_address && by_email {
            Ok(())
        } else {
            Err(ApiError::TooMany(
                "rate_limited",
                "too many tries; wait a little".into(),
                5,
            ))
        }
    }
}

pub(super) fn keyed<K: std::hash::Hash + Eq + Clone>(quota: Quota, clock: &actors::clock::Clock) -> Keyed<K> {
    RateLimiter::<_, _, _, NoOpMiddleware<Nanos>>::new(quota, DashMapStateStore::default(), clock.clone())
        .with_middleware()
}

/// Outermost: gives the request its id, turns panics into answers, adds what every answer carries.
pub async fn frame(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let state = state_of(request.request());
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
                actors::supervise::panic_text(&*panic)
            ));
            let mut answer = REQUEST_ID.sync_scope(id.clone(), || ApiError::from(error).error_response());
            if let Ok(id) = HeaderValue::from_str(&id) {
                answer.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
            }
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
    Ok(response)
}

/// In front of one route.
pub async fn gate(
    access: Access,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let state = state_of(request.request());
    let mut remaining = None;
    let admitted = match access {
        Access::Public => Ok(()),
        Access::AnyKey => admit_key(&state, &mut request, None, &mut remaining).await,
        Access::Needs(scope) => admit_key(&state, &mut request, Some(scope), &mut remaining).await,
        Access::NeedsOrLink(_) if request.query_string().contains("sig=") => Ok(()),
        Access::NeedsOrLink(scope) => admit_key(&state, &mut request, Some(scope), &mut remaining).await,
        Access::SignedIn => admit_user(&state, &request, None, false).await,
        Access::Member(role) => admit_user(&state, &request, Some(role), false).await,
        Access::Fresh(role) => admit_user(&state, &request, Some(role), true).await,
    };
    if let Err(error) = admitted {
        // Not `Err`: that would skip what the outer layers add.
        let mut response = request.into_response(error.error_response());
        show_rate(&mut response, remaining);
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
    show_rate(&mut response, remaining);
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

/// What is left of the key's rate.
fn show_rate(response: &mut ServiceResponse<BoxBody>, remaining: Option<u32>) {
    let Some(remaining) = remaining else { return };
    let reset = f64::from(BURST - remaining) / f64::from(REQUESTS_PER_SECOND);
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("ratelimit-limit"), HeaderValue::from(BURST));
    headers.insert(
        HeaderName::from_static("ratelimit-remaining"),
        HeaderValue::from(remaining),
    );
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 2 seconds")]
    headers.insert(
        HeaderName::from_static("ratelimit-reset"),
        HeaderValue::from(reset.ceil() as u32),
    );
}

fn state_of(request: &HttpRequest) -> Data<State> {
    request
        .app_data::<Data<State>>()
        .cloned()
        .unwrap_or_else(|| unreachable!("every app is built with its state"))
}

async fn admit_key(
    state: &State,
    request: &mut ServiceRequest,
    scope: Option<Scope>,
    remaining: &mut Option<u32>,
) -> ApiResult<()> {
    let key = authenticate(state, request.request()).await?;
    match state.limits.per_key.check_key(&key.id) {
        Ok(snapshot) => *remaining = Some(snapshot.remaining_burst_capacity()),
        Err(not_yet) => {
            *remaining = Some(0);
            let wait = not_yet.wait_time_from(governor::clock::Clock::now(&state.deps.clock));
            let message = format!("at most {REQUESTS_PER_SECOND} requests a second per key, bursts of {BURST}");
            return Err(ApiError::TooMany("rate_limited", message, wait.as_secs() + 1));
        }
    }
    if let Some(scope) = scope
        && !key.scopes.contains(scope)
    {
        return Err(ApiError::forbidden(format!(
            "this key lacks the scope `{scope}`; make a key that has it"
        )));
    }
    state.keys_used.note(key.id, state.deps.clock.now());
    request.extensions_mut().insert(Caller { key, object_id: None });
    Ok(())
}

/// The key that the request shows. One message for every wrong key: it tells nobody which keys exist.
async fn authenticate(state: &State, request: &HttpRequest) -> ApiResult<api_key::Model> {
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
        true => api_key::by_hash(&state.deps.db.read, &actors::keyring::sha256_hex(key.as_bytes())).await?,
        false => None,
    };
    let Some(found) = found else {
        state.limits.unknown_key(peer(state, request))?;
        return Err(invalid());
    };
    // Not counted as guessing: a revoked key is answered 401, however often it comes.
    if access::is_valid(&found, state.deps.clock.now()) {
        Ok(found)
    } else {
        Err(invalid())
    }
}

async fn admit_user(state: &State, request: &ServiceRequest, role: Option<Role>, fresh: bool) -> ApiResult<()> {
    let http = request.request();
    if *http.method() != Method::GET {
        same_origin(http)?;
    }
    let signed_out = || ApiError::unauthenticated("you are not signed in");
    let token = http.cookie(state.cookie_name()).ok_or_else(signed_out)?;
    let (user, login) = access::signed_in(state, token.value()).await?.ok_or_else(signed_out)?;
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

/// The client's address, for limits.
pub fn peer(state: &State, request: &HttpRequest) -> Option<IpAddr> {
    if state.settings.trusted_proxy
        && let Some(forwarded) = header_text(request, "x-forwarded-for")
        && let Some(address) = forwarded.rsplit(',').next().and_then(|last| last.trim().parse().ok())
    {
        return Some(whole_network(address));
    }
    request.peer_addr().map(|address| whole_network(address.ip()))
}

/// An IPv6 client has a /64 to choose addresses from: counted as one.
fn whole_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
    }
}
