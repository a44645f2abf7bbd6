//! Campaigns that write, by SMS and by e-mail: from outside, with a provider and a mail server that are really there.
mod by_hand;
mod failures;
mod law;
mod live;
mod runs;

use crate::world::Api;
use serde_json::{Value, json};

/// Starts a campaign; answers its id.
pub async fn run(api: &Api, campaign: Value) -> String {
    id_of(&api.post("/v1/campaigns/run", campaign).await.ok())
}

/// A campaign of SMS to these numbers, at full speed.
pub fn texts(numbers: &[&str], more: Value) -> Value {
    let people = numbers.iter().map(|number| json!({ "phone_number": number }));
    let campaign = json!({ "name": "Spring", "channel": "sms", "template": { "body": "Hello." } });
    with(campaign, people.collect(), more)
}

/// A campaign of e-mails to these addresses, at full speed.
pub fn mails(addresses: &[&str], more: Value) -> Value {
    let people = addresses.iter().map(|address| json!({ "email": address }));
    let template = json!({ "subject": "Spring", "text": "Hello." });
    let campaign = json!({ "name": "Spring", "channel": "email", "template": template });
    with(campaign, people.collect(), more)
}

fn with(mut campaign: Value, people: Vec<Value>, more: Value) -> Value {
    campaign["contacts"] = people.into();
    campaign["pacing"] = json!({ "calls_per_second": 50 });
    campaign
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    campaign
}

pub fn id_of(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

/// The sandbox delivers to them all.
pub fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("+1500235{n:03}0")).collect()
}

pub fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

pub async fn campaign(api: &Api, id: &str) -> Value {
    api.get(&format!("/v1/campaigns/{id}")).await.ok()
}

/// A list's whole content, oldest first.
pub async fn all(api: &Api, path: &str) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("{path}?order=asc&limit=100{cursor}")).await.ok();
        rows.extend(page["data"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return rows,
        }
    }
}

/// Its contacts, in the order in which they came in.
pub async fn contacts(api: &Api, id: &str) -> Vec<Value> {
    all(api, &format!("/v1/campaigns/{id}/contacts")).await
}

/// How its contacts stand, in their order.
pub async fn statuses(api: &Api, id: &str) -> Vec<String> {
    words(&contacts(api, id).await, "status")
}

pub async fn skips(api: &Api, id: &str) -> Vec<String> {
    words(&contacts(api, id).await, "skip_reason")
}

/// One field of each; `-` where it is null.
pub fn words(rows: &[Value], field: &str) -> Vec<String> {
    let word = |row: &Value| row[field].as_str().unwrap_or("-").to_owned();
    rows.iter().map(word).collect()
}

/// The campaign's SMS, oldest first.
pub async fn sent_texts(api: &Api, id: &str) -> Vec<Value> {
    let all = all(api, "/v1/sms_messages").await.into_iter();
    all.filter(|row| row["campaign_id"] == id).collect()
}

/// The campaign's e-mails, oldest first.
pub async fn sent_mails(api: &Api, id: &str) -> Vec<Value> {
    let all = all(api, "/v1/email_messages").await.into_iter();
    all.filter(|row| row["campaign_id"] == id).collect()
}

/// The data of all events of that type, oldest first.
pub async fn told(api: &Api, event_type: &str) -> Vec<Value> {
    let events = all(api, "/v1/events").await.into_iter();
    let events = events.filter(|event| event["type"] == event_type);
    events.map(|event| event["data"].clone()).collect()
}

pub async fn act(api: &Api, id: &str, action: &str) -> Value {
    api.post(&format!("/v1/campaigns/{id}/{action}"), json!({})).await.ok()
}
