//! Opening the database: SQLite (the default, embedded) or PostgreSQL.
//!
//! On SQLite there is exactly one writing connection, so that `BEGIN IMMEDIATE` never meets a rival of our own, and a
//! pool of readers, which never wait for it (WAL). What reads a whole list has connections of its own, and reads it slice
//! by slice: it waits for its like, nobody waits for it, and no snapshot lives long enough to keep the log from being emptied.
use crate::{
    boxed,
    connection::{Connection, Transaction},
    error::{Error, Result},
    fault,
    ids::NodeId,
};
use sea_orm::sqlx::{
    Executor,
    sqlite::{SqliteAutoVacuum, SqliteJournalMode, SqliteSynchronous},
};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, DbErr, SqliteTransactionMode, Statement,
    TransactionOptions,
};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

/// The doors to the database. Cloning is cheap.
#[derive(Clone)]
pub struct Db {
    /// For the writer only.
    pub write: Arc<Connection>,
    /// For what it writes beside that; SQLite has one writer.
    beside: Option<Arc<Connection>>,
    /// For reads that take milliseconds however long the lists are.
    pub read: Arc<Connection>,
    /// For reads of whole lists: preflights, exports, look-ups that no index serves. One short statement after another.
    pub reports: Arc<Connection>,
    /// What PostgreSQL calls the writer's connections by, and those beside, so that one that is stuck can be ended.
    writer: Arc<str>,
    writer_beside: Arc<str>,
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
                "" => Err(format!("`{url}` does not name a file: write sqlite://callboard.db")),
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

/// How the names of all writers begin, and of what they write beside.
const WRITER: &str = "callboard writer ";
const WRITER_BESIDE: &str = "callboard beside ";
/// Whoever waits longer for a row gives up, before the server would end one of two that wait for each other: it must not be the writer.
const BESIDE_LIMIT: &str = "SET lock_timeout = '300ms'";

/// Looks at connections that are being ended, a tenth of a second apart.
const ENDING_TRIES: usize = 50;

#[expect(clippy::disallowed_methods, reason = "the database server keeps its own time")]
#[boxed]
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Connections that read; a page cache each.
const READERS: u32 = 4;
/// Connections that read whole lists. On SQLite they compute in this process: one takes one core at most.
const REPORTERS: u32 = 1;
/// The same on a server, and after what time it gives up a statement of theirs: each reads one slice.
const SERVER_REPORTERS: u32 = 2;
const REPORT_LIMIT: &str = "SET statement_timeout = '10s'";

impl Db {
    /// For a command that works beside a serving process.
    #[boxed]
    pub async fn open(location: &Location) -> Result<Db, DbErr> {
        Self::connect(location, "").await
    }

    /// For the process that serves. It holds the [`Lock`](crate::lock::Lock), so whatever an earlier one has left at work
    /// in the database server is ended first: a commit that hung there must not land in the middle of what follows.
    #[boxed]
    pub async fn serve(location: &Location) -> Result<Db> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let started = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let name = format!(
            "{}.{}.{}",
            std::process::id(),
            started.as_nanos(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let db = Self::connect(location, &name).await?;
        db.end_writers(WRITER).await?;
        db.end_writers(WRITER_BESIDE).await?;
        Ok(db)
    }

    /// For a node, beside others: each ends only what it has left at work itself.
    #[boxed]
    pub async fn serve_as(location: &Location, node: NodeId) -> Result<Db> {
        Ok(Self::connect(location, &node.to_string()).await?)
    }

    /// Ends what a node has at work in the database server.
    #[boxed]
    pub async fn end_writers_of(&self, node: NodeId) -> Result<()> {
        self.end_writers(&format!("{WRITER}{node}")).await?;
        self.end_writers(&format!("{WRITER_BESIDE}{node}")).await
    }

    /// `who`: in the names of the connections that write.
    async fn connect(location: &Location, who: &str) -> Result<Db, DbErr> {
        let [writer, writer_beside] = [WRITER, WRITER_BESIDE].map(|kind| Arc::<str>::from(format!("{kind}{who}")));
        let mut beside = None;
        let (write, read, reports) = match location {
            Location::Sqlite(path) => {
                let url = format!("sqlite://{}?mode=rwc", path.display());
                // The writer first: it creates the file and turns WAL on, which readers cannot.
                let write = sqlite_writer(&url).await?;
                let read = Database::connect(sqlite(&url, READERS, true)).await?;
                (write, read, Database::connect(sqlite(&url, REPORTERS, true)).await?)
            }
            Location::Postgres(url) => {
                // One writes. Others end it where it is stuck, and ask whether the database is still ours, while those that were
                // given up come back.
                let write = Database::connect(postgres(url, 4, &writer)).await?;
                let read = Database::connect(postgres(url, 8, "callboard reader")).await?;
                let mut lazy = postgres(url, 2, &writer_beside);
                begin_with(&mut lazy, BESIDE_LIMIT);
                lazy.connect_lazy(true);
                beside = Some(Arc::new(Connection::from(Database::connect(lazy).await?)));
                let mut options = postgres(url, SERVER_REPORTERS, "callboard reports");
                begin_with(&mut options, REPORT_LIMIT);
                (write, read, Database::connect(options).await?)
            }
        };
        let [write, read, reports] = [write, read, reports].map(|pool| Arc::new(Connection::from(pool)));
        Ok(Db {
            write,
            beside,
            read,
            reports,
            writer,
            writer_beside,
        })
    }

    /// A transaction that holds the write lock from its first statement.
    #[boxed]
    pub async fn begin(&self) -> Result<Transaction, DbErr> {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..Default::default()
        };
        self.write.begin_with(options).await
    }

