//! Calling hours where the clocks change, minute by minute against an oracle that only reads clocks; then what holds for
//! any hours at any moment.
use super::*;
use chrono::{Duration, Offset};
use proptest::prelude::*;
use std::iter::successors;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

const WEEK: [Weekday; 7] = {
    use Weekday::*;
    [Mon, Tue, Wed, Thu, Fri, Sat, Sun]
};

/// (zone, when its clocks were set in UTC, by how many minutes): back is a fold, forward a gap. From tzdata.
#[rustfmt::skip]
const CHANGES: [(Tz, &str, i64); 60] = [
    (Tz::America__New_York, "2026-03-08T07:00", 60), (Tz::America__New_York, "2026-11-01T06:00", -60),
    (Tz::America__New_York, "2027-03-14T07:00", 60), (Tz::America__New_York, "2027-11-07T06:00", -60),
    (Tz::America__Los_Angeles, "2024-03-10T10:00", 60), (Tz::America__Los_Angeles, "2024-11-03T09:00", -60),
    (Tz::America__Los_Angeles, "2025-03-09T10:00", 60), (Tz::America__Los_Angeles, "2025-11-02T09:00", -60),
    // forward at 00:00, back at 24:00 to 23:00
    (Tz::America__Sao_Paulo, "2017-10-15T03:00", 60), (Tz::America__Sao_Paulo, "2018-02-18T02:00", -60),
    (Tz::America__Sao_Paulo, "2018-11-04T03:00", 60), (Tz::America__Sao_Paulo, "2019-02-17T02:00", -60),
    (Tz::Europe__London, "2027-03-28T01:00", 60), (Tz::Europe__London, "2027-10-31T01:00", -60),
    (Tz::Europe__London, "2028-03-26T01:00", 60), (Tz::Europe__London, "2028-10-29T01:00", -60),
    (Tz::Europe__Berlin, "2025-03-30T01:00", 60), (Tz::Europe__Berlin, "2025-10-26T01:00", -60),
    (Tz::Europe__Berlin, "2026-03-29T01:00", 60), (Tz::Europe__Berlin, "2026-10-25T01:00", -60),
    (Tz::Australia__Lord_Howe, "2024-04-06T15:00", -30), (Tz::Australia__Lord_Howe, "2024-10-05T15:30", 30),
    (Tz::Australia__Lord_Howe, "2025-04-05T15:00", -30), (Tz::Australia__Lord_Howe, "2025-10-04T15:30", 30),
    // forward at 00:00, back at 24:00 to 23:00
    (Tz::Africa__Cairo, "2024-04-25T22:00", 60), (Tz::Africa__Cairo, "2024-10-31T21:00", -60),
    (Tz::Africa__Cairo, "2025-04-24T22:00", 60), (Tz::Africa__Cairo, "2025-10-30T21:00", -60),
    (Tz::Asia__Beirut, "2026-03-28T22:00", 60), (Tz::Asia__Beirut, "2026-10-24T21:00", -60),
    (Tz::Asia__Beirut, "2027-03-27T22:00", 60), (Tz::Asia__Beirut, "2027-10-30T21:00", -60),
    (Tz::Pacific__Auckland, "2024-04-06T14:00", -60), (Tz::Pacific__Auckland, "2024-09-28T14:00", 60),
    (Tz::Pacific__Auckland, "2025-04-05T14:00", -60), (Tz::Pacific__Auckland, "2025-09-27T14:00", 60),
    // forward at 00:00, back at 01:00 to 00:00
    (Tz::America__Havana, "2025-03-09T05:00", 60), (Tz::America__Havana, "2025-11-02T05:00", -60),
    (Tz::America__Havana, "2026-03-08T05:00", 60), (Tz::America__Havana, "2026-11-01T05:00", -60),
    (Tz::Pacific__Chatham, "2027-04-03T14:00", -60), (Tz::Pacific__Chatham, "2027-09-25T14:00", 60),
    (Tz::Pacific__Chatham, "2028-04-01T14:00", -60), (Tz::Pacific__Chatham, "2028-09-23T14:00", 60),
    // back for Ramadan: the "summer time" of winter is the negative one
    (Tz::Africa__Casablanca, "2024-03-10T02:00", -60), (Tz::Africa__Casablanca, "2024-04-14T02:00", 60),
    (Tz::Africa__Casablanca, "2025-02-23T02:00", -60), (Tz::Africa__Casablanca, "2025-04-06T02:00", 60),
    (Tz::Asia__Tehran, "2021-03-21T20:30", 60), (Tz::Asia__Tehran, "2021-09-21T19:30", -60),
    (Tz::Asia__Tehran, "2022-03-21T20:30", 60), (Tz::Asia__Tehran, "2022-09-21T19:30", -60),
    // forward and back at 00:01: the fold has midnight within it
    (Tz::America__Goose_Bay, "2009-03-08T04:01", 60), (Tz::America__Goose_Bay, "2009-11-01T03:01", -60),
    (Tz::America__Goose_Bay, "2010-03-14T04:01", 60), (Tz::America__Goose_Bay, "2010-11-07T03:01", -60),
    // the third one skipped Friday, 30 December 2011
    (Tz::Pacific__Apia, "2011-04-02T14:00", -60), (Tz::Pacific__Apia, "2011-09-24T14:00", 60),
    (Tz::Pacific__Apia, "2011-12-30T10:00", 24 * 60), (Tz::Pacific__Apia, "2012-03-31T14:00", -60),
];

