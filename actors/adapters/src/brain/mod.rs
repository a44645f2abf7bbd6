//! What decides an agent's words. One trait; an implementation per kind of brain.
//!
//! A brain is not trusted: what it wants is an [`Act`], and the talk checks each before it does it.
pub mod chat;
pub mod realtime;
mod scripted;

use rules::conversation::tools::Tool;
pub use scripted::Scripted;

use crate::{
    sound::{Pcm, PcmStream},
    transcription,
};
use entities::{
    Error, Result,
    agent::{self, Definition},
    values::{Env, Variables},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, ready},
    stream::BoxStream,
};
use std::{fmt, sync::Arc};
use tokio::sync::{mpsc, watch};

/// What reaches the mind.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// The other side has picked up; the agent speaks first.
    Opening,
    /// It said this.
    Words(Speech),
    /// It asked this, and the service has answered it in the brain's place: the brain goes on, and does not answer it again.
    Answered { speech: Speech, answer: String },
    /// What became of everything that it called in its last turn, in that order.
    Results(Vec<ToolResult>),
}

/// Something that was said by the other side.
#[derive(Clone, Debug, PartialEq)]
pub struct Speech {
    pub text: String,
    /// Its sound, where there is one.
    pub audio: Option<Pcm>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id that the brain gave the call.
    pub call_id: String,
    /// JSON. Data, never instructions.
    pub output: String,
}

/// Sound of the other side while it is spoken, for brains that hear by themselves.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveSound {
    /// The next of it; the first is what began the utterance. 16 kHz mono, 16 to 100 ms.
    Piece(Pcm),
    /// It is over: `Heard::Words` of it follows, and its sound is all that came since the last of these. The pause at the end may
    /// be missing there.
    End,
    /// It was not speech, or nobody answers it.
    Discard,
}

/// Of the way to a brain that hears by itself so much is kept free for the ends of what it hears: a `Piece` that leaves less is not
/// put there.
pub const LIVE_KEPT_FREE: usize = 4;

/// What a brain that hears by itself has understood of something that was said: one for each [`Heard::Words`] with sound, in their
/// order, 10 s later at most. Of what was retracted there may be none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnWords {
    /// Empty: there is no word in it, or it was not understood.
    pub words: String,
}

/// What a mind that reads is told of something that was answered for it, after its words.
fn answered_note(answer: &str) -> String {
    format!("[you have just answered this: \"{answer}\" Do not answer it again; go on]")
}

/// One thing that the mind wants.
#[derive(Debug)]
pub enum Act {
    /// Say it. A clause, a sentence or a few: they come as soon as they are known.
    Say {
        text: String,
        /// Its sound, if the brain speaks by itself.
        audio: Option<Pcm>,
    },
    /// Say it as it comes, of a brain that speaks by itself. The acts must be polled on for more of it to come.
    Speak {
        sound: PcmStream,
        /// All its words so far; they may come later than their sound. Its sender is dropped when no more come.
        words: watch::Receiver<String>,
    },
    /// Call a tool. Name and arguments are whatever the model wrote: nothing is checked yet.
    Call {
        id: String,
        name: String,
        /// JSON, or what the model takes for it.
        arguments: String,
    },
}

impl PartialEq for Act {
    /// Sound that is still being made is the same as itself only.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Act::Say { text, audio },
                Act::Say {
                    text: words,
                    audio: sound,
                },
            ) => (text, audio) == (words, sound),
            (Act::Speak { words, .. }, Act::Speak { words: others, .. }) => words.same_channel(others),
            (
                Act::Call { id, name, arguments },
                Act::Call {
                    id: other_id,
                    name: other_name,
                    arguments: others,
                },
            ) => (id, name, arguments) == (other_id, other_name, others),
            (Act::Say { .. } | Act::Speak { .. } | Act::Call { .. }, _) => false,
        }
    }
}

/// Why a brain has nothing to say.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The provider did not answer, or not in its protocol.
    #[error("the provider failed: {0}")]
    Provider(String),
}

/// Who is told that the first of an answer has come.
#[derive(Clone)]
pub struct FirstToken(Arc<dyn Fn() + Send + Sync>);

impl FirstToken {
    pub fn new(tell: impl Fn() + Send + Sync + 'static) -> Self {
        FirstToken(Arc::new(tell))
    }

    pub fn came(&self) {
        (self.0)();
    }
}

impl fmt::Debug for FirstToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FirstToken")
    }
}

/// What a mind is told before the talk.
#[derive(Clone, Debug, PartialEq)]
pub struct Briefing {
    /// The system prompt.
    pub instructions: String,
    /// What it says first, word for word; `None`: it finds its own words.
    pub first_message: Option<String>,
    pub tools: Vec<Tool>,
    /// BCP 47.
    pub language: String,
    /// The provider's voice, for those that speak.
    pub voice: Option<String>,
}

