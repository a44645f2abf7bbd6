//! Several nodes on one PostgreSQL: killed, stopped for a while, cut off from the database, and told to go, while they call, send and
//! answer. What all of them have written down is put side by side, and nothing may contradict.
mod asked;
mod checked;
mod failing;
mod moving;

use super::{Place, Starting, json_of, kills, own_address, pause};
use crate::world::{Receiver, client, phone::ports::Ports};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    process::Child,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::{Duration, Instant},
};

const LIMIT: usize = 100;
const WORKSPACES: usize = 6;

fn faults() -> usize {
    kills().div_ceil(4)
}

/// Contacts of each campaign, and its calls a second: so that it calls until the last fault.
fn contacts() -> usize {
    (faults() * 5).max(40)
}

fn rate() -> f64 {
    (contacts() as f64 / (faults() * 10) as f64).min(2.0)
}

struct Node {
    name: String,
    url: String,
    environment: Vec<(&'static str, String)>,
    child: Option<Child>,
}

impl Node {
    fn setting(&self, name: &str) -> &str {
        let found = self.environment.iter().find(|(known, _)| *known == name);
        &found.unwrap().1
    }
}

impl Drop for Node {
    /// A test that fails leaves none behind.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
/// Three nodes, and workspaces that call, are told of it and pay for it.
struct Installation {
    place: Place,
    outside: DatabaseConnection,
    nodes: Vec<Node>,
    /// One of each workspace.
    receivers: Vec<Receiver>,
    keys: Vec<String>,
    /// Whom people talk with in rooms.
    agents: Vec<Value>,
    campaigns: Vec<String>,
    acknowledged: Vec<Value>,
    /// Which node was killed, or stopped, and when.
    killed: Vec<(usize, i64)>,
    next: AtomicUsize,
}

impl Installation {
    /// `urls`: where each node finds the database.
    async fn open(place: Place, urls: [&str; 3]) -> Self {
        let mut options = ConnectOptions::new(&place.database.url);
        options.max_connections(2).sqlx_logging(false);
        let outside = Database::connect(options).await.unwrap();
        // Below those that the system gives to others: a node that comes again finds its own still free.
        let mut ports = Ports::new();
        let nodes = ["a", "b", "c"].into_iter().zip(urls).map(|(name, url)| {
            let (bind, between) = (own_address(), own_address());
            let log = place.folder.path().join(format!("{name}.log"));
            let environment = vec![
                ("CALLBOARD_DATABASE_URL", url.to_owned()),
                ("CALLBOARD_BIND", bind.clone()),
                ("CALLBOARD_NODE_BIND", between),
                ("CALLBOARD_SIP_BIND", format!("127.0.0.1:{}", ports.take())),
                ("CALLBOARD_NODE_NAME", name.to_owned()),
                ("CALLBOARD_RECORDINGS_SPOOL", format!("spool-{name}")),
                ("CALLBOARD_SANDBOX_LOG", log.to_str().unwrap().to_owned()),
                ("CALLBOARD_SANDBOX_SPEED", "5".to_owned()),
                ("CALLBOARD_WEBHOOK_RETRY_SCHEDULE", "1,1,1,1,1,1,1,1,1".to_owned()),
                ("CALLBOARD_DRAIN_SECONDS", "10".to_owned()),
                ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "60".to_owned()),
            ];
            Node {
                name: name.to_owned(),
                url: format!("http://{bind}"),
                environment,
                child: None,
            }
        });
        let mut installation = Installation {
            nodes: nodes.collect(),
            outside,
            place,
            receivers: Vec::new(),
            keys: Vec::new(),
            agents: Vec::new(),
            campaigns: Vec::new(),
            acknowledged: Vec::new(),
            killed: Vec::new(),
            next: AtomicUsize::new(0),
        };
        let starting: Vec<Starting> = (0..3).map(|at| installation.starting(at)).collect();
        for (node, starting) in installation.nodes.iter_mut().zip(starting) {
            node.child = Some(starting.ready());
        }
        installation
    }

