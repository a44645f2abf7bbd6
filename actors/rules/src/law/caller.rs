//! Which numbers calls show: where a number may be shown, and when one is given a rest because networks block it or nobody answers it.
use entities::{
    caller_rest::CallerRestCause,
    number_hour::Counts,
    values::{E164, Moment},
};

/// What the rules of a destination say of the number that is shown there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownThere {
    /// Such as `+3306`: no number that begins so.
    pub forbidden_prefixes: Vec<String>,
    /// Only numbers of the country that is called.
    pub same_country: bool,
}

impl ShownThere {
    pub fn allows(&self, caller: &E164, to: &E164) -> bool {
        let begins = |prefix: &String| caller.as_str().starts_with(prefix.as_str());
        let is_forbidden = self.forbidden_prefixes.iter().any(begins);
        // A number of no country is of none that is called either.
        let is_there = || caller.country().is_some_and(|country| Some(country) == to.country());
        !is_forbidden && (!self.same_country || is_there())
    }
}

/// A number is judged by so many calls at least. Source: ours; with fewer, one block is 2 % or more.
pub const JUDGED_FROM: i64 = 50;
/// Of a hundred calls so many may be blocked: five. Source: ours; a number that nothing is known of is blocked in none.
const BLOCKED_PERCENT: i64 = 5;
/// Of a hundred calls so many must be picked up, by whomever: five, judged by a hundred calls at least. Source: ours; machines pick up
/// where people do not, so that fewer are no matter of who is called.
const ANSWERED_PERCENT: i64 = 5;
const UNANSWERED_FROM: i64 = 100;
/// How far back it is looked, and how long a number rests.
pub const SPAN_SECONDS: i64 = 24 * 3_600;

/// Is a number with such calls to be given a rest?
pub fn rests(counts: Counts) -> Option<CallerRestCause> {
    let Counts {
        dialed,
        answered,
        blocked,
    } = counts;
    if dialed >= JUDGED_FROM && blocked * 100 >= dialed * BLOCKED_PERCENT {
        return Some(CallerRestCause::Blocked);
    }
    let is_unanswered = dialed >= UNANSWERED_FROM && answered * 100 < dialed * ANSWERED_PERCENT;
    is_unanswered.then_some(CallerRestCause::Unanswered)
}

/// Since when its calls count: for a day, and none of those for which it has rested already. `rested_until`: the end of its last rest.
pub fn judged_since(now: Moment, rested_until: Option<Moment>) -> Moment {
    let since = now.plus_seconds(-SPAN_SECONDS);
    rested_until.map_or(since, |until| since.max(until))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(dialed: i64, answered: i64, blocked: i64) -> Counts {
        Counts {
            dialed,
            answered,
            blocked,
        }
    }

    #[test]
    fn when_a_number_rests() {
        use CallerRestCause::*;
        for (counts, expected) in [
            (of(0, 0, 0), None),
            // Too few calls to judge by.
            (of(49, 40, 49), None),
            (of(50, 40, 2), None),
            (of(50, 40, 3), Some(Blocked)),
            (of(60, 40, 3), Some(Blocked)),
            (of(61, 40, 3), None),
            (of(1_000, 400, 49), None),
            (of(1_000, 400, 50), Some(Blocked)),
            (of(99, 0, 0), None),
            (of(100, 4, 0), Some(Unanswered)),
            (of(100, 5, 0), None),
            // The worse of the two is told.
            (of(100, 0, 5), Some(Blocked)),
        ] {
            assert_eq!(rests(counts), expected, "{counts:?}");
        }
    }

    #[test]
    fn what_a_number_has_rested_for_counts_no_more() {
        let now = Moment::from_millis(1_800_000_000_000);
        let day_ago = now.plus_seconds(-86_400);
        assert_eq!(judged_since(now, None), day_ago);
        assert_eq!(judged_since(now, Some(now.plus_seconds(-60))), now.plus_seconds(-60));
        assert_eq!(judged_since(now, Some(day_ago.plus_seconds(-1))), day_ago);
    }

    #[test]
    fn what_may_be_shown_where() {
        let shown = |prefixes: &[&str], same_country| ShownThere {
            forbidden_prefixes: prefixes.iter().map(|prefix| (*prefix).to_owned()).collect(),
            same_country,
        };
        // Source, rules, what is shown, who is called: may it?
        for (source, rules, caller, to, expected) in [
            ("no rule", shown(&[], false), "+12025550140", "+33140000000", true),
            (
                "FR, decree 2022-1313: no 06",
                shown(&["+336", "+337"], false),
                "+33612345678",
                "+33140000000",
                false,
            ),
            (
                "FR, decree 2022-1313: no 07",
                shown(&["+336", "+337"], false),
                "+33712345678",
                "+33140000000",
                false,
            ),
            (
                "FR: 01",
                shown(&["+336", "+337"], false),
                "+33140000001",
                "+33140000000",
                true,
            ),
            (
                "ES, TDF/149/2025: no mobile",
                shown(&["+346", "+347"], false),
                "+34612345678",
                "+34910000000",
                false,
            ),
            (
                "UK: a number of there",
                shown(&[], true),
                "+442071838750",
                "+442079460000",
                true,
            ),
            (
                "UK: no foreign one",
                shown(&[], true),
                "+12025550140",
                "+442079460000",
                false,
            ),
        ] {
            let (caller, to) = (caller.parse().unwrap(), to.parse().unwrap());
            assert_eq!(rules.allows(&caller, &to), expected, "{source}");
        }
    }

    proptest! {
        /// More blocks never end a rest, and more answers never begin one.
        #[test]
        fn a_rest_is_monotone(dialed in 0i64..2_000, answered in 0i64..2_000, blocked in 0i64..200) {
            if rests(of(dialed, answered, blocked)).is_some() {
                prop_assert!(rests(of(dialed, answered, blocked + 1)).is_some());
            } else {
                prop_assert!(rests(of(dialed, answered + 1, blocked)).is_none());
            }
        }
    }
}
