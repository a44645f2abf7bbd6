//! The voice of this machine: a speech program, or tones where there is none. Needs no provider, and always speaks.
use super::{SpeechStream, Synthesizer, Utterance};
use crate::recording::voice::{Speaker, Voice};
use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, ready},
    stream,
};
use rules::voice_clone::machine::ALWAYS_THERE;

#[derive(Debug)]
pub struct Local(pub Voice);

impl Synthesizer for Local {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// `voice`: the id of a built-in one; any other is the service's own, for the language.
    fn speak(&self, asked: Utterance) -> SpeechStream {
        let voice = match asked.voice.as_str() {
            ALWAYS_THERE => Voice::tones(),
            _ => self.0.clone(),
        };
        let (language, who) = meant(&asked.voice);
        let language = language.map_or(asked.language, str::to_owned);
        let rate = voice.rate();
        let sound = async move { voice.speak_live(&asked.text, &language, who).await };
        let sounds = stream::once(sound).filter(|sound| ready(!sound.is_empty()));
        SpeechStream::new(rate, sounds.map(Ok))
    }

    fn warm(&self, _: &str, _: &str) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

/// The language of a built-in voice that has one, and which of the program's two voices it is.
fn meant(id: &str) -> (Option<&str>, Speaker) {
    match id.strip_prefix("builtin:espeak-ng-") {
        Some(language) => (Some(language), Speaker::Agent),
        None if id == "builtin:flite-rms" => (None, Speaker::User),
        None => (None, Speaker::Agent),
    }
}
