//! `callboard registers`: the operator's own, which serve all workspaces. Works beside a running `serve`, which looks at the same rows:
//! a file counts from the next dial on.
use super::commands::{open, print};
use crate::error::CannotStart;
use actors::registers::{
    hashes::Hasher,
    reading::{Read, Reading, most_of_operator},
    runs::Chunks,
    settle::{check_name, settle},
    upload::ROWS,
};
use clap::Subcommand;
use entities::{
    Error,
    db::Db,
    ids::RegisterFileId,
    meta,
    register::{self, AreaCodes, Model, OPERATOR, chunk},
    values::{Country, Moment},
};
use rules::registers::{
    aging::stale_at,
    known,
    version::{Change, File, Upload},
};
use runtime::{
    clock::Clock,
    ids::Ids,
    keyring::{Keyring, purpose},
    link_keys,
};
use serde::Serialize;
use std::{collections::BTreeMap, io::Read as _, path::PathBuf, time::Duration};

#[derive(Subcommand)]
pub enum Registers {
    /// Upload the latest file of a register, such as us_dnc; several files, as of area codes, are read as one
    ///
    /// A line is a number, or an area code and a number; or the first line names the columns phone_number and listed_at. A file
    /// with a bad line is refused as a whole, and the one before stays.
    Upload {
        /// us_dnc, uk_tps, uk_ctps, it_rpo, ca_dncl, au_dncr, or a name of your own
        name: String,
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// The day on which its maker gave it out, as 2026-11-30
        #[arg(long, value_name = "DAY")]
        fetched_at: String,
        /// Whose national numbers it holds, where its name does not say so [default: US]
        #[arg(long, value_name = "COUNTRY")]
        country: Option<String>,
        /// Area codes that it covers though it holds no number of them, as 212,646
        #[arg(long, value_name = "CODES")]
        area_codes: Option<String>,
        /// It is whole, though it holds less than half as many numbers as the file before
        #[arg(long)]
        allow_shrink: bool,
    },
    /// List the operator's registers, and when each is too old; and those that are asked over an API
    List,
    /// Remove a register; calls that need it are held back
    Remove { name: String },
}

/// A register, as it is printed.
#[derive(Serialize)]
struct Shown {
    name: String,
    country: String,
    version: i32,
    numbers: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    area_codes: Option<AreaCodes>,
    fetched_at: Moment,
    stale_at: Moment,
    sha256: String,
}

/// What is listed.
#[derive(Serialize)]
#[serde(untagged)]
enum Listed<'a> {
    File(Shown),
    /// Asked about each number.
    OverApi {
        name: &'a str,
        url: &'a str,
    },
}

impl From<Model> for Shown {
    fn from(row: Model) -> Self {
        Shown {
            stale_at: stale_at(&row),
            name: row.name,
            country: row.country,
            version: row.version,
            numbers: row.numbers,
            area_codes: row.area_codes,
            fetched_at: row.fetched_at,
            sha256: row.sha256,
        }
    }
}

impl Registers {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let (settings, db, clock, ids) = open(config).await?;
        match self {
            Registers::Upload {
                name,
                files,
                fetched_at,
                country,
                area_codes,
                allow_shrink,
            } => {
                known::check_name(&name)?;
                let country = known::country(&name, country.as_deref(), Country::US)?;
                let upload = Upload {
                    id: ids.next(),
                    owner: OPERATOR,
                    area_codes: known::area_codes(area_codes.as_deref(), country)?,
                    country,
                    fetched_at: known::fetched_at(&fetched_at, clock.now())?,
                    name,
                    by: None,
                    may_shrink: allow_shrink,
                };
                let place = Place {
                    most: most_of_operator(settings.registers_memory()),
                    hasher: hasher(&db, &settings.keyring()?).await?,
                    db: &db,
                    clock: &clock,
                    ids: &ids,
                };
                let (row, change) = place.put(upload, &files).await?;
                told(row, change, json);
            }
            Registers::List => list(&db, &settings.register_addresses(), json).await?,
            Registers::Remove { name } => {
                let transaction = db.begin().await.map_err(Error::from)?;
                register::remove(&transaction, OPERATOR, &name).await?;
                transaction.commit().await.map_err(Error::from)?;
                match json {
                    true => print(&serde_json::json!({ "removed": name })),
                    false => println!("{name} is removed; calls that need it are held back"),
                }
            }
        }
        db.close().await;
        Ok(())
    }
}

fn told(row: Model, change: Change, json: bool) {
    let shown = Shown::from(row);
    if json {
        return print(&shown);
    }
    let what = match change {
        Change::Nothing => "is there already",
        Change::Refreshed => "is the file that was there, given out anew",
        Change::Replaced => "is stored",
    };
    println!(
        "{} {what}: version {}, {} numbers, good until {}",
        shown.name, shown.version, shown.numbers, shown.stale_at
    );
    if let Some(codes) = shown.area_codes {
        println!(
            "It covers {} area codes; calls to others that need it are held back",
            codes.0.len()
        );
    }
}

