//! The load run. One process: the service, a receiver on a thread of its own, and the client that the service's own speed is
//! compared with. Everything stays on loopback and ends by itself.
#![expect(clippy::expect_used, reason = "a run that cannot go on has failed")]

use actix_web::{
    App as WebApp, HttpResponse, HttpServer,
    web::{self, Bytes, Data},
};
use actors::{
    clock::Clock,
    outbound::{Options, Outbound, Policy},
    signature,
    writer::Commit,
};
use callboard::{
    access::{self, NewKey, NewWorkspace},
    app::App,
    settings::Settings,
};
use entities::values::{Env, Moment, Scopes, Text};
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use std::{
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Default)]
struct Inbox {
    count: AtomicUsize,
    /// From the commit to the arrival, milliseconds.
    latencies_ms: Mutex<Vec<i64>>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments
            .iter()
            .position(|argument| argument == name)
            .and_then(|at| arguments.get(at + 1))
            .cloned()
    };
    let contacts = option("--contacts").map_or(20_000, |text| text.parse().expect("--contacts N"));
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database =
        option("--database").unwrap_or_else(|| format!("sqlite://{}", folder.path().join("load.db").display()));
    actix_rt::System::new().block_on(run(contacts, database));
}

async fn run(contacts: usize, database: String) {
    let inbox = Arc::new(Inbox::default());
    let hook = receiver(inbox.clone());
    let raw = raw_limit(&hook, &inbox).await;
    println!("raw limit of this client and receiver       {raw:>10.0} posts/s");

    let clock = Clock::wall();
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let bind = listener.local_addr().expect("its address").to_string();
    let settings = Settings::load(
        None,
        &[
            ("dev", "true".into()),
            ("bind", bind.clone()),
            ("base_url", String::new()),
            ("database_url", database.clone()),
            ("secret_key", actors::keyring::Keyring::generate()),
            ("sandbox_speed", "1000000000".into()),
            ("max_calls_per_second", "10000".into()),
            ("max_concurrency", "1000".into()),
        ],
    )
    .expect("good settings");
    let app = App::build(settings, clock.clone()).await.expect("the service starts");
    let server = app.serve(listener).expect("it listens");
    let handle = server.handle();
    actix_rt::spawn(server);
    let api = Api {
        client: client(),
        url: format!("http://{bind}"),
        key: key(&app).await,
    };
    api.post(
        "/v1/webhook_endpoints",
        json!({ "url": hook, "event_types": ["*"], "max_concurrency": 32 }),
    )
    .await;
    let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await["id"].clone();

    let name = if database.starts_with("sqlite") {
        "SQLite, synchronous=FULL"
    } else {
        "PostgreSQL"
    };
    println!("\n{name}: {contacts} contacts at full speed");
    let campaign = draft(&api, &agent, contacts, 10_000.0).await;
    let (cpu, started) = (cpu_seconds(), Instant::now());
    let before = inbox.count.load(Ordering::SeqCst);
    api.post(&format!("{campaign}/start"), json!({})).await;
    finished(&api, &campaign, &clock).await;
    let dispatched = started.elapsed().as_secs_f64();
    // created, started and completed of the campaign, and five events for each contact.
    let events = 5 * contacts + 2;
    arrived(&inbox, before + events, &clock).await;
    let elapsed = started.elapsed().as_secs_f64();
    println!(
        "  contacts through their calls              {:>10.0} /s",
        contacts as f64 / dispatched
    );
    println!(
        "  contacts, all five events delivered       {:>10.0} /s",
        contacts as f64 / elapsed
    );
    println!(
        "  events committed, delivered, logged       {:>10.0} /s   ({:.0} % of the raw limit)",
        events as f64 / elapsed,
        100.0 * events as f64 / elapsed / raw
    );
    println!(
        "  CPU seconds per 1,000 contacts            {:>10.2}",
        (cpu_seconds() - cpu) * 1000.0 / contacts as f64
    );
    println!(
        "  resident memory                           {:>10.0} MiB",
        resident_mib()
    );

    let calls = 500;
    println!("\n{name}: {calls} contacts at 50 calls/s");
    inbox.latencies_ms.lock().expect("no panic").clear();
    let before = inbox.count.load(Ordering::SeqCst);
    let campaign = draft(&api, &agent, calls, 50.0).await;
    let started = Instant::now();
    api.post(&format!("{campaign}/start"), json!({})).await;
    finished(&api, &campaign, &clock).await;
    let elapsed = started.elapsed().as_secs_f64();
    arrived(&inbox, before + 5 * calls + 3, &clock).await;
    let mut latencies = std::mem::take(&mut *inbox.latencies_ms.lock().expect("no panic"));
    latencies.sort_unstable();
    let percentile = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
    println!(
        "  achieved rate                             {:>10.1} /s",
        (calls - 1) as f64 / elapsed
    );
    println!(
        "  commit to arrival, p50 and p99            {:>7} and {} ms",
        percentile(50),
        percentile(99)
    );
    handle.stop(true).await;
    app.stop(Duration::from_secs(1)).await;
}

