//! Which words belong to which turn, and when all of them are known: no connection, no clock.
//!
//! Positions are samples of 16 kHz since the connection was opened: a turn has a place there, and so has whatever is heard of
//! it, in whichever order it comes. Another connection begins at 0, and turns without an answer are given to it once more.
use super::{
    Failure, MOST_TURNS, MOST_WAITING, Patience, Transcribed,
    turn::{Asked, LONGEST, Piece, Turn},
};
use crate::speech::SpeechError;
use rules::conversation::guard;
use std::collections::VecDeque;
use tokio::time::Instant;

/// Samples. So near to the end of a turn's sound all of it is known: times are rounded.
const NEAR: u64 = 1_600;
/// How often a turn's sound is given to a provider.
const MOST_TIMES: u8 = 2;

/// The turns of a talk that are not over: of those before the last, answers are waited for.
#[derive(Debug)]
pub struct Book {
    patience: Patience,
    turns: VecDeque<Turn>,
    /// The last one may go on.
    is_open: bool,
    sent: u64,
    /// Up to there something was heard of; and everything.
    heard_to: u64,
    done_to: u64,
}

/// Sound of a turn that this connection has not got.
pub struct Unsent {
    pub samples: Vec<i16>,
    /// Its end, for the next message.
    pub rest: Vec<i16>,
    /// Its words are wanted already.
    pub is_asked: bool,
}

impl Book {
    pub fn new(patience: Patience) -> Self {
        Book {
            patience,
            turns: VecDeque::new(),
            is_open: false,
            sent: 0,
            heard_to: 0,
            done_to: 0,
        }
    }

    pub fn begin(&mut self) {
        self.close();
        if self.turns.len() >= MOST_TURNS
            && let Some(oldest) = self.turns.front_mut()
        {
            oldest.lost = Some(SpeechError::Timeout);
        }
        // Of turns that wait, little sound is kept besides; they have been given to a provider once, mostly.
        while self.turns.iter().map(|turn| turn.sound.len()).sum::<usize>() > 2 * LONGEST {
            let Some(longest) = self.turns.iter_mut().max_by_key(|turn| turn.sound.len()) else {
                break;
            };
            longest.sound = Vec::new();
            longest.times = MOST_TIMES;
            if longest.from.is_none() {
                longest.lost = Some(SpeechError::Timeout);
            }
        }
        self.turns.push_back(Turn::default());
        self.is_open = true;
    }

    /// Sound of the turn. `false`: there is none.
    pub fn hear(&mut self, samples: &[i16]) -> bool {
        let Some(turn) = self.current_mut() else { return false };
        turn.hear(samples);
        true
    }

    /// Does the connection know the turn?
    pub fn is_known(&self) -> bool {
        self.current().is_some_and(|turn| turn.from.is_some())
    }

