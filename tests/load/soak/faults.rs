//! What goes wrong around a service that is soaked: receivers that die and hang, and a database that stalls.
use crate::rooms::pause;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, DbErr, Statement};
use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// A receiver that is there and gone by turns, and fails every other request while it is there.
pub struct Dying {
    pub url: String,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How long it is there, and gone.
const TURN: Duration = Duration::from_secs(5);

impl Dying {
    pub fn start() -> Self {
        let first = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = first.local_addr().expect("its address");
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let thread = thread::spawn(move || {
            let mut listener = Some(first);
            while !is_over.load(Ordering::Relaxed) {
                if let Some(listener) = listener.take() {
                    receive(&listener, &is_over);
                }
                thread::sleep(TURN);
                // Somebody may have taken the port; then it stays gone for one more turn.
                listener = TcpListener::bind(address).ok();
            }
        });
        Dying {
            url: url(address),
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Dying {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/hook")
}

/// For one turn.
fn receive(listener: &TcpListener, is_over: &AtomicBool) {
    listener.set_nonblocking(true).expect("a socket");
    let (until, mut well) = (Instant::now() + TURN, false);
    while Instant::now() < until && !is_over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                well = !well;
                // Whoever goes away meanwhile is not missed.
                let _ = answer(stream, if well { "200 OK" } else { "500 Broken" });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(20)),
            Err(_) => return,
        }
    }
}

fn answer(mut stream: TcpStream, status: &str) -> std::io::Result<()> {
    /// Of a request.
    const MOST: usize = 1 << 20;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    while missing(&request) && request.len() < MOST {
        match stream.read(&mut part)? {
            0 => break,
            read => request.extend_from_slice(part.get(..read).unwrap_or_default()),
        }
    }
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

/// Is there more to come of it?
fn missing(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return true;
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    // The text may be longer than its bytes, where they were no text.
    request.len() < head.len() + 4 + length
}

/// A receiver that takes connections and never says a word.
pub struct Hanging {
    pub url: String,
    _listener: TcpListener,
}

impl Hanging {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        Hanging {
            url: url(listener.local_addr().expect("its address")),
            _listener: listener,
        }
    }
}

/// Somebody beside the service at its database.
pub struct Outside(DatabaseConnection);

impl Outside {
    pub async fn open(database: &str) -> Self {
        let url = match database.starts_with("sqlite") {
            true => format!("{database}?mode=rw"),
            false => database.to_owned(),
        };
        let mut options = ConnectOptions::new(url);
        // One, so that statements one after another are one transaction.
        options.max_connections(1).sqlx_logging(false);
        let db = Database::connect(options).await.expect("the database");
        if db.get_database_backend() == DbBackend::Sqlite {
            db.execute_unprepared("PRAGMA busy_timeout = 20000")
                .await
                .expect("a setting");
        }
        Outside(db)
    }

    /// Nobody else writes meanwhile: all of SQLite, or the table of sessions of PostgreSQL, which then cannot be read either.
    pub async fn keep_writers_out(&self, duration: Duration) -> Result<(), DbErr> {
        match self.0.get_database_backend() {
            DbBackend::Sqlite => self.hold(&["BEGIN IMMEDIATE"], duration).await,
            _ => {
                let lock = "LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE";
                self.hold(&["BEGIN", lock], duration).await
            }
        }
    }

    /// What was there at its begin cannot be cleared away meanwhile.
    pub async fn read_for_long(&self, duration: Duration) -> Result<(), DbErr> {
        let begin = match self.0.get_database_backend() {
            DbBackend::Sqlite => "BEGIN",
            _ => "BEGIN ISOLATION LEVEL REPEATABLE READ",
        };
        self.hold(&[begin, "SELECT COUNT(*) FROM campaigns"], duration).await
    }

    async fn hold(&self, statements: &[&str], duration: Duration) -> Result<(), DbErr> {
        for statement in statements {
            if let Err(error) = self.0.execute_unprepared(statement).await {
                let _ = self.0.execute_unprepared("ROLLBACK").await;
                return Err(error);
            }
        }
        pause(duration).await;
        self.0.execute_unprepared("ROLLBACK").await.map(drop)
    }

    pub async fn number(&self, query: &str) -> Option<i64> {
        let statement = Statement::from_string(self.0.get_database_backend(), query);
        let row = self.0.query_one_raw(statement).await.ok()??;
        row.try_get_by_index(0).ok()
    }

    /// In MiB, with the log that is not merged yet.
    pub async fn size(&self, database: &str) -> Option<f64> {
        let bytes = match database.strip_prefix("sqlite://") {
            Some(file) => ["", "-wal"]
                .iter()
                .filter_map(|end| std::fs::metadata(format!("{file}{end}")).ok())
                .map(|file| file.len() as f64)
                .sum(),
            None => self.number("SELECT pg_database_size(current_database())").await? as f64,
        };
        Some(bytes / 1024.0 / 1024.0)
    }
}

/// A new database on the server that tests use; answers its URL.
pub async fn new_postgres(server: &str) -> String {
    let name = format!("callboard_soak_{}", std::process::id());
    let (base, _) = server.rsplit_once('/').expect("a URL with a database");
    on_server(server, &format!("CREATE DATABASE {name}")).await;
    format!("{base}/{name}")
}

pub async fn drop_postgres(server: &str) {
    let name = format!("callboard_soak_{}", std::process::id());
    on_server(server, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
}

async fn on_server(server: &str, statement: &str) {
    let db = Database::connect(server).await.expect("the PostgreSQL server");
    db.execute_unprepared(statement)
        .await
        .expect("its leave to make databases");
    let _ = db.close().await;
}
