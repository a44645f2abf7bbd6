//! What the soak run says of its measures: level, or rising.
#[path = "../load/soak/series.rs"]
mod series;

use series::*;

fn of(value: impl Fn(f64) -> f64) -> Verdict {
    let samples: Vec<_> = (0..90).map(|n| (f64::from(n) * 30.0, value(f64::from(n)))).collect();
    verdict(&samples)
}

#[test]
fn trends_are_told_apart() {
    type Line = (&'static str, fn(f64) -> f64, Trend);
    let table: [Line; 9] = [
        ("the same all the time", |_| 100.0, Trend::Level),
        ("zero", |_| 0.0, Trend::Level),
        ("up and down", |n| 100.0 + 10.0 * (n % 2.0), Trend::Level),
        ("warms up, then stays", |n| 100.0 + n.min(29.0), Trend::Level),
        ("a little more", |n| 100.0 + n * 0.05, Trend::Level),
        ("grows", |n| 100.0 + n, Trend::Rising),
        ("grows slowly, and for ever", |n| 100.0 + n * 0.2, Trend::Rising),
        ("warms up, then falls", |n| 200.0 - n, Trend::Falling),
        ("nothing, then something", |n| (n - 40.0).max(0.0), Trend::Rising),
    ];
    for (what, value, expected) in table {
        let found = of(value);
        assert_eq!(found.trend, expected, "{what}: {found:?}");
    }
}

#[test]
fn the_change_is_that_of_the_window() {
    let found = of(|n| n);
    // From the 30th to the last, the mean of which lies in the middle.
    assert!(
        (found.mean - 59.5).abs() < 0.6 && (found.change - 59.0 / 59.5).abs() < 0.02,
        "{found:?}"
    );
}

#[test]
fn few_samples_say_nothing() {
    for count in 0..4 {
        let samples: Vec<_> = (0..count).map(|n| (f64::from(n), f64::from(n))).collect();
        assert_eq!(verdict(&samples).trend, Trend::Unknown, "{count}");
    }
    assert_eq!(verdict(&[(1.0, 1.0); 9]).trend, Trend::Unknown, "all at one moment");
}
