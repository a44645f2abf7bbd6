//! Requests, and calls that come in, at a node that does not have the workspace.
use super::{Installation, Node};
use crate::{
    process::{on_disk, stderr, terminate},
    world::{Backend, client},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::{net::UdpSocket, time::Duration};

/// The nodes that do not have the workspace, asked with its key.
struct Others {
    urls: Vec<String>,
    key: String,
}

impl Others {
    fn ask(&self, at: usize, method: Method, path: &str) -> RequestBuilder {
        client()
            .request(method, format!("{}{path}", self.urls[at]))
            .bearer_auth(&self.key)
    }

    /// A repeat over another node is the same request; answers the id of the agent that it makes.
    async fn repeat_themselves(&self) -> Value {
        let agent = json!({ "name": "Ben", "prompt": "x" });
        let mut ids = Vec::new();
        for at in 0..2 {
            let post = self
                .ask(at, Method::POST, "/v1/agents")
                .header("idempotency-key", "one")
                .json(&agent);
            let made = post.send().await.unwrap();
            assert_eq!(made.status().as_u16(), 201);
            assert!(made.headers().contains_key("ratelimit-remaining"));
            assert_eq!(made.headers().get_all("x-request-id").iter().count(), 1);
            ids.push(made.json::<Value>().await.unwrap()["id"].clone());
        }
        assert!(ids[0].is_string());
        assert_eq!(ids[0], ids[1]);
        ids.remove(0)
    }

    /// What is refused is refused in the owner's words, and by its status.
    async fn refuse(&self) {
        let refused = self
            .ask(0, Method::POST, "/v1/agents")
            .json(&json!({ "name": "" }))
            .send()
            .await
            .unwrap();
        let (status, request) = (refused.status().as_u16(), refused.headers()["x-request-id"].clone());
        let body: Value = refused.json().await.unwrap();
        assert_eq!((status, &body["error"]["param"]), (422, &json!("name")));
        assert_eq!(body["error"]["request_id"], request.to_str().unwrap());
        let head = self.ask(0, Method::HEAD, "/v1/agents").send().await.unwrap();
        assert_eq!((head.status().as_u16(), head.bytes().await.unwrap().len()), (200, 0));
    }

    /// A body that is streamed, and an answer that is.
    async fn stream_bodies(&self, agent: &Value) {
        let draft = json!({ "name": "Long", "agent_id": agent });
        let drafted = self.ask(0, Method::POST, "/v1/campaigns").json(&draft);
        let draft: Value = drafted.send().await.unwrap().json().await.unwrap();
        let path = format!("/v1/campaigns/{}", draft["id"].as_str().unwrap());
        let contacts: Vec<_> = (0..1000)
            .map(|n| json!({ "phone_number": format!("+15003{n:06}"), "first_name": "x".repeat(90) }))
            .collect();
        let contacts = json!({ "contacts": contacts });
        let added = self.ask(1, Method::POST, &format!("{path}/contacts")).json(&contacts);
        let added: Value = added.send().await.unwrap().json().await.unwrap();
        assert_eq!(added["accepted"], 1000, "{added}");
        // The same without a word about its length.
        let pieces: Vec<Result<Vec<u8>, std::io::Error>> = serde_json::to_vec(&contacts)
            .unwrap()
            .chunks(10_000)
            .map(|piece| Ok(piece.to_vec()))
            .collect();
        assert!(pieces.len() > 10);
        let again = self
            .ask(0, Method::POST, &format!("{path}/contacts"))
            .header("content-type", "application/json")
            .body(reqwest::Body::wrap_stream(futures_util::stream::iter(pieces)));
        let again: Value = again.send().await.unwrap().json().await.unwrap();
        assert_eq!(again["duplicates"], 1000, "{again}");
        let report = self.ask(0, Method::GET, &format!("{path}/report.csv"));
        let report = report.send().await.unwrap().text().await.unwrap();
        assert_eq!(report.lines().count(), 1001);
    }

    /// Events as they happen.
    async fn tell_of_events(&self) {
        let mut stream = self.ask(1, Method::GET, "/v1/events/stream").send().await.unwrap();
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        let mut heard = String::new();
        while !heard.contains("event: ") {
            heard += std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap();
        }
    }

    /// Somebody signs in at one node, and goes on at each.
    async fn sign_in(&self, nodes: &[Node], owner: &str) {
        let login = json!({ "email": "w0@example.com", "password": "correct horse battery" });
        let signed_in = client()
            .post(format!("{}/v1/_internal/login", self.urls[0]))
            .json(&login);
        let signed_in = signed_in.send().await.unwrap();
        let cookie = signed_in.headers()["set-cookie"].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap();
        for node in nodes {
            let see = |path: &str| client().get(format!("{}{path}", node.url)).header("cookie", cookie);
            for path in ["/v1/_internal/me", "/v1/_internal/t/w0/test/agents"] {
                let seen = see(path).send().await.unwrap();
                assert_eq!(seen.status().as_u16(), 200, "{path} at {}", node.name);
            }
            let kept = see("/v1/_internal/t/w0").send().await.unwrap();
            let kept = kept.json::<Value>().await.unwrap();
            assert_eq!(kept["node"], json!(owner), "at {}", node.name);
        }
    }

    /// Between nodes nobody else is answered.
    async fn forge(&self, nodes: &[Node]) {
        for node in nodes {
            let hop = format!("203.0.113.7 req_1 {}", "0".repeat(64));
            let forged = client()
                .get(format!("http://{}/v1/me", node.setting("CALLBOARD_NODE_BIND")))
                .bearer_auth(&self.key)
                .header("callboard-hop", hop);
            assert_eq!(forged.send().await.unwrap().status().as_u16(), 404);
        }
    }
}

/// Whichever node is asked: it answers as the one does that has the workspace, whole bodies and streams too.
#[test]
fn any_node_takes_any_request() {
    on_disk(Backend::Postgres, async |place| {
        let url = place.database.url.clone();
        let mut nodes = Installation::open(place, [&url; 3]).await;
        nodes.workspace(0).await;
        let owner = nodes.owner().await;
        let are_others = |node: &&Node| node.name != owner;
        let others = Others {
            urls: nodes
                .nodes
                .iter()
                .filter(are_others)
                .map(|node| node.url.clone())
                .collect(),
            key: nodes.keys[0].clone(),
        };
        let agent = others.repeat_themselves().await;
        others.refuse().await;
        others.stream_bodies(&agent).await;
        others.tell_of_events().await;
        others.sign_in(&nodes.nodes, &owner).await;
        others.forge(&nodes.nodes).await;
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

/// The first answer to an INVITE that says more than that it has arrived; it is sent until there is one.
fn invited(socket: &UdpSocket, number: &str, to: &str) -> String {
    let peer = socket.local_addr().unwrap().to_string();
    for n in 0..40 {
        socket.send_to(invite(number, &peer, n).as_bytes(), to).unwrap();
        let mut buffer = [0; 4096];
        while let Ok(length) = socket.recv(&mut buffer) {
            let answer = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if !answer.starts_with("SIP/2.0 100") {
                return answer;
            }
        }
    }
    panic!("nobody answers at {to}");
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
        let owner = nodes.owner().await;
        let mut all = nodes.nodes.iter();
        let owners = all.clone().find(|node| node.name == owner).unwrap();
        let other = all.find(|node| node.name != owner).unwrap();
        let moved = invited(&socket, NUMBER, other.setting("CALLBOARD_SIP_BIND"));
        assert!(moved.starts_with("SIP/2.0 302"), "{moved}");
        let contact = format!("<sip:{NUMBER}@{};transport=udp>", owners.setting("CALLBOARD_SIP_BIND"));
        assert!(moved.contains(&contact), "{moved}");
    });
}
