//! Inviting somebody to a workspace, and joining it by the link.
use super::{
    caller::Member,
    device,
    error::{ApiError, ApiResult, Code},
    extract::{Id, Json, Params, SMALL},
    login::{KNOWN, STRANGERS, blocking, signed_in},
    peer::peer,
    signed_in as session, transport,
    views::List,
};
use crate::{
    access::{
        self, Author,
        invitations::{self, Account},
    },
    state::State,
};
use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Data},
};
use actors::leases::Of;
use entities::{
    Error,
    ids::InvitationId,
    invitation::{self, Model},
    tenant, user,
    values::{Moment, Role},
};
use rules::{commit::Commit, effect::Hint};
use runtime::keyring::sha256_hex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Somebody who may become a member.
#[derive(Serialize, JsonSchema)]
pub struct InvitationView {
    pub id: InvitationId,
    pub email: String,
    pub role: Role,
    pub created_at: Moment,
    pub expires_at: Moment,
    /// Once, and only where the server has no mail server: the link to hand over. Null: it was sent by e-mail.
    pub url: Option<String>,
}

fn view(row: Model, url: Option<String>) -> InvitationView {
    InvitationView {
        id: row.id,
        email: row.email,
        role: row.role,
        created_at: row.created_at,
        expires_at: row.expires_at,
        url,
    }
}

