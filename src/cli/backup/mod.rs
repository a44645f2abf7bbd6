//! `callboard backup` and `callboard restore`: a copy of everything in one file, made beside a running `serve`, and back.
mod archive;
mod postgres;
mod restore;

pub use restore::Restore;

use super::commands::print;
use crate::{error::CannotStart, settings::Settings};
use archive::{Kind, Manifest, Writer, private, verify};
use clap::Args;
use entities::{Error, connection::Connection, copy, db::Location, meta, values::Moment};
use runtime::clock::Clock;
use sea_orm::{ConnectOptions, Database};
use std::{
    fs::File,
    io::ErrorKind,
    path::{Path, PathBuf},
};

#[derive(Args)]
pub struct Backup {
    /// The file to make; it must not exist
    file: PathBuf,
    /// Leave the recordings out
    #[arg(long)]
    without_recordings: bool,
    /// The database was recovered, by other means, to this moment, such as 2026-11-29T09:30:00Z, and was not served since: what the lost
    /// service did after it is not in the backup
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    recovered_to: Option<Moment>,
}

impl Backup {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let settings = Settings::load(config, &[])?;
        let location = settings.location()?;
        let recordings = match (self.without_recordings, folder_of(&settings)) {
            (true, _) => None,
            (false, Some(folder)) => Some(folder),
            (false, None) => {
                return Err(CannotStart(format!(
                    "recordings: {} is not a folder, and its bucket is copied by its own means: add --without-recordings",
                    settings.recordings
                )));
            }
        };
        let manifest = make(&self.file, &location, recordings.as_deref(), self.recovered_to).await?;
        let bytes = std::fs::metadata(&self.file).map_or(0, |file| file.len());
        if json {
            print(&serde_json::json!({ "file": self.file, "bytes": bytes, "manifest": manifest }));
        } else {
            let kept = match &manifest.recordings {
                Some(recordings) => format!("{} recordings", recordings.files),
                None => "no recordings".into(),
            };
            println!(
                "{}: {bytes} bytes, with {} as of {} and {kept}; verified. It opens only with secret key {}, which is not in it.",
                self.file.display(),
                location.shown(),
                manifest.taken_at,
                manifest.secret_key_id
            );
        }
        Ok(())
    }
}

/// Where recordings lie, if that is a folder.
fn folder_of(settings: &Settings) -> Option<PathBuf> {
    (!settings.recordings.contains("://")).then(|| PathBuf::from(&settings.recordings))
}

/// A file that is removed again unless it gets its name.
struct Partial(PathBuf);

impl Partial {
    /// Makes it, beside `file`, so that it can be given that name. Whoever has made one of that name is still at it, or was killed.
    fn make(file: &Path, what: &str) -> Result<(Self, File), CannotStart> {
        let path = Self::path(file, what);
        match private(&path) {
            Ok(made) => Ok((Partial(path), made)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(CannotStart(format!(
                "{} is there: another one is at work for {}, or was killed; if none is, remove it",
                path.display(),
                file.display()
            ))),
            Err(error) => Err(cannot_write(&path, &error)),
        }
    }

    fn path(file: &Path, what: &str) -> PathBuf {
        with(file, &format!(".{what}"))
    }

    /// Nothing is at `file` before all of it is, and what somebody else has put there meanwhile stays.
    fn give_name(self, file: &Path) -> std::io::Result<()> {
        match std::fs::hard_link(&self.0, file) {
            // Not every file system has a second name for a file.
            Err(error) if error.kind() != ErrorKind::AlreadyExists && !file.exists() => std::fs::rename(&self.0, file)?,
            named => named?,
        }
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm", "-journal"] {
            let _ = std::fs::remove_file(with(&self.0, end));
        }
    }
}

