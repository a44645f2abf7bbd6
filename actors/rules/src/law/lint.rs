//! What cannot be right in a rule, or in all of them together: asked when a file is read, and of the whole pack by its tests.
use super::{
    Pack,
    abandonment::FIRST_SOUND_MS,
    places::is_known,
    read::LawError,
    rule::{LawRule, Says},
};
use chrono::{NaiveDate, TimeDelta};
use entities::law::DisclosureKind;

/// A blackout is a stretch of days, not for ever.
const LONGEST_BLACKOUT: TimeDelta = TimeDelta::days(366);

/// The opening says one sentence after the other, the opt-out right behind the name.
const SOONEST_MS: u32 = 2_000;

/// What is wrong with one field of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub field: &'static str,
    pub why: String,
}

impl Flaw {
    pub fn in_file(self, file: &str, rule: &str) -> LawError {
        LawError::of_rule(file, rule, self.field, self.why)
    }
}

fn flaw(field: &'static str, why: impl Into<String>) -> Option<Flaw> {
    Some(Flaw { field, why: why.into() })
}

/// Why this is no id.
pub fn of_written_id(id: &str) -> Option<String> {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    let is_id = (3..=64).contains(&id.len()) && id.bytes().all(is_part);
    (!is_id).then(|| "must have 3 to 64 lower-case letters, digits, `.`, `-` or `_`".to_owned())
}

/// The first thing that is wrong with a rule.
pub fn of_rule(rule: &LawRule, pack: &Pack) -> Option<Flaw> {
    let texts = [("title", &rule.title), ("source", &rule.source), ("mend", &rule.mend)];
    if let Some((field, _)) = texts.into_iter().find(|(_, text)| text.trim().is_empty()) {
        return flaw(field, "must say something");
    }
    let places = &rule.places;
    if places.places.is_empty() && !places.is_everywhere && !places.is_unnamed && !places.is_nowhere {
        return flaw("places", "must name at least one");
    }
    let mut named = rule.places.places.iter().chain(&rule.excepted_places);
    if let Some(place) = named.find(|place| !is_known(place)) {
        return flaw("places", format!("{place} is not a place that has phone numbers"));
    }
    if rule.purposes.is_empty() {
        return flaw("purposes", "must name at least one");
    }
    if rule.channels.is_empty() {
        return flaw("channels", "must name at least one");
    }
    if let (Some(from), Some(until)) = (rule.from, rule.until)
        && from >= until
    {
        return flaw("until", "must be later than `from`");
    }
    if let Says::Windows { .. } = rule.says
        && (rule.lifted_by_consent.is_some() || !rule.verticals.is_empty())
    {
        return flaw("says", "windows hold whatever the trade, and whatever was agreed to");
    }
    of_saying(&rule.says, pack).and_then(|why| flaw("says", why))
}

fn of_saying(says: &Says, pack: &Pack) -> Option<String> {
    match says {
        Says::Windows {
            open,
            holidays,
            blackouts,
        } => {
            if open.is_empty() {
                return Some("must be open at some time: else say `forbidden`".to_owned());
            }
            let unknown = holidays.as_ref().filter(|name| !pack.holidays.contains_key(*name));
            if let Some(name) = unknown {
                return Some(format!("`{name}` is not a calendar of holidays"));
            }
            let is_wrong = |(first, last): &(NaiveDate, NaiveDate)| first > last || *last - *first > LONGEST_BLACKOUT;
            let blackout = blackouts.iter().find(|days| is_wrong(days));
            blackout.map(|(first, last)| format!("the blackout from {first} to {last} must last 0 to 366 days"))
        }
        Says::Cap { hours, .. } => (!(1..=720).contains(hours)).then(|| "`hours` must be 1 to 720".to_owned()),
        Says::Rest { hours, .. } => (*hours == 0).then(|| "`hours` must be at least 1".to_owned()),
        Says::Consent { any_of, .. } => any_of
            .is_empty()
            .then(|| "`any_of` must name at least one tier".to_owned()),
        Says::Register { name, .. } => of_written_id(name),
        Says::CallerId {
            forbidden_prefixes,
            required_prefixes,
            ..
        } => {
            let mut prefixes = forbidden_prefixes.iter().chain(required_prefixes);
            let wrong = prefixes.find(|prefix| !is_prefix(prefix));
            wrong.map(|prefix| format!("`{prefix}` must be + and the first digits of numbers"))
        }
        Says::Identity { fields } => fields.is_empty().then(|| "`fields` must name at least one".to_owned()),
        Says::Disclosure { what, within_ms, .. } => of_disclosure(what, *within_ms),
        Says::Abandonment {
            limit_permille,
            brake_permille,
            hours,
            first_sound_ms,
        } => of_abandonment((*limit_permille, *brake_permille), *hours, *first_sound_ms),
        Says::Ring { least_seconds } => {
            (!(1..=60).contains(least_seconds)).then(|| "`least_seconds` must be 1 to 60".to_owned())
        }
        Says::Open {}
        | Says::Closed {}
        | Says::Forbidden {}
        | Says::OwnList {}
        | Says::Reassigned { .. }
        | Says::Recording { .. }
        | Says::HonourOptOut { .. }
        | Says::KeepRecord { .. }
        | Says::Marking {}
        | Says::Registration { .. } => None,
    }
}

fn of_disclosure(what: &[DisclosureKind], within_ms: Option<u32>) -> Option<String> {
    if within_ms.is_some_and(|ms| ms < SOONEST_MS) {
        return Some(format!(
            "`within_ms` must be at least {SOONEST_MS}: a sentence takes that long"
        ));
    }
    what.is_empty().then(|| "`what` must name at least one".to_owned())
}

fn of_abandonment((limit, brake): (u32, u32), hours: u32, first_sound_ms: u32) -> Option<String> {
    if !matches!(hours, 24 | 720) {
        return Some("`hours` must be 24 or 720".to_owned());
    }
    if first_sound_ms != FIRST_SOUND_MS {
        return Some(format!(
            "`first_sound_ms` must be {FIRST_SOUND_MS}: that is what is measured"
        ));
    }
    (brake > limit).then(|| "`brake_permille` must not be above the limit".to_owned())
}

fn is_prefix(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
