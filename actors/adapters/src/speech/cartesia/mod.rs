//! Cartesia: one websocket for a talk, and a context on it for each thing that is said.
//!
//! Source: docs.cartesia.ai/api-reference, "Text-to-Speech (WebSocket)", 2026-03-01.
mod connect;
mod link;

pub use connect::Endpoint;

use super::{SpeechError, SpeechStream, Synthesizer, Utterance, primary};
use futures_util::{FutureExt, future::BoxFuture, stream};
use link::{Context, Link};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout_at},
};

/// For one talk: its socket is opened with the first words, or before, and again when it broke.
#[derive(Debug)]
pub struct Cartesia(Arc<Talk>);

#[derive(Debug)]
struct Talk {
    endpoint: Endpoint,
    link: Mutex<Option<Link>>,
    /// Counts what is said, for the names of contexts.
    turns: AtomicU64,
}

impl Cartesia {
    pub fn new(endpoint: Endpoint) -> Self {
        Cartesia(Arc::new(Talk {
            endpoint,
            link: Mutex::default(),
            turns: AtomicU64::new(1),
        }))
    }
}

/// How far an utterance is.
enum Stage {
    Unasked(Utterance),
    Speaking(Context),
}

impl Synthesizer for Cartesia {
    fn name(&self) -> &'static str {
        "cartesia"
    }

    fn speak(&self, asked: Utterance) -> SpeechStream {
        let talk = self.0.clone();
        let sounds = stream::try_unfold(Stage::Unasked(asked), move |stage| next(talk.clone(), stage));
        SpeechStream::new(super::RATE, sounds)
    }

    fn warm(&self) -> BoxFuture<'_, ()> {
        async {
            // The first words will tell.
            let by = Instant::now() + self.0.endpoint.limits.first_byte;
            let _ = timeout_at(by, self.0.link()).await;
        }
        .boxed()
    }
}

async fn next(talk: Arc<Talk>, stage: Stage) -> Result<Option<(Vec<i16>, Stage)>, SpeechError> {
    let (piece, context) = match stage {
        Stage::Unasked(asked) => talk.begin(&asked).await?,
        Stage::Speaking(mut context) => (context.next().await?, context),
    };
    Ok(piece.map(|piece| (piece, Stage::Speaking(context))))
}

impl Talk {
    /// Asks, and waits for the first sound.
    async fn begin(&self, asked: &Utterance) -> Result<(Option<Vec<i16>>, Context), SpeechError> {
        let by = Instant::now() + self.endpoint.limits.first_byte;
        let first = async {
            let (link, is_fresh) = self.link().await?;
            match self.ask(&link, asked).await {
                // The socket was closed while nobody spoke: that is no failure of these words.
                Err(SpeechError::Closed) if !is_fresh => self.ask(&self.link().await?.0, asked).await,
                outcome => outcome,
            }
        };
        timeout_at(by, first).await.unwrap_or(Err(SpeechError::Timeout))
    }

    async fn ask(&self, link: &Link, asked: &Utterance) -> Result<(Option<Vec<i16>>, Context), SpeechError> {
        let name = format!("turn-{}", self.turns.fetch_add(1, Ordering::Relaxed));
        let message = self.endpoint.message(asked, &name);
        let mut context = link.speak(name, message, self.endpoint.limits)?;
        Ok((context.next().await?, context))
    }

    /// The talk's socket; `true`: it was just opened.
    async fn link(&self) -> Result<(Link, bool), SpeechError> {
        let mut kept = self.link.lock().await;
        if let Some(link) = kept.as_ref().filter(|link| link.is_open()) {
            return Ok((link.clone(), false));
        }
        let link = Link::over(self.endpoint.connect().await?);
        *kept = Some(link.clone());
        Ok((link, true))
    }
}

impl Endpoint {
    /// All of a context's text at once: each is spoken as soon as it is asked for.
    fn message(&self, asked: &Utterance, context: &str) -> Value {
        let mut message = json!({
            "model_id": *self.model,
            "transcript": asked.text,
            "voice": { "mode": "id", "id": asked.voice },
            "context_id": context,
            "continue": false,
            "output_format": { "container": "raw", "encoding": "pcm_s16le", "sample_rate": super::RATE },
        });
        if let Some(language) = primary(&asked.language) {
            message["language"] = language.into();
        }
        message
    }
}
