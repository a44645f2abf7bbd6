//! `callboard credits`: what the operator gives and takes, and what a workspace has.
use super::commands::{open, print};
use crate::{error::CannotStart, settings::Settings};
use clap::Subcommand;
use entities::{
    Error,
    db::Db,
    ids::GrantId,
    ledger::{self, grant},
    tenant,
    values::{Cents, Env, Text},
};
use serde_json::json;
use std::{path::PathBuf, time::Duration};

#[derive(Subcommand)]
pub enum Credits {
    /// Give credits to a workspace, or take some with a negative amount; a running `serve` books it within 30 seconds
    Grant {
        #[arg(long)]
        workspace: String,
        #[arg(long)]
        env: Env,
        /// Cents; a negative amount is taken away
        #[arg(long, allow_negative_numbers = true)]
        cents: i64,
        /// The reason; it appears in the ledger
        #[arg(long)]
        note: String,
        /// Do not wait for a running `serve` to book it
        #[arg(long)]
        no_wait: bool,
    },
    /// Show what a workspace has
    Show {
        #[arg(long)]
        workspace: String,
    },
}

/// The most of one grant.
const MAX_CENTS: i64 = 10_000_000_000;
/// A running `serve` looks every 30 seconds.
const PATIENCE: Duration = Duration::from_secs(40);

impl Credits {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let (settings, db, clock, ids) = open(config).await?;
        match self {
            Credits::Grant {
                workspace,
                env,
                cents,
                note,
                no_wait,
            } => {
                if cents == 0 || cents.abs() > MAX_CENTS {
                    return Err(
                        Error::invalid("cents", format!("must not be 0, and must not exceed {MAX_CENTS}")).into(),
                    );
                }
                let note = Text::<1, 200>::parse(&note).map_err(|why| Error::invalid("note", why))?;
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let id: GrantId = ids.next();
                let row = grant::Model {
                    id,
                    tenant_id: tenant.id,
                    env,
                    cents: Cents(cents),
                    note: note.into_string(),
                    created_at: clock.now(),
                };
                let transaction = db.begin().await.map_err(Error::from)?;
                grant::add(&transaction, row).await?;
                transaction.commit().await.map_err(Error::from)?;
                let until = clock.now().plus(PATIENCE);
                let mut waits = true;
                while waits && !no_wait && clock.now() < until {
                    let _busy = clock.sleep(Duration::from_millis(500)).await;
                    waits = grant::waits(&db.read, id).await?;
                }
                if json {
                    print(&json!({ "id": id, "cents": cents, "env": env, "booked": !waits }));
                } else if waits {
                    println!("{cents} cents are waiting for `serve`, which books them when it runs");
                } else {
                    println!("{cents} cents are booked");
                }
            }
            Credits::Show { workspace } => show(&settings, &db, &workspace, json).await?,
        }
        db.close().await;
        Ok(())
    }
}

async fn show(settings: &Settings, db: &Db, workspace: &str, json: bool) -> Result<(), CannotStart> {
    let tenant = tenant::by_slug(&db.read, workspace).await?;
    let terms = settings.credits()?;
    let mut shown = Vec::new();
    for env in [Env::Live, Env::Test] {
        let opening = |tenant, env| terms.opening(tenant, env);
        let account = ledger::load(&db.read, (tenant.id, env), opening).await?;
        if !json {
            println!(
                "{env:<4}  {} cents, of which {} are held",
                account.balance_cents.0, account.held_cents.0
            );
        }
        shown.push(json!({
            "env": env,
            "balance_cents": account.balance_cents,
            "held_cents": account.held_cents,
            "available_cents": account.available(),
            "currency": terms.currency,
            "depleted_at": account.depleted_at,
        }));
    }
    if json {
        print(&shown);
    }
    Ok(())
}
