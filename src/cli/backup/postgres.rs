//! PostgreSQL's own programs make and read the copy of its database.
use crate::error::CannotStart;
use std::{
    io::{self, BufRead, BufReader, Write},
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

/// Puts all of it, or nothing, into a database that has no tables. By way of `psql`, for a newer `pg_restore` sets what an older server does
/// not know.
pub fn restore(file: &Path, url: &str, folder: &Path) -> Result<(), CannotStart> {
    let listed = Command::new("pg_restore").arg("--list").arg(file).output();
    let listed = listed.map_err(|error| cannot_run("pg_restore", &error))?;
    if !listed.status.success() {
        return Err(failed("pg_restore", &listed.stderr));
    }
    let list = folder.join("list");
    let cannot = |error| CannotStart(format!("cannot write {}: {error}", list.display()));
    write_list(&list, &listed.stdout).map_err(cannot)?;
    let mut reads = Command::new("pg_restore");
    reads
        .args(["--file=-", "--no-owner", "--no-privileges", "--use-list"])
        .arg(&list)
        .arg(file);
    let mut writes = program("psql", url)?;
    writes.args([
        "--no-psqlrc",
        "--quiet",
        "--single-transaction",
        "--set=ON_ERROR_STOP=1",
    ]);
    pipe(&mut reads, &mut writes)
}

/// Lines before which a script has said how its session is set up.
const HEAD: usize = 100;

fn pipe(reads: &mut Command, writes: &mut Command) -> Result<(), CannotStart> {
    let mut reader = reads
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_run("pg_restore", &error))?;
    let writer = writes
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut writer = match writer {
        Ok(writer) => writer,
        Err(error) => {
            let _ = reader.kill();
            let _ = reader.wait();
            return Err(cannot_run("psql", &error));
        }
    };
    // What the one says goes to the other, which says why it stops; each says its errors into a pipe that is large enough for them.
    let mut into = writer.stdin.take();
    let copied = match (reader.stdout.take(), &mut into) {
        (Some(from), Some(to)) => copy(BufReader::new(from), to),
        _ => Ok(()),
    };
    let read = reader.wait_with_output();
    // All of it has been read, or nothing of it stands: a script that merely ends is rolled back.
    let ended = match (&read, &mut into) {
        (Ok(read), Some(to)) if read.status.success() && copied.is_ok() => {
            to.write_all(b"\nCOMMIT;\n").and_then(|()| to.flush())
        }
        _ => Ok(()),
    };
    drop(into);
    let written = writer.wait_with_output();
    let (written, read) = match (written, read) {
        (Ok(written), Ok(read)) => (written, read),
        (Err(error), _) | (_, Err(error)) => return Err(CannotStart(format!("cannot restore: {error}"))),
    };
    match (written.status.success(), read.status.success(), copied.and(ended)) {
        (true, true, Ok(())) => Ok(()),
        (false, ..) => Err(failed("psql", &written.stderr)),
        (_, false, _) => Err(failed("pg_restore", &read.stderr)),
        (.., Err(error)) => Err(CannotStart(format!("cannot restore: {error}"))),
    }
}

fn copy(mut from: impl BufRead, mut to: impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    to.write_all(b"BEGIN;\n")?;
    for _ in 0..HEAD {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // Since PostgreSQL 17. It is off by default.
        if !line.starts_with(b"SET transaction_timeout") {
            to.write_all(&line)?;
        }
    }
    io::copy(&mut from, &mut to)?;
    to.flush()
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

/// One that finds the database by `url`. Nothing of it shows in the list of processes: all goes by the environment.
fn program(name: &str, url: &str) -> Result<Command, CannotStart> {
    let url = Url::parse(url).map_err(|error| CannotStart(format!("database_url: {error}")))?;
    let mut command = Command::new(name);
    command.arg("--no-password");
    // These would lead elsewhere than the URL does.
    for name in ["PGSERVICE", "PGSERVICEFILE", "PGHOSTADDR"] {
        command.env_remove(name);
    }
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            command.env(name, value);
        }
    };
    set(
        "PGHOST",
        url.host_str()
            .map(|host| decoded(host.trim_start_matches('[').trim_end_matches(']'))),
    );
    set("PGPORT", url.port().map(|port| port.to_string()));
    set("PGUSER", Some(decoded(url.username())));
    set("PGPASSWORD", url.password().map(decoded));
    set("PGDATABASE", Some(decoded(url.path().trim_start_matches('/'))));
    let (mut is_verified, mut has_root) = (false, std::env::var_os("PGSSLROOTCERT").is_some());
    for (key, value) in url.query_pairs() {
        let value = Some(value.into_owned());
        // As the service's own driver reads them; what is left is its own affair.
        match &*key {
            "host" | "hostaddr" => set("PGHOST", value),
            "port" => set("PGPORT", value),
            "user" => set("PGUSER", value),
            "password" => set("PGPASSWORD", value),
            "dbname" => set("PGDATABASE", value),
            "sslmode" | "ssl-mode" => {
                is_verified = value.as_deref() == Some("verify-full");
                set("PGSSLMODE", value);
            }
            "sslrootcert" | "ssl-root-cert" | "ssl-ca" => {
                has_root = true;
                set("PGSSLROOTCERT", value);
            }
            "sslcert" | "ssl-cert" => set("PGSSLCERT", value),
            "sslkey" | "ssl-key" => set("PGSSLKEY", value),
            "options" => set("PGOPTIONS", value),
            _ => {}
        }
    }
    // A service trusts the system's authorities, and so do these programs from version 16 on.
    if is_verified && !has_root {
        set("PGSSLROOTCERT", Some("system".into()));
    }
    Ok(command)
}

