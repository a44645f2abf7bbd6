//! The database, looked at without migrating it.
use super::Findings;
use crate::{error::CannotStart, settings::Settings};
use actors::holds::ClockStatus;
use entities::{
    Error,
    connection::Connection,
    copy,
    db::Location,
    meta, restored, server,
    sip_trunk::{self, Model as Trunk},
    workspace_lease::Share,
};
use runtime::{clock::Clock, keyring::purpose};
use sea_orm::{ConnectOptions, Database, DatabaseConnection};
use std::{path::Path, time::Duration};

/// Trunks that are asked, at most.
const TRUNKS: u64 = 50;
/// The oldest that is supported.
const OLDEST_POSTGRES: i32 = 13;
/// Two clocks may differ by so much.
const CLOCKS: i64 = 2_000;

const ADVICE: &str = "name the right one in database_url, and see that it is there and may be opened";

/// Answers the trunks that are stored.
pub(super) async fn look(settings: &Settings, found: &mut Findings) -> Vec<Trunk> {
    let Ok(location) = settings.location() else {
        return Vec::new();
    };
    if let Location::Sqlite(file) = &location
        && !file.exists()
    {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder.filter(|folder| !folder.is_dir()) {
            Some(folder) => found.failure(
                "database",
                format!("the folder {} is not there", folder.display()),
                "make it, for the service's user, or name another in database_url",
            ),
            None => found.ok("database", format!("{} is made by the first start", file.display())),
        }
        return Vec::new();
    }
    let mut options = ConnectOptions::new(match &location {
        // Whoever reads a file without its log makes one, and its index, and leaves both.
        Location::Sqlite(file) if !has_log(file) => format!("sqlite://{}?mode=ro&immutable=true", file.display()),
        Location::Sqlite(file) => format!("sqlite://{}?mode=ro", file.display()),
        Location::Postgres(url) => url.clone(),
    });
    options
        .max_connections(1)
        .sqlx_logging(false)
        .connect_timeout(Duration::from_secs(10));
    let pool = match Database::connect(options).await {
        Ok(pool) => pool,
        Err(error) => {
            found.failure(
                "database",
                CannotStart::database("open", &location, &error).to_string(),
                ADVICE,
            );
            return Vec::new();
        }
    };
    let db = Connection::from(pool.clone());
    let read = match has_schema(&pool, &db, &location, found).await {
        true => rows(settings, &db, found).await,
        false => Ok(Vec::new()),
    };
    db.close().await;
    read.unwrap_or_else(|error| {
        found.failure("database", error.to_string(), ADVICE);
        Vec::new()
    })
}

/// A service is at work with it, or was killed.
fn has_log(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    Path::new(&log).exists()
}

/// Is it one that this version reads?
async fn has_schema(pool: &DatabaseConnection, db: &Connection, location: &Location, found: &mut Findings) -> bool {
    let shown = location.shown();
    if migration::had(pool).await.is_ok_and(|had| had.is_empty()) {
        match copy::has_tables(db).await {
            Ok(false) => found.ok(
                "database",
                format!("{shown} is empty: the first start makes its tables"),
            ),
            _ => found.failure(
                "database",
                format!("{shown} has tables, and not those of a whole Callboard database"),
                "a restore that broke off leaves such a one: empty it, or name another",
            ),
        }
        return false;
    }
    // What it cannot read is said below.
    if restored::is_under_way(db).await.unwrap_or(false) {
        found.failure(
            "database",
            "a backup is being put into it, or that broke off",
            "wait for `callboard restore`, or empty the database and restore again",
        );
    }
    match migration::pending(pool).await {
        Err(error) => {
            found.failure(
                "database",
                CannotStart::database("read", location, &error).to_string(),
                "run the version that it belongs to, or a newer one",
            );
            false
        }
        Ok(pending) if pending.is_empty() => {
            found.ok("database", format!("{shown} is up to date"));
            true
        }
        Ok(pending) => {
            let steps = pending.len();
            found.ok(
                "database",
                format!("{shown}: the next start changes its schema ({steps} steps); back it up first"),
            );
            false
        }
    }
}

