//! Days as registers keep them: two bytes, counted from the first of January 2000.
use chrono::{Days, NaiveDate, NaiveTime};
use entities::values::Moment;

/// Nobody has said since when a number is listed.
pub const UNKNOWN: u16 = u16::MAX;

fn first() -> NaiveDate {
    NaiveDate::from_ymd_opt(2000, 1, 1).unwrap_or_default()
}

fn parse(text: &str) -> Option<NaiveDate> {
    // Chrono alone would take more ways to write it.
    let is_iso = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d");
    date.ok().filter(|_| is_iso)
}

/// When a day begins in UTC; `None`: the text is not a day.
pub fn begins(text: &str) -> Option<Moment> {
    let date = parse(text.trim())?;
    Some(Moment::from(date.and_time(NaiveTime::MIN).and_utc()))
}

/// A day as it is kept; empty: nobody knows. What lies before 2000 counts as its first day. `latest`: none is later.
pub fn read(text: &str, latest: NaiveDate) -> Result<u16, String> {
    if text.is_empty() {
        return Ok(UNKNOWN);
    }
    let date = parse(text).ok_or_else(|| "has a `listed_at` that is not a day, such as 2026-11-30".to_owned())?;
    if date > latest {
        return Err(format!("is listed on {date}, after the file was given out"));
    }
    let days = (date - first()).num_days().max(0);
    u16::try_from(days)
        .ok()
        .filter(|day| *day != UNKNOWN)
        .ok_or_else(|| format!("is listed on {date}, which is too late"))
}

/// The day that is kept.
pub fn date(day: u16) -> Option<NaiveDate> {
    match day {
        UNKNOWN => None,
        day => first().checked_add_days(Days::new(u64::from(day))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn latest() -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, 30).unwrap()
    }

    #[test]
    fn days_are_read_or_refused() {
        for (text, expected) in [
            ("2000-01-01", Some(0)),
            ("2000-01-02", Some(1)),
            ("1999-12-31", Some(0)),
            ("2026-11-30", Some(9_830)),
            ("", Some(UNKNOWN)),
            ("2026-12-01", None),
            ("2026-02-30", None),
            ("26-11-30", None),
            ("+026-11-30", None),
            ("30.11.2026", None),
            ("soon", None),
        ] {
            assert_eq!(read(text, latest()).ok(), expected, "{text}");
        }
        assert_eq!(date(UNKNOWN), None);
        assert_eq!(date(9_830), Some(latest()));
        assert_eq!(begins("2026-11-30").unwrap().to_string(), "2026-11-30T00:00:00.000Z");
    }

    proptest! {
        #[test]
        fn a_day_comes_back_as_it_was(day in 0_u16..9_830) {
            let text = date(day).unwrap().to_string();
            prop_assert_eq!(read(&text, latest()), Ok(day));
        }
    }
}
