//! Several nodes on one PostgreSQL: killed, stopped for a while, cut off from the database, and told to go, while they call, send and
//! answer. What all of them have written down is put side by side, and nothing may contradict.
use super::{
    Place, Starting, kills, on_disk, own_address, pause, stderr,
    takeover::signal,
    terminate,
    the_law::{lines, millis},
};
use crate::{
    audit::{Evidence, check, report},
    world::{
        Backend, Receiver, client,
        functions::{FunctionServer, Reply},
        network::Network,
        phone::ports::Ports,
    },
};
use futures_util::future::join_all;
use media::webrtc::{Codec, peer::Peer};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::UdpSocket,
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

impl Drop for Node {
    /// A test that fails leaves none behind.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Somebody in a room.
struct Person {
    /// What is deleted to leave.
    seat: String,
    /// Their browser, as long as they are there.
    _peer: Peer,
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
        super::json_of(&made)["plaintext"].as_str().unwrap().to_owned()
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

    /// Somebody joins a room of each workspace, over whichever node is next.
    async fn people(&self) -> Vec<Person> {
        let joining = self.keys.iter().zip(&self.agents).map(async |(key, agent)| {
            let room = self.post(key, "/v1/rooms", json!({ "agent_id": agent })).await;
            let link = url::Url::parse(room["room_url"].as_str().unwrap()).unwrap();
            let (path, proof) = (link.path(), link.query().unwrap());
            let (peer, offer) = Peer::offer(Codec::Opus);
            let answer = self
                .knock(reqwest::Method::POST, &format!("{path}/whip?{proof}"), offer)
                .await;
            let seat = answer.headers()["location"].to_str().unwrap().to_owned();
            peer.connect(&answer.text().await.unwrap());
            peer.connected().await;
            Person {
                seat: format!("{seat}?{proof}"),
                _peer: peer,
            }
        });
        join_all(joining).await
    }

    /// Whoever was cut off has left already.
    async fn leave(&self, people: Vec<Person>) {
        let leaving = people.iter().map(async |person| {
            self.knock(reqwest::Method::DELETE, &person.seat, String::new()).await;
        });
        join_all(leaving).await;
    }

    /// Asks one node after the other until one has an answer, as a browser does through a load balancer.
    async fn knock(&self, method: reqwest::Method, path: &str, body: String) -> reqwest::Response {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            let node = &self.nodes[self.next.fetch_add(1, SeqCst) % self.nodes.len()];
            let request = client()
                .request(method.clone(), format!("{}{path}", node.url))
                .header("content-type", "application/sdp")
                .timeout(Duration::from_secs(20))
                .body(body.clone());
            match request.send().await {
                Ok(answer) if !answer.status().is_server_error() => return answer,
                Ok(_) | Err(_) => pause(100).await,
            }
        }
        panic!("{path} was not answered");
    }

