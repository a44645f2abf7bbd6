//! Pieces of a turn at a provider that says them in one go: one after the other goes into the same generation, so that the voice
//! runs on, and the sound that comes is the sound of the one that was asked for last.
//!
//! The first goes out at once, each other one when the one before it has been made: while that is heard, the next is made. What ends
//! a piece the provider tells; where it does not, the generation is finished, for its end is always told, and what follows goes
//! into another one.
use super::{
    SpeechError,
    piece::{Failure, Saying},
};
use futures_util::future::pending;
use std::{collections::VecDeque, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

/// All letters of a piece have been told: what trails behind has come by then.
const SETTLING: Duration = Duration::from_millis(150);
/// Some of a piece has come, and nothing more: whether that was all is asked by then.
const QUIET: Duration = Duration::from_millis(700);

/// What came of the provider.
pub enum Event {
    /// Letters, each with the milliseconds of this sound after which it was said.
    Sound {
        bytes: Vec<u8>,
        letters: Vec<(String, u64)>,
    },
    Words(Vec<Word>),
    /// The piece has been said.
    PieceOver,
    /// All that was asked has been said, and nothing more can be.
    Over,
    Other,
}

/// When a word is said, in milliseconds of the piece, or of all that was said in the generation.
pub struct Word {
    pub text: String,
    pub begins_ms: u64,
    pub ends_ms: u64,
}

/// One generation at a provider's. Whatever is asked of it fails as the socket does, with its name.
pub trait Wire: Send + 'static {
    /// A provider ends what was not asked for anything for some time: before that it is finished here.
    const IDLE: Duration;
    /// A piece ends with its letters; else with [`Event::PieceOver`].
    const ENDS_BY_LETTERS: bool;
    /// `is_last`: nothing follows it.
    fn say(&mut self, text: &str, is_last: bool) -> impl Future<Output = Result<(), SpeechError>> + Send;
    /// Nothing follows.
    fn finish(&mut self) -> impl Future<Output = Result<(), SpeechError>> + Send;
    /// What comes next. May be dropped and called again.
    fn next(&mut self) -> impl Future<Output = Result<Event, SpeechError>> + Send;
    /// `is_called_off`: what may still come is not wanted.
    fn close(self, is_called_off: bool) -> impl Future<Output = ()> + Send;
}

/// Begins generations of one voice.
pub trait Opener: Send + Sync {
    type Wire: Wire;
    /// `true`: its socket was opened for it. `false`: it was there, and may have been closed unseen.
    fn open(&self) -> impl Future<Output = Result<(Self::Wire, bool), SpeechError>> + Send;
}

/// Has all pieces said that are asked, until no other can follow, or one fails: then those that wait fail with it.
pub async fn run<O: Opener>(opener: O, mut asked: mpsc::Receiver<Saying>) {
    let mut waiting = VecDeque::new();
    loop {
        let next = match waiting.pop_front() {
            Some(saying) => Some(saying),
            None => asked.recv().await,
        };
        let Some(mut first) = next else { return };
        first.begin();
        let opened = tokio::select! {
            biased;
            () = first.unwanted() => continue,
            opened = opener.open() => opened,
        };
        waiting.push_front(first);
        let (wire, is_fresh) = match opened {
            Ok(opened) => opened,
            Err(error) => return fail(waiting, asked, Failure::Unopened(error)),
        };
        let mut generation = Generation::of(wire, waiting, &mut asked);
        let outcome = generation.go().await;
        let is_excused = outcome.is_err_and(|error| generation.is_excused(error, is_fresh));
        let Generation {
            wire,
            current,
            waiting: left,
            ..
        } = generation;
        waiting = left;
        let is_called_off = match outcome {
            Ok(end) => end == End::CalledOff,
            // Whoever has ended it himself need not be told.
            Err(error) => matches!(error, SpeechError::Garbage | SpeechError::TooLong),
        };
        tokio::spawn(wire.close(is_called_off));
        if let Some(current) = current {
            waiting.push_front(current);
        }
        if let (Err(error), false) = (outcome, is_excused) {
            return fail(waiting, asked, Failure::Broken(error));
        }
    }
}

fn fail(waiting: VecDeque<Saying>, mut asked: mpsc::Receiver<Saying>, failure: Failure) {
    // Whoever comes after that begins anew.
    asked.close();
    let asked = std::iter::from_fn(|| asked.try_recv().ok());
    waiting.into_iter().chain(asked).for_each(|saying| saying.fail(failure));
}

/// How a generation ends when all is well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Over,
    CalledOff,
}

struct Generation<'a, W> {
    wire: W,
    /// Those that come first, and then these.
    waiting: VecDeque<Saying>,
    asked: &'a mut mpsc::Receiver<Saying>,
    /// What is being said.
    current: Option<Saying>,
    /// How many have been said before it, and how long they were.
    said: usize,
    said_ms: u64,
    /// From when on times of words are counted, once that is known.
    words_from_ms: Option<u64>,
    /// No other can follow what waits.
    is_last: bool,
    is_finished: bool,
    /// When something was asked or came last.
    moved: Instant,
}

enum Step {
    Asked(Option<Saying>),
    Came(Event),
    Quiet,
    Unwanted,
}

impl<'a, W: Wire> Generation<'a, W> {
    fn of(wire: W, waiting: VecDeque<Saying>, asked: &'a mut mpsc::Receiver<Saying>) -> Self {
        Generation {
            wire,
            waiting,
            asked,
            current: None,
            said: 0,
            said_ms: 0,
            words_from_ms: None,
            is_last: false,
            is_finished: false,
            moved: Instant::now(),
        }
    }

