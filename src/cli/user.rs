//! `callboard user`: accounts of people. Works beside a running `serve`, which looks at the same rows at every request.
use super::commands::{open, password_from_stdin, print};
use crate::{
    access::{self, Author, account},
    error::CannotStart,
};
use clap::Subcommand;
use entities::{Error, audit_log::Action, db::Db, membership, page, user};
use serde_json::json;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum User {
    /// Set a new password for somebody who lost theirs or must no longer sign in with it; all their dashboard sessions end
    SetPassword {
        #[arg(long)]
        email: String,
        /// Read the new password from standard input
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// Make a link by which somebody who lost the password chooses a new one; it is valid for an hour
    ResetPassword {
        #[arg(long)]
        email: String,
    },
    /// List the users with their workspaces
    List,
}

impl User {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let (settings, db, clock, ids) = open(config).await?;
        match self {
            User::ResetPassword { email } => {
                let found = by_email(&db, &email).await?;
                let by = Author::operator(ids, clock.now());
                let transaction = db.begin().await.map_err(Error::from)?;
                let token = account::only_reset(&transaction, &found, clock.now()).await?;
                by.note_of_account(&transaction, &found, Action::PasswordResetMade, &[])
                    .await?;
                transaction.commit().await.map_err(Error::from)?;
                let url = format!("{}/reset#{token}", settings.public_url());
                if json {
                    print(&json!({ "email": found.email, "url": url }));
                } else {
                    println!("{url}");
                }
            }
            User::SetPassword {
                email,
                password_stdin: _,
            } => {
                let found = by_email(&db, &email).await?;
                let password = password_from_stdin()?;
                access::check_password(&password)?;
                let hash = access::hash_password(&password)?;
                let by = Author::operator(ids, clock.now());
                let transaction = db.begin().await.map_err(Error::from)?;
                let ended = account::set_password(&transaction, &by, &found, &hash, None).await?;
                transaction.commit().await.map_err(Error::from)?;
                if json {
                    print(&json!({ "email": found.email, "sessions_ended": ended }));
                } else {
                    println!(
                        "{} has a new password; dashboard sessions that ended: {ended}",
                        found.email
                    );
                }
            }
            User::List => list(&db, json).await?,
        }
        db.close().await;
        Ok(())
    }
}

async fn by_email(db: &Db, email: &str) -> Result<user::Model, CannotStart> {
    let email = access::parse_email(email)?;
    let no_such = || CannotStart(format!("no user has the address {email}; see `callboard user list`"));
    user::by_email(&db.read, &email).await?.ok_or_else(no_such)
}

async fn list(db: &Db, json: bool) -> Result<(), CannotStart> {
    let mut shown = Vec::new();
    let key = |row: &user::Model| row.id;
    page::each(&db.read, user::all_after, key, async |users| {
        for user in users {
            let workspaces = membership::of_user(&db.read, user.id).await?;
            if json {
                let workspaces = workspaces
                    .iter()
                    .map(|(tenant, role)| json!({ "workspace": tenant.slug, "role": role }));
                let workspaces: Vec<_> = workspaces.collect();
                shown.push(json!({ "id": user.id, "email": user.email, "workspaces": workspaces }));
            } else {
                let workspaces = workspaces
                    .iter()
                    .map(|(tenant, role)| format!("{} ({})", tenant.slug, role.as_str()));
                println!("{:<40}  {}", user.email, workspaces.collect::<Vec<_>>().join(", "));
            }
        }
        Ok::<(), CannotStart>(())
    })
    .await?;
    if json {
        print(&shown);
    }
    Ok(())
}
