//! `callboard dispatch`: all that leaves for people, of all workspaces. Works beside a running `serve`, which looks at the same row:
//! inside the transaction of all that leaves, and every few seconds.
use super::commands::{open, print};
use crate::error::CannotStart;
use clap::Subcommand;
use entities::{Error, dispatch_pause, restored};
use serde_json::json;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Dispatch {
    /// Let no further call or message leave; live calls continue, and incoming calls are answered
    Pause,
    /// End the pause, including one that `serve --paused` started
    Resume {
        /// After `callboard restore --as-of`: everybody who has opted out or taken a consent back since the backup is entered
        #[arg(long)]
        opt_outs_entered: bool,
    },
    /// Show whether dispatch is paused
    Show,
}

impl Dispatch {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let (_, db, clock, _) = open(config).await?;
        let (paused_since, words) = match self {
            Dispatch::Pause => {
                let transaction = db.begin().await.map_err(Error::from)?;
                let since = dispatch_pause::begin(&transaction, clock.now()).await?;
                transaction.commit().await.map_err(Error::from)?;
                (
                    Some(since),
                    format!("Dispatch is paused since {since}, until `callboard dispatch resume`"),
                )
            }
            Dispatch::Resume { opt_outs_entered } => {
                let left = restored::marks(&db.read).await?.len();
                if left > 0 {
                    return Err(CannotStart(format!(
                        "the database came back from a backup, and in {left} workspaces it is not yet put away what may have run since; start \
                         `callboard serve`, which does so, and resume then"
                    )));
                }
                let unknown_since = restored::opt_outs_unknown_since(&db.read).await?;
                if let Some(since) = unknown_since.filter(|_| !opt_outs_entered) {
                    return Err(CannotStart(format!(
                        "the database came back from a backup of {since}, and does not know who has opted out or taken a consent back since: they would \
                         be called. Put them on the do-not-call list, revoke those consents, and say so: `callboard dispatch resume --opt-outs-entered`"
                    )));
                }
                let transaction = db.begin().await.map_err(Error::from)?;
                let was_paused = dispatch_pause::lift(&transaction).await?;
                restored::opt_outs_are_entered(&transaction).await?;
                transaction.commit().await.map_err(Error::from)?;
                let words = if was_paused {
                    "Dispatch resumes within a few seconds"
                } else {
                    "Dispatch was not paused"
                };
                (None, words.to_owned())
            }
            Dispatch::Show => match dispatch_pause::since(&db.read).await? {
                Some(since) => (Some(since), format!("Dispatch is paused since {since}")),
                None => (None, "Dispatch is not paused".to_owned()),
            },
        };
        if json {
            print(&json!({ "paused": paused_since.is_some(), "paused_since": paused_since }));
        } else {
            println!("{words}");
        }
        db.close().await;
        Ok(())
    }
}
