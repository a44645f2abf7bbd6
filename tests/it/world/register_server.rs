//! A real local server that speaks as a register does that is asked about each number.
use super::number_server::{NumberServer, Protocol};
use actix_web::HttpResponse;
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Mutex,
};

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
pub struct Register {
    listed: Mutex<BTreeSet<String>>,
    as_of: Mutex<String>,
    faults: Mutex<VecDeque<Fault>>,
}

/// It is asked for names and numbers.
pub type RegisterServer = NumberServer<Register>;

impl RegisterServer {
    /// What it says holds as of then.
    pub fn start(as_of: &str) -> Self {
        let server = NumberServer::speaking(Register::default());
        server.is_as_of(as_of);
        server
    }

    pub fn is_as_of(&self, as_of: &str) {
        as_of.clone_into(&mut self.protocol().as_of.lock().unwrap());
    }

    /// That number is in it.
    pub fn lists(&self, number: &str) {
        self.protocol().listed.lock().unwrap().insert(number.into());
    }

    /// One for each of the next requests.
    pub fn fails(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.protocol().faults.lock().unwrap() = faults.into_iter().collect();
    }
}

impl Protocol for Register {
    const KEY: &'static str = KEY;

    fn answer(&self, body: &Value) -> (HttpResponse, Vec<(String, String)>) {
        let numbers = body["phone_numbers"].as_array().unwrap();
        let numbers: Vec<&str> = numbers.iter().map(|number| number.as_str().unwrap()).collect();
        let listed = self.listed.lock().unwrap().clone();
        let result = |number: &str| json!({ "phone_number": number, "listed": listed.contains(number) });
        let results: Vec<Value> = numbers.iter().map(|number| result(number)).collect();
        let as_of = self.as_of.lock().unwrap().clone();
        let fault = self.faults.lock().unwrap().pop_front();
        let instead = match fault {
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
                let answer = json!({ "as_of": as_of, "results": results });
                return (HttpResponse::Ok().json(answer), asked.collect());
            }
        };
        (instead, Vec::new())
    }
}