    async fn go(&mut self) -> Result<End, SpeechError> {
        loop {
            if self.current.is_none() {
                if self.is_finished {
                    return Ok(End::Over);
                }
                if let Some(next) = self.waiting.pop_front() {
                    if next.is_wanted() {
                        self.say(next).await?;
                    }
                    continue;
                }
                if self.is_last {
                    self.finish().await?;
                    continue;
                }
            }
            match self.step().await? {
                Step::Asked(Some(saying)) => self.waiting.push_back(saying),
                Step::Asked(None) => {
                    self.is_last = true;
                    if self.waiting.is_empty() {
                        self.finish().await?;
                    }
                }
                Step::Came(Event::Over) => {
                    if !self.has_missed_its_piece() {
                        self.end_piece();
                    }
                    return Ok(End::Over);
                }
                Step::Came(event) => self.take(event).await?,
                Step::Quiet if self.is_settled() => self.end_piece(),
                Step::Quiet => self.finish().await?,
                Step::Unwanted => {
                    self.current = None;
                    return Ok(End::CalledOff);
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Step, SpeechError> {
        let by = self.quiet_by();
        let takes_more = !self.is_last && self.waiting.is_empty();
        let step = tokio::select! {
            biased;
            () = unwanted(self.current.as_ref()) => Step::Unwanted,
            asked = self.asked.recv(), if takes_more => Step::Asked(asked),
            event = self.wire.next() => Step::Came(event?),
            () = passed(by) => Step::Quiet,
        };
        Ok(step)
    }

    /// When nothing may come for so long that something is to be done.
    fn quiet_by(&self) -> Option<Instant> {
        match &self.current {
            None => Some(self.moved + W::IDLE),
            Some(_) if self.is_settled() => Some(self.moved + SETTLING),
            Some(current) if current.has_sound() && !self.is_finished => Some(self.moved + QUIET),
            Some(_) => None,
        }
    }

    /// All letters of the piece have been told.
    fn is_settled(&self) -> bool {
        let is_told = |piece: &Saying| piece.has_sound() && piece.reader.is_done();
        W::ENDS_BY_LETTERS && !self.is_finished && self.current.as_ref().is_some_and(is_told)
    }

    async fn say(&mut self, mut next: Saying) -> Result<(), SpeechError> {
        if self.waiting.is_empty() {
            match self.asked.try_recv() {
                Ok(saying) => self.waiting.push_back(saying),
                Err(mpsc::error::TryRecvError::Disconnected) => self.is_last = true,
                Err(mpsc::error::TryRecvError::Empty) => {}
            }
        }
        next.begin();
        let text = next.text.clone();
        self.current = Some(next);
        self.words_from_ms = None;
        self.moved = Instant::now();
        self.is_finished = self.is_last && self.waiting.is_empty();
        self.wire.say(&text, self.is_finished).await
    }

    async fn finish(&mut self) -> Result<(), SpeechError> {
        if std::mem::replace(&mut self.is_finished, true) {
            return Ok(());
        }
        self.moved = Instant::now();
        self.wire.finish().await
    }

    async fn take(&mut self, event: Event) -> Result<(), SpeechError> {
        // What trails behind a piece that is over.
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        match event {
            Event::Sound { bytes, letters } => {
                self.moved = Instant::now();
                let from_ms = current.ms();
                current.sound(&bytes)?;
                let to_ms = current.ms();
                for (letter, ms) in letters {
                    current.reader.letters(&letter, from_ms.saturating_add(ms).min(to_ms));
                }
                // Its end would not be known.
                if W::ENDS_BY_LETTERS && current.has_sound() && !current.reader.has_begun() {
                    self.finish().await?;
                }
            }
            Event::Words(words) => {
                let said_ms = self.said_ms;
                for word in words {
                    // Whichever it is near to: the beginning of the piece, or that of all.
                    let is_of_all = word.begins_ms.abs_diff(said_ms) < word.begins_ms;
                    let from = *self.words_from_ms.get_or_insert(if is_of_all { said_ms } else { 0 });
                    current.reader.word(&word.text, word.ends_ms.saturating_sub(from));
                }
            }
            Event::PieceOver if current.has_sound() => self.end_piece(),
            Event::PieceOver | Event::Over | Event::Other => {}
        }
        Ok(())
    }

    fn end_piece(&mut self) {
        if let Some(piece) = self.current.take() {
            self.said += 1;
            self.said_ms += piece.ms();
            self.moved = Instant::now();
            piece.end();
        }
    }

    /// It was ended by the provider, for its age, while the piece was on its way: nothing is wrong with that.
    fn has_missed_its_piece(&self) -> bool {
        self.said > 0 && self.current.as_ref().is_some_and(|piece| !piece.has_sound())
    }

    /// A socket that was closed while nobody spoke is no failure of the words that it was asked for then: they are asked for again.
    fn is_excused(&self, error: SpeechError, is_fresh: bool) -> bool {
        let is_unsaid = self.current.as_ref().is_some_and(|piece| !piece.has_sound());
        is_unsaid && error == SpeechError::Closed && (self.said > 0 || !is_fresh)
    }
}

async fn unwanted(current: Option<&Saying>) {
    match current {
        Some(current) => current.unwanted().await,
        None => pending().await,
    }
}

async fn passed(by: Option<Instant>) {
    match by {
        // What stands behind never comes: this is a pause.
        Some(by) => {
            let _ = timeout_at(by, pending::<()>()).await;
        }
        None => pending().await,
    }
}
