//! What a talk learns of the participant: who speaks, what was said, and keys.
use super::last_words::{LastWords, UNKNOWN};
use adapters::brain::{LiveSound, Speech};
use entities::{boxed, values::Moment};
use futures_util::future::{BoxFuture, FutureExt, Shared};
use rules::session::command::Command;
use runtime::clock::Busy;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64},
};
use tokio::sync::{mpsc, oneshot, watch};

/// Utterances are numbered from 1, as they begin to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speaking {
    /// How many have begun: the agent falls silent,
    pub begun: u64,
    /// and how many of them are over.
    pub over: u64,
    /// The last one that the agent was surely interrupted by, or that it listens to.
    pub sure: u64,
    /// The last one that turned out to be nothing: the agent goes on where it fell silent.
    pub nothing: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum UserInput {
    /// The utterance of that number; an empty text is a noise in which there was no word.
    Speech {
        number: u64,
        said: Said,
        /// `None`: the words are there.
        later: Option<LaterWords>,
        /// `None`: that was all. Else the next one of them may be all of it, this part too.
        unsettled: Option<Unsettled>,
    },
    /// Said while the agent went on.
    Aside(Said),
    Dtmf(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Where its voice began.
    pub began: Moment,
    /// How long it took from there.
    pub ms: u64,
    /// Its sound begins shortly before.
    pub speech: Speech,
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
    /// Who tells them. If nobody does, they were not understood.
    pub(super) fn new() -> (Self, oneshot::Sender<Understood>) {
        let (tell, told) = oneshot::channel();
        let known = async move {
            told.await.unwrap_or_else(|_| Understood {
                words: UNKNOWN.to_owned(),
                busy: Busy::default(),
            })
        };
        (LaterWords(known.boxed().shared()), tell)
    }

    /// As soon as they are understood, in seconds at most.
    #[boxed]
    pub async fn known(self) -> Understood {
        self.0.await
    }
}

/// Whether an utterance that seems to be over is over.
#[derive(Clone, Debug)]
pub struct Unsettled(watch::Receiver<Option<bool>>);

impl PartialEq for Unsettled {
    fn eq(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }
}

impl Unsettled {
    /// Who settles it.
    pub(super) fn new() -> (Self, watch::Sender<Option<bool>>) {
        let (settle, settled) = watch::channel(None);
        (Unsettled(settled), settle)
    }

    /// It is known already that it is not.
    pub fn is_void(&self) -> bool {
        *self.0.borrow() == Some(false)
    }

    /// Known within the longest pause. Of a microphone that nobody listens to any more: it is not.
    #[boxed]
    pub async fn is_over(mut self) -> bool {
        let settled = self.0.wait_for(Option::is_some).await;
        settled.is_ok_and(|settled| *settled == Some(true))
    }
}

/// Where the sound goes while it is spoken, once somebody wants it.
#[derive(Clone, Debug, Default)]
pub struct LiveWay(Arc<Mutex<Option<mpsc::Sender<LiveSound>>>>);

impl LiveWay {
    pub fn lead_to(&self, listener: mpsc::Sender<LiveSound>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    pub(super) fn listener(&self) -> Option<mpsc::Sender<LiveSound>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What the talk's end of it has.
pub struct UserInputs {
    pub speaking: watch::Receiver<Speaking>,
    pub inputs: mpsc::Receiver<UserInput>,
    /// The key by which somebody opts out, when it is pressed: it waits behind none of these.
    pub opted_out: mpsc::Receiver<String>,
    /// The agent listens: whoever speaks interrupts nothing.
    pub listens: Arc<AtomicBool>,
    /// The last utterance that the agent was cut in on by.
    pub cut_in: Arc<AtomicU64>,
    /// From now on sound need not wait for its words.
    pub sound_first: Arc<AtomicBool>,
    pub live: LiveWay,
    /// What is left here when the talk is cut off goes there.
    pub last_words: LastWords,
}

/// Tells the session.
pub type Tell = Arc<dyn Fn(Command) + Send + Sync>;