    /// Credits are paid for in each workspace, once, however often that is asked for.
    async fn top_ups(&self) -> Vec<Value> {
        let paying = self.keys.iter().map(async |key| {
            let topup = self
                .post(key, "/v1/credits/topups", json!({ "amount_cents": 2_000 }))
                .await;
            assert_eq!(topup["status"], "succeeded", "{topup}");
            json!({ "kind": "topup", "id": topup["id"], "cents": 2_000 })
        });
        join_all(paying).await
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

    /// Calls that its carrier has been given.
    fn placed_by(&self, at: usize) -> usize {
        let log = self.place.folder.path().join(format!("{}.log", self.nodes[at].name));
        let log = std::fs::read_to_string(log).unwrap_or_default();
        log.lines().filter(|line| line.contains("\"placed\"")).count()
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

    /// Waits for the end of everything, and looks at all that was written down.
    async fn checked(mut self) {
        for (key, path) in self.keys.iter().zip(&self.campaigns) {
            let mut status = Value::Null;
            for _ in 0..6000 {
                status = self.get(key, path).await["status"].clone();
                if status == "completed" {
                    break;
                }
                pause(100).await;
            }
            assert_eq!(status, "completed", "{path}");
        }
        for key in &self.keys {
            for _ in 0..3000 {
                let endpoints = self.get(key, "/v1/webhook_endpoints").await;
                let id = endpoints["data"][0]["id"].as_str().unwrap().to_owned();
                let stats = self.get(key, &format!("/v1/webhook_endpoints/{id}/stats")).await;
                if stats["open"]["pending"] == 0 && stats["open"]["retrying"] == 0 {
                    break;
                }
                pause(100).await;
            }
        }
        let dump = self.place.run(&["audit", "dump"]);
        assert!(dump.status.success(), "{}", stderr(&dump));
        let dump = lines(&String::from_utf8(dump.stdout).unwrap());
        let mut carrier = Vec::new();
        for at in 0..self.nodes.len() {
            carrier.extend(self.carried_by(at, &dump));
        }
        carrier.sort_by_key(|line| line["at"].as_i64());
        let placed: Vec<&str> = carrier
            .iter()
            .filter(|line| line["what"] == "placed")
            .map(|line| line["session"].as_str().unwrap())
            .collect();
        let once: BTreeSet<&str> = placed.iter().copied().collect();
        assert_eq!(once.len(), placed.len(), "a session is dialled by one node, and once");
        assert!(placed.len() >= contacts() * WORKSPACES / 2, "{} calls", placed.len());
        self.check_events(&dump);
        let lost = dump.iter().filter(|line| line["end_reason"] == "node_lost").count();
        assert!(lost == 0 || !self.killed.is_empty(), "{lost} calls were cut off");
        let rooms = dump.iter().filter(|line| line["kind"] == "room");
        let cut_off = rooms.filter(|room| room["status"] == "failed").count();
        assert_eq!(
            cut_off == 0,
            self.killed.is_empty(),
            "{cut_off} rooms ended with their node"
        );
        // Most calls are over within a second, and cost nothing; but for each that is dialled something is set aside.
        let holds = dump.iter().filter(|line| line["entry"] == "hold").count();
        assert!(holds >= placed.len(), "{holds} holds for {} calls", placed.len());
        let evidence = Evidence {
            dump,
            carrier,
            provider: Vec::new(),
            acknowledged: std::mem::take(&mut self.acknowledged),
            files: None,
            taken_at: Some(millis()),
            // A fault ends the calls of one node only: see `carried_by`.
            kills: Vec::new(),
            limit: LIMIT,
            rate: 500.0,
            burst: 500.0,
            settled: true,
        };
        let breaches = check(&evidence);
        assert!(breaches.is_empty(), "{}", report(&breaches));
        for node in &mut self.nodes {
            terminate(node.child.as_mut().unwrap());
        }
    }

    /// The log of that node's carrier, in which each call that a fault cut off ends there; and no such call was closed as anything
    /// else than lost.
    fn carried_by(&self, at: usize, dump: &[Value]) -> Vec<Value> {
        let log = self.place.folder.path().join(format!("{}.log", self.nodes[at].name));
        let log = lines(&std::fs::read_to_string(log).unwrap_or_default());
        let of = |line: &Value| line["session"].as_str().unwrap().to_owned();
        let sessions: BTreeMap<&str, &Value> = dump
            .iter()
            .filter(|line| line["kind"] == "session")
            .map(|line| (line["id"].as_str().unwrap(), line))
            .collect();
        let mut carried = log.clone();
        for (_, killed) in self.killed.iter().filter(|(node, _)| *node == at) {
            let micros = killed * 1_000;
            let before = |line: &&Value| line["at"].as_i64().unwrap() <= micros;
            let ended: BTreeSet<String> = log
                .iter()
                .filter(before)
                .filter(|line| line["what"] == "ended")
                .map(of)
                .collect();
            let placed = log.iter().filter(before).filter(|line| line["what"] == "placed");
            for line in placed.filter(|line| !ended.contains(&of(line))) {
                let id = of(line);
                // What the node's carrier noted of it after it was stopped is of a call that nobody had any more.
                carried.retain(|line| line["what"] != "ended" || of(line) != id);
                let mut ended = line.clone();
                (ended["what"], ended["at"]) = ("ended".into(), micros.into());
                carried.push(ended);
                let session = sessions[&*id];
                let ended_at: chrono::DateTime<chrono::Utc> = session["ended_at"].as_str().unwrap().parse().unwrap();
                assert!(
                    session["end_reason"] == "node_lost" || ended_at.timestamp_millis() <= killed + 100,
                    "cut off at {killed}, and closed otherwise: {session}"
                );
            }
        }
        carried
    }

    /// Each event has arrived, and those about one subject for the first time in their order.
    fn check_events(&self, dump: &[Value]) {
        let events: Vec<&Value> = dump.iter().filter(|line| line["kind"] == "event").collect();
        assert!(events.len() > contacts() * WORKSPACES * 3, "{} events", events.len());
        let mut first: BTreeMap<String, usize> = BTreeMap::new();
        let requests: Vec<_> = self.receivers.iter().flat_map(Receiver::requests).collect();
        for (at, request) in requests.iter().enumerate() {
            assert_eq!(request.verified, Some(true));
            first.entry(request.id().to_owned()).or_insert(at);
        }
        let mut by_subject: BTreeMap<&str, Vec<(i64, usize)>> = BTreeMap::new();
        for event in &events {
            let arrived = first.get(event["id"].as_str().unwrap());
            let arrived = *arrived.unwrap_or_else(|| panic!("it did not arrive: {event}"));
            let of_subject = by_subject.entry(event["subject"].as_str().unwrap()).or_default();
            of_subject.push((event["seq"].as_i64().unwrap(), arrived));
        }
        // What is about a workspace as a whole, such as its credits, has no subject, and no order.
        by_subject.remove("00000000-0000-0000-0000-000000000000");
        for (subject, mut events) in by_subject {
            events.sort_unstable();
            assert!(
                events.is_sorted_by_key(|(_, arrived)| *arrived),
                "{subject}: {events:?}"
            );
        }
        eprintln!("{} events, {} repeats", events.len(), requests.len() - first.len());
    }
}

fn shown(mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64();
    eprintln!(
        "{} take-overs: p50 {:.1} s, p99 {:.1} s",
        times.len(),
        at(0.5),
        at(0.99)
    );
}

/// What becomes of a node. `CALLBOARD_TEST_FAULT` names the only one that a long run is to be of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// kill -9.
    Killed,
    /// It stands still until the others have taken what it had, in a long run for a minute.
    Stopped,
    /// It cannot reach the database any more, and is not told so.
    CutOff,
}

fn fault(n: usize) -> Fault {
    match std::env::var("CALLBOARD_TEST_FAULT").as_deref() {
        Ok("killed") => Fault::Killed,
        Ok("stopped") => Fault::Stopped,
        Ok("cut_off") => Fault::CutOff,
        _ => [Fault::Killed, Fault::Stopped, Fault::CutOff][n % 3],
    }
}

/// One node after another fails, while all of them call and send. One that comes back does nothing more, and ends.
#[test]
fn nodes_that_fail_lose_nothing_and_call_nobody_twice() {
    on_disk(Backend::Postgres, async |place| {
        let url = place.database.url.clone();
        let networks = [Network::before(&url), Network::before(&url), Network::before(&url)];
        let urls = networks.each_ref().map(|network| &*network.url);
        let mut nodes = Installation::open(place, urls).await;
        for n in 0..WORKSPACES {
            nodes.workspace(n).await;
        }
        nodes.balanced().await;
        let mut times = Vec::new();
        for n in 0..faults() {
            let people = nodes.people().await;
            let (at, fault) = (nodes.busiest().await, fault(n));
            let process = nodes.child(at).id();
            match fault {
                Fault::Killed => {
                    nodes.child(at).kill().unwrap();
                    nodes.child(at).wait().unwrap();
                }
                Fault::Stopped => signal("-STOP", process),
                Fault::CutOff => networks[at].cut(),
            }
            nodes.killed.push((at, millis()));
            let (taken_over, paid) = futures_util::future::join(nodes.taken_over_from(at), nodes.top_ups()).await;
            times.push(taken_over);
            nodes.acknowledged.extend(paid);
            let placed = nodes.placed_by(at);
            match fault {
                Fault::Killed => {}
                Fault::Stopped => {
                    if faults() > 3 {
                        pause(55_000).await;
                    }
                    signal("-CONT", process);
                }
                Fault::CutOff => networks[at].mend(),
            }
            if fault != Fault::Killed {
                assert!(!nodes.child(at).wait().unwrap().success(), "it ends with a failure");
                // A call that was committed before it was cut off may have been placed at its moment; none after.
                assert!(
                    fault == Fault::CutOff || nodes.placed_by(at) == placed,
                    "it has placed more calls"
                );
            }
            nodes.start(at);
            nodes.leave(people).await;
        }
        shown(times);
        nodes.checked().await;
    });
}

/// Everybody on the line hears a long sentence, after which the agent calls a function. Their node stands still until another has taken
/// its workspace over and the sentence is long over: when it comes back it calls nothing.
#[test]
fn a_node_that_comes_back_calls_no_function() {
    const CALLS: usize = 8;
    on_disk(Backend::Postgres, async |place| {
        let url = place.database.url.clone();
        let mut nodes = Installation::open(place, [&url; 3]).await;
        let key = nodes.quiet_workspace(0);
        let server = FunctionServer::start(|_| Reply::Json(json!({ "booked": true })));
        let days = json!({ "type": "object", "required": ["day"], "properties": { "day": { "enum": ["monday"] } } });
        let function = json!({ "name": "book", "description": "Books a day.", "parameters": days, "url": server.url });
        let function = nodes.post(&key, "/v1/functions", function).await;
        // Near the longest that may be said: on a busy machine it takes a while until all are called and their node stands still.
        let sentence = ["la"; 650].join(" ");
        let reply = json!({ "say": sentence, "call": { "name": "book", "arguments": { "day": "monday" } } });
        let agent = json!({ "name": "Ann", "prompt": "x", "function_ids": [function["id"]],
            "brain": { "mode": "scripted", "replies": [reply] } });
        let agent = nodes.post(&key, "/v1/agents", agent).await;
        let calls = (0..CALLS).map(async |n| {
            let call = json!({ "to_number": format!("+15002{n:05}0"), "agent_id": agent["id"],
                "sandbox": { "script": [{ "say": "Please book a day." }] } });
            let session = nodes.post(&key, "/v1/sessions", call).await;
            let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
            nodes
                .until(&key, &path, |session| !session["started_at"].is_null())
                .await;
            path
        });
        let calls = join_all(calls).await;
        let owner = nodes.busiest().await;
        let process = nodes.child(owner).id();
        signal("-STOP", process);
        for path in &calls {
            let over = nodes.until(&key, path, |session| session["phase"] == "ended").await;
            eprintln!("{path}: {}", over["end_reason"]);
        }
        // The sentence takes 21.4 s.
        pause(30_000).await;
        let called = server.calls().len();
        assert!(called < CALLS, "nobody was in the middle of the sentence");
        signal("-CONT", process);
        assert!(!nodes.child(owner).wait().unwrap().success(), "it ends with a failure");
        assert_eq!(
            server.calls().len(),
            called,
            "it has called a function for what it lost"
        );
        for at in (0..3).filter(|at| *at != owner) {
            terminate(nodes.child(at));
        }
    });
}

/// A new node has its share of workspaces in which nothing goes on, as it says itself. `docs/scaling.md` names 30 s, which a machine that is
/// busy with other tests may miss: what it took is printed, and twice as much fails.
#[test]
fn a_new_node_gets_its_share() {
    const QUIET: i64 = 9;
    on_disk(Backend::Postgres, async |place| {
        let url = place.database.url.clone();
        let mut nodes = Installation::open(place, [&url; 3]).await;
        terminate(nodes.child(2));
        for n in 0..QUIET {
            nodes.quiet_workspace(n as usize);
        }
        let begun = Instant::now();
        while nodes.reported(0).await + nodes.reported(1).await < QUIET {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", nodes.held().await);
            pause(100).await;
        }
        nodes.start(2);
        let begun = Instant::now();
        // A difference of one is not worth a move.
        while nodes.reported(2).await < QUIET / 3 - 1 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", nodes.held().await);
            pause(100).await;
        }
        eprintln!("its share after {:.1} s", begun.elapsed().as_secs_f64());
        for at in 0..3 {
            terminate(nodes.child(at));
        }
    });
}

