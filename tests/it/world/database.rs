//! Each world has a database of its own, with a schema that was made once for all of them.
use entities::db::{Db, Location};
use sea_orm::{ConnectionTrait, Database as SeaDatabase};
use std::{
    env, fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};
use tempfile::TempDir;
use tokio::sync::OnceCell;

#[derive(Clone, Copy, Debug)]
pub enum Backend {
    Sqlite,
    Postgres,
}

pub struct Database {
    pub url: String,
    mails: TempDir,
    folder: Option<TempDir>,
    /// On PostgreSQL: where to drop which database.
    server: Option<(String, String)>,
}

impl Database {
    /// Empty: whoever opens it first makes its schema. `None` when there is no PostgreSQL to test with; `tests/run` brings one.
    pub async fn new(backend: Backend) -> Option<Self> {
        match backend {
            Backend::Sqlite => Some(Self::file(folder())),
            Backend::Postgres => Some(Self::on_server(server()?, "").await),
        }
    }

    /// The same on a disk, for tests that kill the service: a commit takes its time there, so that some kills fall into one.
    pub async fn on_disk(backend: Backend) -> Option<Self> {
        match backend {
            Backend::Sqlite => Some(Self::file(tempfile::tempdir().unwrap())),
            Backend::Postgres => {
                let server = env::var("CALLBOARD_TEST_POSTGRES_DISK_URL").ok().or_else(server)?;
                Some(Self::on_server(server, "").await)
            }
        }
    }

    /// With the schema as the migrations make it, and nothing else: a copy. On PostgreSQL alone it takes 0.16 s of computing to make
    /// it anew, for each of some five hundred tests.
    pub async fn migrated(backend: Backend) -> Option<Self> {
        match backend {
            Backend::Sqlite => {
                static BYTES: OnceCell<Vec<u8>> = OnceCell::const_new();
                let folder = folder();
                let bytes = BYTES.get_or_init(migrated_file).await;
                fs::write(file_in(&folder), bytes).unwrap();
                Some(Self::file(folder))
            }
            Backend::Postgres => {
                static NAME: OnceCell<String> = OnceCell::const_new();
                let server = server()?;
                let template = NAME.get_or_init(|| migrated_database(&server)).await;
                Some(Self::on_server(server.clone(), &format!("TEMPLATE {template}")).await)
            }
        }
    }

    fn file(folder: TempDir) -> Self {
        Database {
            url: format!("sqlite://{}", file_in(&folder).display()),
            mails: self::folder(),
            folder: Some(folder),
            server: None,
        }
    }

    async fn on_server(server: String, options: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "callboard_{}_{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::SeqCst)
        );
        execute(&server, &format!("CREATE DATABASE {name} {options}")).await;
        Database {
            url: url_of(&server, &name),
            mails: folder(),
            folder: None,
            server: Some((server, name)),
        }
    }

    /// Where `--dev` writes e-mails.
    pub fn mail_folder(&self) -> String {
        self.mails.path().display().to_string()
    }

    pub fn recordings_folder(&self) -> String {
        self.mails.path().join("recordings").display().to_string()
    }

    pub fn spool_folder(&self) -> String {
        self.mails.path().join("spool").display().to_string()
    }

    pub async fn drop(&mut self) {
        self.folder.take();
        if let Some((server, name)) = self.server.take() {
            execute(&server, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
        }
    }
}

/// In memory where `tests/run` has found room for it.
pub(super) fn folder() -> TempDir {
    match env::var_os("CALLBOARD_TEST_MEMORY") {
        Some(memory) => tempfile::tempdir_in(memory).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

fn file_in(folder: &TempDir) -> PathBuf {
    folder.path().join("test.db")
}

/// The server to test with, as its URL.
fn server() -> Option<String> {
    let server = env::var("CALLBOARD_TEST_POSTGRES_URL").ok();
    if server.is_none() {
        eprintln!("SKIPPED: no PostgreSQL (CALLBOARD_TEST_POSTGRES_URL is not set; run `bash tests/run`)");
    }
    server
}

fn url_of(server: &str, name: &str) -> String {
    format!("{}/{name}", server.rsplit_once('/').unwrap().0)
}

/// What stands in a file that has the schema.
async fn migrated_file() -> Vec<u8> {
    let folder = folder();
    let path = file_in(&folder);
    migrate(&Location::Sqlite(path.clone())).await;
    let log = fs::metadata(format!("{}-wal", path.display()));
    assert!(
        log.map_or(0, |log| log.len()) == 0,
        "whoever closes it last moves all of it into the file"
    );
    fs::read(path).unwrap()
}

/// The name of a database that has the schema. It stays on the server, which ends with the tests.
async fn migrated_database(server: &str) -> String {
    let name = format!("callboard_{}_schema", std::process::id());
    execute(server, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
    execute(server, &format!("CREATE DATABASE {name}")).await;
    migrate(&Location::Postgres(url_of(server, &name))).await;
    name
}

async fn migrate(location: &Location) {
    let db = Db::open(location).await.unwrap();
    migration::up(db.write.pool().unwrap()).await.unwrap();
    db.close().await;
}

async fn execute(server: &str, statement: &str) {
    let connection = SeaDatabase::connect(server).await.unwrap();
    connection.execute_unprepared(statement).await.unwrap();
    connection.close().await.unwrap();
}
