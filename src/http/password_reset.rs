//! A lost password: a link by e-mail, and the new one.
use super::{
    device,
    error::{ApiError, ApiResult},
    extract::{Json, SMALL},
    login::{STRANGERS, blocking},
    peer::peer,
    signed_in,
};
use crate::{
    access::{self, Author, account, invitations},
    state::State,
};
use actix_web::{HttpRequest, HttpResponse, web::Data};
use actors::leases::Of;
use entities::{Error, membership, password_reset, user};
use rules::{commit::Commit, effect::Hint};
use runtime::keyring::sha256_hex;
use schemars::JsonSchema;
use serde::Deserialize;
use zeroize::Zeroizing;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forgotten {
    pub email: String,
}

/// POST /v1/_internal/password-reset: the same answer, as soon, whether or not there is such an account.
pub async fn ask(
    state: Data<State>,
    request: HttpRequest,
    Json(asked): Json<Forgotten, SMALL>,
) -> ApiResult<HttpResponse> {
    signed_in::same_origin(&request)?;
    let email = access::parse_email(&asked.email)?;
    if state.deps.post.from().is_none() {
        return Err(Error::InvalidState {
            kind: "server",
            state: "without a mail server",
            command: "send a link",
            hint: "ask whoever runs it for one (`callboard user reset-password`)",
        }
        .into());
    }
    device::admit_new(&state, &request, &email)?;
    let state = state.into_inner();
    let deps = state.deps.clone();
    deps.runtime.spawn(async move {
        if let Err(error) = send(&state, &email).await {
            tracing::warn!(%error, "a link for a new password was not sent");
        }
    });
    Ok(HttpResponse::Accepted().finish())
}

async fn send(state: &State, email: &str) -> entities::Result<()> {
    let deps = &state.deps;
    let Some(user) = user::by_email(&deps.db.read, email).await? else {
        return Ok(());
    };
    // Without a workspace there is nothing to come in to.
    let memberships = membership::of_user(&deps.db.read, user.id).await?;
    let Some(tenant) = memberships.first().map(|(tenant, _)| tenant.id) else {
        return Ok(());
    };
    let (base_url, ids, now) = (state.settings.public_url(), deps.ids.clone(), deps.clock.now());
    let keyring = deps.keyring.clone();
    let made = deps.writer.run(Of::Installation, move |db| {
        let (user, base_url, ids, keyring) = (user.clone(), base_url.clone(), ids.clone(), keyring.clone());
        Box::pin(async move {
            let mut commit = Commit::default();
            if let Some(token) = account::new_reset(db, &user, now).await? {
                let mail = invitations::reset_mail(&format!("{base_url}/reset#{token}"));
                let mail = mail.row(ids.next(), tenant, user.email, now);
                commit.changes.mails.push(invitations::sealed(&keyring, mail));
            }
            Ok(((), commit))
        })
    });
    made.await?;
    deps.router.perform(vec![Hint::MailQueued.into()]);
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// What stands behind the `#` of the link.
    pub token: String,
    /// 12 to 200 characters.
    pub password: String,
}

/// POST /v1/_internal/password-reset/confirm: all of the user's sessions end.
pub async fn confirm(
    state: Data<State>,
    request: HttpRequest,
    Json(asked): Json<NewPassword, SMALL>,
) -> ApiResult<HttpResponse> {
    signed_in::same_origin(&request)?;
    let password = Zeroizing::new(asked.password);
    access::check_password(&password)?;
    let spent = || ApiError::not_found("this link is spent, or older than an hour; ask for a new one");
    let (token_hash, now) = (sha256_hex(asked.token.as_bytes()), state.deps.clock.times().later());
    // Whoever has no link costs nobody the work of a password.
    let since = now.minus(account::PASSWORD_RESET);
    let known = password_reset::user_of(&state.deps.db.read, &token_hash, since).await?;
    if known.is_none() {
        // Guessing links is guessing passwords.
        state.limits.bad_link(peer(&state, &request))?;
        return Err(spent());
    }
    let password_hash = blocking(&STRANGERS, move || access::hash_password(&password)).await?;
    let deps = state.deps.clone();
    let done = state.deps.writer.run(Of::Installation, move |db| {
        let (token_hash, password_hash, deps) = (token_hash.clone(), password_hash.clone(), deps.clone());
        Box::pin(async move {
            let by = |user: &user::Model| Author::user(&deps, user, "");
            let user = account::reset(db, by, &token_hash, &password_hash, now).await?;
            Ok((user.is_some(), Commit::default()))
        })
    });
    if !done.await? {
        return Err(spent());
    }
    Ok(HttpResponse::NoContent().finish())
}
