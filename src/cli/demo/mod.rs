//! `callboard demo`: the main job in front of your eyes. A workspace in a temporary database, a local receiver that
//! verifies signatures, and a sandbox campaign over a list as messy as real ones.
mod list;
mod receiver;
mod report;

use crate::{
    access::{self, NewKey, NewWorkspace},
    app::App,
    error::CannotStart,
    settings::Settings,
};
use clap::Args;
use entities::values::{Env, Scopes, Text};
use receiver::Receiver;
use reqwest::{Client, Method};
use rules::commit::Commit;
use runtime::clock::Clock;
use serde_json::{Value, json};
use std::{
    io::IsTerminal,
    net::{SocketAddr, TcpListener},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Args)]
pub struct Demo {
    /// Your own list: a CSV file with a header and a column phone_number [default: the 200 rows of examples/contacts.csv]
    #[arg(long, value_name = "FILE.csv")]
    contacts: Option<PathBuf>,
    /// Calls started per second
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    calls_per_second: f64,
    /// Keep the server running at the end, and print its address, its key and a link to talk with an agent
    #[arg(long)]
    keep: bool,
}

/// Ringing and talking take a tenth of their time.
const SPEED: f64 = 10.0;

impl Demo {
    pub async fn run(self, json: bool) -> Result<(), CannotStart> {
        let contacts = list::read(self.contacts.as_deref()).map_err(CannotStart)?;
        let folder = std::env::temp_dir().join(format!("callboard-demo-{}", uuid::Uuid::from_u128(rand::random())));
        // Nobody else's, and for nobody else to read.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| CannotStart(format!("{}: {error}", folder.display())))?;
        let outcome = self.watch(json, contacts, &folder).await;
        if !self.keep
            && let Err(error) = std::fs::remove_dir_all(&folder)
        {
            eprintln!("{} could not be removed: {error}", folder.display());
        }
        outcome
    }

    async fn watch(&self, json: bool, contacts: Vec<Value>, folder: &Path) -> Result<(), CannotStart> {
        let listener = local_listener()?;
        let address = listener.local_addr().map_err(said)?;
        let settings = settings(address, folder)?;
        let app = App::build(settings, Clock::wall()).await?;
        let server = app.serve(listener).map_err(said)?;
        let handle = server.handle();
        actix_rt::spawn(server);
        let key = workspace(&app).await?;
        let api = Api {
            client: client()?,
            url: format!("http://{address}"),
            key,
        };

        let receiver = Receiver::start(!json).map_err(said)?;
        let say = |text: String| {
            if !json {
                println!("{text}");
            }
        };
        say(format!(
            "Callboard runs at {}, a receiver at {}. {} rows are read.\n",
            api.url,
            receiver.url,
            contacts.len()
        ));
        subscribe(&api, &receiver).await?;
        let campaign = self.start_campaign(&api, contacts).await?;
        let merged = &campaign["contacts"];
        say(format!(
            "\n{} contacts are accepted, {} duplicates merged, {} rows rejected.\n",
            merged["accepted"],
            merged["duplicates"],
            merged["rejected"].as_array().map_or(0, Vec::len)
        ));

        let stats = self.follow(&api, text(&campaign, "id"), json).await?;
        drained(&receiver, &app).await?;
        let report = report::Report::of(&receiver, &stats, merged);
        if json {
            print_json(&report)
        } else {
            println!("{}", report.table())
        }
        if self.keep {
            let room = room(&api).await?;
            // Its events are shown before the link.
            drained(&receiver, &app).await?;
            say(format!(
                "\nStill running at {}\n  key   {}\n  data  {}\n\nTalk with an agent yourself, in a browser on this machine:\n  {}\n\nCtrl-C ends it.",
                api.url,
                api.key,
                folder.display(),
                text(&room, "room_url")
            ));
            tokio::signal::ctrl_c().await.map_err(said)?;
        }
        app.state.streams.ending.send_replace(true);
        handle.stop(true).await;
        receiver.stop().await;
        app.stop(Duration::from_secs(1)).await;
        if report.is_good() {
            Ok(())
        } else {
            Err(CannotStart("the demo did not go as it should; see the table".into()))
        }
    }

