//! A real local server behind an agent's function. Checks signatures with its own few lines, as a user would.
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
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// What it does with a request.
pub enum Reply {
    Json(Value),
    Raw(u16, Vec<u8>),
    /// No answer at all, until the client goes.
    Hang,
}

/// One call as it arrived.
#[derive(Clone, Debug)]
pub struct Called {
    pub method: String,
    pub headers: BTreeMap<String, String>,
    pub raw: Bytes,
    pub body: Value,
}

impl Called {
    /// Is it signed with that secret, over `<timestamp>.<raw body>`?
    pub fn signed_by(&self, secret: &str) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(self.headers["x-function-timestamp"].as_bytes());
        mac.update(b".");
        mac.update(&self.raw);
        let digest: String = mac
            .finalize()
            .into_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.headers["x-function-signature"] == format!("sha256={digest}")
    }
}

type Decide = dyn Fn(&Value) -> Reply + Send + Sync;

struct State {
    calls: Mutex<Vec<Called>>,
    decide: Box<Decide>,
}

pub struct FunctionServer {
    pub url: String,
    state: Arc<State>,
    handle: actix_web::dev::ServerHandle,
}

impl FunctionServer {
    pub fn start(decide: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let state = Arc::new(State {
            calls: Mutex::default(),
            decide: Box::new(decide),
        });
        let data = Data::from(state.clone());
        let (url, handle) = serve(move |config| {
            config.app_data(data.clone()).route("/call", web::to(take));
        });
        FunctionServer {
            url: format!("{url}/call"),
            state,
            handle,
        }
    }

    pub fn calls(&self) -> Vec<Called> {
        self.state.calls.lock().unwrap().clone()
    }
}

impl Drop for FunctionServer {
    fn drop(&mut self) {
        let handle = self.handle.clone();
        actix_rt::spawn(async move { handle.stop(false).await });
    }
}

async fn take(request: HttpRequest, raw: Bytes, state: Data<State>) -> HttpResponse {
    let headers = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()));
    let body: Value = serde_json::from_slice(&raw).unwrap();
    state.calls.lock().unwrap().push(Called {
        method: request.method().to_string(),
        headers: headers.collect(),
        raw: raw.clone(),
        body: body.clone(),
    });
    match (state.decide)(&body) {
        Reply::Json(value) => HttpResponse::Ok().json(value),
        Reply::Raw(status, bytes) => HttpResponse::build(StatusCode::from_u16(status).unwrap()).body(bytes),
        Reply::Hang => std::future::pending().await,
    }
}
