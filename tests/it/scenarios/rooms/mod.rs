//! Rooms, from outside: links, joining, every end, with a real WebRTC client where somebody talks.
mod disclosed;
mod ends;
mod latency;
mod links;
mod outside;
mod talks;
mod words;

use super::the_call;
use crate::world::{Answer, Tenant, World};
use entities::values::Moment;
use media::webrtc::{
    Codec,
    peer::{Peer, View},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// A room as its participant sees it: the link alone.
pub struct Link {
    client: reqwest::Client,
    world: String,
    pub room: String,
    pub sig: String,
}

impl Link {
    pub fn of(world: &World, tenant: &Tenant, room: &Value) -> Self {
        let url = url::Url::parse(room["room_url"].as_str().unwrap()).unwrap();
        let sig = url
            .query_pairs()
            .find(|(name, _)| name == "sig")
            .unwrap()
            .1
            .into_owned();
        Link {
            client: tenant.api.client.clone(),
            world: world.url.clone(),
            room: room["id"].as_str().unwrap().to_owned(),
            sig,
        }
    }

    pub fn request(&self, method: Method, below: &str) -> reqwest::RequestBuilder {
        let url = format!("{}/r/{}{below}?sig={}", self.world, self.room, self.sig);
        self.client.request(method, url)
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { status, headers, body }
    }

    pub async fn page(&self) -> Answer {
        self.send(self.request(Method::GET, "")).await
    }

    pub async fn view(&self) -> Answer {
        self.send(self.request(Method::POST, "/viewed")).await
    }

    pub async fn offer(&self, sdp: String, again_as: Option<&str>) -> Answer {
        let participant = again_as.map(|id| format!("&participant={id}")).unwrap_or_default();
        let url = format!("{}/r/{}/whip?sig={}{participant}", self.world, self.room, self.sig);
        let request = self.client.post(url);
        self.send(request.header("content-type", "application/sdp").body(sdp))
            .await
    }

    /// Joins with a client of ours; answers the participant's id too.
    pub async fn join(&self, again_as: Option<&str>) -> (Peer, String) {
        let (peer, sdp) = Peer::offer(Codec::Opus);
        let answer = self.offer(sdp, again_as).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        let place = answer.headers["location"].to_str().unwrap().to_owned();
        let participant = place.rsplit('/').next().unwrap().to_owned();
        assert_eq!(place, format!("/r/{}/whip/{participant}", self.room));
        peer.connect(answer.body.as_str().unwrap());
        peer.connected().await;
        (peer, participant)
    }

    pub async fn leave(&self, participant: &str) -> Answer {
        self.send(self.request(Method::DELETE, &format!("/whip/{participant}")))
            .await
    }
}

pub async fn create(tenant: &Tenant, agent: &str, more: Value) -> Value {
    let mut room = json!({ "agent_id": agent });
    room.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tenant.api.post("/v1/rooms", room).await.ok()
}

/// A room with an agent of its own, and its link.
pub async fn room(world: &World, tenant: &Tenant) -> (Value, Link) {
    let agent = the_call::agent(tenant, json!({ "first_message": "Hello, this is Ann." })).await;
    let room = create(tenant, &agent, json!({})).await;
    let link = Link::of(world, tenant, &room);
    (room, link)
}

pub async fn get(tenant: &Tenant, room: &Value) -> Value {
    tenant
        .api
        .get(&format!("/v1/rooms/{}", room["id"].as_str().unwrap()))
        .await
        .ok()
}

pub async fn session(tenant: &Tenant, room: &Value) -> Value {
    the_call::session(tenant, room["session_id"].as_str().unwrap()).await
}

/// What comes over the network comes in its own time, whatever our clock says: reads until it is there.
pub async fn until(tenant: &Tenant, room: &Value, so: impl Fn(&Value) -> bool) -> Value {
    let wall = runtime::clock::Clock::wall();
    for _ in 0..1_000 {
        let seen = get(tenant, room).await;
        if so(&seen) {
            return seen;
        }
        let _busy = wall.sleep(Duration::from_millis(25)).await;
    }
    panic!(
        "the room did not become what was waited for: {}",
        get(tenant, room).await
    )
}

/// A sentence, a second and a half long, and silence.
fn speech() -> Vec<u8> {
    include_bytes!("../../../../actors/media/src/speech/sentence.ulaw").to_vec()
}

/// The types of events about rooms and sessions, in their order.
pub async fn story(tenant: &Tenant) -> Vec<String> {
    let types = tenant.event_types().await.into_iter();
    types
        .filter(|name| name.starts_with("room.") || name.starts_with("session."))
        .collect()
}

pub fn moment(value: &Value) -> Moment {
    Moment::parse(value.as_str().unwrap()).unwrap()
}
