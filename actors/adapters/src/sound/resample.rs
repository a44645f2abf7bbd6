//! From one rate to another.
use super::{HEARING, TELEPHONE};
use audio_codec::BoxedResampler;
use std::{f32::consts::PI, sync::LazyLock};

/// Samples by which audio-codec's filter comes late, by its own input: half of its 24 taps.
const LATE: f64 = 11.5;

/// Piece by piece; where one ends and the next begins cannot be heard.
pub struct Resampler(Vec<Step>);

/// Telephones' 8 kHz are made from 16 kHz by a filter of our own: a shorter one takes away words' edges, or lets through what
/// 8 kHz cannot carry, and that turns into noise.
enum Step {
    Any(Box<BoxedResampler>),
    Halve(Vec<f32>),
}

impl Resampler {
    /// Fails if a rate is zero.
    pub fn new(from: u32, to: u32) -> Result<Self, String> {
        let any = |from: u32, to: u32| {
            let step = BoxedResampler::new(from as usize, to as usize);
            step.map(Box::new).map(Step::Any).map_err(|error| format!("{error:?}"))
        };
        let halve = || Step::Halve(vec![0.0; TAPS - 1]);
        Ok(Resampler(match (from, to) {
            (HEARING, TELEPHONE) => vec![halve()],
            (from, TELEPHONE) if from > TELEPHONE => vec![any(from, HEARING)?, halve()],
            (from, to) if from == to && from > 0 => Vec::new(),
            (from, to) => vec![any(from, to)?],
        }))
    }

    /// Of so many samples exactly as many as the rates say, over all pieces.
    pub fn resample(&mut self, samples: &[i16]) -> Vec<i16> {
        let mut steps = self.0.iter_mut();
        let Some(first) = steps.next() else {
            return samples.to_vec();
        };
        let sound = first.resample(samples);
        steps.fold(sound, |sound, step| step.resample(&sound))
    }

    /// Seconds by which what comes out is late. `from`: the rate of what goes in.
    fn late(&self, from: u32) -> f64 {
        let late = self.0.iter().map(|step| match step {
            Step::Any(_) => LATE / f64::from(from),
            Step::Halve(_) => (TAPS / 2 - 1) as f64 / f64::from(HEARING),
        });
        late.sum()
    }
}

impl Step {
    fn resample(&mut self, samples: &[i16]) -> Vec<i16> {
        match self {
            Step::Any(step) => step.resample(samples),
            Step::Halve(past) => {
                past.extend(samples.iter().map(|sample| f32::from(*sample)));
                let windows = past.windows(TAPS).step_by(2);
                let halved: Vec<i16> = windows.map(weigh).collect();
                past.drain(..2 * halved.len());
                halved
            }
        }
    }
}

/// Samples of 16 kHz that the low-pass looks at: 6 ms. The first weighs nothing, for it has a middle.
const TAPS: usize = 96;
/// At once, so that the machine can.
const LANES: usize = 8;

/// A sinc under a Blackman window, at 16 kHz: flat to 3.4 kHz, and 60 dB down from 4.3 kHz on. Its sum is one.
static LOW_PASS: LazyLock<[f32; TAPS]> = LazyLock::new(|| {
    const CUTOFF: f32 = 3_850.0 / HEARING as f32;
    let mut taps = [0.0; TAPS];
    let middle = TAPS as f32 / 2.0;
    for (n, tap) in taps.iter_mut().enumerate().skip(1) {
        let t = n as f32 - middle;
        let sinc = if t == 0.0 {
            2.0 * CUTOFF
        } else {
            (2.0 * PI * CUTOFF * t).sin() / (PI * t)
        };
        let phase = PI * t / middle;
        *tap = sinc * (0.42 + 0.5 * phase.cos() + 0.08 * (2.0 * phase).cos());
    }
    let sum: f32 = taps.iter().sum();
    taps.map(|tap| tap / sum)
});

fn weigh(window: &[f32]) -> i16 {
    let mut sums = [0.0; LANES];
    for (samples, taps) in window.chunks_exact(LANES).zip(LOW_PASS.chunks_exact(LANES)) {
        for lane in 0..LANES {
            sums[lane] += samples[lane] * taps[lane];
        }
    }
    // `as` keeps to the range of i16.
    sums.iter().sum::<f32>().round() as i16
}

/// All of a sound, in time with it. Nothing if a rate is zero.
pub fn whole(samples: &[i16], from: u32, to: u32) -> Vec<i16> {
    let Ok(mut resampler) = Resampler::new(from, to) else {
        return Vec::new();
    };
    let length = (samples.len() as u64 * u64::from(to)).div_ceil(u64::from(from)) as usize;
    // It comes late by what is mostly no whole sample: silence before it makes it one, or nearly.
    let late = resampler.late(from) * f64::from(from);
    let skipped = |silence: usize| (late + silence as f64) * f64::from(to) / f64::from(from);
    let off = |silence: &usize| (skipped(*silence) - skipped(*silence).round()).abs();
    let silence = (0..MOST_SILENCE).min_by(|one, other| off(one).total_cmp(&off(other)));
    let silence = silence.unwrap_or_default();
    let mut sound = resampler.resample(&vec![0; silence]);
    sound.extend(resampler.resample(samples));
    sound.extend(resampler.resample(&vec![0; late.ceil() as usize + 1]));
    sound.drain(..(skipped(silence).round() as usize).min(sound.len()));
    sound.resize(length, 0);
    sound
}