/// A calendar as its user wrote it.
#[derive(Clone, Debug, Default)]
struct Sketch {
    windows: Vec<(Weekday, u16, u16)>,
    barred: Vec<NaiveDate>,
}

impl Sketch {
    fn daily(windows: &[(u16, u16)]) -> Self {
        let windows = windows
            .iter()
            .flat_map(|&(start, end)| WEEK.map(|day| (day, start, end)));
        Sketch {
            windows: windows.collect(),
            barred: Vec::new(),
        }
    }

    /// Windows from one wall time to another, cut at midnight.
    fn between(stretches: &[(NaiveDateTime, NaiveDateTime)]) -> Self {
        let mut sketch = Sketch::default();
        for &(mut start, end) in stretches {
            while start < end {
                let midnight = start.date().and_time(NaiveTime::MIN);
                let until = end.min(midnight + Duration::days(1));
                let minute = |wall: NaiveDateTime| u16::try_from((wall - midnight).num_minutes()).unwrap();
                sketch.windows.push((start.weekday(), minute(start), minute(until)));
                start = until;
            }
        }
        sketch
    }

    fn without(mut self, date: NaiveDate) -> Self {
        self.barred.push(date);
        self
    }

    fn calendar(&self) -> Arc<Calendar> {
        Arc::new(Calendar::new(self.windows.clone(), self.barred.clone()))
    }

    fn hours(&self, zone: Tz) -> Hours {
        Hours::new(vec![(self.calendar(), zone)])
    }

    /// A window of this date shows this wall time.
    fn shows(&self, wall: NaiveDateTime) -> bool {
        let minute = u16::try_from((wall - wall.date().and_time(NaiveTime::MIN)).num_minutes()).unwrap();
        let in_window =
            |&(day, start, end): &(Weekday, u16, u16)| day == wall.weekday() && (start..end).contains(&minute);
        !self.barred.contains(&wall.date()) && self.windows.iter().any(in_window)
    }

    fn shows_all(&self, from: NaiveDateTime, until: NaiveDateTime) -> bool {
        let minutes = successors(Some(from), |minute| Some(*minute + Duration::minutes(1)));
        minutes
            .take_while(|minute| *minute < until)
            .all(|minute| self.shows(minute))
    }

    /// The oracle: it converts from instants to clocks only, and knows neither starts nor ends.
    ///
    /// Open is what a window shows. Where the clock shows a time twice, more must be open: the first time, all from the
    /// minute before the fold to now (else a start lies between, and the later one is still to come); the second time,
    /// all from now to the fold's last minute (else an end lies between, and the earlier one has passed).
    fn is_open(&self, clock: &Clock) -> bool {
        let kept_in_both_readings = match clock.fold {
            Some(Fold { start, end, again }) if (start..end).contains(&clock.now) => {
                if again {
                    self.shows_all(clock.now, end)
                } else {
                    self.shows_all(start - Duration::minutes(1), clock.now)
                }
            }
            _ => true,
        };
        self.shows(clock.now) && kept_in_both_readings
    }
}

/// What a zone's clock shows at an instant.
struct Clock {
    now: NaiveDateTime,
    fold: Option<Fold>,
}

