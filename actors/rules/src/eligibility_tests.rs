//! Each rule about a person, by what it goes by.
use super::*;
use crate::hours::{Hours, Rules};
use entities::values::{Bounded, Env, Zone};

const NOW: i64 = 1_800_000_000_000;
const HOUR: i64 = 3600;

fn now() -> Moment {
    Moment::from_millis(NOW)
}
fn called(hours_ago: &[i64]) -> ContactRecord {
    ContactRecord {
        has_number: true,
        recent: hours_ago
            .iter()
            .map(|hours| now().plus_seconds(-hours * HOUR))
            .collect(),
        ..ContactRecord::default()
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
fn always() -> CallingHours {
    CallingHours::Hours(Hours::new(Vec::new()))
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
    let barred = ContactRecord {
        is_barred: true,
        ..fine.clone()
    };
    let later = ContactRecord {
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
            ContactRecord::default(),
            always(),
            terms(&defer),
            Some((Rule::Number, Verdict::Never(SkipReason::Invalid))),
        ),
        (
            fine.clone(),
            CallingHours::Uncallable,
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
    for (row, (record, calling_hours, terms, expected)) in table.into_iter().enumerate() {
        let found = first_no(&Rule::ALL, &record, &calling_hours, &terms, now());
        assert_eq!(found, expected, "row {row}");
    }
}

/// Somebody of whom the law says that, each rule as a record keeps it.
fn judged(record: ContactRecord, asked: &[&str]) -> ContactRecord {
    let asked = asked.iter().map(|text| text.parse().unwrap()).collect();
    ContactRecord {
        judgement: Some(Judgement { asked }),
        ..record
    }
}

#[test]
fn only_a_rule_of_the_law_that_alone_says_never_is_named() {
    let (defer, skip) = (caps(3, 7, OnCap::Defer), caps(3, 7, OnCap::Skip));
    // Now it is 03:00 in New York.
    let closed =
        serde_json::from_value(serde_json::json!({ "windows": [{ "start": "05:00", "end": "06:00" }] })).unwrap();
    let closed = Rules::new(&closed, Env::Test, Zone::NEW_YORK).of("America/New_York");
    let wait = |rule: &str, hours: i64| format!("{rule}:wait:{}", now().plus_seconds(hours * HOUR));
    let ends = Terms {
        ends_at: Some(now().plus_seconds(2 * HOUR)),
        ..terms(&defer)
    };
    let fine = || called(&[]);
    let barred = ContactRecord {
        is_barred: true,
        ..fine()
    };
    let consents: &[&str] = &["consent:us.consent.voice:never", "consent:us-fl.consent:never"];
    let (capped, long) = (wait("caps:us.cap.day", 5), wait("rest:fr.rest", 32 * 24));
    let (asleep, awake) = (wait("hours:fr.hours", 3), wait("hours:fr.hours", 1));
    let table = [
        (judged(fine(), consents), always(), &ends, Some("us.consent.voice")),
        // It is on the list of those who asked not to be called, whatever else is so.
        (judged(barred, consents), always(), &ends, None),
        (judged(fine(), &["register:us.dnc:wait"]), always(), &ends, None),
        (
            judged(fine(), &["consent:us.consent.voice:overridden"]),
            always(),
            &ends,
            None,
        ),
        (
            judged(fine(), &["caps:us.cap.day", &capped]),
            always(),
            &ends,
            Some("us.cap.day"),
        ),
        (judged(fine(), &[&capped]), always(), &terms(&skip), Some("us.cap.day")),
        (judged(fine(), &[&capped]), always(), &terms(&defer), None),
        (
            judged(fine(), &["caps:fr.cap", &long]),
            always(),
            &terms(&defer),
            Some("fr.rest"),
        ),
        // The campaign's own cap.
        (
            judged(called(&[23, 2, 1]), &["caps:us.cap.day"]),
            always(),
            &terms(&skip),
            None,
        ),
        (judged(fine(), &[&asleep]), closed.clone(), &ends, Some("fr.hours")),
        // Its own hours.
        (judged(fine(), &[&awake]), closed.clone(), &ends, None),
        (fine(), closed, &ends, None),
    ];
    for (row, (record, calling_hours, terms, expected)) in table.into_iter().enumerate() {
        let no = first_no(&Rule::ALL, &record, &calling_hours, terms, now());
        let by = no.and_then(|no| never_by(no, &record, terms, now()));
        assert_eq!(by.as_deref(), expected, "row {row}: {no:?}");
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

/// A judgement whose hours say that, in front of a group that is open, or closed for two hours more.
#[test]
fn the_laws_own_hours_hold_whatever_the_group_says() {
    let of_campaign = caps(3, 7, OnCap::Defer);
    let in_hours = |hours: i64| now().plus_seconds(hours * HOUR);
    let closed =
        serde_json::from_value(serde_json::json!({ "windows": [{ "start": "05:00", "end": "06:00" }] })).unwrap();
    let closed = Rules::new(&closed, Env::Test, Zone::NEW_YORK).of("America/New_York");
    let wait = |hours: i64| Verdict::Wait(Some(in_hours(hours)));
    let opens = |hours: i64| law::Verdict::Wait(Some(in_hours(hours)));
    let expired = Verdict::Never(SkipReason::QuietHoursExpired);
    #[rustfmt::skip]
    let table = [
        (law::Verdict::Yes, always(), None, Verdict::Yes),
        (law::Verdict::Overridden, always(), None, Verdict::Yes),
        (opens(3), always(), None, wait(3)),
        (opens(3), closed.clone(), None, wait(3)),
        (opens(1), closed.clone(), None, wait(2)),
        (opens(-1), always(), None, Verdict::Yes), // it was asked some time ago
        (opens(3), always(), Some(3), expired),
        (opens(3), always(), Some(4), wait(3)),
        (law::Verdict::Wait(None), always(), None, Verdict::Wait(None)),
        (law::Verdict::Wait(None), closed, None, wait(2)),
    ];
    for (row, (verdict, calling_hours, ends, expected)) in table.into_iter().enumerate() {
        let asked = law::Asked {
            kind: GateKind::Hours,
            rule: "us.hours".into(),
            verdict,
        };
        let record = ContactRecord {
            judgement: Some(Judgement { asked: vec![asked] }),
            ..called(&[])
        };
        let terms = Terms {
            ends_at: ends.map(in_hours),
            ..terms(&of_campaign)
        };
        let found = ask(Rule::Hours, &record, &calling_hours, &terms, now());
        assert_eq!(found, expected, "row {row}");
    }
}
