//! The sound of an agent's words in a room: by the voice that was chosen, or by whoever speaks where that one does not.
//!
//! A provider that gives no sound is waited for as long as a person would wait: then this machine's voice asks for a moment, and
//! then somebody else says the words. Whoever has failed is not asked again in this talk.
use super::speech_input::Tell;
use adapters::{
    sound::{Pcm, PcmStream, Resampler, Sound},
    speech::{Cast, SpeechError, SpeechStream, Tongue},
};
use futures_util::{StreamExt, stream};
use rules::{conversation::stock_phrases, session::command::Command};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// How long nothing may be heard of some words.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Before this machine's voice asks for a moment.
    pub filler: Duration,
    /// Before somebody else says them.
    pub next: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            filler: Duration::from_millis(1_500),
            next: Duration::from_secs(4),
        }
    }
}

/// Who speaks in a talk.
pub struct Voices {
    cast: Cast,
    /// BCP 47.
    language: String,
    patience: Patience,
    tell: Tell,
    /// So many of the cast, in its order, have failed.
    failed: Arc<AtomicUsize>,
}

impl Voices {
    pub fn new(cast: Cast, language: &str, tell: Tell) -> Self {
        Voices {
            cast,
            language: language.to_owned(),
            patience: Patience::default(),
            tell,
            failed: Arc::default(),
        }
    }

    #[cfg(test)]
    fn with_patience(self, patience: Patience) -> Self {
        Voices { patience, ..self }
    }

    /// Opens what the first words need.
    pub async fn warm(&self) {
        // That it failed is seen with the first words.
        let _ = tokio::time::timeout(self.patience.next, self.cast.first.warm()).await;
    }

    /// The sound of some words: whole where this machine makes it, else as it comes.
    pub async fn speak(&self, text: &str) -> Sound {
        let Cast { first, second, local } = &self.cast;
        let hosted = [Some(first), second.as_ref()].into_iter().flatten();
        let hosted = hosted.filter(|tongue| tongue.name() != local.name());
        let mut hosted: Vec<Tongue> = hosted.skip(self.failed.load(Ordering::Relaxed)).cloned().collect();
        if hosted.is_empty() {
            return Sound::Whole(whole(local.speak(text)).await);
        }
        let current = hosted.remove(0);
        hosted.push(local.clone());
        let sound = current.speak(text);
        let rate = sound.rate;
        let words = Utterance {
            text: text.to_owned(),
            rate,
            since: Instant::now(),
            patience: self.patience,
            filler: Some((local.clone(), stock_phrases::of(&self.language).still_working)),
            name: current.name(),
            sound,
            resampler: None,
            rest: hosted.into_iter().collect(),
            is_heard: false,
            tell: self.tell.clone(),
            failed: self.failed.clone(),
        };
        let chunks = stream::unfold(words, |mut words| async move { Some((words.next().await?, words)) });
        Sound::Stream(PcmStream {
            rate,
            chunks: chunks.boxed(),
        })
    }
}

async fn whole(mut sound: SpeechStream) -> Pcm {
    let (rate, mut samples) = (sound.rate, Vec::new());
    // This machine's voice does not fail.
    while let Some(Ok(piece)) = sound.next().await {
        samples.extend(piece);
    }
    Pcm::new(rate, samples)
}

/// Some words on their way.
struct Utterance {
    text: String,
    /// What was promised, whoever speaks.
    rate: u32,
    since: Instant,
    patience: Patience,
    filler: Option<(Tongue, &'static str)>,
    /// Who speaks.
    name: &'static str,
    sound: SpeechStream,
    /// None where the sound has the promised rate.
    resampler: Option<Resampler>,
    rest: VecDeque<Tongue>,
    is_heard: bool,
    tell: Tell,
    failed: Arc<AtomicUsize>,
}

impl Utterance {
    async fn next(&mut self) -> Option<Vec<i16>> {
        loop {
            if self.is_heard {
                return self.go_on().await;
            }
            let patience = match &self.filler {
                Some(_) => self.patience.filler,
                None => self.patience.next,
            };
            match timeout_at(self.since + patience, self.sound.next()).await {
                Ok(Some(Ok(piece))) => {
                    self.is_heard = true;
                    return Some(self.fit(piece));
                }
                Ok(None) => return None,
                Ok(Some(Err(error))) => self.give_over(error)?,
                Err(_) => match self.filler.take() {
                    Some((local, words)) => {
                        let filler = whole(local.speak(words)).await.at(self.rate);
                        return Some(filler.samples.to_vec());
                    }
                    // This machine's voice takes the time that it takes.
                    None if self.rest.is_empty() => self.is_heard = true,
                    None => self.give_over(SpeechError::Timeout)?,
                },
            }
        }
    }

    async fn go_on(&mut self) -> Option<Vec<i16>> {
        match self.sound.next().await? {
            Ok(piece) => Some(self.fit(piece)),
            Err(error) => {
                // What was heard of it was heard: nobody says it again from the beginning.
                self.report(error);
                None
            }
        }
    }

    /// The next one says the words. None: there is nobody left.
    fn give_over(&mut self, error: SpeechError) -> Option<()> {
        self.report(error);
        let next = self.rest.pop_front()?;
        self.name = next.name();
        self.sound = next.speak(&self.text);
        self.since = Instant::now();
        self.resampler = match self.sound.rate == self.rate {
            true => None,
            // Of rates that are none nothing comes.
            false => Some(Resampler::new(self.sound.rate, self.rate).ok()?),
        };
        Some(())
    }

    fn report(&self, error: SpeechError) {
        // Behind this machine's voice, which is the last, there is nobody.
        if !self.rest.is_empty() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        let (provider, name) = (self.name, error.name());
        metrics::counter!("callboard_speech_failures_total", "provider" => provider, "error" => name).increment(1);
        tracing::warn!(provider, %error, "the speech provider failed: somebody else speaks");
        (self.tell)(Command::Note {
            kind: "voice_failed",
            detail: format!("{provider}: {error}"),
        });
    }

    fn fit(&mut self, piece: Vec<i16>) -> Vec<i16> {
        match &mut self.resampler {
            None => piece,
            Some(resampler) => resampler.resample(&piece),
        }
    }
}

#[cfg(test)]
#[path = "voices_tests.rs"]
mod tests;
