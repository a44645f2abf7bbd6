//! A world: the real app with its own database and a clock that stands still until it is advanced.
pub mod browser;
#[expect(dead_code, reason = "the protocol's own tests need all of it")]
pub mod cartesia_server;
#[expect(dead_code, reason = "the protocol's own tests need all of it")]
pub mod chat_server;
pub mod collector;
pub mod contract;
mod database;
#[expect(dead_code, reason = "the protocol's own tests need all of it")]
pub mod elevenlabs_server;
pub mod front;
pub mod functions;
#[expect(dead_code, reason = "the protocol's own tests need all of it")]
pub mod hearing_server;
mod http_head;
mod http_server;
pub mod law;
mod local_listener;
pub mod mcp_server;
pub mod name_server;
pub mod network;
mod number_server;
pub mod phone;
mod proxy;
pub mod real_speech;
pub mod realtime_answers;
#[expect(dead_code, reason = "the protocol's own tests need all of it")]
pub mod realtime_server;
pub mod realtime_session;
pub mod reassigned_server;
mod receiver;
pub mod register_server;
pub mod registrar;
pub mod s3_server;
pub mod smtp;
mod socket_server;
#[expect(dead_code, reason = "the protocol's own tests need all of it")]
pub mod speech_server;
pub mod stripe_server;
#[expect(dead_code, reason = "the protocol's own tests need all of it")]
pub mod transcription_server;
pub mod twilio;
pub mod voice_server;
pub mod wav;
pub mod zoo;

pub use database::{Backend, Database as TestDatabase};
pub use proxy::Proxy;
pub use receiver::Receiver;

use crate::audit::Evidence;
use actors::leases::Of;
use callboard::{
    access::{self, NewKey, NewWorkspace},
    app::App,
    settings::Settings,
};
use database::Database;
use entities::workspace_lease::Share;
use entities::{
    ids::TenantId,
    values::{Env, Moment, Scopes, Text},
};
use reqwest::{Method, StatusCode};
use runtime::clock::Clock;
use serde_json::{Value, json};
use std::{
    cell::Cell,
    net::TcpListener,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// How many of something a run has; by hand the environment says more.
pub fn number(name: &str, usual: usize) -> usize {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(usual)
}

/// Real time for one scenario, on a slow machine with many tests at once; more where it is repeated by hand.
fn limit() -> Duration {
    Duration::from_secs(300 + 2 * number("CALLBOARD_TEST_RACES", 0) as u64)
}

/// Lets others run until it is there, and names what never came.
pub async fn awaited<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < AWAITED, "it did not come to this: {what}");
        tokio::task::yield_now().await;
    }
}

/// The longest wait for one thing, in real time: less than a whole scenario has.
const AWAITED: Duration = Duration::from_secs(120);

/// When clocks begin: a Tuesday, 08:00 in New York.
const BEGINS: &str = "2027-03-02T13:00:00Z";

/// Runs one scenario on one database. A world that leaves undone work behind fails its test.
pub fn run(backend: Backend, scenario: impl AsyncFnOnce(&mut World)) {
    run_from(BEGINS, backend, scenario);
}

/// The same in a world whose clocks begin at another moment.
pub fn run_from(begins: &str, backend: Backend, scenario: impl AsyncFnOnce(&mut World)) {
    // Several TLS stacks are linked; the first of many tests chooses.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    actix_rt::System::new().block_on(async {
        let Some(mut world) = World::start(backend, begins).await else {
            return;
        };
        let whole = async {
            scenario(&mut world).await;
            world.end().await;
        };
        // A test that waits for what never comes must fail, not hang.
        tokio::time::timeout(limit(), whole)
            .await
            .unwrap_or_else(|_| panic!("the scenario did not end within {:?}", limit()));
    });
}

