//! What the program says of a database's schema, and two first starts at once.
use super::{Place, assert_in_our_words, on, stderr};
use crate::world::Backend;
use entities::db::Location;
use sea_orm::{ConnectionTrait, Database};
use std::process::Stdio;

fn of_a_newer_version(backend: Backend) {
    on(backend, async |place: Place| {
        assert!(place.run(&["migrate"]).status.success());
        let outside = Database::connect(&place.database.url).await.unwrap();
        let later = "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m2999_01_01_000001_later', 0)";
        outside.execute_unprepared(later).await.unwrap();
        outside.close().await.unwrap();
        let shown = Location::parse(&place.database.url).unwrap().shown();
        for (command, what) in [
            (&["serve"][..], "migrate"),
            (&["migrate"][..], "migrate"),
            (&["audit", "dump"][..], "read"),
        ] {
            let output = place.run(command);
            assert!(!output.status.success() && output.stdout.is_empty(), "{command:?}");
            let said = stderr(&output);
            assert_eq!(
                said.lines().last().unwrap_or_default(),
                format!(
                    "callboard: database_url: cannot {what} {shown}: a newer version of Callboard has changed this database \
                     (`m2999_01_01_000001_later`); run that version, or restore a copy"
                ),
                "{command:?}"
            );
        }
    });
}
#[test]
fn a_database_of_a_newer_version_is_refused_with_what_to_do_on_sqlite() {
    of_a_newer_version(Backend::Sqlite);
}
#[test]
fn a_database_of_a_newer_version_is_refused_with_what_to_do_on_postgres() {
    of_a_newer_version(Backend::Postgres);
}

/// What the database itself says is said, and nothing of the libraries between.
#[test]
fn a_database_that_is_not_there_is_named() {
    on(Backend::Sqlite, async |place: Place| {
        for command in [&["migrate"][..], &["audit", "dump"]] {
            let missing = "sqlite:///nowhere/at/all.db";
            let mut asked = place.command(command);
            let output = asked.env("CALLBOARD_DATABASE_URL", missing).output().unwrap();
            let said = stderr(&output);
            assert_eq!(
                said.trim_end(),
                "callboard: database_url: cannot open /nowhere/at/all.db: unable to open database file (code 14)",
                "{command:?}"
            );
            assert_in_our_words(&said);
        }
    });
}

fn two_at_once(backend: Backend) {
    on(backend, async |place: Place| {
        let started = [0, 1].map(|_| {
            let mut command = place.command(&["--json", "migrate"]);
            let streams = command.stdin(Stdio::null()).stdout(Stdio::piped());
            streams.stderr(Stdio::piped()).spawn().unwrap()
        });
        for child in started {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
        }
        assert!(place.run(&["audit", "dump"]).status.success(), "the schema is whole");
    });
}
#[test]
fn two_first_commands_at_once_both_succeed_on_sqlite() {
    two_at_once(Backend::Sqlite);
}
#[test]
fn two_first_commands_at_once_both_succeed_on_postgres() {
    two_at_once(Backend::Postgres);
}

/// Who reads the log of an upgrade finds what it has done to the database.
#[test]
fn each_change_of_the_schema_is_logged() {
    on(Backend::Sqlite, async |place: Place| {
        let mut starting = place.start(&[("CALLBOARD_LOG", "info")]);
        starting.until("m2026_11_20_000001_initial");
        starting.until("m2026_11_23_000021_refunds");
        let line = starting
            .said
            .lines()
            .find(|line| line.contains("000001_initial"))
            .unwrap();
        assert!(
            line.contains("INFO") && line.contains("the database's schema was changed"),
            "{line}"
        );
        let mut serving = starting.ready();
        serving.kill().unwrap();
        serving.wait().unwrap();
    });
}
