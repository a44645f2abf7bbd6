//! Calling hours: when a call may start and ring, in the wall time of every zone that counts. Pure.
//!
//! A calendar knows wall time only: the windows of a week and the barred dates. Hours are calendars, each in its zone,
//! all of which must be open. Windows are joined in wall time first, so that 22:00-24:00 and the next day's 00:00-06:00
//! are one stretch whatever the clocks do at midnight. Only the ends of a stretch become instants, so that the law is kept
//! in either reading of a wall time that comes twice: the later one for a start, the earlier one for an end. A start or
//! an end in a gap is the first instant after it.

use chrono::{
    DateTime, Datelike, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Weekday,
};
use chrono_tz::{GapInfo, Tz};
use entities::values::Moment;
use std::{collections::BTreeSet, iter, ops::RangeInclusive, sync::Arc};

/// How far ahead `Hours::next_opening` looks.
pub const HORIZON: TimeDelta = TimeDelta::days(400);
/// No window reaches further than this to either side of the moment asked about: a calendar may never close.
const REACH: TimeDelta = TimeDelta::days(8);
/// Dates from that of a moment on which all lies that is within `REACH` of it: a day more for the time of day, another for
/// clocks that were set by a whole day.
const AROUND: RangeInclusive<i64> = -10..=10;
/// The same for those who need not know since when it has been open.
const AHEAD: RangeInclusive<i64> = -2..=10;
const DAY_SECONDS: i64 = 24 * 3600;
/// The end of a day, in minutes.
const MIDNIGHT: u16 = 24 * 60;

/// Open times of a week in wall time, without the dates that are barred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// Monday first; of each day the windows `[start, end)` in minutes 0..=1440, in order, none touching another.
    week: [Vec<(u16, u16)>; 7],
    /// Closed for the whole local day: the dates of each of these, none of which is empty.
    barred: Vec<Arc<BTreeSet<NaiveDate>>>,
    /// Open for the whole local day before the first of these, and from the second on.
    from: Option<NaiveDate>,
    until: Option<NaiveDate>,
}

/// A day without any rule.
const ALL_DAY: &[(u16, u16)] = &[(0, MIDNIGHT)];

impl Calendar {
    pub fn always() -> Self {
        Calendar {
            week: std::array::from_fn(|_| vec![(0, MIDNIGHT)]),
            barred: Vec::new(),
            from: None,
            until: None,
        }
    }

    /// `windows`: weekday, start and end minute, start < end <= 1440; in any order, those that overlap or touch become
    /// one. What is no such window opens nothing. `barred`: dates in the zone of the hours, closed all day.
    pub fn new(
        windows: impl IntoIterator<Item = (Weekday, u16, u16)>,
        barred: impl IntoIterator<Item = NaiveDate>,
    ) -> Self {
        let mut week: [Vec<(u16, u16)>; 7] = Default::default();
        for (weekday, start, end) in windows {
            if let Some(day) = week.get_mut(index(weekday))
                && start < end
                && end <= MIDNIGHT
            {
                day.push((start, end));
            }
        }
        let barred: BTreeSet<NaiveDate> = barred.into_iter().collect();
        Calendar {
            week: week.map(|mut day| {
                day.sort_unstable();
                joined(day.into_iter()).collect()
            }),
            barred: (!barred.is_empty()).then(|| Arc::new(barred)).into_iter().collect(),
            from: None,
            until: None,
        }
    }

    /// Closed on these dates, too.
    pub fn without(mut self, barred: Arc<BTreeSet<NaiveDate>>) -> Self {
        if !barred.is_empty() {
            self.barred.push(barred);
        }
        self
    }

    /// It holds on the dates [from, until) only: on all others it is open.
    pub fn within(self, from: Option<NaiveDate>, until: Option<NaiveDate>) -> Self {
        Calendar { from, until, ..self }
    }

    /// Open when both are. `None`: they hold on different dates, and stay two.
    pub fn and(&self, other: &Calendar) -> Option<Calendar> {
        if !self.holds_with(other) {
            return None;
        }
        let mut both = self.clone();
        for (day, others) in both.week.iter_mut().zip(&other.week) {
            *day = overlap(day, others);
        }
        for dates in &other.barred {
            if !both.barred.contains(dates) {
                both.barred.push(dates.clone());
            }
        }
        Some(both)
    }

    /// Does it hold on the same dates?
    fn holds_with(&self, other: &Calendar) -> bool {
        (self.from, self.until) == (other.from, other.until)
    }

    /// The open windows of a date.
    fn windows(&self, date: NaiveDate) -> impl Iterator<Item = (NaiveDateTime, NaiveDateTime)> {
        let midnight = date.and_time(NaiveTime::MIN);
        let minute = move |minute: u16| midnight + TimeDelta::minutes(minute.into());
        let holds = self.from.is_none_or(|from| from <= date) && self.until.is_none_or(|until| date < until);
        let day: &[(u16, u16)] = match self.week.get(index(date.weekday())) {
            _ if !holds => ALL_DAY,
            Some(day) if !self.barred.iter().any(|dates| dates.contains(&date)) => day,
            Some(_) | None => &[],
        };
        day.iter().map(move |&(start, end)| (minute(start), minute(end)))
    }

