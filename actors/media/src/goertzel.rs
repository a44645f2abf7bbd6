//! How much of a sound is one tone. Source: Goertzel's algorithm, as in ITU-T Q.24's receivers.
use std::f64::consts::TAU;

/// Tones that are looked for in a telephone's sound, and how far apart: 20 ms see 50 Hz as one, and 10 Hz beside a tone it is still 0.87 pure.
const LOWEST: f64 = 380.0;
const HIGHEST: f64 = 2_300.0;
const APART: f64 = 20.0;

/// One frequency's coefficient at one rate.
#[derive(Clone, Copy, Debug)]
pub struct Tuned(f64);

impl Tuned {
    pub fn to(hertz: f64, rate: f64) -> Self {
        Tuned(2.0 * (TAU * hertz / rate).cos())
    }

    /// The square of the tone's part in the sum over all samples: (amplitude · count / 2)² for a tone alone.
    pub fn energy(self, samples: &[i16]) -> f64 {
        let (mut last, mut before) = (0.0, 0.0);
        for sample in samples {
            let next = f64::from(*sample) + self.0 * last - before;
            (before, last) = (last, next);
        }
        last * last + before * before - self.0 * last * before
    }

    /// The tone's power in a sound: half of its amplitude's square.
    pub fn power(self, samples: &[i16]) -> f64 {
        let count = samples.len().max(1) as f64;
        2.0 * self.energy(samples) / (count * count)
    }
}

/// The mean of the squares.
pub fn power(samples: &[i16]) -> f64 {
    let sum: f64 = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    sum / samples.len().max(1) as f64
}

/// How much of a sound is that tone, 0 to about 1.
pub fn purity_of(samples: &[i16], hertz: f64, rate: f64) -> f64 {
    Tuned::to(hertz, rate).power(samples) / power(samples).max(1.0)
}

/// The strongest of all tones from 380 to 2300 Hz.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Strongest {
    pub hertz: f64,
    /// How much of the sound it is.
    pub purity: f64,
}

/// Looks for the strongest tone in 20 ms of a telephone's sound.
#[derive(Debug)]
pub struct Comb(Vec<(f64, Tuned)>);

impl Comb {
    pub fn new(rate: f64) -> Self {
        let count = ((HIGHEST - LOWEST) / APART) as u32;
        let teeth = (0..=count).map(|at| LOWEST + APART * f64::from(at));
        Comb(teeth.map(|hertz| (hertz, Tuned::to(hertz, rate))).collect())
    }

    pub fn strongest(&self, samples: &[i16]) -> Strongest {
        let of_all = power(samples).max(1.0);
        let mut strongest = Strongest::default();
        for (hertz, tuned) in &self.0 {
            let purity = tuned.power(samples) / of_all;
            if purity > strongest.purity {
                strongest = Strongest { hertz: *hertz, purity };
            }
        }
        strongest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hertz: f64, count: u32) -> Vec<i16> {
        let angle = |n: u32| TAU * hertz * f64::from(n) / 8_000.0;
        (0..count).map(|n| (8_000.0 * angle(n).sin()) as i16).collect()
    }

    #[test]
    fn a_tone_is_found_where_it_is() {
        let comb = Comb::new(8_000.0);
        for hertz in [400.0, 440.0, 1_000.0, 1_100.0, 2_100.0, 2_260.0] {
            let strongest = comb.strongest(&tone(hertz, 160));
            assert!((strongest.hertz - hertz).abs() <= APART, "{hertz}: {strongest:?}");
            assert!(strongest.purity > 0.85, "{hertz}: {strongest:?}");
        }
        // Beyond the comb there is nothing, and of two tones each is half.
        assert!(comb.strongest(&tone(3_000.0, 160)).purity < 0.1);
        let pairs = tone(700.0, 160).into_iter().zip(tone(1_200.0, 160));
        let both: Vec<i16> = pairs.map(|(one, other)| one + other).collect();
        assert!((0.4..0.6).contains(&comb.strongest(&both).purity));
        assert_eq!(comb.strongest(&[0; 160]), Strongest::default());
    }

    #[test]
    fn a_tones_power_is_half_of_its_square() {
        let sound = tone(1_000.0, 800);
        let power_of = Tuned::to(1_000.0, 8_000.0).power(&sound);
        for power in [power_of, power(&sound)] {
            assert!((power / 32e6 - 1.0).abs() < 0.01, "{power}");
        }
        assert!(purity_of(&sound, 1_000.0, 8_000.0) > 0.99 && purity_of(&sound, 1_500.0, 8_000.0) < 0.01);
        assert_eq!((power(&[]), Tuned::to(1.0, 2.0).power(&[])), (0.0, 0.0));
    }
}
