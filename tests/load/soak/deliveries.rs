//! Deliveries, of which there are too many to keep as they are printed: each event went to each endpoint once, and nothing else
//! went anywhere (I3); after quiet all that went to the receiver that answers has arrived.
use serde_json::Value;
use std::collections::HashMap;

#[derive(Default)]
pub struct Deliveries {
    /// By event: how many each endpoint has, in the order in which endpoints were met.
    counts: HashMap<String, [u8; ENDPOINTS]>,
    endpoints: Vec<String>,
    /// By endpoint and state.
    states: HashMap<(String, String), usize>,
    /// Events that go to all endpoints.
    events: Vec<String>,
    strange: Vec<String>,
}

const ENDPOINTS: usize = 3;
/// Breaches that are said.
const SAID: usize = 20;

impl Deliveries {
    /// Takes what is about deliveries, and hands the rest on to the checker.
    pub fn read(&mut self, fact: Value, rest: &mut Vec<Value>) {
        match fact["kind"].as_str() {
            Some("delivery") => self.delivery(&fact),
            Some("attempt" | "endpoint" | "key") => {}
            _ => {
                // A notice of a suspension goes to the others only.
                let kind = fact["type"].as_str().unwrap_or_default();
                if fact["kind"] == "event" && !kind.starts_with("webhook.") {
                    self.events.push(text(&fact["id"]));
                }
                rest.push(fact);
            }
        }
    }

    fn delivery(&mut self, fact: &Value) {
        let (endpoint, event) = (text(&fact["endpoint"]), text(&fact["event"]));
        *self.states.entry((endpoint.clone(), text(&fact["state"]))).or_default() += 1;
        let known = self.endpoints.iter().position(|known| *known == endpoint);
        let at = known.unwrap_or_else(|| {
            self.endpoints.push(endpoint);
            self.endpoints.len() - 1
        });
        match self.counts.entry(event).or_default().get_mut(at) {
            Some(count) if fact["replay_of"].is_null() => *count = count.saturating_add(1),
            Some(_) | None => self.strange.push(format!("nobody asked for delivery {}", fact["id"])),
        }
    }

    /// `answers`: the endpoint that always answers comes first.
    pub fn breaches(self, endpoints: &[String; ENDPOINTS], settled: bool) -> Vec<String> {
        let mut found = self.strange;
        for event in &self.events {
            let counts = self.counts.get(event).copied().unwrap_or_default();
            if counts != [1; ENDPOINTS] {
                found.push(format!(
                    "event {event} has {counts:?} deliveries, where one to each endpoint must be"
                ));
            }
        }
        let [answers, ..] = endpoints;
        for ((endpoint, state), count) in &self.states {
            if settled && endpoint == answers && state != "succeeded" {
                found.push(format!("{count} deliveries to the receiver that answers are {state}"));
            }
        }
        found.truncate(SAID);
        found
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
