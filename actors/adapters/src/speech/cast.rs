//! Who speaks in a talk: the voice that was chosen, the one that takes over where it fails, and the one that needs nobody.
use super::{InTurn, Places, Provider, SpeechStream, Synthesizer, Utterance, local::Local, watermark};
use crate::recording::voice::{LONGEST_TEXT, Voice};
use futures_util::future::BoxFuture;
use rules::conversation::spoken::spoken;
use std::{fmt, sync::Arc};

/// What the operator has configured. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Speech {
    /// Whose voices are listed beside the built-in ones.
    pub provider: Option<Provider>,
    /// Who takes over.
    pub second: Option<Second>,
    /// Who speaks with the clones that it has made: ElevenLabs, or a server with its protocol.
    pub clones: Option<Provider>,
    pub local: Voice,
}

/// A provider, and what it calls the voice that it takes over with.
#[derive(Clone, Debug)]
pub struct Second {
    pub provider: Provider,
    pub voice: String,
}

/// Tones: what needs nothing of the operator, and nothing of the machine.
impl Default for Speech {
    fn default() -> Self {
        Speech {
            provider: None,
            second: None,
            clones: None,
            local: Voice::tones(),
        }
    }
}

/// The voices of one talk.
#[derive(Clone, Debug)]
pub struct Cast {
    pub first: Tongue,
    /// For when the first gives no sound. None where the operator has set none, and where the first is this machine's.
    pub second: Option<Tongue>,
    /// This machine's: for fillers, and when nobody else speaks.
    pub local: Tongue,
}

/// A voice, and who speaks with it in a language. Cheap to clone; clones share the connection.
#[derive(Clone)]
pub struct Tongue {
    synthesizer: Arc<dyn Synthesizer>,
    /// What the synthesizer calls it.
    voice: Arc<str>,
    language: Arc<str>,
}

impl Tongue {
    pub fn new(synthesizer: Arc<dyn Synthesizer>, voice: &str, language: &str) -> Self {
        Tongue {
            synthesizer,
            voice: voice.into(),
            language: language.into(),
        }
    }

    /// Who speaks, for timeline and metrics.
    pub fn name(&self) -> &'static str {
        self.synthesizer.name()
    }

    pub fn warm(&self) -> BoxFuture<'_, ()> {
        self.synthesizer.warm(&self.voice, &self.language)
    }

    /// Says it by itself, as far as it can be said: without markdown, emoji and addresses. Nobody is asked about a text without a
    /// word.
    pub fn speak(&self, text: &str) -> SpeechStream {
        self.speak_in(text, InTurn::default())
    }

    /// The same of a piece of a turn. Timings are those of the text as it is given here.
    pub fn speak_in(&self, shown: &str, turn: InTurn) -> SpeechStream {
        let text: String = spoken(shown).chars().take(LONGEST_TEXT).collect();
        if !text.chars().any(char::is_alphanumeric) {
            return SpeechStream::nothing();
        }
        watermark::put_into(self.synthesizer.speak(Utterance {
            places: Places::of(shown, &text),
            text,
            language: self.language.to_string(),
            voice: self.voice.to_string(),
            turn,
        }))
    }
}

impl fmt::Debug for Tongue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tongue { voice, language, .. } = self;
        write!(f, "Tongue({} {voice:?} {language:?})", self.name())
    }
}

impl Speech {
    /// Who speaks with this voice. `clone`: what the provider of clones calls it, if it is one. Where the voice is not there
    /// any more, or is another kind of provider's, it is the provider's first one; without a provider, this machine's.
    pub fn cast(&self, voice_id: &str, clone: Option<&str>, language: &str) -> Cast {
        let local = Tongue::new(Arc::new(Local(self.local.clone())), voice_id, language);
        let hosted = match (clone, &self.clones) {
            (Some(voice), Some(provider)) => Some(Tongue::new(provider.synthesizer(), voice, language)),
            _ if voice_id.starts_with("builtin:") => None,
            // A clone that only the sandbox has, or whose provider is gone, is spoken by the service's own voice.
            _ if uuid::Uuid::parse_str(voice_id).is_ok() => self.usual(language),
            _ => self.hosted(voice_id, language).or_else(|| self.usual(language)),
        };
        let second = hosted.as_ref().and(self.second.as_ref()).map(|second| {
            let Second { provider, voice } = second;
            Tongue::new(provider.synthesizer(), voice, language)
        });
        Cast {
            first: hosted.unwrap_or_else(|| local.clone()),
            second,
            local,
        }
    }

    /// The provider's voice of that id, if it has one. An empty language is whichever the text is in.
    pub fn hosted(&self, voice_id: &str, language: &str) -> Option<Tongue> {
        let provider = self.provider.as_ref()?;
        let voice = provider.voice(voice_id)?;
        Some(Tongue::new(provider.synthesizer(), &voice.at_provider, language))
    }

    /// The `voice_id` of calls that choose none, if a provider speaks in them.
    pub fn default_voice(&self) -> Option<&str> {
        let voice = self.provider.as_ref()?.voices().first()?;
        Some(&voice.id)
    }

    fn usual(&self, language: &str) -> Option<Tongue> {
        self.hosted(self.default_voice()?, language)
    }
}
