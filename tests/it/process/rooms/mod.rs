//! Rooms as people use them: a real browser with a microphone that is not one, the real binary, sound over the network.
mod broken;
mod talks;

use super::{Calls, Place, on, terminate};
use crate::world::{
    Backend,
    browser::{Browser, Microphone, Page},
    phone::sound::{SENTENCE, Sound},
};
use serde_json::{Value, json};
use std::{path::Path, process::Child};

pub(super) const HELLO: &str = "Hello, this is Ann from Northwind. Is this a good time for you?";
const ANSWER: &str = "Wonderful, then I will write that down. Is there anything else that I can do for you?";

/// A service, a workspace with an agent that is recorded, and a browser.
struct Stage {
    serving: Child,
    api: Calls,
    agent: Value,
    browser: Browser,
    // What the others stand on goes last.
    place: Place,
}

/// The service does not outlive its test, however that ends.
impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.serving.kill();
        let _ = self.serving.wait();
    }
}

fn on_stage(environment: &[(&str, &str)], test: impl AsyncFnOnce(&mut Stage)) {
    on(Backend::Sqlite, async |place| {
        let microphone = place.folder.path().join("microphone.wav");
        record(&microphone);
        let Some(browser) = Browser::start(Microphone::Plays(&microphone)).await else {
            return;
        };
        let key = place.workspace();
        let serving = place.serve(environment);
        let api = Calls::to(&place, key);
        // Enough for a talk as long as any test.
        let replies = vec![json!({ "say": ANSWER }); 40];
        let agent = json!({ "name": "Ann", "prompt": "x", "first_message": HELLO, "recording": { "enabled": true },
            "brain": { "mode": "scripted", "replies": replies } });
        let agent = api.post("/v1/agents", agent).await;
        let mut stage = Stage {
            serving,
            api,
            agent,
            browser,
            place,
        };
        test(&mut stage).await;
        terminate(&mut stage.serving);
    });
}

/// Somebody who says a sentence every few seconds.
pub(super) fn record(file: &Path) {
    let speech = Sound::of_mu_law(SENTENCE);
    let sound = Sound::silence(8_000).then(speech).then(Sound::silence(7_000));
    sound.write(file);
}

impl Stage {
    async fn room(&self) -> Value {
        let room = json!({ "agent_id": self.agent["id"], "client_reference_id": "order-7",
            "participant": { "first_name": "Zoë" } });
        self.api.post("/v1/rooms", room).await
    }

    /// A tab with the room's link, and a person who allows the microphone.
    async fn visit(&self, room: &Value, screen: crate::world::browser::Screen) -> Page {
        let page = self.browser.open(screen).await;
        let link = room["room_url"].as_str().unwrap();
        page.microphone(link, "granted").await;
        page.go(link).await;
        page
    }

    async fn room_is(&self, room: &Value, status: &str) -> Value {
        let path = format!("/v1/rooms/{}", room["id"].as_str().unwrap());
        self.api.until(&path, |room| room["status"] == status).await
    }

    async fn session_of(&self, room: &Value) -> Value {
        let path = format!("/v1/sessions/{}", room["session_id"].as_str().unwrap());
        self.api.get(&path).await
    }

    /// What was told of the room and of its session, in order: type and data.
    async fn told(&self, room: &Value) -> Vec<(String, Value)> {
        let all = self.api.all("/v1/events").await;
        let of_it = |event: &Value| {
            let data = &event["data"];
            data["room_id"] == room["id"] || data["session_id"] == room["session_id"]
        };
        let told = all.into_iter().filter(of_it);
        told.map(|event| (event["type"].as_str().unwrap().to_owned(), event["data"].clone()))
            .collect()
    }
}

fn only<'a>(told: &'a [(String, Value)], kind: &str) -> Vec<&'a str> {
    let names = told.iter().map(|(name, _)| name.as_str());
    names.filter(|name| name.starts_with(kind)).collect()
}

/// Sound comes in: packets, and not of silence.
pub(super) const HEARS_THE_AGENT: &str = "(async () => {
    const inbound = [...(await window.connections.at(-1).getStats()).values()].find(({ type }) => type === 'inbound-rtp');
    return inbound.packetsReceived > 50 && inbound.totalAudioEnergy > 0.0001;
})()";
