//! The Chrome DevTools Protocol over its WebSocket: commands with their answers, and the few events that tests want.
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_tungstenite::{connect_async, tungstenite::Message};

/// A browser that does not answer a command within this time never will.
const ANSWER: Duration = Duration::from_secs(120);
/// Commands that are on their way to the browser.
const QUEUE: usize = 64;

/// Cloning is cheap.
#[derive(Clone)]
pub struct Link {
    out: mpsc::Sender<Message>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    last: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    tabs: Mutex<HashMap<String, Tab>>,
}

/// What became known of a tab by itself.
struct Tab {
    /// Errors of its scripts and breaches of its policy.
    complaints: Vec<String>,
    /// How often it was loaded to the end.
    loads: watch::Sender<usize>,
}

impl Link {
    pub async fn connect(url: &str) -> Self {
        let (socket, _) = connect_async(url).await.unwrap();
        let (mut sink, mut stream) = socket.split();
        let (out, mut queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared::default());
        tokio::spawn(async move {
            while let Some(message) = queue.recv().await {
                if sink.send(message).await.is_err() {
                    return;
                }
            }
        });
        let receiver = shared.clone();
        tokio::spawn(async move {
            while let Some(Ok(message)) = stream.next().await {
                if let Message::Text(text) = message {
                    receiver.take(serde_json::from_str(&text).unwrap());
                }
            }
            // Whoever still waits learns that the browser is gone.
            receiver.waiting.lock().unwrap().clear();
        });
        Link { out, shared }
    }

    /// Sends one command and returns its result.
    pub async fn send(&self, tab: Option<&str>, method: &str, params: Value) -> Value {
        let answer = self.ask(tab, method, params).await;
        assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    /// Sends one command and returns its answer, which may be an error.
    pub async fn ask(&self, tab: Option<&str>, method: &str, params: Value) -> Value {
        let id = self.shared.last.fetch_add(1, Relaxed) + 1;
        let (answer, answered) = oneshot::channel();
        self.shared.waiting.lock().unwrap().insert(id, answer);
        let mut command = json!({ "id": id, "method": method, "params": params });
        if let Some(tab) = tab {
            command["sessionId"] = tab.into();
        }
        self.out.send(Message::text(command.to_string())).await.unwrap();
        tokio::time::timeout(ANSWER, answered)
            .await
            .unwrap_or_else(|_| panic!("{method}: the browser does not answer"))
            .unwrap_or_else(|_| panic!("{method}: the browser is gone"))
    }

    /// From here on, events of that tab are kept.
    pub fn watch(&self, tab: &str) {
        let new = Tab {
            complaints: Vec::new(),
            loads: watch::Sender::new(0),
        };
        self.shared.tabs.lock().unwrap().insert(tab.to_owned(), new);
    }

    pub fn loads(&self, tab: &str) -> watch::Receiver<usize> {
        self.shared.tabs.lock().unwrap()[tab].loads.subscribe()
    }

    pub fn complaints(&self, tab: &str) -> Vec<String> {
        self.shared.tabs.lock().unwrap()[tab].complaints.clone()
    }
}

impl Shared {
    fn take(&self, message: Value) {
        if let Some(id) = message["id"].as_u64() {
            if let Some(waiting) = self.waiting.lock().unwrap().remove(&id) {
                // Its test may have given up.
                let _ = waiting.send(message);
            }
            return;
        }
        let mut tabs = self.tabs.lock().unwrap();
        let Some(tab) = message["sessionId"].as_str().and_then(|tab| tabs.get_mut(tab)) else {
            return;
        };
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Page.loadEventFired" => tab.loads.send_modify(|loads| *loads += 1),
            "Inspector.targetCrashed" => tab.complaints.push("the tab crashed".into()),
            "Runtime.exceptionThrown" => tab.complaints.push(params["exceptionDetails"].to_string()),
            // That an address answers 404 is for tests to say.
            "Log.entryAdded" if params["entry"]["level"] == "error" && params["entry"]["source"] != "network" => {
                tab.complaints.push(params["entry"].to_string());
            }
            _ => {}
        }
    }
}
