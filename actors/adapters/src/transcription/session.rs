//! A talk's connection to a provider that hears while it is spoken: opened before the first word, kept while somebody speaks now and
//! then, closed when nobody has for a minute, and opened again with the next turn.
//!
//! A connection that breaks costs no words: what is not answered is given to the next one, once. One that cannot be opened is
//! tried again later and later, while there is a turn that wants it.
use super::{
    Hear, Patience, Transcribed,
    book::Book,
    dialect::{Dialect, Heard},
    outbox::Outbox,
    talk::Talk,
    turn::Piece,
    way::{Retry, SOON, Step, Way, Wire},
};
use crate::{
    pause::until,
    sound::{HEARING, Pcm},
    speech::SpeechError,
};
use std::mem;
use tokio::{sync::mpsc, time::Instant};
use tokio_tungstenite::tungstenite::Message;

/// Samples in one message: 100 ms.
const MOST_AT_ONCE: usize = 1_600;

pub struct Session {
    wire: Wire,
    patience: Patience,
    talk: Talk,
    book: Book,
    outbox: Outbox,
    way: Way,
    dialect: Box<dyn Dialect>,
    /// Which turn it is, by the number that who asks has given it.
    turn: u64,
    /// Sound that is too little for a message.
    gathered: Vec<i16>,
    /// Up to there the words were asked for.
    flushed: u64,
    /// The last partial.
    shown: String,
    retry: Retry,
    /// When we last sent something, and when somebody last spoke.
    sent_at: Instant,
    used_at: Instant,
}

impl Session {
    pub fn new(wire: Wire, patience: Patience, input: mpsc::Receiver<Hear>, events: mpsc::Sender<Transcribed>) -> Self {
        let now = Instant::now();
        Session {
            dialect: (wire.dialect)(),
            wire,
            patience,
            talk: Talk::new(input, events),
            book: Book::new(patience),
            outbox: Outbox::default(),
            way: Way::Closed,
            turn: 0,
            gathered: Vec::new(),
            flushed: 0,
            shown: String::new(),
            retry: Retry::new(now),
            sent_at: now,
            used_at: now,
        }
    }

    /// Until one of the talk's ends is dropped.
    pub async fn run(mut self) {
        self.open();
        loop {
            while self.settle() {}
            let (has_room, wake) = (self.book.has_room(), self.wake());
            tokio::select! {
                hear = self.talk.next(&mut self.outbox, has_room) => match hear {
                    Some(hear) => self.take(hear),
                    None => break,
                },
                step = self.way.next() => self.step(step),
                () = until(wake) => {}
            }
        }
        self.leave();
    }

    fn take(&mut self, hear: Hear) {
        let taken = match hear {
            Hear::Begin(turn) => self.begin(turn),
            Hear::Sound(sound) => self.hear(&sound),
            Hear::Finalize => self.finalize(),
            Hear::Discard => self.discard(),
        };
        if let Err(error) = taken {
            self.broke(error);
        }
    }

    fn begin(&mut self, turn: u64) -> Result<(), SpeechError> {
        self.used_at = Instant::now();
        self.turn = turn;
        self.outbox.forget_turn();
        self.shown.clear();
        // What nobody has asked for would run into this turn's words.
        self.gathered.clear();
        let (from, at) = (self.flushed, self.book.sent());
        self.flushed = at;
        self.book.begin();
        if matches!(self.way, Way::Closed) && self.used_at >= self.retry.at() {
            self.open();
        }
        match at > from {
            true => self.forget(from, at),
            false => Ok(()),
        }
    }

    fn hear(&mut self, sound: &Pcm) -> Result<(), SpeechError> {
        let sound = sound.at(HEARING);
        if !self.book.hear(&sound.samples) {
            return Ok(());
        }
        self.used_at = Instant::now();
        if !matches!(self.way, Way::Open(_)) {
            return Ok(());
        }
        if !self.book.is_known() {
            return self.catch_up();
        }
        self.gathered.extend_from_slice(&sound.samples);
        match self.gathered.len() >= self.dialect.message().unwrap_or_default() {
            true => self.give_gathered(),
            false => Ok(()),
        }
    }