/// The wall times `[start, end)` that a clock shows twice because it is set back, within three hours of an instant.
struct Fold {
    start: NaiveDateTime,
    end: NaiveDateTime,
    /// It has been set back by then.
    again: bool,
}

impl Clock {
    fn read(zone: Tz, at: Moment) -> Self {
        Clock {
            now: wall(zone, at),
            fold: Fold::near(zone, at),
        }
    }
}

impl Fold {
    fn near(zone: Tz, at: Moment) -> Option<Self> {
        let (mut before, mut after) = (at.plus_millis(-3 * HOUR), at.plus_millis(3 * HOUR));
        let (old, new) = (offset_ms(zone, before), offset_ms(zone, after));
        if old <= new {
            return None;
        }
        while after.millis() - before.millis() > 1 {
            let middle = before.plus_millis((after.millis() - before.millis()) / 2);
            if offset_ms(zone, middle) == old {
                before = middle
            } else {
                after = middle
            }
        }
        let start = wall(zone, after);
        Some(Fold {
            start,
            end: start + Duration::milliseconds(old - new),
            again: at >= after,
        })
    }
}

/// UTC to the minute, as `2027-03-14T07:00`.
fn at(text: &str) -> Moment {
    Moment::parse(&format!("{text}:00Z")).unwrap()
}

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// What the clock shows.
fn wall(zone: Tz, at: Moment) -> NaiveDateTime {
    at.datetime().with_timezone(&zone).naive_local()
}

fn offset_ms(zone: Tz, at: Moment) -> i64 {
    i64::from(at.datetime().with_timezone(&zone).offset().fix().local_minus_utc()) * SECOND
}

/// Calendars whose windows start and end before, at, in and after a change that lies between two wall times.
fn sketches_around(low: NaiveDateTime, high: NaiveDateTime) -> Vec<Sketch> {
    let minutes = Duration::minutes;
    let third = (high - low) / 3;
    let (in_early, in_late) = (low + third, high - third);
    let (before, after) = (low - minutes(60), high + minutes(60));
    let always = Sketch::daily(&[(0, 1440)]);
    let today = low.date();
    vec![
        Sketch::between(&[(before, low)]),
        Sketch::between(&[(before, in_early)]),
        Sketch::between(&[(before, high)]),
        Sketch::between(&[(before, after)]),
        Sketch::between(&[(low, in_late)]),
        Sketch::between(&[(low, high)]),
        Sketch::between(&[(low, after)]),
        Sketch::between(&[(in_early, in_late)]),
        Sketch::between(&[(in_early, high)]),
        Sketch::between(&[(in_late, after)]),
        Sketch::between(&[(high, after)]),
        Sketch::between(&[(before, in_early), (in_late, after)]),
        Sketch::between(&[(before, in_early), (in_early, after)]),
        Sketch::between(&[(before, low), (high, after)]),
        Sketch::daily(&[(9 * 60, 20 * 60)]),
        Sketch::daily(NIGHT),
        always.clone().without(today - Duration::days(1)),
        always.clone().without(today),
        always.clone().without(today + Duration::days(1)),
        always,
    ]
}

#[test]
fn each_change_of_the_clocks_minute_by_minute() {
    for (zone, change, minutes) in CHANGES {
        let change = at(change);
        let (old, new) = (offset_ms(zone, change.plus_millis(-1)), offset_ms(zone, change));
        assert_eq!(new - old, minutes * MINUTE, "{zone} {change}");
        let set_to = wall(zone, change);
        let set_from = set_to - Duration::milliseconds(new - old);
        let mut moments: Vec<i64> = (-65..=65).map(|minute| minute * MINUTE).collect();
        // Every start and end lies at one of these.
        let edges = (-6..=6).map(|edge| edge * 10 * MINUTE);
        moments.extend(edges.flat_map(|edge| [edge - SECOND, edge - 1, edge + 1, edge + SECOND]));
        let sketches = sketches_around(set_from.min(set_to), set_from.max(set_to));
        let hours: Vec<Hours> = sketches.iter().map(|sketch| sketch.hours(zone)).collect();
        for moment in moments.iter().map(|after| change.plus_millis(*after)) {
            let clock = Clock::read(zone, moment);
            for (sketch, hours) in sketches.iter().zip(&hours) {
                let open = sketch.is_open(&clock);
                assert_eq!(
                    hours.is_open(moment, 0),
                    open,
                    "{zone} {moment} {} {sketch:?}",
                    clock.now
                );
            }
        }
    }
}

