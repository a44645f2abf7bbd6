//! What a workspace does all day: campaigns of each channel, single messages, rooms with somebody in them. Each request is
//! repeated under one `Idempotency-Key` until it is answered, whatever dies meanwhile; what was granted is noted, for the
//! checker to look for.
use super::Notes;
use crate::{
    guests::{Guest, SENTENCE},
    rooms::pause,
};
use bytes::Bytes;
use media::webrtc::{
    Codec,
    peer::{Peer, State},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// A client that outlives the service.
pub struct Client {
    http: reqwest::Client,
    url: String,
    key: String,
    next: Cell<u64>,
}

/// For one request; a database that stalls answers 503 before.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A request that was not answered by then is a fault.
const PATIENCE: Duration = Duration::from_secs(120);

impl Client {
    pub fn new(url: String, key: String) -> Self {
        Client {
            http: crate::service::client(),
            url,
            key,
            next: Cell::new(0),
        }
    }

    /// Status and body; `None`: nobody knows.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        again: Option<&str>,
    ) -> Option<(u16, Value)> {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let mut request = request.bearer_auth(&self.key).timeout(TIMEOUT);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(again) = again {
            request = request.header("Idempotency-Key", again);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let text = answer.text().await.ok()?;
        Some((status, serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    pub async fn get(&self, path: &str) -> Option<Value> {
        match self.ask(Method::GET, path, None, None).await? {
            (200, body) => Some(body),
            _ => None,
        }
    }

    /// Posts until it is answered. What is granted is noted as that kind, with these fields of the answer or the request.
    pub async fn insist(&self, notes: &Notes, path: &str, body: &Value) -> Option<Value> {
        let key = format!("soak-{}", self.next.replace(self.next.get() + 1));
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match self.ask(Method::POST, path, Some(body), Some(&key)).await {
                Some((200..=299, answer)) => return Some(answer),
                // There is too much, or the database stalls.
                Some((429 | 503, _)) | None => {}
                Some((409, answer)) if answer["error"]["code"] == "idempotency_in_progress" => {}
                // Numbers are used again after some hundred thousand.
                Some((409, answer)) if answer["error"]["code"] == "recipient_on_dnc" => return None,
                Some((status, answer)) => {
                    notes.fault(format!("POST {path} was answered {status} {answer}"));
                    return None;
                }
            }
            pause(Duration::from_millis(500)).await;
        }
        notes.fault(format!("POST {path} was not granted within {PATIENCE:?}"));
        None
    }

    /// An action that may be too late.
    pub async fn try_post(&self, notes: &Notes, path: &str) {
        if let Some((500, answer)) = self.ask(Method::POST, path, Some(&json!({})), None).await {
            notes.fault(format!("POST {path} was answered 500 {answer}"));
        }
    }

    pub async fn metrics(&self) -> Option<String> {
        let request = self.http.get(format!("{}/metrics", self.url)).timeout(TIMEOUT);
        request.send().await.ok()?.text().await.ok()
    }
}

/// What of a campaign differs between channels.
#[derive(Clone, Copy, Debug)]
pub enum Channel {
    Phone,
    Sms,
    Email,
}

/// Last digits of numbers; see docs/sandbox.md. Of SMS only those that are over soon.
const CALLS: [usize; 8] = [0, 1, 0, 2, 0, 9, 0, 5];
const TEXTS: [usize; 6] = [0, 1, 2, 8, 9, 0];

impl Channel {
    fn campaign(self, notes: &Notes, agent: &Value, contacts: usize, rate: f64) -> Value {
        let people: Vec<_> = (0..contacts).map(|n| self.contact(notes.next(), n)).collect();
        let more = match self {
            Channel::Phone => json!({ "agent_id": agent }),
            Channel::Sms => json!({ "channel": "sms", "template": { "body": "Hello." } }),
            Channel::Email => json!({ "channel": "email", "template": { "subject": "Spring", "text": "Hello." } }),
        };
        let mut campaign = json!({
            "name": "Soak", "contacts": people, "pacing": { "calls_per_second": rate },
            "retry": { "max_attempts": 2, "min_gap_minutes": 0 },
            "schedule": { "windows": [{ "start": "00:00", "end": "24:00" }] },
            "caps": { "per_number_24h": 3, "on_cap": "skip" },
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            campaign[name] = value.clone();
        }
        campaign
    }

    /// Everybody is somebody new: nobody's cap is reached, and nobody who opted out is asked again.
    fn contact(self, person: usize, n: usize) -> Value {
        let number = |digits: &[usize]| {
            let last = digits.get(n % digits.len()).copied().unwrap_or(0);
            format!("+1500{}{last}", 200_000 + person % 800_000)
        };
        match self {
            Channel::Phone => json!({ "phone_number": number(&CALLS) }),
            Channel::Sms => json!({ "phone_number": number(&TEXTS) }),
            Channel::Email => json!({ "email": format!("person{person}@example.com") }),
        }
    }
}

/// One campaign after another, each paused once and with somebody who wants no more calls, until it is over.
pub async fn campaigns(client: &Client, notes: &Notes, channel: Channel, agent: &Value, rate: f64, lap: Duration) {
    let contacts = ((rate * lap.as_secs_f64()) as usize).max(10);
    while !notes.is_over() {
        let started = Instant::now();
        let campaign = channel.campaign(notes, agent, contacts, rate);
        let number = campaign["contacts"][contacts - 1]["phone_number"].clone();
        let Some(answer) = client.insist(notes, "/v1/campaigns/run", &campaign).await else {
            pause(Duration::from_secs(1)).await;
            continue;
        };
        notes.acknowledge(json!({ "kind": "campaign", "id": answer["id"] }));
        let path = format!("/v1/campaigns/{}", answer["id"].as_str().unwrap_or_default());
        pause(lap / 4).await;
        if number.is_string()
            && let Some(entry) = client
                .insist(notes, "/v1/dnc", &json!({ "phone_number": number }))
                .await
        {
            notes.acknowledge(json!({ "kind": "dnc", "id": entry["id"], "number": number }));
        }
        client.try_post(notes, &format!("{path}/pause")).await;
        pause(Duration::from_millis(500)).await;
        // A pause outlives a kill, so that it is lifted until it is over.
        loop {
            client.try_post(notes, &format!("{path}/resume")).await;
            pause(Duration::from_secs(1)).await;
            let campaign = client.get(&path).await;
            if campaign.is_some_and(|campaign| campaign["status"] == "completed") {
                break;
            }
            if notes.is_over() {
                client.try_post(notes, &format!("{path}/cancel")).await;
            }
            match channel {
                // One at a time: the calls of two would be too many for the rate that is checked.
                Channel::Phone if notes.is_late() => {
                    notes.fault(format!("{path} did not end"));
                    return;
                }
                Channel::Phone => {}
                // A message that a kill cut off waits for its report for a quarter of an hour.
                Channel::Sms | Channel::Email if !notes.is_over() && started.elapsed() > lap * 2 => break,
                // Canceled again until it is: one of several that are still running is found by who settles.
                Channel::Sms | Channel::Email if notes.is_late() => break,
                Channel::Sms | Channel::Email => {}
            }
        }
    }
}

/// An SMS and an e-mail by turns.
pub async fn messages(client: &Client, notes: &Notes) {
    while !notes.is_over() {
        let person = notes.next();
        let sms = json!({ "to_number": format!("+1500{}0", 200_000 + person % 800_000), "body": "Hello." });
        let email = json!({ "to": format!("single{person}@example.com"), "subject": "Hello", "text": "Hello." });
        for (kind, path, body) in [("sms", "/v1/sms_messages", sms), ("email", "/v1/email_messages", email)] {
            if let Some(answer) = client.insist(notes, path, &body).await {
                notes.acknowledge(json!({ "kind": kind, "id": answer["id"] }));
            }
            pause(Duration::from_secs(2)).await;
        }
    }
}

/// One room after another, with somebody who says a sentence and leaves.
pub async fn rooms(client: &Client, notes: &Notes, agent: &Value) {
    while !notes.is_over() {
        let room = json!({ "agent_id": agent, "expires_in_seconds": 60 });
        if let Some(room) = client.insist(notes, "/v1/rooms", &room).await {
            notes.acknowledge(json!({ "kind": "room", "id": room["id"] }));
            visit(client, &room).await;
        }
        pause(Duration::from_secs(3)).await;
    }
}

/// The service may die at any moment; then the guest goes.
async fn visit(client: &Client, room: &Value) {
    let (peer, offer) = Peer::offer(Codec::Opus);
    let Ok(guest) = Guest::knock(&client.http, room, peer, offer).await else {
        return;
    };
    for _ in 0..40 {
        if guest.peer.view().state == State::Connected {
            break;
        }
        pause(Duration::from_millis(100)).await;
    }
    for _ in 0..2 {
        guest.peer.say(Bytes::from_static(SENTENCE));
        pause(Duration::from_secs(4)).await;
    }
    guest.hang_up(&client.http).await;
}

/// Asks a small thing again and again, and notes how long each answer takes.
pub async fn reads(client: &Client, notes: &Notes) {
    while !notes.is_over() {
        let started = Instant::now();
        if client.get("/v1/concurrency").await.is_some() {
            notes.read_took(started.elapsed());
        }
        pause(Duration::from_millis(200)).await;
    }
}

/// What was suspended for its failures is tried again.
pub async fn enables(client: &Client, notes: &Notes, endpoints: &[String], every: Duration) {
    while !notes.is_over() {
        notes.rest(every).await;
        for endpoint in endpoints {
            client
                .try_post(notes, &format!("/v1/webhook_endpoints/{endpoint}/enable"))
                .await;
        }
    }
}
