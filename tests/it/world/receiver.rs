//! A real local receiver. Checks signatures with its own few lines, as a user would, not with the service's.
use super::http_server::serve;
use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{self, Bytes, Data},
};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

/// One delivery as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    pub headers: BTreeMap<String, String>,
    pub raw: Bytes,
    pub event: Value,
    /// `None` before a secret is known.
    pub verified: Option<bool>,
}

impl Request {
    pub fn event_type(&self) -> &str {
        self.event["type"].as_str().unwrap()
    }
    pub fn id(&self) -> &str {
        self.event["id"].as_str().unwrap()
    }
    /// Does that header hold a signature by this secret?
    pub fn signed_by(&self, secret: &str, header: &str) -> bool {
        verify(secret, &self.headers, header, &self.raw)
    }
}

struct Reply {
    status: u16,
    header: Option<(&'static str, String)>,
}

#[derive(Default)]
struct State {
    secret: Mutex<Option<String>>,
    requests: Mutex<Vec<Request>>,
    /// What of it is not as the specification says.
    faults: Mutex<Vec<String>>,
    /// Answers to the next requests; after them 200.
    answers: Mutex<VecDeque<Reply>>,
    arrived: tokio::sync::Notify,
}

pub struct Receiver {
    pub url: String,
    state: Arc<State>,
    handle: actix_web::dev::ServerHandle,
}

impl Receiver {
    pub fn start() -> Self {
        let state = Arc::new(State::default());
        let data = Data::from(state.clone());
        let (url, handle) = serve(move |config| {
            config.app_data(data.clone()).route("/hook", web::post().to(receive));
        });
        Receiver {
            url: format!("{url}/hook"),
            state,
            handle,
        }
    }

    pub fn expect_signatures_of(&self, secret: &str) {
        *self.state.secret.lock().unwrap() = Some(secret.to_owned());
    }

    /// The next requests are answered with these statuses.
    pub fn answer_next(&self, statuses: impl IntoIterator<Item = u16>) {
        let answers = statuses.into_iter().map(|status| Reply { status, header: None });
        self.state.answers.lock().unwrap().extend(answers);
    }

    /// The next request is answered with this status and header.
    pub fn answer_next_with(&self, status: u16, name: &'static str, value: &str) {
        let answer = Reply {
            status,
            header: Some((name, value.to_owned())),
        };
        self.state.answers.lock().unwrap().push_back(answer);
    }

    /// Waits until that many requests have come.
    pub async fn arrived(&self, count: usize) {
        loop {
            let arrived = self.state.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if self.requests().len() >= count {
                return;
            }
            arrived.await;
        }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Deliveries by event id.
    pub fn counts_by_id(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for request in self.requests() {
            *counts.entry(request.id().to_owned()).or_default() += 1;
        }
        counts
    }

    pub async fn stop(&self) {
        self.handle.stop(false).await;
    }
}

impl Drop for Receiver {
    /// Whatever a scenario is about, what it was sent is as the specification says.
    fn drop(&mut self) {
        let faults = std::mem::take(&mut *self.state.faults.lock().unwrap());
        assert!(std::thread::panicking() || faults.is_empty(), "{faults:?}");
    }
}

async fn receive(state: Data<State>, request: HttpRequest, raw: Bytes) -> HttpResponse {
    let headers: BTreeMap<String, String> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    let verified = state
        .secret
        .lock()
        .unwrap()
        .as_deref()
        .map(|secret| verify(secret, &headers, "x-webhook-signature", &raw));
    let event = serde_json::from_slice(&raw).unwrap();
    state
        .faults
        .lock()
        .unwrap()
        .extend(crate::specification::faults(&event));
    state.requests.lock().unwrap().push(Request {
        headers,
        raw,
        event,
        verified,
    });
    state.arrived.notify_waiters();
    let reply = state.answers.lock().unwrap().pop_front();
    let status = reply.as_ref().map_or(200, |reply| reply.status);
    let mut response = HttpResponse::build(StatusCode::from_u16(status).unwrap());
    if let Some(header) = reply.and_then(|reply| reply.header) {
        response.insert_header(header);
    }
    response.body("the receiver's own words")
}

/// As the documentation tells users: over the raw bytes, with the whole secret as the key.
fn verify(secret: &str, headers: &BTreeMap<String, String>, header: &str, raw: &[u8]) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{}.", headers["x-webhook-timestamp"]).as_bytes());
    mac.update(raw);
    let expected: String = mac
        .finalize()
        .into_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    headers.get(header) == Some(&format!("sha256={expected}"))
}