/// GET /v1/_internal/t/{slug}/invitations
pub async fn list(
    state: Data<State>,
    member: Member,
    mut params: Params,
) -> ApiResult<web::Json<List<InvitationView>>> {
    let page = params.page()?;
    params.finish()?;
    let rows = invitation::list(&state.deps.db.read, member.tenant()?.id, state.deps.clock.now(), page).await?;
    Ok(web::Json(List::of(rows, |row| row.id.0, |row| view(row, None))))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Invite {
    pub email: String,
    pub role: Role,
}

/// POST /v1/_internal/t/{slug}/invitations
pub async fn create(state: Data<State>, member: Member, Json(asked): Json<Invite, SMALL>) -> ApiResult<HttpResponse> {
    let tenant = member.tenant()?.clone();
    state.limits.member_change(tenant.id)?;
    let email = access::parse_email(&asked.email)?;
    state.limits.invitation(tenant.id, &email)?;
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let (base_url, is_sent) = (state.settings.public_url(), state.deps.post.from().is_some());
    let (role, inviter, keyring) = (asked.role, member.user.email, state.deps.keyring.clone());
    let made = state.deps.writer.run(tenant.id, move |db| {
        let (by, tenant, email) = (by.clone(), tenant.clone(), email.clone());
        let (base_url, inviter, keyring) = (base_url.clone(), inviter.clone(), keyring.clone());
        Box::pin(async move {
            let (row, token) = invitations::make(db, &by, &tenant, &email, role).await?;
            let url = format!("{base_url}/join#{token}");
            let mut commit = Commit::default();
            if is_sent {
                let mail = invitations::mail(&tenant.name, &inviter, &url);
                let mail = mail.row(by.ids().next(), tenant.id, email, by.now());
                commit.changes.mails.push(invitations::sealed(&keyring, mail));
            }
            Ok(((row, url), commit))
        })
    });
    let (row, url) = made.await.map_err(|error| match error {
        Error::AlreadyExists { .. } => ApiError::Frame(
            Code::AlreadyExists,
            "is a member already; change the role with PATCH".into(),
            Some("email".into()),
        ),
        other => other.into(),
    })?;
    state.deps.router.perform(vec![Hint::MailQueued.into()]);
    Ok(HttpResponse::Created().json(view(row, (!is_sent).then_some(url))))
}

/// DELETE /v1/_internal/t/{slug}/invitations/{id}
pub async fn withdraw(state: Data<State>, member: Member, Id(id): Id<InvitationId>) -> ApiResult<HttpResponse> {
    let tenant = member.tenant()?.clone();
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let gone = state.deps.writer.run(tenant.id, move |db| {
        let (by, tenant) = (by.clone(), tenant.clone());
        Box::pin(async move {
            invitations::withdraw(db, &by, &tenant, id).await?;
            Ok(((), Commit::default()))
        })
    });
    gone.await?;
    Ok(HttpResponse::NoContent().finish())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Look {
    /// What stands behind the `#` of the link.
    pub token: String,
}

/// What a link leads to.
#[derive(Serialize, JsonSchema)]
pub struct InvitedView {
    /// The workspace's name.
    pub workspace: String,
    pub slug: String,
    pub email: String,
    pub role: Role,
    /// There is an account with this address on this server: its password is asked for, else a new one.
    pub has_account: bool,
}

fn over() -> ApiError {
    ApiError::not_found(
        "this invitation is over: it was accepted, withdrawn or replaced, or is older than seven days; ask for a new one",
    )
}

async fn behind(state: &State, request: &HttpRequest, token: &str) -> ApiResult<(Model, Option<user::Model>)> {
    let db = &state.deps.db.read;
    let hash = sha256_hex(token.as_bytes());
    let found = invitation::by_token(db, &hash, state.deps.clock.times().later()).await?;
    let Some(row) = found else {
        // Guessing links is guessing passwords.
        state.limits.bad_link(peer(state, request))?;
        return Err(over());
    };
    let user = user::by_email(db, &row.email).await?;
    Ok((row, user))
}

/// POST /v1/_internal/invitations/look: not GET, so that the token is in no log.
pub async fn look(
    state: Data<State>,
    request: HttpRequest,
    Json(asked): Json<Look, SMALL>,
) -> ApiResult<web::Json<InvitedView>> {
    session::same_origin(&request)?;
    let (row, user) = behind(&state, &request, &asked.token).await?;
    let tenant = tenant::load(&state.deps.db.read, row.tenant_id).await?;
    Ok(web::Json(InvitedView {
        workspace: tenant.name,
        slug: tenant.slug,
        email: row.email,
        role: row.role,
        has_account: user.is_some(),
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    pub token: String,
    /// That of the account with the invited address; if there is none, the one that it is to have: 12 to 200 characters.
    pub password: String,
}

/// POST /v1/_internal/invitations/accept: signs in.
pub async fn accept(
    state: Data<State>,
    request: HttpRequest,
    Json(asked): Json<Accept, SMALL>,
) -> ApiResult<HttpResponse> {
    session::same_origin(&request)?;
    transport::keeps_cookies(&state, &request)?;
    let (row, user) = behind(&state, &request, &asked.token).await?;
    let password = Zeroizing::new(asked.password);
    let account = match user {
        Some(user) => {
            // As a sign-in, for it is one.
            let (_, is_known) = device::admit(&state, &request, &row.email).await?;
            let stored = user.password_hash.clone();
            let slots = if is_known { &KNOWN } else { &STRANGERS };
            let matches = blocking(slots, move || {
                Ok(access::password_matches(&password, Some(stored.as_str())))
            });
            if !matches.await? {
                return Err(ApiError::wrong_password("password"));
            }
            Account::Known(user)
        }
        None => {
            device::admit_new(&state, &request, &row.email)?;
            access::check_password(&password)?;
            let password_hash = blocking(&STRANGERS, move || access::hash_password(&password)).await?;
            Account::New { password_hash }
        }
    };
    let (hash, deps) = (sha256_hex(asked.token.as_bytes()), state.deps.clone());
    let now = deps.clock.times().later();
    let joined = state.deps.writer.run(Of::Installation, move |db| {
        let (hash, account, deps) = (hash.clone(), account.clone(), deps.clone());
        Box::pin(async move {
            let author = |user: &user::Model| Author::user(&deps, user, "");
            let user = invitations::accept(db, author, &hash, account, now).await?;
            // Nothing of it stands if it was decided upon what holds no longer.
            let user = user.ok_or(Error::NotFound("invitation"))?;
            Ok((user, Commit::default()))
        })
    });
    let user = joined.await.map_err(|error| match error {
        Error::NotFound(_) => over(),
        other => other.into(),
    })?;
    signed_in(&state, &request, &user, HttpResponse::Ok()).await
}
