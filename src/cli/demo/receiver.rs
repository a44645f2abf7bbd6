//! The receiver: a user's web server in miniature. Verifies each delivery as the documentation says.
use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer,
    dev::ServerHandle,
    web::{self, Bytes, Data},
};
use actors::deps::Deps;
use adapters::signature;
use entities::values::Moment;
use runtime::clock::Clock;
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashSet},
    net::TcpListener,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub struct Receiver {
    pub url: String,
    inbox: Arc<Inbox>,
    server: ServerHandle,
}

struct Inbox {
    /// Show the first event of each kind.
    show: bool,
    clock: Clock,
    seen: Mutex<Seen>,
}

/// What has arrived.
#[derive(Clone, Default)]
pub struct Seen {
    secret: String,
    ids: HashSet<String>,
    pub by_type: BTreeMap<String, u64>,
    /// Outcomes of contacts, in words, but for those that failed.
    outcomes: BTreeMap<String, u64>,
    /// The last session of each contact that failed, and the status of each session: in whatever order they arrive.
    failed: Vec<String>,
    statuses: BTreeMap<String, String>,
    pub deliveries: u64,
    pub repeats: u64,
    pub not_verified: u64,
    /// From the commit to the receipt, in milliseconds.
    pub latencies_ms: Vec<i64>,
}

impl Receiver {
    pub fn start(show: bool) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let inbox = Arc::new(Inbox {
            show,
            clock: Clock::wall(),
            seen: Mutex::default(),
        });
        let data = Data::from(inbox.clone());
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .route("/hook", web::post().to(receive))
        })
        .workers(1)
        .disable_signals()
        .listen(listener)?
        .run();
        let handle = server.handle();
        actix_rt::spawn(server);
        Ok(Receiver {
            url,
            inbox,
            server: handle,
        })
    }

    pub fn expect_signatures_of(&self, secret: &str) {
        self.inbox.seen().secret = secret.to_owned();
    }

    pub fn seen(&self) -> Seen {
        self.inbox.seen().clone()
    }

    /// Waits until nothing is on its way any more.
    pub async fn drained(&self, deps: &Deps) -> entities::Result<()> {
        while entities::delivery::count_open(&deps.db.read).await? > 0 {
            let _busy = deps.clock.sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    pub async fn stop(&self) {
        self.server.stop(true).await;
    }
}

impl Inbox {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(inbox: Data<Inbox>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let now = inbox.clock.now();
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let (sent, timestamp) = (
        header("x-webhook-signature"),
        header("x-webhook-timestamp").parse().unwrap_or(0),
    );
    let mut seen = inbox.seen();
    // The raw bytes, before anything is parsed.
    if let Err(why) = signature::verify(&seen.secret, &sent, timestamp, &body, now.millis() / 1000) {
        seen.not_verified += 1;
        eprintln!("\na delivery was rejected: {why}");
        return HttpResponse::BadRequest().finish();
    }
    let event: Value = serde_json::from_slice(&body).unwrap_or_default();
    seen.deliveries += 1;
    let id = event["id"].as_str().unwrap_or_default().to_owned();
    if !seen.ids.insert(id) {
        // At least once: a receiver knows repeats by their id.
        seen.repeats += 1;
        return HttpResponse::Ok().finish();
    }
    if let Ok(created_at) = Moment::parse(event["created_at"].as_str().unwrap_or_default()) {
        seen.latencies_ms.push(now.millis() - created_at.millis());
    }
    let kind = event["type"].as_str().unwrap_or_default().to_owned();
    seen.note(&kind, &event["data"]);
    let count = seen.by_type.entry(kind.clone()).or_default();
    *count += 1;
    if *count == 1 && inbox.show {
        let pretty = serde_json::to_string_pretty(&event).unwrap_or_default();
        println!(
            "{}── {kind}\n{pretty}\n   X-Webhook-Timestamp: {timestamp}\n   X-Webhook-Signature: {sent}\n   ✓ verified\n",
            super::clear_line()
        );
    }
    HttpResponse::Ok().finish()
}

impl Seen {
    fn note(&mut self, kind: &str, data: &Value) {
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        let outcome = match kind {
            "session.failed" => {
                self.statuses.insert(text("session_id"), text("status"));
                return;
            }
            "campaign.contact_failed" => return self.failed.push(text("session_id")),
            "campaign.contact_completed" => "completed".to_owned(),
            "campaign.contact_skipped" => format!("skipped: {}", text("skip_reason")),
            _ => return,
        };
        *self.outcomes.entry(outcome).or_default() += 1;
    }

    pub fn outcomes(&self) -> BTreeMap<String, u64> {
        let mut all = self.outcomes.clone();
        for session in &self.failed {
            let status = self.statuses.get(session).map_or("unknown", String::as_str);
            *all.entry(format!("failed: {status}")).or_default() += 1;
        }
        all
    }
}
