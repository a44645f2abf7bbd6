//! A second provider: what the first does not understand is given to it, from the sound that was kept.
//!
//! The talk sees one provider: each question has one answer, in their order, and a failure only where both have failed. Where the
//! first cannot be used at all, what comes later is heard by the second from its beginning.
use super::{
    Failure, Hear, INPUTS, LONGEST_SECONDS, MOST_WAITING, Transcribed, Transcript, outbox::Outbox, talk::Talk,
};
use crate::{
    pause::until,
    sound::{HEARING, Pcm},
    speech::SpeechError,
};
use futures_util::future::pending;
use std::{collections::VecDeque, time::Duration};
use tokio::{sync::mpsc, time::Instant};

/// Samples of a turn's sound that are kept; of all turns together it is three times that.
const LONGEST: usize = LONGEST_SECONDS * HEARING as usize;
/// Samples of a piece of sound: 100 ms.
const PIECE: usize = 1_600;
/// Messages that wait for the second; past that nothing more is given to it.
const MOST_TO_GIVE: usize = 1_024;
/// Failures in a row after which the first is not asked any more, if it cannot be used.
const MOST_FAILURES: u32 = 2;

/// Opens another transcript of the second.
pub type Second = Box<dyn Fn() -> Transcript + Send>;

/// What is told of the talk's provider.
#[derive(Clone, Copy)]
pub struct Terms {
    /// It says when a turn is over.
    pub detects_turns: bool,
    /// From a question to its answer, by whichever.
    pub within: Duration,
}

struct Line {
    transcript: Transcript,
    to_give: VecDeque<Hear>,
}

impl Line {
    fn of(transcript: Transcript) -> Self {
        let to_give = VecDeque::new();
        Line { transcript, to_give }
    }

    /// Gives what waits, until something is told. May be dropped and called again. None: it is over.
    async fn next(&mut self) -> Option<Transcribed> {
        let Line { transcript, to_give } = self;
        loop {
            tokio::select! {
                told = transcript.events.recv() => return told,
                permit = transcript.input.reserve(), if !to_give.is_empty() => match (permit, to_give.pop_front()) {
                    (Ok(permit), Some(hear)) => permit.send(hear),
                    _ => return None,
                },
            }
        }
    }
}

/// A turn of the speaker.
struct Turn {
    number: u64,
    /// The last of its sound, and how much of it came before that.
    sound: Vec<i16>,
    forgotten: usize,
    /// Nobody wants its words.
    is_dropped: bool,
}

impl Turn {
    fn hear(&mut self, samples: &[i16]) {
        self.sound.extend_from_slice(samples);
        // Seldom, for all of it is moved.
        if self.sound.len() > LONGEST + HEARING as usize {
            let more = self.sound.len() - LONGEST;
            self.sound.drain(..more);
            self.forgotten += more;
        }
    }

    fn forget(&mut self) {
        self.forgotten += self.sound.len();
        self.sound = Vec::new();
    }

    /// Samples.
    fn heard(&self) -> usize {
        self.forgotten + self.sound.len()
    }
}

/// A `Finalize`.
struct Question {
    id: u64,
    /// `None`: it is of nothing.
    turn: Option<u64>,
    /// Samples that the turn had.
    heard: usize,
    by: Instant,
    state: State,
}

enum State {
    Asked,
    /// Of the second: the first has failed.
    AskedAgain(Failure),
    Known(Transcribed),
}

struct Session {
    /// Its name.
    first: &'static str,
    /// To whoever hears the turns.
    line: Line,
    second: Second,
    terms: Terms,
    /// What the first has not understood.
    rescue: Option<Line>,
    /// Questions that it was asked and has not answered.
    rescued: VecDeque<u64>,
    outbox: Outbox,
    /// Those that are asked about, and the one that goes on.
    turns: VecDeque<Turn>,
    is_open: bool,
    questions: VecDeque<Question>,
    asked: u64,
    /// Of the first, in a row, and why.
    failures: u32,
    last: Option<Failure>,
    /// The line is the second's.
    is_given_up: bool,
}

/// Begins at once, in a task of its own.
pub fn start(
    first: Transcript,
    second: Second,
    terms: Terms,
    input: mpsc::Receiver<Hear>,
    events: mpsc::Sender<Transcribed>,
) {
    let session = Session {
        first: first.provider,
        line: Line::of(first),
        second,
        terms,
        rescue: None,
        rescued: VecDeque::new(),
        outbox: Outbox::default(),
        turns: VecDeque::new(),
        is_open: false,
        questions: VecDeque::new(),
        asked: 0,
        failures: 0,
        last: None,
        is_given_up: false,
    };
    tokio::spawn(session.run(Talk::new(input, events)));
}

