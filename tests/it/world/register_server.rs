//! A real local server that speaks as a register does that is asked about each number.
use super::http_server::serve;
use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Data},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex},
};
use tokio::sync::watch;

pub const KEY: &str = "key-of-the-local-register";

/// What it says instead of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// 503.
    Down,
    /// 200, and no JSON.
    Garbage,
    /// The right answers, about other numbers.
    Swapped,
    /// More than anybody wants to read.
    Endless,
}

#[derive(Default)]
struct State {
    listed: Mutex<BTreeSet<String>>,
    as_of: Mutex<String>,
    faults: Mutex<VecDeque<Fault>>,
    /// The names and numbers that it has answered about.
    asked: Mutex<Vec<(String, String)>>,
    /// Requests that have come, also those that are held.
    arrived: watch::Sender<usize>,
    is_held: watch::Sender<bool>,
}

pub struct RegisterServer {
    pub url: String,
    state: Arc<State>,
    handle: actix_web::dev::ServerHandle,
}

impl RegisterServer {
    /// What it says holds as of then.
    pub fn start(as_of: &str) -> Self {
        let state = Arc::new(State::default());
        let data = Data::from(state.clone());
        let (url, handle) = serve(move |config| {
            config.app_data(data.clone()).route("/query", web::post().to(query));
        });
        let server = RegisterServer {
            url: format!("{url}/query"),
            state,
            handle,
        };
        server.is_as_of(as_of);
        server
    }

    pub fn is_as_of(&self, as_of: &str) {
        as_of.clone_into(&mut self.state.as_of.lock().unwrap());
    }

    /// That number is in it.
    pub fn lists(&self, number: &str) {
        self.state.listed.lock().unwrap().insert(number.into());
    }

    /// One for each of the next requests.
    pub fn fails(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.state.faults.lock().unwrap() = faults.into_iter().collect();
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

    /// What it has answered about since the last look, sorted.
    pub fn take_asked(&self) -> Vec<(String, String)> {
        let mut asked = std::mem::take(&mut *self.state.asked.lock().unwrap());
        asked.sort();
        asked
    }
}

impl Drop for RegisterServer {
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
    let numbers = body["phone_numbers"].as_array().unwrap();
    let numbers: Vec<&str> = numbers.iter().map(|number| number.as_str().unwrap()).collect();
    let listed = state.listed.lock().unwrap().clone();
    let result = |number: &str| json!({ "phone_number": number, "listed": listed.contains(number) });
    let results: Vec<Value> = numbers.iter().map(|number| result(number)).collect();
    let as_of = state.as_of.lock().unwrap().clone();
    let fault = state.faults.lock().unwrap().pop_front();
    match fault {
        Some(Fault::Down) => HttpResponse::ServiceUnavailable().finish(),
        Some(Fault::Garbage) => HttpResponse::Ok().body("all is well"),
        Some(Fault::Swapped) => {
            let others: Vec<Value> = numbers.iter().map(|_| result("+12025550199")).collect();
            HttpResponse::Ok().json(json!({ "as_of": as_of, "results": others }))
        }
        Some(Fault::Endless) => HttpResponse::Ok().body("x".repeat(1 << 20)),
        None => {
            let name = body["register"].as_str().unwrap();
            let asked = numbers.iter().map(|number| (name.to_owned(), (*number).to_owned()));
            state.asked.lock().unwrap().extend(asked);
            HttpResponse::Ok().json(json!({ "as_of": as_of, "results": results }))
        }
    }
}