/// The database is away for all of them, for longer than any of them may be silent: it is nobody's fault, and nobody is replaced.
#[test]
fn a_database_that_was_away_moves_nothing() {
    on_disk(Backend::Postgres, async |place| {
        let url = place.database.url.clone();
        let network = Network::before(&url);
        let mut nodes = Installation::open(place, [&network.url; 3]).await;
        for n in 0..WORKSPACES {
            nodes.workspace(n).await;
        }
        nodes.balanced().await;
        let before = nodes.held().await;
        network.cut();
        pause(8_000).await;
        network.mend();
        nodes.balanced().await;
        assert_eq!(nodes.held().await, before);
        for at in 0..3 {
            assert!(nodes.child(at).try_wait().unwrap().is_none(), "it lives");
        }
        nodes.checked().await;
    });
}

/// One is drained by the operator and takes part again; then a rolling upgrade: each is told to end, and comes again. Whoever tries again is
/// answered, and no call is cut off.
#[test]
fn nodes_that_are_told_to_go_hand_over_what_they_have() {
    on_disk(Backend::Postgres, async |place| {
        let url = place.database.url.clone();
        let mut nodes = Installation::open(place, [&url; 3]).await;
        for n in 0..WORKSPACES {
            nodes.workspace(n).await;
        }
        nodes.balanced().await;
        let unknown = nodes.place.run(&["nodes", "drain", "d"]);
        assert!(
            stderr(&unknown).contains("`d` is not a running node"),
            "{}",
            stderr(&unknown)
        );
        assert!(nodes.place.run(&["nodes", "drain", "b"]).status.success());
        nodes.taken_over_from(1).await;
        let listed = super::json_of(&nodes.place.run(&["--json", "nodes", "list"]));
        let of = |name: &str| {
            listed["nodes"]
                .as_array()
                .unwrap()
                .iter()
                .find(|node| node["name"] == name)
                .unwrap()
                .clone()
        };
        assert_eq!(
            (&of("a")["status"], &of("b")["status"]),
            (&json!("running"), &json!("draining"))
        );
        // It goes on to answer, for the others.
        let ready = client()
            .get(format!("{}/readyz", nodes.nodes[1].url))
            .send()
            .await
            .unwrap();
        assert_eq!(ready.json::<Value>().await.unwrap()["node"], json!({ "name": "b" }));
        assert!(nodes.place.run(&["nodes", "resume", "b"]).status.success());
        nodes.balanced().await;
        // One that would serve alone is not let in beside them.
        nodes.place.refuses_a_second(&[]);
        for at in 0..3 {
            let process = nodes.child(at).id();
            signal("-TERM", process);
            // While it leaves, each is asked for each workspace.
            while nodes.child(at).try_wait().unwrap().is_none() {
                for key in &nodes.keys {
                    nodes.get(key, "/v1/me").await;
                }
            }
            assert!(nodes.child(at).wait().unwrap().success(), "it ends in order");
            nodes.start(at);
        }
        nodes.balanced().await;
        nodes.checked().await;
    });
}

