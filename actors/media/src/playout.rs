//! What is being said: sound on its way from whoever makes it to the connection, which takes 20 ms at a time.
//!
//! It may be played while it is still being made. [`Playout`] is what has come and not been heard; [`Feed`] is the end of those
//! who make it, and waits when they are far ahead; [`Playing`] is the bridge's end. Whatever is played is told to the sample: who
//! cuts in has heard so much and no more.
use adapters::sound::{Resampler, ms_of};
use std::{
    collections::VecDeque,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, oneshot};

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
fn playable(rate: u32) -> u32 {
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
        }
    }

    /// Sound that is there.
    pub fn whole(rate: u32, samples: Arc<[i16]>) -> Self {
        Playout {
            rate,
            waiting: Waiting::Whole(samples, 0),
            played: 0,
            is_finished: true,
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
    fn is_ready(&self) -> bool {
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

    /// The next 20 ms; `None`: nothing has come yet. What comes too late leaves a pause, and so does the end of the last frame.
    pub fn next_frame(&mut self) -> Option<SoundFrame> {
        if self.played == 0 && self.waiting.len() == 0 && !self.is_finished {
            return None;
        }
        let size = frame(self.rate);
        let mut samples = self.waiting.take(size);
        self.played += samples.len() as u64;
        samples.resize(size, 0);
        let rate = self.rate;
        Some(SoundFrame { rate, samples })
    }

    /// Whole milliseconds that went out.
    pub fn played_ms(&self) -> u64 {
        ms_of(self.played, self.rate)
    }
}

/// What is shared between a feed and the bridge.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// A feed that waits may go on.
    free: Notify,
}

#[derive(Debug)]
struct State {
    playout: Playout,
    /// Until it is told: to whoever waits for the end.
    done: Option<oneshot::Sender<Played>>,
}

impl State {
    fn end(&mut self, played: Played) {
        if let Some(done) = self.done.take() {
            // Nobody may wait for it any more.
            let _ = done.send(played);
            // Whoever still feeds it must not keep its sound.
            self.playout.waiting = Waiting::Pieces(VecDeque::new());
            self.playout.finish();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bridge's end of an utterance.
#[derive(Debug)]
pub struct Playing(Arc<Shared>);

impl Playing {
    fn of(playout: Playout) -> (Self, oneshot::Receiver<Played>) {
        let (done, played) = oneshot::channel();
        let state = State {
            playout,
            done: Some(done),
        };
        let shared = Shared {
            state: Mutex::new(state),
            free: Notify::new(),
        };
        (Playing(Arc::new(shared)), played)
    }

    /// Sound that comes by the feed, at that rate.
    pub fn fed(rate: u32) -> (Self, Feed, oneshot::Receiver<Played>) {
        let (playing, played) = Playing::of(Playout::new(playable(rate)));
        let fitting = match playable(rate) {
            fitting if fitting == rate => None,
            fitting => Resampler::new(rate, fitting).ok(),
        };
        let feed = Feed {
            shared: playing.0.clone(),
            rate,
            fitting,
        };
        (playing, feed, played)
    }

    /// Sound that is there.
    pub fn whole(rate: u32, samples: Arc<[i16]>) -> (Self, oneshot::Receiver<Played>) {
        let fitting = playable(rate);
        let samples = match fitting == rate {
            true => samples,
            false => adapters::sound::Pcm::new(rate, samples).at(fitting).samples,
        };
        Playing::of(Playout::whole(fitting, samples))
    }

    /// The next 20 ms, and whether they are the last; `None`: nothing has come yet, or it is over.
    pub fn next_frame(&self) -> Option<SoundFrame> {
        let mut state = self.0.lock();
        state.done.as_ref()?;
        let frame = state.playout.next_frame();
        if state.playout.is_over() {
            state.end(Played::Whole);
        }
        if state.playout.is_ready() || state.done.is_none() {
            self.0.free.notify_one();
        }
        frame
    }

    /// Nothing more of it is heard.
    pub fn stop(&self) {
        let mut state = self.0.lock();
        let played = Played::StoppedAfter(state.playout.played_ms());
        state.end(played);
        self.0.free.notify_one();
    }

    /// Its end was told.
    pub fn is_over(&self) -> bool {
        self.0.lock().done.is_none()
    }
}

/// Where an utterance comes from, as it is made. Dropping it ends what is said after what has come.
pub struct Feed {
    shared: Arc<Shared>,
    /// Of what is fed.
    rate: u32,
    /// To the rate that it is played at, if that is another.
    fitting: Option<Resampler>,
}

impl Feed {
    /// Takes as much as there is room for: so many samples, from the beginning. None if it was stopped.
    pub fn push(&mut self, samples: &[i16]) -> usize {
        let mut state = self.shared.lock();
        let playout = &mut state.playout;
        let Some(fitting) = &mut self.fitting else {
            return playout.push(samples);
        };
        let fits = playout.room() as u64 * u64::from(self.rate) / u64::from(playout.rate);
        let taken = samples.len().min(usize::try_from(fits).unwrap_or(usize::MAX));
        playout.push(&fitting.resample(&samples[..taken]));
        taken
    }

    /// Waits until there is room for a second of it. `false`: it was stopped, and nobody hears it any more.
    pub async fn ready(&self) -> bool {
        loop {
            {
                let state = self.shared.lock();
                if state.done.is_none() || state.playout.is_ready() {
                    return state.done.is_some();
                }
            }
            self.shared.free.notified().await;
        }
    }

    /// All of it, however long that takes. `false`: it was stopped before.
    pub async fn push_all(&mut self, mut samples: &[i16]) -> bool {
        while !samples.is_empty() {
            if !self.ready().await {
                return false;
            }
            samples = &samples[self.push(samples)..];
        }
        true
    }

    /// That was all.
    pub fn finish(self) {}
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.playout.finish();
        if state.playout.is_over() && state.playout.played > 0 {
            // The last of it went out already, and no frame will come to tell it.
            state.end(Played::Whole);
        }
    }
}

#[cfg(test)]
#[path = "playout_tests.rs"]
mod tests;
