//! `callboard user`: accounts of people. Works beside a running `serve`, which looks at the same rows at every request.
use super::commands::{open, password_from_stdin, print};
use crate::{
    access::{self, Author, account},
    error::CannotStart,
};
use clap::Subcommand;
use entities::{Error, db::Db, membership, page, user};
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
    /// List the users with their workspaces
    List,
}

impl User {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let (_, db, clock, ids) = open(config).await?;
        match self {
            User::SetPassword {
                email,
                password_stdin: _,
            } => {
                let email = access::parse_email(&email)?;
                let no_such = || CannotStart(format!("no user has the address {email}; see `callboard user list`"));
                let found = user::by_email(&db.read, &email).await?.ok_or_else(no_such)?;
                let password = password_from_stdin()?;
                access::check_password(&password)?;
                let hash = access::hash_password(&password)?;
                let by = Author::operator(ids, clock.now());
                let transaction = db.begin().await.map_err(Error::from)?;
                let ended = account::set_password(&transaction, &by, &found, &hash, None).await?;
                transaction.commit().await.map_err(Error::from)?;
                if json {
                    print(&json!({ "email": email, "sessions_ended": ended }));
                } else {
                    println!("{email} has a new password; dashboard sessions that ended: {ended}");
                }
            }
            User::List => list(&db, json).await?,
        }
        db.close().await;
        Ok(())
    }
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
