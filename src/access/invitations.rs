//! Links by which somebody becomes a member. Whoever makes one does not know the password that its reader chooses.
use super::{Author, random_token};
use entities::{
    Error, Result,
    audit_log::Action,
    connection::Connection,
    ids::InvitationId,
    invitation::{self, Model},
    mail, membership, tenant, user,
    values::{Moment, Role},
};
use rules::mail::Mail;
use runtime::keyring::{Keyring, purpose, sha256_hex};
use serde_json::json;
use std::time::Duration;

/// A link lives so long.
const LIFE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Links of a workspace that have not been followed.
const MOST: u64 = 100;

/// Makes a link for an address; answers its token. `AlreadyExists`: is a member already.
pub async fn make(
    db: &Connection,
    by: &Author,
    tenant: &tenant::Model,
    email: &str,
    role: Role,
) -> Result<(Model, String)> {
    membership::lock(db, tenant.id).await?;
    by.still(db, tenant.id, Role::Owner).await?;
    if let Some(user) = user::by_email(db, email).await?
        && membership::role_of(db, tenant.id, user.id).await?.is_some()
    {
        return Err(Error::AlreadyExists { field: "email" });
    }
    if invitation::count_others(db, tenant.id, email, by.now()).await? >= MOST {
        let why = format!("{MOST} people are invited already: withdraw an invitation, or wait until one is accepted");
        return Err(Error::PlanLimit(why));
    }
    let token = random_token();
    let row = Model {
        id: by.ids().next(),
        tenant_id: tenant.id,
        email: email.to_owned(),
        role,
        invited_by: by.user_id().ok_or(Error::NotFound("user"))?,
        token_hash: sha256_hex(token.as_bytes()),
        created_at: by.now(),
        expires_at: by.now().plus(LIFE),
    };
    invitation::add(db, row.clone()).await?;
    by.note(db, tenant.id, Action::Invited, email, &[("role", json!(role))])
        .await?;
    Ok((row, token))
}

pub async fn withdraw(db: &Connection, by: &Author, tenant: &tenant::Model, id: InvitationId) -> Result<()> {
    by.still(db, tenant.id, Role::Owner).await?;
    let row = invitation::load(db, tenant.id, id).await?;
    invitation::take(db, id).await?;
    by.note(db, tenant.id, Action::InvitationWithdrawn, &row.email, &[])
        .await
}

/// What somebody with a link comes with: a new account, or one that there is, whose password was found right.
#[derive(Clone)]
pub enum Account {
    New { password_hash: String },
    Known(user::Model),
}

/// Spends a link: its reader is a member. None: it opens nothing, or what was found out about the account holds no longer.
pub async fn accept(
    db: &Connection,
    author: impl Fn(&user::Model) -> Author,
    token_hash: &str,
    account: Account,
    now: Moment,
) -> Result<Option<user::Model>> {
    let Some(row) = invitation::by_token(db, token_hash, now).await? else {
        return Ok(None);
    };
    membership::lock(db, row.tenant_id).await?;
    if !invitation::take(db, row.id).await? {
        return Ok(None);
    }
    let user = match account {
        Account::Known(user) if user::still_has(db, user.id, &user.password_hash).await? => user,
        Account::Known(_) => return Ok(None),
        Account::New { password_hash } => {
            let user = user::Model {
                id: author_id(&row),
                email: row.email.clone(),
                password_hash,
                created_at: now,
            };
            user::add(db, &user).await?;
            user
        }
    };
    if user.email != row.email {
        return Ok(None);
    }
    if membership::role_of(db, row.tenant_id, user.id).await?.is_none() {
        let member = membership::Model {
            user_id: user.id,
            tenant_id: row.tenant_id,
            role: row.role,
        };
        membership::add(db, member).await?;
        let details = [("role", json!(row.role)), ("invited", json!(true))];
        author(&user)
            .note(db, row.tenant_id, Action::MemberAdded, &user.email, &details)
            .await?;
    }
    Ok(Some(user))
}

/// An invitation makes one account at most, so its id serves for that.
fn author_id(row: &Model) -> entities::ids::UserId {
    row.id.0.into()
}

/// A mail with a link that lets its reader in, as it waits to be sent.
pub fn sealed(keyring: &Keyring, mail: mail::Model) -> mail::Model {
    mail::Model {
        body: keyring.seal(purpose::MAIL_BODY, &mail.body),
        ..mail
    }
}

/// What is written to somebody who is invited. A workspace's name is a line at most, whatever is in it.
pub fn mail(workspace: &str, by: &str, url: &str) -> Mail {
    let workspace = workspace.replace(char::is_control, " ");
    Mail {
        kind: "account.invitation",
        subject: format!("You are invited to {workspace} on Callboard"),
        body: format!(
            "{by} invites you to the workspace {workspace} on Callboard.\n\nOpen this link to join; it is valid for seven days:\n\n{url}\n\n\
             If you do not know what this is about, you need not do anything.\n"
        ),
    }
}

/// What is written to somebody who has lost the password.
pub fn reset_mail(url: &str) -> Mail {
    Mail {
        kind: "account.password_reset",
        subject: "A new password for Callboard".into(),
        body: format!(
            "Somebody, most likely you, has asked for a new password for your account on Callboard.\n\nOpen this link to choose one; it \
             is valid for an hour:\n\n{url}\n\nIf it was not you, you need not do anything: your password stays as it is.\n"
        ),
    }
}
