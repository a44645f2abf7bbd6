//! The table of invariants.
use super::{dialing, events, facts::Facts, hours, pace, records};
use serde_json::Value;

/// What is known about a run. Nothing in it comes from inside the service but `dump`.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The lines of `callboard audit dump`, in any order.
    pub dump: Vec<Value>,
    /// K, the carrier's log: a line when a call is placed and one when it ends, `at` in microseconds of Unix time.
    pub carrier: Vec<Value>,
    /// A, what the API acknowledged: `kind`, `id` and the fields that must be in the dump as they are here.
    pub acknowledged: Vec<Value>,
    /// Unix milliseconds at which the process was killed, best noted once it is gone. Its calls end with it.
    pub kills: Vec<i64>,
    /// Calls at once, of each tenant and env.
    pub limit: usize,
    /// Calls started per second, of each tenant.
    pub rate: f64,
    /// Calls that may be started beyond `rate` after a rest.
    pub burst: f64,
    /// The faults have stopped and nothing is under way any more, so that what must hold after quiet is checked too.
    pub settled: bool,
}

/// One thing that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    pub invariant: &'static str,
    pub what: String,
}

type Check = fn(&Evidence, &Facts<'_>) -> Vec<String>;

/// `DUMP` and `CAP` are the checker's own; the others are numbered as in the list of promises.
const CHECKS: [(&str, Check); 13] = [
    ("DUMP", |_, facts| facts.unreadable.clone()),
    ("I1", records::acknowledged_is_kept),
    ("I2", events::events_match_facts),
    ("I7", dialing::dialed_at_most_once),
    ("I8", dialing::lost_calls_are_final),
    ("I9", dialing::do_not_call),
    ("I10", hours::calling_hours),
    ("CAP", pace::caps),
    ("I11", pace::slots),
    ("I11", pace::rate),
    ("I19", records::nothing_is_stuck),
    ("I20", records::ids_and_times),
    ("I21", dialing::pauses_are_kept),
];

/// Everything that does not hold, in the order of the table.
pub fn check(evidence: &Evidence) -> Vec<Breach> {
    let facts = Facts::read(evidence);
    let breaches = |(invariant, check): (&'static str, Check)| {
        let found = check(evidence, &facts).into_iter();
        found.map(move |what| Breach { invariant, what })
    };
    CHECKS.into_iter().flat_map(breaches).collect()
}
