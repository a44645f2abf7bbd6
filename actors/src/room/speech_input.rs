//! What the participant does, noticed while the agent thinks and speaks: who has begun to speak, what was said then, and keys.
//!
//! Works beside the talk. That somebody begins to speak is known at once, for the agent falls silent then; the words come
//! when they are understood, in the order in which they were said. An agent that hears by itself need not wait for that: it
//! gets the sound as soon as it is over, and its words follow ([`LaterWords`]).
use adapters::{brain::Speech, sound::Pcm, transcription::Provider};
use entities::{boxed, values::Moment};
use futures_util::{
    future::{BoxFuture, FutureExt, Shared, ready},
    stream::{FuturesOrdered, FuturesUnordered, StreamExt},
};
use media::mic::MicEvent;
use rules::session::command::Command;
use runtime::clock::{Busy, Clock};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::{mpsc, watch};

/// The words of what was not understood.
pub const UNKNOWN: &str = "[speech]";

/// The longest utterance, the silence after it and the time for understanding it: so long a silence does not count.
const LONGEST_SECONDS: i64 = 45;
/// Utterances and keys that wait to be understood; more are not taken in meanwhile.
const WAITING: usize = 32;
/// Of these, keys only up to so many: they leave room for words.
const KEYS_WAITING: usize = 16;
/// Notices that nobody listens to yet; half of them may be keys.
const INPUTS: usize = 64;

/// How many utterances have begun in this talk, and how many of them are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speaking {
    pub begun: u64,
    pub over: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum UserInput {
    /// The utterance of that number, from 1; an empty text is a noise in which there was no word.
    Speech {
        number: u64,
        began: Moment,
        speech: Speech,
        /// `None`: they are there.
        later: Option<LaterWords>,
    },
    Dtmf(String),
}

/// What was understood of some sound: [`UNKNOWN`] if nothing was, empty if there is no word in it.
#[derive(Clone)]
pub struct Understood {
    pub words: String,
    /// Until somebody has taken them in.
    pub busy: Busy,
}

