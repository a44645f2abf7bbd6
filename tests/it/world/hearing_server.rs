//! A real local provider that hears while it is spoken: OpenAI's Realtime API as a transcription session, Deepgram's `/v1/listen`, or
//! Flux's `/v2/listen`. What it understands, the test decides.
use super::socket_server::{Log, Socket, SocketServer};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Protocol {
    Realtime,
    Listen,
    Flux,
}

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Came {
    Connection,
    Sound,
    /// A commit, `Finalize` or `ForceEndTurn`.
    Flush,
    Other,
}

#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub came: Came,
    /// From 0.
    pub connection: usize,
    /// On this connection, this one too.
    pub flushes: usize,
    /// Of sound, on this connection.
    pub ms: usize,
}

/// What is done, one after the other.
#[derive(Clone, Debug)]
pub enum Say {
    /// Words that may change, of all since the last that do not.
    Partial(String),
    /// Words that do not change any more, of the same sound; after a flush, all that was asked for.
    Words(String),
    /// An event of Flux, with its words.
    Turn(&'static str, String),
    /// As it is.
    Event(Value),
    Text(String),
    Binary,
    Close,
    /// The connection breaks off.
    Break,
    /// Nothing, until the gate is open.
    Gate(watch::Receiver<bool>),
}

type Script = dyn Fn(Asked) -> Vec<Say> + Send + Sync;

/// Its log has all texts that come, and `{"sound": samples}`. Dropping it ends all its connections.
pub struct HearingServer {
    pub url: String,
    pub log: Log,
    _server: SocketServer,
}

impl HearingServer {
    pub async fn start_with(protocol: Protocol, script: impl Fn(Asked) -> Vec<Say> + Send + Sync + 'static) -> Self {
        Self::admitting(protocol, |_| Ok(()), script).await
    }

    /// `admit`: the status that the nth connection is refused with, from 0.
    pub async fn admitting(
        protocol: Protocol,
        admit: impl Fn(usize) -> Result<(), u16> + Send + Sync + 'static,
        script: impl Fn(Asked) -> Vec<Say> + Send + Sync + 'static,
    ) -> Self {
        let script: Arc<Script> = Arc::new(script);
        let serve = move |socket, log| Session::new(socket, log, protocol).run(script.clone());
        let server = SocketServer::start(admit, serve).await;
        HearingServer {
            url: server.url.clone(),
            log: server.log.clone(),
            _server: server,
        }
    }
}

struct Session {
    socket: Socket,
    log: Log,
    protocol: Protocol,
    connection: usize,
    flushes: usize,
    /// Samples, at the protocol's own rate: all, those whose words are known, and those that are not committed.
    samples: usize,
    known: usize,
    buffered: usize,
    items: usize,
    turns: usize,
}

impl Session {
    fn new(socket: Socket, log: Log, protocol: Protocol) -> Self {
        Session {
            connection: log.with("connected").len() - 1,
            socket,
            log,
            protocol,
            flushes: 0,
            samples: 0,
            known: 0,
            buffered: 0,
            items: 0,
            turns: 0,
        }
    }

    fn rate(&self) -> usize {
        if self.protocol == Protocol::Realtime {
            24_000
        } else {
            16_000
        }
    }

    async fn run(mut self, script: Arc<Script>) {
        let mut came = Came::Connection;
        loop {
            let asked = Asked {
                came,
                connection: self.connection,
                flushes: self.flushes,
                ms: self.samples * 1_000 / self.rate(),
            };
            for say in script(asked) {
                let message = match say {
                    Say::Break => return,
                    Say::Gate(mut gate) => {
                        // A test that is over needs no answer.
                        let _ = gate.wait_for(|is_open| *is_open).await;
                        continue;
                    }
                    say => self.message(say, came == Came::Flush),
                };
                // A client that goes away is none of its business.
                let _ = self.socket.send(message).await;
            }
            came = match self.socket.next().await {
                Some(Ok(Message::Binary(sound))) => self.hear(sound.len() / 2),
                Some(Ok(Message::Text(text))) => self.read(serde_json::from_str(&text).unwrap()).await,
                Some(Ok(_)) => Came::Other,
                Some(Err(_)) | None => return,
            };
        }
    }

