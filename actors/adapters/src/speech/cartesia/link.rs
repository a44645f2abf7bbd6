//! An open socket, in a task of its own, and what is spoken over it: several contexts at once, each with its listener.
use crate::{
    provider_http::{Limits, Patience},
    provider_socket::Socket,
    speech::{RATE, SpeechError, pcm::Pcm},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::{SinkExt, StreamExt, stream::SplitSink};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::HashMap, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use tokio_tungstenite::tungstenite::{Error, Message};

/// What is spoken and fetched ahead at once; a talk has two.
const MAX_CONTEXTS: usize = 8;
/// Asks that wait.
const QUEUE: usize = 64;
/// A message of a few words is sent by then, or nobody reads it.
const SENDING: Duration = Duration::from_secs(5);

type Sounds = mpsc::UnboundedSender<Result<Vec<i16>, SpeechError>>;

/// Cloning is cheap. The socket is closed when there is no clone and no context any more.
#[derive(Clone, Debug)]
pub struct Link(mpsc::Sender<Ask>);

#[derive(Debug)]
enum Ask {
    Speak {
        context: String,
        message: Value,
        /// Holds no more than an utterance may have.
        sounds: Sounds,
    },
    Cancel(String),
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

    pub fn speak(&self, name: String, message: Value, limits: Limits) -> Result<Context, SpeechError> {
        let (sounds, heard) = mpsc::unbounded_channel();
        let ask = Ask::Speak {
            context: name.clone(),
            message,
            sounds,
        };
        // Full: it is not read any more.
        self.0.try_send(ask).map_err(|_| SpeechError::Closed)?;
        Ok(Context {
            name,
            heard,
            asks: self.0.clone(),
            is_over: false,
            patience: Patience::new(limits),
            begun: None,
        })
    }
}

/// Something that is being said. Dropping it calls it off.
#[derive(Debug)]
pub struct Context {
    name: String,
    heard: mpsc::UnboundedReceiver<Result<Vec<i16>, SpeechError>>,
    asks: mpsc::Sender<Ask>,
    is_over: bool,
    patience: Patience,
    /// When its first sound came.
    begun: Option<Instant>,
}

impl Context {
    /// The next samples; none when all was said.
    pub async fn next(&mut self) -> Result<Option<Vec<i16>>, SpeechError> {
        let Limits {
            first_byte, silence, ..
        } = self.patience.limits;
        let (limit, error) = match self.begun {
            None => (first_byte, SpeechError::Timeout),
            Some(_) => (silence, SpeechError::Stalled),
        };
        let piece = self.patience.wait(limit, self.heard.recv()).await.ok_or(error)?;
        match piece {
            Some(Ok(samples)) => {
                self.begun.get_or_insert_with(Instant::now);
                Ok(Some(samples))
            }
            Some(Err(error)) => {
                self.is_over = true;
                Err(error)
            }
            None => {
                self.is_over = true;
                Ok(None)
            }
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.is_over {
            // Where there is no room, the task sees with the next sound that nobody listens.
            let _ = self.asks.try_send(Ask::Cancel(std::mem::take(&mut self.name)));
        }
    }
}

/// What it sends. Timestamps and whatever else there is are passed over.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    context_id: Option<String>,
    data: Option<String>,
    status_code: Option<u16>,
}

/// One that is spoken.
struct Voice {
    sounds: Sounds,
    pcm: Pcm,
}

struct Running {
    sink: SplitSink<Socket, Message>,
    voices: HashMap<String, Voice>,
}

async fn run(socket: Socket, mut asks: mpsc::Receiver<Ask>) {
    let (sink, mut stream) = socket.split();
    let mut running = Running {
        sink,
        voices: HashMap::new(),
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
        Ask::Speak { sounds, .. } => Some(sounds),
        Ask::Cancel(_) => None,
    });
    for sounds in running.voices.into_values().map(|voice| voice.sounds).chain(waiting) {
        // Nobody may listen any more.
        let _ = sounds.send(Err(end));
    }
    let _ = timeout(SENDING, running.sink.close()).await;
}

impl Running {
    async fn ask(&mut self, ask: Ask) -> Result<(), SpeechError> {
        match ask {
            Ask::Speak { sounds, .. } if self.voices.len() >= MAX_CONTEXTS => {
                let _ = sounds.send(Err(SpeechError::Limited { retry_after: None }));
                Ok(())
            }
            Ask::Speak {
                context,
                message,
                sounds,
            } => {
                let pcm = Pcm::at(RATE);
                self.voices.insert(context, Voice { sounds, pcm });
                self.send(&message).await
            }
            Ask::Cancel(context) => self.cancel(&context).await,
        }
    }

    /// Not of one that is over.
    async fn cancel(&mut self, context: &str) -> Result<(), SpeechError> {
        match self.voices.remove(context) {
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
        let Some(voice) = self.voices.get_mut(&context) else {
            return Ok(());
        };
        let sound = match (event.kind.as_str(), error) {
            (_, Some(error)) => Err(error),
            ("chunk", None) => voice.sound(event.data.as_deref()),
            ("done", None) => {
                if let Err(error) = voice.pcm.end() {
                    let _ = voice.sounds.send(Err(error));
                }
                self.voices.remove(&context);
                return Ok(());
            }
            (_, None) => return Ok(()),
        };
        let is_broken = sound.is_err();
        let is_refused = error.is_some();
        let is_empty = sound.as_ref().is_ok_and(Vec::is_empty);
        let is_heard = is_empty || voice.sounds.send(sound).is_ok();
        if is_refused {
            self.voices.remove(&context);
        } else if is_broken || !is_heard {
            return self.cancel(&context).await;
        }
        Ok(())
    }
}

impl Voice {
    fn sound(&mut self, data: Option<&str>) -> Result<Vec<i16>, SpeechError> {
        let bytes = data.and_then(|data| STANDARD.decode(data).ok());
        self.pcm.take(&bytes.ok_or(SpeechError::Garbage)?)
    }
}