    /// The same database by connections of its own, for a second writer, whose transactions wait for no row for long. `None` on SQLite.
    pub fn beside(&self) -> Option<Db> {
        Some(Db {
            write: self.beside.clone()?,
            beside: None,
            writer: self.writer_beside.clone(),
            ..self.clone()
        })
    }

    /// After it, nothing that the writer has begun before can still be committed.
    ///
    /// On SQLite a new connection takes the writer's place: after a disk that was full SQLite has ended the transaction by
    /// itself and the connection's driver takes it for open; what it commits from then on is acknowledged, and never written.
    /// On PostgreSQL the connections that are still at work are ended: a commit that has hung may land minutes later.
    #[boxed]
    pub async fn renew_writer(&self) -> Result<()> {
        if let Some(pool) = self.write.sqlite() {
            let connection = pool.acquire().await;
            let connection = connection.map_err(|error| Error::Unavailable(fault::driver_words(&error)))?;
            // A close that fails has closed all the same.
            let _ = connection.close().await;
            return Ok(());
        }
        self.end_writers(&self.writer).await
    }

    /// Ends the server's side of every writing connection of that name, or of one that begins so, that is at work.
    /// PostgreSQL lets a role end its own connections.
    async fn end_writers(&self, name: &str) -> Result<()> {
        let backend = self.write.get_database_backend();
        if backend == DbBackend::Sqlite {
            return Ok(());
        }
        // Idle ones have nothing under way; ours is the one that asks.
        const AT_WORK: &str = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
                               AND starts_with(application_name, $1) AND state <> 'idle'";
        for _ in 0..ENDING_TRIES {
            let text = format!("SELECT COUNT(pg_terminate_backend(pid)) {AT_WORK}");
            let asked = Statement::from_sql_and_values(backend, text, [name.into()]);
            let row = self.write.query_one_raw(asked).await?;
            let left: i64 = row.map(|row| row.try_get_by_index(0)).transpose()?.unwrap_or(0);
            if left == 0 {
                return Ok(());
            }
            pause().await;
        }
        Err(Error::Unavailable(
            "a connection of the writer that hangs in the database server does not end".into(),
        ))
    }

    /// A server that other processes reach too, from wherever they are.
    pub fn is_shared(&self) -> bool {
        self.write.get_database_backend() != DbBackend::Sqlite
    }

    /// A connection that the reads of users do not keep busy; on SQLite one of theirs, for a server alone can stall.
    pub fn aside(&self) -> &Connection {
        if self.is_shared() { &self.write } else { &self.read }
    }

    /// Does the database answer? For `/readyz`.
    #[boxed]
    pub async fn ping(&self) -> Result<()> {
        self.read
            .execute_unprepared("SELECT 1")
            .await
            .map(|_| ())
            .map_err(Error::from)
    }

    /// Moves the write-ahead log into the database file, as far as nobody reads it: on the connection that whole lists are read by
    /// and without waiting for anybody, for the writer must not stand behind a program outside that reads for minutes. The log begins
    /// anew by itself once all of it was moved. Nothing to do on PostgreSQL.
    #[boxed]
    pub async fn checkpoint(&self) -> Result<()> {
        if !self.is_shared() {
            self.reports
                .execute_unprepared("PRAGMA wal_checkpoint(PASSIVE)")
                .await?;
        }
        Ok(())
    }

    /// Does so each second until it is closed, so that hardly anything is left for the writer to move: the commit that finds a long
    /// log moves it, and everybody waits meanwhile.
    #[expect(clippy::disallowed_methods, reason = "the disk keeps its own time")]
    #[boxed]
    pub async fn keep_the_log_short(self) {
        while self.reports.sqlite().is_some_and(|pool| !pool.is_closed()) {
            // Where it fails, commits fail too, and say so.
            let _ = self.checkpoint().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    #[boxed]
    pub async fn close(self) {
        let all = [Some(self.reports), Some(self.read), self.beside, Some(self.write)];
        for connection in all.into_iter().flatten() {
            connection.close().await;
        }
    }
}

/// Keeps SQLite's statistics, of a sample, in step with what is stored. PostgreSQL sees to it by itself.
#[boxed]
pub async fn optimize(db: &Connection) -> Result<()> {
    if db.get_database_backend() == DbBackend::Sqlite {
        db.execute_unprepared("PRAGMA optimize").await?;
    }
    Ok(())
}

/// SQLite waits so long for a file that somebody else has locked.
const LOCKED: Duration = Duration::from_secs(5);

/// The writer's connection. To turn WAL on SQLite needs the file alone, and for that it does not wait: not for another process that
/// makes the same file at this moment either.
async fn sqlite_writer(url: &str) -> Result<DatabaseConnection, DbErr> {
    let begun = Instant::now();
    loop {
        match Database::connect(sqlite(url, 1, false)).await {
            Err(error) if Error::from(error.clone()).is_locked() && begun.elapsed() < LOCKED => pause().await,
            opened => return opened,
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
            .busy_timeout(LOCKED)
            .statement_cache_capacity(256)
            // Readers find the file's pages mapped; their own cache is for what only the log holds yet.
            .pragma("cache_size", if read_only { "-2048" } else { "-16384" })
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

/// Each connection begins with this statement: not every pooler takes it as a parameter of the connection.
fn begin_with(options: &mut ConnectOptions, statement: &'static str) {
    options.map_sqlx_postgres_pool_opts(move |pool| {
        pool.after_connect(move |connection, _| {
            Box::pin(async move { Executor::execute(connection, statement).await.map(drop) })
        })
    });
}

pub(crate) fn postgres(url: &str, connections: u32, name: &str) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    let name = name.to_owned();
    options.map_sqlx_postgres_opts(move |options| options.application_name(&name));
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
