//! Each world has a database of its own.
use sea_orm::{ConnectionTrait, Database as SeaDatabase};
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone, Copy, Debug)]
pub enum Backend {
    Sqlite,
    Postgres,
}

pub struct Database {
    pub url: String,
    mails: tempfile::TempDir,
    folder: Option<tempfile::TempDir>,
    /// On PostgreSQL: where to drop which database.
    server: Option<(String, String)>,
}

impl Database {
    /// `None` when there is no PostgreSQL to test with; `tests/run` brings one.
    pub async fn new(backend: Backend) -> Option<Self> {
        match backend {
            Backend::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                let url = format!("sqlite://{}", folder.path().join("test.db").display());
                Some(Database {
                    url,
                    mails: tempfile::tempdir().unwrap(),
                    folder: Some(folder),
                    server: None,
                })
            }
            Backend::Postgres => {
                let Ok(server) = std::env::var("CALLBOARD_TEST_POSTGRES_URL") else {
                    eprintln!("SKIPPED: no PostgreSQL (CALLBOARD_TEST_POSTGRES_URL is not set; run `bash tests/run`)");
                    return None;
                };
                static NEXT: AtomicU32 = AtomicU32::new(0);
                let name = format!(
                    "callboard_{}_{}",
                    std::process::id(),
                    NEXT.fetch_add(1, Ordering::SeqCst)
                );
                execute(&server, &format!("CREATE DATABASE {name}")).await;
                let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
                Some(Database {
                    url,
                    mails: tempfile::tempdir().unwrap(),
                    folder: None,
                    server: Some((server, name)),
                })
            }
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

async fn execute(server: &str, statement: &str) {
    let connection = SeaDatabase::connect(server).await.unwrap();
    connection.execute_unprepared(statement).await.unwrap();
    connection.close().await.unwrap();
}