const NEW_YORK: Tz = Tz::America__New_York;
/// 22:00-24:00 and 00:00-06:00.
const NIGHT: &[(u16, u16)] = &[(1320, 1440), (0, 360)];
/// (zone, windows of every day, barred date, moment, the window then: from, until).
type Line = (
    Tz,
    &'static [(u16, u16)],
    Option<&'static str>,
    &'static str,
    Option<(&'static str, &'static str)>,
);
#[rustfmt::skip]
const SPELLS: [Line; 24] = [
    // 01:00-03:00 where 02:00 becomes 01:00: from the later 01:00
    (NEW_YORK, &[(60, 180)], None, "2026-11-01T05:30", None),
    (NEW_YORK, &[(60, 180)], None, "2026-11-01T06:00", Some(("2026-11-01T06:00", "2026-11-01T08:00"))),
    // 00:30-01:30: until the earlier 01:30; 01:30-03:00: from the later one
    (NEW_YORK, &[(30, 90)], None, "2026-11-01T05:00", Some(("2026-11-01T04:30", "2026-11-01T05:30"))),
    (NEW_YORK, &[(30, 90)], None, "2026-11-01T06:15", None),
    (NEW_YORK, &[(90, 180)], None, "2026-11-01T07:00", Some(("2026-11-01T06:30", "2026-11-01T08:00"))),
    // 01:15-01:45: its end comes before its start
    (NEW_YORK, &[(75, 105)], None, "2026-11-01T05:30", None),
    (NEW_YORK, &[(75, 105)], None, "2026-11-01T06:30", None),
    // the whole fold within: one window, an hour longer
    (NEW_YORK, &[(0, 180)], None, "2026-11-01T06:00", Some(("2026-11-01T04:00", "2026-11-01T08:00"))),
    // 02:00 becomes 03:00; 01:00-02:30 and 02:30-04:00: to and from 03:00; 02:10-02:50 is not that day
    (NEW_YORK, &[(60, 150)], None, "2026-03-08T06:30", Some(("2026-03-08T06:00", "2026-03-08T07:00"))),
    (NEW_YORK, &[(150, 240)], None, "2026-03-08T07:30", Some(("2026-03-08T07:00", "2026-03-08T08:00"))),
    (NEW_YORK, &[(130, 170)], None, "2026-03-08T07:00", None),
    // what would be closed lies in the gap: nobody closes
    (NEW_YORK, &[(60, 130), (170, 240)], None, "2026-03-08T06:30", Some(("2026-03-08T06:00", "2026-03-08T08:00"))),
    // the night goes on over a midnight that is skipped, comes twice, or lies within a fold
    (Tz::America__Havana, NIGHT, None, "2025-03-09T05:00", Some(("2025-03-09T03:00", "2025-03-09T10:00"))),
    (Tz::America__Havana, NIGHT, None, "2025-11-02T04:30", Some(("2025-11-02T02:00", "2025-11-02T11:00"))),
    (Tz::Asia__Beirut, NIGHT, None, "2026-10-24T21:00", Some(("2026-10-24T19:00", "2026-10-25T04:00"))),
    (Tz::America__Goose_Bay, NIGHT, None, "2010-11-07T03:30", Some(("2010-11-07T01:00", "2010-11-07T10:00"))),
    // without 2 November: nothing of that date, neither the first nor the second 00:00
    (Tz::America__Havana, NIGHT, Some("2025-11-02"), "2025-11-02T03:00", Some(("2025-11-02T02:00", "2025-11-02T04:00"))),
    (Tz::America__Havana, &[(0, 1440)], Some("2025-11-01"), "2025-11-02T04:30", None),
    // 23:00 comes twice on a barred date: closed for 25 hours
    (Tz::Asia__Beirut, &[(0, 1440)], Some("2026-10-24"), "2026-10-24T21:59", None),
    // Samoa had no 30 December 2011
    (Tz::Pacific__Apia, &[(540, 1200)], None, "2011-12-30T19:00", Some(("2011-12-30T19:00", "2011-12-31T06:00"))),
    // Alaska was set back by a day: all from 15:33 on 18 October 1867 came twice, closed from the first 20:00 to the second 9:00
    (Tz::America__Juneau, &[(540, 1200)], None, "1867-10-18T23:00", None),
    (Tz::America__Juneau, &[(540, 1200)], None, "1867-10-19T01:00", None),
    (Tz::America__Juneau, &[(0, 1440)], None, "1867-10-19T01:00", Some(("1867-10-11T01:00", "1867-10-27T01:00"))),
    (Tz::UTC, &[(540, 1200)], None, "2028-02-29T12:00", Some(("2028-02-29T09:00", "2028-02-29T20:00"))),
];

