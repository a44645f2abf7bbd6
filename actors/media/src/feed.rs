//! An utterance that may still be being made while it is heard: [`Feed`] is the end of those who make it, and waits when they are far
//! ahead; [`Playing`] is the bridge's end.
use crate::playout::{Played, Playout, SoundFrame, playable};
use adapters::sound::{Pcm, Resampler};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

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
    /// Samples at its beginning that are none of the words.
    lead: u64,
    /// It was told that the first of its words went out.
    is_begun: bool,
    /// Until it is told: to whoever waits for the end.
    done: Option<oneshot::Sender<Played>>,
}

impl State {
    fn end(&mut self, played: Played) {
        if let Some(done) = self.done.take() {
            // Nobody may wait for it any more.
            let _ = done.send(played);
            // Whoever still feeds it must not keep its sound.
            self.playout.stop();
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
            lead: 0,
            is_begun: false,
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
            false => Pcm::new(rate, samples).at(fitting).samples,
        };
        Playing::of(Playout::whole(fitting, samples))
    }

    /// The next 20 ms, and whether they are the last; `None`: nothing has come yet, it is paused, or it is over.
    pub fn next_frame(&self) -> Option<SoundFrame> {
        let mut state = self.0.lock();
        state.done.as_ref().filter(|_| !state.playout.is_paused())?;
        let frame = state.playout.next_frame();
        if state.playout.is_over() {
            state.end(Played::Whole);
        }
        if state.playout.is_ready() || state.done.is_none() {
            self.0.free.notify_one();
        }
        frame
    }

    /// The first of its words has gone out since this was asked last: true once.
    pub fn begins(&self) -> bool {
        let mut state = self.0.lock();
        let begins = state.playout.played() > state.lead && !state.is_begun;
        state.is_begun |= begins;
        begins
    }

    /// Nothing more of it is heard.
    pub fn stop(&self) {
        let mut state = self.0.lock();
        let played = Played::StoppedAfter(state.playout.played_ms());
        state.end(played);
        self.0.free.notify_one();
    }

    /// Nothing of it is heard until it goes on where it stopped.
    pub fn pause(&self) {
        self.0.lock().playout.pause();
    }

    pub fn resume(&self) {
        self.0.lock().playout.resume();
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
    /// So many of the samples that come next are none of the words.
    pub fn lead(&self, samples: usize) {
        let mut state = self.shared.lock();
        let samples = samples as u64 * u64::from(state.playout.rate()) / u64::from(self.rate.max(1));
        state.lead += samples;
    }

    /// Takes as much as there is room for: so many samples, from the beginning. None if it was stopped.
    pub fn push(&mut self, samples: &[i16]) -> usize {
        let mut state = self.shared.lock();
        let playout = &mut state.playout;
        let Some(fitting) = &mut self.fitting else {
            return playout.push(samples);
        };
        let fits = playout.room() as u64 * u64::from(self.rate) / u64::from(playout.rate());
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
        if state.playout.is_over() && state.playout.has_begun() {
            // The last of it went out already, and no frame will come to tell it.
            state.end(Played::Whole);
        }
    }
}
