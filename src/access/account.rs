//! A user's own account: another password, and the end of dashboard sessions.
use super::Author;
use entities::{Error, Result, audit_log::Action, connection::Connection, login, password_reset, user, values::Moment};
use runtime::keyring::sha256_hex;
use serde_json::json;

/// Sets another password, for the user who knew the old one or for the operator, and ends the account's sessions, all but the
/// one that is kept. Answers how many it ended. The user's row comes first: a sign-in with the old password that is under way
/// holds it ([`super::sign_in`]), so that its session is found here, or is not begun.
pub async fn set_password(
    db: &Connection,
    by: &Author,
    account: &user::Model,
    password_hash: &str,
    keep: Option<&str>,
) -> Result<u64> {
    user::set_password(db, account.id, password_hash).await?;
    password_reset::void(db, account.id).await?;
    let ended = login::remove_of(db, account.id, keep).await?;
    let action = match keep {
        Some(_) => Action::PasswordChanged,
        None => Action::PasswordSet,
    };
    by.note_of_account(db, account, action, &[("sessions_ended", json!(ended))])
        .await?;
    Ok(ended)
}

/// A user who is signed in, and knows the password, chooses another; this session goes on.
pub async fn change_password(
    db: &Connection,
    by: &Author,
    account: &user::Model,
    password_hash: &str,
    login_hash: &str,
) -> Result<()> {
    // Between the check and here somebody else may have changed it.
    if !user::still_has(db, account.id, &account.password_hash).await? {
        return Err(Error::Stale);
    }
    set_password(db, by, account, password_hash, Some(login_hash)).await?;
    login::authenticate(db, login_hash, by.now()).await?;
    Ok(())
}

/// A link for a new password lives so long.
pub use actors::housekeeping::PASSWORD_RESET;
/// Links that are made for one user while older ones live: whoever asks for more gets none, and fills nobody's mailbox.
const MOST_RESETS: u64 = 3;

/// Makes a link for a new password; answers its token. None: there are enough.
pub async fn new_reset(db: &Connection, account: &user::Model, now: Moment) -> Result<Option<String>> {
    let since = now.minus(PASSWORD_RESET);
    if password_reset::count_since(db, account.id, since).await? >= MOST_RESETS {
        return Ok(None);
    }
    add_reset(db, account, now).await.map(Some)
}

/// The same for the operator: older links are void.
pub async fn only_reset(db: &Connection, account: &user::Model, now: Moment) -> Result<String> {
    password_reset::void(db, account.id).await?;
    add_reset(db, account, now).await
}

async fn add_reset(db: &Connection, account: &user::Model, now: Moment) -> Result<String> {
    let token = super::random_token();
    let row = password_reset::Model {
        token_hash: sha256_hex(token.as_bytes()),
        user_id: account.id,
        created_at: now,
    };
    password_reset::add(db, row).await?;
    Ok(token)
}

/// Spends a link: the account gets that password, and all of its sessions end. None: the link opens nothing.
pub async fn reset(
    db: &Connection,
    by: impl Fn(&user::Model) -> Author,
    token_hash: &str,
    password_hash: &str,
    now: Moment,
) -> Result<Option<user::Model>> {
    let found = password_reset::user_of(db, token_hash, now.minus(PASSWORD_RESET)).await?;
    let Some(id) = found else { return Ok(None) };
    if !password_reset::take(db, token_hash).await? {
        return Ok(None);
    }
    let account = user::load(db, id).await?;
    user::set_password(db, id, password_hash).await?;
    password_reset::void(db, id).await?;
    let ended = login::remove_of(db, id, None).await?;
    let details = [("sessions_ended", json!(ended))];
    by(&account)
        .note_of_account(db, &account, Action::PasswordReset, &details)
        .await?;
    Ok(Some(account))
}

/// Ends one session of the account.
pub async fn end_session(db: &Connection, by: &Author, account: &user::Model, login_hash: &str) -> Result<()> {
    login::remove(db, login_hash).await?;
    by.note_of_account(db, account, Action::SessionEnded, &[]).await
}

/// Ends every session of the account, this one too.
pub async fn sign_out_everywhere(db: &Connection, by: &Author, account: &user::Model) -> Result<u64> {
    let ended = login::remove_of(db, account.id, None).await?;
    let details = [("sessions_ended", json!(ended))];
    by.note_of_account(db, account, Action::SignedOutEverywhere, &details)
        .await?;
    Ok(ended)
}
