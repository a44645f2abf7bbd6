//! Signing up, in and out of the dashboard.
use super::{
    caller::Member,
    device,
    error::{ApiError, ApiResult},
    extract::{Json, SMALL, header_text},
    signed_in, transport,
    views::{MembershipView, SignedInView, UserView},
};
use crate::{
    access::{self, DEFAULT_CONCURRENCY, NewWorkspace},
    state::State,
};
use actix_web::{
    HttpRequest, HttpResponse,
    cookie::{Cookie, SameSite, time},
    web::{self, Data},
};
use actors::{housekeeping::LOGIN_ABSOLUTE, leases::Of};
use entities::{meta, user, values::Zone};
use rules::commit::Commit;
use runtime::keyring::sha256_hex;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignUp {
    /// The one-time token of the set-up link; not needed where sign-up is open.
    #[serde(default)]
    pub token: Option<String>,
    pub slug: String,
    pub name: String,
    pub email: String,
    pub password: String,
    /// ISO 3166-1 alpha-2: how numbers without `+` are read.
    #[serde(default = "united_states")]
    pub country: String,
    /// The time zone for calls whose own is unknown. Default: where most people of the country live.
    #[serde(default)]
    pub timezone: Option<Zone>,
}
fn united_states() -> String {
    "US".into()
}

/// POST /v1/_internal/signup
pub async fn sign_up(
    state: Data<State>,
    request: HttpRequest,
    Json(asked): Json<SignUp, SMALL>,
) -> ApiResult<HttpResponse> {
    signed_in::same_origin(&request)?;
    transport::keeps_cookies(&state, &request)?;
    device::admit_new(&state, &request, &asked.email)?;
    let token = asked.token.clone().map(Zeroizing::new);
    let with_token = match &token {
        Some(token) => meta::get(&state.deps.db.read, meta::SETUP_TOKEN)
            .await?
            .filter(|stored| *stored == sha256_hex(token.as_bytes())),
        None => None,
    };
    if with_token.is_none() && !state.settings.signup_open {
        return Err(ApiError::forbidden(
            "this set-up link is invalid or has expired; restart the server for a new one, or ask an owner",
        ));
    }
    let timezone = asked.timezone;
    let mut new = blocking(&STRANGERS, move || {
        NewWorkspace::parse(&asked.slug, &asked.name, &asked.country, &asked.email, &asked.password)
    })
    .await?;
    new.timezone = timezone.unwrap_or(new.timezone);
    let limit = DEFAULT_CONCURRENCY.min(state.deps.limits.max_concurrency);
    let (ids, now) = (state.deps.ids.clone(), state.deps.clock.now());
    let owner = state.deps.writer.run(Of::Installation, move |db| {
        let (new, ids, with_token) = (new.clone(), ids.clone(), with_token.clone());
        Box::pin(async move {
            // In the same transaction: the link is for the first user only, and two people with one link make one workspace.
            if with_token.is_some() && user::exist(db).await? {
                return Err(entities::Error::AlreadyExists { field: "token" });
            }
            if let Some(stored) = &with_token
                && !meta::take(db, meta::SETUP_TOKEN, stored).await?
            {
                return Err(entities::Error::AlreadyExists { field: "token" });
            }
            new.check_owner_is_new(db).await?;
            let (_, owner, changes) = new.rows(db, &ids, now, limit).await?;
            Ok((
                owner,
                Commit {
                    changes,
                    events: Vec::new(),
                },
            ))
        })
    });
    let owner = owner.await?;
    signed_in(&state, &request, &owner, HttpResponse::Created()).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogIn {
    pub email: String,
    pub password: String,
}

/// POST /v1/_internal/login
pub async fn log_in(
    state: Data<State>,
    request: HttpRequest,
    Json(asked): Json<LogIn, SMALL>,
) -> ApiResult<HttpResponse> {
    signed_in::same_origin(&request)?;
    transport::keeps_cookies(&state, &request)?;
    // Counted before the password is looked at, so that guessing in parallel gains nothing.
    let (found, is_known) = device::admit(&state, &request, &asked.email).await?;
    let stored = found.as_ref().map(|user| user.password_hash.clone());
    let password = Zeroizing::new(asked.password);
    let slots = if is_known { &KNOWN } else { &STRANGERS };
    let matches = blocking(slots, move || {
        Ok(access::password_matches(&password, stored.as_deref()))
    })
    .await?;
    match found.filter(|_| matches) {
        Some(user) => signed_in(&state, &request, &user, HttpResponse::Ok()).await,
        None => Err(wrong()),
    }
}

/// The same for whatever is wrong: it tells nobody which users exist.
fn wrong() -> ApiError {
    ApiError::unauthenticated("e-mail or password is wrong")
}

/// POST /v1/_internal/logout
pub async fn log_out(state: Data<State>, member: Member) -> ApiResult<HttpResponse> {
    access::sign_out(&state.deps, member.login_hash).await?;
    Ok(HttpResponse::NoContent().cookie(over(&state)).finish())
}

/// Takes the cookie back.
pub(super) fn over(state: &State) -> Cookie<'static> {
    let mut over = cookie(state, String::new());
    over.set_max_age(time::Duration::ZERO);
    over
}

