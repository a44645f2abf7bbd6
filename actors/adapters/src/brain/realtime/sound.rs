//! Phone sound and the wide sound of providers that know no phone: G.711 mu-law at 8 kHz, PCM of 16 bits at 24 kHz.
//!
//! Both ways go through one low-pass at 3.6 kHz: upwards it takes away the mirror images of the speech, downwards what
//! 8 kHz cannot carry and would turn into noise.
use std::{f32::consts::PI, sync::LazyLock};

/// How sound travels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    /// G.711 mu-law, 8 kHz, as on the phone.
    MuLaw,
    /// 16 bits, little endian, 24 kHz.
    Pcm,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::MuLaw => "audio/pcmu",
            Format::Pcm => "audio/pcm",
        }
    }

    pub fn bytes_per_ms(self) -> usize {
        match self {
            Format::MuLaw => 8,
            Format::Pcm => 48,
        }
    }

    /// From the phone's mu-law.
    pub fn of_phone(self, mu_law: Vec<u8>) -> Vec<u8> {
        match self {
            Format::MuLaw => mu_law,
            Format::Pcm => widen(&mu_law),
        }
    }

    /// To the phone's mu-law.
    pub fn to_phone(self, sound: Vec<u8>) -> Vec<u8> {
        match self {
            Format::MuLaw => sound,
            Format::Pcm => narrow(&sound),
        }
    }
}

/// One byte of mu-law that is silence.
pub const SILENCE: u8 = 0xff;

/// Source: ITU-T G.711, table 2.
const BIAS: i32 = 0x84;
const CLIP: i32 = 32_635;

/// One sample as mu-law.
pub fn encode(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    let magnitude = i32::from(sample).abs().min(CLIP) + BIAS;
    // The bias makes bit 7 the lowest that can be the highest one set.
    let exponent = 24 - magnitude.leading_zeros();
    let mantissa = (magnitude >> (exponent + 3)) & 0x0f;
    !(sign | (exponent << 4) as u8 | mantissa as u8)
}

/// One byte of mu-law as a sample.
pub fn decode(byte: u8) -> i16 {
    let byte = !byte;
    let exponent = (byte >> 4) & 7;
    let magnitude = (((i32::from(byte & 0x0f)) << 3) + BIAS) << exponent;
    let magnitude = (magnitude - BIAS) as i16;
    if byte & 0x80 == 0 { magnitude } else { -magnitude }
}

/// Mu-law at 8 kHz as PCM at 24 kHz, little endian: six bytes for each.
pub fn widen(mu_law: &[u8]) -> Vec<u8> {
    let samples: Vec<f32> = mu_law.iter().map(|byte| f32::from(decode(*byte))).collect();
    (0..samples.len() * STEP)
        .flat_map(|at| sample(at, &samples, STEP, STEP as f32).to_le_bytes())
        .collect()
}

/// PCM at 24 kHz, little endian, as mu-law at 8 kHz: one byte for six. A sample that was cut in two is left out.
pub fn narrow(pcm: &[u8]) -> Vec<u8> {
    let (pairs, _) = pcm.as_chunks::<2>();
    let samples: Vec<f32> = pairs.iter().map(|pair| f32::from(i16::from_le_bytes(*pair))).collect();
    (0..samples.len() / STEP)
        .map(|at| encode(sample(at * STEP, &samples, 1, 1.0)))
        .collect()
}

/// 24 kHz over 8 kHz.
const STEP: usize = 3;
/// Samples of 24 kHz on either side that the low-pass looks at: two milliseconds.
const REACH: usize = 48;

/// A sinc under a Hann window, at 24 kHz; its sum is one.
static LOW_PASS: LazyLock<[f32; 2 * REACH + 1]> = LazyLock::new(|| {
    const CUTOFF: f32 = 3_600.0 / 24_000.0;
    let mut taps = [0.0; 2 * REACH + 1];
    for (n, tap) in taps.iter_mut().enumerate() {
        let t = n as f32 - REACH as f32;
        let sinc = if t == 0.0 {
            2.0 * CUTOFF
        } else {
            (2.0 * PI * CUTOFF * t).sin() / (PI * t)
        };
        *tap = sinc * (0.5 + 0.5 * (PI * t / (REACH as f32 + 1.0)).cos());
    }
    let sum: f32 = taps.iter().sum();
    taps.map(|tap| tap / sum)
});

