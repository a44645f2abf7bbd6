//! What a campaign has used of its own caps: its calls of the day, and its budget.
use crate::hours;
use chrono_tz::Tz;
use entities::{
    campaign::Caps,
    values::{Cents, Moment},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Calls, or messages, in the campaign's local day.
    pub dialed_today: i64,
    pub day_ends: Moment,
    pub spent_cents: i64,
    /// What is in flight may cost so much yet.
    pub reserved_cents: i64,
}

/// May it dispatch one more?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    Yes,
    /// The day's calls are used up.
    From(Moment),
    /// The calls in flight may use up the budget.
    WhenOneEnds,
    /// The budget is used up.
    Never,
}

impl Usage {
    /// `dearest`: what one more costs at most.
    pub fn allowance(&self, caps: &Caps, dearest: Cents, at: Moment) -> Allowance {
        if let Some(budget) = caps.budget_cents {
            let most = self.spent_cents + self.reserved_cents + dearest.0;
            if most > i64::from(budget.get()) {
                // A call in flight may turn out cheaper than it might have been.
                return if self.reserved_cents > 0 {
                    Allowance::WhenOneEnds
                } else {
                    Allowance::Never
                };
            }
        }
        match caps.campaign_per_day {
            Some(most) if at < self.day_ends && self.dialed_today >= i64::from(most.get()) => {
                Allowance::From(self.day_ends)
            }
            Some(_) | None => Allowance::Yes,
        }
    }

    /// One is dispatched at that moment.
    pub fn one_more(&mut self, dearest: Cents, zone: Tz, at: Moment) {
        if at >= self.day_ends {
            self.dialed_today = 0;
            self.day_ends = hours::day_of(zone, at).1;
        }
        self.dialed_today += 1;
        self.reserved_cents += dearest.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::values::Bounded;

    #[test]
    fn each_cap_says_when_there_may_be_one_more() {
        let (noon, midnight) = (Moment::from_millis(43_200_000), Moment::from_millis(86_400_000));
        // Calls a day, budget; dialled, spent, reserved; at, and one more costs 10: may there be one more?
        for (per_day, budget, (dialed, spent, reserved), at, expected) in [
            (None, None, (1_000, 1_000, 1_000), noon, Allowance::Yes),
            (Some(3), None, (2, 0, 0), noon, Allowance::Yes),
            (Some(3), None, (3, 0, 0), noon, Allowance::From(midnight)),
            // Another day.
            (Some(3), None, (3, 0, 0), midnight, Allowance::Yes),
            (None, Some(30), (0, 10, 10), noon, Allowance::Yes),
            (None, Some(30), (0, 11, 10), noon, Allowance::WhenOneEnds),
            (None, Some(30), (0, 20, 0), noon, Allowance::Yes),
            (None, Some(30), (0, 21, 0), noon, Allowance::Never),
            // The budget comes first: tomorrow brings no more of it.
            (Some(3), Some(30), (3, 30, 0), noon, Allowance::Never),
        ] {
            let caps = Caps {
                campaign_per_day: per_day.map(|most| Bounded::new(most).unwrap()),
                budget_cents: budget.map(|most| Bounded::new(most).unwrap()),
                ..Caps::default()
            };
            let usage = Usage {
                dialed_today: dialed,
                day_ends: midnight,
                spent_cents: spent,
                reserved_cents: reserved,
            };
            assert_eq!(usage.allowance(&caps, Cents(10), at), expected, "{usage:?} {caps:?}");
        }
    }

    #[test]
    fn a_new_day_begins_with_the_first_call_in_it() {
        let mut usage = Usage {
            dialed_today: 7,
            day_ends: Moment::from_millis(86_400_000),
            spent_cents: 0,
            reserved_cents: 0,
        };
        usage.one_more(Cents(10), Tz::UTC, Moment::from_millis(86_399_999));
        assert_eq!(usage.dialed_today, 8);
        usage.one_more(Cents(10), Tz::UTC, Moment::from_millis(86_400_000));
        let tomorrow = Usage {
            dialed_today: 1,
            day_ends: Moment::from_millis(2 * 86_400_000),
            spent_cents: 0,
            reserved_cents: 20,
        };
        assert_eq!(usage, tomorrow);
    }
}
