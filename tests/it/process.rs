//! The real binary: how it starts, refuses to start, stops, and survives kill -9.
use crate::world::{Backend, TestDatabase, client};
use reqwest::Client;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

const BINARY: &str = env!("CARGO_BIN_EXE_callboard");

/// A folder, a database and settings for processes.
struct Place {
    folder: tempfile::TempDir,
    database: TestDatabase,
    bind: String,
    key: String,
}

impl Place {
    async fn new(backend: Backend) -> Option<Self> {
        let database = TestDatabase::new(backend).await?;
        let bind = TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .to_string();
        Some(Place {
            folder: tempfile::tempdir().unwrap(),
            database,
            bind,
            key: actors::keyring::Keyring::generate(),
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command
            .env("CALLBOARD_DATABASE_URL", &self.database.url)
            .env("CALLBOARD_BIND", &self.bind);
        command
            .env("CALLBOARD_SECRET_KEY", &self.key)
            .env("CALLBOARD_DEV", "true")
            .env("RUST_BACKTRACE", "0");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Starts `serve` and waits until it says that it is ready.
    fn serve(&self, environment: &[(&str, &str)]) -> Child {
        let mut command = self.command(&["serve"]);
        command
            .envs(environment.iter().copied())
            .stderr(Stdio::piped())
            .stdin(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("Callboard is ready") {
            assert!(
                log.read_line(&mut said).unwrap() > 0,
                "serve ended before it was ready:\n{said}"
            );
        }
        // The rest of the log is read away, so that the process never waits for us.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        child
    }

    fn workspace(&self) -> String {
        let mut create = self.command(&[
            "--json",
            "workspace",
            "create",
            "--slug",
            "acme",
            "--name",
            "Acme",
            "--owner-email",
            "a@b.co",
            "--owner-password-stdin",
        ]);
        let mut child = create.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(b"correct horse battery\n")
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(json_of(&output)["workspace"]["slug"], "acme");
        let key = self.run(&[
            "--json",
            "keys",
            "create",
            "--workspace",
            "acme",
            "--env",
            "test",
            "--name",
            "k",
        ]);
        json_of(&key)["plaintext"].as_str().unwrap().to_owned()
    }
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON alone on stdout: {output:?}"))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn on(backend: Backend, test: impl AsyncFnOnce(Place)) {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    actix_rt::System::new().block_on(async {
        if let Some(place) = Place::new(backend).await {
            // A test that waits for what never comes must fail, not hang.
            let limit = Duration::from_secs(300) + Duration::from_secs(5) * u32::try_from(kills()).unwrap();
            let ended = tokio::time::timeout(limit, test(place)).await;
            assert!(ended.is_ok(), "the test did not end within {limit:?}");
        }
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
        let other_port = TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .to_string();
        let second = place
            .command(&["serve", "--bind", &other_port])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(!second.status.success());
        assert!(
            stderr(&second).contains("in use by another Callboard process"),
            "{}",
            stderr(&second)
        );
        // Commands work beside it.
        let key = place.workspace();
        let me = client()
            .get(format!("http://{}/v1/me", place.bind))
            .bearer_auth(&key)
            .send()
            .await
            .unwrap();
        assert_eq!(me.status().as_u16(), 200);
        let id = me.json::<Value>().await.unwrap()["key"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            place
                .run(&["keys", "revoke", "--workspace", "acme", &id])
                .status
                .success()
        );
        let me = client()
            .get(format!("http://{}/v1/me", place.bind))
            .bearer_auth(&key)
            .send()
            .await
            .unwrap();
        assert_eq!(
            me.status().as_u16(),
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
            .env("CALLBOARD_SECRET_KEY", actors::keyring::Keyring::generate())
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

/// SIGTERM, and a clean end.
fn terminate(child: &mut Child) {
    assert!(
        Command::new("kill")
            .arg(child.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    assert!(child.wait().unwrap().success(), "SIGTERM ends it in order");
}

#[test]
fn secrets_are_sealed_anew_with_a_new_key() {
    on(Backend::Sqlite, async |mut place| {
        let mut serving = place.serve(&[]);
        let key = place.workspace();
        let api = Calls {
            client: client(),
            url: format!("http://{}", place.bind),
            key,
        };
        let endpoint = api
            .post(
                "/v1/webhook_endpoints",
                json!({ "url": "http://127.0.0.1:9/", "event_types": ["*"] }),
            )
            .await;
        terminate(&mut serving);
        let old = std::mem::replace(&mut place.key, actors::keyring::Keyring::generate());
        let rotated = place
            .command(&["--json", "secrets", "rotate"])
            .env("CALLBOARD_SECRET_KEYS_PREVIOUS", &old)
            .output()
            .unwrap();
        assert_eq!(json_of(&rotated)["endpoints_resealed"], 1, "{}", stderr(&rotated));
        // The new key alone opens everything.
        let mut serving = place.serve(&[]);
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
        let api = Calls {
            client: client(),
            url: format!("http://{}", place.bind),
            key: place.workspace(),
        };
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

struct Calls {
    client: Client,
    url: String,
    key: String,
}

impl Calls {
    async fn get(&self, path: &str) -> Value {
        self.client
            .get(format!("{}{path}", self.url))
            .bearer_auth(&self.key)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    }
    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self
            .client
            .post(format!("{}{path}", self.url))
            .bearer_auth(&self.key)
            .json(&body)
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }
    /// Reads until it is so; the service's own time passes meanwhile.
    async fn until(&self, path: &str, so: impl Fn(&Value) -> bool) -> Value {
        let clock = actors::clock::Clock::wall();
        for _ in 0..1500 {
            let value = self.get(path).await;
            if so(&value) {
                return value;
            }
            let _busy = clock.sleep(Duration::from_millis(40)).await;
        }
        panic!("{path} did not become what was waited for");
    }
    async fn all(&self, path: &str) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}?limit=100&order=asc{cursor}")).await;
            all.extend(page["data"].as_array().unwrap_or_else(|| panic!("{page}")).clone());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return all,
            }
            // Under the rate limit of a key.
            let _busy = actors::clock::Clock::wall().sleep(Duration::from_millis(21)).await;
        }
    }
}

/// The endpoint's `max_concurrency`.
const MAX_IN_FLIGHT: usize = 8;

/// Kills in one run; by hand with more: `CALLBOARD_TEST_KILLS=200`.
fn kills() -> usize {
    std::env::var("CALLBOARD_TEST_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20)
}

/// kill -9 in the middle of a campaign of 500 contacts, again and again.
fn killed_in_the_middle(backend: Backend) {
    on(backend, async |place| {
        let receiver = crate::world::Receiver::start();
        let environment = [
            ("CALLBOARD_SANDBOX_SPEED", "20"),
            ("CALLBOARD_WEBHOOK_RETRY_SCHEDULE", "1,1,1,1,1,1,1,1,1"),
        ];
        let mut serving = place.serve(&environment);
        let api = Calls {
            client: client(),
            url: format!("http://{}", place.bind),
            key: place.workspace(),
        };
        api.client
            .patch(format!("{}/v1/concurrency", api.url))
            .bearer_auth(&api.key)
            .json(&json!({ "limit": 200 }))
            .send()
            .await
            .unwrap();
        let endpoint = api
            .post(
                "/v1/webhook_endpoints",
                json!({ "url": receiver.url, "event_types": ["*"], "max_concurrency": MAX_IN_FLIGHT }),
            )
            .await;
        receiver.expect_signatures_of(endpoint["secret"].as_str().unwrap());
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        let contacts: Vec<_> = (0..500)
            .map(|n| json!({ "phone_number": format!("+15002{n:05}{}", [0, 1, 0, 3, 0, 9][n % 6]) }))
            .collect();
        let kills = kills();
        // So slow that there is a middle for every kill.
        let rate = (500.0 / (kills as f64 * 0.7)).clamp(5.0, 100.0);
        let campaign = json!({
            "name": "Killed", "agent_id": agent["id"], "contacts": contacts,
            "pacing": { "calls_per_second": rate }, "retry": { "max_attempts": 2, "min_gap_minutes": 0 },
        });
        let campaign = api.post("/v1/campaigns/run", campaign).await["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = format!("/v1/campaigns/{campaign}");
        for kill in 0..kills {
            // Some moment that differs each time: after so many further calls.
            let calls = |value: &Value| {
                value["completed_sessions"].as_i64().unwrap_or(0) + value["failed_sessions"].as_i64().unwrap_or(0)
            };
            let goal = calls(&api.get(&format!("{path}/stats")).await) + 1 + i64::try_from(kill % 7).unwrap();
            api.until(&format!("{path}/stats"), |stats| {
                calls(stats) >= goal || stats["status"] == "completed"
            })
            .await;
            serving.kill().unwrap();
            serving.wait().unwrap();
            serving = place.serve(&environment);
        }
        let done = api.until(&path, |campaign| campaign["status"] == "completed").await;
        assert_eq!(done["counts"]["total"], 500);
        check_every_contact(&api, &path).await;
        check_every_event(&api, &receiver).await;
        check_every_delivery(&api, &receiver, endpoint["id"].as_str().unwrap()).await;
        // Only what was under way at a kill may come twice.
        let twice: usize = receiver.counts_by_id().values().map(|count| count - 1).sum();
        assert!(twice <= kills * MAX_IN_FLIGHT, "{twice} repeats after {kills} kills");
        eprintln!(
            "{kills} kills: {} events, {twice} repeats",
            receiver.counts_by_id().len()
        );
        terminate(&mut serving);
    });
}

/// Every contact has one terminal state, and no attempt two sessions.
async fn check_every_contact(api: &Calls, path: &str) {
    let contacts = api.all(&format!("{path}/contacts")).await;
    assert_eq!(contacts.len(), 500);
    let mut attempts: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    let sessions = api.all("/v1/sessions").await;
    for session in &sessions {
        assert_eq!(session["phase"], "ended");
        let fresh = attempts
            .entry(session["contact_id"].as_str().unwrap())
            .or_default()
            .insert(session["attempt"].as_i64().unwrap());
        assert!(fresh, "two sessions for one attempt: {session}");
    }
    for contact in &contacts {
        let calls = attempts.get(contact["id"].as_str().unwrap()).map_or(0, BTreeSet::len);
        assert_eq!(calls as u64, contact["attempts"].as_u64().unwrap(), "{contact}");
        assert!(
            calls <= 2 && matches!(contact["status"].as_str(), Some("completed" | "failed")),
            "{contact}"
        );
        let lost = sessions
            .iter()
            .any(|session| session["contact_id"] == contact["id"] && session["end_reason"] == "node_lost");
        assert!(
            !lost || contact["status"] == "failed",
            "a lost call is not placed again"
        );
    }
}

/// Every event has arrived, under its one id, with its bytes unchanged.
async fn check_every_event(api: &Calls, receiver: &crate::world::Receiver) {
    let events = api.all("/v1/events").await;
    let clock = actors::clock::Clock::wall();
    for _ in 0..500 {
        if receiver.counts_by_id().len() >= events.len() {
            break;
        }
        let _busy = clock.sleep(Duration::from_millis(40)).await;
    }
    let mut bodies: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for request in receiver.requests() {
        assert_eq!(request.verified, Some(true));
        let known = bodies
            .entry(request.id().to_owned())
            .or_insert_with(|| request.raw.to_vec());
        assert_eq!(*known, request.raw, "the same bytes under the same id");
    }
    let ids: BTreeSet<_> = events
        .iter()
        .map(|event| event["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        bodies.keys().cloned().collect::<BTreeSet<_>>(),
        ids,
        "every event, and nothing that is none"
    );
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        count("campaign.contact_completed") + count("campaign.contact_failed"),
        500
    );
    assert_eq!(count("campaign.contact_dispatched"), count("session.created"));
    assert_eq!(
        count("session.ended") + count("session.failed"),
        count("session.created")
    );
    assert_eq!(count("campaign.completed"), 1);
}

/// Each event has exactly one delivery, which succeeded and says so because of an answer.
async fn check_every_delivery(api: &Calls, receiver: &crate::world::Receiver, endpoint: &str) {
    let path = format!("/v1/webhook_endpoints/{endpoint}");
    let open = |stats: &Value| stats["open"]["pending"].as_i64().unwrap() + stats["open"]["retrying"].as_i64().unwrap();
    api.until(&format!("{path}/stats"), |stats| open(stats) == 0).await;
    let mut events = BTreeSet::new();
    for delivery in api.all(&format!("{path}/deliveries")).await {
        assert_eq!(
            (delivery["origin"].as_str(), delivery["status"].as_str()),
            (Some("live"), Some("succeeded"))
        );
        let attempts = delivery["attempts"].as_array().unwrap();
        assert_eq!(attempts.last().unwrap()["status"], 200, "{delivery}");
        assert!(
            attempts.iter().enumerate().all(|(at, attempt)| attempt["n"] == at + 1),
            "{delivery}"
        );
        assert!(
            events.insert(delivery["event_id"].as_str().unwrap().to_owned()),
            "two deliveries of one event"
        );
    }
    assert_eq!(events, receiver.counts_by_id().into_keys().collect());
}

#[test]
fn killed_in_the_middle_on_sqlite() {
    killed_in_the_middle(Backend::Sqlite);
}
#[test]
fn killed_in_the_middle_on_postgres() {
    killed_in_the_middle(Backend::Postgres);
}
