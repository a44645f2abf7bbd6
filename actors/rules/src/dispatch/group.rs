//! Contacts of one campaign that keep the same hours: a closed group costs nothing until it opens.
use super::candidate::Candidate;
use crate::{
    eligibility::{RING_MS, Rule},
    hours::{CallingHours, OpenWindow},
};
use entities::{contact::SkipReason, values::Moment};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(super) struct Group {
    calling_hours: CallingHours,
    /// What is known of its hours, and until when that holds.
    hours: HoursNow,
    pub(super) fresh: VecDeque<Candidate>,
    /// No fresh contact is left in the rows.
    pub(super) exhausted: bool,
    /// A rule of the law lets none of them be reached until somebody mends something; when it is asked again.
    held: Option<(Moment, Rule)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HoursNow {
    Unknown,
    Open(OpenWindow),
    Closed {
        until: Moment,
    },
    /// Nobody of the group can be called any more.
    Never,
}

impl Group {
    pub(super) fn new(calling_hours: CallingHours) -> Self {
        Group {
            calling_hours,
            hours: HoursNow::Unknown,
            fresh: VecDeque::new(),
            exhausted: false,
            held: None,
        }
    }

    /// Nobody of it is reached now, by that rule.
    pub(super) fn hold(&mut self, until: Moment, rule: Rule) {
        self.held = Some((until, rule));
    }

    pub(super) fn held_by(&self) -> Option<Rule> {
        self.held.map(|(_, rule)| rule)
    }

    pub(super) fn is_done(&self) -> bool {
        self.exhausted && self.fresh.is_empty()
    }

    /// Its contacts may be called, or never again, and none of them are at hand.
    pub(super) fn wants_more(&self) -> bool {
        !self.exhausted
            && self.held.is_none()
            && self.fresh.is_empty()
            && !matches!(self.hours, HoursNow::Closed { .. } | HoursNow::Unknown)
    }

    /// Looks at the clock, if what is known of the hours is over.
    pub(super) fn look(&mut self, now: Moment, ends_at: Option<Moment>, behind_ms: i64) {
        self.held = self.held.filter(|(until, _)| now < *until);
        let known = match self.hours {
            HoursNow::Unknown => false,
            HoursNow::Open(open_window) => now.plus_millis(RING_MS) <= open_window.until,
            HoursNow::Closed { until } => now < until,
            HoursNow::Never => true,
        };
        let CallingHours::Hours(hours) = &self.calling_hours else {
            self.hours = HoursNow::Never;
            return;
        };
        if known {
            return;
        }
        self.hours = match hours.next_opening_by_both(now, RING_MS, behind_ms) {
            Some(at) if ends_at.is_some_and(|end| at >= end) => HoursNow::Never,
            Some(at) if at > now => HoursNow::Closed { until: at },
            Some(_) => hours.open_window(now).map_or(HoursNow::Never, HoursNow::Open),
            None => HoursNow::Never,
        };
    }

    /// Until it opens.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.hours, HoursNow::Closed { .. })
    }

    pub(super) fn opens_at(&self) -> Option<Moment> {
        match self.hours {
            HoursNow::Closed { until } => Some(until),
            HoursNow::Unknown | HoursNow::Open(_) | HoursNow::Never => self.held.map(|(until, _)| until),
        }
    }

    /// Why none of its contacts can be called any more.
    pub(super) fn ends_as(&self) -> Option<SkipReason> {
        match (&self.calling_hours, self.hours) {
            (CallingHours::Uncallable, _) => Some(SkipReason::Invalid),
            (CallingHours::Hours(_), HoursNow::Never) => Some(SkipReason::QuietHoursExpired),
            (CallingHours::Hours(_), HoursNow::Unknown | HoursNow::Open(_) | HoursNow::Closed { .. }) => None,
        }
    }

    /// The open window in which a call may start at `at` and ring.
    pub(super) fn open_window(&self, at: Moment) -> Option<OpenWindow> {
        match self.hours {
            HoursNow::Open(open_window) if open_window.from <= at && at.plus_millis(RING_MS) <= open_window.until => {
                Some(open_window)
            }
            HoursNow::Open(_) | HoursNow::Unknown | HoursNow::Closed { .. } | HoursNow::Never => None,
        }
    }
}
