//! What somebody who is signed in does with the own account: the password again, another password, the end of all sessions.
use super::{
    caller::Member,
    error::{ApiError, ApiResult},
    extract::Json,
    login::{KNOWN, blocking, over},
    views::List,
};
use crate::{
    access::{self, Author, FRESH, account},
    state::State,
};
use actix_web::{
    HttpResponse,
    web::{self, Data, Path},
};
use actors::housekeeping::{LOGIN_ABSOLUTE, LOGIN_IDLE};
use actors::leases::Of;
use entities::{login, user, values::Moment};
use rules::commit::Commit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reauthenticate {
    pub password: String,
}

#[derive(Serialize, JsonSchema)]
pub struct ReauthenticatedView {
    /// Until then this session may do what requires the password.
    pub fresh_until: Moment,
}

/// POST /v1/_internal/reauthenticate
pub async fn reauthenticate(
    state: Data<State>,
    member: Member,
    Json(asked): Json<Reauthenticate>,
) -> ApiResult<web::Json<ReauthenticatedView>> {
    check(&state, &member.user, asked.password, "password").await?;
    let (login_hash, now) = (member.login_hash, state.deps.clock.now());
    let noted = state.deps.writer.run(Of::Installation, move |db| {
        let login_hash = login_hash.clone();
        Box::pin(async move { Ok((login::authenticate(db, &login_hash, now).await?, Commit::default())) })
    });
    if !noted.await? {
        return Err(ApiError::unauthenticated("you are no longer signed in"));
    }
    Ok(web::Json(ReauthenticatedView {
        fresh_until: now.plus(FRESH),
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePassword {
    /// The current password.
    pub current_password: String,
    /// 12 to 200 characters.
    pub new_password: String,
}

/// POST /v1/_internal/password: every other session of the user ends.
pub async fn change_password(
    state: Data<State>,
    member: Member,
    Json(asked): Json<ChangePassword>,
) -> ApiResult<HttpResponse> {
    let new = Zeroizing::new(asked.new_password);
    access::check_password(&new).map_err(|error| renamed(error, "new_password"))?;
    check(&state, &member.user, asked.current_password, "current_password").await?;
    let hash = blocking(&KNOWN, move || access::hash_password(&new)).await?;
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let changed = state.deps.writer.run(Of::Installation, move |db| {
        let (by, hash, member) = (by.clone(), hash.clone(), member.clone());
        Box::pin(async move {
            account::change_password(db, &by, &member.user, &hash, &member.login_hash).await?;
            Ok(((), Commit::default()))
        })
    });
    changed.await?;
    Ok(HttpResponse::NoContent().finish())
}

/// A session of the signed-in user: one browser.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LoginSession")]
pub struct SessionView {
    pub id: String,
    pub created_at: Moment,
    pub last_seen_at: Moment,
    /// It ends sooner if it is not used.
    pub expires_at: Moment,
    /// The one that asks.
    pub is_this_one: bool,
    /// What the browser says it is.
    pub user_agent: Option<String>,
}

/// Sessions of one user that are listed: the newest.
const SESSIONS: u64 = 100;
/// Of a hash, what tells the sessions of one user apart.
const ID: usize = 16;

fn id_of(login: &login::Model) -> &str {
    login.token_hash.get(..ID).unwrap_or_default()
}

/// GET /v1/_internal/sessions
pub async fn sessions(state: Data<State>, member: Member) -> ApiResult<web::Json<List<SessionView>>> {
    let logins = login::of_user(&state.deps.db.read, member.user_id(), SESSIONS).await?;
    let now = state.deps.clock.now();
    let view = |login: login::Model| SessionView {
        id: id_of(&login).to_owned(),
        created_at: login.created_at,
        last_seen_at: login.last_seen_at,
        expires_at: login.created_at.plus(LOGIN_ABSOLUTE),
        is_this_one: login.token_hash == member.login_hash,
        user_agent: login.user_agent,
    };
    let goes_on =
        |login: &login::Model| now < login.created_at.plus(LOGIN_ABSOLUTE) && now < login.last_seen_at.plus(LOGIN_IDLE);
    Ok(web::Json(List::whole(
        logins.into_iter().filter(goes_on).map(view).collect(),
    )))
}

/// DELETE /v1/_internal/sessions/{id}
pub async fn end_session(state: Data<State>, member: Member, id: Path<String>) -> ApiResult<HttpResponse> {
    let logins = login::of_user(&state.deps.db.read, member.user_id(), SESSIONS).await?;
    let found = logins.into_iter().find(|login| id_of(login) == *id);
    let login = found.ok_or_else(|| ApiError::not_found("you have no such session; it may have ended"))?;
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let ended = state.deps.writer.run(Of::Installation, move |db| {
        let (by, user, hash) = (by.clone(), member.user.clone(), login.token_hash.clone());
        Box::pin(async move {
            account::end_session(db, &by, &user, &hash).await?;
            Ok(((), Commit::default()))
        })
    });
    ended.await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST /v1/_internal/logout-everywhere: this session ends too.
pub async fn sign_out_everywhere(state: Data<State>, member: Member) -> ApiResult<HttpResponse> {
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let ended = state.deps.writer.run(Of::Installation, move |db| {
        let (by, user) = (by.clone(), member.user.clone());
        Box::pin(async move {
            account::sign_out_everywhere(db, &by, &user).await?;
            Ok(((), Commit::default()))
        })
    });
    ended.await?;
    Ok(HttpResponse::NoContent().cookie(over(&state)).finish())
}

/// Is this the user's password? Counted before it is looked at, so that guessing in parallel gains nothing.
async fn check(state: &State, user: &user::Model, password: String, param: &'static str) -> ApiResult<()> {
    let password = Zeroizing::new(password);
    state.limits.own_password(user.id)?;
    let stored = user.password_hash.clone();
    match blocking(&KNOWN, move || {
        Ok(access::password_matches(&password, Some(stored.as_str())))
    })
    .await?
    {
        true => Ok(()),
        false => Err(ApiError::wrong_password(param)),
    }
}

/// An error about a password, under the name that this request has for it.
fn renamed(error: entities::Error, param: &str) -> ApiError {
    match error {
        entities::Error::Invalid { reason, .. } => entities::Error::invalid(param, reason).into(),
        other => other.into(),
    }
}