#[test]
fn spells_of_days_to_remember() {
    for (zone, windows, barred, moment, expected) in SPELLS {
        let sketch = Sketch {
            barred: barred.map(date).into_iter().collect(),
            ..Sketch::daily(windows)
        };
        let expected = expected.map(|(from, until)| OpenWindow {
            from: at(from),
            until: at(until),
        });
        assert_eq!(
            sketch.hours(zone).open_window(at(moment)),
            expected,
            "{zone} {windows:?} {moment}"
        );
    }
}

#[test]
fn a_call_must_be_able_to_ring_to_its_end() {
    let hours = Sketch::daily(&[(540, 1200)]).hours(Tz::Europe__Berlin);
    let close = at("2026-07-01T18:00");
    let tomorrow = Some(at("2026-07-02T07:00"));
    assert!(hours.is_open(close.plus_seconds(-30), 30 * SECOND));
    assert!(!hours.is_open(close.plus_seconds(-30), 30 * SECOND + 1));
    assert_eq!(
        hours.next_opening(close.plus_seconds(-30), 30 * SECOND),
        Some(close.plus_seconds(-30))
    );
    assert_eq!(hours.next_opening(close.plus_seconds(-30), 30 * SECOND + 1), tomorrow);
    assert!(!hours.is_open(close, 0));
    assert_eq!(hours.next_opening(close, 11 * HOUR), tomorrow);
    assert_eq!(hours.next_opening(close, 11 * HOUR + 1), None);
    assert_eq!(hours.next_opening(close, i64::MAX), None);
}

#[test]
fn hours_in_several_zones_are_open_when_all_are() {
    let sketch = Sketch::daily(&[(540, 1200)]);
    let hours = Hours::new(vec![
        (sketch.calendar(), Tz::America__New_York),
        (sketch.calendar(), Tz::Pacific__Honolulu),
    ]);
    // 09:00 in Honolulu to 20:00 in New York
    let open_window = OpenWindow {
        from: at("2026-07-01T19:00"),
        until: at("2026-07-02T00:00"),
    };
    assert_eq!(hours.open_window(open_window.from), Some(open_window));
    assert_eq!(
        hours.next_opening(at("2026-07-01T12:00"), MINUTE),
        Some(open_window.from)
    );
    // nine to five never meet
    let office = Sketch::daily(&[(540, 1020)]).calendar();
    let never = Hours::new(vec![(office.clone(), Tz::America__New_York), (office, Tz::Asia__Tokyo)]);
    assert_eq!(never.next_opening(at("2026-07-01T12:00"), 0), None);
}

#[test]
fn nothing_is_looked_for_beyond_the_horizon() {
    let (midnight, now) = (at("2026-01-01T00:00"), at("2026-01-01T12:00"));
    let closed_for = |days: usize| {
        let mut sketch = Sketch::daily(&[(0, 1440)]);
        sketch.barred = midnight.datetime().date_naive().iter_days().take(days).collect();
        sketch.hours(Tz::UTC)
    };
    let opening = Some(at("2027-02-05T00:00"));
    assert_eq!(closed_for(400).next_opening(midnight, 5 * DAY), opening);
    assert_eq!(closed_for(400).next_opening(now, 5 * DAY), opening);
    assert_eq!(closed_for(401).next_opening(now, 0), None);
    assert_eq!(Sketch::default().hours(Tz::UTC).next_opening(now, 0), None);
}