/// The mind of one call. The stream ends when it has nothing more to say to what it heard; then the talk listens again,
/// or gives it the results of its calls. Dropping the stream early means that it was interrupted.
pub trait Brain: Send {
    /// Can it think? For those who must know before the first word. One that has not been asked is reached when it thinks.
    fn reach(&mut self) -> BoxFuture<'_, Result<(), Failure>> {
        ready(Ok(())).boxed()
    }
    /// Does it understand sound by itself? Then it need not wait until others know the words.
    fn hears(&self) -> bool {
        false
    }
    /// Where sound goes while it is spoken; `None`: it comes whole with `Heard::Words`. Whoever finds no room there goes on without
    /// waiting: what is not whole is taken from `Heard::Words`.
    fn live_sound(&mut self) -> Option<mpsc::Sender<LiveSound>> {
        None
    }
    /// What it understands of what is said to it, where it tells that beside its answers. Asked for once, before the first words.
    fn own_words(&mut self) -> Option<mpsc::Receiver<OwnWords>> {
        None
    }
    /// Calls it when the first of an answer has come from its model; of whoever does not call it, the first act is that.
    fn on_first_token(&mut self, _tell: FirstToken) {}
    fn think(&mut self, heard: Heard) -> BoxStream<'_, Result<Act, Failure>>;
    /// Of the last words only `said` was heard, for `played_ms` of sound: the other side cut in, or the voice broke off.
    fn interrupted<'a>(&'a mut self, said: &'a str, played_ms: u64) -> BoxFuture<'a, ()>;
    /// Of the last answer this was said: the service has put something else in the place of what is not true.
    fn corrected<'a>(&'a mut self, said: &'a str) -> BoxFuture<'a, ()> {
        self.interrupted(said, u64::MAX)
    }
    /// The service has said this in the brain's place, after its last words.
    fn spoken_for<'a>(&'a mut self, _words: &'a str) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }
    /// The last `Heard::Words` was not said to its end: as if it had never been given. Its answer was dropped before anything of it
    /// was heard.
    fn retract(&mut self) -> BoxFuture<'_, ()>;
}

/// Where minds, ears and voices come from: what the operator has configured.
#[derive(Clone, Debug, Default)]
pub struct Providers {
    pub chat: Option<chat::Provider>,
    pub realtime: Option<realtime::Provider>,
    /// Who understands speech where only its sound is known; without one it is `[speech]`.
    pub transcription: Option<transcription::Provider>,
    /// Who is asked whether somebody wants no more calls, beside the phrases.
    pub opt_out: Option<chat::Provider>,
    /// Who speaks for minds that do not speak by themselves.
    pub speech: crate::speech::Speech,
}

impl Providers {
    /// May calls of that env be made with this agent? The sandbox always works: it falls back to prepared lines.
    pub fn check(&self, definition: &Definition, env: Env) -> Result<()> {
        let missing = match definition.brain {
            agent::Brain::Scripted { .. } => None,
            agent::Brain::Chat { .. } => self.chat.is_none().then_some("chat_url"),
            agent::Brain::Realtime { .. } => self.realtime.is_none().then_some("realtime_url"),
        };
        match (missing, env) {
            (Some(setting), Env::Live) => Err(Error::NotConfigured(format!(
                "no provider is configured for this agent's brain: the operator sets `{setting}`"
            ))),
            (None, Env::Live) | (_, Env::Test) => Ok(()),
        }
    }

    /// Which of them thinks for that agent, for metrics: one that is not there is replaced by prepared lines.
    pub fn brain_name(&self, definition: &Definition) -> &'static str {
        match (&definition.brain, &self.chat, &self.realtime) {
            (agent::Brain::Chat { .. }, Some(_), _) => "chat",
            (agent::Brain::Realtime { .. }, _, Some(_)) => "realtime",
            (agent::Brain::Scripted { .. } | agent::Brain::Chat { .. } | agent::Brain::Realtime { .. }, _, _) => {
                "scripted"
            }
        }
    }

    /// The brain that an agent's settings ask for. `wide`: more than a telephone's sound is carried, by those that speak.
    pub fn brain(
        &self,
        definition: &Definition,
        mut briefing: Briefing,
        variables: &Variables,
        wide: bool,
    ) -> Box<dyn Brain> {
        match (&definition.brain, &self.chat, &self.realtime) {
            (
                agent::Brain::Chat {
                    model,
                    temperature,
                    max_tokens,
                },
                Some(provider),
                _,
            ) => {
                let settings = chat::ChatSettings {
                    model: model.as_deref().map(str::to_owned),
                    temperature: temperature.map(|temperature| temperature.get()),
                    max_tokens: max_tokens.and_then(|max| u32::try_from(max.get()).ok()),
                };
                Box::new(chat::Chat::new(provider.clone(), settings, briefing))
            }
            (agent::Brain::Realtime { model }, _, Some(provider)) => {
                let settings = realtime::RealtimeSettings {
                    model: model.as_deref().map(str::to_owned),
                    pcm: wide,
                };
                // The speech provider's voices are not its own.
                briefing.voice = briefing.voice.filter(|voice| provider.voices().contains(voice));
                // Who writes down what is said is asked once.
                let provider = match self.transcription {
                    Some(_) => provider.clone().with_transcription(""),
                    None => provider.clone(),
                };
                Box::new(realtime::Realtime::new(provider, settings, briefing))
            }
            (agent::Brain::Scripted { replies }, _, _) => Box::new(Scripted::new(briefing, replies, variables)),
            (agent::Brain::Chat { .. }, None, _) | (agent::Brain::Realtime { .. }, _, None) => {
                Box::new(Scripted::new(briefing, &[], variables))
            }
        }
    }
}
