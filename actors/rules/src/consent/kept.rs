//! How long the law wants a consent kept.
use chrono::{Days, Months};
use entities::values::{Env, Moment, Times};

/// From giving it and from each use. Sources: § 7a UWG (Germany), 16 CFR 310.5 (United States).
const YEARS: u32 = 5;

/// Until then it is not deleted. A day more, so that five years have passed in every zone and after every 29 February.
pub fn kept_until(given_at: Moment, last_used_at: Option<Moment>) -> Moment {
    let last = last_used_at.map_or(given_at, |used| used.max(given_at));
    let months = Months::new(12 * YEARS);
    let end = last.datetime().checked_add_months(months);
    let end = end.and_then(|end| end.checked_add_days(Days::new(1)));
    // Only what lies beyond all times that can be written.
    end.map_or(Moment::from_millis(i64::MAX), Moment::from)
}

/// May it be deleted? In the sandbox always; else by the clock that shows less.
pub fn may_go(env: Env, kept_until: Moment, now: Times) -> bool {
    match env {
        Env::Test => true,
        Env::Live => now.earlier() >= kept_until,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Moment {
        Moment::parse(text).unwrap()
    }

    #[test]
    fn five_years_from_giving_and_from_each_use() {
        for (given, used, until) in [
            ("2026-11-30T10:00:00Z", None, "2031-12-01T10:00:00Z"),
            (
                "2026-11-30T10:00:00Z",
                Some("2027-03-02T08:00:00Z"),
                "2032-03-03T08:00:00Z",
            ),
            // A use before it was given is none that counts.
            (
                "2026-11-30T10:00:00Z",
                Some("2020-01-01T00:00:00Z"),
                "2031-12-01T10:00:00Z",
            ),
            ("2028-02-29T00:00:00Z", None, "2033-03-01T00:00:00Z"),
        ] {
            assert_eq!(kept_until(at(given), used.map(at)), at(until), "{given} {used:?}");
        }
        assert!(kept_until(Moment::from_millis(i64::MAX), None) >= Moment::from_millis(i64::MAX));
    }

    #[test]
    fn in_live_both_clocks_must_say_so() {
        let until = at("2031-12-01T10:00:00Z");
        let before = until.plus_millis(-1);
        let times = |ours, wall| Times {
            ours,
            wall,
            in_doubt: false,
        };
        for (env, now, expected) in [
            (Env::Live, times(before, before), false),
            (Env::Live, times(until, before), false),
            (Env::Live, times(before, until), false),
            (Env::Live, times(until, until), true),
            (Env::Test, times(before, before), true),
        ] {
            assert_eq!(may_go(env, until, now), expected, "{env} {now:?}");
        }
    }
}