#[test]
fn windows_are_put_in_order_and_joined() {
    use Weekday::{Mon, Tue};
    let written = Calendar::new(
        [
            (Tue, 0, 60),
            (Mon, 600, 660),
            (Mon, 540, 610),
            (Mon, 660, 720),
            (Mon, 580, 590),
        ],
        [],
    );
    assert_eq!(written, Calendar::new([(Mon, 540, 720), (Tue, 0, 60)], []));
    // what is no window opens nothing
    assert_eq!(
        Calendar::new([(Mon, 60, 60), (Mon, 90, 60), (Mon, 60, 1441)], []),
        Calendar::new([], [])
    );
    assert!(Hours::new(vec![]).is_always());
    assert!(
        Sketch::daily(&[(720, 1440), (0, 720)])
            .hours(Tz::Asia__Beirut)
            .is_always()
    );
    assert!(!Sketch::daily(&[(0, 1439)]).hours(Tz::UTC).is_always());
    assert!(
        !Sketch::daily(&[(0, 1440)])
            .without(date("2026-01-01"))
            .hours(Tz::UTC)
            .is_always()
    );
}

#[test]
fn no_zone_and_no_year_is_too_strange() {
    let (daily, never) = (Sketch::daily(&[(0, 1), (90, 1440)]), Sketch::default());
    let years = [
        "0001-01-01",
        "0001-01-02",
        "0400-02-29",
        "1867-10-18",
        "1900-02-28",
        "2011-12-30",
        "2400-12-31",
        "9999-12-31",
    ];
    let times = ["T00:00:00Z", "T23:59:59.999Z"];
    let moments = years
        .iter()
        .flat_map(|year| times.map(|time| Moment::parse(&format!("{year}{time}")).unwrap()));
    let moments: Vec<Moment> = moments.collect();
    for zone in chrono_tz::TZ_VARIANTS {
        let hours = daily.hours(zone);
        for moment in &moments {
            let open = hours.open_window(*moment).is_some();
            assert_eq!(hours.is_open(*moment, 0), open, "{zone} {moment}");
            let next = hours.next_opening(*moment, 0);
            assert_eq!(next == Some(*moment), open, "{zone} {moment}");
        }
    }
    for moment in moments {
        assert_eq!(never.hours(Tz::Pacific__Apia).next_opening(moment, 0), None);
        Hours::new(vec![]).next_opening(moment, i64::MIN);
    }
}

/// Moments near a change of the zone's clocks, and any others, to the minute.
fn moments() -> impl Strategy<Value = (Tz, Moment)> {
    let near = (prop::sample::select(&CHANGES[..]), -1560..1560i64)
        .prop_map(|((zone, change, _), minutes)| (zone, at(change).plus_millis(minutes * MINUTE)));
    let any = (prop::sample::select(&CHANGES[..]), 0..8_000_000i64)
        .prop_map(|((zone, ..), minutes)| (zone, at("2015-01-01T00:00").plus_millis(minutes * MINUTE)));
    prop_oneof![2 => near, 1 => any]
}

/// Any windows, with dates barred around one.
fn sketches(date: NaiveDate) -> impl Strategy<Value = Sketch> {
    let window = (0..7usize, 1..=7usize, 0..144u16, 1..=144u16).prop_map(|(first, days, start, length)| {
        let (start, end) = (start * 10, ((start + length) * 10).min(1440));
        let days = WEEK.into_iter().cycle().skip(first).take(days);
        days.map(move |day| (day, start, end)).collect::<Vec<_>>()
    });
    let windows = prop_oneof![
        4 => prop::collection::vec(window, 0..6).prop_map(|windows| windows.concat()),
        1 => Just(Sketch::daily(&[(0, 1440)]).windows),
    ];
    let barred = prop::collection::vec((-9..9i64).prop_map(move |day| date + Duration::days(day)), 0..3);
    (windows, barred).prop_map(|(windows, barred)| Sketch { windows, barred })
}

/// Hours of one to three parts, and a moment.
fn worlds() -> impl Strategy<Value = (Vec<(Sketch, Tz)>, Moment)> {
    moments().prop_flat_map(|(zone, moment)| {
        let date = wall(zone, moment).date();
        let other = prop::sample::select(&CHANGES[..]).prop_map(|change| change.0);
        let others = prop::collection::vec((sketches(date), other), 0..3);
        (sketches(date), others).prop_map(move |(first, mut parts)| {
            parts.insert(0, (first, zone));
            (parts, moment)
        })
    })
}

fn hours(parts: &[(Sketch, Tz)]) -> Hours {
    Hours::new(parts.iter().map(|(sketch, zone)| (sketch.calendar(), *zone)).collect())
}

