//! Is a measure level, or does it rise? Pure; its tests run with all others.

/// A change over the window of less than this share of the mean is no change.
const LEVEL: f64 = 0.05;
/// Fewer samples say nothing.
const FEWEST: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    Level,
    Rising,
    Falling,
    /// Too few samples.
    Unknown,
}

/// What the last two thirds of the samples say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    pub mean: f64,
    /// By the line of least squares, from the window's begin to its end, as a share of the mean.
    pub change: f64,
    pub trend: Trend,
}

/// Of samples as (seconds, value), in order.
pub fn verdict(samples: &[(f64, f64)]) -> Verdict {
    let window = last_two_thirds(samples);
    let count = window.len() as f64;
    let mean_of = |of: fn(&(f64, f64)) -> f64| window.iter().map(of).sum::<f64>() / count.max(1.0);
    let (middle, mean) = (mean_of(|sample| sample.0), mean_of(|sample| sample.1));
    let (mut above, mut below) = (0.0, 0.0);
    for (at, value) in window {
        above += (at - middle) * (value - mean);
        below += (at - middle) * (at - middle);
    }
    let span = window.last().map_or(0.0, |last| last.0) - window.first().map_or(0.0, |first| first.0);
    if window.len() < FEWEST || below == 0.0 {
        let (change, trend) = (0.0, Trend::Unknown);
        return Verdict { mean, change, trend };
    }
    // What is zero all the time is level.
    let change = if mean == 0.0 { 0.0 } else { above / below * span / mean };
    let trend = match change {
        change if change > LEVEL => Trend::Rising,
        change if change < -LEVEL => Trend::Falling,
        _ => Trend::Level,
    };
    Verdict { mean, change, trend }
}

/// By time: the first third is for warming up, and for kills.
fn last_two_thirds(samples: &[(f64, f64)]) -> &[(f64, f64)] {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return samples;
    };
    let begin = first.0 + (last.0 - first.0) / 3.0;
    let at = samples.partition_point(|sample| sample.0 < begin);
    samples.get(at..).unwrap_or_default()
}
