//! When somebody may be called: a campaign's windows, over the floor that the law sets, in every zone that counts.
//!
//! Contacts are grouped by the name of their zones ([`group`]), so that the hours of a million contacts are those of a few
//! dozen groups: a quiet hour costs no row.
mod calendar;

pub use calendar::{Calendar, Hours, OpenWindow, common};

use crate::{
    law::{self, Law},
    zone,
};
use chrono::{NaiveDate, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use entities::{
    campaign::{OnUnknownTimezone, Schedule, TimezoneMode},
    contact::{Model as Contact, UNCALLABLE},
    dnc::DncChannel,
    law::{Audience, Purpose},
    values::{Day, E164, Env, Moment, Place, Zone},
};
use std::sync::{Arc, LazyLock};

/// 08:00 to 21:00 where the person is: no live call outside it, whatever a campaign says. Source: CONTRACT §3.
static FLOOR: LazyLock<Arc<Calendar>> = LazyLock::new(|| daily(8 * 60, 21 * 60));
/// What a live campaign keeps that names no windows.
static LIVE_DEFAULT: LazyLock<Arc<Calendar>> = LazyLock::new(|| daily(9 * 60, 20 * 60));

fn daily(start: u16, end: u16) -> Arc<Calendar> {
    Arc::new(Calendar::new(
        Day::all().into_iter().map(|day| (day.into(), start, end)),
        [],
    ))
}

/// The group of somebody with this number, if any, this zone and this region, if they were said: the zones that count, and behind an
/// `@` the places whose laws hold, as far as rules of the law tell them apart; none: nowhere that is known. However many regions people
/// write, there are no more groups than the law has places.
pub fn group(law: &Law, number: Option<&E164>, timezone: Option<Zone>, region: Option<&Place>) -> String {
    let (places, _) = match number {
        Some(number) => law::places_of(number, region),
        None => law::places::of_region(region),
    };
    let places = law.told_apart(&places);
    let names: Vec<&str> = places.iter().map(Place::as_str).collect();
    let clocks: Vec<Tz> = law::places::clocks(number, timezone, region)
        .into_iter()
        .map(Zone::tz)
        .collect();
    let zones = match number.filter(|_| clocks.is_empty()) {
        Some(number) => unknown(number),
        None => zone::name(&clocks),
    };
    format!("{zones}@{}", names.join("+"))
}

/// The group of a contact that is in another one: its row was written before a rule named its place, or by a version whose groups had no
/// places. `None`: it is where it belongs, or cannot be called.
pub fn regrouped(law: &Law, contact: &Contact) -> Option<String> {
    if contact.zone == UNCALLABLE {
        return None;
    }
    let own = group(law, contact.e164().as_ref(), contact.timezone, contact.region.as_ref());
    (own != contact.zone).then_some(own)
}

/// What is known of its zones: the first digits of its country.
fn unknown(number: &E164) -> String {
    let digits = number.as_str().trim_start_matches('+');
    let country = if number.is_sandbox() { 1 } else { 3 };
    format!("?{}", digits.get(..country).unwrap_or(digits))
}

/// Was it written by a version that knows of places? Then it says so even of who is nowhere that is known.
pub fn has_places(group: &str) -> bool {
    group.contains('@')
}

/// The zones of a group, as one name.
pub fn zones_part(group: &str) -> &str {
    parts_of(group).0
}

/// The places whose laws hold for a group.
pub fn places_part(group: &str) -> Vec<Place> {
    parts_of(group).1
}

/// The zones of a group, as one name, and its places.
fn parts_of(group: &str) -> (&str, Vec<Place>) {
    match group.split_once('@') {
        Some((zones, places)) => (
            zones,
            places.split('+').filter_map(|place| place.parse().ok()).collect(),
        ),
        None => (group, Vec::new()),
    }
}

/// What a group's contacts are in for.
#[derive(Clone, Debug, PartialEq)]
pub enum CallingHours {
    Hours(Hours),
    /// There is no number to call, or nobody may say what time it is there.
    Uncallable,
}

/// A schedule, ready to be asked.
#[derive(Clone, Debug)]
pub struct Rules {
    windows: Arc<Calendar>,
    floor: Option<Arc<Calendar>>,
    mode: TimezoneMode,
    on_unknown: OnUnknownTimezone,
    /// For `fixed`, and where nothing else is known.
    pub zone: Tz,
    pub ends_at: Option<Moment>,
    /// The law's own windows, where it binds.
    law: Option<LawHours>,
}

/// For what the law's windows are asked.
#[derive(Clone, Debug)]
pub struct LawHours {
    pub law: Arc<Law>,
    pub purpose: Purpose,
    pub audience: Audience,
    pub channel: DncChannel,
}

impl LawHours {
    /// The law's windows for a group. One that was written before groups had places has none: each contact of it is given its own group
    /// when it is read ([`regrouped`]).
    fn windows(&self, group: &str) -> Vec<Arc<Calendar>> {
        if !has_places(group) {
            return Vec::new();
        }
        self.law
            .windows(&places_part(group), self.purpose, self.audience, self.channel)
    }
}

impl Rules {
    pub fn new(schedule: &Schedule, env: Env, tenant: Zone) -> Self {
        let barred = || schedule.blackout_dates.iter().copied();
        let windows = match (&schedule.windows, env) {
            (Some(windows), _) => {
                let spans = windows.iter().flat_map(|window| {
                    let span = (window.start.minutes(), window.end.minutes());
                    window.days.iter().map(move |day| ((*day).into(), span.0, span.1))
                });
                Arc::new(Calendar::new(spans, barred()))
            }
            (None, Env::Live) if schedule.blackout_dates.is_empty() => LIVE_DEFAULT.clone(),
            (None, Env::Live) => {
                let spans = Day::all().into_iter().map(|day| (day.into(), 9 * 60, 20 * 60));
                Arc::new(Calendar::new(spans, barred()))
            }
            (None, Env::Test) => {
                let spans = Day::all().into_iter().map(|day| (day.into(), 0, 24 * 60));
                Arc::new(Calendar::new(spans, barred()))
            }
        };
        Rules {
            windows,
            floor: (env == Env::Live).then(|| FLOOR.clone()),
            mode: schedule.timezone_mode,
            on_unknown: schedule.on_unknown_timezone,
            zone: schedule.timezone.unwrap_or(tenant).tz(),
            ends_at: schedule.ends_at,
            law: None,
        }
    }

    /// The rules of a call that no campaign makes: the floor alone.
    pub fn direct(env: Env, tenant: Zone) -> Self {
        Rules {
            windows: Arc::new(Calendar::always()),
            floor: (env == Env::Live).then(|| FLOOR.clone()),
            mode: TimezoneMode::Contact,
            on_unknown: OnUnknownTimezone::Fallback,
            zone: tenant.tz(),
            ends_at: None,
            law: None,
        }
    }

    /// The law's windows hold, too.
    pub fn under(self, law: Option<LawHours>) -> Self {
        Rules { law, ..self }
    }

    /// The hours of a group.
    pub fn of(&self, group: &str) -> CallingHours {
        if group == UNCALLABLE {
            return CallingHours::Uncallable;
        }
        let zones = match self.zones(group) {
            Some(zones) => zones,
            None => return CallingHours::Uncallable,
        };
        let mut calendars: Vec<Arc<Calendar>> = self.floor.iter().cloned().collect();
        if let Some(asked) = &self.law {
            calendars.extend(asked.windows(group));
        }
        let mut parts = Vec::new();
        match self.mode {
            TimezoneMode::Contact => calendars.push(self.windows.clone()),
            TimezoneMode::Fixed => parts.push((self.windows.clone(), self.zone)),
        }
        let calendars = common(calendars);
        parts.extend(
            zones
                .iter()
                .flat_map(|zone| calendars.iter().map(|calendar| (calendar.clone(), *zone))),
        );
        CallingHours::Hours(Hours::new(parts))
    }

    /// The hours of somebody who is in no campaign's list.
    pub fn of_person(&self, number: &E164, timezone: Option<Zone>, region: Option<&Place>) -> CallingHours {
        let law = self.law.as_ref().map_or(Law::untouched(), |asked| &*asked.law);
        self.of(&group(law, Some(number), timezone, region))
    }

    /// The zones that count for a group; `None`: they cannot be told, and must be.
    pub fn zones(&self, group: &str) -> Option<Vec<Tz>> {
        let group = parts_of(group).0;
        let country = match group.strip_prefix('?') {
            Some(country) => country,
            None if group.is_empty() => "",
            None => return zone::parse(group),
        };
        // In one fixed zone the windows need no other; the floor still does.
        match self.on_unknown {
            OnUnknownTimezone::Fallback => Some(vec![self.zone]),
            OnUnknownTimezone::Strictest => {
                let zones = zone::of_prefix(country);
                (!zones.is_empty()).then(|| zones.to_vec())
            }
            OnUnknownTimezone::Skip => None,
        }
    }
}

/// The first moment of the hour of `at`, as a clock on the wall there shows it.
pub fn hour_of(zone: Tz, at: Moment) -> Moment {
    let local = zone.from_utc_datetime(&at.datetime().naive_utc());
    let into = i64::from(local.minute()) * 60_000 + i64::from(local.second()) * 1000;
    at.plus_millis(-into - at.millis().rem_euclid(1000))
}

/// The first moment of the local day of `at`, and of the day after.
pub fn day_of(zone: Tz, at: Moment) -> (Moment, Moment) {
    let today = zone.from_utc_datetime(&at.datetime().naive_utc()).date_naive();
    let begins = |date: Option<NaiveDate>| date.and_then(|date| midnight(zone, date));
    (
        begins(Some(today)).unwrap_or(at),
        begins(today.succ_opt()).unwrap_or_else(|| at.plus_seconds(86_400)),
    )
}

/// The first instant of a date: in a gap that is the first one after it, in a fold the first of the two.
fn midnight(zone: Tz, date: NaiveDate) -> Option<Moment> {
    // No change of time is longer than a day; a zone that skipped a whole one begins the next.
    let quarters = (0..=96).filter_map(|quarter| {
        date.and_hms_opt(0, 0, 0)?
            .checked_add_signed(TimeDelta::minutes(15 * quarter))
    });
    let first = quarters
        .filter_map(|local| zone.from_local_datetime(&local).earliest())
        .next()?;
    Some(Moment::from(first.with_timezone(&Utc)))
}

#[cfg(test)]
mod tests;
