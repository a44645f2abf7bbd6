//! A mind behind an OpenAI-compatible `/v1/chat/completions`: it reads what was said, and writes what to say.
//!
//! Words go out sentence by sentence while the model still writes, the first as soon as it has a clause (`rules`: `pieces`); calls of tools when it is done (`calls`).
//! The history notes what the talk really took, so that an answer may be dropped at any point (`history`, `answer`).
mod answer;
mod calls;
mod history;
mod json;
mod protocol;
mod provider;

pub use json::complete_json;
pub use provider::{ApiKey, Limits, Patience, Provider, Refusal, read};

use super::{Act, Brain, Briefing, Failure, FirstToken, Heard, answered_note};
use answer::Answer;
use futures_util::{
    future::{BoxFuture, FutureExt, ready},
    stream::BoxStream,
};
use history::History;
use serde_json::Value;

/// Stands for the other side when the model is to find the first words: some servers want a user message.
const PICKED_UP: &str = "(The call was just answered. You speak first.)";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatSettings {
    /// Instead of the provider's.
    pub model: Option<String>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
}

#[derive(Debug)]
pub struct Chat {
    provider: Provider,
    settings: ChatSettings,
    history: History,
    /// As a request names them.
    tools: Vec<Value>,
    first_message: Option<String>,
    /// Ids that we had to invent for calls.
    invented: u64,
    first_token: Option<FirstToken>,
}

impl Chat {
    pub fn new(provider: Provider, settings: ChatSettings, briefing: Briefing) -> Self {
        Chat {
            provider,
            settings,
            history: History::new(briefing.instructions),
            tools: briefing.tools.iter().map(protocol::tool).collect(),
            first_message: briefing.first_message.filter(|words| !words.trim().is_empty()),
            invented: 0,
            first_token: None,
        }
    }
}

impl Brain for Chat {
    fn reach(&mut self) -> BoxFuture<'_, Result<(), Failure>> {
        self.provider.reach().boxed()
    }

    fn on_first_token(&mut self, tell: FirstToken) {
        self.first_token = Some(tell);
    }

    fn think(&mut self, heard: Heard) -> BoxStream<'_, Result<Act, Failure>> {
        match heard {
            Heard::Opening => match self.first_message.clone() {
                Some(words) => return Answer::fixed(self, words).stream(),
                None => self.history.heard(PICKED_UP),
            },
            Heard::Words(speech) => self.history.heard(&speech.text),
            Heard::Answered { speech, answer } => {
                let note = answered_note(&answer);
                self.history.heard(&format!("{}\n{note}", speech.text));
            }
            Heard::Results(results) => self.history.results(&results),
        }
        Answer::of(self).stream()
    }

    fn interrupted<'a>(&'a mut self, said: &'a str, _played_ms: u64) -> BoxFuture<'a, ()> {
        self.history.interrupted(said);
        ready(()).boxed()
    }

    fn corrected<'a>(&'a mut self, said: &'a str) -> BoxFuture<'a, ()> {
        self.history.corrected(said);
        ready(()).boxed()
    }

    fn spoken_for<'a>(&'a mut self, words: &'a str) -> BoxFuture<'a, ()> {
        self.history.spoken_for(words);
        ready(()).boxed()
    }

    fn retract(&mut self) -> BoxFuture<'_, ()> {
        self.history.retract();
        ready(()).boxed()
    }
}

#[cfg(test)]
pub mod tests;
