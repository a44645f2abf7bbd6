//! One serving process per database, or several nodes that share it: any other refuses to start. What keeps a process from acting that has lost the
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
    Advisory(DatabaseConnection, Holders),
}

/// Who may hold it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holders {
    /// One process.
    One,
    /// Nodes.
    Nodes,
}

/// Looks at a lock that somebody else holds, a tenth of a second apart.
const TRIES: usize = 100;

/// The same for every Callboard: "callb" in ASCII.
const ADVISORY_KEY: i64 = 0x63_61_6c_6c_62;

impl Lock {
    #[boxed]
    pub async fn take(location: &Location, holders: Holders) -> Result<Self, String> {
        let what = match (location, holders) {
            (Location::Sqlite(_), _) => "stop that one, or use another database",
            (_, Holders::One) => "stop that one, use another database, or set node_bind for each to run them as nodes",
            (_, Holders::Nodes) => "it has no node_bind, so it serves alone: stop that one first",
        };
        let taken = format!("{} is in use by another Callboard process; {what}", location.shown());
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
                let lock = Lock::Advisory(connection, holders);
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
        let Lock::Advisory(connection, holders) = self else {
            return Ok(true);
        };
        // Re-entrant: true for the session that holds it.
        let text = match holders {
            Holders::One => format!("SELECT pg_try_advisory_lock({ADVISORY_KEY})"),
            Holders::Nodes => format!("SELECT pg_try_advisory_lock_shared({ADVISORY_KEY})"),
        };
        let row = connection
            .query_one_raw(Statement::from_string(connection.get_database_backend(), text))
            .await?;
        Ok(row.map(|row| row.try_get_by_index(0)).transpose()?.unwrap_or(false))
    }

    /// One at a time from here to [`Lock::opened`]: of nodes that start together, one migrates.
    #[boxed]
    pub async fn opening(&self) -> Result<()> {
        self.open("pg_advisory_lock").await
    }

    #[boxed]
    pub async fn opened(&self) -> Result<()> {
        self.open("pg_advisory_unlock").await
    }

    async fn open(&self, function: &str) -> Result<()> {
        if let Lock::Advisory(connection, Holders::Nodes) = self {
            connection
                .execute_unprepared(&format!("SELECT {function}({})", ADVISORY_KEY + 1))
                .await?;
        }
        Ok(())
    }

    #[boxed]
    pub async fn release(&self) {
        match self {
            // Stays open: to close it would end the locks that SQLite holds on the same file in this process.
            Lock::File(file) => drop(file.unlock()),
            Lock::Advisory(connection, _) => drop(connection.clone().close().await),
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
