//! Copies of a database, made beside whoever serves it, and where they may go.
use crate::{
    connection::Connection,
    error::{Error, Result},
};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DbBackend, QueryResult, Statement};
use std::path::Path;

/// A connection that makes no file and writes nothing.
async fn reader(file: &Path) -> Result<Connection> {
    let mut options = ConnectOptions::new(format!("sqlite://{}?mode=ro", file.display()));
    options.max_connections(1).sqlx_logging(false);
    Ok(Database::connect(options).await?.into())
}

/// Are there any, of whomever?
pub async fn has_tables(db: &Connection) -> Result<bool> {
    let backend = db.get_database_backend();
    let tables = match backend {
        DbBackend::Sqlite => "SELECT 1 FROM sqlite_master WHERE type = 'table' LIMIT 1",
        _ => "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() LIMIT 1",
    };
    let asked = Statement::from_string(backend, tables);
    Ok(db.query_one_raw(asked).await?.is_some())
}

/// Writes the database as it is at one moment into a new file. While it is written, the log of the database cannot be emptied.
pub async fn write(database: &Path, to: &Path) -> Result<()> {
    let db = reader(database).await?;
    let to = to.display().to_string();
    let copy = Statement::from_sql_and_values(DbBackend::Sqlite, "VACUUM INTO $1", [to.into()]);
    let written = db.execute_raw(copy).await;
    db.close().await;
    written.map(drop).map_err(Error::from)
}

/// Is it whole? Reads all of it. `Err`: what it lacks, in SQLite's words.
pub async fn check(file: &Path) -> Result<std::result::Result<(), String>> {
    let db = reader(file).await?;
    let found = faults(&db).await;
    db.close().await;
    Ok(match found?.as_slice() {
        [] => Ok(()),
        [first, rest @ ..] => Err(format!("{first} (and {} more)", rest.len())),
    })
}

async fn faults(db: &Connection) -> Result<Vec<String>> {
    let ask = async |text: &str| db.query_all_raw(Statement::from_string(DbBackend::Sqlite, text)).await;
    let word = |row: &QueryResult| row.try_get_by_index::<String>(0);
    let whole = ask("PRAGMA integrity_check(10)").await?;
    let mut faults: Vec<String> = whole.iter().map(word).collect::<std::result::Result<_, _>>()?;
    faults.retain(|fault| fault != "ok");
    for row in ask("SELECT \"table\" FROM pragma_foreign_key_check LIMIT 10").await? {
        faults.push(format!("a row of `{}` names a row that is not there", word(&row)?));
    }
    Ok(faults)
}
