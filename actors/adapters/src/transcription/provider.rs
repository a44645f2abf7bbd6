//! A provider of transcriptions that the operator has configured: which protocol it speaks, and where.
use super::{
    Ask, Hear, INPUTS, Patience, Transcribed, Transcript,
    batch::{self, Batch},
    fallback::{self, Terms},
    hosted::{Hosted, Protocol},
    session,
};
use crate::provider_http::{ApiKey, Limits};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// Which protocol a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `POST /audio/transcriptions`, a turn at a time.
    Openai,
    OpenaiRealtime,
    Deepgram,
    DeepgramFlux,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Openai, Kind::OpenaiRealtime, Kind::Deepgram, Kind::DeepgramFlux];

    /// The name that settings and metrics have for it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Openai => "openai",
            Kind::OpenaiRealtime => "openai_realtime",
            Kind::Deepgram => "deepgram",
            Kind::DeepgramFlux => "deepgram_flux",
        }
    }

    /// Where its maker offers it.
    fn usual_url(self) -> &'static str {
        match self {
            Kind::Openai => "https://api.openai.com/v1",
            Kind::OpenaiRealtime => "wss://api.openai.com/v1/realtime",
            Kind::Deepgram | Kind::DeepgramFlux => "wss://api.deepgram.com",
        }
    }

    /// Of its maker's; empty: it depends on the language.
    fn usual_model(self) -> &'static str {
        match self {
            Kind::Openai => "whisper-1",
            Kind::OpenaiRealtime => "gpt-live-transcribe",
            Kind::Deepgram => "nova-3",
            Kind::DeepgramFlux => "",
        }
    }

    fn patience(self) -> Patience {
        match self {
            Kind::Openai | Kind::OpenaiRealtime | Kind::Deepgram => Patience::default(),
            // It says itself when all is known.
            Kind::DeepgramFlux => Patience {
                rest: Duration::from_millis(500),
                little: 8_000,
                ..Patience::default()
            },
        }
    }
}

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Provider {
    kind: Kind,
    adapter: Adapter,
    /// For the words of an utterance.
    answer: Duration,
    /// Who is asked where it does not understand.
    fallback: Option<Arc<Provider>>,
}

#[derive(Clone, Debug)]
enum Adapter {
    Batch(Arc<Batch>),
    Hosted(Arc<Hosted>),
}

impl Provider {
    /// An empty `url` or `model` is the usual one. Fails, in words for an operator, on what cannot be used.
    pub fn new(kind: Kind, url: &str, api_key: Option<&str>, model: &str) -> Result<Self, String> {
        Self::with_patience(kind, url, api_key, model, kind.patience())
    }

    pub(super) fn with_patience(
        kind: Kind,
        url: &str,
        api_key: Option<&str>,
        model: &str,
        patience: Patience,
    ) -> Result<Self, String> {
        let or = |given: &str, usual: &'static str| match given.trim() {
            "" => usual.to_owned(),
            given => given.to_owned(),
        };
        let (url, model) = (or(url, kind.usual_url()), or(model, kind.usual_model()));
        let key = ApiKey::of(api_key)?;
        let limits = Limits {
            first_byte: patience.answer,
            silence: patience.answer,
            whole: patience.answer,
        };
        let hosted = |protocol, key| {
            let hosted = Hosted::new(protocol, &url, key, &model, patience);
            hosted.map(|hosted| Adapter::Hosted(Arc::new(hosted)))
        };
        let adapter = match kind {
            Kind::Openai => Adapter::Batch(Arc::new(Batch::new(&url, key, &model, limits)?)),
            Kind::OpenaiRealtime => hosted(Protocol::Realtime, key)?,
            Kind::Deepgram => hosted(Protocol::Deepgram, key)?,
            Kind::DeepgramFlux => hosted(Protocol::Flux, key)?,
        };
        Ok(Provider {
            kind,
            adapter,
            answer: patience.answer,
            fallback: None,
        })
    }

    /// Where it does not understand, that one is asked, which gets half as much time again; it has no fallback of its own.
    pub fn with_fallback(self, fallback: Provider) -> Self {
        Provider {
            fallback: Some(Arc::new(fallback)),
            ..self
        }
    }

    /// For metrics and timeline.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Does it say when a turn is over?
    pub fn detects_turns(&self) -> bool {
        self.kind == Kind::DeepgramFlux
    }

    /// For one talk. At once: it connects behind, and waits for what is heard.
    pub fn open(&self, ask: Ask) -> Transcript {
        let first = self.open_alone(&ask);
        let Some(fallback) = self.fallback.clone() else {
            return first;
        };
        let second = Box::new(move || fallback.open_alone(&ask));
        let terms = Terms {
            detects_turns: self.detects_turns(),
            within: self.answer + self.answer / 2,
        };
        self.transcript(|heard, understood| fallback::start(first, second, terms, heard, understood))
    }

    fn open_alone(&self, ask: &Ask) -> Transcript {
        self.transcript(|heard, understood| match &self.adapter {
            Adapter::Batch(batch) => batch::start(batch.clone(), ask, heard, understood),
            Adapter::Hosted(hosted) => session::start(hosted.wire(ask), hosted.patience, heard, understood),
        })
    }

    fn transcript(&self, start: impl FnOnce(mpsc::Receiver<Hear>, mpsc::Sender<Transcribed>)) -> Transcript {
        let (input, heard) = mpsc::channel(INPUTS);
        // One only: of what waits behind it, the newest counts.
        let (understood, events) = mpsc::channel(1);
        start(heard, understood);
        let provider = self.name();
        Transcript {
            provider,
            input,
            events,
        }
    }
}
