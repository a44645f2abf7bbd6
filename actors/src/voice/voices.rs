//! The sound of an agent's words on a line: by the voice that was chosen, or by whoever speaks where that one does not.
//!
//! A provider that gives no sound is waited for as long as a person would wait: then this machine's voice asks for a moment, and
//! then somebody else says the words. A provider that has failed is not asked again in this talk. While others are still heard,
//! words that are being made keep nobody waiting: a moment is asked for only when nothing is heard any more.
mod words;

use super::speech_input::Tell;
use crate::conversation::{
    latency::Stopwatch,
    moments::Moments,
    transport::{Due, Voice},
};
use adapters::{
    sound::{PcmStream, Sound, TELEPHONE},
    speech::{Cast, InTurn, Tongue, Turn},
};
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use rules::conversation::stock_phrases;
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
};
use tokio::time::timeout;
use words::{Common, Words, whole};

/// Who speaks in a talk. Cloning is cheap: clones share who has failed.
#[derive(Clone)]
pub struct Voices {
    cast: Cast,
    /// BCP 47.
    language: Arc<str>,
    common: Common,
    stopwatch: Stopwatch,
}

impl Voices {
    pub fn new(cast: Cast, language: &str, tell: Tell) -> Self {
        Voices {
            cast,
            language: language.into(),
            common: Common::new(tell),
            stopwatch: Stopwatch::default(),
        }
    }

    #[cfg(test)]
    fn with_patience(mut self, patience: words::Patience) -> Self {
        self.common.patience = patience;
        self
    }

    /// Who is asked to say the next words.
    pub fn name(&self) -> &'static str {
        match self.hosted().front() {
            Some((_, current)) => current.name(),
            None => self.cast.local.name(),
        }
    }

    /// How soon its words are heard is measured by that.
    pub fn timed_by(self, stopwatch: Stopwatch) -> Self {
        Voices { stopwatch, ..self }
    }

    /// A moment is asked for no sooner than this allows; without it, whenever words are late.
    pub fn in_step_with(mut self, moments: Moments) -> Self {
        self.common.moments = moments;
        self
    }

    /// Opens what the first words need.
    pub async fn warm(&self) {
        // That it failed is seen with the first words.
        let _ = timeout(self.common.patience.next, self.cast.first.warm()).await;
    }

    /// Providers who have not failed yet, each with its place in the cast.
    fn hosted(&self) -> VecDeque<(usize, Tongue)> {
        let Cast { first, second, local } = &self.cast;
        let hosted = [Some(first), second.as_ref()].into_iter().flatten();
        let hosted = hosted.filter(|tongue| tongue.name() != local.name()).cloned();
        let failed = self.common.failed.load(Ordering::Relaxed);
        hosted.enumerate().skip(failed).collect()
    }

    /// The sound of some words: whole where this machine makes it, else as it comes. `must_be_heard`: they are said to their end,
    /// if need be once more. `due`: see [`Voice::speak`].
    pub async fn sound_of(&self, text: &str, must_be_heard: bool, due: Option<Due>) -> Sound {
        self.sound_in(InTurn::default(), text, must_be_heard, due).await
    }

    async fn sound_in(&self, turn: InTurn, text: &str, must_be_heard: bool, due: Option<Due>) -> Sound {
        let local = &self.cast.local;
        let mut hosted = self.hosted();
        let Some((place, current)) = hosted.pop_front() else {
            return match timeout(self.common.patience.end, whole(local.speak(text))).await {
                Ok(sound) => Sound::Whole(sound),
                Err(_) => Sound::Stream(nothing()),
            };
        };
        hosted.push_back((place + hosted.len() + 1, local.clone()));
        // Tones ask for nothing.
        let filler = (local.name() != TONES).then(|| (local.clone(), stock_phrases::of(&self.language).still_working));
        let words = Words::of((text, turn), (place, &current), hosted, due, &self.common)
            .must_be_heard(must_be_heard)
            .filled_by(filler);
        Sound::Stream(words.stream())
    }
}

impl Voice for Voices {
    fn is_streamed(&self) -> bool {
        !self.hosted().is_empty()
    }

    fn speak(&self, text: String, whole: bool, due: Option<Due>) -> BoxFuture<'static, Sound> {
        let voices = self.clone();
        voices.stopwatch.voice(voices.name());
        async move { voices.sound_of(&text, whole, due).await }.boxed()
    }

    fn speak_in(&self, turn: &Turn, text: String, due: Due) -> BoxFuture<'static, Sound> {
        let (voices, turn) = (self.clone(), turn.piece());
        voices.stopwatch.voice(voices.name());
        async move { voices.sound_in(turn, &text, false, Some(due)).await }.boxed()
    }
}

/// What a machine without a speech program has.
const TONES: &str = "tones";

/// Of words that nobody says.
fn nothing() -> PcmStream {
    let nothing = PcmStream::new(TELEPHONE, stream::empty().boxed());
    nothing.broke_off.store(true, Ordering::Relaxed);
    nothing
}

#[cfg(test)]
#[path = "voices_tests.rs"]
mod tests;
