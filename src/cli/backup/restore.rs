//! `callboard restore`.
use super::{
    Partial,
    archive::{Kind, Manifest, Target, private, unpack, verify},
    cannot_write, folder_of, look, postgres, with,
};
use crate::{cli::commands::print, error::CannotStart, settings::Settings};
use actors::holds;
use clap::{ArgGroup, Args};
use entities::{
    Error,
    connection::Connection,
    copy,
    db::{Db, Location},
    lock::{Holders, Lock},
    restored::{self, MayHaveRun},
    values::Moment,
};
use runtime::{clock::Clock, keyring::Keyring};
use serde_json::json;
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

#[derive(Args)]
#[command(group = ArgGroup::new("since").required(true))]
pub struct Restore {
    /// The file that `callboard backup` has made
    file: PathBuf,
    /// Until when the service that is lost may have run: a time such as 2026-11-29T09:30:00Z, or `now`
    #[arg(long, value_name = "TIME", value_parser = AsOf::parse, group = "since")]
    as_of: Option<AsOf>,
    /// The service was stopped before the backup and has not run since: everything goes on where it was
    #[arg(long, group = "since")]
    nothing_has_run: bool,
    /// Leave the recordings out
    #[arg(long)]
    without_recordings: bool,
}

/// Until when something may have run.
#[derive(Clone, Copy)]
enum AsOf {
    Now,
    At(Moment),
}

impl AsOf {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "now" => Ok(AsOf::Now),
            text => Moment::parse(text).map(AsOf::At),
        }
    }

    /// Whatever the clock of the machine said that made the backup.
    fn moment(self, manifest: &Manifest) -> Result<Moment, CannotStart> {
        let (now, made) = (Clock::wall().now(), manifest.taken_at);
        match self {
            AsOf::Now => Ok(now.max(made)),
            AsOf::At(at) if at < made => Err(CannotStart(format!(
                "--as-of: {at} is before the backup was made ({made}): give the moment until which the lost service may have run"
            ))),
            AsOf::At(at) if at > now.max(made).plus_seconds(CLOCKS_DIFFER_SECONDS) => {
                Err(CannotStart(format!("--as-of: {at} is in the future")))
            }
            AsOf::At(at) => Ok(at),
        }
    }
}

/// Places of events and their like that may have been given each second, at most: more than anybody has measured.
const PLACES_PER_SECOND: i64 = 10_000;
const PLACES_AT_LEAST: i64 = 1_000_000;
/// So many are left free at most, whatever times are named: a fifth of a number that every client can read.
const PLACES_AT_MOST: i64 = 1 << 50;
/// Two clocks may differ by so much.
const CLOCKS_DIFFER_SECONDS: i64 = 60;

