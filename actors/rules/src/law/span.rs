//! Windows of a week as the pack writes them: `mon-fri 09:00-20:00`, `sat 10:00-19:00`, `daily 08:00-21:00`.
use chrono::Weekday;
use entities::values::{Day, TimeOfDay};
use serde::{Deserialize, Serialize};

/// One window, on some days of each week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span {
    written: String,
    days: Vec<Day>,
    /// Minutes since midnight, [start, end).
    start: u16,
    end: u16,
}

impl Span {
    /// As calendars want it.
    pub fn windows(&self) -> impl Iterator<Item = (Weekday, u16, u16)> {
        self.days.iter().map(|day| ((*day).into(), self.start, self.end))
    }
}

impl TryFrom<String> for Span {
    type Error = String;
    fn try_from(written: String) -> Result<Self, String> {
        let bad = || {
            format!(
                "`{written}` is not a window: write `mon-fri 09:00-20:00`, `sat 10:00-19:00` or `daily 08:00-21:00`"
            )
        };
        let (days, times) = written.split_once(' ').ok_or_else(bad)?;
        let (start, end) = times.split_once('-').ok_or_else(bad)?;
        let minutes = |text: &str| text.parse::<TimeOfDay>().map(TimeOfDay::minutes).map_err(|_| bad());
        let (start, end) = (minutes(start)?, minutes(end)?);
        if start >= end {
            return Err(format!("`{written}` ends before it begins"));
        }
        Ok(Span {
            days: days_of(days).ok_or_else(bad)?,
            start,
            end,
            written,
        })
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        span.written
    }
}

/// `daily`, `sat`, `mon-fri`; none: unknown, or from a later day to an earlier one.
fn days_of(text: &str) -> Option<Vec<Day>> {
    let all = Day::all();
    if text == "daily" {
        return Some(all);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (day(first)?, day(last)?);
    (first <= last).then(|| all.into_iter().filter(|day| (first..=last).contains(day)).collect())
}

fn day(text: &str) -> Option<Day> {
    match text {
        "mon" => Some(Day::Mon),
        "tue" => Some(Day::Tue),
        "wed" => Some(Day::Wed),
        "thu" => Some(Day::Thu),
        "fri" => Some(Day::Fri),
        "sat" => Some(Day::Sat),
        "sun" => Some(Day::Sun),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_read_strictly() {
        let read = |text: &str| Span::try_from(text.to_owned());
        let span = read("mon-fri 09:00-20:30").unwrap();
        let windows: Vec<_> = span.windows().collect();
        assert_eq!(windows.len(), 5);
        assert_eq!(windows[4], (Weekday::Fri, 540, 1230));
        assert_eq!(read("daily 00:00-24:00").unwrap().windows().count(), 7);
        assert_eq!(String::from(read("sat 10:00-19:00").unwrap()), "sat 10:00-19:00");
        for text in [
            "",
            "mon",
            "mon 9:00-20:00",
            "fri-mon 09:00-20:00",
            "mon 20:00-09:00",
            "mon 09:00-09:00",
            "mon  09:00-20:00",
            "Mon 09:00-20:00",
            "mon 09:00",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