    /// Is it open in `zone` from `at` on for `room_ms`, within one window of one date, while no clock is set? Mostly that is plain; "no"
    /// means that it must be looked at closely.
    fn is_plainly_open(&self, zone: Tz, at: Moment, room_ms: i64) -> bool {
        // A window of a date ends within a day, and has begun within one.
        let (before, after) = (at.plus_seconds(-DAY_SECONDS), at.plus_seconds(DAY_SECONDS));
        let is_end_of_time = after.millis() - before.millis() < 2 * 1000 * DAY_SECONDS;
        let offset = |moment: Moment| zone.offset_from_utc_datetime(&moment.datetime().naive_utc()).fix();
        let now = offset(at);
        if is_end_of_time || offset(before) != now || offset(after) != now {
            return false;
        }
        let wall = at.datetime().with_timezone(&now).naive_local();
        let ends = wall + TimeDelta::milliseconds(room_ms.clamp(0, 2 * 1000 * DAY_SECONDS));
        let mut windows = self.windows(wall.date());
        windows.any(|(start, end)| start <= wall && wall < end && ends <= end)
    }

    /// The open times in `zone` on these `days` from the date of `at`, in order; none touches another.
    fn open_windows(&self, zone: Tz, at: Moment, days: RangeInclusive<i64>) -> impl Iterator<Item = (Moment, Moment)> {
        let today = at.datetime().with_timezone(&zone).date_naive();
        let dates = days.filter_map(move |day| today.checked_add_signed(TimeDelta::days(day)));
        let stretches = joined(dates.flat_map(|date| self.windows(date)));
        // A stretch may vanish in a gap or a fold, and two may meet in a gap.
        joined(stretches.filter_map(move |(start, end)| {
            let from = instant(zone, start, LocalResult::latest)?;
            let until = instant(zone, end, LocalResult::earliest)?;
            (from < until).then_some((from, until))
        }))
    }
}

/// As few calendars as can be that are open together when all of these are: the hours of a place under dozens of rules are asked for
/// like those of one.
pub fn common(calendars: impl IntoIterator<Item = Arc<Calendar>>) -> Vec<Arc<Calendar>> {
    let mut common: Vec<Arc<Calendar>> = Vec::new();
    for calendar in calendars {
        match common.iter_mut().find(|known| known.holds_with(&calendar)) {
            Some(known) => {
                if let Some(both) = known.and(&calendar).filter(|both| *both != **known) {
                    *known = Arc::new(both);
                }
            }
            None => common.push(calendar),
        }
    }
    common
}

/// A half-open stretch of time: [from, until).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenWindow {
    pub from: Moment,
    pub until: Moment,
}

impl OpenWindow {
    /// Does not reach further than `REACH` from `at`.
    fn around(self, at: Moment) -> Self {
        let reach = REACH.num_milliseconds();
        OpenWindow {
            from: self.from.max(at.plus_millis(-reach)),
            until: self.until.min(at.plus_millis(reach)),
        }
    }

    /// May a call that starts at `at`, within the window, ring for `room_ms`?
    fn has_room(self, at: Moment, room_ms: i64) -> bool {
        at.plus_millis(room_ms) <= self.until
    }
}

/// Several calendars in several zones, all of which must be open: a contact's candidate zones, a campaign's windows over
/// the law's floor.
#[derive(Clone, Debug, PartialEq)]
pub struct Hours {
    /// Never empty.
    parts: Vec<(Arc<Calendar>, Tz)>,
}

impl Hours {
    /// No parts: always open.
    pub fn new(mut parts: Vec<(Arc<Calendar>, Tz)>) -> Self {
        if parts.is_empty() {
            parts.push((Arc::new(Calendar::always()), Tz::UTC));
        }
        Hours { parts }
    }

    /// The open window that holds `at`, if it is open then; it reaches at most 8 days to either side of `at`.
    pub fn open_window(&self, at: Moment) -> Option<OpenWindow> {
        self.open_window_within(at, AROUND)
    }

    /// The first moment from `at` on at which a call may start and ring for `room_ms`, all within one open window; `at`
    /// itself if it may now. None: not within `HORIZON`. Walks each part's dates once, up to the answer.
    pub fn next_opening(&self, at: Moment, room_ms: i64) -> Option<Moment> {
        self.next_opening_within(at, room_ms, HORIZON)
    }

    /// The same. None: not within `horizon`.
    pub fn next_opening_within(&self, at: Moment, room_ms: i64, horizon: TimeDelta) -> Option<Moment> {
        let last = at.plus_millis(horizon.num_milliseconds());
        let days = *AHEAD.start()..=horizon.num_days() + AHEAD.end();
        self.open_windows(at, days)
            .map(|open_window| (open_window, open_window.from.max(at)))
            .take_while(|(_, start)| *start <= last)
            .find(|(open_window, start)| open_window.around(*start).has_room(*start, room_ms))
            .map(|(_, start)| start)
    }

