//! A turn of the speaker: its sound, as long as it may have to be given again, and what is known of its words.
//!
//! Positions are samples of 16 kHz since the connection was opened.
use super::LONGEST_SECONDS;
use crate::{sound::HEARING, speech::SpeechError};
use rules::conversation::guard;
use std::collections::VecDeque;
use tokio::time::Instant;

/// Samples of a turn's sound that are kept.
pub const LONGEST: usize = LONGEST_SECONDS * HEARING as usize;
/// Of the words of a turn.
const MOST_PIECES: usize = 256;

/// Words, and where they were said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub from: u64,
    pub to: u64,
    pub text: String,
    /// They will not be changed any more, nor anything before them.
    pub is_done: bool,
}

impl Piece {
    /// It says the same sound's words anew.
    pub fn replaces(&self, old: &Piece) -> bool {
        !old.is_done && (old.from == self.from || (old.from < self.to && self.from < old.to))
    }
}

#[derive(Debug, Default)]
pub struct Turn {
    /// The last samples of its sound.
    pub sound: Vec<i16>,
    pub has_sound: bool,
    /// Where its sound begins; `None`: nothing of it has been given to this connection.
    pub from: Option<u64>,
    /// Where it ended; `None`: it goes on.
    pub to: Option<u64>,
    /// Words of a connection that was closed while nobody spoke.
    pub before: String,
    pub pieces: Vec<Piece>,
    pub asked: VecDeque<Asked>,
    /// The words of all that it has are told.
    pub is_answered: bool,
    /// How often it was given to a provider.
    pub times: u8,
    /// Why its words will not be known.
    pub lost: Option<SpeechError>,
    /// Nobody wants its words.
    pub is_dropped: bool,
}

/// A `Finalize`.
#[derive(Debug)]
pub struct Asked {
    /// Where; `None`: it has not been passed on.
    pub at: Option<u64>,
    /// From then on what is known is enough, if only a little is missing.
    pub rest: Instant,
    pub by: Instant,
}

impl Turn {
    pub fn hear(&mut self, samples: &[i16]) {
        self.has_sound |= !samples.is_empty();
        self.is_answered &= samples.is_empty();
        self.sound.extend_from_slice(samples);
        // Seldom, for all of it is moved.
        if self.sound.len() > LONGEST + HEARING as usize {
            self.sound.drain(..self.sound.len() - LONGEST);
        }
    }

    /// Takes words in, at their place.
    pub fn heard(&mut self, piece: Piece) -> Result<(), SpeechError> {
        if self.pieces.len() >= MOST_PIECES {
            return Err(SpeechError::TooLong);
        }
        let place = self.pieces.partition_point(|old| old.from <= piece.from);
        self.pieces.insert(place, piece);
        Ok(())
    }

    /// What is known of it stays known, and its sound is not needed any more.
    pub fn rest(&mut self) {
        *self = Turn {
            before: self.words(),
            lost: self.lost,
            ..Turn::default()
        };
    }

    /// Has the connection still to get it?
    pub fn is_unsent(&self) -> bool {
        self.from.is_none() && !self.sound.is_empty() && !self.is_dropped && self.lost.is_none()
    }

    pub fn is_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Is that place in it?
    pub fn has(&self, position: u64) -> bool {
        self.from.is_some_and(|from| from <= position) && self.to.is_none_or(|to| position <= to)
    }

    /// Does what is known up to `to` reach the question, but for so much? Of a turn, however short it is, something must be known.
    pub fn is_reached(&self, asked: &Asked, to: u64, slack: u64) -> bool {
        let (Some(from), Some(at)) = (self.from, asked.at) else {
            return false;
        };
        to >= at.saturating_sub(slack).max(from + 1).min(at)
    }

    /// All so far.
    pub fn words(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| piece.text.as_str());
        let all = std::iter::once(self.before.as_str()).chain(pieces);
        let all = all.map(str::trim).filter(|text| !text.is_empty());
        let all = all.collect::<Vec<_>>().join(" ");
        guard::clean(&all, guard::MAX_WORDS).trim().to_owned()
    }
}
