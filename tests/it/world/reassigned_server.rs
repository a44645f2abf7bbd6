//! A real local server that speaks as a database of reassigned numbers does.
use super::number_server::{NumberServer, Protocol};
use actix_web::HttpResponse;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

pub const KEY: &str = "key-of-the-local-database";

#[derive(Default)]
pub struct Reassigned {
    answers: Mutex<HashMap<String, String>>,
    failing: AtomicUsize,
}

/// It is asked for numbers and days.
pub type ReassignedServer = NumberServer<Reassigned>;

impl ReassignedServer {
    pub fn start() -> Self {
        NumberServer::speaking(Reassigned::default())
    }

    /// What it answers about a number; `no` where nothing was said.
    pub fn knows(&self, number: &str, answer: &str) {
        let mut answers = self.protocol().answers.lock().unwrap();
        answers.insert(number.into(), answer.into());
    }

    /// So many requests are answered 503.
    pub fn fail_next(&self, requests: usize) {
        self.protocol().failing.store(requests, Ordering::SeqCst);
    }
}

impl Protocol for Reassigned {
    const KEY: &'static str = KEY;

    fn answer(&self, body: &Value) -> (HttpResponse, Vec<(String, String)>) {
        let fewer = |left: usize| left.checked_sub(1);
        if self
            .failing
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer)
            .is_ok()
        {
            return (HttpResponse::ServiceUnavailable().finish(), Vec::new());
        }
        let queries = body["queries"].as_array().unwrap();
        let answers = self.answers.lock().unwrap();
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
        (HttpResponse::Ok().json(json!({ "results": results })), asked.collect())
    }
}
