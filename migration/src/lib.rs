//! The schema, one file per change; what a released file makes never changes. There is no way back but to a copy of the database.
//!
//! Which of them a database has had stands in its table `seaql_migrations`, by that name since the first release.
mod columns;
mod schema;
mod steps;

use futures_util::future::BoxFuture;
use schema::Schema;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, SqliteTransactionMode, Statement,
    TransactionOptions, TransactionTrait,
};
use std::{
    collections::BTreeSet,
    time::{SystemTime, UNIX_EPOCH},
};

struct Migration {
    name: &'static str,
    up: for<'a> fn(&'a Schema<'a>) -> BoxFuture<'a, Result<(), DbErr>>,
}

macro_rules! migrations { ($($name:ident)*) => {
    $(mod $name;)*

    /// In the order in which they are made.
    const ALL: &[Migration] = &[$(Migration {
        name: stringify!($name),
        up: |schema| Box::pin($name::up(schema)),
    }),*];
} }

migrations! {
    m2026_11_20_000001_initial
    m2026_11_21_000002_calling_rules
    m2026_11_21_000003_the_call
    m2026_11_22_000004_messages
    m2026_11_22_000007_trunks
    m2026_11_22_000005_topups
    m2026_11_22_000006_voices
    m2026_11_22_000008_credits
    m2026_11_22_000009_rooms
    m2026_11_22_000014_access
    m2026_11_22_000017_numbers
    m2026_11_23_000019_imports
    m2026_11_23_000020_reviews
    m2026_11_23_000021_refunds
    m2026_11_26_000022_latency
    m2026_11_27_000023_telephony
    m2026_11_27_000024_trunks
    m2026_11_27_000025_key_limits
    m2026_11_28_000026_console
    m2026_11_28_000027_erasure
    m2026_11_28_000028_nodes
    m2026_11_29_000029_retention
    m2026_11_30_000030_law
    m2026_11_30_000031_consents
    m2026_11_30_000032_registers
    m2026_11_30_000033_attempt_records
    m2026_11_30_000034_abandonment
    m2026_11_30_000035_people
    m2026_11_30_000036_voice_consent
    m2026_11_30_000037_openings
    m2026_11_30_000038_skip_rules
    m2026_11_30_000039_blanked
    m2026_11_30_000041_register_answers
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS \"seaql_migrations\" ( \"version\" varchar NOT NULL PRIMARY KEY, \
                     \"applied_at\" bigint NOT NULL )";

/// Makes all that the database has not had, each in a transaction of its own.
pub async fn up(db: &DatabaseConnection) -> Result<(), DbErr> {
    migrate(db, None).await
}

/// The same, but only those before the one of that name: for tests of what it makes of what there is.
pub async fn up_to(db: &DatabaseConnection, name: &str) -> Result<(), DbErr> {
    migrate(db, Some(name)).await
}

/// Those that the database has not had yet. Writes nothing, so that a role which may only read can ask.
pub async fn pending(db: &DatabaseConnection) -> Result<Vec<&'static str>, DbErr> {
    let applied = if has_table(db).await? {
        applied(db).await?
    } else {
        BTreeSet::new()
    };
    check_known(&applied)?;
    let names = ALL.iter().map(|migration| migration.name);
    Ok(names.filter(|name| !applied.contains(*name)).collect())
}

/// Those that the database has had, by name.
pub async fn had(db: &DatabaseConnection) -> Result<Vec<String>, DbErr> {
    match has_table(db).await? {
        true => Ok(applied(db).await?.into_iter().collect()),
        false => Ok(Vec::new()),
    }
}

/// Notes that a database has had these: its tables came from elsewhere.
pub async fn note(db: &impl ConnectionTrait, names: &[String]) -> Result<(), DbErr> {
    for name in names {
        note_one(db, name).await?;
    }
    Ok(())
}

/// Does this version know all of them?
pub fn knows(names: &[String]) -> Result<(), DbErr> {
    check_known(&names.iter().cloned().collect())
}

async fn migrate(db: &DatabaseConnection, before: Option<&str>) -> Result<(), DbErr> {
    if pending(db).await?.is_empty() {
        return Ok(());
    }
    if let Err(error) = db.execute_unprepared(TABLE).await
        // Another process that makes it at this moment was waited for.
        && !has_table(db).await?
    {
        return Err(error);
    }
    for migration in ALL {
        if before == Some(migration.name) {
            break;
        }
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..Default::default()
        };
        let transaction = db.begin_with_options(options).await?;
        let is_new = make(&transaction, migration).await?;
        transaction.commit().await?;
        if is_new {
            tracing::info!(migration = migration.name, "the database's schema was changed");
        }
    }
    Ok(())
}

/// Makes one unless it is there: another process may have been at it a moment ago, and is waited for. Says whether it made it.
async fn make(db: &DatabaseTransaction, migration: &Migration) -> Result<bool, DbErr> {
    let backend = db.get_database_backend();
    if backend == DbBackend::Postgres {
        db.execute_unprepared("LOCK TABLE \"seaql_migrations\" IN EXCLUSIVE MODE")
            .await?;
    }
    if applied(db).await?.contains(migration.name) {
        return Ok(false);
    }
    (migration.up)(&Schema(db)).await?;
    note_one(db, migration.name).await?;
    Ok(true)
}

async fn note_one(db: &impl ConnectionTrait, name: &str) -> Result<(), DbErr> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let values = [name.into(), i64::try_from(now).unwrap_or(i64::MAX).into()];
    let text = "INSERT INTO \"seaql_migrations\" (\"version\", \"applied_at\") VALUES ($1, $2)";
    let noted = Statement::from_sql_and_values(db.get_database_backend(), text, values);
    db.execute_raw(noted).await.map(drop)
}

/// A database that a newer version has changed is not touched by an older one.
fn check_known(applied: &BTreeSet<String>) -> Result<(), DbErr> {
    let known = |name: &&String| ALL.iter().any(|migration| migration.name == **name);
    match applied.iter().find(|name| !known(name)) {
        Some(name) => Err(DbErr::Migration(format!(
            "a newer version of Callboard has changed this database (`{name}`); run that version, or restore a copy"
        ))),
        None => Ok(()),
    }
}

async fn has_table(db: &DatabaseConnection) -> Result<bool, DbErr> {
    let text = match db.get_database_backend() {
        DbBackend::Sqlite => "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'seaql_migrations'",
        // Of our own schema: another one on the search path may be another program's.
        _ => {
            "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'seaql_migrations'"
        }
    };
    let asked = Statement::from_string(db.get_database_backend(), text);
    Ok(db.query_one_raw(asked).await?.is_some())
}

async fn applied(db: &impl ConnectionTrait) -> Result<BTreeSet<String>, DbErr> {
    let asked = Statement::from_string(
        db.get_database_backend(),
        "SELECT \"version\" FROM \"seaql_migrations\"",
    );
    let rows = db.query_all_raw(asked).await?;
    rows.iter().map(|row| row.try_get_by_index(0)).collect()
}
