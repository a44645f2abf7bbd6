//! What went wrong with the database, in the database's words or in ours. The libraries between have their own, with
//! prefixes and types that tell an operator nothing: those are not shown.
use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, sqlx};
use std::io::ErrorKind;

/// One sentence without its end, fit to follow "cannot open FILE: ".
pub fn words(error: &DbErr) -> String {
    match error {
        // Only we ourselves make these, and say in them what to do.
        DbErr::Migration(ours) | DbErr::Custom(ours) => ours.clone(),
        DbErr::ConnectionAcquire(ConnAcquireErr::Timeout) => NOT_IN_TIME.into(),
        DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed) => CLOSED.into(),
        DbErr::Conn(RuntimeErr::SqlxError(cause))
        | DbErr::Exec(RuntimeErr::SqlxError(cause))
        | DbErr::Query(RuntimeErr::SqlxError(cause)) => driver_words(cause),
        DbErr::Conn(RuntimeErr::Internal(detail)) => format!("no connection can be made ({detail})"),
        other => unexpected(other),
    }
}

/// The same of an error that comes right from the driver.
pub fn driver_words(error: &sqlx::Error) -> String {
    use sqlx::Error::*;
    match error {
        // PostgreSQL's or SQLite's own. Their manuals list the codes.
        Database(error) => match error.code() {
            Some(code) => format!("{} (code {code})", error.message()),
            None => error.message().to_owned(),
        },
        Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused => "nothing listens at its address (connection refused)".into(),
            ErrorKind::TimedOut => "it does not answer (timed out)".into(),
            _ => {
                let said = error.to_string();
                // The system's number tells nobody anything.
                format!(
                    "the connection failed: {}",
                    said.split(" (os error").next().unwrap_or(&said)
                )
            }
        },
        Tls(why) => format!("the server takes no TLS connection of ours: {why}"),
        Protocol(why) => format!("the server's answer is not PostgreSQL's protocol ({why})"),
        Configuration(why) => format!("the database URL cannot be used ({why})"),
        PoolTimedOut => NOT_IN_TIME.into(),
        PoolClosed => CLOSED.into(),
        WorkerCrashed => "the thread that speaks with it has ended".into(),
        other => unexpected(other),
    }
}

const NOT_IN_TIME: &str = "it does not answer in time, or all connections to it are busy";
const CLOSED: &str = "the connections to it are closed";

/// A fault of ours, or a row that somebody else has written: the detail is for whoever mends it.
fn unexpected(error: &dyn std::fmt::Display) -> String {
    format!("it gave something that was not expected ({error})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io, sync::Arc};

    fn of_driver(error: sqlx::Error) -> RuntimeErr {
        RuntimeErr::SqlxError(Arc::new(error))
    }

    #[test]
    fn no_library_speaks() {
        let refused = || sqlx::Error::Io(ErrorKind::ConnectionRefused.into());
        let nobody = "nothing listens at its address (connection refused)";
        let strange = sqlx::Error::Io(io::Error::other("broken (os error 5)"));
        for (error, expected) in [
            (DbErr::Migration("run that version".into()), "run that version"),
            (DbErr::Custom("a transaction is open".into()), "a transaction is open"),
            (DbErr::ConnectionAcquire(ConnAcquireErr::Timeout), NOT_IN_TIME),
            (DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed), CLOSED),
            (DbErr::Conn(of_driver(refused())), nobody),
            (DbErr::Query(of_driver(refused())), nobody),
            (DbErr::Query(of_driver(strange)), "the connection failed: broken"),
            (DbErr::Exec(of_driver(sqlx::Error::PoolTimedOut)), NOT_IN_TIME),
            (DbErr::Exec(of_driver(sqlx::Error::PoolClosed)), CLOSED),
        ] {
            assert_eq!(words(&error), expected);
        }
    }

    /// What nobody foresaw keeps its detail, behind words of ours.
    #[test]
    fn what_was_not_expected_says_so() {
        let said = words(&DbErr::Type("A null value was encountered".into()));
        assert!(said.starts_with("it gave something that was not expected ("), "{said}");
        assert!(said.contains("A null value"), "{said}");
        let said = words(&DbErr::Query(of_driver(sqlx::Error::RowNotFound)));
        assert!(said.starts_with("it gave something that was not expected ("), "{said}");
    }
}
