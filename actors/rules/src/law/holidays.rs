//! Public holidays: fixed days, days around Easter, and days such as the fourth Thursday of November. Pure; the rules of each calendar
//! stand in `holidays.toml`.
use super::read::LawError;
use chrono::{Datelike, Days, NaiveDate, Weekday};
use entities::values::Day;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The years of which calendars know the holidays. A record that is judged again is not older, and a pack is replaced sooner.
pub const YEARS: std::ops::RangeInclusive<i32> = 2020..=2060;

/// A calendar of one country, or of a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Holidays {
    pub name: String,
    pub source: String,
    all: Arc<BTreeSet<NaiveDate>>,
}

impl Holidays {
    /// Of all years that are known. Computed once, for each law that is made of the pack.
    pub fn all(&self) -> &Arc<BTreeSet<NaiveDate>> {
        &self.all
    }
}

/// Reads `holidays.toml`.
pub fn read(file: &str, text: &str) -> Result<BTreeMap<String, Holidays>, LawError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        calendar: Vec<Written>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written {
        name: String,
        source: String,
        days: Vec<Holiday>,
    }
    let written: File = toml::from_str(text).map_err(|error| LawError::of_file(file, error.to_string()))?;
    let mut calendars = BTreeMap::new();
    for Written { name, source, days } in written.calendar {
        let error = |why: String| LawError::of_file(file, format!("calendar {name}: {why}"));
        if let Some(day) = days.iter().find(|day| !day.is_sound()) {
            return Err(error(format!("`{}` is not a day of any year", day.name)));
        }
        if source.trim().is_empty() {
            return Err(error("has no source".to_owned()));
        }
        let all: BTreeSet<NaiveDate> = YEARS
            .flat_map(|year| days.iter().flat_map(move |day| day.of_year(year)))
            .collect();
        let calendar = Holidays {
            name: name.clone(),
            source,
            all: Arc::new(all),
        };
        if calendars.insert(name.clone(), calendar).is_some() {
            return Err(LawError::of_file(file, format!("calendar {name} stands there twice")));
        }
    }
    Ok(calendars)
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Holiday {
    name: String,
    /// One of the three: month and day, such as `07-14`.
    on: Option<String>,
    /// Days after Easter Sunday; before it: negative.
    easter: Option<i32>,
    /// Such as the fourth Thursday of November.
    nth: Option<NthDay>,
    /// What else is free if it falls on a weekend.
    #[serde(default)]
    observed: Observed,
    /// Only in years that this divides, such as 2 for elections.
    every: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct NthDay {
    month: u32,
    day: Day,
    /// 1 to 5 from the month's beginning, -1 for the last.
    count: i32,
    /// Days after it, as for the Friday after Thanksgiving.
    #[serde(default)]
    after: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Observed {
    #[default]
    Never,
    /// On the Monday after a weekend.
    Monday,
    /// A Saturday's on Friday, a Sunday's on Monday.
    Nearest,
    /// Two days later: Christmas and the day after it share a weekend.
    SecondDay,
}

impl Holiday {
    /// Is it one day, in some year? Leap days are not.
    fn is_sound(&self) -> bool {
        let ways = [self.on.is_some(), self.easter.is_some(), self.nth.is_some()];
        let is_one = ways.into_iter().filter(|is_given| *is_given).count() == 1;
        is_one && self.every.is_none_or(|every| every > 0) && YEARS.clone().all(|year| self.date(year).is_some())
    }

    fn of_year(&self, year: i32) -> Vec<NaiveDate> {
        if self.every.is_some_and(|every| year.rem_euclid(every) != 0) {
            return Vec::new();
        }
        let Some(date) = self.date(year) else {
            return Vec::new();
        };
        let moved = match (self.observed, date.weekday()) {
            (Observed::Monday, Weekday::Sat) | (Observed::SecondDay, Weekday::Sat | Weekday::Sun) => {
                date.checked_add_days(Days::new(2))
            }
            (Observed::Monday | Observed::Nearest, Weekday::Sun) => date.checked_add_days(Days::new(1)),
            (Observed::Nearest, Weekday::Sat) => date.checked_sub_days(Days::new(1)),
            _ => None,
        };
        [Some(date), moved].into_iter().flatten().collect()
    }

    fn date(&self, year: i32) -> Option<NaiveDate> {
        if let Some(on) = &self.on {
            let (month, day) = on.split_once('-')?;
            return NaiveDate::from_ymd_opt(year, month.parse().ok()?, day.parse().ok()?);
        }
        if let Some(after) = self.easter {
            return easter(year)?.checked_add_signed(chrono::TimeDelta::days(after.into()));
        }
        self.nth.as_ref()?.date(year)
    }
}

impl NthDay {
    fn date(&self, year: i32) -> Option<NaiveDate> {
        let date = match u8::try_from(self.count) {
            Ok(count) => NaiveDate::from_weekday_of_month_opt(year, self.month, self.day.into(), count)?,
            Err(_) if self.count == -1 => (4..=5)
                .rev()
                .find_map(|count| NaiveDate::from_weekday_of_month_opt(year, self.month, self.day.into(), count))?,
            Err(_) => return None,
        };
        date.checked_add_days(Days::new(self.after))
    }
}

/// Easter Sunday by the Gregorian calendar. Source: "To find Easter", Nature, 20 April 1876 (the anonymous algorithm).
pub fn easter(year: i32) -> Option<NaiveDate> {
    let golden = year.rem_euclid(19);
    let (century, of_century) = (year.div_euclid(100), year.rem_euclid(100));
    let corrected = (8 * century + 13).div_euclid(25);
    let epact = (19 * golden + century - century.div_euclid(4) - corrected + 15).rem_euclid(30);
    let weekday = (32 + 2 * century.rem_euclid(4) + 2 * of_century.div_euclid(4) - epact - of_century.rem_euclid(4))
        .rem_euclid(7);
    let leap = (golden + 11 * epact + 22 * weekday).div_euclid(451);
    let days = epact + weekday - 7 * leap + 114;
    NaiveDate::from_ymd_opt(
        year,
        u32::try_from(days.div_euclid(31)).ok()?,
        u32::try_from(days.rem_euclid(31) + 1).ok()?,
    )
}

#[cfg(test)]
#[path = "holidays_tests.rs"]
mod tests;
