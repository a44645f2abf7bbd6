//! A real local server that speaks as a database of reassigned numbers does.
use super::http_server::serve;
use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{self, Data},
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::watch;

pub const KEY: &str = "key-of-the-local-database";

#[derive(Default)]
struct State {
    answers: Mutex<HashMap<String, String>>,
    /// What it was asked: number and day.
    asked: Mutex<Vec<(String, String)>>,
    failing: AtomicUsize,
    /// Requests that have come, also those that are held.
    arrived: watch::Sender<usize>,
    is_held: watch::Sender<bool>,
}

pub struct ReassignedServer {
    pub url: String,
    state: Arc<State>,
    handle: actix_web::dev::ServerHandle,
}

impl ReassignedServer {
    pub fn start() -> Self {
        let state = Arc::new(State::default());
        let data = Data::from(state.clone());
        let (url, handle) = serve(move |config| {
            config.app_data(data.clone()).route("/query", web::post().to(query));
        });
        ReassignedServer {
            url: format!("{url}/query"),
            state,
            handle,
        }
    }

    /// What it answers about a number; `no` where nothing was said.
    pub fn knows(&self, number: &str, answer: &str) {
        self.state.answers.lock().unwrap().insert(number.into(), answer.into());
    }

    /// So many requests are answered 503.
    pub fn fail_next(&self, requests: usize) {
        self.state.failing.store(requests, Ordering::SeqCst);
    }

    /// It takes requests and answers none, until it is released.
    pub fn hold(&self) {
        self.state.is_held.send_replace(true);
    }

    pub fn release(&self) {
        self.state.is_held.send_replace(false);
    }

    /// Waits until so many requests have come.
    pub async fn arrived(&self, count: usize) {
        let mut arrived = self.state.arrived.subscribe();
        arrived.wait_for(|so_many| *so_many >= count).await.unwrap();
    }

    pub fn take_asked(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.state.asked.lock().unwrap())
    }
}

impl Drop for ReassignedServer {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

async fn query(request: HttpRequest, state: Data<State>, body: web::Json<Value>) -> HttpResponse {
    let shown = request
        .headers()
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    if shown != Some(&format!("Bearer {KEY}")) {
        return HttpResponse::Unauthorized().finish();
    }
    state.arrived.send_modify(|so_many| *so_many += 1);
    let mut is_held = state.is_held.subscribe();
    // Whoever has asked may be gone by then, and the test too.
    let _ = is_held.wait_for(|is_held| !*is_held).await;
    let fewer = |left: usize| left.checked_sub(1);
    if state
        .failing
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer)
        .is_ok()
    {
        return HttpResponse::build(StatusCode::SERVICE_UNAVAILABLE).finish();
    }
    let queries = body["queries"].as_array().unwrap();
    let answers = state.answers.lock().unwrap();
    let text = |query: &Value, field: &str| query[field].as_str().unwrap().to_owned();
    let results = queries.iter().map(|query| {
        let number = text(query, "phone_number");
        let answer = answers.get(&number).map_or("no", String::as_str);
        json!({ "phone_number": number, "disconnected": answer })
    });
    let results: Vec<Value> = results.collect();
    let asked = queries
        .iter()
        .map(|query| (text(query, "phone_number"), text(query, "date")));
    state.asked.lock().unwrap().extend(asked);
    HttpResponse::Ok().json(json!({ "results": results }))
}