/// GET /v1/_internal/me
pub async fn me(state: Data<State>, member: Member) -> ApiResult<web::Json<SignedInView>> {
    Ok(web::Json(view(&state, &member.user).await?))
}

pub(super) async fn signed_in(
    state: &State,
    request: &HttpRequest,
    user: &user::Model,
    mut answer: actix_web::HttpResponseBuilder,
) -> ApiResult<HttpResponse> {
    let token = access::sign_in(&state.deps, user, user_agent(request))
        .await?
        .ok_or_else(wrong)?;
    let view = view(state, user).await?;
    let device = device::cookie(state, request, user.id);
    Ok(answer.cookie(cookie(state, token)).cookie(device).json(view))
}

/// What a browser says it is, for the list of somebody's own sessions.
fn user_agent(request: &HttpRequest) -> Option<String> {
    const LONGEST: usize = 300;
    let told = header_text(request, "user-agent")?;
    Some(told.chars().filter(|char| !char.is_control()).take(LONGEST).collect())
}

async fn view(state: &State, user: &user::Model) -> ApiResult<SignedInView> {
    let memberships = entities::membership::of_user(&state.deps.db.read, user.id).await?;
    let workspaces = memberships.into_iter().map(|(tenant, role)| MembershipView {
        slug: tenant.slug,
        name: tenant.name,
        role,
    });
    Ok(SignedInView {
        user: UserView {
            id: user.id,
            email: user.email.clone(),
        },
        workspaces: workspaces.collect(),
    })
}

fn cookie(state: &State, token: String) -> Cookie<'static> {
    let max_age = time::Duration::seconds(i64::try_from(LOGIN_ABSOLUTE.as_secs()).unwrap_or(0));
    Cookie::build(state.cookie_name(), token)
        .path("/")
        .http_only(true)
        .secure(state.settings.secure_cookies())
        .same_site(SameSite::Lax)
        .max_age(max_age)
        .finish()
}

/// Who waits for a password to be hashed. Each takes some 20 MiB and tens of milliseconds: only a few at once; and strangers, who
/// may come from any number of networks, take one core at most and never the place of those who are known.
pub(super) static STRANGERS: Semaphore = Semaphore::const_new(1);
pub(super) static KNOWN: Semaphore = Semaphore::const_new(2);

/// Hashing passwords takes a while: not on a thread that serves others, and nobody waits for long.
pub(super) async fn blocking<T: Send + 'static>(
    slots: &'static Semaphore,
    work: impl FnOnce() -> entities::Result<T> + Send + 'static,
) -> ApiResult<T> {
    let busy = || ApiError::from(entities::Error::Unavailable("too many sign-ins at once".into()));
    let slot = tokio::time::timeout(std::time::Duration::from_secs(5), slots.acquire()).await;
    let slot = slot.map_err(|_| busy())?.map_err(|_| busy())?;
    // Held by the work itself, which goes on also when nobody waits for it any more.
    let hashing = web::block(move || {
        let _slot = slot;
        work()
    });
    match hashing.await {
        Ok(done) => Ok(done?),
        Err(_) => Err(busy()),
    }
}
