use super::*;
use crate::law::pack;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// Source: the tables of the United States Census Bureau and of the Physikalisch-Technische Bundesanstalt.
#[test]
fn easter_falls_on_its_known_days() {
    for known in [
        "1818-03-22",
        "1943-04-25",
        "2000-04-23",
        "2019-04-21",
        "2024-03-31",
        "2025-04-20",
        "2026-04-05",
        "2027-03-28",
        "2028-04-16",
        "2038-04-25",
        "2285-03-22",
    ] {
        let known = date(known);
        assert_eq!(easter(known.year()), Some(known));
    }
    for year in 1583..3000 {
        let easter = easter(year).unwrap();
        assert_eq!(easter.weekday(), Weekday::Sun);
        assert!(date(&format!("{year}-03-22")) <= easter && easter <= date(&format!("{year}-04-25")));
    }
}

#[test]
fn calendars_hold_their_days() {
    let days = [
        (
            "fr",
            "2026-04-06 2026-05-14 2026-05-25 2026-07-14 2027-05-06",
            "2026-04-03 2026-12-26",
        ),
        ("es", "2026-04-03 2026-10-12 2026-12-08", "2026-04-06 2026-05-25"),
        (
            "de",
            "2026-04-03 2026-04-06 2026-05-14 2026-05-25 2026-10-03 2026-12-26",
            "2026-11-01 2026-06-04",
        ),
        ("at", "2026-04-06 2026-06-04 2026-10-26", "2026-04-03 2026-10-03"),
        (
            "it",
            "2026-04-05 2026-04-06 2026-04-25 2026-06-02",
            "2026-04-03 2026-05-14",
        ),
        // Christmas of 2027 is a Saturday, New Year's Day of 2028 another.
        (
            "au",
            "2026-01-26 2027-12-25 2027-12-26 2027-12-27 2027-12-28 2028-01-03",
            "2027-12-29 2028-01-04",
        ),
        ("us-al", "2026-02-17 2026-04-27 2026-06-01 2026-11-26", "2026-04-03"),
        (
            "us-la",
            "2026-02-17 2026-04-03 2026-11-03 2026-11-27 2028-11-07",
            "2027-11-02",
        ),
        ("us-ms", "2026-04-27 2026-05-25 2026-09-07", "2026-02-17"),
        (
            "us-pa",
            "2026-04-03 2026-06-14 2026-11-03 2027-11-02 2026-11-27",
            "2026-02-17",
        ),
        ("us-ri", "2026-08-10 2026-11-03", "2027-11-02"),
        // The Fourth of July of 2026 is a Saturday.
        ("us-ut", "2026-07-03 2026-07-04 2026-07-24 2026-01-19", "2026-07-06"),
    ];
    let calendars = &pack().holidays;
    assert_eq!(calendars.len(), days.len());
    for (name, free, working) in days {
        let all = calendars.get(name).unwrap().all();
        for day in free.split(' ') {
            assert!(all.contains(&date(day)), "{name}: {day}");
        }
        for day in working.split(' ') {
            assert!(!all.contains(&date(day)), "{name}: {day}");
        }
    }
}

#[test]
fn what_is_no_day_is_refused() {
    let day = |day: &str| format!("[[calendar]]\nname = \"x\"\nsource = \"s\"\ndays = [{{ name = \"d\", {day} }}]\n");
    let read = |written: &str| read("holidays.toml", &day(written));
    assert!(read("on = \"05-01\"").is_ok());
    for written in [
        "on = \"02-29\"",
        "on = \"13-01\"",
        "on = \"1 May\"",
        "easter = 1, on = \"05-01\"",
        "every = 2",
        "on = \"05-01\", every = 0",
        "nth = { month = 5, day = \"mon\", count = 5 }",
        "nth = { month = 5, day = \"mon\", count = 0 }",
        "nth = { month = 5, day = \"mon\", count = -2 }",
        "on = \"05-01\", observed = \"later\"",
    ] {
        assert!(read(written).is_err(), "{written}");
    }
}