impl Session {
    /// Until one of the talk's ends is dropped.
    async fn run(mut self, mut talk: Talk) {
        loop {
            self.settle(Instant::now());
            let is_behind = self.line.to_give.len() >= INPUTS || self.questions.len() >= MOST_WAITING;
            let wake = self.wake();
            tokio::select! {
                hear = talk.next(&mut self.outbox, !is_behind) => match hear {
                    Some(hear) => self.take(hear),
                    None => return,
                },
                told = self.line.next() => match told {
                    Some(told) => self.told(told),
                    None => return,
                },
                told = next(&mut self.rescue) => self.rescue_told(told),
                () = until(wake) => {}
            }
        }
    }

    fn take(&mut self, hear: Hear) {
        match &hear {
            Hear::Begin(number) => self.begin(*number),
            Hear::Sound(sound) => {
                if let Some(turn) = self.turns.back_mut().filter(|_| self.is_open && !self.is_given_up) {
                    turn.hear(&sound.at(HEARING).samples);
                }
            }
            Hear::Finalize => self.ask(),
            Hear::Discard => self.discard(),
        }
        self.line.to_give.push_back(hear);
    }

    fn begin(&mut self, number: u64) {
        self.outbox.forget_turn();
        if !self.is_given_up && self.failures >= MOST_FAILURES {
            self.give_up();
        }
        while self.turns.iter().map(|turn| turn.sound.len()).sum::<usize>() > 2 * LONGEST {
            let Some(longest) = self.turns.iter_mut().max_by_key(|turn| turn.sound.len()) else {
                break;
            };
            longest.forget();
        }
        self.turns.push_back(Turn {
            number,
            sound: Vec::new(),
            forgotten: 0,
            is_dropped: false,
        });
        self.is_open = true;
    }

    fn ask(&mut self) {
        let turn = self.turns.back().filter(|_| self.is_open);
        self.asked += 1;
        self.questions.push_back(Question {
            id: self.asked,
            turn: turn.map(|turn| turn.number),
            heard: turn.map_or(0, Turn::heard),
            by: Instant::now() + self.terms.within,
            state: State::Asked,
        });
    }

    fn discard(&mut self) {
        self.outbox.forget_turn();
        let Some(turn) = self.turns.back_mut().filter(|_| self.is_open) else {
            return;
        };
        turn.forget();
        turn.is_dropped = true;
        for question in &mut self.questions {
            if question.turn == Some(turn.number) && matches!(question.state, State::AskedAgain(_)) {
                question.state = State::Known(Transcribed::Final(String::new()));
            }
        }
        self.is_open = false;
    }

    /// The talk goes on with the second.
    fn give_up(&mut self) {
        if let Some(failure) = self.last {
            for at in 0..self.questions.len() {
                if matches!(self.questions[at].state, State::Asked) {
                    self.ask_again(at, failure);
                }
            }
        }
        self.line = Line::of((self.second)());
        self.is_given_up = true;
        tracing::warn!(
            provider = self.first,
            then = self.line.transcript.provider,
            "a talk's provider of transcriptions cannot be used"
        );
    }

    fn told(&mut self, told: Transcribed) {
        match told {
            Transcribed::Final(_) | Transcribed::Failed(_) => self.answered(told),
            Transcribed::Partial { turn, .. } if self.is_current(turn) => self.outbox.push(told),
            Transcribed::EagerEnd { turn, .. } | Transcribed::Resumed { turn } | Transcribed::TurnEnd { turn, .. }
                if self.terms.detects_turns && self.is_current(turn) =>
            {
                self.outbox.push(told);
            }
            _ => {}
        }
    }

    fn is_current(&self, turn: u64) -> bool {
        self.is_open && self.turns.back().is_some_and(|current| current.number == turn)
    }