/// Whichever node is asked: it answers as the one does that has the workspace, whole bodies and streams too.
#[test]
fn any_node_takes_any_request() {
    on_disk(Backend::Postgres, async |place| {
        let url = place.database.url.clone();
        let mut nodes = Installation::open(place, [&url; 3]).await;
        nodes.workspace(0).await;
        let key = nodes.keys[0].clone();
        let owner = nodes.held().await.into_iter().find(|(_, count)| *count == 1).unwrap().0;
        let others: Vec<String> = nodes
            .nodes
            .iter()
            .filter(|node| node.name != owner)
            .map(|node| node.url.clone())
            .collect();
        let asks = |at: usize, method: reqwest::Method, path: &str| {
            client()
                .request(method, format!("{}{path}", others[at]))
                .bearer_auth(&key)
        };

        // A repeat over another node is the same request.
        let agent = json!({ "name": "Ben", "prompt": "x" });
        let mut ids = BTreeSet::new();
        for at in 0..2 {
            let post = asks(at, reqwest::Method::POST, "/v1/agents")
                .header("idempotency-key", "one")
                .json(&agent);
            let made = post.send().await.unwrap();
            assert_eq!(made.status().as_u16(), 201);
            assert!(made.headers().contains_key("ratelimit-remaining"));
            assert_eq!(made.headers().get_all("x-request-id").iter().count(), 1);
            ids.insert(made.json::<Value>().await.unwrap()["id"].to_string());
        }
        assert_eq!(ids.len(), 1);

        // What is refused is refused in the owner's words, and by its status.
        let refused = asks(0, reqwest::Method::POST, "/v1/agents")
            .json(&json!({ "name": "" }))
            .send()
            .await
            .unwrap();
        let (status, request) = (refused.status().as_u16(), refused.headers()["x-request-id"].clone());
        let body: Value = refused.json().await.unwrap();
        assert_eq!((status, &body["error"]["param"]), (422, &json!("name")));
        assert_eq!(body["error"]["request_id"], request.to_str().unwrap());
        let head = asks(0, reqwest::Method::HEAD, "/v1/agents").send().await.unwrap();
        assert_eq!((head.status().as_u16(), head.bytes().await.unwrap().len()), (200, 0));

        // A body that is streamed, and an answer that is.
        let draft = json!({ "name": "Long", "agent_id": serde_json::from_str::<Value>(ids.first().unwrap()).unwrap() });
        let draft: Value = asks(0, reqwest::Method::POST, "/v1/campaigns")
            .json(&draft)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let path = format!("/v1/campaigns/{}", draft["id"].as_str().unwrap());
        let contacts: Vec<_> = (0..1000)
            .map(|n| json!({ "phone_number": format!("+15003{n:06}"), "first_name": "x".repeat(90) }))
            .collect();
        let added = asks(1, reqwest::Method::POST, &format!("{path}/contacts")).json(&json!({ "contacts": contacts }));
        let added: Value = added.send().await.unwrap().json().await.unwrap();
        assert_eq!(added["accepted"], 1000, "{added}");
        // The same without a word about its length.
        let pieces: Vec<Result<Vec<u8>, std::io::Error>> = serde_json::to_vec(&json!({ "contacts": contacts }))
            .unwrap()
            .chunks(10_000)
            .map(|piece| Ok(piece.to_vec()))
            .collect();
        assert!(pieces.len() > 10);
        let again = asks(0, reqwest::Method::POST, &format!("{path}/contacts"))
            .header("content-type", "application/json")
            .body(reqwest::Body::wrap_stream(futures_util::stream::iter(pieces)));
        let again: Value = again.send().await.unwrap().json().await.unwrap();
        assert_eq!(again["duplicates"], 1000, "{again}");
        let report = asks(0, reqwest::Method::GET, &format!("{path}/report.csv"))
            .send()
            .await
            .unwrap();
        assert_eq!(report.text().await.unwrap().lines().count(), 1001);

        // Events as they happen.
        let mut stream = asks(1, reqwest::Method::GET, "/v1/events/stream").send().await.unwrap();
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        let mut heard = String::new();
        while !heard.contains("event: ") {
            heard += std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap();
        }

        // Somebody signs in at one node, and goes on at another.
        let login = json!({ "email": "w0@example.com", "password": "correct horse battery" });
        let signed_in = client()
            .post(format!("{}/v1/_internal/login", others[0]))
            .json(&login)
            .send()
            .await
            .unwrap();
        let cookie = signed_in.headers()["set-cookie"]
            .to_str()
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .to_owned();
        for node in &nodes.nodes {
            for path in ["/v1/_internal/me", "/v1/_internal/t/w0/test/agents"] {
                let seen = client()
                    .get(format!("{}{path}", node.url))
                    .header("cookie", &cookie)
                    .send()
                    .await
                    .unwrap();
                assert_eq!(seen.status().as_u16(), 200, "{path} at {}", node.name);
            }
            let kept = client()
                .get(format!("{}/v1/_internal/t/w0", node.url))
                .header("cookie", &cookie)
                .send()
                .await
                .unwrap();
            assert_eq!(
                kept.json::<Value>().await.unwrap()["node"],
                json!(owner),
                "at {}",
                node.name
            );
        }

        // Between nodes nobody else is answered.
        for (_, between) in nodes
            .nodes
            .iter()
            .flat_map(|node| &node.environment)
            .filter(|(name, _)| *name == "CALLBOARD_NODE_BIND")
        {
            let hop = format!("203.0.113.7 req_1 {}", "0".repeat(64));
            let forged = client()
                .get(format!("http://{between}/v1/me"))
                .bearer_auth(&key)
                .header("callboard-hop", hop);
            assert_eq!(forged.send().await.unwrap().status().as_u16(), 404);
        }
        for node in &mut nodes.nodes {
            terminate(node.child.as_mut().unwrap());
        }
    });
}