impl Restore {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let settings = Settings::load(config, &[])?;
        let (location, keyring) = (settings.location()?, settings.keyring()?);
        // Read whole before anything is written.
        let manifest = verify(&self.file)?;
        self.check(&manifest, &location, &keyring)?;
        let recordings = match (self.without_recordings, &manifest.recordings, folder_of(&settings)) {
            (true, _, _) | (_, None, _) => None,
            (false, Some(_), Some(folder)) => Some(folder),
            (false, Some(_), None) => {
                return Err(CannotStart(format!(
                    "recordings: the backup has them, and {} is not a folder: name a folder, or add --without-recordings",
                    settings.recordings
                )));
            }
        };
        let may_have_run = match &location {
            Location::Sqlite(path) => self.fill_file(path, &manifest, recordings.as_deref()).await?,
            Location::Postgres(url) => {
                self.fill_server(url, &location, &manifest, recordings.as_deref())
                    .await?
            }
        };
        self.tell(&location, &manifest, may_have_run, json);
        Ok(())
    }

    fn check(&self, manifest: &Manifest, location: &Location, keyring: &Keyring) -> Result<(), CannotStart> {
        let fits = matches!(
            (manifest.database, location),
            (Kind::Sqlite, Location::Sqlite(_)) | (Kind::Postgres, Location::Postgres(_))
        );
        if !fits {
            let of = match manifest.database {
                Kind::Sqlite => "a SQLite file: set CALLBOARD_DATABASE_URL to sqlite://FILE",
                Kind::Postgres => "a PostgreSQL database: set CALLBOARD_DATABASE_URL to postgres://…",
            };
            return Err(CannotStart(format!("database_url: the backup is of {of}")));
        }
        migration::knows(&manifest.migrations)
            .map_err(|error| CannotStart::database("restore into", location, &error))?;
        if !keyring.has(&manifest.secret_key_id) {
            return Err(CannotStart(format!(
                "secret_key: the backup's secrets were sealed with key {}, and the configured key is {}. Set CALLBOARD_SECRET_KEY to the key \
                 that was used, or list it in CALLBOARD_SECRET_KEYS_PREVIOUS.",
                manifest.secret_key_id,
                keyring.key_id()
            )));
        }
        self.as_of.map(|as_of| as_of.moment(manifest)).transpose().map(drop)
    }

    /// The file gets its name when all is done: before, there is no database.
    async fn fill_file(
        &self,
        path: &Path,
        manifest: &Manifest,
        recordings: Option<&Path>,
    ) -> Result<Option<MayHaveRun>, CannotStart> {
        if path.exists() || with(path, "-wal").exists() {
            return Err(CannotStart(format!(
                "database_url: {} exists; move it away with the files beside it, or name another",
                path.display()
            )));
        }
        let (partial, made) = Partial::make(path, "restoring")?;
        // Of one that was killed: its log would be read as this one's. Nobody else is at work by now.
        for end in ["-wal", "-shm", "-journal"] {
            let _ = std::fs::remove_file(with(&partial.0, end));
        }
        let target = Target {
            database: made,
            database_path: &partial.0,
            recordings,
        };
        unpack(&self.file, target)?;
        let location = Location::Sqlite(partial.0.clone());
        let db = Db::open(&location)
            .await
            .map_err(|error| CannotStart::database("open", &location, &error))?;
        let marked = self.prepare(&db, manifest, &location).await;
        db.close().await;
        let marked = marked?;
        // All of it is in the file now, and nothing in a log that would be lost with its name.
        let log = with(&partial.0, "-wal");
        if log.metadata().is_ok_and(|log| log.len() > 0) {
            return Err(CannotStart(format!(
                "{} could not be written into the file: is the disk full?",
                log.display()
            )));
        }
        let named = partial.give_name(path);
        named.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => CannotStart(format!(
                "database_url: {} was made meanwhile: stop the service, move it away with the files beside it, and restore again",
                path.display()
            )),
            _ => cannot_write(path, &error),
        })?;
        Ok(marked)
    }

    async fn fill_server(
        &self,
        url: &str,
        location: &Location,
        manifest: &Manifest,
        recordings: Option<&Path>,
    ) -> Result<Option<MayHaveRun>, CannotStart> {
        // No service may begin with it, and no other restore.
        let lock = Lock::take(location, Holders::One)
            .await
            .map_err(|why| CannotStart(format!("database_url: {why}")))?;
        let db = Connection::from(look(location).await?);
        let has_tables = copy::has_tables(&db).await;
        db.close().await;
        if has_tables? {
            return Err(CannotStart(format!(
                "database_url: {} has tables; make a new database, or drop that one",
                location.shown()
            )));
        }
        let folder = Folder::make()?;
        let database = folder.0.join("database");
        let made = private(&database).map_err(|error| cannot_write(&database, &error))?;
        let target = Target {
            database: made,
            database_path: &database,
            recordings,
        };
        unpack(&self.file, target)?;
        postgres::restore(&database, url, &folder.0)?;
        let opened = Db::open(location).await;
        let db = opened.map_err(|error| CannotStart::database("open", location, &error))?;
        let marked = self.prepare(&db, manifest, location).await;
        db.close().await;
        lock.release().await;
        marked
    }

    /// Until the last commit no service begins with the database.
    async fn prepare(
        &self,
        db: &Db,
        manifest: &Manifest,
        location: &Location,
    ) -> Result<Option<MayHaveRun>, CannotStart> {
        let now = Clock::wall().now();
        let transaction = db.begin().await.map_err(Error::from)?;
        restored::begin(&transaction, now).await?;
        if db.is_shared() {
            let noted = migration::note(&*transaction, &manifest.migrations).await;
            noted.map_err(|error| CannotStart::database("restore into", location, &error))?;
        }
        transaction.commit().await.map_err(Error::from)?;
        let migrated = async { migration::up(db.write.pool()?).await }.await;
        migrated.map_err(|error| CannotStart::database("migrate", location, &error))?;
        let transaction = db.begin().await.map_err(Error::from)?;
        let mut may_have_run = None;
        if let Some(as_of) = self.as_of {
            let as_of = as_of.moment(manifest)?;
            let seconds = i64::try_from(as_of.since(manifest.taken_at).as_secs()).unwrap_or(i64::MAX);
            let places = seconds
                .saturating_mul(PLACES_PER_SECOND)
                .saturating_add(PLACES_AT_LEAST)
                .min(PLACES_AT_MOST);
            actors::writer::leave_free(&transaction, places).await?;
            // Our time goes on from here, and not from where it was at the backup.
            holds::restored(&transaction, &Clock::wall()).await?;
            may_have_run = Some(restored::mark(&transaction, manifest.taken_at, as_of, now).await?);
        }
        restored::end(&transaction).await?;
        transaction.commit().await.map_err(Error::from)?;
        Ok(may_have_run)
    }

    fn tell(&self, location: &Location, manifest: &Manifest, may_have_run: Option<MayHaveRun>, json: bool) {
        let shown = location.shown();
        if json {
            print(&json!({ "database": shown, "manifest": manifest, "may_have_run": may_have_run }));
            return;
        }
        println!("{shown}: as it was at {}", manifest.taken_at);
        let Some(marked) = may_have_run else { return };
        println!(
            "\nThe next `callboard serve` puts away what may have run since: {} contacts of {} workspaces that waited for a call or a message are \
             canceled, campaigns that ran are paused, and calls and messages that waited fail. Everybody was signed out.\n\n\
             Before `callboard dispatch resume --opt-outs-entered`:\n\
             - put those on the do-not-call list who have opted out since;\n\
             - revoke the consents that were taken back since: {} stand, as they did then;\n\
             - revoke the API keys that were revoked since: they are valid again;\n\
             - see who was called, in your webhooks' receiver or your carrier's records, and begin anew for the others.",
            marked.contacts, marked.workspaces, marked.consents
        );
    }
}

/// A folder that is gone with its content when it is not used any more.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Result<Self, CannotStart> {
        use std::os::unix::fs::DirBuilderExt;
        let path = std::env::temp_dir().join(format!("callboard-restore-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| cannot_write(&path, &error))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
