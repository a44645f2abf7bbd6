use super::*;
use entities::values::{Env, Zone};
use rules::hours::Rules;
use serde_json::{Value, json};

/// 10:00 in New York, on a Tuesday.
fn now() -> Moment {
    Moment::parse("2027-03-02T15:00:00Z").unwrap()
}

fn hours(count: i64) -> Moment {
    now().plus_seconds(count * 3600)
}

fn group(windows: Value) -> Group {
    let schedule = serde_json::from_value(json!({ "windows": windows })).unwrap();
    Group {
        zones: Vec::new(),
        contacts: 0,
        calling_hours: Rules::new(&schedule, Env::Test, Zone::NEW_YORK).of("America/New_York"),
        opens_at: Some(now()),
    }
}

fn all_day() -> Group {
    group(json!([{ "start": "00:00", "end": "24:00" }]))
}

fn until(end: &str) -> Group {
    group(json!([{ "start": "09:00", "end": end }]))
}

fn run(group: usize, contacts: i64) -> Run {
    Run {
        group,
        priority: 0,
        place: 0,
        contacts,
        due: None,
        is_retry: false,
    }
}

fn terms() -> Terms {
    Terms {
        starts: now(),
        ends_at: None,
        rate: 1.0,
        per_day: None,
        dialed: 0,
        zone: chrono_tz::America::New_York,
        skips: false,
        behind_ms: 0,
    }
}

fn found(groups: &[Group], runs: &[Run], terms: &Terms) -> Forecast {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let runs = runs.iter().cloned().enumerate();
    let placed = runs.map(|(place, run)| Run { place, ..run }).collect();
    runtime.block_on(foresee(groups, placed, terms))
}

fn ends(called: i64, capped: i64, expired: i64, finishes_at: Option<Moment>) -> Forecast {
    Forecast {
        called,
        capped,
        expired,
        finishes_at,
    }
}

#[test]
fn the_finish_counts_open_hours_only() {
    assert_eq!(found(&[], &[], &terms()), ends(0, 0, 0, Some(now())));
    let two_hours = [run(0, 7_200)];
    assert_eq!(
        found(&[all_day()], &two_hours, &terms()),
        ends(7_200, 0, 0, Some(hours(2)))
    );
    // An hour today, and one tomorrow from nine on.
    let tomorrow = hours(24);
    let in_parts = found(&[until("11:00")], &two_hours, &terms());
    let late = in_parts.finishes_at.unwrap().since(tomorrow).as_secs();
    assert!(in_parts.called == 7_200 && late < 60, "{in_parts:?}");
    // Contact by contact it is the same.
    let single: Vec<Run> = (0..7_200).map(|_| run(0, 1)).collect();
    assert_eq!(found(&[until("11:00")], &single, &terms()), in_parts);
}

#[test]
fn nothing_begins_before_the_start_nor_after_the_end() {
    let later = Terms {
        starts: hours(5),
        ..terms()
    };
    assert_eq!(
        found(&[all_day()], &[run(0, 60)], &later).finishes_at,
        Some(hours(5).plus_seconds(60))
    );
    let short = Terms {
        ends_at: Some(now().plus_seconds(60)),
        ..terms()
    };
    assert_eq!(
        found(&[all_day()], &[run(0, 100)], &short),
        ends(60, 0, 40, short.ends_at)
    );
    let evening = group(json!([{ "start": "20:00", "end": "21:00" }]));
    let groups = [all_day(), evening];
    let found_so = found(&groups, &[run(0, 10), run(1, 5)], &short);
    assert_eq!(
        found_so,
        ends(10, 0, 5, Some(now().plus_seconds(10))),
        "the others never"
    );
    let slow = Terms {
        rate: 0.000_001,
        ..terms()
    };
    assert_eq!(
        found(&[all_day()], &[run(0, 100)], &slow).finishes_at,
        None,
        "more than 60 days"
    );
}

#[test]
fn the_calls_of_a_day_are_used_up() {
    let two = |skips, ends_at| Terms {
        per_day: Some(2),
        skips,
        ends_at,
        ..terms()
    };
    let five = [run(0, 5)];
    // Two today, two tomorrow, the last one on the day after: at midnight the hours are open.
    let midnight = Moment::parse("2027-03-04T05:00:00Z").unwrap();
    assert_eq!(
        found(&[all_day()], &five, &two(false, None)),
        ends(5, 0, 0, Some(midnight.plus_seconds(1)))
    );
    let today = Some(now().plus_seconds(2));
    assert_eq!(found(&[all_day()], &five, &two(true, None)), ends(2, 3, 0, today));
    // No day is left before the end.
    assert_eq!(
        found(&[all_day()], &five, &two(false, Some(hours(10)))),
        ends(2, 3, 0, today)
    );
    assert_eq!(found(&[all_day()], &five, &two(false, Some(hours(30)))).called, 4);
    let begun = Terms {
        dialed: 2,
        ..two(true, None)
    };
    assert_eq!(found(&[all_day()], &five, &begun), ends(0, 5, 0, Some(now())));
    // Exactly as many as there are, or whose hours open tomorrow only: the cap is no matter of theirs until it is reached.
    assert_eq!(
        found(&[all_day()], &[run(0, 2)], &two(true, None)),
        ends(2, 0, 0, today)
    );
    let closed = until("09:30");
    let one_each = [run(0, 1), run(1, 2)];
    assert_eq!(
        found(&[all_day(), closed.clone()], &one_each, &two(true, None)).called,
        3
    );
    assert_eq!(
        found(&[all_day(), closed], &[run(0, 2), run(1, 2)], &two(true, None)),
        ends(2, 2, 0, today)
    );
}

