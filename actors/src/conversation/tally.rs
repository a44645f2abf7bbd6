//! What is known of a sound only when it has come: how long it is, and what a recording keeps of it.
use adapters::sound::{PcmStream, Resampler, TELEPHONE, ms_of, mu_law};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sound of one utterance that is passed on: ten minutes. What is beyond is not said.
const LONGEST_SECONDS: u64 = 600;

/// Counts a sound that comes piece by piece.
pub struct Tally(Arc<Mutex<Count>>);

struct Count {
    rate: u32,
    samples: u64,
    /// To a recording's rate; none where nothing is recorded.
    narrow: Option<Resampler>,
    kept: Vec<u8>,
}

/// Of what has come.
#[derive(Debug, PartialEq)]
pub struct Counted {
    pub ms: u64,
    /// G.711 mu-law of 8 kHz, where it is kept.
    pub audio: Option<Bytes>,
}

fn lock(count: &Mutex<Count>) -> MutexGuard<'_, Count> {
    count.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Count {
    /// `false`: no more of it is wanted.
    fn add(&mut self, samples: &[i16]) -> bool {
        if self.samples >= LONGEST_SECONDS * u64::from(self.rate) {
            return false;
        }
        self.samples += samples.len() as u64;
        if let Some(narrow) = &mut self.narrow {
            let samples = narrow.resample(samples);
            self.kept.extend(samples.into_iter().map(mu_law::encode));
        }
        true
    }
}

impl Tally {
    /// The same sound, which is counted while it is taken.
    pub fn of(stream: PcmStream, keeps_sound: bool) -> (PcmStream, Self) {
        let PcmStream {
            rate,
            chunks,
            lead,
            broke_off,
            timings,
        } = stream;
        let narrow = keeps_sound.then(|| Resampler::new(rate, TELEPHONE).ok()).flatten();
        let count = Arc::new(Mutex::new(Count {
            rate,
            samples: 0,
            narrow,
            kept: Vec::new(),
        }));
        let counting = stream::unfold((chunks, count.clone()), |(mut chunks, count)| async move {
            let next = chunks.next().await;
            let mut counted = lock(&count);
            let samples = next.filter(|samples| counted.add(samples));
            drop(counted);
            Some((samples?, (chunks, count)))
        });
        let chunks = counting.boxed();
        let stream = PcmStream {
            rate,
            chunks,
            lead,
            broke_off,
            timings,
        };
        (stream, Tally(count))
    }

    /// What has come; of the kept sound nothing remains here.
    pub fn take(&self) -> Counted {
        let mut count = lock(&self.0);
        let kept = std::mem::take(&mut count.kept);
        Counted {
            ms: ms_of(count.samples, count.rate),
            audio: count.narrow.is_some().then(|| Bytes::from(kept)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(rate: u32, chunks: Vec<Vec<i16>>) -> PcmStream {
        let chunks = stream::iter(chunks).boxed();
        PcmStream::new(rate, chunks)
    }

    #[tokio::test]
    async fn what_is_passed_on_is_counted_and_kept_as_a_recording_has_it() {
        for (keeps_sound, sizes) in [(true, [800, 1_600]), (false, [0, 0])] {
            let (mut passed, tally) = Tally::of(stream(24_000, vec![vec![1_000; 2_400]; 2]), keeps_sound);
            for (nth, size) in sizes.into_iter().enumerate() {
                assert_eq!(passed.chunks.next().await, Some(vec![1_000; 2_400]));
                let count = lock(&tally.0);
                assert_eq!((count.samples, count.kept.len()), (2_400 * (nth as u64 + 1), size));
            }
            assert_eq!(passed.chunks.next().await, None);
            let Counted { ms, audio } = tally.take();
            assert_eq!((ms, audio.is_some()), (200, keeps_sound));
            let loud = audio.unwrap_or_default()[800.min(sizes[1])..]
                .iter()
                .all(|byte| mu_law::decode(*byte) > 950);
            assert!(loud, "it is the same sound");
        }
    }

    #[tokio::test]
    async fn a_sound_without_an_end_ends() {
        let minute = vec![0; 8_000 * 60];
        let endless = stream::repeat(minute).boxed();
        let (passed, tally) = Tally::of(PcmStream::new(8_000, endless), true);
        assert_eq!(passed.chunks.count().await, 10);
        let counted = tally.take();
        assert_eq!(
            (counted.ms, counted.audio.map(|sound| sound.len())),
            (600_000, Some(600 * 8_000))
        );
    }
}
