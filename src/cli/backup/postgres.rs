//! PostgreSQL's own programs make and read the copy of its database.
use crate::error::CannotStart;
use std::{
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
};
use url::Url;

/// Filled in after all else was: until then no service takes the database for a whole one.
const LAST: &str = "seaql_migrations";

/// Writes the database as it is at one moment.
pub fn dump(url: &str, to: &Path) -> Result<(), CannotStart> {
    let mut command = program("pg_dump", url)?;
    command.args(["--format=custom", "--no-owner", "--no-privileges", "--file"]);
    run(command.arg(to))
}

/// Can all of it be read?
pub fn check(file: &Path) -> Result<(), CannotStart> {
    let mut command = Command::new("pg_restore");
    run(command.args(["--file", "/dev/null"]).arg(file))
}

/// Puts all of it, or nothing, into a database that has no tables.
pub fn restore(file: &Path, url: &str, folder: &Path) -> Result<(), CannotStart> {
    let listed = Command::new("pg_restore").arg("--list").arg(file).output();
    let listed = listed.map_err(|error| cannot_run("pg_restore", &error))?;
    if !listed.status.success() {
        return Err(failed("pg_restore", &listed.stderr));
    }
    let list = folder.join("list");
    write_list(&list, &listed.stdout)
        .map_err(|error| CannotStart(format!("cannot write {}: {error}", list.display())))?;
    let mut command = program("pg_restore", url)?;
    command.args([
        "--single-transaction",
        "--exit-on-error",
        "--no-owner",
        "--no-privileges",
        "--use-list",
    ]);
    run(command.arg(list).arg(file))
}

fn write_list(to: &Path, list: &[u8]) -> io::Result<()> {
    let mut file = super::archive::private(to)?;
    for line in list.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if !(line.contains(" TABLE DATA ") && line.split_whitespace().any(|word| word == LAST)) {
            writeln!(file, "{line}")?;
        }
    }
    file.sync_all()
}

/// One that finds the database by `url`. A password would show in the list of processes: it goes by the environment.
fn program(name: &str, url: &str) -> Result<Command, CannotStart> {
    let mut url = Url::parse(url).map_err(|error| CannotStart(format!("database_url: {error}")))?;
    let mut command = Command::new(name);
    if let Some(password) = url.password() {
        command.env("PGPASSWORD", decoded(password));
        // It has a host, so it can have none.
        let _ = url.set_password(None);
    }
    command.args(["--dbname", url.as_str()]);
    Ok(command)
}

fn decoded(text: &str) -> String {
    url::form_urlencoded::parse(format!("p={}", text.replace('+', "%2B")).as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

fn run(command: &mut Command) -> Result<(), CannotStart> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output();
    let done = done.map_err(|error| cannot_run(&name, &error))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(failed(&name, &done.stderr)),
    }
}

fn cannot_run(name: &str, error: &io::Error) -> CannotStart {
    CannotStart(match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{name} is not installed: install PostgreSQL's client programs (Debian: postgresql-client), of the server's version or a newer one"
        ),
        _ => format!("cannot run {name}: {error}"),
    })
}

/// In its own words, the first of them.
fn failed(name: &str, said: &[u8]) -> CannotStart {
    let said = String::from_utf8_lossy(said);
    let first = said
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it did not say why");
    let first = first.strip_prefix(&format!("{name}: ")).unwrap_or(first);
    CannotStart(format!("{name} failed: {}", first.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_among_the_arguments() {
        let command = program(
            "pg_dump",
            "postgres://callboard:p%40ss+word@db.example:5433/calls?sslmode=require",
        )
        .unwrap();
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(
            arguments,
            ["--dbname", "postgres://callboard@db.example:5433/calls?sslmode=require"]
        );
        let passed: Vec<_> = command.get_envs().collect();
        assert_eq!(passed, [("PGPASSWORD".as_ref(), Some("p@ss+word".as_ref()))]);
    }

    #[test]
    fn what_is_missing_or_fails_is_said() {
        let missing = run(&mut Command::new("callboard-has-no-such-program")).unwrap_err();
        assert!(missing.0.contains("is not installed"), "{missing}");
        let why = failed("pg_dump", b"pg_dump: error: connection refused\nmore");
        assert_eq!(why.0, "pg_dump failed: error: connection refused");
    }
}
