//! Retention: what is old enough is deleted, in slices, so that no transaction keeps others waiting. By the clock that shows less, and
//! not while the wall clock is in doubt: what is deleted does not come back.
pub mod installation;
pub mod workspaces;

use entities::values::Moment;
use std::time::Duration;

/// A link by which its reader unsubscribes works at least so long. Source: 16 CFR 316.5 asks for 30 days.
const KEEP_LINKS: Duration = Duration::from_secs(60 * DAY_SECONDS);
const DAY_SECONDS: u64 = 24 * 3600;

fn before(now: Moment, age: Duration) -> Moment {
    now.plus_millis(-i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}
