//! What all nodes have written down, put side by side.
use super::{Installation, LIMIT, WORKSPACES, contacts};
use crate::{
    audit::{Evidence, check, report},
    process::{
        pause, terminate,
        written::{count, lines, millis},
    },
    world::Receiver,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

impl Installation {
    /// Waits for the end of everything, and looks at all that was written down.
    pub(super) async fn checked(mut self) {
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
        let dump = self.place.dump();
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
        let lost = count(&dump, "end_reason", "node_lost");
        assert!(lost == 0 || !self.killed.is_empty(), "{lost} calls were cut off");
        let rooms = dump.iter().filter(|line| line["kind"] == "room");
        let cut_off = rooms.filter(|room| room["status"] == "failed").count();
        assert_eq!(
            cut_off == 0,
            self.killed.is_empty(),
            "{cut_off} rooms ended with their node"
        );
        // Most calls are over within a second, and cost nothing; but for each that is dialled something is set aside.
        let holds = count(&dump, "entry", "hold");
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