/// The scenario as two tests: on SQLite and on PostgreSQL.
#[macro_export]
macro_rules! on_both { ($($(#[$doc:meta])* async fn $name:ident($world:ident: &mut World) $body:block)*) => { $(
    mod $name {
        use super::*;
        $(#[$doc])*
        async fn scenario($world: &mut World) $body
        #[test]
        fn on_sqlite() {
            $crate::world::run($crate::world::Backend::Sqlite, scenario)
        }
        #[test]
        fn on_postgres() {
            $crate::world::run($crate::world::Backend::Postgres, scenario)
        }
    }
)* } }

pub struct World {
    pub app: Option<App>,
    pub clock: Clock,
    pub url: String,
    /// As the operator wrote them: what is shown of a secret is not the secret.
    settings: Value,
    database: Database,
    server: Option<actix_web::dev::ServerHandle>,
    next_tenant: Cell<u32>,
}

fn files_in(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let files = paths.flat_map(|path| match path.is_dir() {
        true => files_in(&path),
        false => vec![path],
    });
    files.collect()
}

pub fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}
pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl World {
    async fn start(backend: Backend, begins: &str) -> Option<World> {
        let database = Database::migrated(backend).await?;
        let clock = Clock::manual(Moment::parse(begins).unwrap());
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let bind = listener.local_addr().unwrap().to_string();
        let secret_key = runtime::keyring::Keyring::generate();
        let settings = Settings::load(
            None,
            &[
                ("dev", "true".into()),
                ("bind", bind.clone()),
                // Each reads all routes' patterns when it starts.
                ("http_threads", "2".into()),
                ("base_url", String::new()),
                ("database_url", database.url.clone()),
                ("mail_folder", database.mail_folder()),
                ("recordings", database.recordings_folder()),
                ("recordings_spool", database.spool_folder()),
                // The same on every machine.
                ("voice", "tones".into()),
                ("secret_key", secret_key.clone()),
                ("law_file", law::set_aside().to_owned()),
            ],
        )
        .unwrap();
        let mut settings = serde_json::to_value(settings).unwrap();
        settings["secret_key"] = secret_key.into();
        let mut world = World {
            app: None,
            clock,
            url: format!("http://{bind}"),
            settings,
            database,
            server: None,
            next_tenant: Cell::new(0),
        };
        world.build(listener).await;
        Some(world)
    }

    async fn build(&mut self, listener: TcpListener) {
        let settings: Settings = serde_json::from_value(self.settings.clone()).unwrap();
        let app = App::build(settings, self.clock.clone()).await.unwrap();
        let server = app.serve(listener).unwrap();
        self.server = Some(server.handle());
        actix_rt::spawn(server);
        self.app = Some(app);
        self.clock.settle().await;
    }

    pub fn deps(&self) -> &actors::deps::Deps {
        self.app.as_ref().unwrap().deps()
    }

    pub fn tree(&self) -> &actors::tree::Tree {
        &self.app.as_ref().unwrap().state.tree
    }

    /// Moves the clock: each alarm on the way, in order, until all is quiet.
    pub async fn advance(&self, by: Duration) {
        self.clock.advance(by).await;
    }

    /// Moves the clock in one leap, as if the service had been asleep, then lets what recurs do its work.
    pub async fn leap(&self, by: Duration) {
        self.clock.set(self.clock.now().plus(by));
        self.advance(minutes(11)).await;
    }

    /// Moves the clock in one leap and no further: what came due meanwhile is done once.
    pub async fn leap_exactly(&self, by: Duration) {
        self.settle().await;
        self.clock.set(self.clock.now().plus(by));
        self.advance(Duration::ZERO).await;
    }

    /// Moves the clock to a moment in one leap, and past it.
    pub async fn leap_to(&self, at: Moment) {
        self.clock.set(at.plus_seconds(-1));
        self.advance(seconds(2)).await;
    }

    /// Waits until nothing is under way.
    pub async fn settle(&self) {
        self.clock.settle().await;
    }

    /// Crashes the service and starts it again on the same database.
    pub async fn restart(&mut self) {
        self.abandon().await;
        self.start_again().await;
    }

    /// The same, and starts it again so much later.
    pub async fn restart_later(&mut self, by: Duration) {
        self.abandon().await;
        self.clock.set(self.clock.now().plus(by));
        self.start_again().await;
    }

    async fn abandon(&mut self) {
        self.server.take().unwrap().stop(false).await;
        self.app.take().unwrap().abandon().await;
    }

    /// While nobody listened another test may have been given the port: it ends some time.
    async fn listen_again(&self) -> TcpListener {
        let (address, wall) = (self.url.trim_start_matches("http://"), runtime::clock::Clock::wall());
        for _ in 0..1_200 {
            if let Ok(listener) = TcpListener::bind(address) {
                return listener;
            }
            let _busy = wall.sleep(Duration::from_millis(50)).await;
        }
        panic!("{address} stays taken");
    }

    async fn start_again(&mut self) {
        let listener = self.listen_again().await;
        self.build(listener).await;
    }

    /// Stops the service in order, as `SIGTERM` does, with no time for calls to end, and starts it again on the same database.
    pub async fn restart_in_order(&mut self) {
        self.server.take().unwrap().stop(false).await;
        self.app.take().unwrap().stop(Duration::ZERO).await;
        self.start_again().await;
    }

    /// Starts the service again with another setting.
    pub async fn change_setting(&mut self, name: &str, value: Value) {
        self.settings[name] = value;
        self.restart().await;
    }

    /// Starts the service again with the rules of calling as they come with it.
    pub async fn under_the_law(&mut self) {
        self.change_settings(&[("law_file", "".into())]).await;
    }

    /// Starts the service again with other settings.
    pub async fn change_settings(&mut self, changes: &[(&str, Value)]) {
        for (name, value) in changes {
            self.settings[*name] = value.clone();
        }
        self.restart().await;
    }

    pub fn secret_key(&self) -> String {
        self.settings["secret_key"].as_str().unwrap().to_owned()
    }

    /// Replaces the secret key as an operator does: the service is stopped, the command seals everything anew, and from then on
    /// there is the new key alone.
    pub async fn replace_secret_key(&mut self) {
        self.server.take().unwrap().stop(false).await;
        self.app.take().unwrap().abandon().await;
        let (old, new) = (self.secret_key(), runtime::keyring::Keyring::generate());
        let rotated = std::process::Command::new(env!("CARGO_BIN_EXE_callboard"))
            .args(["secrets", "rotate"])
            .env_clear()
            .env("CALLBOARD_DEV", "true")
            .env("CALLBOARD_VOICE", "tones")
            .env("CALLBOARD_DATABASE_URL", &self.database.url)
            .env("CALLBOARD_RECORDINGS", self.database.recordings_folder())
            .env("CALLBOARD_RECORDINGS_SPOOL", self.database.spool_folder())
            .env("CALLBOARD_SECRET_KEY", &new)
            .env("CALLBOARD_SECRET_KEYS_PREVIOUS", old)
            .output()
            .unwrap();
        assert!(rotated.status.success(), "{}", String::from_utf8_lossy(&rotated.stderr));
        self.settings["secret_key"] = new.into();
        let listener = self.listen_again().await;
        self.build(listener).await;
    }

    /// The `.eml` files that `--dev` has written, oldest name first.
    pub fn mail_files(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.database.mail_folder()).into_iter().flatten();
        let mut paths: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|kind| kind == "eml"));
        paths.sort();
        paths
            .iter()
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect()
    }

    /// Every file in the recordings' folder.
    pub fn recorded_files(&self) -> Vec<std::path::PathBuf> {
        files_in(self.database.recordings_folder().as_ref())
    }

    /// Every spool of a line, in the order of their names.
    pub fn spooled_files(&self) -> Vec<std::path::PathBuf> {
        let mut files = files_in(self.database.spool_folder().as_ref());
        files.retain(|path| path.file_name().is_some_and(|name| name != ".lock"));
        files.sort();
        files
    }

    /// Nothing can be stored or erased: where the folder was, there is a file.
    pub fn block_recordings(&self, blocked: bool) {
        let folder = self.database.recordings_folder();
        let aside = format!("{folder}.aside");
        if blocked {
            let _ = std::fs::create_dir_all(&folder);
            std::fs::rename(&folder, &aside).unwrap();
            std::fs::write(&folder, "").unwrap();
        } else {
            std::fs::remove_file(&folder).unwrap();
            std::fs::rename(&aside, &folder).unwrap();
        }
    }

    pub fn database_url(&self) -> &str {
        &self.database.url
    }

    /// A client that shows no key worth anything.
    pub fn anybody(&self) -> Api {
        Api {
            client: client(),
            url: self.url.clone(),
            key: String::new(),
        }
    }

    /// How many rows a table has.
    pub async fn rows(&self, table: &str) -> i64 {
        use sea_orm::{ConnectionTrait, Statement};
        let db = &self.deps().db.read;
        let count = Statement::from_string(db.get_database_backend(), format!("SELECT COUNT(*) FROM {table}"));
        db.query_one_raw(count)
            .await
            .unwrap()
            .unwrap()
            .try_get_by_index(0)
            .unwrap()
    }

    /// What is stored, for the checker of promises. The carrier keeps no log here: times are not real.
    pub async fn evidence(&self) -> Evidence {
        let mut dump = Vec::new();
        let writing = callboard::cli::audit::write(&self.deps().db.read, None, &mut dump);
        writing.await.unwrap();
        let lines = dump.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Evidence {
            dump: lines.map(|line| serde_json::from_slice(line).unwrap()).collect(),
            carrier: Vec::new(),
            provider: Vec::new(),
            acknowledged: Vec::new(),
            files: None,
            taken_at: None,
            kills: Vec::new(),
            limit: 20,
            rate: 1e6,
            burst: 1.0,
            settled: true,
        }
    }

    /// The next commits fail as if the database were busy.
    pub fn fail_next_commits(&self, commits: u32) {
        self.deps().writer.fail_next(commits);
    }

    async fn end(&mut self) {
        self.settle().await;
        let db = &self.deps().db.read;
        let open_deliveries = entities::delivery::count_open(db).await.unwrap();
        let open_sessions = entities::session::open(db, Share::Whole, None, 10).await.unwrap().len();
        let wrongly_told = self.wrongly_told().await;
        self.server.take().unwrap().stop(false).await;
        self.app.take().unwrap().abandon().await;
        self.database.drop().await;
        assert_eq!(
            (open_deliveries, open_sessions),
            (0, 0),
            "undone work: open deliveries, open sessions"
        );
        assert_eq!(wrongly_told, Vec::<String>::new(), "not as the specification says");
    }

    /// What of all that was told is not as the specification says.
    async fn wrongly_told(&self) -> Vec<String> {
        use sea_orm::EntityTrait;
        let db: &entities::connection::Connection = &self.deps().db.read;
        let told = entities::event::Entity::find().all(db).await.unwrap();
        let opened = told
            .into_iter()
            .map(|event| runtime::at_rest::opened(&self.deps().keyring, event).unwrap());
        opened
            .flat_map(|event| crate::specification::faults(&serde_json::from_str(&event.body).unwrap()))
            .collect()
    }

    /// A workspace with a test key that has all scopes.
    pub async fn tenant(&self) -> Tenant {
        let number = self.next_tenant.replace(self.next_tenant.get() + 1);
        let deps = self.deps();
        let slug = format!("tenant-{number}");
        // Hashing a password takes long in a test build; no scenario but those of access needs one.
        let new = NewWorkspace {
            slug: slug.clone(),
            name: "Tenant".into(),
            country: "US".parse().unwrap(),
            timezone: "America/New_York".parse().unwrap(),
            email: format!("{slug}@example.com"),
            password_hash: "-".into(),
        };
        let (tenant, _, changes) = new.rows(&deps.db.read, &deps.ids, deps.clock.now(), 20).await.unwrap();
        deps.writer
            .commit(
                Of::Anybody,
                rules::commit::Commit {
                    changes,
                    events: Vec::new(),
                },
            )
            .await
            .unwrap();
        let api = self.api(tenant.id, Env::Test, Scopes::all()).await;
        Tenant {
            id: tenant.id,
            slug,
            api,
        }
    }

    /// The operator gives a number to a workspace for live use.
    pub async fn claim_number(&self, tenant: TenantId, number: &str) {
        let deps = self.deps().clone();
        let asked = entities::number_claim::Model {
            phone_number: number.parse().unwrap(),
            tenant_id: tenant,
            source: entities::number_claim::Source::Operator,
            claimed_at: deps.clock.now(),
        };
        let ids = deps.ids.clone();
        let claiming = deps.writer.run(Of::Anybody, move |db| {
            let (asked, ids) = (asked.clone(), ids.clone());
            Box::pin(async move {
                let (_, mails) = actors::verify::claim::claim(db, &ids, asked).await?;
                let mut commit = rules::commit::Commit::default();
                commit.changes.mails.extend(mails);
                Ok(((), commit))
            })
        });
        claiming.await.unwrap();
    }

    /// A client with a new key.
    pub async fn api(&self, tenant: TenantId, env: Env, scopes: Scopes) -> Api {
        let deps = self.deps();
        let asked = NewKey {
            name: Text::parse("test").unwrap(),
            env,
            scopes,
            limits: Default::default(),
            expires_at: None,
        };
        let (key, plaintext) = access::new_key(deps.ids.next(), tenant, asked, deps.clock.now());
        let mut commit = rules::commit::Commit::default();
        commit.changes.api_keys.push(key);
        deps.writer.commit(Of::Anybody, commit).await.unwrap();
        Api {
            client: client(),
            url: self.url.clone(),
            key: plaintext.to_string(),
        }
    }
}

