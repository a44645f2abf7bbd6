//! Days and hours, as the oracle knows them.
use chrono::{DateTime, NaiveDate, Timelike, Weekday};
use chrono_tz::Tz;

/// From the minute `from` until before the minute `to`.
#[derive(Clone, Copy)]
pub struct Open {
    pub days: &'static [Weekday],
    pub from: u32,
    pub to: u32,
}

pub fn minute_of_day(time: &DateTime<Tz>) -> u32 {
    time.hour() * 60 + time.minute()
}

/// Holidays of the whole country that are no Sundays, from 1 March 2026 to 31 March 2027. Written from the countries' calendars, day
/// by day, and not computed: Easter Sundays are 5 April 2026 and 28 March 2027.
const HOLIDAYS: [(&str, &[&str]); 4] = [
    (
        "FR",
        &[
            "2026-04-06",
            "2026-05-01",
            "2026-05-08",
            "2026-05-14",
            "2026-05-25",
            "2026-07-14",
            "2026-08-15",
            "2026-11-11",
            "2026-12-25",
            "2027-01-01",
            "2027-03-29",
        ],
    ),
    (
        "ES",
        &[
            "2026-04-03",
            "2026-05-01",
            "2026-08-15",
            "2026-10-12",
            "2026-12-08",
            "2026-12-25",
            "2027-01-01",
            "2027-01-06",
            "2027-03-26",
        ],
    ),
    (
        "IT",
        &[
            "2026-04-06",
            "2026-04-25",
            "2026-05-01",
            "2026-06-02",
            "2026-08-15",
            "2026-12-08",
            "2026-12-25",
            "2026-12-26",
            "2027-01-01",
            "2027-01-06",
            "2027-03-29",
        ],
    ),
    (
        "AU",
        &[
            "2026-04-03",
            "2026-04-06",
            "2026-04-25",
            "2026-12-25",
            "2026-12-26",
            "2027-01-01",
            "2027-01-26",
            "2027-03-26",
            "2027-03-29",
        ],
    ),
];

pub fn is_holiday(place: &str, day: NaiveDate) -> bool {
    let day = day.to_string();
    let of_place = HOLIDAYS.iter().find(|(known, _)| *known == place);
    of_place.is_some_and(|(_, days)| days.contains(&day.as_str()))
}

/// Days on which something changes: clocks, laws, the year; and holidays.
pub fn special_days() -> Vec<NaiveDate> {
    let changes = [
        // Clocks: North America, Europe, Australia.
        "2026-03-08",
        "2026-11-01",
        "2027-03-14",
        "2026-03-29",
        "2026-10-25",
        "2027-03-28",
        "2026-04-05",
        "2026-10-04",
        // Laws: energy in Italy, customers in the Netherlands, France, Artificial Intelligence Act, Colorado.
        "2026-06-19",
        "2026-07-01",
        "2026-08-11",
        "2026-08-02",
        "2027-01-01",
        "2027-01-31",
    ];
    let holidays = HOLIDAYS.iter().flat_map(|(_, days)| days.iter().copied());
    let days = changes.into_iter().chain(holidays).map(|day| day.parse().unwrap());
    days.flat_map(|day: NaiveDate| [day.pred_opt(), Some(day), day.succ_opt()])
        .flatten()
        .collect()
}
