//! What the operator's commands have in common, and the small ones. They work on the database itself, beside a running `serve`.
use crate::{
    error::CannotStart,
    http::openapi as document,
    settings::{DEFAULTS, Settings},
};
use entities::{Error, changes::Changes, db::Db};
use runtime::{clock::Clock, ids::Ids};
use serde_json::json;
use std::{
    io::{IsTerminal, Read},
    path::PathBuf,
};
use zeroize::Zeroizing;

impl From<Error> for CannotStart {
    fn from(error: Error) -> Self {
        CannotStart(match error {
            Error::NotFound(kind) => format!("no such {kind}"),
            other => other.to_string(),
        })
    }
}

/// The database, migrated, for a command.
pub(super) async fn open(config: Option<PathBuf>) -> Result<(Settings, Db, Clock, Ids), CannotStart> {
    let settings = Settings::load(config, &[])?;
    let location = settings.location()?;
    let opened = Db::open(&location).await;
    let db = opened.map_err(|error| CannotStart::database("open", &location, &error))?;
    let migrated = async { migration::up(db.write.pool()?).await }.await;
    migrated.map_err(|error| CannotStart::database("migrate", &location, &error))?;
    let clock = Clock::wall();
    Ok((settings, db, clock.clone(), Ids::new(clock)))
}

pub(super) async fn write(db: &Db, changes: Changes) -> Result<(), Error> {
    let transaction = db.begin().await?;
    changes.apply(&transaction, Clock::wall().times()).await?;
    Ok(transaction.commit().await?)
}

pub(super) fn print(value: &impl serde::Serialize) {
    // Views are plain structs: they always serialise.
    println!("{}", serde_json::to_string_pretty(value).unwrap_or_default());
}

pub(super) fn password_from_stdin() -> Result<Zeroizing<String>, CannotStart> {
    if std::io::stdin().is_terminal() {
        eprint!("Password (at least 12 characters; it is shown as you type, better pipe it): ");
    }
    let mut password = Zeroizing::new(String::new());
    // The first line: what a person types or a script pipes.
    std::io::stdin()
        .take(4096)
        .read_to_string(&mut password)
        .map_err(|error| CannotStart(format!("reading the password: {error}")))?;
    Ok(Zeroizing::new(password.lines().next().unwrap_or_default().to_owned()))
}

pub async fn migrate(config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
    let (settings, db, _, _) = open(config).await?;
    db.close().await;
    let database = settings.location()?.shown();
    if json {
        print(&json!({ "database": database, "migrated": true }));
    } else {
        println!("{database} is up to date");
    }
    Ok(())
}

pub fn config(config: Option<PathBuf>, json: bool, defaults: bool) -> Result<(), CannotStart> {
    if defaults {
        print!("{DEFAULTS}");
        return Ok(());
    }
    let settings = Settings::load(config, &[])?.redacted();
    if json {
        print(&settings);
    } else {
        let value = serde_json::to_value(&settings).unwrap_or_default();
        for (name, value) in value.as_object().into_iter().flatten() {
            println!("{name} = {value}");
        }
    }
    Ok(())
}

pub fn openapi() -> Result<(), CannotStart> {
    print(&document::document());
    Ok(())
}
