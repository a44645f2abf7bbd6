//! A real local provider that speaks Cartesia's protocol: one websocket, a context for each thing that is said. What comes of an
//! ask, the test decides.
use super::local_listener::listen;
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{net::TcpStream, sync::watch, task::JoinSet};
use tokio_tungstenite::{
    accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
    },
};

/// What is done with an ask, one after the other.
#[derive(Clone, Debug)]
pub enum Say {
    /// A chunk of sound.
    Sound(Vec<u8>),
    Done,
    /// With the ask's context put in.
    Event(Value),
    /// As it is.
    Text(String),
    Binary,
    Close,
    /// The connection breaks off.
    Break,
}

type Script = dyn Fn(&Value, usize) -> Vec<Say> + Send + Sync;

struct State {
    script: Box<Script>,
    /// Refused with that status, instead of a websocket.
    refusal: Option<u16>,
    /// `{"connected": path, "key": …}`, whatever came in, and `{"closed": true}`; in order.
    events: watch::Sender<Vec<Value>>,
}

/// Dropping it ends all its connections.
pub struct CartesiaServer {
    pub url: String,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

impl CartesiaServer {
    /// `nth` counts the asks to speak from 0.
    pub async fn start_with(script: impl Fn(&Value, usize) -> Vec<Say> + Send + Sync + 'static) -> Self {
        Self::start(script, None).await
    }

    pub async fn refusing(status: u16) -> Self {
        Self::start(|_, _| Vec::new(), Some(status)).await
    }

    async fn start(script: impl Fn(&Value, usize) -> Vec<Say> + Send + Sync + 'static, refusal: Option<u16>) -> Self {
        let state = Arc::new(State {
            script: Box::new(script),
            refusal,
            events: watch::Sender::default(),
        });
        let serving = state.clone();
        let (address, tasks) = listen(move |stream| serve(stream, serving.clone()));
        let url = format!("ws://{address}");
        CartesiaServer {
            url,
            state,
            _tasks: tasks,
        }
    }

    pub fn events(&self) -> Vec<Value> {
        self.state.events.borrow().clone()
    }

    /// Waits until that many have come with this field.
    pub async fn until(&self, field: &str, count: usize) -> Vec<Value> {
        let mut events = self.state.events.subscribe();
        let with_it = |all: &[Value]| {
            all.iter()
                .filter(|event| event.get(field).is_some())
                .cloned()
                .collect::<Vec<_>>()
        };
        let all = events.wait_for(|all| with_it(all).len() >= count).await.unwrap();
        with_it(&all)
    }
}

#[expect(clippy::result_large_err, reason = "the handshake's own type")]
async fn serve(stream: TcpStream, state: Arc<State>) {
    let note = |event: Value| state.events.send_modify(|all| all.push(event));
    let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        if let Some(status) = state.refusal {
            let mut refused = ErrorResponse::new(Some("no".into()));
            *refused.status_mut() = status.try_into().unwrap();
            return Err(refused);
        }
        let key = request
            .headers()
            .get("x-api-key")
            .map(|key| key.to_str().unwrap().to_owned());
        note(json!({ "connected": request.uri().to_string(), "key": key }));
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr_async(stream, look).await else {
        return;
    };
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let ask: Value = serde_json::from_str(&text).unwrap();
        note(ask.clone());
        if ask.get("transcript").is_none() {
            continue;
        }
        let before = state
            .events
            .borrow()
            .iter()
            .filter(|event| event.get("transcript").is_some())
            .count()
            - 1;
        for say in (state.script)(&ask, before) {
            let in_context = |mut event: Value| {
                event["context_id"] = ask["context_id"].clone();
                Message::text(event.to_string())
            };
            let message = match say {
                Say::Sound(bytes) => {
                    in_context(json!({ "type": "chunk", "done": false, "data": STANDARD.encode(bytes) }))
                }
                Say::Done => in_context(json!({ "type": "done", "done": true })),
                Say::Event(event) => in_context(event),
                Say::Text(text) => Message::text(text),
                Say::Binary => Message::binary(vec![1, 2]),
                Say::Close => Message::Close(None),
                Say::Break => return,
            };
            // A client that goes away is none of its business.
            let _ = socket.send(message).await;
        }
    }
    note(json!({ "closed": true }));
}