    fn answered(&mut self, answer: Transcribed) {
        let mut questions = self.questions.iter();
        let Some(at) = questions.position(|question| matches!(question.state, State::Asked)) else {
            return;
        };
        match answer {
            Transcribed::Failed(failure) if self.is_given_up => {
                count(self.line.transcript.provider, failure);
                // Who hears of it knows the first one's name.
                let failure = self.last.unwrap_or(failure);
                self.questions[at].state = State::Known(Transcribed::Failed(failure));
            }
            Transcribed::Failed(failure) => {
                self.failures = match failure.0 {
                    SpeechError::Refused { .. } | SpeechError::Absent => self.failures + 1,
                    _ => 0,
                };
                self.last = Some(failure);
                self.ask_again(at, failure);
            }
            answer => {
                self.failures = 0;
                self.questions[at].state = State::Known(answer);
            }
        }
    }

    /// Of the second.
    fn ask_again(&mut self, at: usize, failure: Failure) {
        let question = &mut self.questions[at];
        question.state = State::Known(Transcribed::Failed(failure));
        let Some(turn) = self.turns.iter().find(|turn| question.turn == Some(turn.number)) else {
            return;
        };
        if turn.is_dropped {
            question.state = State::Known(Transcribed::Final(String::new()));
            return;
        }
        let sound = question.heard.checked_sub(turn.forgotten);
        let sound = sound.and_then(|end| turn.sound.get(..end)).unwrap_or_default();
        if sound.is_empty() {
            return;
        }
        let rescue = self.rescue.get_or_insert_with(|| Line::of((self.second)()));
        if rescue.to_give.len() >= MOST_TO_GIVE {
            return;
        }
        let pieces = sound.chunks(PIECE).map(|piece| Hear::Sound(Pcm::new(HEARING, piece)));
        rescue.to_give.push_back(Hear::Begin(turn.number));
        rescue.to_give.extend(pieces.chain([Hear::Finalize]));
        self.rescued.push_back(question.id);
        question.state = State::AskedAgain(failure);
    }

    fn rescue_told(&mut self, told: Option<Transcribed>) {
        let answer = match told {
            Some(answer @ (Transcribed::Final(_) | Transcribed::Failed(_))) => answer,
            Some(_) => return,
            None => {
                self.fail(|_| true, Failure(SpeechError::Closed));
                (self.rescue, self.rescued) = (None, VecDeque::new());
                return;
            }
        };
        let Some(id) = self.rescued.pop_front() else { return };
        if let Transcribed::Failed(failure) = answer {
            return self.fail(|question| question.id == id, failure);
        }
        let question = self.questions.iter_mut().find(|question| question.id == id);
        // Its time may be over.
        if let Some(question) = question
            && let State::AskedAgain(failure) = question.state
        {
            count(self.first, failure);
            question.state = State::Known(answer);
        }
    }

    /// Of these the second knows no words either.
    fn fail(&mut self, which: impl Fn(&Question) -> bool, why: Failure) {
        let second = self.rescue.as_ref().map(|rescue| rescue.transcript.provider);
        for question in self.questions.iter_mut().filter(|question| which(question)) {
            if let State::AskedAgain(failure) = question.state {
                if let Some(second) = second {
                    count(second, why);
                }
                question.state = State::Known(Transcribed::Failed(failure));
            }
        }
    }

    /// Answers all that can be answered, in order.
    fn settle(&mut self, now: Instant) {
        self.fail(|question| question.by <= now, Failure(SpeechError::Timeout));
        while let Some(Question {
            state: State::Known(_), ..
        }) = self.questions.front()
        {
            if let Some(State::Known(answer)) = self.questions.pop_front().map(|question| question.state) {
                self.outbox.push(answer);
            }
        }
        while let Some(oldest) = self.turns.front() {
            let is_current = self.is_open && self.turns.len() == 1;
            if is_current
                || self
                    .questions
                    .iter()
                    .any(|question| question.turn == Some(oldest.number))
            {
                break;
            }
            self.turns.pop_front();
        }
    }

    /// When the time of a question is over.
    fn wake(&self) -> Option<Instant> {
        let again = |question: &&Question| matches!(question.state, State::AskedAgain(_));
        self.questions.iter().filter(again).map(|question| question.by).min()
    }
}

/// Those of which nothing is told to the talk. The others it counts itself.
fn count(provider: &'static str, failure: Failure) {
    let error = failure.name();
    metrics::counter!("callboard_transcription_failures_total", "provider" => provider, "error" => error).increment(1);
}

/// Never resolves where there is none.
async fn next(line: &mut Option<Line>) -> Option<Transcribed> {
    match line {
        Some(line) => line.next().await,
        None => pending().await,
    }
}
