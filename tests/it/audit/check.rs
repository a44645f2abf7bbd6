//! The table of invariants.
use super::{
    consents, dialing, events, facts::Facts, hours, law, lawful, letters, money, pace, recordings, records, rooms,
    talks,
};
use serde_json::Value;

/// What is known about a run. Nothing in it comes from inside the service but `dump`.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The lines of `callboard audit dump`, in any order.
    pub dump: Vec<Value>,
    /// K, the carrier's log: a line when a call is placed and one when it ends, `at` in microseconds of Unix time.
    pub carrier: Vec<Value>,
    /// What the providers of SMS and e-mail were asked, in their order: `message` and `outcome`, which is `not_taken` where
    /// they said so, else `taken` or `lost`.
    pub provider: Vec<Value>,
    /// A, what the API acknowledged: `kind`, `id` and the fields that must be in the dump as they are here.
    pub acknowledged: Vec<Value>,
    /// The files in the recordings' folder, as `<tenant>/<file>`; `None`: nobody looked.
    pub files: Option<Vec<String>>,
    /// When the dump was taken, Unix milliseconds; `None`: by a clock that is not the service's.
    pub taken_at: Option<i64>,
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
const CHECKS: [(&str, Check); 44] = [
    ("DUMP", |_, facts| facts.unreadable.clone()),
    ("I1", records::acknowledged_is_kept),
    ("I2", events::events_match_facts),
    ("I2", talks::talks_are_told),
    ("I2", recordings::recordings_are_told),
    ("I2", money::credits_are_told),
    ("I2", rooms::rooms_are_told),
    ("I7", dialing::dialed_at_most_once),
    ("I7", dialing::callers_are_not_called),
    ("I7", letters::sent_at_most_once),
    ("I8", dialing::lost_calls_are_final),
    ("I9", dialing::do_not_call),
    ("I9", talks::wishes_are_heeded),
    ("I9", letters::do_not_write),
    ("I10", hours::calling_hours),
    ("CAP", pace::caps),
    ("I11", pace::slots),
    ("I11", pace::rate),
    ("I12", money::the_books_add_up),
    ("I12", money::holds_close_once),
    ("I12", money::payments_count_once),
    ("I13", money::the_floor_holds),
    ("I14", money::warnings_are_told),
    ("I18", recordings::purged_is_gone),
    ("I19", records::nothing_is_stuck),
    ("I19", letters::no_message_is_stuck),
    ("I19", rooms::rooms_go_with_their_sessions),
    ("I20", records::ids_and_times),
    ("I21", dialing::pauses_are_kept),
    ("I21", letters::pauses_are_kept),
    ("I21", money::nothing_leaves_an_empty_purse),
    ("L1", consents::nobody_is_called_without_consent),
    ("L2", law::verdicts_come_out_again),
    ("L3", lawful::whoever_opted_out_is_left_alone),
    ("L4", lawful::a_machine_says_that_it_is_one),
    ("L4", lawful::nothing_is_said_before_that),
    ("L5", lawful::silence_is_abandonment),
    ("L5", lawful::who_is_left_alone_hears_the_message),
    ("L6", lawful::abandoned_calls_hold_the_campaign),
    ("L7", lawful::registers_are_fresh),
    ("L7", lawful::numbers_are_still_theirs),
    ("L8", lawful::rules_begin_and_end_on_their_day),
    ("L9", law::whoever_was_reached_is_on_record),
    ("L10", law::nobody_has_edited_the_record),
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
