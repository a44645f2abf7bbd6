//! How loud somebody is, in decibels of full scale: 0 is the loudest, and everything else is below.

/// Nothing at all.
pub const SILENCE_DB: f32 = -100.0;
/// Until it is known how loud somebody usually is: what is softer is somebody else, far away.
const FLOOR_DB: f32 = -50.0;
/// Of a turn that is louder than usual so much is believed at once,
const RISES: f32 = 0.5;
/// and of one that is softer so much: a radio that is taken for a turn must not make the next one pass.
const FALLS: f32 = 0.1;

/// Of some samples of 16 bits: their mean power.
pub fn of(samples: &[i16]) -> f32 {
    let energy: f64 = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    if samples.is_empty() || energy <= 0.0 {
        return SILENCE_DB;
    }
    let power = energy / samples.len() as f64 / f64::from(i16::MIN).powi(2);
    (10.0 * power.log10()).max(f64::from(SILENCE_DB)) as f32
}

/// The mean of what was heard so far, weighed by how long it lasted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    power_ms: f64,
    ms: u32,
}

impl Mean {
    pub fn add(&mut self, db: f32, ms: u32) {
        self.power_ms += 10_f64.powf(f64::from(db) / 10.0) * f64::from(ms);
        self.ms = self.ms.saturating_add(ms);
    }

    pub fn db(&self) -> f32 {
        match self.ms {
            0 => SILENCE_DB,
            ms => (10.0 * (self.power_ms / f64::from(ms)).log10()).max(f64::from(SILENCE_DB)) as f32,
        }
    }
}

/// How loud the speaker usually is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usual(Option<f32>);

impl Usual {
    /// A turn of the speaker's was so loud.
    pub fn learn(&mut self, db: f32) {
        self.0 = Some(match self.0 {
            None => db,
            Some(usual) if db > usual => usual + (db - usual) * RISES,
            Some(usual) => usual + (db - usual) * FALLS,
        });
    }

    /// Somebody so loud may be the speaker, who may be softer than usual by `margin_db`.
    pub fn fits(&self, db: f32, margin_db: f32) -> bool {
        db >= self.0.map_or(FLOOR_DB, |usual| usual - margin_db)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loudness_is_the_power_of_full_scale() {
        assert_eq!(of(&[]), SILENCE_DB);
        assert_eq!(of(&[0; 256]), SILENCE_DB);
        assert!(of(&[i16::MIN; 256]).abs() < 0.01);
        assert!((of(&[3_277; 256]) + 20.0).abs() < 0.1, "a tenth is 20 dB less");
        assert!((of(&[104; 256]) + 50.0).abs() < 0.2);
    }

    #[test]
    fn a_mean_is_one_of_power() {
        let mut mean = Mean::default();
        assert_eq!(mean.db(), SILENCE_DB);
        mean.add(-20.0, 100);
        assert!((mean.db() + 20.0).abs() < 0.01);
        mean.add(SILENCE_DB, 100);
        assert!((mean.db() + 23.0).abs() < 0.05, "half of it was silent: {}", mean.db());
    }

    #[test]
    fn a_far_voice_is_none_of_the_speakers_and_does_not_become_it() {
        let mut usual = Usual::default();
        assert!(
            usual.fits(-45.0, 20.0) && !usual.fits(-55.0, 20.0),
            "before anybody has spoken"
        );
        usual.learn(-25.0);
        assert!(usual.fits(-44.0, 20.0) && !usual.fits(-55.0, 20.0));
        for _ in 0..3 {
            usual.learn(-55.0);
        }
        assert!(!usual.fits(-55.0, 20.0), "{usual:?}");
        usual.learn(-15.0);
        assert!(!usual.fits(-46.0, 20.0), "who comes nearer is known at once: {usual:?}");
    }
}
