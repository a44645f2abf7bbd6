//! What the tests of processes ask a running service.
use super::Place;
use crate::world::client;
use reqwest::Client;
use serde_json::{Value, json};
use std::time::Duration;

/// The API, with a key.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) key: String,
}

impl Calls {
    pub(crate) fn to(place: &Place, key: String) -> Self {
        Calls {
            client: client(),
            url: format!("http://{}", place.bind),
            key,
        }
    }
    pub(crate) async fn get(&self, path: &str) -> Value {
        self.client
            .get(format!("{}{path}", self.url))
            .bearer_auth(&self.key)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    }
    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self
            .client
            .post(format!("{}{path}", self.url))
            .bearer_auth(&self.key)
            .json(&body)
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }
    pub(crate) async fn patch(&self, path: &str, body: Value) -> Value {
        let request = self.client.patch(format!("{}{path}", self.url)).bearer_auth(&self.key);
        let answer = request.json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }
    pub(crate) async fn delete(&self, path: &str) -> Value {
        let request = self.client.delete(format!("{}{path}", self.url)).bearer_auth(&self.key);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }
    /// Sends a CSV file.
    pub(crate) async fn upload(&self, path: &str, csv: String) -> Value {
        let request = self.client.post(format!("{}{path}", self.url)).bearer_auth(&self.key);
        let request = request.header("content-type", "text/csv").body(csv);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }
    /// An action that may be refused in the state that things are in.
    pub(crate) async fn try_post(&self, path: &str) -> bool {
        let request = self.client.post(format!("{}{path}", self.url)).bearer_auth(&self.key);
        request.json(&json!({})).send().await.unwrap().status().is_success()
    }
    /// Asks for a call; answers the status, and the code of the error.
    pub(crate) async fn call(&self, agent_id: &Value, number: &str) -> (u16, Value) {
        let request = self
            .client
            .post(format!("{}/v1/sessions", self.url))
            .bearer_auth(&self.key);
        let body = json!({ "to_number": number, "agent_id": agent_id });
        let answer = request.json(&body).send().await.unwrap();
        (
            answer.status().as_u16(),
            answer.json::<Value>().await.unwrap()["error"]["code"].clone(),
        )
    }
    /// How many calls may be live at once.
    pub(crate) async fn limit_concurrency(&self, limit: usize) {
        let request = self
            .client
            .patch(format!("{}/v1/concurrency", self.url))
            .bearer_auth(&self.key);
        request.json(&json!({ "limit": limit })).send().await.unwrap();
    }
    /// Reads until it is so; the service's own time passes meanwhile.
    pub(crate) async fn until(&self, path: &str, so: impl Fn(&Value) -> bool) -> Value {
        let clock = runtime::clock::Clock::wall();
        let mut value = Value::Null;
        for _ in 0..4500 {
            value = self.get(path).await;
            if so(&value) {
                return value;
            }
            let _busy = clock.sleep(Duration::from_millis(40)).await;
        }
        panic!("{path} did not become what was waited for: {value}");
    }
    pub(crate) async fn all(&self, path: &str) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}?limit=100&order=asc{cursor}")).await;
            all.extend(page["data"].as_array().unwrap_or_else(|| panic!("{page}")).clone());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return all,
            }
            // Under the rate limit of a key.
            let _busy = runtime::clock::Clock::wall().sleep(Duration::from_millis(21)).await;
        }
    }
}
