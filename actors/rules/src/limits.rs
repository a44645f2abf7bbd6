//! The operator's limits.
use crate::{credits::terms::Terms, delivery::machine::Schedule};
use entities::values::{Cents, Prefixes};
use std::time::Duration;

/// The operator's limits.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Calls started per second, by one tenant.
    pub max_calls_per_second: f64,
    /// Calls at once, by one tenant in one env.
    pub max_concurrency: i32,
    pub schedule: Schedule,
    /// Live deliveries that end failed in a row, until their endpoint is suspended.
    pub suspend_after: i32,
    pub retention: Retention,
    /// Direct calls to one number in 24 hours and in 7 days; 0: no cap.
    pub number_cap_24h: i32,
    pub number_cap_7d: i32,
    pub call_price_cents_per_minute: i32,
    pub credits: Terms,
    pub sms_price_cents_per_segment: i32,
    pub email_price_cents: i32,
    /// Premium-rate, shared-cost and satellite numbers may be called.
    pub allow_costly_numbers: bool,
    /// What no number that is called live may begin with.
    pub blocked_prefixes: Prefixes,
    /// A recording is erased so long after an opt-out.
    pub opt_out_purge_grace: Duration,
}

impl Limits {
    /// What texts of so many segments cost.
    pub fn sms_price(&self, segments: i64) -> Cents {
        Cents(i64::from(self.sms_price_cents_per_segment).saturating_mul(segments))
    }
}

/// How long things are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Retention {
    /// Events with their deliveries and attempts; held deliveries too. Source: CONTRACT §6.
    pub events: Duration,
    /// Bodies of the answers to successful attempts.
    pub answers: Duration,
    /// The record of attempts. Source: 16 CFR 310.5(a) asks for five years.
    pub compliance: Duration,
}

/// Years that the record of attempts is kept, at least.
pub const LEAST_COMPLIANCE_YEARS: u64 = 5;
/// A leap year's, so that no year is too short.
pub const YEAR_DAYS: u64 = 366;

impl Default for Retention {
    fn default() -> Self {
        const DAY: u64 = 24 * 3600;
        Retention {
            events: Duration::from_secs(30 * DAY),
            answers: Duration::from_secs(7 * DAY),
            compliance: Duration::from_secs(LEAST_COMPLIANCE_YEARS * YEAR_DAYS * DAY),
        }
    }
}
