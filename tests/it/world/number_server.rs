//! What the local servers have in common that are asked about numbers: who asks shows a key, they can be held, and they know what they
//! have answered.
use super::http_server::serve;
use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Data},
};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// How one of them speaks.
pub trait Protocol: Send + Sync + 'static {
    /// What whoever asks must show.
    const KEY: &'static str;

    /// Its answer to that body, and each question in it that is answered by that.
    fn answer(&self, body: &Value) -> (HttpResponse, Vec<(String, String)>);
}

struct State<P> {
    protocol: P,
    /// What it has answered.
    asked: Mutex<Vec<(String, String)>>,
    /// Requests that have come, also those that are held.
    arrived: watch::Sender<usize>,
    is_held: watch::Sender<bool>,
}

pub struct NumberServer<P> {
    pub url: String,
    state: Arc<State<P>>,
    handle: actix_web::dev::ServerHandle,
}

impl<P: Protocol> NumberServer<P> {
    pub fn speaking(protocol: P) -> Self {
        let state = Arc::new(State {
            protocol,
            asked: Mutex::default(),
            arrived: watch::Sender::default(),
            is_held: watch::Sender::default(),
        });
        let data = Data::from(state.clone());
        let (url, handle) = serve(move |config| {
            config
                .app_data(data.clone())
                .route("/query", web::post().to(query::<P>));
        });
        NumberServer {
            url: format!("{url}/query"),
            state,
            handle,
        }
    }

    pub fn protocol(&self) -> &P {
        &self.state.protocol
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

    /// What it has answered since the last look, sorted.
    pub fn take_asked(&self) -> Vec<(String, String)> {
        let mut asked = std::mem::take(&mut *self.state.asked.lock().unwrap());
        asked.sort();
        asked
    }
}

impl<P> Drop for NumberServer<P> {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

async fn query<P: Protocol>(request: HttpRequest, state: Data<State<P>>, body: web::Json<Value>) -> HttpResponse {
    let shown = request
        .headers()
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    if shown != Some(&format!("Bearer {}", P::KEY)) {
        return HttpResponse::Unauthorized().finish();
    }
    state.arrived.send_modify(|so_many| *so_many += 1);
    let mut is_held = state.is_held.subscribe();
    // Whoever has asked may be gone by then, and the test too.
    let _ = is_held.wait_for(|is_held| !*is_held).await;
    let (response, asked) = state.protocol.answer(&body);
    state.asked.lock().unwrap().extend(asked);
    response
}
