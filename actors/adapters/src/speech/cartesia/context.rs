//! A context: what is said in one go over the talk's socket.
use super::{
    connect::Endpoint,
    link::{Context, Heard, Link},
};
use crate::speech::{
    RATE, SpeechError, Utterance,
    generation::{self, Event, Wire},
    primary,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::Mutex;

pub struct Talk {
    pub endpoint: Endpoint,
    link: Mutex<Option<Link>>,
    /// Counts what is said, for the names of contexts.
    turns: AtomicU64,
}

impl Talk {
    pub fn new(endpoint: Endpoint) -> Self {
        Talk {
            endpoint,
            link: Mutex::default(),
            turns: AtomicU64::new(1),
        }
    }

    /// The talk's socket; `true`: it was just opened.
    pub async fn link(&self) -> Result<(Link, bool), SpeechError> {
        let mut kept = self.link.lock().await;
        if let Some(link) = kept.as_ref().filter(|link| link.is_open()) {
            return Ok((link.clone(), false));
        }
        let link = Link::over(self.endpoint.connect().await?);
        *kept = Some(link.clone());
        Ok((link, true))
    }
}

/// Opens contexts of one voice.
pub struct Opener {
    talk: Arc<Talk>,
    /// All of a context's messages have these fields.
    common: Value,
}

impl Opener {
    pub fn new(talk: Arc<Talk>, asked: &Utterance) -> Self {
        let mut common = json!({
            "model_id": *talk.endpoint.model,
            "voice": { "mode": "id", "id": asked.voice },
            "output_format": { "container": "raw", "encoding": "pcm_s16le", "sample_rate": RATE },
            "add_timestamps": true,
            // Clauses and sentences are sent whole.
            "max_buffer_delay_ms": 0,
        });
        if let Some(language) = primary(&asked.language) {
            common["language"] = language.into();
        }
        Opener { talk, common }
    }
}

impl generation::Opener for Opener {
    type Wire = InContext;

    async fn open(&self) -> Result<(InContext, bool), SpeechError> {
        let (link, is_fresh) = self.talk.link().await?;
        let name = format!("turn-{}", self.talk.turns.fetch_add(1, Ordering::Relaxed));
        let mut common = self.common.clone();
        common["context_id"] = name.clone().into();
        let (context, is_fresh) = match link.context(name.clone()) {
            Ok(context) => (context, is_fresh),
            // It was closed in this moment.
            Err(_) => {
                let (link, is_fresh) = self.talk.link().await?;
                (link.context(name)?, is_fresh)
            }
        };
        Ok((InContext { context, common }, is_fresh))
    }
}

pub struct InContext {
    context: Context,
    common: Value,
}

impl InContext {
    fn message(&self, text: &str, continues: bool) -> Value {
        let mut message = self.common.clone();
        message["transcript"] = text.into();
        message["continue"] = continues.into();
        message
    }
}

impl Wire for InContext {
    /// It expires a second after its last sound.
    const IDLE: Duration = Duration::from_millis(700);
    const ENDS_BY_LETTERS: bool = false;

    async fn say(&mut self, text: &str, is_last: bool) -> Result<(), SpeechError> {
        if is_last {
            return self.context.send(self.message(text, false));
        }
        // Texts are joined as they are.
        self.context.send(self.message(&format!("{text} "), true))?;
        let mut flush = self.message("", true);
        flush["flush"] = true.into();
        self.context.send(flush)
    }

    async fn finish(&mut self) -> Result<(), SpeechError> {
        self.context.send(self.message("", false))
    }

    async fn next(&mut self) -> Result<Event, SpeechError> {
        Ok(match self.context.next().await? {
            Heard::Sound(bytes) => Event::Sound {
                bytes,
                letters: Vec::new(),
            },
            Heard::Words(words) => Event::Words(words),
            Heard::Flushed => Event::PieceOver,
            Heard::Done => Event::Over,
        })
    }

    async fn close(self, is_called_off: bool) {
        self.context.close(is_called_off);
    }
}