fn decoded(text: &str) -> String {
    // Only `%` says something here; what a form would read otherwise is said by it.
    let form = format!("p={}", text.replace('+', "%2B").replace('&', "%26"));
    let value = url::form_urlencoded::parse(form.as_bytes()).next();
    value.map(|(_, value)| value.into_owned()).unwrap_or_default()
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

/// In its own words: the first line that says that it is an error, else the first.
fn failed(name: &str, said: &[u8]) -> CannotStart {
    let said = String::from_utf8_lossy(said);
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| line.to_lowercase().contains("error:");
    let first = lines.clone().find(is_error).or_else(|| lines.next());
    let first = first.unwrap_or("it did not say why");
    let first = first.strip_prefix(&format!("{name}: ")).unwrap_or(first);
    CannotStart(format!("{name} failed: {first}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(url: &str) -> Vec<(String, String)> {
        let command = program("pg_dump", url).unwrap();
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["--no-password"], "nothing of the URL shows");
        let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
        // What is taken away has no value.
        let set = command
            .get_envs()
            .filter_map(|(name, value)| Some((text(name), text(value?))));
        set.collect()
    }

    #[test]
    fn a_url_goes_by_the_environment() {
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        assert_eq!(
            passed("postgres://callboard:p%40ss+w&rd@db.example:5433/calls?sslmode=require&statement-cache-capacity=5"),
            owned(&[
                ("PGDATABASE", "calls"),
                ("PGHOST", "db.example"),
                ("PGPASSWORD", "p@ss+w&rd"),
                ("PGPORT", "5433"),
                ("PGSSLMODE", "require"),
                ("PGUSER", "callboard"),
            ])
        );
        assert_eq!(
            passed("postgres://callboard@[::1]/calls?password=secret&ssl-mode=verify-full"),
            owned(&[
                ("PGDATABASE", "calls"),
                ("PGHOST", "::1"),
                ("PGPASSWORD", "secret"),
                ("PGSSLMODE", "verify-full"),
                ("PGSSLROOTCERT", "system"),
                ("PGUSER", "callboard"),
            ])
        );
    }

    #[test]
    fn what_is_missing_or_fails_is_said() {
        let missing = run(&mut Command::new("callboard-has-no-such-program")).unwrap_err();
        assert!(missing.0.contains("is not installed"), "{missing}");
        let why = failed("pg_dump", b"pg_dump: error: connection refused\nmore");
        assert_eq!(why.0, "pg_dump failed: error: connection refused");
        let why = failed(
            "pg_restore",
            b"pg_restore: while INITIALIZING:\npg_restore: error: could not execute",
        );
        assert_eq!(why.0, "pg_restore failed: error: could not execute");
    }

    #[test]
    fn a_newer_script_is_read_by_an_older_server() {
        let script = b"SET statement_timeout = 0;\nSET transaction_timeout = 0;\nCREATE TABLE x ();\n";
        let mut written = Vec::new();
        copy(&script[..], &mut written).unwrap();
        assert_eq!(written, b"BEGIN;\nSET statement_timeout = 0;\nCREATE TABLE x ();\n");
        let mut long: Vec<u8> = b"x\n".repeat(HEAD);
        long.extend(b"SET transaction_timeout = 0 is what somebody wrote\n");
        let mut written = Vec::new();
        copy(&long[..], &mut written).unwrap();
        assert_eq!(written, [&b"BEGIN;\n"[..], &long].concat());
    }
}
