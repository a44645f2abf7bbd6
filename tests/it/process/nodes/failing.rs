//! Nodes that fail, or cannot reach their database.
use super::{Installation, WORKSPACES, faults};
use crate::{
    process::{on_disk, pause, signal, terminate, written::millis},
    world::{
        Backend, client,
        functions::{FunctionServer, Reply},
        network::Network,
    },
};
use futures_util::future::join_all;
use media::webrtc::{Codec, peer::Peer};
use serde_json::{Value, json};
use std::{
    sync::atomic::Ordering::SeqCst,
    time::{Duration, Instant},
};

/// Somebody in a room.
struct Person {
    /// What is deleted to leave.
    seat: String,
    /// Their browser, as long as they are there.
    _peer: Peer,
}

impl Installation {
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

    /// Calls that its carrier has been given.
    fn placed_by(&self, at: usize) -> usize {
        let log = self.place.folder.path().join(format!("{}.log", self.nodes[at].name));
        let log = std::fs::read_to_string(log).unwrap_or_default();
        log.lines().filter(|line| line.contains("\"placed\"")).count()
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
                Fault::Stopped => signal(process, "-STOP"),
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
                    signal(process, "-CONT");
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
        signal(process, "-STOP");
        for path in &calls {
            let over = nodes.until(&key, path, |session| session["phase"] == "ended").await;
            eprintln!("{path}: {}", over["end_reason"]);
        }
        // The sentence takes 21.4 s.
        pause(30_000).await;
        let called = server.calls().len();
        assert!(called < CALLS, "nobody was in the middle of the sentence");
        signal(process, "-CONT");
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
