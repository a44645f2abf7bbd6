//! The words of what is heard: a talk's transcript, and of which turn each answer of it is.
use adapters::{
    sound::{HEARING, Pcm},
    transcription::{Hear, Transcribed, Transcript},
};
use std::{collections::VecDeque, future::pending};

/// Samples that are given at once, 32 ms,
const PIECE: usize = 512;
/// or at most, 100 ms.
const MOST: usize = 1_600;
/// Samples that are given at least, 16 ms.
const LEAST: usize = 256;
/// Questions that wait for their words; beyond that they are not asked.
const ASKED: usize = 48;

/// What became known. Turns are numbered by who asks; where none is named, it is of the last that has begun.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Partial(String),
    /// What was asked for; `is_last`: of this turn nothing else was asked.
    Words {
        turn: u64,
        is_last: bool,
        words: Result<String, String>,
    },
    EagerEnd(String),
    Resumed,
    TurnEnd(String),
    /// Nobody tells words any more. Of these turns they were asked for.
    Gone(Vec<u64>),
}

/// Of one talk.
pub struct Ears {
    transcript: Option<Transcript>,
    /// Turns whose words were asked for, in that order.
    asked: VecDeque<u64>,
    /// What was not given yet, of 16 kHz.
    rest: Vec<i16>,
    /// The last turn that has begun.
    current: Option<u64>,
    /// It knows of that.
    is_open: bool,
}

impl Ears {
    pub fn new(transcript: Option<Transcript>) -> Self {
        Ears {
            transcript,
            asked: VecDeque::new(),
            rest: Vec::new(),
            current: None,
            is_open: false,
        }
    }

    /// Somebody tells words.
    pub fn are_there(&self) -> bool {
        self.transcript.is_some()
    }

    /// Words of that turn are still to come.
    pub fn is_asked(&self, turn: u64) -> bool {
        self.asked.contains(&turn)
    }

    pub fn begin(&mut self, turn: u64) {
        self.rest.clear();
        self.current = Some(turn);
        self.is_open = self.give(Hear::Begin(turn));
    }

    /// A part of the turn's sound. Never waits: a provider that is far behind misses it.
    pub fn hear(&mut self, sound: &Pcm) {
        if !self.is_open {
            return;
        }
        self.rest.extend_from_slice(&sound.at(HEARING).samples);
        if self.rest.len() >= PIECE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let rest = std::mem::take(&mut self.rest);
        for piece in rest.chunks(MOST) {
            let mut piece = piece.to_vec();
            piece.resize(piece.len().max(LEAST), 0);
            if !self.give(Hear::Sound(Pcm::new(HEARING, piece))) {
                metrics::counter!("callboard_transcription_dropped_pieces_total").increment(1);
            }
        }
    }

    /// Wants the words of all that was heard of this turn; `false`: they will not come.
    pub fn ask(&mut self, turn: u64) -> bool {
        if !self.is_open || self.asked.len() >= ASKED {
            return false;
        }
        self.flush();
        let is_asked = self.give(Hear::Finalize);
        if is_asked {
            self.asked.push_back(turn);
        }
        is_asked
    }

    /// Nobody needs the words of the turn. What was asked for comes all the same.
    pub fn discard(&mut self) {
        self.rest.clear();
        if std::mem::take(&mut self.is_open) {
            self.give(Hear::Discard);
        }
    }

    fn give(&self, hear: Hear) -> bool {
        let Some(transcript) = &self.transcript else {
            return false;
        };
        transcript.input.try_send(hear).is_ok()
    }

    /// The next that becomes known; what is of another turn than the current one is passed over. Never resolves where nobody tells
    /// anything. May be dropped and called again.
    pub async fn next(&mut self) -> Told {
        loop {
            let Some(transcript) = &mut self.transcript else {
                return pending().await;
            };
            let Some(event) = transcript.events.recv().await else {
                (self.transcript, self.is_open) = (None, false);
                return Told::Gone(self.asked.drain(..).collect());
            };
            match event {
                Transcribed::Partial { turn, words } if self.current == Some(turn) => return Told::Partial(words),
                Transcribed::EagerEnd { turn, words } if self.current == Some(turn) => return Told::EagerEnd(words),
                Transcribed::Resumed { turn } if self.current == Some(turn) => return Told::Resumed,
                Transcribed::TurnEnd { turn, words } if self.current == Some(turn) => return Told::TurnEnd(words),
                Transcribed::Partial { .. }
                | Transcribed::EagerEnd { .. }
                | Transcribed::Resumed { .. }
                | Transcribed::TurnEnd { .. } => {}
                Transcribed::Final(words) => {
                    if let Some(told) = self.answered(Ok(words)) {
                        return told;
                    }
                }
                Transcribed::Failed(failure) => {
                    let (provider, error) = (transcript.provider, failure.name());
                    metrics::counter!("callboard_transcription_failures_total", "provider" => provider, "error" => error)
                        .increment(1);
                    if let Some(told) = self.answered(Err(failure.to_string())) {
                        return told;
                    }
                }
            }
        }
    }

    /// None: nobody asked.
    fn answered(&mut self, words: Result<String, String>) -> Option<Told> {
        let turn = self.asked.pop_front()?;
        let is_last = !self.asked.contains(&turn);
        Some(Told::Words { turn, is_last, words })
    }
}