/// One for all tests: each of its own would read all certificates of the system first. It keeps no connection, so that nothing of
/// one test is left to another.
pub fn client() -> reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "talks to the test's own server")]
    let new = || {
        let builder = reqwest::Client::builder().pool_max_idle_per_host(0).no_proxy();
        builder.redirect(reqwest::redirect::Policy::none()).build().unwrap()
    };
    CLIENT.get_or_init(new).clone()
}

/// A workspace as its programs see it.
pub struct Tenant {
    pub id: TenantId,
    pub slug: String,
    pub api: Api,
}

/// A client of the API.
#[derive(Clone)]
pub struct Api {
    pub client: reqwest::Client,
    pub url: String,
    pub key: String,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

impl Answer {
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.body);
        self.body
    }
    /// Status, code, field.
    pub fn error(&self) -> (u16, &str, Option<&str>) {
        let error = &self.body["error"];
        (
            self.status.as_u16(),
            error["code"].as_str().unwrap_or("no error body"),
            error["param"].as_str(),
        )
    }
}

impl Api {
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(&self.key)
    }
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let request = request.build().unwrap();
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let response = self.client.execute(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        contract::check(&method, &path, status, &body);
        Answer { status, headers, body }
    }
    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).json(&body)).await
    }
    /// Sends a CSV file.
    pub async fn upload(&self, path: &str, csv: impl Into<String>) -> Answer {
        let request = self.request(Method::POST, path).header("content-type", "text/csv");
        self.send(request.body(csv.into())).await
    }
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::PATCH, path).json(&body)).await
    }
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }
}

