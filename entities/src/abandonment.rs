//! From when on a campaign's abandoned calls hold its dispatch. Pure: the one rule for whoever plans, and for the dial's own transaction.

/// Calls of some span that a person answered, and those of them that were abandoned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    pub live: i64,
    pub abandoned: i64,
}

/// A campaign's, in the last 24 hours and in the last 30 days. Never fewer abandoned ones than there were, and never more answered ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abandonment {
    pub day: Answers,
    pub month: Answers,
}

/// What a law says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbandonmentLimit {
    /// Of a thousand answered calls so many may be abandoned.
    pub limit_permille: u32,
    /// From so many on nothing more is dialled, so that calls that are under way do not break the limit.
    pub brake_permille: u32,
    /// Over so many hours: 24, or 720.
    pub hours: u32,
}

/// One abandoned call by itself holds nothing: of one no rate can be told, and the first of a new campaign would hold it for the whole
/// span. So below 50 answered calls one does not hold a campaign whose brake is at 2 %, and two do. Source: ours.
const NO_RATE_YET: i64 = 1;

impl Answers {
    fn is_braked(self, brake_permille: u32) -> bool {
        let abandoned = self.abandoned.max(0);
        // Spans of hours that are coarse may have more abandoned calls than answered ones.
        let live = self.live.max(abandoned);
        abandoned > NO_RATE_YET && abandoned.saturating_mul(1_000) >= live.saturating_mul(brake_permille.into())
    }
}

impl Abandonment {
    pub fn is_braked(&self, by: &AbandonmentLimit) -> bool {
        let answers = if by.hours <= 24 { self.day } else { self.month };
        answers.is_braked(by.brake_permille)
    }

    pub fn is_braked_by_any(&self, of: &[AbandonmentLimit]) -> bool {
        of.iter().any(|limit| self.is_braked(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: AbandonmentLimit = AbandonmentLimit {
        limit_permille: 30,
        brake_permille: 20,
        hours: 720,
    };
    const UK: AbandonmentLimit = AbandonmentLimit {
        limit_permille: 30,
        brake_permille: 5,
        hours: 24,
    };

    fn of(live: i64, abandoned: i64) -> Abandonment {
        let answers = Answers { live, abandoned };
        Abandonment {
            day: answers,
            month: answers,
        }
    }

    #[test]
    fn what_holds_a_campaign() {
        // Where it is from, answered, abandoned: held?
        for (source, limit, live, abandoned, expected) in [
            ("16 CFR 310.4(b)(4)(i): 3 % in 30 days, brake at 2 %", US, 0, 0, false),
            ("US, 1.99 %", US, 1_005, 20, false),
            ("US, at the brake", US, 1_000, 20, true),
            ("US, below the limit and above the brake", US, 1_000, 29, true),
            ("ours: one is not a rate", US, 1, 1, false),
            ("ours: one of 49", US, 49, 1, false),
            ("ours: one of 50", US, 50, 1, false),
            ("ours: two of 49", US, 49, 2, true),
            ("ours: two of two", US, 2, 2, true),
            ("US, two of 100", US, 100, 2, true),
            ("US, two of 101", US, 101, 2, false),
            ("Ofcom: 0.5 % in 24 hours is ours", UK, 400, 2, true),
            ("UK, two of 401", UK, 401, 2, false),
            ("coarse hours: more abandoned than answered", US, 0, 5, true),
        ] {
            let found = of(live, abandoned).is_braked(&limit);
            assert_eq!(found, expected, "{source}: {abandoned} of {live}");
        }
    }

    #[test]
    fn each_limit_looks_at_its_own_span() {
        let today = Abandonment {
            day: Answers { live: 10, abandoned: 3 },
            month: Answers {
                live: 1_000,
                abandoned: 3,
            },
        };
        assert!(today.is_braked(&UK) && !today.is_braked(&US));
        assert!(today.is_braked_by_any(&[US, UK]) && !today.is_braked_by_any(&[US]));
        assert!(!today.is_braked_by_any(&[]));
    }

    /// More abandoned calls never release it, more answered ones never hold it.
    #[test]
    fn it_is_monotone() {
        for brake_permille in [0, 1, 5, 20, 30, 1_000] {
            let limit = AbandonmentLimit { brake_permille, ..US };
            for live in 0..130 {
                for abandoned in 0..=live {
                    let here = of(live, abandoned).is_braked(&limit);
                    assert!(!here || of(live, abandoned + 1).is_braked(&limit), "{live} {abandoned}");
                    assert!(here || !of(live + 1, abandoned).is_braked(&limit), "{live} {abandoned}");
                }
            }
        }
    }
}
