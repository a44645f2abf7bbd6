//! May this person be called? Each rule, in the order in which they are asked, with its verdict.
//!
//! | rule | when it says no |
//! |---|---|
//! | `number` | skipped as `invalid`: no number, a costly one, or with a test key none that is allowed |
//! | `dnc` | skipped as `dnc_blocked` |
//! | `suspension` | waits; after 24 hours skipped as `tenant_suspended` |
//! | `credits` | waits |
//! | `not_before` | waits until then |
//! | `caps` | waits until the cap allows it; skipped as `daily_cap_reached` if that is never, or not wanted |
//! | `hours` | waits for the next opening; skipped as `quiet_hours_expired` if there is none before the end |
//!
//! Somebody who was called before is not skipped but has failed. Pure; the dispatcher, the preflight, the eligibility of one
//! contact and direct calls ask the same rules.
use crate::{hours::Standing, limits::Limits, session::machine::PLACED_WITHIN_MS};
use entities::{
    campaign::{Caps, OnCap},
    contact::SkipReason,
    values::{Bounded, Moment},
};
use schemars::JsonSchema;
use serde::Serialize;

/// What is known of somebody who may be called.
#[derive(Clone, Debug, Default)]
pub struct Person {
    /// There is a number, and calls to it are allowed.
    pub has_number: bool,
    pub is_barred: bool,
    /// When the number was called in the last 7 days, in order.
    pub recent: Vec<Moment>,
    pub not_before: Option<Moment>,
}

/// What is asked of everybody.
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    pub caps: &'a Caps,
    pub ends_at: Option<Moment>,
    /// How long a phone may ring: all of it must lie inside the hours.
    pub ring_ms: i64,
    pub suspended_since: Option<Moment>,
    pub credits_gone: bool,
    /// How far the wall clock is behind our time: caps and hours must hold by it, too.
    pub behind_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    Number,
    Dnc,
    Suspension,
    Credits,
    NotBefore,
    Caps,
    Hours,
}