async fn rows(settings: &Settings, db: &Connection, found: &mut Findings) -> Result<Vec<Trunk>, Error> {
    if let Some(server) = server::ask(db).await? {
        look_at_server(&server, Clock::wall().now().millis(), found);
    }
    match (settings.keyring_so_far(), meta::get(db, meta::SECRET_CHECK).await?) {
        // Said with the settings.
        (Err(_), _) => {}
        (Ok(_), None) => found.ok(
            "secret key",
            "nothing is sealed yet: keep a copy of the key before something is",
        ),
        (Ok(Some(keyring)), Some(sealed)) if keyring.open(purpose::SECRET_CHECK, &sealed).is_ok() => {
            found.ok("secret key", format!("opens what is stored (key {})", keyring.key_id()));
        }
        (Ok(_), Some(_)) => found.failure(
            "secret key",
            "does not open what is stored",
            "set secret_key to the one that was used, or list it in secret_keys_previous",
        ),
    }
    if let Some(since) = meta::get(db, meta::DISPATCH_PAUSED).await? {
        let advice = match restored::opt_outs_unknown_since(db).await? {
            None => "`callboard dispatch resume` ends it".to_owned(),
            Some(backup) => format!(
                "enter who has opted out or taken a consent back since the backup of {backup}; then `callboard dispatch resume \
                 --opt-outs-entered` ends it"
            ),
        };
        found.warning("dispatch", format!("is paused since {since}: nothing leaves"), advice);
    }
    if let Some(status) = ClockStatus::stored(db).await? {
        let accepted = meta::get(db, meta::CLOCK_ACCEPTED).await?;
        look_at_clock(&status, accepted.as_deref(), found);
    }
    let mut trunks = sip_trunk::all_after(db, Share::Whole, None, TRUNKS + 1).await?;
    if trunks.len() as u64 > TRUNKS {
        trunks.pop();
        found.ok("trunks", format!("only the first {TRUNKS} are asked"));
    }
    trunks.retain(|trunk| !trunk.definition.paused);
    Ok(trunks)
}

/// As the service has noted it last: it holds everything as a pause does.
fn look_at_clock(status: &ClockStatus, accepted: Option<&str>, found: &mut Findings) {
    let Some(doubt) = status.doubt else { return };
    if accepted == Some(&*doubt.since.to_string()) {
        return;
    }
    let (seconds, way) = (
        doubt.step_ms.abs() / 1000,
        if doubt.step_ms < 0 { "back" } else { "ahead" },
    );
    found.warning(
        "dispatch",
        format!(
            "is held since {}, when the service's clock was set {way} by {seconds} s: nothing leaves until {}",
            doubt.since, doubt.believed_at
        ),
        "see `callboard clock show`; if the clock is right, `callboard clock accept` says so",
    );
}

fn look_at_server(server: &server::Server, now: i64, found: &mut Findings) {
    if server.major < OLDEST_POSTGRES {
        found.failure(
            "PostgreSQL",
            format!("version {}: not supported", server.major),
            format!("upgrade it to {OLDEST_POSTGRES} or newer"),
        );
    }
    if !server.fsync || !server.synchronous_commit {
        let which = if server.fsync { "synchronous_commit" } else { "fsync" };
        found.failure(
            "PostgreSQL",
            format!("{which} is off: what was acknowledged may be lost, and somebody called twice"),
            format!("turn {which} on"),
        );
    } else {
        found.ok(
            "PostgreSQL",
            format!("version {}, keeps what it acknowledges", server.major),
        );
    }
    let apart = now - server.now.millis();
    match apart.abs() > CLOCKS {
        true => found.warning(
            "clock",
            format!("this machine's is {apart} ms ahead of the database server's"),
            "let NTP keep both",
        ),
        false => found.ok("clock", "agrees with the database server's"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Verdict;
    use entities::values::Moment;

    #[test]
    fn a_server_that_forgets_is_a_failure() {
        let look = |server: server::Server| {
            let mut found = Findings::default();
            look_at_server(&server, 10_000, &mut found);
            found.0.into_iter().map(|finding| finding.verdict).collect::<Vec<_>>()
        };
        let good = server::Server {
            major: 15,
            fsync: true,
            synchronous_commit: true,
            now: Moment::from_millis(9_000),
        };
        use Verdict::{Failure, Ok, Warning};
        assert_eq!(look(good.clone()), [Ok, Ok]);
        assert_eq!(
            look(server::Server {
                fsync: false,
                ..good.clone()
            }),
            [Failure, Ok]
        );
        let forgetful = server::Server {
            synchronous_commit: false,
            ..good.clone()
        };
        assert_eq!(look(forgetful), [Failure, Ok]);
        assert_eq!(
            look(server::Server {
                major: 12,
                ..good.clone()
            }),
            [Failure, Ok, Ok]
        );
        let late = server::Server {
            now: Moment::from_millis(7_999),
            ..good
        };
        assert_eq!(look(late), [Ok, Warning]);
    }
}
