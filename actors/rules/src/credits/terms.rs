//! What credits are booked by, as the operator has set it.
use crate::session::machine::cost;
use entities::{
    ids::TenantId,
    ledger::account,
    values::{Cents, Env, Moment},
};

/// The operator's terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// What every workspace has to play with in the test env.
    pub test_opening: Cents,
    /// Below that a workspace is warned that has not said otherwise; `None`: it is not.
    pub warning_threshold: Option<Cents>,
    /// ISO 4217, as USD.
    pub currency: String,
    /// A call sets aside so many seconds of its price, or what there is, and again when they are over; 0: all of its longest
    /// duration, or it is not dialled.
    pub hold_seconds: i32,
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            test_opening: Cents(1_000_000),
            warning_threshold: Some(Cents(1_000)),
            currency: "USD".into(),
            hold_seconds: 60,
        }
    }
}

impl Terms {
    /// An account that nothing has ever moved.
    pub fn opening(&self, tenant_id: TenantId, env: Env) -> account::Model {
        let balance_cents = match env {
            Env::Live => Cents(0),
            Env::Test => self.test_opening,
        };
        account::Model {
            tenant_id,
            env,
            balance_cents,
            held_cents: Cents(0),
            warning_threshold_cents: self.warning_threshold,
            depleted_at: None,
            entries: 0,
            last_hash: String::new(),
            last_seq: 0,
            version: 0,
            updated_at: Moment::from_millis(0),
        }
    }

    /// What a call of at most that duration sets aside, if there is enough.
    pub fn hold(&self, price_cents_per_minute: i32, max_duration_seconds: i32) -> Cents {
        self.hold_after(price_cents_per_minute, max_duration_seconds, 0)
    }

    /// What a call is to have set aside in all when it has lasted so long: what it has cost, and as much more as at its start.
    pub fn hold_after(&self, price_cents_per_minute: i32, max_duration_seconds: i32, seconds: i32) -> Cents {
        let seconds = match self.hold_seconds {
            0 => max_duration_seconds,
            more => max_duration_seconds.min(seconds.saturating_add(more)),
        };
        cost(price_cents_per_minute, seconds)
    }

    /// The least that must be available for a call that would set `hold` aside. What is free needs nothing.
    pub fn least(&self, hold: Cents) -> Cents {
        match self.hold_seconds {
            0 => hold,
            _ => hold.min(Cents(1)),
        }
    }

    /// What of `hold` a call sets aside when so much is available; `None`: it is not dialled.
    pub fn set_aside(&self, hold: Cents, available: Cents) -> Option<Cents> {
        if hold <= Cents(0) {
            return Some(Cents(0));
        }
        (available >= self.least(hold)).then(|| hold.min(available))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(hold_seconds: i32) -> Terms {
        Terms {
            hold_seconds,
            ..Terms::default()
        }
    }

    #[test]
    fn what_a_call_sets_aside() {
        // Seconds of the hold, price of a minute, longest duration, available: set aside.
        for (seconds, price, longest, available, expected) in [
            (60, 10, 600, 599, Some(10)),
            (60, 10, 600, 10, Some(10)),
            (60, 10, 600, 9, Some(9)),
            (60, 10, 600, 1, Some(1)),
            (60, 10, 600, 0, None),
            (60, 10, 600, -5, None),
            // No more than it can ever cost.
            (60, 10, 30, 599, Some(5)),
            (7_200, 10, 600, 599, Some(100)),
            // All or nothing.
            (0, 60, 600, 600, Some(600)),
            (0, 60, 600, 599, None),
            // What is free needs nothing.
            (60, 0, 600, -5, Some(0)),
            (0, 0, 600, 0, Some(0)),
        ] {
            let terms = terms(seconds);
            let hold = terms.hold(price, longest);
            let found = terms.set_aside(hold, Cents(available)).map(|cents| cents.0);
            assert_eq!(found, expected, "{seconds} {price} {longest} {available}");
        }
    }

    #[test]
    fn a_call_that_lasts_is_to_have_more_set_aside_until_its_longest_duration() {
        for (lasted, expected) in [(0, 10), (60, 20), (61, 21), (539, 100), (600, 100), (i32::MAX, 100)] {
            assert_eq!(terms(60).hold_after(10, 600, lasted), Cents(expected), "{lasted}");
            assert_eq!(terms(0).hold_after(10, 600, lasted), Cents(100), "{lasted}");
        }
    }
}
