//! `callboard clock`: what a running `serve` thinks of its machine's wall clock, and the operator's word on it. Both are rows that
//! `serve` writes and reads.
use super::commands::{open, print};
use crate::error::CannotStart;
use actors::holds::ClockStatus;
use clap::Subcommand;
use entities::{Error, db::Db, meta};
use serde_json::json;
use std::{path::PathBuf, time::Duration};

#[derive(Subcommand)]
pub enum Clock {
    /// Show the running server's clock: our time, the wall clock, and whether that is in doubt
    Show,
    /// Confirm that the server's wall clock is right: dispatch, deliveries and pruning resume at once
    Accept {
        /// Do not wait for the running `serve` to see it
        #[arg(long)]
        no_wait: bool,
    },
}

/// A running `serve` looks every 3 seconds.
const PATIENCE: Duration = Duration::from_secs(15);

impl Clock {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let (_, db, clock, _) = open(config).await?;
        let status = stored(&db).await?;
        match self {
            Clock::Show => {
                if json {
                    print(&status);
                } else {
                    show(&status);
                }
            }
            Clock::Accept { no_wait } => {
                let Some(doubt) = status.doubt else {
                    if json {
                        print(&json!({ "accepted": false, "clock": status }));
                    } else {
                        println!(
                            "The clock was not in doubt when the server last looked, at {}",
                            status.now
                        );
                    }
                    db.close().await;
                    return Ok(());
                };
                // This step and no other: one that comes after it is in doubt again.
                let transaction = db.begin().await.map_err(Error::from)?;
                meta::set(&transaction, meta::CLOCK_ACCEPTED, &doubt.since.to_string()).await?;
                transaction.commit().await.map_err(Error::from)?;
                let until = clock.now().plus(PATIENCE);
                let mut after = status;
                while after.doubt == Some(doubt) && !no_wait && clock.now() < until {
                    let _busy = clock.sleep(Duration::from_millis(500)).await;
                    after = stored(&db).await?;
                }
                let heard = after.doubt != Some(doubt);
                if json {
                    print(&json!({ "accepted": true, "heard": heard, "clock": after }));
                } else if heard {
                    show(&after);
                } else {
                    println!("The server has not seen this yet; if it is running, it will within 3 seconds");
                }
            }
        }
        db.close().await;
        Ok(())
    }
}

async fn stored(db: &Db) -> Result<ClockStatus, CannotStart> {
    let status = ClockStatus::stored(&db.read).await?;
    status.ok_or_else(|| CannotStart("no `callboard serve` has noted its clock in this database yet".into()))
}

fn show(status: &ClockStatus) {
    let standing = match status.doubt {
        None => "trusted".to_owned(),
        Some(doubt) => format!(
            "in doubt since {}: it is {} s {}; trusted again at {} if it stays steady until then",
            doubt.since,
            doubt.step_ms.abs() / 1000,
            if doubt.step_ms < 0 { "behind" } else { "ahead" },
            doubt.believed_at
        ),
    };
    for (name, value) in [
        ("our time", status.now.to_string()),
        ("wall clock", status.wall_clock.to_string()),
        ("gap", format!("{:.3} s", status.gap_ms as f64 / 1000.0)),
        ("wall clock is", standing),
    ] {
        println!("{name:<16}{value}");
    }
}
