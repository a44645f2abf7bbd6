//! `stream-input`: texts go in, their sound comes out with the moment of each letter. A socket is one generation.
//!
//! Source: elevenlabs.io/docs/api-reference, "WebSocket".
use super::{
    endpoint::VoiceIn,
    spare::{Spares, close},
};
use crate::{
    provider_socket::Socket,
    speech::{
        SpeechError,
        generation::{self, Event, Wire},
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error, Message, protocol::frame::coding::CloseCode};

/// A message of a few words is sent by then, or nobody reads it.
const SENDING: Duration = Duration::from_secs(5);

/// Opens sockets of one voice in one talk.
pub struct Opener {
    spares: Arc<Spares>,
    voice: VoiceIn,
}

impl Opener {
    pub fn new(spares: &Arc<Spares>, voice: VoiceIn) -> Self {
        Opener {
            spares: spares.clone(),
            voice,
        }
    }
}

impl generation::Opener for Opener {
    type Wire = StreamInput;

    async fn open(&self) -> Result<(StreamInput, bool), SpeechError> {
        let (socket, is_fresh) = self.spares.socket(&self.voice).await?;
        self.spares.renew(&self.voice);
        let wire = StreamInput {
            socket,
            is_begun: false,
            is_finished: false,
            is_over: false,
            spares: Arc::downgrade(&self.spares),
            voice: self.voice.clone(),
        };
        Ok((wire, is_fresh))
    }
}

pub struct StreamInput {
    socket: Socket,
    is_begun: bool,
    is_finished: bool,
    /// That the last sound was the last has been read with it.
    is_over: bool,
    /// Gone with the talk.
    spares: Weak<Spares>,
    voice: VoiceIn,
}

impl StreamInput {
    async fn send(&mut self, messages: &[Value]) -> Result<(), SpeechError> {
        let sending = async {
            for message in messages {
                self.socket.feed(Message::text(message.to_string())).await?;
            }
            self.socket.flush().await
        };
        match timeout(SENDING, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(SpeechError::Closed),
        }
    }
}

impl Wire for StreamInput {
    const IDLE: Duration = Duration::from_secs(20);
    const ENDS_BY_LETTERS: bool = true;

    async fn say(&mut self, text: &str, is_last: bool) -> Result<(), SpeechError> {
        let mut messages = Vec::new();
        if !std::mem::replace(&mut self.is_begun, true) {
            messages.push(json!({ "text": " " }));
        }
        // A text ends with a blank, and is spoken at once.
        messages.push(json!({ "text": format!("{text} "), "flush": true }));
        if is_last {
            self.is_finished = true;
            messages.push(json!({ "text": "" }));
        }
        self.send(&messages).await
    }

    async fn finish(&mut self) -> Result<(), SpeechError> {
        self.is_finished = true;
        self.send(&[json!({ "text": "" })]).await
    }

    async fn next(&mut self) -> Result<Event, SpeechError> {
        if self.is_over {
            return Ok(Event::Over);
        }
        match self.socket.next().await {
            Some(Ok(Message::Text(text))) => {
                let (event, is_over) = read(&text)?;
                self.is_over = is_over;
                Ok(event)
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(Event::Other),
            Some(Ok(Message::Binary(_)) | Err(Error::Capacity(_) | Error::Utf8(_))) => Err(SpeechError::Garbage),
            Some(Ok(Message::Close(Some(frame)))) => match frame.code {
                // All has been said, if that was asked of it.
                CloseCode::Normal if self.is_finished => Ok(Event::Over),
                CloseCode::Policy => Err(refusal(&frame.reason, None)),
                _ => Err(SpeechError::Closed),
            },
            Some(Ok(Message::Close(None)) | Err(_)) | None => Err(SpeechError::Closed),
        }
    }

    async fn close(self, _: bool) {
        close(self.socket).await;
        if let Some(spares) = self.spares.upgrade() {
            // Where it could not be opened when this turn began.
            spares.renew(&self.voice);
        }
    }
}

/// What it sends.
#[derive(Deserialize)]
struct Answer {
    audio: Option<String>,
    #[serde(rename = "isFinal", alias = "is_final")]
    is_final: Option<bool>,
    /// Of the text as it was sent. Sound is not lost for what is wrong in it.
    alignment: Option<Value>,
    /// A name, or words.
    error: Option<Value>,
    code: Option<Value>,
}

/// Milliseconds are those of this message's sound.
#[derive(Deserialize)]
struct Alignment {
    chars: Vec<String>,
    #[serde(rename = "charStartTimesMs", alias = "char_start_times_ms")]
    starts: Vec<f64>,
    #[serde(rename = "charDurationsMs", alias = "charsDurationsMs", alias = "char_durations_ms")]
    durations: Vec<f64>,
}

/// What has come, and whether it is the last.
fn read(text: &str) -> Result<(Event, bool), SpeechError> {
    let answer: Answer = serde_json::from_str(text).map_err(|_| SpeechError::Garbage)?;
    if let Some(error) = answer.error.filter(|error| !error.is_null()) {
        let words = error.as_str().unwrap_or_default();
        return Err(refusal(words, answer.code.as_ref().and_then(Value::as_u64)));
    }
    let event = match answer.audio.filter(|audio| !audio.is_empty()) {
        Some(audio) => Event::Sound {
            bytes: STANDARD.decode(audio).map_err(|_| SpeechError::Garbage)?,
            letters: letters(answer.alignment),
        },
        None => Event::Other,
    };
    Ok((event, answer.is_final == Some(true)))
}

fn letters(alignment: Option<Value>) -> Vec<(String, u64)> {
    let Some(Ok(alignment)) = alignment.map(serde_json::from_value::<Alignment>) else {
        return Vec::new();
    };
    let Alignment {
        chars,
        starts,
        durations,
    } = alignment;
    // What is negative is the beginning.
    let times = starts.into_iter().zip(durations);
    let ends = times.map(|(start, lasts)| (start + lasts) as u64);
    chars.into_iter().zip(ends).collect()
}

/// What a name for a failure means, or a status beside it.
fn refusal(words: &str, code: Option<u64>) -> SpeechError {
    let words = words.to_ascii_lowercase();
    let names = |names: &[&str]| names.iter().any(|name| words.contains(name));
    let status = match code.and_then(|code| u16::try_from(code).ok()) {
        Some(status @ 400..=599) => status,
        _ if names(&[
            "too_many_concurrent",
            "rate_limit",
            "concurrent_limit",
            "system_busy",
            "too many",
        ]) =>
        {
            429
        }
        _ if names(&["quota", "credit", "payment"]) => 402,
        _ if names(&["api_key", "api key", "auth", "permission"]) => 401,
        _ if names(&["voice"]) => 404,
        _ => 500,
    };
    SpeechError::of_status(status, None)
}
