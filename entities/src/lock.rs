//! One serving process per database: the second refuses to start. What keeps a process from acting that has lost the
//! database all the same is its [`generation`](crate::generation).
use crate::{
    boxed,
    db::{Location, pause, postgres},
    error::Result,
    fault,
};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement};
use std::{fs::File, path::Path};

/// Who holds it serves.
pub enum Lock {
    /// A lock on the database's file, or on one beside it; ends with the process.
    File(File),
    /// An advisory lock of a connection that does nothing else.
    Advisory(DatabaseConnection),
}

/// Looks at a lock that somebody else holds, a tenth of a second apart.
const TRIES: usize = 100;

/// The same for every Callboard: "callb" in ASCII.
const ADVISORY_KEY: i64 = 0x63_61_6c_6c_62;

impl Lock {
    #[boxed]
    pub async fn take(location: &Location) -> Result<Self, String> {
        let taken = format!(
            "{} is in use by another Callboard process; stop that one, or use another database",
            location.shown()
        );
        match location {
            Location::Sqlite(path) => {
                let cannot = |error| format!("cannot open {}: {error}", path.display());
                let file = lock_file(path).map_err(cannot)?;
                match file.try_lock() {
                    Ok(()) => Ok(Lock::File(file)),
                    Err(std::fs::TryLockError::WouldBlock) => Err(taken),
                    Err(std::fs::TryLockError::Error(error)) => Err(format!("cannot lock {}: {error}", path.display())),
                }
            }
            Location::Postgres(url) => {
                let mut options = postgres(url, 1, "callboard lock");
                options.idle_timeout(None).max_lifetime(None);
                let connection = Database::connect(options)
                    .await
                    .map_err(|error| format!("cannot open {}: {}", location.shown(), fault::words(&error)))?;
                let lock = Lock::Advisory(connection);
                // The server takes a moment to notice that a process was killed: its successor waits for that.
                for _ in 0..TRIES {
                    match lock.is_held().await {
                        Ok(true) => return Ok(lock),
                        Ok(false) => pause().await,
                        Err(error) => return Err(format!("cannot lock {}: {error}", location.shown())),
                    }
                }
                Err(taken)
            }
        }
    }

    /// Is it ours? Takes it again if its connection was lost and nobody has it.
    #[boxed]
    pub async fn is_held(&self) -> Result<bool> {
        let Lock::Advisory(connection) = self else {
            return Ok(true);
        };
        // Re-entrant: true for the session that holds it.
        let text = format!("SELECT pg_try_advisory_lock({ADVISORY_KEY})");
        let row = connection
            .query_one_raw(Statement::from_string(connection.get_database_backend(), text))
            .await?;
        Ok(row.map(|row| row.try_get_by_index(0)).transpose()?.unwrap_or(false))
    }

    #[boxed]
    pub async fn release(&self) {
        match self {
            // Stays open: to close it would end the locks that SQLite holds on the same file in this process.
            Lock::File(file) => drop(file.unlock()),
            Lock::Advisory(connection) => drop(connection.clone().close().await),
        }
    }
}

/// What is locked is one per database, by whatever name it is opened: the file itself. SQLite's own locks are of another
/// kind there, and are not touched.
#[cfg(target_os = "linux")]
fn lock_file(database: &Path) -> std::io::Result<File> {
    private(database)
}

/// Elsewhere the two kinds of locks would meet: a file beside the one that the path leads to.
#[cfg(not(target_os = "linux"))]
fn lock_file(database: &Path) -> std::io::Result<File> {
    private(database)?;
    let beside = database.canonicalize()?.with_added_extension("lock");
    File::options().create(true).truncate(false).write(true).open(beside)
}

/// Makes the file, if it is not there, for its owner's eyes only; its log files take after it.
fn private(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().create(true).append(true).mode(0o600).open(path)
}
