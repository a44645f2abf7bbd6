//! The service under load, its API's client, and what the system says of this process.
use super::{
    plot,
    receiver::{Receiver, micros_now},
};
use actors::{deps::Deps, leases::Of};
use adapters::{
    outbound::{Options, Outbound, Policy},
    signature,
};
use bytes::Bytes;
use callboard::{
    access::{self, NewKey, NewWorkspace},
    app::App,
    settings::Settings,
};
use entities::{
    ids::TenantId,
    values::{Env, Scopes, Text},
};
use reqwest::header::{HeaderMap, HeaderValue};
use rules::{commit::Commit, law::Law};
use runtime::clock::Clock;
use serde_json::Value;
use std::{
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

pub struct Service {
    pub app: App,
    pub clock: Clock,
    url: String,
    handle: actix_web::dev::ServerHandle,
}

impl Service {
    pub async fn start(database: &str) -> Self {
        Self::start_with(database, &[]).await
    }

    /// With settings of its own.
    pub async fn start_with(database: &str, more: &[(&str, String)]) -> Self {
        Self::start_under(Law::new(rules::law::pack(), None), database, more).await
    }

    /// The same under another law than that of the pack.
    pub async fn start_under(law: Law, database: &str, more: &[(&str, String)]) -> Self {
        let clock = Clock::wall();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let bind = listener.local_addr().expect("its address").to_string();
        let mut flags = vec![
            ("dev", "true".into()),
            ("bind", bind.clone()),
            ("base_url", String::new()),
            ("database_url", database.to_owned()),
            // Always the same, so that a second process can read what the first wrote.
            ("secret_key", "bG9hZCBydW5zIG5lZWQgbm8gc2VjcmVjeSBhdCBhbGw=".into()),
            ("sandbox_speed", "1000000000".into()),
            (
                "recordings",
                std::env::temp_dir()
                    .join("callboard-load-recordings")
                    .display()
                    .to_string(),
            ),
            (
                "recordings_spool",
                std::env::temp_dir().join("callboard-load-spool").display().to_string(),
            ),
            ("voice", "tones".into()),
            ("max_calls_per_second", "10000".into()),
            ("max_concurrency", "1000".into()),
        ];
        flags.extend(more.iter().cloned());
        let settings = Settings::load(None, &flags).expect("good settings");
        let app = App::under(Arc::new(law), settings, clock.clone())
            .await
            .expect("the service starts");
        let server = app.serve(listener).expect("it listens");
        let handle = server.handle();
        actix_rt::spawn(server);
        plot::watch(&bind, None);
        Service {
            app,
            clock,
            url: format!("http://{bind}"),
            handle,
        }
    }

    pub fn deps(&self) -> &Deps {
        self.app.deps()
    }

    /// A workspace with a key.
    pub async fn tenant(&self) -> (TenantId, Api) {
        let deps = self.deps();
        let slug = format!("load-{}", deps.ids.next::<TenantId>());
        let new = NewWorkspace {
            slug: slug.clone(),
            name: "Load".into(),
            country: "US".parse().expect("a country"),
            timezone: "America/New_York".parse().expect("a zone"),
            email: format!("{slug}@example.com"),
            password_hash: "-".into(),
        };
        let rows = new.rows(&deps.db.read, &deps.ids, deps.clock.now(), 1000).await;
        let (tenant, _, mut changes) = rows.expect("rows");
        let asked = NewKey {
            name: Text::parse("load").expect("a name"),
            env: Env::Test,
            scopes: Scopes::all(),
            limits: Default::default(),
            expires_at: None,
        };
        let (key, plaintext) = access::new_key(deps.ids.next(), tenant.id, asked, deps.clock.now());
        changes.api_keys.push(key);
        let commit = Commit {
            changes,
            events: Vec::new(),
        };
        deps.writer.commit(Of::Anybody, commit).await.expect("a commit");
        (tenant.id, Api::new(self.url.clone(), plaintext.to_string()))
    }

    /// With a key that an earlier service has made in the same database.
    pub fn api(&self, key: &str) -> Api {
        Api::new(self.url.clone(), key.to_owned())
    }

    pub async fn pause(&self, millis: u64) {
        let _busy = self.clock.sleep(Duration::from_millis(millis)).await;
    }

    pub async fn stop(self) {
        self.handle.stop(true).await;
        self.app.stop(Duration::from_secs(1)).await;
    }
}

/// The same client posts a signed body of 1 KiB to the same receiver, without storage, to so many of its paths.
pub async fn raw_limit(receiver: &Receiver, paths: usize) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads");
    let policy = Policy {
        dev: true,
        ..Policy::default()
    };
    let outbound = Outbound::new(policy, Options::on(runtime.handle().clone())).expect("a client");
    receiver.reset().await;
    let secret = signature::new_secret();
    let (started, time) = (Instant::now(), Duration::from_secs(3));
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let url = url::Url::parse(&receiver.hook(task % paths)).expect("a URL");
            let (outbound, secret) = (outbound.clone(), secret.clone());
            runtime.spawn(async move {
                while started.elapsed() < time {
                    let body = Bytes::from(format!(
                        r#"{{"id":"x","data":"t={} {}"}}"#,
                        micros_now(),
                        "x".repeat(980)
                    ));
                    let mut headers = HeaderMap::new();
                    let signed = signature::sign(&secret, 1_700_000_000, &body);
                    headers.insert("x-webhook-signature", HeaderValue::from_str(&signed).expect("hex"));
                    headers.insert("content-type", HeaderValue::from_static("application/json"));
                    let exchange = outbound.post(&url, headers, body, Duration::from_secs(5)).await;
                    exchange.outcome.expect("an answer");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let elapsed = started.elapsed().as_secs_f64();
    runtime.shutdown_background();
    let limit = receiver.count().await as f64 / elapsed;
    plot::raw_limit(limit);
    limit
}

pub struct Api {
    client: reqwest::Client,
    url: String,
    key: String,
}

impl Api {
    pub fn new(url: String, key: String) -> Self {
        let client = client();
        Api { client, url, key }
    }
    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.send(self.client.post(format!("{}{path}", self.url)), path, body)
            .await
    }
    pub async fn patch(&self, path: &str, body: Value) -> Value {
        self.send(self.client.patch(format!("{}{path}", self.url)), path, body)
            .await
    }
    async fn send(&self, request: reqwest::RequestBuilder, path: &str, body: Value) -> Value {
        let request = request.bearer_auth(&self.key).json(&body);
        let answer = request.send().await.expect("an answer");
        assert!(
            answer.status().is_success(),
            "{path}: {}",
            answer.text().await.expect("a body")
        );
        answer.json().await.expect("JSON")
    }
    /// Sends a CSV file.
    pub async fn upload(&self, path: &str, csv: String) -> Value {
        let request = self.client.post(format!("{}{path}", self.url)).bearer_auth(&self.key);
        let answer = request
            .header("content-type", "text/csv")
            .body(csv)
            .send()
            .await
            .expect("an answer");
        answer.json().await.expect("JSON")
    }
    /// The status of an answer, whatever it is, once it is read; 0 without one. A POST, if there is a body.
    pub async fn status(&self, path: &str, body: Option<Value>) -> u16 {
        let url = format!("{}{path}", self.url);
        let request = match body {
            Some(body) => self.client.post(url).json(&body),
            None => self.client.get(url),
        };
        let Ok(answer) = request.bearer_auth(&self.key).send().await else {
            return 0;
        };
        let status = answer.status().as_u16();
        answer.bytes().await.map_or(0, |_| status)
    }
    /// Host and port.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }
    pub fn key(&self) -> &str {
        &self.key
    }
    pub async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}{path}", self.url)).bearer_auth(&self.key);
        request.send().await.expect("an answer").json().await.expect("JSON")
    }
}

