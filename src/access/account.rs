//! A user's own account: another password, and the end of dashboard sessions.
use super::Author;
use entities::{Error, Result, audit_log::Action, connection::Connection, login, user};
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

/// Ends every session of the account, this one too.
pub async fn sign_out_everywhere(db: &Connection, by: &Author, account: &user::Model) -> Result<u64> {
    let ended = login::remove_of(db, account.id, None).await?;
    let details = [("sessions_ended", json!(ended))];
    by.note_of_account(db, account, Action::SignedOutEverywhere, &details)
        .await?;
    Ok(ended)
}
