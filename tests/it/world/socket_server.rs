//! What the world's websocket providers have in common: they listen, let in or refuse, and note what comes.
use super::local_listener::listen;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::{net::TcpStream, sync::watch, task::JoinSet};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::handshake::server::{ErrorResponse, Request, Response},
};

pub type Socket = WebSocketStream<TcpStream>;

/// `{"connected": path, "key": …}`, whatever came in, and `{"closed": true}`; in order, of all connections.
#[derive(Clone, Default)]
pub struct Log(Arc<watch::Sender<Vec<Value>>>);

impl Log {
    pub fn note(&self, event: Value) {
        self.0.send_modify(|all| all.push(event));
    }

    /// Those with this field.
    pub fn with(&self, field: &str) -> Vec<Value> {
        with(&self.0.borrow(), field)
    }

    /// Waits until that many have come with this field.
    pub async fn until(&self, field: &str, count: usize) -> Vec<Value> {
        let mut events = self.0.subscribe();
        let all = events.wait_for(|all| with(all, field).len() >= count).await.unwrap();
        with(&all, field)
    }
}

fn with(all: &[Value], field: &str) -> Vec<Value> {
    all.iter().filter(|event| event.get(field).is_some()).cloned().collect()
}

/// How it is found and whom it lets in. Dropping it ends all its connections.
pub struct SocketServer {
    /// `ws://` and the address.
    pub url: String,
    pub log: Log,
    _tasks: JoinSet<()>,
}

impl SocketServer {
    /// `serve` has each connection until its end. `admit`: the status that the nth is refused with, counted from 0, instead of a
    /// websocket.
    pub async fn start<S>(
        admit: impl Fn(usize) -> Result<(), u16> + Send + Sync + 'static,
        serve: impl Fn(Socket, Log) -> S + Clone + Send + Sync + 'static,
    ) -> Self
    where
        S: Future<Output = ()> + Send + 'static,
    {
        let (log, count) = (Log::default(), AtomicUsize::new(0));
        let noted = log.clone();
        let (address, tasks) = listen(move |stream| {
            let admitted = admit(count.fetch_add(1, Ordering::Relaxed));
            let (serve, log) = (serve.clone(), noted.clone());
            async move {
                if let Some(socket) = welcome(stream, &log, admitted).await {
                    serve(socket, log.clone()).await;
                    log.note(json!({ "closed": true }));
                }
            }
        });
        SocketServer {
            url: format!("ws://{address}"),
            log,
            _tasks: tasks,
        }
    }
}

#[expect(clippy::result_large_err, reason = "the handshake's own type")]
async fn welcome(stream: TcpStream, log: &Log, admitted: Result<(), u16>) -> Option<Socket> {
    let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        let header = |name: &str| request.headers().get(name).map(|key| key.to_str().unwrap().to_owned());
        let key = header("x-api-key")
            .or_else(|| header("xi-api-key"))
            .or_else(|| header("authorization"));
        if let Err(status) = admitted {
            log.note(json!({ "refused": status }));
            let mut refused = ErrorResponse::new(Some("no".into()));
            *refused.status_mut() = status.try_into().unwrap();
            return Err(refused);
        }
        log.note(json!({ "connected": request.uri().to_string(), "key": key }));
        Ok(response)
    };
    accept_hdr_async(stream, look).await.ok()
}