    fn hear(&mut self, samples: usize) -> Came {
        self.log.note(json!({ "sound": samples }));
        self.samples += samples;
        self.buffered += samples;
        Came::Sound
    }

    async fn read(&mut self, ask: Value) -> Came {
        if ask["type"] == "input_audio_buffer.append" {
            let sound = STANDARD.decode(ask["audio"].as_str().unwrap()).unwrap();
            return self.hear(sound.len() / 2);
        }
        self.log.note(ask.clone());
        match ask["type"].as_str().unwrap() {
            "Finalize" | "ForceEndTurn" => {}
            "input_audio_buffer.commit" if self.buffered >= 2_400 => {
                self.items += 1;
                let item = format!("item-{}", self.items);
                let committed = json!({ "type": "input_audio_buffer.committed", "item_id": item });
                let _ = self.socket.send(Message::text(committed.to_string())).await;
            }
            "input_audio_buffer.commit" => {
                let error = json!({ "type": "invalid_request_error", "code": "input_audio_buffer_commit_empty" });
                let event = json!({ "type": "error", "error": error });
                let _ = self.socket.send(Message::text(event.to_string())).await;
                return Came::Other;
            }
            "input_audio_buffer.clear" => {
                self.buffered = 0;
                return Came::Other;
            }
            _ => return Came::Other,
        }
        self.buffered = 0;
        self.flushes += 1;
        Came::Flush
    }

    fn message(&mut self, say: Say, is_flushed: bool) -> Message {
        let event = match say {
            Say::Partial(words) => self.words(&words, false, is_flushed),
            Say::Words(words) => self.words(&words, true, is_flushed),
            Say::Turn(event, words) => self.turn(event, &words),
            Say::Event(event) => event,
            Say::Text(text) => return Message::text(text),
            Say::Binary => return Message::binary(vec![1, 2]),
            Say::Close => return Message::Close(None),
            Say::Break | Say::Gate(_) => unreachable!(),
        };
        Message::text(event.to_string())
    }

    fn words(&mut self, words: &str, is_done: bool, is_flushed: bool) -> Value {
        match self.protocol {
            Protocol::Realtime => {
                // Of what was committed last, or of what will be next.
                let item = self.items + usize::from(!is_flushed);
                let (kind, field) = if is_done {
                    ("completed", "transcript")
                } else {
                    ("delta", "delta")
                };
                let kind = format!("conversation.item.input_audio_transcription.{kind}");
                json!({ "type": kind, "item_id": format!("item-{item}"), field: words })
            }
            Protocol::Listen => {
                let (start, duration) = (self.seconds(self.known), self.seconds(self.samples - self.known));
                if is_done {
                    self.known = self.samples;
                }
                json!({
                    "type": "Results",
                    "start": start,
                    "duration": duration,
                    "is_final": is_done,
                    "speech_final": false,
                    "from_finalize": is_done && is_flushed,
                    "channel": { "alternatives": [{ "transcript": words, "confidence": 0.9, "words": [] }] },
                })
            }
            Protocol::Flux => self.turn(if is_done { "EndOfTurn" } else { "Update" }, words),
        }
    }

    fn turn(&mut self, event: &str, words: &str) -> Value {
        let info = json!({
            "type": "TurnInfo",
            "event": event,
            "turn_index": self.turns,
            "audio_window_start": self.seconds(self.known),
            "audio_window_end": self.seconds(self.samples),
            "transcript": words,
            "words": [],
            "end_of_turn_confidence": 0.5,
        });
        if event == "EndOfTurn" {
            self.turns += 1;
            self.known = self.samples;
        }
        info
    }

    fn seconds(&self, samples: usize) -> f64 {
        samples as f64 / self.rate() as f64
    }
}