    async fn start_campaign(&self, api: &Api, contacts: Vec<Value>) -> Result<Value, CannotStart> {
        let agent = json!({
            "name": "Ann",
            "prompt": "You call customers to confirm their appointment on Friday. Be brief and kind.",
            "first_message": "Hello {{first_name}}, this is Ann from Acme. I am calling about your appointment on Friday.",
            "brain": { "mode": "scripted", "replies": [
                { "hear": ["yes", "this is me"], "say": "Wonderful. Shall I put you down for ten o'clock?" },
                { "hear": ["good", "fine"], "say": "Perfect, I have noted ten o'clock." },
                { "hear": ["bye"], "say": "Thank you, {{first_name}}. Goodbye!", "hang_up": true },
            ] },
        });
        let agent = api.call(Method::POST, "/v1/agents", agent).await?;
        let campaign = json!({
            "name": "Appointments",
            "agent_id": agent["id"],
            "pacing": { "calls_per_second": self.calls_per_second },
            // Numbers that end in 9 are busy first: they are called again at once.
            "retry": { "max_attempts": 2, "min_gap_minutes": 0, "rules": { "no_answer": { "never": true }, "voicemail": { "never": true }, "failed": { "never": true } } },
            "contacts": contacts,
        });
        api.call(Method::POST, "/v1/campaigns/run", campaign).await
    }

    /// Shows progress until the campaign is over; pauses it once on the way, to show that too.
    async fn follow(&self, api: &Api, campaign: &str, json: bool) -> Result<Value, CannotStart> {
        let path = format!("/v1/campaigns/{campaign}");
        let clock = Clock::wall();
        let mut paused = false;
        loop {
            let stats = api.call(Method::GET, &format!("{path}/stats"), Value::Null).await?;
            let counts = &stats["counts"];
            let number = |name: &str| counts[name].as_i64().unwrap_or(0);
            let over = number("completed") + number("failed") + number("skipped");
            if !json {
                progress(&format!(
                    "{over:>4} of {} done  {} live  {} waiting  {} completed  {} failed  {} skipped",
                    number("total"),
                    stats["live_sessions"],
                    number("pending") + number("waiting"),
                    number("completed"),
                    number("failed"),
                    number("skipped"),
                ));
            }
            if stats["status"] == "completed" {
                return Ok(stats);
            }
            if !paused && over * 2 >= number("total") {
                paused = true;
                // A short list may be through by now: then there is nothing to pause.
                if api
                    .call(Method::POST, &format!("{path}/pause"), json!({}))
                    .await
                    .is_err()
                {
                    continue;
                }
                let _busy = clock.sleep(Duration::from_millis(300)).await;
                api.call(Method::POST, &format!("{path}/resume"), json!({})).await?;
            }
            let _busy = clock.sleep(Duration::from_millis(200)).await;
        }
    }
}

fn settings(address: SocketAddr, folder: &Path) -> Result<Settings, CannotStart> {
    Ok(Settings::load(
        None,
        &[
            ("dev", "true".into()),
            ("bind", address.to_string()),
            ("base_url", String::new()),
            ("database_url", format!("sqlite://{}", folder.join("demo.db").display())),
            ("recordings", folder.join("recordings").display().to_string()),
            ("recordings_spool", folder.join("spool").display().to_string()),
            ("secret_key", String::new()),
            ("sandbox_speed", SPEED.to_string()),
            ("max_concurrency", "1000".into()),
        ],
    )?)
}

/// The receiver gets every event from now on, and a test first.
async fn subscribe(api: &Api, receiver: &Receiver) -> Result<(), CannotStart> {
    let endpoint = api
        .call(
            Method::POST,
            "/v1/webhook_endpoints",
            json!({ "url": receiver.url, "event_types": ["*"] }),
        )
        .await?;
    receiver.expect_signatures_of(text(&endpoint, "secret"));
    api.call(
        Method::POST,
        &format!("/v1/webhook_endpoints/{}/test", text(&endpoint, "id")),
        json!({}),
    )
    .await?;
    Ok(())
}

