//! Pieces of an utterance as one sound: what follows is heard as soon as what was before it has been.
use super::{
    ahead::{Fetched, Piece},
    parts::Parts,
};
use adapters::sound::{PcmStream, Resampler, Sound, Timings};
use futures_util::{
    StreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::Instant,
};

/// At the rate of the first one. It ends when nobody can add a piece any more; each is counted while it passes.
pub fn chain(first: Fetched, more: Option<mpsc::UnboundedReceiver<Piece>>, parts: Parts) -> PcmStream {
    let rate = match &first.sound {
        Sound::Whole(sound) => sound.rate,
        Sound::Stream(stream) => stream.rate,
    };
    parts.set_rate(rate);
    // What leads the first one leads all of them.
    let lead = match &first.sound {
        Sound::Whole(_) => Arc::default(),
        Sound::Stream(stream) => stream.lead.clone(),
    };
    let current = Current::of(first, rate);
    parts.time(0, &current.timings);
    let chain = Chain {
        rate,
        parts,
        place: 0,
        current: Some(current),
        more,
        heard_until: None,
    };
    let chunks = stream::unfold(chain, |mut chain| async move { Some((chain.next().await?, chain)) });
    PcmStream {
        lead,
        ..PcmStream::new(rate, chunks.boxed())
    }
}

struct Chain {
    rate: u32,
    parts: Parts,
    /// Of the current one.
    place: usize,
    current: Option<Current>,
    more: Option<mpsc::UnboundedReceiver<Piece>>,
    /// Whoever plays it is ahead of what is heard: until then there is something to hear.
    heard_until: Option<Instant>,
}

struct Current {
    chunks: BoxStream<'static, Vec<i16>>,
    /// None where it has the rate of all.
    fitting: Option<Resampler>,
    rate: u32,
    lead: Arc<AtomicU64>,
    broke_off: Arc<AtomicBool>,
    timings: Timings,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Current {
    fn of(fetched: Fetched, rate: u32) -> Self {
        let Fetched { sound, permit } = fetched;
        let stream = match sound {
            Sound::Whole(sound) => PcmStream::new(rate, stream::once(ready(sound.at(rate).samples.to_vec())).boxed()),
            Sound::Stream(stream) => stream,
        };
        let mut current = Current {
            rate: stream.rate,
            chunks: stream.chunks,
            fitting: None,
            lead: stream.lead,
            broke_off: stream.broke_off,
            timings: stream.timings,
            _permit: permit,
        };
        if current.rate != rate {
            match Resampler::new(current.rate, rate) {
                Ok(fitting) => current.fitting = Some(fitting),
                // Of rates that are none nothing comes.
                Err(_) => {
                    current.chunks = stream::empty().boxed();
                    current.broke_off.store(true, Ordering::Relaxed);
                }
            }
        }
        current
    }

    fn fit(&mut self, samples: Vec<i16>) -> Vec<i16> {
        match &mut self.fitting {
            None => samples,
            Some(fitting) => fitting.resample(&samples),
        }
    }

    /// Samples of the common rate.
    fn lead(&self, rate: u32) -> u64 {
        let lead = self.lead.load(Ordering::Relaxed);
        lead.saturating_mul(u64::from(rate)) / u64::from(self.rate.max(1))
    }
}

impl Chain {
    async fn next(&mut self) -> Option<Vec<i16>> {
        loop {
            let Some(current) = &mut self.current else {
                self.follow().await?;
                continue;
            };
            match current.chunks.next().await {
                Some(samples) => {
                    let samples = current.fit(samples);
                    let lead = current.lead(self.rate);
                    self.parts.came(self.place, samples.len(), lead);
                    self.pass(samples.len());
                    if !samples.is_empty() {
                        return Some(samples);
                    }
                }
                None => {
                    self.parts.ended(self.place, current.broke_off.load(Ordering::Relaxed));
                    self.current = None;
                    self.place += 1;
                }
            }
        }
    }

    /// The next one. None: that was all.
    async fn follow(&mut self) -> Option<()> {
        let mut piece = self.more.as_mut()?.recv().await?;
        let now = Instant::now();
        piece.need(self.heard_until.map_or(now, |until| until.max(now)));
        piece.arrive().await;
        match piece.take() {
            Some(fetched) => {
                let current = Current::of(fetched, self.rate);
                self.parts.time(self.place, &current.timings);
                self.current = Some(current);
            }
            None => {
                self.parts.ended(self.place, true);
                self.place += 1;
            }
        }
        Some(())
    }

    fn pass(&mut self, samples: usize) {
        let now = Instant::now();
        let from = self.heard_until.map_or(now, |until| until.max(now));
        let lasts = Duration::from_secs_f64(samples as f64 / f64::from(self.rate.max(1)));
        self.heard_until = Some(from + lasts);
    }
}
