//! What decides an agent's words. One trait; an implementation per kind of brain.
//!
//! A brain is not trusted: what it wants is an [`Act`], and the talk checks each before it does it.
pub mod chat;
pub mod realtime;
mod scripted;

use rules::conversation::tools::Tool;
pub use scripted::Scripted;

use crate::{sound::Pcm, transcription};
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

/// What reaches the mind.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// The other side has picked up; the agent speaks first.
    Opening,
    /// It said this.
    Words(Speech),
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

/// One thing that the mind wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Say it. A sentence or a few: they come as soon as they are known.
    Say {
        text: String,
        /// Its sound, if the brain speaks by itself.
        audio: Option<Pcm>,
    },
    /// Call a tool. Name and arguments are whatever the model wrote: nothing is checked yet.
    Call {
        id: String,
        name: String,
        /// JSON, or what the model takes for it.
        arguments: String,
    },
}

/// Why a brain has nothing to say.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The provider did not answer, or not in its protocol.
    #[error("the provider failed: {0}")]
    Provider(String),
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
    fn think(&mut self, heard: Heard) -> BoxStream<'_, Result<Act, Failure>>;
    /// The other side cut in: of the last words only `said` was heard, for `played_ms` of sound.
    fn interrupted<'a>(&'a mut self, said: &'a str, played_ms: u64) -> BoxFuture<'a, ()>;
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
                Box::new(realtime::Realtime::new(provider.clone(), settings, briefing))
            }
            (agent::Brain::Scripted { replies }, _, _) => Box::new(Scripted::new(briefing, replies, variables)),
            (agent::Brain::Chat { .. }, None, _) | (agent::Brain::Realtime { .. }, _, None) => {
                Box::new(Scripted::new(briefing, &[], variables))
            }
        }
    }
}
