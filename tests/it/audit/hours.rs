//! I10: when it rings.
use super::{
    check::Evidence,
    facts::{Facts, Schedule, Window},
};
use chrono::{DateTime, Datelike, Timelike, Weekday};
use chrono_tz::Tz;

const MINUTE: i64 = 60_000_000;

/// I10: "hours (always): for all calls: in every candidate zone of the number, local start and start + ring limit lie
/// inside the window". Of calls for campaigns, whose schedule is known; a zone nobody knows is never open.
pub fn calling_hours(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for call in &facts.calls {
        let contact = facts
            .session(call.session)
            .and_then(|session| facts.contact(session.contact?));
        let Some((contact, campaign)) = contact.and_then(|contact| Some((contact, facts.campaign(contact.campaign)?)))
        else {
            continue;
        };
        if contact.erased {
            continue;
        }
        let schedule = &campaign.schedule;
        let fallback = [schedule.fallback];
        let zones = if schedule.fixed || contact.zones.is_empty() {
            &fallback[..]
        } else {
            &contact.zones
        };
        for zone in zones {
            if let Some(closed) = first_closed(schedule, zone, call.placed, campaign.ring_timeout_seconds * 1_000_000) {
                let at = |micros| {
                    DateTime::from_timestamp_micros(micros)
                        .unwrap_or_default()
                        .format("%FT%T%.6fZ")
                };
                found.push(format!(
                    "session {}: placed at {}, and {} is outside the hours in {zone}",
                    call.session,
                    at(call.placed),
                    at(closed)
                ));
            }
        }
    }
    found
}

/// The first moment of `[from, from + lasts)`, in microseconds, at which it must not ring. Hours, dates and offsets
/// change at full minutes only, so the first moment and each full minute stand for all.
fn first_closed(schedule: &Schedule<'_>, zone: &str, from: i64, lasts: i64) -> Option<i64> {
    let Ok(zone) = zone.parse::<Tz>() else {
        return Some(from);
    };
    let full_minutes = (from / MINUTE + 1..).map(|minute| minute * MINUTE);
    let mut moments = std::iter::once(from).chain(full_minutes.take_while(|moment| *moment < from + lasts));
    moments.find(|moment| !is_open(schedule, zone, *moment))
}

fn is_open(schedule: &Schedule<'_>, zone: Tz, micros: i64) -> bool {
    let Some(moment) = DateTime::from_timestamp_micros(micros) else {
        return false;
    };
    let local = moment.with_timezone(&zone).naive_local();
    let minute = local.hour() * 60 + local.minute();
    let open = |window: &Window| window.is_open(local.weekday(), minute);
    !schedule.blackout_dates.contains(&local.date()) && schedule.windows.iter().any(open)
}

impl Window {
    /// A window that does not end after its start ends on the next day.
    fn is_open(&self, day: Weekday, minute: u32) -> bool {
        let today = self.days.contains(&day);
        if self.start < self.end {
            return today && (self.start..self.end).contains(&minute);
        }
        today && minute >= self.start || self.days.contains(&day.pred()) && minute < self.end
    }
}
