//! Sound as tests make and look at it: 16 bits, one channel.
use std::{f64::consts::TAU, path::Path};

/// Somebody says a sentence, and a word: G.711 mu-law, 8 kHz, as the ear's own tests have them.
pub const SENTENCE: &[u8] = include_bytes!("../../../../actors/media/src/speech/sentence.ulaw");
pub const YES: &[u8] = include_bytes!("../../../../actors/media/src/speech/yes.ulaw");

/// Above this a window of 20 ms is not silence: comfort noise and rounding stay far below.
const LOUD: f64 = 300.0;
const WINDOW_MS: u64 = 20;

#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    pub rate: u32,
    pub samples: Vec<i16>,
}

impl Sound {
    pub fn read(file: &Path) -> Self {
        let mut wav = hound::WavReader::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(wav.spec().channels, 1, "{}", file.display());
        Sound {
            rate: wav.spec().sample_rate,
            samples: wav.samples().map(Result::unwrap).collect(),
        }
    }

    pub fn silence(ms: usize) -> Self {
        Self::at_8_khz(vec![0; ms * 8])
    }

    /// At a quarter of what 16 bits hold.
    pub fn tone(hz: f64, ms: usize) -> Self {
        let sample = |n: usize| ((n as f64 * hz * TAU / 8_000.0).sin() * 8_192.0) as i16;
        Self::at_8_khz((0..ms * 8).map(sample).collect())
    }

    pub fn of_mu_law(bytes: &[u8]) -> Self {
        Self::at_8_khz(bytes.iter().map(|byte| linear(*byte)).collect())
    }

    /// What a machine says, in one run: who waits between two words is a person, and a sender that is late seems to wait.
    pub fn greeting() -> Self {
        // Without the silence before and behind the sentence.
        Self::of_mu_law(&SENTENCE[180 * 8..2_900 * 8].repeat(3))
    }

    fn at_8_khz(samples: Vec<i16>) -> Self {
        Sound { rate: 8_000, samples }
    }

    pub fn then(mut self, next: Sound) -> Self {
        assert_eq!(self.rate, next.rate);
        self.samples.extend(next.samples);
        self
    }

    /// Both at once.
    pub fn with(mut self, other: &Sound) -> Self {
        let pairs = self.samples.iter_mut().zip(&other.samples);
        pairs.for_each(|(sample, other)| *sample = sample.saturating_add(*other));
        self
    }

    pub fn write(&self, file: &Path) {
        let format = hound::WavSpec {
            channels: 1,
            sample_rate: self.rate,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut wav = hound::WavWriter::create(file, format).unwrap();
        self.samples
            .iter()
            .for_each(|sample| wav.write_sample(*sample).unwrap());
        wav.finalize().unwrap();
    }

    pub fn ms(&self) -> u64 {
        self.samples.len() as u64 * 1_000 / u64::from(self.rate)
    }

    /// A part of it, as far as there is one.
    pub fn part(&self, from_ms: u64, ms: u64) -> &[i16] {
        let at = |ms: u64| (ms * u64::from(self.rate) / 1_000) as usize;
        let end = at(from_ms + ms).min(self.samples.len());
        &self.samples[at(from_ms).min(end)..end]
    }

    /// Moments of its windows that are not silent.
    pub fn loud_ms(&self) -> Vec<u64> {
        let windows = (0..self.ms()).step_by(WINDOW_MS as usize);
        windows
            .filter(|at| loudness(self.part(*at, WINDOW_MS)) > LOUD)
            .collect()
    }

    /// How much of that part is one tone: 0 to 1. (Goertzel.)
    pub fn share_of(&self, hz: f64, from_ms: u64, ms: u64) -> f64 {
        let part = self.part(from_ms, ms);
        let energy: f64 = part.iter().map(|sample| f64::from(*sample).powi(2)).sum();
        if part.is_empty() || energy == 0.0 {
            return 0.0;
        }
        let coefficient = 2.0 * (TAU * hz / f64::from(self.rate)).cos();
        let (mut last, mut before) = (0.0, 0.0);
        for sample in part {
            (last, before) = (f64::from(*sample) + coefficient * last - before, last);
        }
        let power = last * last + before * before - coefficient * last * before;
        2.0 * power / (energy * part.len() as f64)
    }
}

/// Root of the mean square.
pub fn loudness(samples: &[i16]) -> f64 {
    let sum: f64 = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    (sum / samples.len().max(1) as f64).sqrt()
}

/// G.711 mu-law to 16 bits.
pub fn linear(byte: u8) -> i16 {
    let byte = !byte;
    let magnitude = ((i32::from(byte & 0x0f) << 3) + 0x84) << ((byte >> 4) & 7);
    let sample = if byte & 0x80 == 0 {
        magnitude - 0x84
    } else {
        0x84 - magnitude
    };
    i16::try_from(sample).unwrap()
}

/// 16 bits to G.711 mu-law.
pub fn mu_law(sample: i16) -> u8 {
    let magnitude = (i32::from(sample).abs() + 0x84).min(0x7fff);
    let exponent = (magnitude.ilog2() - 7) as u8;
    let mantissa = ((magnitude >> (exponent + 3)) & 0x0f) as u8;
    let sign = if sample < 0 { 0x80 } else { 0 };
    !(sign | exponent << 4 | mantissa)
}