/// Waits until everything was delivered.
async fn drained(receiver: &Receiver, app: &App) -> Result<(), CannotStart> {
    let outcome = receiver.drained(app.deps()).await;
    outcome.map_err(|error| CannotStart(error.to_string()))
}

/// A room whose agent needs to understand no words: without a provider of transcriptions it only hears that something was said.
async fn room(api: &Api) -> Result<Value, CannotStart> {
    let agent = json!({
        "name": "Ann",
        "prompt": "You show what a talk in a browser is like. Be brief and kind.",
        "first_message": "Hello, this is Ann. You reached me with a link and nothing else. How did the demo go?",
        "brain": { "mode": "scripted", "replies": [
            { "hear": ["[pressed"], "say": "I felt that key. Thank you, and goodbye!", "hang_up": true },
            { "say": "I heard you speak, every second of it. You can cut in on me, too. Shall we go on?" },
            { "say": "Good. Now open the keypad below, and press any key you like." },
        ] },
    });
    let agent = api.call(Method::POST, "/v1/agents", agent).await?;
    api.call(Method::POST, "/v1/rooms", json!({ "agent_id": agent["id"] }))
        .await
}

/// One line that changes, on a terminal; nothing elsewhere.
fn progress(line: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K{line}");
    }
}

/// Makes room where the progress line stands.
fn clear_line() -> &'static str {
    if std::io::stdout().is_terminal() {
        "\r\x1b[2K"
    } else {
        ""
    }
}

fn print_json(report: &report::Report) {
    println!("{}", serde_json::to_string_pretty(report).unwrap_or_default());
}

fn said(error: impl std::fmt::Display) -> CannotStart {
    CannotStart(error.to_string())
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn local_listener() -> Result<TcpListener, CannotStart> {
    TcpListener::bind(("127.0.0.1", 0)).map_err(|error| CannotStart(format!("no local port is free: {error}")))
}

/// A workspace and a test key, as the operator's commands make them.
async fn workspace(app: &App) -> Result<String, CannotStart> {
    let deps = app.deps();
    let new = NewWorkspace::parse(
        "demo",
        "Demo",
        "US",
        "demo@example.com",
        &runtime::keyring::Keyring::generate(),
    )?;
    // More calls at once than the pace can fill, so that the pace is what one sees.
    let (tenant, _, mut changes) = new.rows(&deps.db.read, &deps.ids, deps.clock.now(), 1000).await?;
    let name = Text::parse("demo").map_err(CannotStart)?;
    let asked = NewKey {
        name,
        env: Env::Test,
        scopes: Scopes::all(),
        limits: Default::default(),
        expires_at: None,
    };
    let (key, plaintext) = access::new_key(deps.ids.next(), tenant.id, asked, deps.clock.now());
    changes.api_keys.push(key);
    deps.writer
        .commit(
            tenant.id.into(),
            Commit {
                changes,
                events: Vec::new(),
            },
        )
        .await?;
    Ok(plaintext.to_string())
}

/// A client of the API, as a user's program would have one.
struct Api {
    client: Client,
    url: String,
    key: String,
}

impl Api {
    async fn call(&self, method: Method, path: &str, body: Value) -> Result<Value, CannotStart> {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(&self.key);
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await.map_err(said)?;
        let status = answer.status();
        let body: Value = answer.json().await.map_err(said)?;
        if status.is_success() {
            Ok(body)
        } else {
            Err(CannotStart(format!("{path} answered {status}: {body}")))
        }
    }
}

fn client() -> Result<Client, CannotStart> {
    #[expect(
        clippy::disallowed_methods,
        reason = "talks to the demo's own server, not to users' addresses"
    )]
    Client::builder().no_proxy().build().map_err(said)
}