pub fn client() -> reqwest::Client {
    #[expect(clippy::disallowed_methods, reason = "talks to the run's own servers")]
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

pub fn name_of(database: &str) -> &'static str {
    if database.starts_with("sqlite") {
        "SQLite, synchronous=FULL"
    } else {
        "PostgreSQL"
    }
}

/// User and system time of this process.
pub fn cpu_seconds() -> f64 {
    let [user, system, ..] = times("self");
    user + system
}

/// Of a process by its id, or `self`: user and system time in seconds, and that of its children that have ended.
pub fn times(process: &str) -> [f64; 4] {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<f64> = stat
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .filter_map(|field| field.parse().ok())
        .collect();
    // The 14th to 17th of all, in ticks of a hundredth second; the state, which is no number, is left out.
    [10, 11, 12, 13].map(|at| fields.get(at).map_or(0.0, |ticks| ticks / 100.0))
}

pub fn resident_mib() -> f64 {
    memory_mib("self", "VmRSS")
}

/// A line of what the system says of a process, by its id.
pub fn memory_mib(process: &str, line: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mut lines = status.lines();
    let value = lines.find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
    let value = value.unwrap_or_default().trim().trim_end_matches(" kB");
    value.parse::<f64>().unwrap_or(0.0) / 1024.0
}