/// A call takes two hours of the pace, and the first group closes in one: whether it is called tells whose turn came first.
#[test]
fn turns_go_by_retries_then_priority_then_place() {
    let slow = Terms {
        rate: 1.0 / 7_200.0,
        ends_at: Some(hours(10)),
        ..terms()
    };
    let groups = [until("11:00"), all_day()];
    let one = |group: usize, priority: i32| Run {
        priority,
        ..run(group, 1)
    };
    let retry = |group: usize, place: usize| Run {
        due: Some(now()),
        is_retry: true,
        place,
        ..run(group, 1)
    };
    let due = |group: usize, priority: i32| Run {
        due: Some(now()),
        ..one(group, priority)
    };
    let came = |runs: &[Run]| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(foresee(&groups, runs.to_vec(), &slow));
        (found.called, found.expired)
    };
    let placed = |place: usize, run: Run| Run { place, ..run };
    for (name, runs, expected) in [
        ("by place", [placed(0, one(0, 0)), placed(1, one(1, 0))], (2, 0)),
        (
            "by place, the other way",
            [placed(1, one(0, 0)), placed(0, one(1, 0))],
            (1, 1),
        ),
        ("by priority", [placed(1, one(0, 5)), placed(0, one(1, 0))], (2, 0)),
        (
            "by priority, the other way",
            [placed(0, one(0, 0)), placed(1, one(1, 5))],
            (1, 1),
        ),
        (
            "who had to wait ranks among them",
            [placed(1, due(0, 5)), placed(0, one(1, 0))],
            (2, 0),
        ),
        (
            "who had to wait, the other way",
            [placed(1, due(0, 0)), placed(0, one(1, 0))],
            (1, 1),
        ),
        ("retries first", [retry(0, 9), placed(0, one(1, 9))], (2, 0)),
        // A retry that finds no opening fails: it is counted nowhere.
        ("who has waited longest", [retry(0, 1), retry(1, 2)], (2, 0)),
        (
            "who has waited longest, the other way",
            [retry(0, 2), retry(1, 1)],
            (1, 0),
        ),
        ("a retry first", [placed(0, one(0, 9)), retry(1, 9)], (1, 1)),
    ] {
        assert_eq!(came(&runs), expected, "{name}");
    }
}

#[test]
fn whose_time_comes_later_waits_for_it() {
    let waits = Run {
        due: Some(hours(3)),
        ..run(0, 1)
    };
    let found_so = found(&[all_day()], std::slice::from_ref(&waits), &terms());
    assert_eq!(found_so, ends(1, 0, 0, Some(hours(3).plus_seconds(1))));
    let short = Terms {
        ends_at: Some(hours(2)),
        ..terms()
    };
    assert_eq!(found(&[all_day()], &[waits], &short), ends(0, 0, 1, short.ends_at));
}

/// Who was never called and waits for nothing is left out with the rest of that day; whose time comes on the next is not, and who
/// was called before is counted nowhere.
#[test]
fn what_a_used_up_day_leaves() {
    let one_a_day = Terms {
        per_day: Some(1),
        skips: true,
        ..terms()
    };
    let due = |at: Moment, is_retry: bool| Run {
        due: Some(at),
        is_retry,
        ..run(0, 1)
    };
    let (evening, tomorrow) = (hours(8), hours(30));
    for (runs, expected) in [
        (
            vec![run(0, 3), due(evening, false)],
            ends(1, 3, 0, Some(now().plus_seconds(1))),
        ),
        (
            vec![run(0, 3), due(evening, true)],
            ends(1, 2, 0, Some(now().plus_seconds(1))),
        ),
        (
            vec![run(0, 3), due(tomorrow, false)],
            ends(2, 2, 0, Some(tomorrow.plus_seconds(1))),
        ),
        (
            vec![run(0, 3), due(tomorrow, true)],
            ends(2, 2, 0, Some(tomorrow.plus_seconds(1))),
        ),
    ] {
        assert_eq!(found(&[all_day()], &runs, &one_a_day), expected, "{runs:?}");
    }
}
