//! Sound as it is passed around inside: 16 bits, one channel, at a rate that it names.
//!
//! What a microphone picks up has 16 kHz, what an agent says the rate of its voice, 24 kHz at most. Telephones' mu-law exists
//! where a protocol wants it, and in what is kept for a recording that is made of words: a second of it is 8 KB, of 24 kHz 48 KB.
pub mod mu_law;
mod resample;
mod timings;
mod wav;

pub use resample::Resampler;
pub use timings::{SaidBy, Timings, WordEnd};
pub use wav::wav;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
};

/// Samples per second of what is heard.
pub const HEARING: u32 = 16_000;
/// Samples per second of a telephone, and of a recording that is made of words.
pub const TELEPHONE: u32 = 8_000;

/// Some sound. Cloning is cheap: copies share the samples.
#[derive(Clone, PartialEq)]
pub struct Pcm {
    /// Samples per second.
    pub rate: u32,
    pub samples: Arc<[i16]>,
}

impl fmt::Debug for Pcm {
    /// What somebody said belongs into no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pcm({} samples at {} Hz)", self.samples.len(), self.rate)
    }
}

impl Pcm {
    pub fn new(rate: u32, samples: impl Into<Arc<[i16]>>) -> Self {
        let samples = samples.into();
        Pcm { rate, samples }
    }

    /// Of a telephone: G.711 mu-law, 8 kHz.
    pub fn of_mu_law(bytes: &[u8]) -> Self {
        Pcm::new(TELEPHONE, bytes.iter().copied().map(mu_law::decode).collect::<Vec<_>>())
    }

    /// For a telephone, and for a recording: G.711 mu-law, 8 kHz.
    pub fn to_mu_law(&self) -> Bytes {
        let narrow = self.at(TELEPHONE);
        narrow.samples.iter().copied().map(mu_law::encode).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Whole milliseconds.
    pub fn ms(&self) -> u64 {
        ms_of(self.samples.len() as u64, self.rate)
    }

    /// The same at another rate, as long and in time with it. Nothing if either rate is zero.
    pub fn at(&self, rate: u32) -> Pcm {
        match rate == self.rate {
            true => self.clone(),
            false => Pcm::new(rate, resample::whole(&self.samples, self.rate, rate)),
        }
    }

    /// Of a longer sound its end.
    pub fn last_ms(&self, ms: u64) -> Pcm {
        let most = u64::from(self.rate).saturating_mul(ms) / 1_000;
        let skipped = self
            .samples
            .len()
            .saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        match skipped {
            0 => self.clone(),
            skipped => Pcm::new(self.rate, &self.samples[skipped..]),
        }
    }
}

/// How long so many samples sound, in whole milliseconds.
pub fn ms_of(samples: u64, rate: u32) -> u64 {
    samples.saturating_mul(1_000) / u64::from(rate.max(1))
}

/// Sound that is still being made. Whoever makes it ends it in time: while nothing comes, its listener hears a pause.
pub struct PcmStream {
    pub rate: u32,
    /// Pieces of any length, in their order. Dropping it calls the rest off.
    pub chunks: BoxStream<'static, Vec<i16>>,
    /// Samples that came before the words and are none of them.
    pub lead: Arc<AtomicU64>,
    /// It ended, and not all of it had come. Known when it has ended.
    pub broke_off: Arc<AtomicBool>,
    /// When its words have been heard, counted from the first of them, where whoever makes the sound tells that.
    pub timings: Timings,
}

impl PcmStream {
    pub fn new(rate: u32, chunks: BoxStream<'static, Vec<i16>>) -> Self {
        PcmStream {
            rate,
            chunks,
            lead: Arc::default(),
            broke_off: Arc::default(),
            timings: Timings::default(),
        }
    }
}

impl fmt::Debug for PcmStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PcmStream")
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}

/// Of some words.
#[derive(Debug)]
pub enum Sound {
    Whole(Pcm),
    Stream(PcmStream),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_knows_how_long_it_is_and_what_its_end_is() {
        let sound = Pcm::new(16_000, (0..160).collect::<Vec<i16>>());
        assert_eq!((sound.ms(), sound.is_empty()), (10, false));
        let end = sound.last_ms(4);
        assert_eq!((end.ms(), end.samples[0]), (4, 96));
        assert_eq!(sound.last_ms(10), sound);
        assert_eq!(sound.last_ms(u64::MAX), sound);
        assert_eq!(
            Pcm::new(22_050, vec![0; 22_049]).ms(),
            999,
            "what is not whole does not count"
        );
        assert_eq!(Pcm::new(0, vec![0; 7]).at(8_000), Pcm::new(8_000, vec![]));
    }

    #[test]
    fn what_is_said_stands_in_no_log() {
        assert_eq!(
            format!("{:?}", Pcm::new(8_000, vec![77; 3])),
            "Pcm(3 samples at 8000 Hz)"
        );
    }

    #[test]
    fn a_telephones_sound_comes_back_as_it_was() {
        let bytes: Vec<u8> = (0..=255).filter(|byte| *byte != 0x7f).collect();
        assert_eq!(Pcm::of_mu_law(&bytes).to_mu_law(), bytes);
        // Twice as many samples of 16 kHz are as many bytes of mu-law.
        assert_eq!(Pcm::new(16_000, vec![0; 320]).to_mu_law(), vec![mu_law::SILENCE; 160]);
    }
}
