//! `callboard audit dump`: what is stored, as facts that a program can check without knowing a table.
//!
//! Everything is read a page at a time, each page for itself: a running `serve` waits for none of it, however slowly the
//! lines are taken. What a busy one commits meanwhile may be in one kind and not yet in another.
mod law;
mod lines;
mod log;
mod messages;
mod postings;
mod records;
mod rooms;
mod topups;

use crate::{error::CannotStart, settings::Settings};
use clap::Subcommand;
use entities::{
    Error, api_key,
    campaign::{self},
    campaign_move,
    connection::Connection,
    consent, contact,
    db::Location,
    delivery, delivery_attempt, dial, dnc, evaluation, event,
    ids::TenantId,
    page, recording, retention, room, session, tally, tenant, topup,
    values::Zone,
    webhook_endpoint,
};
use lines::*;
use rooms::room_line;
use rules::hours::Rules;
use sea_orm::{ConnectOptions, Database};
use serde_json::Value;
use std::{
    collections::HashMap,
    io::{self, BufWriter, Write},
    path::PathBuf,
};
use topups::topup_line;

#[derive(Subcommand)]
pub enum Audit {
    /// Print what is stored as JSON lines, one fact each
    ///
    /// Works alongside a running `serve`, and on what a stopped or killed one left behind. Nothing is changed; phone numbers
    /// are shown in full.
    Dump {
        /// Only this workspace's facts
        #[arg(long, value_name = "SLUG")]
        tenant: Option<String>,
    },
    /// Print who changed whose access as JSON lines, oldest first: members, roles, passwords, keys, settings
    Log {
        /// Only what was done in this workspace
        #[arg(long, value_name = "SLUG")]
        tenant: Option<String>,
    },
    /// Print what is on record about one number or address as JSON lines, as `compliance verify` and `prove` read them
    ///
    /// All attempts to reach it with every rule and its verdict, what came of them, and wishes not to be reached. Needs the secret
    /// key: numbers are found by a keyed hash, also once they were erased.
    Law(law::Asked),
}

impl Audit {
    pub async fn run(self, config: Option<PathBuf>) -> Result<(), CannotStart> {
        let (Audit::Dump { tenant } | Audit::Log { tenant } | Audit::Law(law::Asked { tenant, .. })) = &self;
        let settings = Settings::load(config, &[])?;
        let db = open(&settings.location()?).await?;
        let only = match tenant {
            Some(slug) => Some(tenant::by_slug(&db, slug).await?.id),
            None => None,
        };
        let out = BufWriter::new(io::stdout().lock());
        match self {
            Audit::Dump { .. } => write(&db, only, out).await?,
            Audit::Log { .. } => log::write(&db, only, out).await?,
            Audit::Law(asked) => law::write(&db, &settings.keyring()?, only, &asked, out).await?,
        }
        db.close().await;
        Ok(())
    }
}

/// Writes what is stored, of one tenant or of all, as it is at one moment: what a running service writes meanwhile would be found
/// in one table and missing in another.
pub async fn write(db: &Connection, only: Option<TenantId>, out: impl Write) -> Result<(), CannotStart> {
    let moment = db.snapshot().await.map_err(Error::from)?;
    let mut dump = Dump {
        db: &moment,
        only,
        zones: HashMap::new(),
        out,
    };
    dump.all().await
}

/// A connection that makes no file, migrates nothing, and leaves the log of a killed server to its successor.
async fn open(location: &Location) -> Result<Connection, CannotStart> {
    let mut options = ConnectOptions::new(match location {
        Location::Sqlite(path) => format!("sqlite://{}?mode=ro", path.display()),
        Location::Postgres(url) => url.clone(),
    });
    options.max_connections(1).sqlx_logging(false);
    let db = Database::connect(options)
        .await
        .map_err(|error| CannotStart::database("open", location, &error))?;
    let pending = migration::pending(&db).await;
    let pending = pending.map_err(|error| CannotStart::database("read", location, &error))?;
    if pending.is_empty() {
        return Ok(db.into());
    }
    Err(CannotStart(format!(
        "database_url: the schema of {} is not up to date; run `callboard migrate` first",
        location.shown()
    )))
}

/// Deliveries whose attempts are read at once.
const DELIVERIES: usize = 50;

struct Dump<'a, W> {
    db: &'a Connection,
    only: Option<TenantId>,
    /// Of the tenants met so far.
    zones: HashMap<TenantId, Zone>,
    out: W,
}