impl Rule {
    pub const ALL: [Rule; 7] = [
        Rule::Number,
        Rule::Dnc,
        Rule::Suspension,
        Rule::Credits,
        Rule::NotBefore,
        Rule::Caps,
        Rule::Hours,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    /// Not before then; `None`: until somebody changes something.
    Wait(Option<Moment>),
    Never(SkipReason),
}

/// What one rule says.
pub fn ask(rule: Rule, person: &Person, standing: &Standing, terms: &Terms<'_>, now: Moment) -> Verdict {
    match rule {
        Rule::Number => match standing {
            Standing::Hours(_) if person.has_number => Verdict::Yes,
            Standing::Hours(_) | Standing::Uncallable => Verdict::Never(SkipReason::Invalid),
        },
        Rule::Dnc if person.is_barred => Verdict::Never(SkipReason::DncBlocked),
        Rule::Suspension => suspension(terms, now),
        Rule::Credits if terms.credits_gone => Verdict::Wait(None),
        Rule::NotBefore => match person.not_before {
            Some(at) if at > now => Verdict::Wait(Some(at)),
            Some(_) | None => Verdict::Yes,
        },
        Rule::Caps => capped(person, terms, now),
        Rule::Hours => hours(standing, terms, now),
        Rule::Dnc | Rule::Credits => Verdict::Yes,
    }
}

/// The first rule that does not say yes.
pub fn first_no(
    rules: &[Rule],
    person: &Person,
    standing: &Standing,
    terms: &Terms<'_>,
    now: Moment,
) -> Option<(Rule, Verdict)> {
    rules
        .iter()
        .map(|rule| (*rule, ask(*rule, person, standing, terms, now)))
        .find(|(_, verdict)| *verdict != Verdict::Yes)
}

/// What guards direct calls, which have no campaign to say it.
pub fn direct_caps(limits: &Limits) -> Caps {
    let cap = |cap: i32| Bounded::new(i64::from(cap)).ok();
    Caps {
        per_number_24h: cap(limits.number_cap_24h),
        per_number_7d: cap(limits.number_cap_7d),
        ..Caps::default()
    }
}

/// Contacts of a suspended tenant wait this long.
pub const PATIENCE_SECONDS: i64 = 24 * 3600;

fn suspension(terms: &Terms<'_>, now: Moment) -> Verdict {
    match terms.suspended_since {
        None => Verdict::Yes,
        Some(since) => {
            let patience_ends = since.plus_seconds(PATIENCE_SECONDS);
            if now >= patience_ends {
                Verdict::Never(SkipReason::TenantSuspended)
            } else {
                Verdict::Wait(Some(patience_ends))
            }
        }
    }
}

fn capped(person: &Person, terms: &Terms<'_>, now: Moment) -> Verdict {
    let caps = terms.caps;
    let behind_ms = terms.behind_ms.max(0);
    let wall = now.plus_millis(-behind_ms);
    let frees = |cap: Option<i32>, days: i64| cap.and_then(|cap| frees_at(&person.recent, cap, days, wall));
    let until =
        frees(caps.per_number_24h.map(|cap| cap.get()), 1).max(frees(caps.per_number_7d.map(|cap| cap.get()), 7));
    let until = until.map(|until| until.plus_millis(behind_ms));
    match until {
        None => Verdict::Yes,
        Some(until) if caps.on_cap == OnCap::Skip || terms.ends_at.is_some_and(|end| until >= end) => {
            Verdict::Never(SkipReason::DailyCapReached)
        }
        Some(until) => Verdict::Wait(Some(until)),
    }
}

/// When a number that was called `cap` times in the last `days` may be called again.
fn frees_at(recent: &[Moment], cap: i32, days: i64, now: Moment) -> Option<Moment> {
    let span = days * 24 * 3600;
    let counted: Vec<_> = recent.iter().filter(|at| at.plus_seconds(span) > now).collect();
    // When so many of them are old enough that one more stays below the cap.
    let over = (counted.len() + 1).checked_sub(usize::try_from(cap).unwrap_or(0))?;
    let last = over.checked_sub(1)?;
    counted.get(last).map(|at| at.plus_seconds(span))
}

fn hours(standing: &Standing, terms: &Terms<'_>, now: Moment) -> Verdict {
    let Standing::Hours(hours) = standing else {
        return Verdict::Never(SkipReason::Invalid);
    };
    if terms.ends_at.is_some_and(|end| now >= end) {
        return Verdict::Never(SkipReason::QuietHoursExpired);
    }
    match hours.next_opening_by_both(now, terms.ring_ms, terms.behind_ms) {
        Some(at) if at <= now => Verdict::Yes,
        Some(at) if terms.ends_at.is_none_or(|end| at < end) => Verdict::Wait(Some(at)),
        Some(_) | None => Verdict::Never(SkipReason::QuietHoursExpired),
    }
}

/// Seconds a phone rings before a campaign's call is given up.
pub const RING_TIMEOUT_SECONDS: i32 = 30;

/// What of the calling hours must be left when a call starts: all its ringing, and a moment for one that is placed late.
pub const RING_MS: i64 = ring_ms(RING_TIMEOUT_SECONDS);

pub const fn ring_ms(ring_timeout_seconds: i32) -> i64 {
    ring_timeout_seconds as i64 * 1000 + PLACED_WITHIN_MS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hours::{Hours, Rules};
    use entities::values::{Bounded, Env, Zone};

    const NOW: i64 = 1_800_000_000_000;
    const HOUR: i64 = 3600;

    fn now() -> Moment {
        Moment::from_millis(NOW)
    }
    fn called(hours_ago: &[i64]) -> Person {
        Person {
            has_number: true,
            recent: hours_ago
                .iter()
                .map(|hours| now().plus_seconds(-hours * HOUR))
                .collect(),
            ..Person::default()
        }
    }
    fn caps(day: i64, week: i64, on_cap: OnCap) -> Caps {
        Caps {
            per_number_24h: Bounded::new(day).ok(),
            per_number_7d: Bounded::new(week).ok(),
            on_cap,
            ..Caps::default()
        }
    }
    fn terms(caps: &Caps) -> Terms<'_> {
        Terms {
            caps,
            ends_at: None,
            ring_ms: 30_000,
            suspended_since: None,
            credits_gone: false,
            behind_ms: 0,
        }
    }
    fn always() -> Standing {
        Standing::Hours(Hours::new(Vec::new()))
    }

