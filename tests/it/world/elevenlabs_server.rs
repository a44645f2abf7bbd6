//! A real local provider that speaks ElevenLabs' `stream-input`: one websocket for a turn, texts in, sound with its letters out. What
//! comes of a text, the test decides.
use super::socket_server::{Log, Socket, SocketServer};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

/// Samples of a millisecond.
const PER_MS: usize = 24;

/// What is done with a text, one after the other.
#[derive(Clone, Debug)]
pub enum Say {
    /// Sound, with whatever is told of its letters.
    Sound(Vec<u8>, Value),
    /// All has been said. Where the end of a turn is asked for, this comes by itself.
    Final,
    Event(Value),
    /// As it is.
    Text(String),
    Binary,
    Close,
    /// For that reason.
    Policy(&'static str),
    /// The connection breaks off.
    Break,
}

/// A text whose letters take so many milliseconds each, as it is told: for each letter its beginning and how long it lasts.
pub fn spoken(text: &str, ms: usize) -> Say {
    let letters = text.chars().count();
    let chars: Vec<String> = text.chars().map(String::from).collect();
    let starts: Vec<usize> = (0..letters).map(|place| place * ms).collect();
    let sound = 700_i16.to_le_bytes().repeat(letters * ms * PER_MS);
    let alignment = json!({ "chars": chars, "charStartTimesMs": starts, "charDurationsMs": vec![ms; letters] });
    Say::Sound(sound, alignment)
}

type Script = dyn Fn(&str, usize) -> Vec<Say> + Send + Sync;

/// Dropping it ends all its connections.
pub struct ElevenlabsServer {
    pub url: String,
    server: SocketServer,
}

impl ElevenlabsServer {
    /// `nth` counts the texts from 0.
    pub async fn start_with(script: impl Fn(&str, usize) -> Vec<Say> + Send + Sync + 'static) -> Self {
        Self::start(script, |_| Ok(())).await
    }

    /// `admit`: the status that the nth socket is refused with, counted from 0.
    pub async fn start(
        script: impl Fn(&str, usize) -> Vec<Say> + Send + Sync + 'static,
        admit: impl Fn(usize) -> Result<(), u16> + Send + Sync + 'static,
    ) -> Self {
        let script: Arc<Script> = Arc::new(script);
        let server = SocketServer::start(admit, move |socket, log| serve(socket, log, script.clone())).await;
        ElevenlabsServer {
            url: server.url.replacen("ws:", "http:", 1),
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

    /// Waits until that many texts, beginnings (a blank) and ends (nothing) have come, whichever of them.
    pub async fn texts(&self, count: usize) -> Vec<String> {
        let all = self.until("text", count).await;
        all.iter().map(|ask| ask["text"].as_str().unwrap().to_owned()).collect()
    }
}

async fn serve(mut socket: Socket, log: Log, script: Arc<Script>) {
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let ask: Value = serde_json::from_str(&text).unwrap();
        log.note(ask.clone());
        let says = match ask["text"].as_str().unwrap() {
            " " => Vec::new(),
            "" => vec![Say::Final],
            text => {
                let is_text = |ask: &&Value| !ask["text"].as_str().unwrap().trim().is_empty();
                let before = log.with("text").iter().filter(is_text).count() - 1;
                script(text.trim(), before)
            }
        };
        for say in says {
            let message = match say {
                Say::Sound(bytes, alignment) => {
                    let audio = STANDARD.encode(bytes);
                    Message::text(json!({ "audio": audio, "isFinal": null, "alignment": alignment }).to_string())
                }
                Say::Final => Message::text(json!({ "audio": null, "isFinal": true }).to_string()),
                Say::Event(event) => Message::text(event.to_string()),
                Say::Text(text) => Message::text(text),
                Say::Binary => Message::binary(vec![1, 2]),
                Say::Close => Message::Close(None),
                Say::Policy(reason) => Message::Close(Some(CloseFrame {
                    code: CloseCode::Policy,
                    reason: reason.into(),
                })),
                Say::Break => return,
            };
            // A client that goes away is none of its business.
            let _ = socket.send(message).await;
        }
    }
}