/// The low-passed sound at `at`, counted at 24 kHz, of samples that stand `spread` apart there, with nothing between.
fn sample(at: usize, samples: &[f32], spread: usize, gain: f32) -> i16 {
    let first = at.saturating_sub(REACH).div_ceil(spread);
    let last = ((at + REACH) / spread).min(samples.len().saturating_sub(1));
    let weighed = (first..=last).map(|n| samples[n] * LOW_PASS[n * spread + REACH - at]);
    // `as` keeps to the range of i16.
    (weighed.sum::<f32>() * gain).round() as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hertz: f32, rate: f32, seconds: f32, loudness: f32) -> Vec<i16> {
        (0..(rate * seconds) as usize)
            .map(|n| (loudness * (2.0 * PI * hertz * n as f32 / rate).sin()).round() as i16)
            .collect()
    }

    fn pcm(samples: &[i16]) -> Vec<u8> {
        samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
    }

    /// Signal over what was added to it, in dB, without the edges, where the low-pass looks past the end.
    fn snr(wanted: &[i16], got: &[i16]) -> f32 {
        assert_eq!(wanted.len(), got.len());
        let pairs = || wanted.iter().zip(got).skip(100).take(wanted.len() - 200);
        let signal: f32 = pairs().map(|(wanted, _)| f32::from(*wanted).powi(2)).sum();
        let noise: f32 = pairs()
            .map(|(wanted, got)| (f32::from(*wanted) - f32::from(*got)).powi(2))
            .sum();
        10.0 * (signal / noise).log10()
    }

    #[test]
    fn mu_law_is_that_of_the_standard() {
        // Source: ITU-T G.711, table 2a and 2b: the decision values' ends, by code word.
        for (byte, sample) in [
            (0x80, 32_124),
            (0x00, -32_124),
            (0xff, 0),
            (0x7f, 0),
            (0xfe, 8),
            (0x7e, -8),
            (0x8f, 16_764),
        ] {
            assert_eq!(decode(byte), sample, "{byte:#x}");
        }
        for byte in 0..=255 {
            // There are two zeros; the negative one is never written.
            let expected = if byte == 0x7f { 0xff } else { byte };
            assert_eq!(encode(decode(byte)), expected, "{byte:#x}");
        }
        assert_eq!([encode(i16::MAX), encode(i16::MIN), encode(0)], [0x80, 0x00, SILENCE]);
    }

    #[test]
    fn mu_law_keeps_loud_and_soft_tones() {
        for loudness in [300.0, 3_000.0, 30_000.0] {
            let wanted = tone(440.0, 8_000.0, 1.0, loudness);
            let got: Vec<i16> = wanted.iter().map(|sample| decode(encode(*sample))).collect();
            assert!(snr(&wanted, &got) > 30.0, "{loudness}: {} dB", snr(&wanted, &got));
        }
    }

    #[test]
    fn a_tone_survives_the_way_up_and_down() {
        for hertz in [100.0, 440.0, 1_000.0, 3_000.0] {
            let wanted: Vec<u8> = tone(hertz, 8_000.0, 1.0, 10_000.0).into_iter().map(encode).collect();
            let wide = widen(&wanted);
            assert_eq!(wide.len(), 6 * wanted.len());
            let got = narrow(&wide);
            let [wanted, got] = [wanted, got].map(|sound| sound.into_iter().map(decode).collect::<Vec<_>>());
            assert!(snr(&wanted, &got) > 30.0, "{hertz} Hz: {} dB", snr(&wanted, &got));
        }
    }

    #[test]
    fn widened_sound_is_the_tone_itself_and_not_its_mirror_image() {
        let narrow: Vec<u8> = tone(1_000.0, 8_000.0, 1.0, 10_000.0).into_iter().map(encode).collect();
        let wide = widen(&narrow);
        let got: Vec<i16> = wide
            .as_chunks::<2>()
            .0
            .iter()
            .map(|pair| i16::from_le_bytes(*pair))
            .collect();
        assert!(snr(&tone(1_000.0, 24_000.0, 1.0, 10_000.0), &got) > 30.0);
    }

    #[test]
    fn what_a_phone_cannot_carry_is_taken_away() {
        let got = narrow(&pcm(&tone(6_000.0, 24_000.0, 1.0, 10_000.0)));
        assert_eq!(got.len(), 8_000);
        let loudest = got
            .into_iter()
            .skip(100)
            .take(7_800)
            .map(|byte| decode(byte).unsigned_abs())
            .max();
        assert!(loudest < Some(100), "{loudest:?}");
    }

    #[test]
    fn sounds_of_any_length_are_taken() {
        for length in 0..20 {
            assert_eq!(widen(&vec![SILENCE; length]), vec![0; 6 * length]);
            assert_eq!(narrow(&vec![0; length]), vec![SILENCE; length / 6]);
        }
    }
}
