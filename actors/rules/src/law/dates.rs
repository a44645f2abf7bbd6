//! The days on which rules begin and end, by the clocks of the person. Several clocks may count: what begins holds as soon as one of
//! them shows the day, what ends holds until the last of them does.
use chrono::{FixedOffset, NaiveDate, NaiveTime, Offset, TimeZone};
use chrono_tz::{GapInfo, Tz};
use entities::values::{Moment, Zone};

/// No clock on Earth is further ahead of UTC (Kiritimati), or further behind it (Baker Island).
const HOURS_AHEAD: i32 = 14;
const HOURS_BEHIND: i32 = 12;

/// The dates that the clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days {
    pub earliest: NaiveDate,
    pub latest: NaiveDate,
}

impl Days {
    /// Of no zone: wherever it is.
    pub fn at(zones: &[Zone], at: Moment) -> Self {
        let utc = at.datetime();
        let dates = || zones.iter().map(|zone| utc.with_timezone(&zone.tz()).date_naive());
        let offset = |hours: i32| {
            let offset = FixedOffset::east_opt(hours * 3600).unwrap_or(chrono::Utc.fix());
            utc.with_timezone(&offset).date_naive()
        };
        Days {
            earliest: dates().min().unwrap_or_else(|| offset(-HOURS_BEHIND)),
            latest: dates().max().unwrap_or_else(|| offset(HOURS_AHEAD)),
        }
    }

    /// Does a rule with these days hold?
    pub fn are_within(self, from: Option<NaiveDate>, until: Option<NaiveDate>) -> bool {
        from.is_none_or(|from| from <= self.latest) && until.is_none_or(|until| self.earliest < until)
    }
}

/// When what begins on that day begins: with the first of the clocks.
pub fn begins(zones: &[Zone], date: NaiveDate) -> Option<Moment> {
    let first = zones.iter().filter_map(|zone| midnight(zone.tz(), date)).min();
    first.or_else(|| anywhere(date, HOURS_AHEAD))
}

/// When what holds no more from that day on ends: with the last of the clocks.
pub fn ends(zones: &[Zone], date: NaiveDate) -> Option<Moment> {
    let last = zones.iter().filter_map(|zone| midnight(zone.tz(), date)).max();
    last.or_else(|| anywhere(date, -HOURS_BEHIND))
}

/// The first instant of a date; in a gap the first one after it.
fn midnight(zone: Tz, date: NaiveDate) -> Option<Moment> {
    let wall = date.and_time(NaiveTime::MIN);
    let first = zone.from_local_datetime(&wall).earliest();
    let first = first.or_else(|| GapInfo::new(&wall, &zone)?.end)?;
    Some(Moment::from(first.to_utc()))
}

fn anywhere(date: NaiveDate, hours_ahead: i32) -> Option<Moment> {
    let wall = FixedOffset::east_opt(hours_ahead * 3600)?.from_local_datetime(&date.and_time(NaiveTime::MIN));
    Some(Moment::from(wall.earliest()?.to_utc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(names: &[&str]) -> Vec<Zone> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }
    fn at(text: &str) -> Moment {
        Moment::parse(text).unwrap()
    }
    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn what_begins_begins_with_the_first_clock_and_what_ends_with_the_last() {
        let eleventh = day("2026-08-11");
        for (names, first, last) in [
            (&["Europe/Paris"][..], "2026-08-10T22:00:00Z", "2026-08-10T22:00:00Z"),
            (
                &["America/New_York", "America/Los_Angeles"],
                "2026-08-11T04:00:00Z",
                "2026-08-11T07:00:00Z",
            ),
            (&[], "2026-08-10T10:00:00Z", "2026-08-11T12:00:00Z"),
        ] {
            let zones = zones(names);
            assert_eq!(begins(&zones, eleventh), Some(at(first)), "{names:?}");
            assert_eq!(ends(&zones, eleventh), Some(at(last)), "{names:?}");
            // The same, asked the other way round.
            for (moment, has_begun) in [(at(first), true), (at(first).plus_millis(-1), false)] {
                assert_eq!(Days::at(&zones, moment).are_within(Some(eleventh), None), has_begun);
            }
            for (moment, has_ended) in [(at(last), true), (at(last).plus_millis(-1), false)] {
                assert_eq!(!Days::at(&zones, moment).are_within(None, Some(eleventh)), has_ended);
            }
        }
    }

    /// Cairo's clocks went from 00:00 to 01:00.
    #[test]
    fn a_day_without_midnight_begins_after_the_gap() {
        let zones = zones(&["Africa/Cairo"]);
        assert_eq!(begins(&zones, day("2024-04-26")), Some(at("2024-04-25T22:00:00Z")));
    }
}
