//! An open socket, in a task of its own, and what is spoken over it: several contexts at once, each with its listener.
use crate::{
    provider_socket::Socket,
    speech::{SpeechError, generation::Word},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::{SinkExt, StreamExt, stream::SplitSink};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::HashMap, time::Duration};
use tokio::{sync::mpsc, time::timeout};
use tokio_tungstenite::tungstenite::{Error, Message};

/// What is spoken and fetched ahead at once; a talk has two.
const MAX_CONTEXTS: usize = 8;
/// Asks that wait.
const QUEUE: usize = 64;
/// A message of a few words is sent by then, or nobody reads it.
const SENDING: Duration = Duration::from_secs(5);

/// What came of a context.
pub enum Heard {
    Sound(Vec<u8>),
    Words(Vec<Word>),
    /// What was asked so far has been said.
    Flushed,
    /// Nothing more comes.
    Done,
}

type Listener = mpsc::UnboundedSender<Result<Heard, SpeechError>>;

/// Cloning is cheap. The socket is closed when there is no clone and no context any more.
#[derive(Clone)]
pub struct Link(mpsc::Sender<Ask>);

enum Ask {
    /// From now on this context has a listener, who takes what comes at once.
    Open(String, Listener),
    Send(Value),
    Close {
        context: String,
        is_called_off: bool,
    },
}

impl Link {
    pub fn over(socket: Socket) -> Self {
        let (asks, to_send) = mpsc::channel(QUEUE);
        tokio::spawn(run(socket, to_send));
        Link(asks)
    }

    pub fn is_open(&self) -> bool {
        !self.0.is_closed()
    }

    pub fn context(&self, name: String) -> Result<Context, SpeechError> {
        let (listener, heard) = mpsc::unbounded_channel();
        let context = Context {
            name: name.clone(),
            heard,
            asks: self.0.clone(),
        };
        context.ask(Ask::Open(name, listener)).map(|()| context)
    }
}

/// Something that is being said.
pub struct Context {
    name: String,
    heard: mpsc::UnboundedReceiver<Result<Heard, SpeechError>>,
    asks: mpsc::Sender<Ask>,
}

impl Context {
    fn ask(&self, ask: Ask) -> Result<(), SpeechError> {
        // Full: it is not read any more.
        self.asks.try_send(ask).map_err(|_| SpeechError::Closed)
    }

    pub fn send(&self, message: Value) -> Result<(), SpeechError> {
        self.ask(Ask::Send(message))
    }

    /// May be dropped and called again.
    pub async fn next(&mut self) -> Result<Heard, SpeechError> {
        self.heard.recv().await.unwrap_or(Err(SpeechError::Closed))
    }

    pub fn close(mut self, is_called_off: bool) {
        let context = std::mem::take(&mut self.name);
        // Where there is no room, the task sees with the next sound that nobody listens.
        let _ = self.ask(Ask::Close { context, is_called_off });
    }
}

/// What it sends.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    context_id: Option<String>,
    data: Option<String>,
    status_code: Option<u16>,
    /// Sound is not lost for what is wrong in it.
    word_timestamps: Option<Value>,
}

/// In seconds.
#[derive(Deserialize)]
struct WordTimestamps {
    words: Vec<String>,
    start: Vec<f64>,
    end: Vec<f64>,
}

struct Running {
    sink: SplitSink<Socket, Message>,
    listeners: HashMap<String, Listener>,
}

async fn run(socket: Socket, mut asks: mpsc::Receiver<Ask>) {
    let (sink, mut stream) = socket.split();
    let mut running = Running {
        sink,
        listeners: HashMap::new(),
    };
    let end = loop {
        let step = tokio::select! {
            ask = asks.recv() => match ask {
                Some(ask) => running.ask(ask).await,
                None => Err(SpeechError::Closed),
            },
            message = stream.next() => match message {
                Some(Ok(Message::Text(text))) => running.event(&text).await,
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(()),
                Some(Ok(Message::Binary(_)) | Err(Error::Capacity(_) | Error::Utf8(_))) => Err(SpeechError::Garbage),
                Some(Ok(Message::Close(_)) | Err(_)) | None => Err(SpeechError::Closed),
            },
        };
        if let Err(error) = step {
            break error;
        }
    };
    // Nothing is asked on this socket from here on: whoever comes opens another.
    asks.close();
    let waiting = std::iter::from_fn(|| asks.try_recv().ok()).filter_map(|ask| match ask {
        Ask::Open(_, listener) => Some(listener),
        Ask::Send(_) | Ask::Close { .. } => None,
    });
    for listener in running.listeners.into_values().chain(waiting) {
        // Nobody may listen any more.
        let _ = listener.send(Err(end));
    }
    let _ = timeout(SENDING, running.sink.close()).await;
}