    /// The first moment from `at` on at which this may be so both by our time and by a wall clock that is `behind_ms` behind it;
    /// `at` itself if it is so now. A later one is to be asked again then: the two draw nearer.
    pub fn next_opening_by_both(&self, at: Moment, room_ms: i64, behind_ms: i64) -> Option<Moment> {
        let ours = self.next_opening(at, room_ms)?;
        if behind_ms == 0 {
            return Some(ours);
        }
        let wall = self.next_opening(at.plus_millis(-behind_ms), wall_ms(room_ms))?;
        Some(ours.max(wall.plus_millis(behind_ms)))
    }

    /// Between which moments of the wall clock a call may start and ring for `room_ms`, if it may at `at`.
    pub fn wall_window(&self, at: Moment, room_ms: i64) -> Option<(Moment, Moment)> {
        let open_window = self.open_window(at)?;
        let closes = open_window.until.plus_millis(-wall_ms(room_ms));
        (at <= closes).then_some((open_window.from, closes))
    }

    /// May a call start at `at` and ring for `room_ms`, all within one open window? More than 8 days never fit.
    pub fn is_open(&self, at: Moment, room_ms: i64) -> bool {
        let mut parts = self.parts.iter();
        if parts.all(|(calendar, zone)| calendar.is_plainly_open(*zone, at, room_ms)) {
            return true;
        }
        let open_window = self.open_window_within(at, AHEAD);
        open_window.is_some_and(|open_window| open_window.has_room(at, room_ms))
    }

    pub fn is_always(&self) -> bool {
        let always = Calendar::always();
        self.parts.iter().all(|(calendar, _)| **calendar == always)
    }

    /// The open window that holds `at`, of these `days` from its date.
    fn open_window_within(&self, at: Moment, days: RangeInclusive<i64>) -> Option<OpenWindow> {
        let open_window = self
            .open_windows(at, days)
            .next()
            .filter(|open_window| open_window.from <= at)?;
        Some(open_window.around(at))
    }

    /// The spells in which every part is open, in order, from the first that ends after `at`; each part looks at these
    /// `days` from the date of `at`.
    fn open_windows(&self, at: Moment, days: RangeInclusive<i64>) -> impl Iterator<Item = OpenWindow> {
        let parts = self.parts.iter();
        let mut parts: Vec<_> = parts
            .map(|(calendar, zone)| calendar.open_windows(*zone, at, days.clone()).peekable())
            .collect();
        let common = iter::from_fn(move || {
            let (mut from, mut until) = *parts.first_mut()?.peek()?;
            for part in &mut parts {
                let open_window = part.peek()?;
                (from, until) = (from.max(open_window.0), until.min(open_window.1));
            }
            // Whoever closes first goes on to his next window, the others may still be open then.
            for part in &mut parts {
                part.next_if(|open_window| open_window.1 == until);
            }
            Some(OpenWindow { from, until })
        });
        common.filter(move |open_window| open_window.from < open_window.until && open_window.until > at)
    }
}

/// The instant of a wall time, `choice` where it comes twice. In a gap: the first instant after it.
fn instant(
    zone: Tz,
    wall: NaiveDateTime,
    choice: fn(LocalResult<DateTime<Tz>>) -> Option<DateTime<Tz>>,
) -> Option<Moment> {
    let instant = choice(zone.from_local_datetime(&wall)).or_else(|| GapInfo::new(&wall, &zone)?.end)?;
    Some(Moment::from(instant.to_utc()))
}

/// How long something takes by the wall clock at most, while our time is led back to it: that runs at half speed then.
fn wall_ms(ours_ms: i64) -> i64 {
    2 * ours_ms
}

/// What lies in a window of each of two days, in order; none touches another, as none of a day does.
fn overlap(ours: &[(u16, u16)], theirs: &[(u16, u16)]) -> Vec<(u16, u16)> {
    let shared = |our: &(u16, u16), their: &(u16, u16)| (our.0.max(their.0), our.1.min(their.1));
    let pairs = ours
        .iter()
        .flat_map(|our| theirs.iter().map(move |their| shared(our, their)));
    pairs.filter(|(start, end)| start < end).collect()
}

/// Half-open ranges in the order of their starts, with those that overlap or touch made one.
fn joined<T: Ord>(ranges: impl Iterator<Item = (T, T)>) -> impl Iterator<Item = (T, T)> {
    let mut ranges = ranges.peekable();
    iter::from_fn(move || {
        let (start, mut end) = ranges.next()?;
        while let Some((_, next)) = ranges.next_if(|(start, _)| *start <= end) {
            end = end.max(next);
        }
        Some((start, end))
    })
}

/// The place of a weekday in `Calendar::week`.
fn index(weekday: Weekday) -> usize {
    weekday.num_days_from_monday() as usize
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;
