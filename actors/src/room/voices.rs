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
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout, timeout_at};

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

    /// Who is asked to say the next words.
    pub fn name(&self) -> &'static str {
        let Cast { first, second, local } = &self.cast;
        let hosted = [Some(first), second.as_ref()].into_iter().flatten();
        let mut hosted = hosted.filter(|tongue| tongue.name() != local.name());
        hosted.nth(self.failed.load(Ordering::Relaxed)).unwrap_or(local).name()
    }

    /// Opens what the first words need.
    pub async fn warm(&self) {
        // That it failed is seen with the first words.
        let _ = timeout(self.patience.next, self.cast.first.warm()).await;
    }

    /// The sound of some words: whole where this machine makes it, else as it comes. `must_be_heard`: they are said to their end,
    /// if need be once more.
    pub async fn speak(&self, text: &str, must_be_heard: bool) -> Sound {
        let Cast { first, second, local } = &self.cast;
        let hosted = [Some(first), second.as_ref()].into_iter().flatten();
        let hosted = hosted.filter(|tongue| tongue.name() != local.name());
        let mut hosted: VecDeque<Tongue> = hosted.skip(self.failed.load(Ordering::Relaxed)).cloned().collect();
        let Some(current) = hosted.pop_front() else {
            return Sound::Whole(whole(local.speak(text)).await);
        };
        hosted.push_back(local.clone());
        let sound = current.speak(text);
        let (rate, lead) = (sound.rate, Arc::<AtomicU64>::default());
        let words = Words {
            text: text.to_owned(),
            rate,
            must_be_heard,
            since: Instant::now(),
            patience: self.patience,
            // Tones ask for nothing.
            filler: (local.name() != TONES).then(|| (local.clone(), stock_phrases::of(&self.language).still_working)),
            lead: lead.clone(),
            name: current.name(),
            sound,
            resampler: None,
            rest: hosted,
            heard: 0,
            tell: self.tell.clone(),
            failed: self.failed.clone(),
        };
        let chunks = stream::unfold(words, |mut words| async move { Some((words.next().await?, words)) });
        Sound::Stream(PcmStream {
            rate,
            chunks: chunks.boxed(),
            lead,
        })
    }
}

/// What a machine without a speech program has.
const TONES: &str = "tones";

/// This machine's voice must be ready to ask for a moment within that, else nobody does.
const FILLER_WITHIN: Duration = Duration::from_millis(700);

async fn whole(mut sound: SpeechStream) -> Pcm {
    let (rate, mut samples) = (sound.rate, Vec::new());
    // This machine's voice does not fail.
    while let Some(Ok(piece)) = sound.next().await {
        samples.extend(piece);
    }
    Pcm::new(rate, samples)
}

/// Some words on their way.
struct Words {
    text: String,
    /// What was promised, whoever speaks.
    rate: u32,
    must_be_heard: bool,
    since: Instant,
    patience: Patience,
    filler: Option<(Tongue, &'static str)>,
    /// Samples that are none of the words.
    lead: Arc<AtomicU64>,
    /// Who speaks.
    name: &'static str,
    sound: SpeechStream,
    /// None where the sound has the promised rate.
    resampler: Option<Resampler>,
    rest: VecDeque<Tongue>,
    /// Samples of the words, by whoever speaks now.
    heard: u64,
    tell: Tell,
    failed: Arc<AtomicUsize>,
}

type Piece = Option<Result<Vec<i16>, SpeechError>>;

impl Words {
    async fn next(&mut self) -> Option<Vec<i16>> {
        loop {
            let piece = match self.heard {
                0 => match self.first().await? {
                    First::Sound(piece) => piece,
                    First::Filler(samples) => return Some(samples),
                },
                _ => self.sound.next().await,
            };
            match piece? {
                Ok(piece) => {
                    self.heard += piece.len() as u64;
                    return Some(self.fit(piece));
                }
                Err(error) => self.take_over(error)?,
            }
        }
    }

    /// The first of the words, or a request for a moment. None: nobody says them.
    async fn first(&mut self) -> Option<First> {
        loop {
            let patience = match &self.filler {
                Some(_) => self.patience.filler,
                // This machine's voice takes the time that it takes.
                None if self.rest.is_empty() => return Some(First::Sound(self.sound.next().await)),
                None => self.patience.next,
            };
            if let Ok(piece) = timeout_at(self.since + patience, self.sound.next()).await {
                return Some(First::Sound(piece));
            }
            let Some((local, words)) = self.filler.take() else {
                self.give_over(SpeechError::Timeout)?;
                continue;
            };
            tokio::select! {
                biased;
                piece = self.sound.next() => return Some(First::Sound(piece)),
                filler = timeout(FILLER_WITHIN, whole(local.speak(words))) => if let Ok(filler) = filler {
                    let filler = filler.at(self.rate);
                    self.lead.fetch_add(filler.samples.len() as u64, Ordering::Relaxed);
                    return Some(First::Filler(filler.samples.to_vec()));
                }
            }
        }
    }

    /// After a failure: the next one says the words if hardly any of them were heard, or if they must be. Otherwise what was heard
    /// was heard.
    fn take_over(&mut self, error: SpeechError) -> Option<()> {
        if self.must_be_heard || self.heard < u64::from(self.sound.rate) {
            return self.give_over(error);
        }
        self.report(error);
        None
    }

    /// The next one says the words. None: there is nobody left.
    fn give_over(&mut self, error: SpeechError) -> Option<()> {
        self.report(error);
        let next = self.rest.pop_front()?;
        self.name = next.name();
        self.sound = next.speak(&self.text);
        self.since = Instant::now();
        self.heard = 0;
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
        tracing::warn!(provider, %error, "a speech provider failed");
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

enum First {
    Sound(Piece),
    Filler(Vec<i16>),
}

#[cfg(test)]
#[path = "voices_tests.rs"]
mod tests;
