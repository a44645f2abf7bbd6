//! Opening the database: SQLite (the default, embedded) or PostgreSQL.
//!
//! On SQLite there is exactly one writing connection, so that `BEGIN IMMEDIATE` never meets a rival of our own, and a
//! pool of readers, which never wait for it (WAL). What reads a whole list has connections of its own, and reads it slice
//! by slice: it waits for its like, nobody waits for it, and no snapshot lives long enough to keep the log from being emptied.
use crate::error::{Error, Result};
use sea_orm::sqlx::{
    Executor,
    sqlite::{SqliteAutoVacuum, SqliteJournalMode, SqliteSynchronous},
};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbErr, SqliteTransactionMode,
    Statement, TransactionOptions, TransactionTrait,
};
use std::{path::PathBuf, time::Duration};

/// The doors to the database. Cloning is cheap.
#[derive(Clone)]
pub struct Db {
    /// For the writer only.
    pub write: DatabaseConnection,
    /// For reads that take milliseconds however long the lists are.
    pub read: DatabaseConnection,
    /// For reads of whole lists: preflights, exports, look-ups that no index serves. One short statement after another.
    pub reports: DatabaseConnection,
}

/// Where the data lives, from a `sqlite:` or `postgres:` URL.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Location {
    pub fn parse(url: &str) -> Result<Self, String> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            let path = path.split('?').next().unwrap_or_default();
            return match path {
                "" => Err(format!("`{url}` names no file: write sqlite://callboard.db")),
                path if path.contains(":memory:") => {
                    Err("an in-memory database would lose every event: name a file".into())
                }
                path => Ok(Location::Sqlite(path.into())),
            };
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Location::Postgres(url.to_owned()));
        }
        Err("the database URL must start with sqlite:// or postgres://".into())
    }
}

impl Location {
    /// For messages: without a password.
    pub fn shown(&self) -> String {
        match self {
            Location::Sqlite(path) => path.display().to_string(),
            Location::Postgres(url) => match url::Url::parse(url) {
                Ok(url) => format!("postgres://{}{}", url.host_str().unwrap_or_default(), url.path()),
                Err(_) => "postgres".into(),
            },
        }
    }
}

/// One serving process per database: the second refuses to start.
pub enum Lock {
    /// A lock on a file beside the database; ends with the process.
    File(std::fs::File),
    /// An advisory lock of a connection that does nothing else.
    Advisory(DatabaseConnection),
}

/// Looks at a lock that somebody else holds, a tenth of a second apart.
const LOCK_TRIES: usize = 100;

#[expect(clippy::disallowed_methods, reason = "the database server keeps its own time")]
async fn pause() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// The same for every Callboard: "callb" in ASCII.
const ADVISORY_KEY: i64 = 0x63_61_6c_6c_62;

