//! A speech server that the operator has configured: which protocol it speaks, and which voices it has.
use super::{
    LIMITS, Synthesizer,
    cartesia::{Cartesia, Endpoint},
    elevenlabs::{self, Elevenlabs},
    openai::Openai,
    piper::Piper,
};
use crate::provider_http::ApiKey;
use std::sync::Arc;

/// Which protocol a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Openai,
    Elevenlabs,
    Cartesia,
    Piper,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Openai, Kind::Elevenlabs, Kind::Cartesia, Kind::Piper];

    /// The name that settings and lists have for it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Openai => "openai",
            Kind::Elevenlabs => "elevenlabs",
            Kind::Cartesia => "cartesia",
            Kind::Piper => "piper",
        }
    }

    /// Where its maker offers it, or where it usually listens.
    fn usual_url(self) -> &'static str {
        match self {
            Kind::Openai => "https://api.openai.com/v1",
            Kind::Elevenlabs => "https://api.elevenlabs.io",
            Kind::Cartesia => "wss://api.cartesia.ai",
            Kind::Piper => "http://127.0.0.1:5000",
        }
    }

    /// The fastest of its maker's.
    fn usual_model(self) -> &'static str {
        match self {
            Kind::Openai => "gpt-4o-mini-tts",
            Kind::Elevenlabs => "eleven_flash_v2_5",
            Kind::Cartesia => "sonic-3.5",
            // Its voices are its models.
            Kind::Piper => "",
        }
    }

    /// Names that always exist there: of the others each account has its own.
    fn usual_voices(self) -> &'static [&'static str] {
        match self {
            Kind::Openai => &[
                "alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse",
            ],
            Kind::Elevenlabs | Kind::Cartesia => &[],
            // The one that it was started with.
            Kind::Piper => &["piper="],
        }
    }
}

/// A voice of a provider's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedVoice {
    /// The `voice_id` here.
    pub id: String,
    /// What the provider calls it.
    pub at_provider: String,
}

impl HostedVoice {
    /// From `name`, or from `name=what-the-provider-calls-it`.
    pub fn parse(text: &str) -> Self {
        let (id, at_provider) = text.split_once('=').unwrap_or((text, text));
        HostedVoice {
            id: id.trim().to_owned(),
            at_provider: at_provider.trim().to_owned(),
        }
    }
}

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Provider {
    kind: Kind,
    adapter: Adapter,
    voices: Arc<[HostedVoice]>,
    model: Arc<str>,
    marks: bool,
}

#[derive(Clone, Debug)]
enum Adapter {
    Openai(Arc<Openai>),
    Elevenlabs(Arc<elevenlabs::Endpoint>),
    Cartesia(Endpoint),
    Piper(Arc<Piper>),
}

impl Provider {
    /// An empty `url` or `model` is the usual one. Has the usual voices. Fails, in words for an operator, on what cannot be used.
    pub fn new(kind: Kind, url: &str, api_key: Option<&str>, model: &str) -> Result<Self, String> {
        let or = |given: &str, usual: &'static str| match given.trim() {
            "" => usual.to_owned(),
            given => given.to_owned(),
        };
        let (url, model) = (or(url, kind.usual_url()), or(model, kind.usual_model()));
        let key = ApiKey::of(api_key)?;
        let adapter = match kind {
            Kind::Openai => Adapter::Openai(Arc::new(Openai::new(&url, key, &model, LIMITS)?)),
            Kind::Elevenlabs => Adapter::Elevenlabs(Arc::new(elevenlabs::Endpoint::new(&url, key, &model, LIMITS)?)),
            Kind::Cartesia => Adapter::Cartesia(Endpoint::new(&url, key, &model, LIMITS)?),
            Kind::Piper => Adapter::Piper(Arc::new(Piper::new(&url, key, LIMITS)?)),
        };
        let voices = kind.usual_voices().iter().map(|voice| HostedVoice::parse(voice));
        Ok(Provider {
            kind,
            adapter,
            voices: voices.collect(),
            model: model.into(),
            marks: false,
        })
    }

    /// The operator says that it puts a watermark into its sound.
    pub fn that_marks(self, marks: bool) -> Self {
        Provider { marks, ..self }
    }

    /// These instead of the usual ones; the first is spoken with where none is chosen.
    pub fn with_voices(self, voices: Vec<HostedVoice>) -> Self {
        Provider {
            voices: voices.into(),
            ..self
        }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// None: its voices are its models.
    pub fn model(&self) -> Option<&str> {
        Some(&*self.model).filter(|model| !model.is_empty())
    }

    /// Does it put a watermark into its sound? What the operator says: nobody can hear it.
    pub fn says_it_marks(&self) -> bool {
        self.marks
    }

    pub fn voices(&self) -> &[HostedVoice] {
        &self.voices
    }

    pub fn voice(&self, id: &str) -> Option<&HostedVoice> {
        self.voices.iter().find(|voice| voice.id == id)
    }

    /// For one talk.
    pub(super) fn synthesizer(&self) -> Arc<dyn Synthesizer> {
        match &self.adapter {
            Adapter::Openai(openai) => openai.clone(),
            Adapter::Elevenlabs(endpoint) => Arc::new(Elevenlabs::new(endpoint.clone())),
            Adapter::Cartesia(endpoint) => Arc::new(Cartesia::new(endpoint.clone())),
            Adapter::Piper(piper) => piper.clone(),
        }
    }
}
