//! Between the service and the provider of speech to speech: a model that takes its time, and then speaks at three times the
//! speed of people. What the provider sends is passed on as it is, later.
use super::servers::Pace;
use crate::rooms::pause;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::{net::TcpStream, task::JoinSet};
use tokio_tungstenite::{
    accept_hdr_async, connect_async,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
    },
};

/// Of each event of sound, 20 ms of it.
const EVERY: Duration = Duration::from_micros(20_000 / 3);

/// Dropping it ends its connections.
pub struct Relay {
    pub url: String,
    _task: JoinSet<()>,
}

impl Relay {
    /// To the provider at that address.
    pub fn start(provider: &str, pace: Pace) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        listener.set_nonblocking(true).expect("it does not wait");
        let listener = tokio::net::TcpListener::from_std(listener).expect("a port");
        let address = listener.local_addr().expect("its address");
        let provider = url::Url::parse(provider).expect("an address");
        let url = format!("ws://{address}{}", provider.path());
        let host = provider.authority().to_owned();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(pass(stream, host.clone(), pace.clone()));
            }
        });
        Relay { url, _task: task }
    }
}

/// Both ways, until either side is gone.
#[expect(clippy::result_large_err, reason = "the handshake's own type")]
async fn pass(stream: TcpStream, provider: String, pace: Pace) {
    let mut path = String::new();
    let note = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        path = request.uri().to_string();
        Ok(response)
    };
    let Ok(near) = accept_hdr_async(stream, note).await else {
        return;
    };
    let Ok((far, _)) = connect_async(format!("ws://{provider}{path}")).await else {
        return;
    };
    let ((mut to_service, mut of_service), (mut to_provider, mut of_provider)) = (near.split(), far.split());
    let out = async {
        while let Some(Ok(message)) = of_service.next().await {
            if to_provider.send(message).await.is_err() {
                return;
            }
        }
    };
    let back = async {
        let mut due = None;
        while let Some(Ok(message)) = of_provider.next().await {
            due = wait(&message, due, &pace).await;
            if to_service.send(message).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = out => {}
        () = back => {}
    }
}

/// Until it is time for that message; answers when it is for the next of the same answer.
async fn wait(message: &Message, due: Option<Instant>, pace: &Pace) -> Option<Instant> {
    let Message::Text(text) = message else { return due };
    let event: Value = serde_json::from_str(text).unwrap_or_default();
    match event["type"].as_str().unwrap_or_default() {
        "response.created" => Some(Instant::now() + pace.get().first_delta),
        kind if kind.ends_with(".delta") => {
            let at = due.unwrap_or_else(Instant::now);
            pause(at.saturating_duration_since(Instant::now())).await;
            let is_sound = kind == "response.output_audio.delta";
            Some(if is_sound { at + EVERY } else { at })
        }
        _ => due,
    }
}
