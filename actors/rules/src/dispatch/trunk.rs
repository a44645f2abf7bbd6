//! What a trunk takes: halved when it says that it has no room, and growing back while it says nothing.
use super::pace::Pace;
use entities::values::Moment;

/// One trunk's rate.
#[derive(Debug)]
pub struct Trunk {
    pub pace: Pace,
    most: f64,
    /// When the rate was changed last.
    changed_at: Option<Moment>,
}

/// A rate that was halved grows after so long without a refusal, by this factor.
const GROWS_AFTER_SECONDS: i64 = 5;
const GROWTH: f64 = 1.25;
/// Refusals within one second are one: they answer to calls of one rate.
const SETTLES_AFTER_SECONDS: i64 = 1;
/// Calls a second that are always tried.
const LEAST: f64 = 0.1;

impl Trunk {
    pub fn new(most: f64) -> Self {
        Trunk {
            pace: Pace::new(most),
            most,
            changed_at: None,
        }
    }

    /// It refused a call for pacing.
    pub fn congested(&mut self, now: Moment) {
        let is_same = |at: Moment| now < at.plus_seconds(SETTLES_AFTER_SECONDS);
        if !self.changed_at.is_some_and(is_same) {
            self.pace.set_rate((self.pace.rate() / 2.0).max(LEAST));
            self.changed_at = Some(now);
        }
    }

    /// Time has passed.
    pub fn grow(&mut self, now: Moment) {
        if self.grows_at().is_some_and(|at| now >= at) {
            let rate = (self.pace.rate() * GROWTH).min(self.most);
            self.pace.set_rate(rate);
            self.changed_at = (rate < self.most).then_some(now);
        }
    }

    /// When it may grow; `None`: it has all that it should.
    pub fn grows_at(&self) -> Option<Moment> {
        self.changed_at.map(|at| at.plus_seconds(GROWS_AFTER_SECONDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_halves_and_silence_grows_back() {
        let start = Moment::from_millis(1_000_000);
        let mut trunk = Trunk::new(100.0);
        trunk.congested(start);
        assert_eq!(trunk.pace.rate(), 50.0);
        trunk.congested(start.plus_millis(999));
        assert_eq!(trunk.pace.rate(), 50.0, "answers to calls that were placed before");
        trunk.congested(start.plus_seconds(1));
        assert_eq!(trunk.pace.rate(), 25.0);
        let (mut now, mut steps) = (start.plus_seconds(1), 0);
        while trunk.grows_at().is_some() {
            now = now.plus_seconds(GROWS_AFTER_SECONDS);
            trunk.grow(now);
            steps += 1;
            assert!(steps < 10, "four times the rate in seven steps");
        }
        assert_eq!(trunk.pace.rate(), 100.0);
    }

    #[test]
    fn something_is_always_tried() {
        let mut trunk = Trunk::new(1.0);
        for second in 0..100 {
            trunk.congested(Moment::from_millis(second * 1000));
        }
        assert_eq!(trunk.pace.rate(), LEAST);
    }
}