    /// So many samples of it went out, or of silence.
    pub fn pass(&mut self, samples: usize) {
        self.sent += samples as u64;
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The first turn that this connection has not got; from now on it has. Of one that goes on, whole messages of so many samples.
    pub fn next_unsent(&mut self, now: Instant, message: usize) -> Option<Unsent> {
        let (sent, rest) = (self.sent, now + self.patience.rest);
        let at = self.turns.iter().position(Turn::is_unsent)?;
        let is_current = self.is_open && at + 1 == self.turns.len();
        let turn = &mut self.turns[at];
        let is_asked = turn.is_asked();
        let rest_of = match is_current && !is_asked {
            true => turn.sound.len() % message.max(1),
            false => 0,
        };
        let whole = turn.sound.len() - rest_of;
        let end = sent + whole as u64;
        turn.from = Some(sent);
        turn.to = (!is_current).then_some(end);
        turn.times += 1;
        for asked in &mut turn.asked {
            (asked.at, asked.rest) = (Some(end), rest);
        }
        let unsent = Unsent {
            samples: turn.sound[..whole].to_vec(),
            rest: turn.sound[whole..].to_vec(),
            is_asked,
        };
        self.sent = end;
        Some(unsent)
    }

    /// Is a connection needed?
    pub fn wants_link(&self) -> bool {
        self.turns.iter().any(Turn::is_unsent)
    }

    /// The words of the turn are wanted.
    pub fn ask(&mut self, now: Instant) {
        if !self.is_open {
            // Of nothing; but the answers before it come first.
            self.turns.push_back(Turn {
                is_dropped: true,
                ..Turn::default()
            });
        }
        let sent = self.sent;
        let (rest, by) = (now + self.patience.rest, now + self.patience.answer);
        if let Some(turn) = self.turns.back_mut() {
            let at = turn.from.map(|_| sent);
            turn.asked.push_back(Asked { at, rest, by });
        }
    }

    /// The turn is forgotten. Where it began, if the connection knows it.
    pub fn discard(&mut self) -> Option<u64> {
        let turn = self.current_mut()?;
        let from = turn.from;
        turn.is_dropped = true;
        turn.sound = Vec::new();
        turn.pieces = Vec::new();
        self.close();
        from
    }

    /// `true`: it is of the turn that goes on.
    pub fn heard(&mut self, piece: Piece) -> Result<bool, SpeechError> {
        // Of what was not said yet there are no words.
        let to = piece.to.min(self.sent);
        let piece = Piece {
            from: piece.from.min(to),
            to,
            text: guard::clean(&piece.text, guard::MAX_WORDS),
            is_done: piece.is_done,
        };
        self.heard_to = self.heard_to.max(to);
        if piece.is_done {
            self.done_to = self.done_to.max(to);
        }
        for turn in &mut self.turns {
            turn.pieces.retain(|old| !piece.replaces(old));
        }
        let Some(at) = self.whose(&piece) else { return Ok(false) };
        self.turns[at].heard(piece)?;
        Ok(self.is_open && at + 1 == self.turns.len())
    }

    /// The words there are not known, and will not be.
    pub fn lose(&mut self, from: u64, to: u64, error: SpeechError) {
        let place = Piece {
            from,
            to,
            text: String::new(),
            is_done: true,
        };
        if let Some(at) = self.whose(&place) {
            self.turns[at].lost = Some(error);
        }
    }

    /// The connection is gone.
    pub fn broke(&mut self, error: SpeechError) {
        for turn in &mut self.turns {
            if turn.is_answered && !turn.is_asked() && !turn.is_dropped {
                turn.rest();
                continue;
            }
            if turn.from.is_some() && turn.times >= MOST_TIMES {
                turn.lost = Some(error);
            }
            turn.from = None;
            turn.pieces.clear();
            for asked in &mut turn.asked {
                asked.at = None;
            }
        }
        (self.sent, self.heard_to, self.done_to) = (0, 0, 0);
    }

    /// The connection was closed because nobody spoke. What is known of the turn stays known.
    pub fn rest(&mut self) {
        if let Some(turn) = self.current_mut() {
            turn.rest();
        }
        (self.sent, self.heard_to, self.done_to) = (0, 0, 0);
    }

    /// Whoever waits for words while there will be no connection for long waits in vain.
    pub fn give_up(&mut self, error: SpeechError) {
        for turn in &mut self.turns {
            if turn.is_unsent() && turn.is_asked() {
                turn.lost = Some(error);
            }
        }
    }

    /// All that can be answered now. `is_sure`: the provider answers everything. `missing`: why there is no connection.
    pub fn settle(&mut self, now: Instant, is_sure: bool, missing: Option<SpeechError>) -> Vec<Transcribed> {
        let mut answers = Vec::new();
        while let Some(turn) = self.turns.front() {
            if let Some(asked) = turn.asked.front() {
                let Some(answer) = self.answer(turn, asked, now, is_sure, missing) else {
                    break;
                };
                if let Some(turn) = self.turns.front_mut() {
                    turn.asked.pop_front();
                    turn.is_answered = turn.asked.is_empty() && matches!(answer, Transcribed::Final(_));
                }
                answers.push(answer);
            } else if self.is_open && self.turns.len() == 1 {
                break;
            } else {
                self.turns.pop_front();
            }
        }
        answers
    }

    /// When [`Book::settle`] may have more to say though nothing was heard.
    pub fn wake(&self, now: Instant, is_sure: bool) -> Option<Instant> {
        let asked = self.turns.front()?.asked.front()?;
        match !is_sure && asked.at.is_some() && asked.rest > now {
            true => Some(asked.rest.min(asked.by)),
            false => Some(asked.by),
        }
    }

    /// Is an answer waited for?
    pub fn is_asked(&self) -> bool {
        self.turns.iter().any(Turn::is_asked)
    }

    pub fn has_room(&self) -> bool {
        self.turns.iter().map(|turn| turn.asked.len()).sum::<usize>() < MOST_WAITING
    }

    /// Of the turn that goes on, all so far.
    pub fn words(&self) -> String {
        self.current().map(Turn::words).unwrap_or_default()
    }

    /// Is an answer waited for in the turn that goes on?
    pub fn current_is_asked(&self) -> bool {
        self.current().is_some_and(Turn::is_asked)
    }

    fn answer(
        &self,
        turn: &Turn,
        asked: &Asked,
        now: Instant,
        is_sure: bool,
        missing: Option<SpeechError>,
    ) -> Option<Transcribed> {
        let failed = |error| Some(Transcribed::Failed(Failure(error)));
        if turn.is_dropped {
            return Some(Transcribed::Final(String::new()));
        }
        if let Some(error) = turn.lost {
            return failed(error);
        }
        let is_known = !turn.has_sound || turn.is_reached(asked, self.done_to, NEAR);
        let is_late = !is_sure && now >= asked.rest;
        if is_known || (is_late && turn.is_reached(asked, self.heard_to, self.patience.little)) {
            return Some(Transcribed::Final(turn.words()));
        }
        if now >= asked.by {
            return failed(missing.unwrap_or(SpeechError::Timeout));
        }
        None
    }

    fn whose(&self, piece: &Piece) -> Option<usize> {
        let middle = piece.from + (piece.to - piece.from.min(piece.to)) / 2;
        let at = self.turns.iter().rposition(|turn| turn.has(middle))?;
        Some(at).filter(|at| !self.turns[*at].is_dropped)
    }

    fn current(&self) -> Option<&Turn> {
        self.turns.back().filter(|_| self.is_open)
    }

    fn current_mut(&mut self) -> Option<&mut Turn> {
        self.turns.back_mut().filter(|_| self.is_open)
    }

    /// Nothing more is said in the last turn. It stays while somebody waits for its words.
    fn close(&mut self) {
        let sent = self.sent;
        if let Some(turn) = self.current_mut() {
            turn.to = Some(sent);
            if !turn.is_asked() {
                self.turns.pop_back();
            }
        }
        self.is_open = false;
    }
}

#[cfg(test)]
#[path = "tests/book.rs"]
mod tests;