/// `over_api`: where those are asked that have no file, by name.
async fn list(db: &Db, over_api: &BTreeMap<&str, &str>, json: bool) -> Result<(), CannotStart> {
    let mut rows = register::of_owner(&db.read, OPERATOR.0).await?;
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    let files = rows.into_iter().map(|row| Listed::File(Shown::from(row)));
    let asked = over_api.iter().map(|(&name, &url)| Listed::OverApi { name, url });
    let shown: Vec<Listed<'_>> = files.chain(asked).collect();
    if json {
        print(&shown);
        return Ok(());
    }
    for one in &shown {
        match one {
            Listed::File(file) => println!(
                "{}  version {}  {} numbers  given out {}  too old {}",
                file.name, file.version, file.numbers, file.fetched_at, file.stale_at
            ),
            Listed::OverApi { name, url } => println!("{name}  asked over an API at {url}"),
        }
    }
    if shown.is_empty() {
        println!("There are none");
    }
    Ok(())
}

/// What numbers are hashed with: the database's own key, which the first start of the service makes.
async fn hasher(db: &Db, keyring: &Keyring) -> Result<Hasher, CannotStart> {
    if meta::get(&db.read, meta::LINK_KEYS).await?.is_none() {
        let why = "the service has never been started on this database: start `callboard serve` once first";
        return Err(CannotStart(why.into()));
    }
    let keys = link_keys::stored(&db.read, keyring).await?;
    Ok(Hasher::new(&keys.signing(purpose::REGISTERS)))
}

/// Bytes that are read at once.
const PIECE: usize = 1024 * 1024;
/// Between two transactions: whoever serves writes, too.
const REST: Duration = Duration::from_millis(5);

struct Place<'a> {
    db: &'a Db,
    clock: &'a Clock,
    ids: &'a Ids,
    hasher: Hasher,
    /// Numbers of one file.
    most: usize,
}

impl Place<'_> {
    async fn put(&self, upload: Upload, files: &[PathBuf]) -> Result<(Model, Change), CannotStart> {
        check_name(&self.db.read, &upload).await?;
        let reading = Reading::new(self.hasher.clone(), upload.country, upload.fetched_at, self.most);
        let read = read(reading, files)?;
        let current = register::of_name(&self.db.read, upload.owner, &upload.name).await?;
        upload.check_day(current.as_ref(), &read.content)?;
        let known = current.as_ref().filter(|row| upload.is_known(row, &read.content));
        let mut file = File {
            id: self.ids.next(),
            content: read.content.clone(),
            numbers: known.map_or(0, |row| row.numbers),
        };
        let is_stored = known.is_none();
        if is_stored {
            file.numbers = self.write(read.chunks(file.id)).await?;
        }
        let settled = self.settle(&upload, &file, is_stored).await;
        match &settled {
            Ok((_, Change::Replaced)) => self.remove(current.map(|row| row.file_id)).await?,
            Ok((_, Change::Nothing | Change::Refreshed)) => {}
            // What stays now is found by the service after a day.
            Err(_) => drop(self.remove(is_stored.then_some(file.id)).await),
        }
        settled
    }

    async fn settle(&self, upload: &Upload, file: &File, is_stored: bool) -> Result<(Model, Change), CannotStart> {
        let transaction = self.db.begin().await.map_err(Error::from)?;
        let settled = settle(&transaction, upload, file, is_stored, self.clock.now()).await?;
        transaction.commit().await.map_err(Error::from)?;
        Ok(settled)
    }

    /// What that file holds, which no register has any more.
    async fn remove(&self, file: Option<RegisterFileId>) -> Result<(), CannotStart> {
        let Some(file) = file else { return Ok(()) };
        loop {
            let transaction = self.db.begin().await.map_err(Error::from)?;
            let removed = chunk::remove_some(&transaction, file, ROWS as u64).await?;
            transaction.commit().await.map_err(Error::from)?;
            if removed == 0 {
                return Ok(());
            }
            self.clock.rest(REST).await;
        }
    }

    /// Answers how many numbers there are.
    async fn write(&self, mut chunks: Chunks) -> Result<i64, CannotStart> {
        loop {
            let rows = chunks.take(ROWS);
            if rows.is_empty() {
                return Ok(chunks.numbers());
            }
            let transaction = self.db.begin().await.map_err(Error::from)?;
            chunk::add(&transaction, &rows).await?;
            transaction.commit().await.map_err(Error::from)?;
            self.clock.rest(REST).await;
        }
    }
}

/// All files as one. What is wrong with a line is told with its place in all of them.
fn read(mut reading: Reading, files: &[PathBuf]) -> Result<Read, CannotStart> {
    let mut piece = vec![0; PIECE];
    for path in files {
        let cannot = |error: std::io::Error| CannotStart(format!("{}: {error}", path.display()));
        let mut file = std::fs::File::open(path).map_err(cannot)?;
        let mut last = b'\n';
        loop {
            let count = file.read(&mut piece).map_err(cannot)?;
            let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            last = bytes.last().copied().unwrap_or(last);
            reading.feed(bytes).map_err(refused)?;
        }
        // The last line of one file is not the first of the next.
        if last != b'\n' {
            reading.feed(b"\n").map_err(refused)?;
        }
    }
    reading.end().map_err(refused)
}

/// Each bad line that is told.
fn refused(error: Error) -> CannotStart {
    match error {
        Error::Faults(faults) => {
            let lines = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.reason));
            let lines: Vec<String> = lines.collect();
            CannotStart(format!(
                "the file is refused, and nothing is changed:\n{}",
                lines.join("\n")
            ))
        }
        other => other.into(),
    }
}
