//! The real binary: how it starts, refuses to start, stops, and survives kill -9.
mod access;
mod agreed;
mod calls;
mod compliance_jobs;
mod console;
mod held;
mod kills;
mod mcp;
mod migrations;
mod nodes;
mod phone;
mod recorded;
mod restored;
mod rooms;
mod spent;
mod takeover;
mod tenants;
mod the_law;
mod traced;
mod watched;
mod written;

use crate::world::{
    Backend, TestDatabase, client, number,
    phone::{pause, signal},
};
pub(crate) use calls::Calls;
use sea_orm::{ConnectOptions, ConnectionTrait, Database};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, UdpSocket},
    process::{Child, ChildStderr, Command, Output, Stdio},
    sync::atomic::{AtomicU16, Ordering::Relaxed},
    time::Duration,
};

const BINARY: &str = env!("CARGO_BIN_EXE_callboard");

/// A folder, a database and settings for processes.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) database: TestDatabase,
    bind: String,
    key: String,
}

impl Place {
    fn with(database: TestDatabase) -> Self {
        Place {
            folder: tempfile::tempdir().unwrap(),
            database,
            bind: own_address(),
            key: runtime::keyring::Keyring::generate(),
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command
            .env("CALLBOARD_DATABASE_URL", &self.database.url)
            .env("CALLBOARD_BIND", &self.bind);
        command
            .env("CALLBOARD_SECRET_KEY", &self.key)
            .env("CALLBOARD_DEV", "true")
            .env("CALLBOARD_LAW_FILE", crate::world::law::set_aside())
            // Each thread reads all routes' patterns when it starts.
            .env("CALLBOARD_HTTP_THREADS", "2")
            .env("RUST_BACKTRACE", "0");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a command that reads a password.
    fn run_with(&self, input: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        let streams = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Starts `serve` and waits until it says that it is ready.
    fn serve(&self, environment: &[(&str, &str)]) -> Child {
        self.start(environment).ready()
    }

    pub(crate) fn start(&self, environment: &[(&str, &str)]) -> Starting {
        let mut command = self.command(&["serve"]);
        command
            .envs(environment.iter().copied())
            .stderr(Stdio::piped())
            .stdin(Stdio::null());
        let mut child = command.spawn().unwrap();
        Starting {
            log: BufReader::new(child.stderr.take().unwrap()),
            said: String::new(),
            child,
        }
    }

    fn workspace(&self) -> String {
        self.create_workspace("acme", "Acme", "a@b.co");
        self.create_key("test", "k")
    }

    pub(crate) fn create_workspace(&self, slug: &str, name: &str, owner: &str) {
        let create = "--json workspace create --owner-password-stdin";
        let more = ["--slug", slug, "--name", name, "--owner-email", owner];
        let create: Vec<&str> = create.split(' ').chain(more).collect();
        let output = self.run_with("correct horse battery\n", &create);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(json_of(&output)["workspace"]["slug"], slug);
    }

    /// Of the workspace `acme`.
    pub(crate) fn create_key(&self, env: &str, name: &str) -> String {
        let create = "--json keys create --workspace acme";
        let create: Vec<&str> = create.split(' ').chain(["--env", env, "--name", name]).collect();
        json_of(&self.run(&create))["plaintext"].as_str().unwrap().to_owned()
    }

    /// A second `serve` on its database does not come up.
    pub(crate) fn refuses_a_second(&self, environment: &[(&str, &str)]) {
        let mut second = self.command(&["serve", "--bind", &own_address()]);
        second.envs(environment.iter().copied());
        let second = second.stdin(Stdio::null()).output().unwrap();
        let said = stderr(&second);
        assert!(!second.status.success(), "{environment:?}");
        assert!(
            said.contains("in use by another Callboard process"),
            "{environment:?}: {said}"
        );
    }
}

/// A `serve` that is not ready yet.
pub(crate) struct Starting {
    child: Child,
    log: BufReader<ChildStderr>,
    said: String,
}

impl Starting {
    /// Reads its log until it says that.
    fn until(&mut self, words: &str) {
        while !self.said.contains(words) {
            assert!(
                self.log.read_line(&mut self.said).unwrap() > 0,
                "serve ended before it said {words:?}, {:?}:\n{}",
                self.child.wait(),
                self.said
            );
        }
    }

    fn ready(self) -> Child {
        self.ready_into(std::io::sink())
    }

    /// The log goes there from then on, with what it has said so far.
    pub(crate) fn ready_into(mut self, mut rest: impl Write + Send + 'static) -> Child {
        self.until("Callboard is ready");
        // It is read away, so that the process never waits for us.
        std::thread::spawn(move || {
            rest.write_all(self.said.as_bytes()).unwrap();
            std::io::copy(&mut self.log, &mut rest)
        });
        self.child
    }
}

/// An address that stays free while its process is dead. One that the system gave out could by then be the near end of
/// any connection of another test, and the restart would find it in use; the system gives out none below 32,768.
fn own_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    loop {
        let port = first + NEXT.fetch_add(1, Relaxed);
        // For as long as this run lasts it tells others, which choose in the same way, that the port is taken.
        let claim = UdpSocket::bind(("127.0.0.1", port));
        if let Ok(claim) = claim
            && TcpListener::bind(("127.0.0.1", port)).is_ok()
        {
            std::mem::forget(claim);
            return format!("127.0.0.1:{port}");
        }
    }
}

pub(crate) fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON alone on stdout: {output:?}"))
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn on(backend: Backend, test: impl AsyncFnOnce(Place)) {
    run(TestDatabase::new(backend), test);
}

/// For tests that kill.
pub(crate) fn on_disk(backend: Backend, test: impl AsyncFnOnce(Place)) {
    run(TestDatabase::on_disk(backend), test);
}

fn run(database: impl Future<Output = Option<TestDatabase>>, test: impl AsyncFnOnce(Place)) {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    actix_rt::System::new().block_on(async {
        if let Some(database) = database.await {
            // A test that waits for what never comes must fail, not hang.
            let limit = Duration::from_secs(300) + Duration::from_secs(12) * u32::try_from(kills()).unwrap();
            let ended = tokio::time::timeout(limit, test(Place::with(database))).await;
            assert!(ended.is_ok(), "the test did not end within {limit:?}");
        }
    });
}

/// By a backup, or somebody's shell: for longer than SQLite waits by itself.
#[test]
fn a_start_waits_for_a_file_that_another_program_has_locked() {
    on(Backend::Sqlite, async |place| {
        place.workspace();
        let mut options = ConnectOptions::new(&place.database.url);
        // One, so that statements one after another are one transaction.
        options.max_connections(1);
        let outside = Database::connect(options).await.unwrap();
        outside.execute_unprepared("BEGIN IMMEDIATE").await.unwrap();
        let mut starting = place.start(&[]);
        starting.until("startup waits for it");
        outside.execute_unprepared("ROLLBACK").await.unwrap();
        let mut serving = starting.ready();
        serving.kill().unwrap();
        serving.wait().unwrap();
    });
}

#[test]
fn a_start_that_cannot_work_says_which_setting_and_what_to_do() {
    on(Backend::Sqlite, async |place| {
        let fails = |environment: &[(&str, &str)], words: &[&str]| {
            let output = place
                .command(&["serve"])
                .envs(environment.iter().copied())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            assert!(!output.status.success());
            let said = stderr(&output);
            let last = said.lines().last().unwrap_or_default();
            assert!(words.iter().all(|word| last.contains(word)), "{environment:?}: {last}");
            assert_in_our_words(last);
        };
        fails(&[("CALLBOARD_SANDBOX_SPEED", "fast")], &["sandbox_speed"]);
        fails(&[("CALLBOARD_BIND", "8080")], &["bind", "127.0.0.1:8080"]);
        fails(
            &[("CALLBOARD_DATABASE_URL", "mysql://x")],
            &["database_url", "postgres://"],
        );
        fails(
            &[("CALLBOARD_DATABASE_URL", "sqlite:///nowhere/at/all.db")],
            &["database_url", "/nowhere/at/all"],
        );
        fails(
            &[("CALLBOARD_DATABASE_URL", "postgres://x@127.0.0.1:1/x")],
            &["database_url", "127.0.0.1/x"],
        );
        fails(&[("CALLBOARD_SECRET_KEY", "short")], &["secret_key", "openssl rand"]);
        fails(
            &[("CALLBOARD_SECRET_KEY", ""), ("CALLBOARD_DEV", "false")],
            &["secret_key", "CALLBOARD_SECRET_KEY"],
        );
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        fails(
            &[("CALLBOARD_BIND", &taken.local_addr().unwrap().to_string())],
            &["bind", "another program"],
        );
        std::fs::write(
            place.folder.path().join("nonsense.db"),
            "this is no database, and long enough to be read as one".repeat(40),
        )
        .unwrap();
        fails(
            &[("CALLBOARD_DATABASE_URL", "sqlite://nonsense.db")],
            &["database_url", "nonsense.db"],
        );
        std::fs::write(place.folder.path().join("callboard.toml"), "max_concurency = 5").unwrap();
        fails(&[], &["max_concurency"]);
    });
}

fn one_process_and_one_key_per_database(backend: Backend) {
    on(backend, async |place| {
        let mut serving = place.serve(&[]);
        place.refuses_a_second(&[]);
        // Commands work beside it.
        let key = place.workspace();
        let me = async || {
            let request = client().get(format!("http://{}/v1/me", place.bind));
            request.bearer_auth(&key).send().await.unwrap()
        };
        let known = me().await;
        assert_eq!(known.status().as_u16(), 200);
        let id = known.json::<Value>().await.unwrap()["key"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            place
                .run(&["keys", "revoke", "--workspace", "acme", &id])
                .status
                .success()
        );
        assert_eq!(
            me().await.status().as_u16(),
            401,
            "a revocation by another process counts at the next request"
        );
        assert_eq!(
            json_of(&place.run(&["--json", "keys", "list", "--workspace", "acme"]))
                .as_array()
                .unwrap()
                .len(),
            1
        );
        terminate(&mut serving);

        let wrong = place
            .command(&["serve"])
            .env("CALLBOARD_SECRET_KEY", runtime::keyring::Keyring::generate())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(!wrong.status.success());
        assert!(
            stderr(&wrong).contains("secret_key") && stderr(&wrong).contains("sealed with key"),
            "{}",
            stderr(&wrong)
        );
    });
}
#[test]
fn one_process_and_one_key_per_database_on_sqlite() {
    one_process_and_one_key_per_database(Backend::Sqlite);
}
#[test]
fn one_process_and_one_key_per_database_on_postgres() {
    one_process_and_one_key_per_database(Backend::Postgres);
}

fn serve(place: &Place, environment: &[(&'static str, String)]) -> Child {
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, &**value)).collect();
    place.serve(&environment)
}

/// SIGTERM, and a clean end.
pub(crate) fn terminate(child: &mut Child) {
    signal(child.id(), "-TERM");
    let ended = child.wait().unwrap();
    assert!(ended.success(), "SIGTERM ends it in order, not by {ended}");
}

#[test]
fn secrets_are_sealed_anew_with_a_new_key() {
    on(Backend::Sqlite, async |mut place| {
        let mut serving = place.serve(&[]);
        let key = place.workspace();
        let api = Calls::to(&place, key);
        let endpoint = api
            .post(
                "/v1/webhook_endpoints",
                json!({ "url": "http://127.0.0.1:9/", "event_types": ["*"] }),
            )
            .await;
        let trunk = json!({ "name": "x", "host": "sip.example.com", "username": "x", "password": "canary",
            "inbound_auth": { "username": "y", "password": "canary" } });
        api.post("/v1/sip_trunks", trunk).await;
        let number = api
            .post("/v1/verified_numbers", json!({ "phone_number": "+12025550140" }))
            .await;
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        let room = api.post("/v1/rooms", json!({ "agent_id": agent["id"] })).await;
        terminate(&mut serving);
        let old = std::mem::replace(&mut place.key, runtime::keyring::Keyring::generate());
        let rotated = place
            .command(&["--json", "secrets", "rotate"])
            .env("CALLBOARD_SECRET_KEYS_PREVIOUS", &old)
            .output()
            .unwrap();
        assert_eq!(json_of(&rotated)["endpoints_resealed"], 1, "{}", stderr(&rotated));
        assert_eq!(json_of(&rotated)["trunks_resealed"], 1);
        // The new key alone opens everything.
        let mut serving = place.serve(&[]);
        let numbers = client()
            .get(format!("{}/v1/verified_numbers", api.url))
            .bearer_auth(&api.key);
        let numbers: Value = numbers.send().await.unwrap().json().await.unwrap();
        assert_eq!(numbers["data"][0]["sandbox_code"], number["sandbox_code"], "{numbers}");
        let told = api.get("/v1/events?type=room.created").await;
        assert_eq!(told["data"][0]["data"]["room_url"], room["room_url"], "{told}");
        let link = client().get(room["room_url"].as_str().unwrap()).send().await.unwrap();
        assert_eq!(link.status().as_u16(), 200, "who has the link comes in still");
        let test = api
            .post(
                &format!("/v1/webhook_endpoints/{}/test", endpoint["id"].as_str().unwrap()),
                json!({}),
            )
            .await;
        assert_eq!(test["error_code"], "connect_failed", "{test}");
        terminate(&mut serving);
    });
}

#[test]
fn sigterm_lets_calls_end_and_gives_the_rest_a_reason() {
    on(Backend::Sqlite, async |place| {
        let mut serving = place.serve(&[("CALLBOARD_DRAIN_SECONDS", "0")]);
        let api = Calls::to(&place, place.workspace());
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        let session = api
            .post(
                "/v1/sessions",
                json!({ "to_number": "+15002340002", "agent_id": agent["id"] }),
            )
            .await;
        api.until(
            &format!("/v1/sessions/{}", session["id"].as_str().unwrap()),
            |session| session["phase"] != "queued",
        )
        .await;
        terminate(&mut serving);
        let mut serving = place.serve(&[]);
        let ended = api
            .get(&format!("/v1/sessions/{}", session["id"].as_str().unwrap()))
            .await;
        assert_eq!(
            (
                ended["status"].as_str(),
                ended["end_reason"].as_str(),
                ended["ended_by"].as_str()
            ),
            (Some("failed"), Some("canceled"), Some("system"))
        );
        terminate(&mut serving);
    });
}

/// No library speaks to whoever reads it: they say what they are, "Connection Error: error returned from database: …".
fn assert_in_our_words(line: &str) {
    for words in ["Error:", "error returned", "error communicating", "error with"] {
        assert!(!line.contains(words), "{line}");
    }
}

/// Kills in one run; by hand with more: `CALLBOARD_TEST_KILLS=200`.
pub(crate) fn kills() -> usize {
    number("CALLBOARD_TEST_KILLS", 12)
}