    fn finalize(&mut self) -> Result<(), SpeechError> {
        self.used_at = Instant::now();
        let is_known = self.book.is_known();
        let rest = match is_known {
            true => mem::take(&mut self.gathered),
            false => Vec::new(),
        };
        // Before anything is sent: what breaks there costs no question, for the next connection gets it.
        self.book.pass(rest.len());
        self.book.ask(self.used_at);
        self.give(&rest)?;
        // What was asked for before is on its way.
        match is_known && self.book.sent() > self.flushed {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn discard(&mut self) -> Result<(), SpeechError> {
        self.gathered.clear();
        self.shown.clear();
        self.outbox.forget_turn();
        let at = self.book.sent();
        match self.book.discard() {
            Some(from) => {
                self.flushed = at;
                self.forget(from, at)
            }
            None => Ok(()),
        }
    }

    fn step(&mut self, step: Step) {
        let outcome = match step {
            Step::Opened(Ok(link)) => {
                self.way = Way::Open(link);
                self.dialect = (self.wire.dialect)();
                self.greet()
            }
            Step::Read(Ok(text)) => self.read(&text),
            Step::Opened(Err(error)) | Step::Read(Err(error)) => Err(error),
        };
        if let Err(error) = outcome {
            self.broke(error);
        }
    }

    fn greet(&mut self) -> Result<(), SpeechError> {
        for message in self.dialect.opening() {
            self.send(message)?;
        }
        self.catch_up()
    }

    /// Gives the connection what it has not got of turns that are not over.
    fn catch_up(&mut self) -> Result<(), SpeechError> {
        self.gathered.clear();
        let message = self.dialect.message().unwrap_or_default();
        while let Some(unsent) = self.book.next_unsent(Instant::now(), message) {
            self.give(&unsent.samples)?;
            self.gathered = unsent.rest;
            if unsent.is_asked {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn read(&mut self, text: &str) -> Result<(), SpeechError> {
        // Of the turn that goes on?
        let (mut is_current, turn) = (false, self.turn);
        for heard in self.dialect.read(text, self.book.sent())? {
            match heard {
                Heard::Words(piece) => is_current = self.understand(piece)?,
                Heard::Lost { from, to, error } => self.book.lose(from, to, error),
                _ if !is_current => {}
                Heard::Resumed => self.outbox.push(Transcribed::Resumed { turn }),
                // The answer says as much.
                _ if self.book.current_is_asked() => {}
                Heard::EagerEnd => {
                    let words = self.book.words();
                    self.outbox.push(Transcribed::EagerEnd { turn, words });
                }
                Heard::TurnEnd => {
                    let words = self.book.words();
                    self.outbox.push(Transcribed::TurnEnd { turn, words });
                }
            }
        }
        Ok(())
    }

    fn understand(&mut self, piece: Piece) -> Result<bool, SpeechError> {
        let is_current = self.book.heard(piece)?;
        self.retry.is_good();
        let words = self.book.words();
        if is_current && !words.is_empty() && words != self.shown {
            self.shown.clone_from(&words);
            let turn = self.turn;
            self.outbox.push(Transcribed::Partial { turn, words });
        }
        Ok(is_current)
    }

    /// Answers, connects and rests where it is time. `true`: the connection broke, so that there may be more.
    fn settle(&mut self) -> bool {
        let now = Instant::now();
        if matches!(self.way, Way::Closed) && self.book.wants_link() {
            match self.retry.failed() {
                _ if now >= self.retry.at() => self.open(),
                Some(error) if self.retry.at() > now + SOON => self.book.give_up(error),
                _ => {}
            }
        }
        let missing = self.retry.failed().filter(|_| !matches!(self.way, Way::Open(_)));
        let mut is_silent = false;
        for answer in self.book.settle(now, self.dialect.is_sure(), missing) {
            is_silent |= matches!(&answer, Transcribed::Failed(failure) if failure.0 == SpeechError::Timeout);
            self.outbox.push(answer);
        }
        if !matches!(self.way, Way::Open(_)) {
            return false;
        }
        if is_silent {
            self.broke(SpeechError::Timeout);
        } else if self.is_idle() && now >= self.used_at + self.patience.idle {
            self.leave();
            self.book.rest();
            self.flushed = 0;
        } else if now >= self.sent_at + self.patience.keep_alive {
            self.keep_alive();
        }
        is_silent
    }

    fn is_idle(&self) -> bool {
        !self.book.is_asked() && !self.book.wants_link()
    }

    /// When something is to be done though nothing comes.
    fn wake(&self) -> Option<Instant> {
        let now = Instant::now();
        let answer = self.book.wake(now, self.dialect.is_sure());
        let (keep_alive, idle, retry) = match &self.way {
            Way::Open(_) => (
                Some(self.sent_at + self.patience.keep_alive),
                self.is_idle().then(|| self.used_at + self.patience.idle),
                None,
            ),
            Way::Closed => (None, None, self.book.wants_link().then_some(self.retry.at())),
            Way::Opening(_) => (None, None, None),
        };
        [answer, keep_alive, idle, retry].into_iter().flatten().min()
    }

    fn open(&mut self) {
        self.way = self.wire.open(self.patience.connect);
    }

    fn broke(&mut self, error: SpeechError) {
        self.way = Way::Closed;
        self.gathered.clear();
        self.flushed = 0;
        self.book.broke(error);
        self.retry.broke(error, Instant::now(), self.patience.back_off);
        // What it costs is told when words are missing.
        tracing::debug!(provider = self.wire.name, %error, "a transcription's connection broke");
    }

    /// Says goodbye, and closes.
    fn leave(&mut self) {
        if let (Way::Open(link), Some(farewell)) = (&self.way, self.dialect.farewell()) {
            // It is closed behind it, or instead.
            let _ = link.send(farewell);
        }
        self.way = Way::Closed;
        self.gathered.clear();
    }

    fn keep_alive(&mut self) {
        self.sent_at = Instant::now();
        let Some(keep_alive) = self.dialect.keep_alive() else {
            return;
        };
        self.book.pass(keep_alive.samples);
        // One that is not read any more ends by itself.
        let _ = self.send(keep_alive.message);
    }

    fn give_gathered(&mut self) -> Result<(), SpeechError> {
        let samples = mem::take(&mut self.gathered);
        self.book.pass(samples.len());
        self.give(&samples)
    }

    fn give(&mut self, samples: &[i16]) -> Result<(), SpeechError> {
        for piece in samples.chunks(self.dialect.message().unwrap_or(MOST_AT_ONCE)) {
            let message = self.dialect.sound(piece);
            self.send(message)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SpeechError> {
        self.flushed = self.book.sent();
        for message in self.dialect.flush(self.flushed) {
            self.send(message)?;
        }
        Ok(())
    }

    fn forget(&mut self, from: u64, at: u64) -> Result<(), SpeechError> {
        for message in self.dialect.discard(from, at)? {
            self.send(message)?;
        }
        Ok(())
    }

    fn send(&mut self, message: Message) -> Result<(), SpeechError> {
        let Way::Open(link) = &self.way else {
            return Err(SpeechError::Closed);
        };
        self.sent_at = Instant::now();
        link.send(message)
    }
}

/// Begins at once, in a task of its own.
pub fn start(wire: Wire, patience: Patience, input: mpsc::Receiver<Hear>, events: mpsc::Sender<Transcribed>) {
    tokio::spawn(Session::new(wire, patience, input, events).run());
}

#[cfg(test)]
#[path = "tests/session.rs"]
mod tests;