/// Samples of silence before a sound: with so many there is one that fits, to a hundredth of a sample from the
/// rates that voices and microphones have.
const MOST_SILENCE: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    fn tone(hertz: f64, rate: u32) -> Vec<i16> {
        let angle = |n: u32| TAU * hertz * f64::from(n) / f64::from(rate);
        (0..rate).map(|n| (10_000.0 * angle(n).sin()).round() as i16).collect()
    }

    /// How loud the tone is, and how far above everything else, in dB; without the edges, where a filter looks past the end.
    fn measured(sound: &[i16], hertz: f64, rate: u32) -> (f64, f64) {
        // Whole waves only: all tones here fit into 10 ms a whole number of times.
        let edge = rate as usize / 50;
        let middle = &sound[edge..sound.len() - edge];
        let part = |wave: fn(f64) -> f64| {
            let weighed = middle.iter().enumerate();
            let sum: f64 = weighed
                .map(|(n, sample)| f64::from(*sample) * wave(TAU * hertz * n as f64 / f64::from(rate)))
                .sum();
            2.0 * sum / middle.len() as f64
        };
        let (sine, cosine) = (part(f64::sin), part(f64::cos));
        let noise: f64 = middle
            .iter()
            .enumerate()
            .map(|(n, sample)| {
                let angle = TAU * hertz * n as f64 / f64::from(rate);
                (f64::from(*sample) - sine * angle.sin() - cosine * angle.cos()).powi(2)
            })
            .sum();
        let power = sine.powi(2) + cosine.powi(2);
        (power.sqrt(), 10.0 * (power * middle.len() as f64 / 2.0 / noise).log10())
    }

    #[test]
    fn a_tone_survives_the_way_up_and_down_without_its_mirror_image() {
        for hertz in [100.0, 400.0, 1_000.0, 3_000.0] {
            for rate in [16_000, 22_050, 24_000, 48_000] {
                let up = whole(&tone(hertz, 8_000), 8_000, rate);
                assert_eq!(up.len(), rate as usize);
                let (loudness, snr) = measured(&up, hertz, rate);
                assert!((9_800.0..10_200.0).contains(&loudness), "{hertz} at {rate}: {loudness}");
                assert!(snr > 30.0, "{hertz} Hz at {rate}: {snr} dB");
                let down = whole(&up, rate, 8_000);
                assert_eq!(down.len(), 8_000);
                let (loudness, snr) = measured(&down, hertz, 8_000);
                assert!(
                    (9_600.0..10_400.0).contains(&loudness),
                    "{hertz} from {rate}: {loudness}"
                );
                assert!(snr > 30.0, "{hertz} Hz from {rate}: {snr} dB");
            }
        }
    }

    #[test]
    fn what_a_phone_cannot_carry_is_taken_away() {
        for rate in [16_000, 22_050, 24_000, 48_000] {
            let got = whole(&tone(6_000.0, rate), rate, 8_000);
            assert_eq!(got.len(), 8_000);
            let loudest = got.into_iter().skip(100).take(7_800).map(i16::unsigned_abs).max();
            assert!(loudest < Some(100), "{rate}: {loudest:?}");
        }
    }

    #[test]
    fn what_a_room_can_carry_is_kept() {
        for rate in [16_000, 22_050, 24_000] {
            let (loudness, _) = measured(&whole(&tone(6_000.0, rate), rate, 48_000), 6_000.0, 48_000);
            assert!(loudness > 8_000.0, "{rate}: {loudness}");
        }
    }

    /// In time: a click stays where it was, to a fraction of a millisecond.
    #[test]
    fn a_sound_is_not_moved() {
        for (from, to) in [(16_000, 8_000), (24_000, 8_000), (8_000, 24_000), (22_050, 24_000)] {
            let mut click = vec![0; from as usize];
            click[from as usize / 2] = 20_000;
            let got = whole(&click, from, to);
            let loudest = (0..got.len()).max_by_key(|at| got[*at].unsigned_abs()).unwrap();
            let off = loudest.abs_diff(to as usize / 2) * 10_000 / to as usize;
            assert!(off <= 3, "{from} to {to}: {off} tenths of a millisecond");
        }
    }

    /// To a fraction of a sample: what is kept of a sound is the sound.
    #[test]
    fn a_tone_for_a_telephone_is_the_tone_itself() {
        let wanted = tone(440.0, 8_000);
        for rate in [16_000, 22_050, 24_000] {
            let got = whole(&tone(440.0, rate), rate, 8_000);
            let off = wanted.iter().zip(&got).map(|(wanted, got)| wanted.abs_diff(*got));
            let most = off.skip(100).take(7_800).max();
            assert!(most < Some(150), "{rate}: {most:?}");
        }
    }

    #[test]
    fn sounds_of_any_length_and_in_any_pieces_are_taken() {
        for length in 0..20 {
            assert_eq!(whole(&vec![0; length], 8_000, 24_000), vec![0; 3 * length]);
            assert_eq!(whole(&vec![0; length], 24_000, 8_000), vec![0; length.div_ceil(3)]);
        }
        let sound = tone(440.0, 22_050);
        let at_once = Resampler::new(22_050, 48_000).unwrap().resample(&sound);
        for size in [1, 7, 441, 1_000] {
            let mut resampler = Resampler::new(22_050, 48_000).unwrap();
            let pieces: Vec<i16> = sound.chunks(size).flat_map(|piece| resampler.resample(piece)).collect();
            assert!(pieces == at_once, "{size}");
        }
        assert!(Resampler::new(0, 8_000).is_err() && Resampler::new(8_000, 0).is_err());
    }
}