impl Running {
    async fn ask(&mut self, ask: Ask) -> Result<(), SpeechError> {
        match ask {
            Ask::Open(_, listener) if self.listeners.len() >= MAX_CONTEXTS => {
                let _ = listener.send(Err(SpeechError::Limited { retry_after: None }));
                Ok(())
            }
            Ask::Open(context, listener) => {
                self.listeners.insert(context, listener);
                Ok(())
            }
            // Of one that is over nothing is asked.
            Ask::Send(message) => match message["context_id"].as_str() {
                Some(context) if self.listeners.contains_key(context) => self.send(&message).await,
                _ => Ok(()),
            },
            Ask::Close {
                context,
                is_called_off: true,
            } => self.cancel(&context).await,
            Ask::Close { context, .. } => {
                self.listeners.remove(&context);
                Ok(())
            }
        }
    }

    /// Not of one that is over.
    async fn cancel(&mut self, context: &str) -> Result<(), SpeechError> {
        match self.listeners.remove(context) {
            Some(_) => self.send(&json!({ "context_id": context, "cancel": true })).await,
            None => Ok(()),
        }
    }

    async fn send(&mut self, message: &Value) -> Result<(), SpeechError> {
        let sent = timeout(SENDING, self.sink.send(Message::text(message.to_string()))).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(SpeechError::Closed),
        }
    }

    async fn event(&mut self, text: &str) -> Result<(), SpeechError> {
        let event: Event = serde_json::from_str(text).map_err(|_| SpeechError::Garbage)?;
        let error = match event.kind.as_str() {
            "error" => Some(SpeechError::of_status(event.status_code.unwrap_or(500), None)),
            _ => None,
        };
        let Some(context) = event.context_id else {
            // Of the connection, and so of everything.
            return error.map_or(Ok(()), Err);
        };
        // What was called off may still send what was on its way.
        let Some(listener) = self.listeners.get(&context) else {
            return Ok(());
        };
        let heard = match (event.kind.as_str(), error) {
            (_, Some(error)) => Err(error),
            ("chunk", None) => sound(event.data.as_deref()),
            ("timestamps", None) => Ok(Heard::Words(words(event.word_timestamps))),
            ("flush_done", None) => Ok(Heard::Flushed),
            ("done", None) => Ok(Heard::Done),
            (_, None) => return Ok(()),
        };
        let is_over = error.is_some() || matches!(heard, Ok(Heard::Done));
        let is_heard = listener.send(heard).is_ok();
        if is_over {
            self.listeners.remove(&context);
        } else if !is_heard {
            return self.cancel(&context).await;
        }
        Ok(())
    }
}

fn sound(data: Option<&str>) -> Result<Heard, SpeechError> {
    let bytes = data.and_then(|data| STANDARD.decode(data).ok());
    bytes.map(Heard::Sound).ok_or(SpeechError::Garbage)
}

fn words(timestamps: Option<Value>) -> Vec<Word> {
    let Some(Ok(timestamps)) = timestamps.map(serde_json::from_value::<WordTimestamps>) else {
        return Vec::new();
    };
    let WordTimestamps { words, start, end } = timestamps;
    // What is negative is the beginning.
    let ms = |seconds: f64| (seconds * 1_000.0) as u64;
    let times = start.into_iter().map(ms).zip(end.into_iter().map(ms));
    let words = words.into_iter().zip(times);
    words
        .map(|(text, (begins_ms, ends_ms))| Word {
            text,
            begins_ms,
            ends_ms,
        })
        .collect()
}