/// Words of something whose sound is there already.
#[derive(Clone, Debug)]
pub struct LaterWords(Shared<BoxFuture<'static, Understood>>);

impl PartialEq for LaterWords {
    /// The same ones; what they will be is not known yet.
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl LaterWords {
    /// As soon as they are understood, in seconds at most.
    #[boxed]
    pub async fn known(self) -> Understood {
        self.0.await
    }
}

/// What the talk's end of it has.
pub struct UserInputs {
    pub speaking: watch::Receiver<Speaking>,
    pub inputs: mpsc::Receiver<UserInput>,
    /// From now on sound need not wait for its words.
    pub sound_first: Arc<AtomicBool>,
}

/// Tells the session.
pub type Tell = Arc<dyn Fn(Command) + Send + Sync>;

pub struct SpeechInput {
    clock: Clock,
    transcription: Option<Provider>,
    /// BCP 47.
    language: Arc<str>,
    tell: Tell,
    heard: mpsc::Receiver<MicEvent>,
    speaking: watch::Sender<Speaking>,
    inputs: mpsc::Sender<UserInput>,
    sound_first: Arc<AtomicBool>,
    /// What is understood while somebody has its sound already.
    behind: FuturesUnordered<Shared<BoxFuture<'static, Understood>>>,
    /// The last utterance.
    began: Moment,
}

impl SpeechInput {
    pub fn new(
        clock: Clock,
        transcription: Option<Provider>,
        language: &str,
        tell: Tell,
        heard: mpsc::Receiver<MicEvent>,
    ) -> (Self, UserInputs) {
        let (speaking, watched) = watch::channel(Speaking::default());
        let (sender, inputs) = mpsc::channel(INPUTS);
        let sound_first = Arc::new(AtomicBool::new(false));
        let user = UserInputs {
            speaking: watched,
            inputs,
            sound_first: sound_first.clone(),
        };
        let speech_input = SpeechInput {
            began: clock.now(),
            clock,
            transcription,
            language: language.into(),
            tell,
            heard,
            speaking,
            inputs: sender,
            sound_first,
            behind: FuturesUnordered::new(),
        };
        (speech_input, user)
    }

    /// What was said and pressed before there was somebody to hear it is not heard: it answers nothing.
    pub fn forget(&mut self) {
        while self.heard.try_recv().is_ok() {}
    }

    /// Until nothing is heard any more, or nobody listens.
    #[boxed]
    pub async fn run(mut self) {
        let mut waiting = FuturesOrdered::new();
        let mut is_open = true;
        while is_open || !waiting.is_empty() || !self.behind.is_empty() {
            let is_free = waiting.len() + self.behind.len() < WAITING;
            tokio::select! {
                heard = self.heard.recv(), if is_open && is_free => match heard {
                    Some(MicEvent::Dtmf(_)) if waiting.len() >= KEYS_WAITING => {}
                    Some(heard) => waiting.extend(self.take(heard)),
                    None => is_open = false,
                },
                Some(input) = waiting.next() => {
                    let is_key = matches!(input, UserInput::Dtmf(_));
                    if is_key && self.inputs.capacity() <= INPUTS / 2 {
                        continue;
                    }
                    if self.inputs.send(input).await.is_err() {
                        return;
                    }
                }
                // Whoever has the sound takes them in.
                Some(_) = self.behind.next() => {}
            }
        }
    }

    fn take(&mut self, heard: MicEvent) -> Option<BoxFuture<'static, UserInput>> {
        match heard {
            MicEvent::SpeechStarted { ago_ms } => {
                let ago = i64::try_from(ago_ms).unwrap_or(0);
                self.begin(self.clock.now().plus_millis(-ago));
                None
            }
            MicEvent::SpeechEnded(sound) => {
                let Speaking { begun, over } = *self.speaking.borrow();
                if begun == over {
                    let ms = i64::try_from(sound.ms()).unwrap_or(0);
                    self.begin(self.clock.now().plus_millis(-ms));
                }
                self.speaking.send_modify(|speaking| speaking.over = speaking.begun);
                Some(self.spoke(sound))
            }
            MicEvent::Dtmf(keys) => Some(ready(UserInput::Dtmf(keys)).boxed()),
        }
    }

    fn begin(&mut self, began: Moment) {
        self.began = began;
        self.speaking.send_modify(|speaking| {
            // An end that was not told has come all the same.
            speaking.over = speaking.begun;
            speaking.begun += 1;
        });
        let until = self.clock.now().plus_seconds(LONGEST_SECONDS);
        (self.tell)(Command::UserSpeaking { until });
    }

    /// The last utterance, as soon as it can be answered.
    fn spoke(&self, sound: Pcm) -> BoxFuture<'static, UserInput> {
        let (number, began, own) = (self.speaking.borrow().begun, self.began, sound.clone());
        let input = move |text: String, later: Option<LaterWords>| UserInput::Speech {
            number,
            began,
            speech: speech(text, own),
            later,
        };
        let Some(provider) = self.transcription.clone() else {
            return ready(input(UNKNOWN.to_owned(), None)).boxed();
        };
        let understood = self.understand(provider, sound);
        if !self.sound_first.load(Ordering::Relaxed) {
            return understood.map(move |understood| input(understood.words, None)).boxed();
        }
        let understood = understood.shared();
        self.behind.push(understood.clone());
        ready(input(UNKNOWN.to_owned(), Some(LaterWords(understood)))).boxed()
    }

    fn understand(&self, provider: Provider, sound: Pcm) -> BoxFuture<'static, Understood> {
        let (tell, language, busy) = (self.tell.clone(), self.language.clone(), self.clock.busy());
        async move {
            let words = provider.transcribe(&sound, &language).await.unwrap_or_else(|failure| {
                // It costs the words of this utterance, not the talk.
                let (provider, error) = (provider.name(), failure.name());
                metrics::counter!("callboard_transcription_failures_total", "provider" => provider, "error" => error)
                    .increment(1);
                tracing::warn!(provider, %failure, "an utterance was not understood");
                let (kind, detail) = ("transcription_failed", failure.to_string());
                tell(Command::Note { kind, detail });
                UNKNOWN.to_owned()
            });
            Understood { words, busy }
        }
        .boxed()
    }
}

fn speech(text: String, sound: Pcm) -> Speech {
    Speech {
        text,
        audio: Some(sound),
    }
}

#[cfg(test)]
#[path = "speech_input_tests.rs"]
mod tests;