/// The file whose name ends so.
fn with(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn cannot_write(file: &Path, error: &std::io::Error) -> CannotStart {
    CannotStart(format!("cannot write {}: {error}", file.display()))
}

async fn make(
    file: &Path,
    location: &Location,
    recordings: Option<&Path>,
    recovered_to: Option<Moment>,
) -> Result<Manifest, CannotStart> {
    let now = Clock::wall().now();
    if let Some(moment) = recovered_to.filter(|moment| *moment > now) {
        return Err(CannotStart(format!("--recovered-to: {moment} is in the future")));
    }
    if file.exists() {
        return Err(CannotStart(format!("{} exists; name a new file", file.display())));
    }
    if let Some(folder) = recordings
        && is_within(file, folder)
    {
        return Err(CannotStart(format!(
            "{} is in the folder of recordings, and would hold itself: name a file elsewhere",
            file.display()
        )));
    }
    let before = known(location).await?;
    let (copied, _) = Partial::make(file, "database")?;
    let (archive, made) = Partial::make(file, "partial")?;
    // A database that went back in time knows nothing of what came after, however late it is copied.
    let taken_at = recovered_to.unwrap_or_else(|| Clock::wall().now());
    let database = copy_database(location, &copied.0).await?;
    let (migrations, secret_key_id) = known(location).await?;
    if migrations != before.0 {
        return Err(CannotStart(
            "database_url: its schema was changed while it was copied; try again".into(),
        ));
    }
    let cannot = |error| CannotStart(format!("cannot make {}: {error}", file.display()));
    let mut writer = Writer::new(made);
    let (bytes, sha256) = writer.database(&copied.0).map_err(cannot)?;
    drop(copied);
    let recordings = recordings
        .map(|folder| writer.recordings(folder))
        .transpose()
        .map_err(cannot)?;
    let manifest = Manifest {
        format: archive::FORMAT,
        callboard: env!("CARGO_PKG_VERSION").into(),
        database,
        taken_at,
        migrations,
        secret_key_id,
        bytes,
        sha256,
        recordings,
    };
    writer.finish(&manifest).map_err(cannot)?;
    if verify(&archive.0)? != manifest {
        return Err(CannotStart(format!(
            "{}: what was written is not what is there",
            file.display()
        )));
    }
    archive.give_name(file).map_err(cannot)?;
    Ok(manifest)
}

/// Is the file, which is not there yet, below that folder?
fn is_within(file: &Path, folder: &Path) -> bool {
    let parent = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (parent.unwrap_or(Path::new(".")).canonicalize(), folder.canonicalize()) {
        (Ok(parent), Ok(folder)) => parent.starts_with(folder),
        _ => false,
    }
}

/// Into a file that is there, and empty.
async fn copy_database(location: &Location, to: &Path) -> Result<Kind, CannotStart> {
    match location {
        Location::Sqlite(path) => {
            let cannot = |error: Error| CannotStart(format!("database_url: cannot copy {}: {error}", path.display()));
            copy::write(path, to).await.map_err(cannot)?;
            let found = copy::check(to).await.map_err(cannot)?;
            found.map_err(|fault| CannotStart(format!("database_url: {} is damaged: {fault}", path.display())))?;
            Ok(Kind::Sqlite)
        }
        Location::Postgres(url) => {
            postgres::dump(url, to)?;
            postgres::check(to)?;
            Ok(Kind::Postgres)
        }
    }
}

/// What the database's schema has had, and the key that its secrets are sealed with. Makes no file and migrates nothing.
async fn known(location: &Location) -> Result<(Vec<String>, String), CannotStart> {
    let db = look(location).await?;
    let migrations = migration::had(&db).await;
    let migrations = migrations.map_err(|error| CannotStart::database("read", location, &error))?;
    if migrations.is_empty() {
        return Err(CannotStart(format!(
            "database_url: {} has no Callboard database in it",
            location.shown()
        )));
    }
    let db = Connection::from(db);
    let check = meta::get(&db, meta::SECRET_CHECK).await?;
    db.close().await;
    let key = check
        .as_deref()
        .and_then(|sealed| sealed.split_once('.'))
        .map(|(id, _)| id.to_owned());
    let never = || {
        CannotStart(format!(
            "database_url: {} was never served: there is nothing to copy",
            location.shown()
        ))
    };
    Ok((migrations, key.ok_or_else(never)?))
}

async fn look(location: &Location) -> Result<sea_orm::DatabaseConnection, CannotStart> {
    let mut options = ConnectOptions::new(match location {
        Location::Sqlite(path) => format!("sqlite://{}?mode=ro", path.display()),
        Location::Postgres(url) => url.clone(),
    });
    options.max_connections(1).sqlx_logging(false);
    let opened = Database::connect(options).await;
    opened.map_err(|error| CannotStart::database("open", location, &error))
}
