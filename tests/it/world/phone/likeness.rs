//! How alike two recordings of the same sound are, which begin at different moments.
use super::sound::{Sound, loudness};

/// What is compared at once.
const PART_MS: u64 = 300;
/// Softer than this there is nothing to compare.
const LOUD: f64 = 500.0;
/// Of the envelope: each is the loudness of so much sound.
const STEP_MS: u64 = 10;
/// So far from where the two fit as a whole a part may lie.
const NEAR_MS: i64 = 150;
/// Parts are looked for in steps of so many samples of the second, and then between them.
const COARSE: usize = 4;

/// Of each loud part of `line`, where it begins (ms) and how well it is found in `other`, which has a whole multiple of its rate:
/// 1 is the same, 0 nothing of it.
pub fn found(line: &Sound, other: &Sound) -> Vec<(u64, f64)> {
    assert!(other.rate.is_multiple_of(line.rate), "{} and {}", line.rate, other.rate);
    let offset_ms = offset_ms(&envelope(line), &envelope(other));
    let parts = (0..line.ms().saturating_sub(PART_MS)).step_by(PART_MS as usize);
    let loud = parts.filter(|at| loudness(line.part(*at, PART_MS)) > LOUD);
    let likeness_at = |at: u64| likeness(line.part(at, PART_MS), other, line.rate, at as i64 + offset_ms);
    loud.map(|at| (at, likeness_at(at))).collect()
}

fn envelope(sound: &Sound) -> Vec<f64> {
    let steps = (0..sound.ms()).step_by(STEP_MS as usize);
    steps.map(|at| loudness(sound.part(at, STEP_MS))).collect()
}

/// By how much the second is behind the first, as a whole.
fn offset_ms(first: &[f64], second: &[f64]) -> i64 {
    let fit = |offset: i64| -> f64 {
        let pairs = first.iter().enumerate().filter_map(|(at, loud)| {
            let there = usize::try_from(at as i64 + offset).ok()?;
            Some(loud * second.get(there)?)
        });
        pairs.sum()
    };
    let offsets = -(first.len() as i64)..second.len() as i64;
    let best = offsets.max_by(|one, other| fit(*one).total_cmp(&fit(*other)));
    best.unwrap_or_default() * STEP_MS as i64
}

/// The best within reach of that moment.
fn likeness(part: &[i16], other: &Sound, rate: u32, near_ms: i64) -> f64 {
    let stride = (other.rate / rate) as usize;
    let place = |ms: i64| ms * i64::from(other.rate) / 1_000;
    let span = place(near_ms - NEAR_MS)..place(near_ms + NEAR_MS);
    let at = |place: i64, every: usize| {
        let place = usize::try_from(place).ok();
        place.map_or(0.0, |place| correlation(part, &other.samples, (place, stride), every))
    };
    let coarse = span.step_by(COARSE);
    let best = coarse
        .map(|place| (place, at(place, 4)))
        .max_by(|one, other| one.1.total_cmp(&other.1));
    let Some((best, _)) = best else { return 0.0 };
    let around = best - COARSE as i64..=best + COARSE as i64;
    around.map(|place| at(place, 1)).fold(0.0, f64::max)
}

/// Of every so many samples of the part with those of the other from that place on.
fn correlation(part: &[i16], other: &[i16], (place, stride): (usize, usize), every: usize) -> f64 {
    let (mut both, mut one, mut two) = (0.0, 0.0, 0.0);
    let mut n = 0;
    while n < part.len() {
        let (here, there) = (
            f64::from(part[n]),
            other.get(place + n * stride).map_or(0.0, |sample| f64::from(*sample)),
        );
        both += here * there;
        one += here * here;
        two += there * there;
        n += every;
    }
    if one == 0.0 || two == 0.0 {
        0.0
    } else {
        both / (one * two).sqrt()
    }
}