    fn starting(&self, at: usize) -> Starting {
        let environment = &self.nodes[at].environment;
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, &**value)).collect();
        self.place.start(&environment)
    }

    fn start(&mut self, at: usize) {
        self.nodes[at].child = Some(self.starting(at).ready());
    }

    fn child(&mut self, at: usize) -> &mut Child {
        self.nodes[at].child.as_mut().unwrap()
    }

    /// A workspace in which nothing goes on yet; answers a key of it.
    fn quiet_workspace(&self, n: usize) -> String {
        let slug = format!("w{n}");
        self.place
            .create_workspace(&slug, &slug, &format!("{slug}@example.com"));
        let create = [
            "--json",
            "keys",
            "create",
            "--workspace",
            &slug,
            "--env",
            "test",
            "--name",
            "k",
        ];
        let made = self.place.run(&create);
        json_of(&made)["plaintext"].as_str().unwrap().to_owned()
    }

    /// A workspace with an endpoint, a campaign and somebody to talk with in rooms, made over one node after the other.
    async fn workspace(&mut self, n: usize) {
        let key = self.quiet_workspace(n);
        let limits = json!({ "limit": LIMIT });
        self.ask(&key, reqwest::Method::PATCH, "/v1/concurrency", Some(limits))
            .await;
        let receiver = Receiver::start();
        let endpoint = json!({ "url": receiver.url, "event_types": ["*"] });
        let endpoint = self.post(&key, "/v1/webhook_endpoints", endpoint).await;
        receiver.expect_signatures_of(endpoint["secret"].as_str().unwrap());
        self.receivers.push(receiver);
        let agent = self
            .post(&key, "/v1/agents", json!({ "name": "Ann", "prompt": "x" }))
            .await;
        let contacts: Vec<_> = (0..contacts())
            .map(|m| json!({ "phone_number": format!("+150020{n}{m:03}{}", [0, 1, 0, 3, 0, 9][m % 6]) }))
            .collect();
        let plan = json!({
            "name": "Spread", "agent_id": agent["id"], "contacts": contacts, "pacing": { "calls_per_second": rate() },
            "retry": { "max_attempts": 2, "min_gap_minutes": 0 },
        });
        let campaign = self.post(&key, "/v1/campaigns/run", plan).await;
        self.acknowledged
            .push(json!({ "kind": "campaign", "id": campaign["id"] }));
        self.campaigns
            .push(format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap()));
        let host = json!({ "name": "Bo", "prompt": "x", "first_message": "Hello.",
            "brain": { "mode": "scripted", "replies": [{ "say": "Go on." }] } });
        let host = self.post(&key, "/v1/agents", host).await["id"].clone();
        self.agents.push(host);
        self.keys.push(key);
    }

    async fn post(&self, key: &str, path: &str, body: Value) -> Value {
        self.ask(key, reqwest::Method::POST, path, Some(body)).await
    }

    /// Asks whichever node is next, and another one if that does not answer, as a load balancer does. A repeat has the same key.
    async fn ask(&self, key: &str, method: reqwest::Method, path: &str, body: Option<Value>) -> Value {
        let idempotency_key = format!("request-{}", self.next.fetch_add(1, SeqCst));
        let begun = Instant::now();
        let mut said = String::new();
        while begun.elapsed() < Duration::from_secs(60) {
            let node = &self.nodes[self.next.fetch_add(1, SeqCst) % self.nodes.len()];
            let mut request = client()
                .request(method.clone(), format!("{}{path}", node.url))
                .bearer_auth(key)
                .timeout(Duration::from_secs(20));
            if let Some(body) = &body {
                request = request.json(body).header("idempotency-key", &idempotency_key);
            }
            match request.send().await {
                Ok(answer) if answer.status().is_success() => {
                    if let Ok(value) = answer.json().await {
                        return value;
                    }
                }
                Ok(answer) => {
                    let status = answer.status();
                    said = format!("{status}: {}", answer.text().await.unwrap_or_default());
                    assert!(
                        status.is_server_error() || status.as_u16() == 429 || status.as_u16() == 409,
                        "{path}: {said}"
                    );
                }
                Err(error) => said = error.to_string(),
            }
            pause(100).await;
        }
        panic!("{path} was not answered: {said}");
    }

    async fn get(&self, key: &str, path: &str) -> Value {
        self.ask(key, reqwest::Method::GET, path, None).await
    }

    /// Reads until it is so.
    async fn until(&self, key: &str, path: &str, so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let value = self.get(key, path).await;
            if so(&value) {
                return value;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{path}: {value}");
            pause(100).await;
        }
    }

    /// How many workspaces that node says it has.
    async fn reported(&self, at: usize) -> i64 {
        let asked = client().get(format!("{}/metrics", self.nodes[at].url)).send().await;
        let metrics = asked.unwrap().text().await.unwrap();
        let mut lines = metrics.lines();
        let count = lines.find_map(|line| line.strip_prefix("callboard_workspaces "));
        // It says nothing before it has looked for the first time.
        count.map_or(0, |count| count.parse().unwrap())
    }

    async fn rows(&self, text: &str) -> Vec<(String, i64)> {
        let backend = self.outside.get_database_backend();
        let rows = self
            .outside
            .query_all_raw(Statement::from_string(backend, text))
            .await
            .unwrap();
        let read = rows
            .iter()
            .map(|row| (row.try_get_by_index(0).unwrap(), row.try_get_by_index(1).unwrap()));
        read.collect()
    }

    /// How many workspaces each living node has, by its name.
    async fn held(&self) -> BTreeMap<String, i64> {
        let text = "SELECT n.name::text, COUNT(l.tenant_id) FROM nodes n LEFT JOIN workspace_leases l ON l.node_id = n.id \
                    AND l.tenant_id <> '00000000-0000-0000-0000-000000000000' WHERE n.ended_ms IS NULL GROUP BY n.id, n.name";
        self.rows(text).await.into_iter().collect()
    }

    /// Until all workspaces are had by living nodes, but for none by that one; answers how long that took.
    async fn taken_over_from(&self, at: usize) -> Duration {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            let held = self.held().await;
            if held.get(&self.nodes[at].name).is_none_or(|count| *count == 0)
                && held.values().sum::<i64>() == WORKSPACES as i64
            {
                return begun.elapsed();
            }
            pause(50).await;
        }
        panic!(
            "what {} had is not taken over: {:?}",
            self.nodes[at].name,
            self.held().await
        );
    }

    /// The name of the one that has the only workspace.
    async fn owner(&self) -> String {
        let held = self.held().await;
        held.into_iter().find(|(_, count)| *count == 1).unwrap().0
    }

    /// The one that has most.
    async fn busiest(&self) -> usize {
        let held = self.held().await;
        let has = |at: &usize| held.get(&self.nodes[*at].name).copied();
        (0..3).max_by_key(has).unwrap()
    }

    /// Until each node has its part.
    async fn balanced(&self) {
        for _ in 0..600 {
            let held = self.held().await;
            if held.len() == 3 && held.values().all(|count| (1..=3).contains(count)) {
                return;
            }
            pause(100).await;
        }
        panic!("workspaces are not spread: {:?}", self.held().await);
    }
}
