//! Who may come in: passwords, dashboard sessions, API keys, and how workspaces and users are made.
pub mod account;
mod audit;
pub mod invitations;
mod keys;
pub mod members;
mod new_workspace;
pub mod workspace;

pub use audit::Author;
pub use keys::{
    CallLimits, MAX_KEYS, NewKey, check_room_for_key, is_valid, looks_like_a_key, new_key, note_key, revoke_key,
};
pub use new_workspace::{DEFAULT_CONCURRENCY, NewWorkspace, check_slug, zone_of};

use crate::state::State;
use actors::{
    deps::Deps,
    housekeeping::{LOGIN_ABSOLUTE, LOGIN_IDLE},
    leases::Of,
};
use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use entities::{Error, Result, db::Db, ids::TenantId, login, membership, meta, user, values::Moment};
use rules::commit::Commit;
use runtime::keyring::sha256_hex;
use zeroize::Zeroizing;

/// 256 random bits, as text.
pub fn random_token() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

pub type Password = Zeroizing<String>;

pub fn check_password(password: &str) -> Result<()> {
    match password.chars().count() {
        0..12 => Err(Error::invalid("password", "must have at least 12 characters")),
        12..=200 => Ok(()),
        _ => Err(Error::invalid("password", "must have at most 200 characters")),
    }
}

/// Argon2id. Takes tens of milliseconds: not on an async thread.
pub fn hash_password(password: &str) -> Result<String> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string())
        .map_err(|error| Error::Internal(format!("hashing a password failed: {error}")))
}

/// Takes as long for an unknown user (`None`) as for a known one.
pub fn password_matches(password: &str, stored: Option<&str>) -> bool {
    // The hash of a random password nobody has.
    const NOBODY: &str =
        "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$1nLYAqWYbS0yvn6QPQTkX6yxZ4l1lYV1kqXs0y0o4hY";
    let Ok(hash) = PasswordHash::new(stored.unwrap_or(NOBODY)) else {
        return false;
    };
    Argon2::default().verify_password(password.as_bytes(), &hash).is_ok() && stored.is_some()
}

pub fn parse_email(text: &str) -> Result<String> {
    let email = text.trim().to_lowercase();
    let well_formed = email.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && domain.contains('.')
            && !domain.starts_with('.')
            && !domain.ends_with('.')
            && !domain.contains('@')
    });
    if well_formed && email.len() <= 254 && !email.contains(char::is_whitespace) {
        Ok(email)
    } else {
        Err(Error::invalid(
            "email",
            "is not an e-mail address; write name@example.com",
        ))
    }
}

/// A password that was given within this time opens what asks for it again. Source: PROMISES, "Hostile hands" 7.
pub const FRESH: std::time::Duration = std::time::Duration::from_secs(10 * 60);

/// Was the session's password given a moment ago? Not if that lies ahead: then a clock was wrong.
pub fn is_fresh(login: &login::Model, now: Moment) -> bool {
    login.authenticated_at <= now && now.since(login.authenticated_at) < FRESH
}

/// Signs a user in whose password was found right; answers the cookie's token, of which only the hash is kept. `None`: the
/// password was changed since it was looked at.
pub async fn sign_in(deps: &Deps, user: &user::Model, user_agent: Option<String>) -> Result<Option<String>> {
    let token = random_token();
    let now = deps.clock.now();
    let row = login::Model {
        token_hash: sha256_hex(token.as_bytes()),
        user_id: user.id,
        created_at: now,
        last_seen_at: now,
        authenticated_at: now,
        user_agent,
    };
    let password_hash = user.password_hash.clone();
    let begun = deps.writer.run(Of::Anybody, move |db| {
        let (row, password_hash) = (row.clone(), password_hash.clone());
        Box::pin(async move {
            // Else a password that was just replaced would leave a session behind.
            let still = user::still_has(db, row.user_id, &password_hash).await?;
            if still {
                entities::bulk::save(db, &[row], entities::bulk::OnConflict::Fail).await?;
            }
            Ok((still, Commit::default()))
        })
    });
    Ok(begun.await?.then_some(token))
}

/// The user behind a cookie, unless the session has ended by time.
pub async fn signed_in(state: &State, token: &str) -> Result<Option<(user::Model, login::Model)>> {
    let hash = sha256_hex(token.as_bytes());
    let Some((login, user)) = login::find(&state.deps.db.read, &hash).await? else {
        return Ok(None);
    };
    if has_timed_out(state, &login) {
        return Ok(None);
    }
    let now = state.deps.clock.now();
    if now.since(login.last_seen_at) >= std::time::Duration::from_secs(60) {
        let seen = hash.clone();
        state
            .deps
            .writer
            .run(Of::Anybody, move |db| {
                let seen = seen.clone();
                Box::pin(async move {
                    login::touch(db, &seen, now).await?;
                    Ok(((), Commit::default()))
                })
            })
            .await?;
    }
    Ok(Some((user, login)))
}

/// Has a session of the dashboard not ended, and is its user still a member of the workspace?
pub async fn is_still_in(state: &State, tenant: TenantId, login_hash: &str) -> Result<bool> {
    let db = &state.deps.db.read;
    let Some((login, user)) = login::find(db, login_hash).await? else {
        return Ok(false);
    };
    Ok(!has_timed_out(state, &login) && membership::role_of(db, tenant, user.id).await?.is_some())
}

fn has_timed_out(state: &State, login: &login::Model) -> bool {
    let now = state.deps.clock.times().later();
    now.since(login.created_at) >= LOGIN_ABSOLUTE || now.since(login.last_seen_at) >= LOGIN_IDLE
}

pub async fn sign_out(deps: &Deps, login_hash: String) -> Result<()> {
    deps.writer
        .run(Of::Anybody, move |db| {
            let hash = login_hash.clone();
            Box::pin(async move {
                login::remove(db, &hash).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}

/// While there is no user: a new one-time token for the set-up link. Older ones are void.
pub async fn set_up_token(db: &Db) -> Result<Option<String>> {
    if user::exist(&db.read).await? {
        return Ok(None);
    }
    let token = random_token();
    let transaction = db.begin().await?;
    meta::set(&transaction, meta::SETUP_TOKEN, &sha256_hex(token.as_bytes())).await?;
    transaction.commit().await?;
    Ok(Some(token))
}