    #[test]
    fn each_rule_by_its_real_cause() {
        let (defer, skip) = (caps(3, 7, OnCap::Defer), caps(3, 7, OnCap::Skip));
        // Now it is 03:00 in New York.
        let closed =
            serde_json::from_value(serde_json::json!({ "windows": [{ "start": "05:00", "end": "06:00" }] })).unwrap();
        let closed = Rules::new(&closed, Env::Test, Zone::NEW_YORK).of("America/New_York");
        let in_hours = |hours: i64| now().plus_seconds(hours * HOUR);
        let fine = called(&[]);
        let barred = Person {
            is_barred: true,
            ..fine.clone()
        };
        let later = Person {
            not_before: Some(in_hours(1)),
            ..fine.clone()
        };
        let ends = |hours: i64| Terms {
            ends_at: Some(in_hours(hours)),
            ..terms(&defer)
        };
        let suspended = |hours: i64| Terms {
            suspended_since: Some(in_hours(-hours)),
            ..terms(&defer)
        };
        let broke = Terms {
            credits_gone: true,
            ..terms(&defer)
        };
        let table = [
            (
                Person::default(),
                always(),
                terms(&defer),
                Some((Rule::Number, Verdict::Never(SkipReason::Invalid))),
            ),
            (
                fine.clone(),
                Standing::Uncallable,
                terms(&defer),
                Some((Rule::Number, Verdict::Never(SkipReason::Invalid))),
            ),
            (fine.clone(), always(), terms(&defer), None),
            (
                barred,
                always(),
                terms(&defer),
                Some((Rule::Dnc, Verdict::Never(SkipReason::DncBlocked))),
            ),
            (
                fine.clone(),
                always(),
                suspended(1),
                Some((Rule::Suspension, Verdict::Wait(Some(in_hours(23))))),
            ),
            (
                fine.clone(),
                always(),
                suspended(24),
                Some((Rule::Suspension, Verdict::Never(SkipReason::TenantSuspended))),
            ),
            (
                fine.clone(),
                always(),
                broke,
                Some((Rule::Credits, Verdict::Wait(None))),
            ),
            (
                later,
                always(),
                terms(&defer),
                Some((Rule::NotBefore, Verdict::Wait(Some(in_hours(1))))),
            ),
            (called(&[23, 2]), always(), terms(&defer), None),
            (
                called(&[23, 2, 1]),
                always(),
                terms(&defer),
                Some((Rule::Caps, Verdict::Wait(Some(in_hours(1))))),
            ),
            (called(&[24, 2, 1]), always(), terms(&defer), None),
            (
                called(&[23, 3, 2, 1]),
                always(),
                terms(&defer),
                Some((Rule::Caps, Verdict::Wait(Some(in_hours(21))))),
            ),
            (
                called(&[23, 2, 1]),
                always(),
                terms(&skip),
                Some((Rule::Caps, Verdict::Never(SkipReason::DailyCapReached))),
            ),
            (
                called(&[23, 2, 1]),
                always(),
                ends(1),
                Some((Rule::Caps, Verdict::Never(SkipReason::DailyCapReached))),
            ),
            (
                called(&[160, 150, 140, 130, 120, 110, 100]),
                always(),
                terms(&defer),
                Some((Rule::Caps, Verdict::Wait(Some(in_hours(8))))),
            ),
            (
                fine.clone(),
                closed.clone(),
                terms(&defer),
                Some((Rule::Hours, Verdict::Wait(Some(in_hours(2))))),
            ),
            (
                fine.clone(),
                closed,
                ends(2),
                Some((Rule::Hours, Verdict::Never(SkipReason::QuietHoursExpired))),
            ),
            (
                fine,
                always(),
                ends(0),
                Some((Rule::Hours, Verdict::Never(SkipReason::QuietHoursExpired))),
            ),
        ];
        for (row, (person, standing, terms, expected)) in table.into_iter().enumerate() {
            let found = first_no(&Rule::ALL, &person, &standing, &terms, now());
            assert_eq!(found, expected, "row {row}");
        }
    }

    #[test]
    fn a_lifted_cap_is_none() {
        let lifted = Caps {
            per_number_24h: None,
            per_number_7d: None,
            ..Caps::default()
        };
        assert_eq!(
            first_no(
                &Rule::ALL,
                &called(&[9, 8, 7, 6, 5, 4, 3, 2, 1]),
                &always(),
                &terms(&lifted),
                now()
            ),
            None
        );
    }

    /// Our time, and a wall clock that shows so many hours less.
    #[test]
    fn what_only_one_clock_allows_is_not_allowed() {
        let once = caps(1, 7, OnCap::Defer);
        let behind = |hours: i64| Terms {
            behind_ms: hours * HOUR * 1000,
            ..terms(&once)
        };
        let from = |hours: i64| now().plus_seconds(hours * HOUR);
        let called = called(&[25]);
        for (hours, expected) in [(0, Verdict::Yes), (2, Verdict::Wait(Some(from(1)))), (-2, Verdict::Yes)] {
            assert_eq!(
                ask(Rule::Caps, &called, &always(), &behind(hours), now()),
                expected,
                "{hours}"
            );
        }
        // By our time it is 05:30 in New York.
        let early =
            serde_json::from_value(serde_json::json!({ "windows": [{ "start": "05:00", "end": "06:00" }] })).unwrap();
        let early = Rules::new(&early, Env::Test, Zone::NEW_YORK).of("America/New_York");
        let half_past = now().plus_seconds(5 * HOUR / 2);
        for (hours, expected) in [
            (0, Verdict::Yes),
            (2, Verdict::Wait(Some(from(4)))),
            (-2, Verdict::Wait(Some(from(24)))),
        ] {
            assert_eq!(
                ask(Rule::Hours, &called, &early, &behind(hours), half_past),
                expected,
                "{hours}"
            );
        }
    }
}
