//! A real local provider that speaks Cartesia's protocol: one websocket, a context for each thing that is said. What comes of an
//! ask, the test decides.
use super::socket_server::{Log, Socket, SocketServer};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_tungstenite::tungstenite::Message;

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

/// Dropping it ends all its connections.
pub struct CartesiaServer {
    pub url: String,
    server: SocketServer,
}

impl CartesiaServer {
    /// `nth` counts the asks to speak from 0.
    pub async fn start_with(script: impl Fn(&Value, usize) -> Vec<Say> + Send + Sync + 'static) -> Self {
        Self::start(script, Ok(())).await
    }

    pub async fn refusing(status: u16) -> Self {
        Self::start(|_, _| Vec::new(), Err(status)).await
    }

    async fn start(
        script: impl Fn(&Value, usize) -> Vec<Say> + Send + Sync + 'static,
        admitted: Result<(), u16>,
    ) -> Self {
        let script: Arc<Script> = Arc::new(script);
        let server =
            SocketServer::start(move |_| admitted, move |socket, log| serve(socket, log, script.clone())).await;
        CartesiaServer {
            url: server.url.clone(),
            server,
        }
    }

    /// Those with this field.
    pub fn with(&self, field: &str) -> Vec<Value> {
        self.server.log.with(field)
    }

    /// Waits until that many have come with this field.
    pub async fn until(&self, field: &str, count: usize) -> Vec<Value> {
        self.server.log.until(field, count).await
    }
}

async fn serve(mut socket: Socket, log: Log, script: Arc<Script>) {
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let ask: Value = serde_json::from_str(&text).unwrap();
        log.note(ask.clone());
        if ask.get("transcript").is_none() {
            continue;
        }
        let before = log.with("transcript").len() - 1;
        for say in script(&ask, before) {
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
}