/// A campaign with its contacts, not started; answers its path.
async fn draft(api: &Api, agent: &Value, contacts: usize, calls_per_second: f64) -> String {
    let campaign = json!({ "name": "Load", "agent_id": agent, "pacing": { "calls_per_second": calls_per_second } });
    let path = format!(
        "/v1/campaigns/{}",
        api.post("/v1/campaigns", campaign).await["id"].as_str().expect("an id")
    );
    let all: Vec<Value> = (0..contacts)
        .map(|n| json!({ "phone_number": format!("+1500{}0", 200_000 + n) }))
        .collect();
    for slice in all.chunks(1000) {
        api.post(&format!("{path}/contacts"), json!({ "contacts": slice }))
            .await;
    }
    path
}

async fn finished(api: &Api, campaign: &str, clock: &Clock) {
    while api.get(campaign).await["status"] != "completed" {
        let _busy = clock.sleep(Duration::from_millis(50)).await;
    }
}

async fn arrived(inbox: &Inbox, events: usize, clock: &Clock) {
    let until = Instant::now() + Duration::from_secs(600);
    while inbox.count.load(Ordering::SeqCst) < events {
        assert!(
            Instant::now() < until,
            "only {} of {events} events arrived",
            inbox.count.load(Ordering::SeqCst)
        );
        let _busy = clock.sleep(Duration::from_millis(5)).await;
    }
}

/// The same client posts the same signed body to the same receiver, without storage.
async fn raw_limit(hook: &str, inbox: &Inbox) -> f64 {
    let url = url::Url::parse(hook).expect("a URL");
    let body = Bytes::from(format!(
        r#"{{"id":"x","created_at":"2027-03-02T13:00:00.000Z","data":"{}"}}"#,
        "x".repeat(600)
    ));
    let secret = signature::new_secret();
    let before = inbox.count.load(Ordering::SeqCst);
    let (started, time) = (Instant::now(), Duration::from_secs(3));
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
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let (outbound, url, body, secret) = (outbound.clone(), url.clone(), body.clone(), secret.clone());
            runtime.spawn(async move {
                while started.elapsed() < time {
                    let mut headers = HeaderMap::new();
                    let signed = signature::sign(&secret, 1_700_000_000, &body);
                    headers.insert("x-webhook-signature", HeaderValue::from_str(&signed).expect("hex"));
                    headers.insert("content-type", HeaderValue::from_static("application/json"));
                    let exchange = outbound.post(&url, headers, body.clone(), Duration::from_secs(5)).await;
                    exchange.outcome.expect("an answer");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    runtime.shutdown_background();
    inbox.latencies_ms.lock().expect("no panic").clear();
    (inbox.count.load(Ordering::SeqCst) - before) as f64 / started.elapsed().as_secs_f64()
}

fn receiver(inbox: Arc<Inbox>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("its address"));
    let data = Data::from(inbox);
    let server = HttpServer::new(move || {
        WebApp::new()
            .app_data(data.clone())
            .route("/hook", web::post().to(receive))
    });
    actix_rt::spawn(
        server
            .workers(1)
            .disable_signals()
            .listen(listener)
            .expect("it listens")
            .run(),
    );
    url
}

async fn receive(inbox: Data<Inbox>, body: Bytes) -> HttpResponse {
    inbox.count.fetch_add(1, Ordering::SeqCst);
    let text = std::str::from_utf8(&body).expect("JSON");
    let created = text
        .split_once(r#""created_at":""#)
        .and_then(|(_, rest)| Moment::parse(rest.get(..24)?).ok());
    if let Some(created) = created {
        inbox
            .latencies_ms
            .lock()
            .expect("no panic")
            .push(Clock::wall().now().millis() - created.millis());
    }
    HttpResponse::Ok().finish()
}

async fn key(app: &App) -> String {
    let deps = app.deps();
    let slug = format!("load-{}", deps.clock.now().millis());
    let new = NewWorkspace::parse(&slug, "Load", "US", &format!("{slug}@example.com"), &slug).expect("good input");
    let (tenant, _, mut changes) = new
        .rows(&deps.db.read, &deps.ids, deps.clock.now(), 1000)
        .await
        .expect("rows");
    let asked = NewKey {
        name: Text::parse("load").expect("a name"),
        env: Env::Test,
        scopes: Scopes::all(),
        expires_at: None,
    };
    let (key, plaintext) = access::new_key(deps.ids.next(), tenant.id, asked, deps.clock.now());
    changes.api_keys.push(key);
    deps.writer
        .commit(Commit {
            changes,
            events: Vec::new(),
        })
        .await
        .expect("a commit");
    plaintext.to_string()
}

struct Api {
    client: reqwest::Client,
    url: String,
    key: String,
}

impl Api {
    async fn post(&self, path: &str, body: Value) -> Value {
        let request = self
            .client
            .post(format!("{}{path}", self.url))
            .bearer_auth(&self.key)
            .json(&body);
        let answer = request.send().await.expect("an answer");
        assert!(
            answer.status().is_success(),
            "{path}: {}",
            answer.text().await.expect("a body")
        );
        answer.json().await.expect("JSON")
    }
    async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}{path}", self.url)).bearer_auth(&self.key);
        request.send().await.expect("an answer").json().await.expect("JSON")
    }
}

fn client() -> reqwest::Client {
    #[expect(clippy::disallowed_methods, reason = "talks to the run's own server")]
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .filter_map(|field| field.parse().ok())
        .collect();
    // The 14th and 15th of all, in ticks of a hundredth second; the state, which is no number, is left out.
    fields
        .get(10)
        .zip(fields.get(11))
        .map_or(0.0, |(user, system)| (user + system) / 100.0)
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}