impl Tenant {
    pub async fn agent(&self) -> String {
        let agent = self
            .api
            .post("/v1/agents", json!({ "name": "Ann", "prompt": "Be kind." }))
            .await
            .ok();
        agent["id"].as_str().unwrap().to_owned()
    }

    /// Registers a receiver for all events.
    pub async fn webhook(&self, receiver: &Receiver) -> String {
        let endpoint = self
            .api
            .post(
                "/v1/webhook_endpoints",
                json!({ "url": receiver.url, "event_types": ["*"] }),
            )
            .await
            .ok();
        receiver.expect_signatures_of(endpoint["secret"].as_str().unwrap());
        endpoint["id"].as_str().unwrap().to_owned()
    }

    /// Creates and starts a campaign over these numbers; answers its id.
    pub async fn run_campaign(&self, numbers: &[&str], more: Value) -> String {
        let contacts: Vec<_> = numbers.iter().map(|number| json!({ "phone_number": number })).collect();
        let mut campaign = json!({ "name": "Test", "agent_id": self.agent().await, "contacts": contacts, "pacing": { "calls_per_second": 50 } });
        for (name, value) in more.as_object().unwrap() {
            campaign[name] = value.clone();
        }
        self.api.post("/v1/campaigns/run", campaign).await.ok()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub async fn campaign(&self, id: &str) -> Value {
        self.api.get(&format!("/v1/campaigns/{id}")).await.ok()
    }

    /// All events so far, oldest first.
    pub async fn events(&self) -> Vec<Value> {
        let mut events = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self
                .api
                .get(&format!("/v1/events?order=asc&limit=100{cursor}"))
                .await
                .ok();
            events.extend(page["data"].as_array().unwrap().clone());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return events,
            }
        }
    }

    pub async fn event_types(&self) -> Vec<String> {
        self.events()
            .await
            .iter()
            .map(|event| event["type"].as_str().unwrap().to_owned())
            .collect()
    }
}
