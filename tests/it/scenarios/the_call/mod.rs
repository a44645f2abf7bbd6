//! The call itself: every outcome of the sandbox, from outside, with all its events.
mod attacks;
mod brains;
mod by_hand;
mod evaluation;
mod functions;
mod inbound;
mod last_words;
mod mcp_tools;
mod on_the_wire;
mod outcomes;
mod recordings;

use crate::world::Tenant;
use serde_json::{Value, json};

/// An agent with these settings beside its name and prompt.
pub async fn agent(tenant: &Tenant, more: Value) -> String {
    let mut agent = json!({ "name": "Ann", "prompt": "Be kind." });
    agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tenant.api.post("/v1/agents", agent).await.ok()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Places a call; answers its id.
pub async fn call(tenant: &Tenant, agent: &str, number: &str, more: Value) -> String {
    let mut call = json!({ "to_number": number, "agent_id": agent });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tenant.api.post("/v1/sessions", call).await.ok()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

pub async fn session(tenant: &Tenant, id: &str) -> Value {
    tenant.api.get(&format!("/v1/sessions/{id}")).await.ok()
}

/// The data of all events of that type, oldest first.
pub async fn told(tenant: &Tenant, event_type: &str) -> Vec<Value> {
    let events = tenant.events().await.into_iter();
    events
        .filter(|event| event["type"] == event_type)
        .map(|event| event["data"].clone())
        .collect()
}

/// Kind and detail of each entry of a call's timeline.
pub async fn timeline(tenant: &Tenant, id: &str) -> Vec<(String, String)> {
    let timeline = tenant.api.get(&format!("/v1/sessions/{id}/timeline")).await.ok();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = timeline["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| (text(&entry["kind"]), text(&entry["detail"])))
        .collect()
}

/// What was said, as `agent: …` and `user: …`.
pub fn said(turns: &Value) -> Vec<String> {
    let turns = turns
        .as_array()
        .unwrap()
        .iter()
        .filter(|turn| turn["content"].is_string());
    turns
        .map(|turn| {
            format!(
                "{}: {}",
                turn["role"].as_str().unwrap(),
                turn["content"].as_str().unwrap()
            )
        })
        .collect()
}