impl Lock {
    pub async fn take(location: &Location) -> Result<Self, String> {
        let taken = format!(
            "{} is in use by another Callboard process; stop that one, or use another database",
            location.shown()
        );
        match location {
            Location::Sqlite(sqlite) => {
                let path = sqlite.with_added_extension("lock");
                let open = std::fs::OpenOptions::new()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .open(&path);
                let file = open.map_err(|error| format!("cannot open {}: {error}", path.display()))?;
                match file.try_lock() {
                    Ok(()) => {
                        private(sqlite).map_err(|error| format!("cannot open {}: {error}", sqlite.display()))?;
                        Ok(Lock::File(file))
                    }
                    Err(std::fs::TryLockError::WouldBlock) => Err(taken),
                    Err(std::fs::TryLockError::Error(error)) => Err(format!("cannot lock {}: {error}", path.display())),
                }
            }
            Location::Postgres(url) => {
                let mut options = postgres(url, 1);
                options.idle_timeout(None).max_lifetime(None);
                let connection = Database::connect(options)
                    .await
                    .map_err(|error| format!("cannot open {}: {error}", location.shown()))?;
                let lock = Lock::Advisory(connection);
                // The server takes a moment to notice that a process was killed: its successor waits for that.
                for _ in 0..LOCK_TRIES {
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

    pub async fn release(&self) {
        match self {
            // The file's lock ends with its last handle; the file stays, for the next.
            Lock::File(file) => drop(file.unlock()),
            Lock::Advisory(connection) => drop(connection.clone().close().await),
        }
    }
}

/// Makes the file, if it is not there, for its owner's eyes only; its log files take after it.
fn private(path: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map(drop)
}

/// Connections that read; a page cache each.
const READERS: u32 = 4;
/// Connections that read whole lists. On SQLite they compute in this process: one takes one core at most.
const REPORTERS: u32 = 1;
/// The same on a server, and after what time it gives up a statement of theirs: each reads one slice.
const SERVER_REPORTERS: u32 = 2;
const REPORT_LIMIT: &str = "SET statement_timeout = '10s'";

impl Db {
    pub async fn open(location: &Location) -> Result<Db, DbErr> {
        match location {
            Location::Sqlite(path) => {
                let url = format!("sqlite://{}?mode=rwc", path.display());
                // The writer first: it creates the file and turns WAL on, which readers cannot.
                let write = Database::connect(sqlite(&url, 1, false)).await?;
                let read = Database::connect(sqlite(&url, READERS, true)).await?;
                let reports = Database::connect(sqlite(&url, REPORTERS, true)).await?;
                Ok(Db { write, read, reports })
            }
            Location::Postgres(url) => {
                let write = Database::connect(postgres(url, 2)).await?;
                let read = Database::connect(postgres(url, 8)).await?;
                let mut options = postgres(url, SERVER_REPORTERS);
                // Set by a statement: not every pooler takes it as a parameter of the connection.
                options.map_sqlx_postgres_pool_opts(|pool| {
                    pool.after_connect(|connection, _| {
                        Box::pin(async move { Executor::execute(connection, REPORT_LIMIT).await.map(drop) })
                    })
                });
                let reports = Database::connect(options).await?;
                Ok(Db { write, read, reports })
            }
        }
    }

    /// A transaction that holds the write lock from its first statement.
    pub async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..Default::default()
        };
        self.write.begin_with_options(options).await
    }

    /// Puts a new connection in the writer's place. After a disk that was full SQLite has ended the transaction by itself and
    /// the connection's driver takes it for open: what it commits from then on is acknowledged, and never written.
    pub async fn renew_writer(&self) -> Result<()> {
        if self.write.get_database_backend() == sea_orm::DbBackend::Sqlite {
            let pool = self.write.get_sqlite_connection_pool();
            let connection = pool.acquire().await;
            let connection = connection.map_err(|error| Error::Unavailable(error.to_string()))?;
            // A close that fails has closed all the same.
            let _ = connection.close().await;
        }
        Ok(())
    }

    /// Does the database answer? For `/readyz`.
    pub async fn ping(&self) -> Result<()> {
        self.read
            .execute_unprepared("SELECT 1")
            .await
            .map(|_| ())
            .map_err(Error::from)
    }

    /// Moves the write-ahead log into the database file and empties it. Nothing to do on PostgreSQL.
    pub async fn checkpoint(&self) -> Result<()> {
        if self.write.get_database_backend() == sea_orm::DbBackend::Sqlite {
            self.write.execute_unprepared("PRAGMA wal_checkpoint(TRUNCATE)").await?;
            // Keeps the planner's statistics, of a sample, in step with what is stored.
            self.write.execute_unprepared("PRAGMA optimize").await?;
        }
        Ok(())
    }

    pub async fn close(self) {
        for connection in [self.reports, self.read, self.write] {
            // A failed close loses nothing: every commit is on disk.
            let _ = connection.close().await;
        }
    }
}

fn sqlite(url: &str, connections: u32, read_only: bool) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(connections)
        .min_connections(connections)
        .sqlx_logging(false);
    options.acquire_timeout(Duration::from_secs(10));
    // A connection that lives for ever keeps its page cache and its prepared statements.
    options.idle_timeout(None).max_lifetime(None).test_before_acquire(false);
    options.map_sqlx_sqlite_opts(move |options| {
        let options = options
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(5))
            .statement_cache_capacity(256)
            .pragma("cache_size", "-16384")
            .pragma("mmap_size", "268435456")
            .pragma("temp_store", "memory")
            .pragma("analysis_limit", "400");
        if read_only {
            // Not `read_only(true)`: a reader of a WAL database writes its shared-memory file.
            return options.pragma("query_only", "on");
        }
        options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // An acknowledged write survives a power cut; group commit pays for the fsync.
            .synchronous(SqliteSynchronous::Full)
            .auto_vacuum(SqliteAutoVacuum::Incremental)
            .pragma("wal_autocheckpoint", "4000")
            .pragma("journal_size_limit", "67108864")
            .optimize_on_close(true, None)
    });
    options
}

fn postgres(url: &str, connections: u32) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(connections)
        .min_connections(1)
        .sqlx_logging(false);
    options
        .acquire_timeout(Duration::from_secs(10))
        .connect_timeout(Duration::from_secs(3));
    options.test_before_acquire_if_idle_for(Duration::from_secs(30));
    options
}
