//! When a number that calls show is given a rest, because networks block it or nobody answers it.
use entities::{caller_rest::CallerRestCause, number_hour::Counts, values::Moment};

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
}