fn invite(number: &str, peer: &str, n: usize) -> String {
    format!(
        "INVITE sip:{number}@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP {peer};branch=z9hG4bK{n}\r\nMax-Forwards: 70\r\n\
         From: <sip:+12025550177@{peer}>;tag=t{n}\r\nTo: <sip:{number}@127.0.0.1>\r\nCall-ID: call-{n}@{peer}\r\nCSeq: 1 INVITE\r\n\
         Contact: <sip:peer@{peer}>\r\nContent-Length: 0\r\n\r\n"
    )
}

/// A carrier calls whichever node it likes, and is told which one answers.
#[test]
fn a_call_that_comes_in_at_another_node_is_sent_on() {
    const NUMBER: &str = "+12025550188";
    on_disk(Backend::Postgres, async |place| {
        let url = place.database.url.clone();
        let nodes = Installation::open(place, [&url; 3]).await;
        nodes.place.create_workspace("acme", "Acme", "a@b.co");
        let key = nodes.place.create_key("live", "k");
        let claim = ["workspace", "claim-number", "--workspace", "acme", "--number", NUMBER];
        let claimed = nodes.place.run(&claim);
        assert!(claimed.status.success(), "{}", stderr(&claimed));
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let peer = socket.local_addr().unwrap().to_string();
        let trunk = json!({ "name": "Carrier", "host": peer, "options_interval_seconds": 0 });
        let trunk = nodes.post(&key, "/v1/sip_trunks", trunk).await;
        let agent = nodes
            .post(&key, "/v1/agents", json!({ "name": "Ann", "prompt": "x" }))
            .await;
        let number = json!({ "phone_number": NUMBER, "trunk_id": trunk["id"], "agent_id": agent["id"] });
        nodes.post(&key, "/v1/numbers", number).await;
        let owner = nodes.held().await.into_iter().find(|(_, count)| *count == 1).unwrap().0;
        let sip_of = |node: &Node| {
            let found = node.environment.iter().find(|(name, _)| *name == "CALLBOARD_SIP_BIND");
            found.unwrap().1.clone()
        };
        let owners = sip_of(nodes.nodes.iter().find(|node| node.name == owner).unwrap());
        let other = sip_of(nodes.nodes.iter().find(|node| node.name != owner).unwrap());
        let mut moved = String::new();
        for n in 0..40 {
            socket.send_to(invite(NUMBER, &peer, n).as_bytes(), &other).unwrap();
            let mut buffer = [0; 4096];
            while let Ok(length) = socket.recv(&mut buffer) {
                let answer = String::from_utf8_lossy(&buffer[..length]).into_owned();
                if !answer.starts_with("SIP/2.0 100") {
                    moved = answer;
                    break;
                }
            }
            if !moved.is_empty() {
                break;
            }
        }
        assert!(moved.starts_with("SIP/2.0 302"), "{moved}");
        assert!(
            moved.contains(&format!("<sip:{NUMBER}@{owners};transport=udp>")),
            "{moved}"
        );
    });
}
