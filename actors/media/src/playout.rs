//! What is being said: sound on its way from whoever makes it to the connection, which takes 20 ms at a time.
//!
//! It may be played while it is still being made (see [`feed`](super::feed)). Whatever is played is told to the sample: who cuts in
//! has heard so much and no more.
use adapters::sound::ms_of;
use std::{collections::VecDeque, ops::RangeInclusive, sync::Arc};

/// 20 ms each.
const FRAMES_A_SECOND: u32 = 50;
/// Samples per second that are played as they are; others are made to have the highest of these.
const RATES: RangeInclusive<u32> = 8_000..=24_000;
/// Sound that waits to be played, at most; a feed that is further ahead waits.
const MOST_SECONDS: u32 = 10;
/// Seconds that are free again when a feed that waits is woken: it is not woken for every frame.
const FREE_SECONDS: u32 = 1;

/// How far some sound came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Played {
    Whole,
    /// It was stopped after so many milliseconds of it.
    StoppedAfter(u64),
}

/// 20 ms of sound, at the rate of what is being said.
#[derive(Clone, Debug, PartialEq)]
pub struct SoundFrame {
    pub rate: u32,
    pub samples: Vec<i16>,
}

impl SoundFrame {
    pub fn silence(rate: u32) -> Self {
        SoundFrame {
            rate,
            samples: vec![0; frame(rate)],
        }
    }
}

/// Samples of a frame.
fn frame(rate: u32) -> usize {
    (rate / FRAMES_A_SECOND) as usize
}

/// The rate that something is played at.
pub fn playable(rate: u32) -> u32 {
    // Frames must be of one size: the encoders take no other.
    match RATES.contains(&rate) && rate.is_multiple_of(FRAMES_A_SECOND) {
        true => rate,
        false => *RATES.end(),
    }
}

/// One utterance on its way out. Pure: it knows no clock and no connection.
#[derive(Debug)]
pub struct Playout {
    rate: u32,
    waiting: Waiting,
    /// Samples of it that went out; pauses in which nothing had come do not count.
    played: u64,
    is_finished: bool,
    is_paused: bool,
}

#[derive(Debug)]
enum Waiting {
    /// All of it, and how much of it went out; it is shared with whoever has it.
    Whole(Arc<[i16]>, usize),
    Pieces(VecDeque<i16>),
}

impl Waiting {
    fn len(&self) -> usize {
        match self {
            Waiting::Whole(samples, at) => samples.len() - at,
            Waiting::Pieces(samples) => samples.len(),
        }
    }

    /// At most so many.
    fn take(&mut self, most: usize) -> Vec<i16> {
        let count = self.len().min(most);
        match self {
            Waiting::Whole(samples, at) => {
                *at += count;
                samples[*at - count..*at].to_vec()
            }
            Waiting::Pieces(samples) => samples.drain(..count).collect(),
        }
    }
}

impl Playout {
    /// Sound that will come piece by piece.
    pub fn new(rate: u32) -> Self {
        Playout {
            rate,
            waiting: Waiting::Pieces(VecDeque::new()),
            played: 0,
            is_finished: false,
            is_paused: false,
        }
    }

    /// Sound that is there.
    pub fn whole(rate: u32, samples: Arc<[i16]>) -> Self {
        Playout {
            rate,
            waiting: Waiting::Whole(samples, 0),
            played: 0,
            is_finished: true,
            is_paused: false,
        }
    }

    /// Samples that it still takes.
    pub fn room(&self) -> usize {
        match (&self.waiting, self.is_finished) {
            (Waiting::Pieces(waiting), false) => self.most().saturating_sub(waiting.len()),
            (Waiting::Whole(..) | Waiting::Pieces(_), _) => 0,
        }
    }

    fn most(&self) -> usize {
        (self.rate * MOST_SECONDS) as usize
    }

    /// It is so far ahead no more that its feed should wait.
    pub fn is_ready(&self) -> bool {
        self.room() >= (self.rate * FREE_SECONDS) as usize
    }

    /// Takes as much of it as there is room for: so many samples, from its beginning.
    pub fn push(&mut self, samples: &[i16]) -> usize {
        let taken = samples.len().min(self.room());
        if let Waiting::Pieces(waiting) = &mut self.waiting {
            waiting.extend(&samples[..taken]);
        }
        taken
    }

    /// Nothing more comes.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// All of it went out.
    pub fn is_over(&self) -> bool {
        self.is_finished && self.waiting.len() == 0
    }

    /// Nothing goes out until it goes on; what comes meanwhile waits.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Goes on with the sample after the last one that went out.
    pub fn resume(&mut self) {
        self.is_paused = false;
    }

    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// The next 20 ms; `None`: nothing has come yet, or it is paused. What comes too late leaves a pause, and so does the end of the last frame.
    pub fn next_frame(&mut self) -> Option<SoundFrame> {
        if self.is_paused || !self.has_begun() && self.waiting.len() == 0 && !self.is_finished {
            return None;
        }
        let size = frame(self.rate);
        let mut samples = self.waiting.take(size);
        self.played += samples.len() as u64;
        samples.resize(size, 0);
        let rate = self.rate;
        Some(SoundFrame { rate, samples })
    }

    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// What had not gone out yet is forgotten, and nothing more comes.
    pub fn stop(&mut self) {
        self.waiting = Waiting::Pieces(VecDeque::new());
        self.is_finished = true;
    }

    /// Something of it went out.
    pub fn has_begun(&self) -> bool {
        self.played > 0
    }

    /// Samples of it that went out.
    pub fn played(&self) -> u64 {
        self.played
    }

    /// Whole milliseconds that went out.
    pub fn played_ms(&self) -> u64 {
        ms_of(self.played, self.rate)
    }
}

#[cfg(test)]
#[path = "playout_tests.rs"]
mod tests;