impl<W: Write> Dump<'_, W> {
    /// One kind after another, each in the order of its key.
    async fn all(&mut self) -> Result<(), CannotStart> {
        self.table(event::all_after, |row| (row.tenant_id, row.seq), event_line)
            .await?;
        let place = |row: &delivery::Model| (row.tenant_id, (row.endpoint_id, row.id));
        self.table(delivery::all_after, place, delivery_line).await?;
        self.attempts().await?;
        self.table(
            webhook_endpoint::all_after,
            |row| (row.tenant_id, row.id),
            endpoint_line,
        )
        .await?;
        self.campaigns().await?;
        self.contacts().await?;
        self.sessions().await?;
        self.table(room::all_after, |row| (row.tenant_id, row.id), room_line)
            .await?;
        self.table(recording::all_after, |row| (row.tenant_id, row.id), recording_line)
            .await?;
        let place = |row: &evaluation::Model| (row.tenant_id, row.session_id);
        self.table(evaluation::all_after, place, evaluation_line).await?;
        self.table(dnc::all_after, |row| (row.tenant_id, row.id), dnc_line)
            .await?;
        self.table(consent::all_after, |row| (row.tenant_id, row.id), consent_line)
            .await?;
        self.messages().await?;
        self.table(topup::all_after, |row| (row.tenant_id, row.id), topup_line)
            .await?;
        self.retentions().await?;
        self.postings().await?;
        self.records().await?;
        self.table(api_key::all_after, |row| (row.tenant_id, row.id), key_line)
            .await?;
        self.out.flush().map_err(unwritten)
    }

    fn is_wanted(&self, tenant: TenantId) -> bool {
        self.only.is_none_or(|only| only == tenant)
    }

    fn line(&mut self, line: &Value) -> Result<(), CannotStart> {
        writeln!(self.out, "{line}").map_err(unwritten)
    }

    /// Where the tenant is.
    async fn zone_of(&mut self, tenant: TenantId) -> Result<Zone, CannotStart> {
        if let Some(zone) = self.zones.get(&tenant) {
            return Ok(*zone);
        }
        let zone = tenant::load(self.db, tenant).await?.timezone;
        self.zones.insert(tenant, zone);
        Ok(zone)
    }

    /// A line for each row of a table that is wanted. `place` says whose a row is, and where it stands in the table.
    async fn table<M, K>(
        &mut self,
        read: impl AsyncFn(&Connection, Option<K>, u64) -> Result<Vec<M>, Error>,
        place: impl Fn(&M) -> (TenantId, K),
        line: impl Fn(&M) -> Value,
    ) -> Result<(), CannotStart> {
        let key = |row: &M| place(row).1;
        page::each(self.db, read, key, async |rows| {
            for row in &rows {
                if self.is_wanted(place(row).0) {
                    self.line(&line(row))?;
                }
            }
            Ok::<(), CannotStart>(())
        })
        .await
    }

    /// By their deliveries, for these alone know whose they are.
    async fn attempts(&mut self) -> Result<(), CannotStart> {
        let key = |row: &delivery::Model| (row.endpoint_id, row.id);
        page::each(self.db, delivery::all_after, key, async |rows| {
            let wanted = rows.iter().filter(|row| self.is_wanted(row.tenant_id));
            let ids: Vec<_> = wanted.map(|row| row.id).collect();
            for ids in ids.chunks(DELIVERIES) {
                for attempt in delivery_attempt::outcomes(self.db, ids).await? {
                    self.line(&attempt_line(&attempt))?;
                }
            }
            Ok::<(), CannotStart>(())
        })
        .await
    }

    /// What is missing because nobody wants it any more.
    async fn retentions(&mut self) -> Result<(), CannotStart> {
        let place = |row: &retention::Model| (row.tenant_id, row.tenant_id);
        self.table(retention::every_after, place, retention_line).await
    }

    async fn campaigns(&mut self) -> Result<(), CannotStart> {
        let key = |row: &campaign::Model| row.id;
        page::each(self.db, campaign::all_after, key, async |mut rows| {
            rows.retain(|row| self.is_wanted(row.tenant_id));
            let mut tallies = tally::of(self.db, rows.iter().map(|row| row.id)).await?;
            for row in &rows {
                let tally = tallies.remove(&row.id).unwrap_or_else(|| tally::Model::new(row.id));
                let moves = campaign_move::of(self.db, row.id).await?;
                let zone = self.zone_of(row.tenant_id).await?;
                self.line(&campaign_line(row, &tally, moves, zone))?;
            }
            Ok::<(), CannotStart>(())
        })
        .await
    }

    async fn contacts(&mut self) -> Result<(), CannotStart> {
        let key = |row: &campaign::Model| row.id;
        page::each(self.db, campaign::all_after, key, async |rows| {
            for row in &rows {
                if self.is_wanted(row.tenant_id) {
                    self.contacts_of(row).await?;
                }
            }
            Ok::<(), CannotStart>(())
        })
        .await
    }

    async fn contacts_of(&mut self, campaign: &campaign::Model) -> Result<(), CannotStart> {
        let zone = self.zone_of(campaign.tenant_id).await?;
        let rules = Rules::new(&campaign.plan.schedule, campaign.env, zone);
        let key = |row: &contact::Model| row.id;
        let read = async |db: &Connection, after, limit| contact::after(db, campaign.id, after, limit).await;
        page::each(self.db, read, key, async |rows| {
            for row in &rows {
                self.line(&contact_line(row, campaign, &rules))?;
            }
            Ok::<(), CannotStart>(())
        })
        .await
    }

    async fn sessions(&mut self) -> Result<(), CannotStart> {
        let key = |row: &session::Model| row.id;
        page::each(self.db, session::all_after, key, async |mut rows| {
            rows.retain(|row| self.is_wanted(row.tenant_id));
            let keys: Vec<_> = rows
                .iter()
                .filter_map(|row| Some((row.tenant_id, row.env, row.to_number.clone()?, row.id)))
                .collect();
            let intents = dial::last_seqs(self.db, &keys).await?;
            for row in &rows {
                self.line(&session_line(row, intents.get(&row.id).copied()))?;
            }
            Ok::<(), CannotStart>(())
        })
        .await
    }
}

fn unwritten(error: io::Error) -> CannotStart {
    CannotStart(format!("standard output: {error}"))
}