/// The oracle, for all parts.
fn all_open(parts: &[(Sketch, Tz)], at: Moment) -> bool {
    parts
        .iter()
        .all(|(sketch, zone)| sketch.is_open(&Clock::read(*zone, at)))
}

/// The oracle, for all the minutes that a call would ring.
fn all_open_for(parts: &[(Sketch, Tz)], at: Moment, minutes: i64) -> bool {
    (0..minutes.max(1)).all(|minute| all_open(parts, at.plus_millis(minute * MINUTE)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_spell_holds_its_moment_and_ends_where_it_closes((parts, moment) in worlds()) {
        let hours = hours(&parts);
        prop_assert_eq!(hours.open_window(moment).is_some(), all_open(&parts, moment));
        let Some(moment) = hours.next_opening(moment, 0) else { return Ok(()) };
        let OpenWindow { from, until } = hours.open_window(moment).unwrap();
        prop_assert!(from <= moment && moment < until);
        prop_assert!(all_open(&parts, from) && all_open(&parts, until.plus_millis(-1)));
        // unless clipped
        prop_assert!(from == moment.plus_millis(-8 * DAY) || !all_open(&parts, from.plus_millis(-1)));
        prop_assert!(until == moment.plus_millis(8 * DAY) || !all_open(&parts, until));
        prop_assert!(hours.is_open(moment, until.millis() - moment.millis()));
        prop_assert!(!hours.is_open(moment, until.millis() - moment.millis() + 1));
    }

    #[test]
    fn a_call_may_ring_if_every_minute_of_it_is_open((parts, moment) in worlds(), minutes in 0..120i64) {
        prop_assert_eq!(hours(&parts).is_open(moment, minutes * MINUTE), all_open_for(&parts, moment, minutes));
    }

    #[test]
    fn the_next_opening_is_open_and_the_first((parts, moment) in worlds(), minutes in 0..40i64) {
        let hours = hours(&parts);
        let opening = hours.next_opening(moment, minutes * MINUTE);
        if let Some(opening) = opening {
            prop_assert!(opening >= moment);
            prop_assert!(hours.is_open(opening, minutes * MINUTE) && all_open_for(&parts, opening, minutes));
            prop_assert!(opening == moment || !hours.is_open(opening.plus_millis(-1), minutes * MINUTE));
        }
        let last = opening.unwrap_or(moment.plus_millis(HORIZON.num_milliseconds()));
        let last = last.min(moment.plus_millis(2 * DAY));
        for missed in (moment.millis()..last.millis()).step_by(60 * 1000).map(Moment::from_millis) {
            prop_assert!(!all_open_for(&parts, missed, minutes), "{} is before {:?}", missed, opening);
        }
    }

    #[test]
    fn the_same_question_has_the_same_answer((parts, moment) in worlds(), room in 0..HOUR) {
        let (one, mut two) = (hours(&parts), parts.clone());
        two.iter_mut().for_each(|(sketch, _)| sketch.windows.reverse());
        let two = hours(&two);
        prop_assert_eq!(&one, &two);
        prop_assert_eq!(one.open_window(moment), two.open_window(moment));
        prop_assert_eq!(one.next_opening(moment, room), two.next_opening(moment, room));
        prop_assert_eq!(one.is_open(moment, room), one.next_opening(moment, room) == Some(moment));
    }

    #[test]
    fn several_parts_are_open_if_each_is((parts, moment) in worlds(), room in 0..3 * HOUR) {
        let each = parts.iter().all(|(sketch, zone)| sketch.hours(*zone).is_open(moment, room));
        prop_assert_eq!(hours(&parts).is_open(moment, room), each);
    }

    #[test]
    fn always_never_closes((zone, moment) in moments(), room in 0..8 * DAY) {
        let always = Hours::new(vec![(Arc::new(Calendar::always()), zone)]);
        for hours in [always, Hours::new(vec![])] {
            prop_assert!(hours.is_open(moment, room) && hours.is_always());
            prop_assert_eq!(hours.next_opening(moment, room), Some(moment));
            prop_assert!(!hours.is_open(moment, 8 * DAY + 1) && hours.next_opening(moment, 8 * DAY + 1).is_none());
            let clipped = OpenWindow { from: moment.plus_millis(-8 * DAY), until: moment.plus_millis(8 * DAY) };
            prop_assert_eq!(hours.open_window(moment), Some(clipped));
        }
    }
}
