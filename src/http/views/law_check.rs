//! What the law would say of an attempt, as it is told.
use super::{AskedView, LocalTimeView};
use actors::compliance::Answer;
use chrono_tz::Tz;
use entities::{
    dnc::DncChannel,
    law::{Audience, Purpose},
    values::{Env, Moment, Place, Zone},
};
use rules::{
    eligibility,
    hours::{self, Hours},
    law::{Facts, Law, LawRule, facts::PlaceSource},
};
use schemars::JsonSchema;
use serde::Serialize;

/// What the law would say of one attempt. Not legal advice.
#[derive(Serialize, JsonSchema)]
pub struct LawCheckView {
    /// Every rule says yes. The workspace's own rules (the do-not-call list, caps, hours, credits) come on top.
    pub allowed: bool,
    /// These rules bar real attempts of this environment. False with a test key: there they bar only campaigns whose `sandbox_law` is
    /// `enforce`.
    pub binding: bool,
    pub at: Moment,
    pub channel: DncChannel,
    pub purpose: Purpose,
    pub audience: Audience,
    /// Where the person may be: the rules of all of these hold. Empty: nowhere that is known, where the strictest of all rules hold.
    pub places: Vec<LawPlaceView>,
    /// The clocks that count, all of which must be within the hours.
    pub zones: Vec<LocalTimeView>,
    /// In the order in which they are asked.
    pub rules: Vec<AskedView>,
    /// The hours that the law leaves open there, on that day.
    pub hours: Vec<LawHoursView>,
    /// From then on it may be done by the hours; null: not within a year.
    pub next_opening_at: Option<Moment>,
    /// When the law of the place changes next, as far as the pack knows.
    pub next_change: Option<LawChangeView>,
    /// Of an SMS: what is put under its text as a last line, as far as it does not say that itself; null: nothing.
    pub sms_line: Option<String>,
    pub pack_version: String,
    /// What nobody but you can know, and what your identity does not say: nothing is barred by it.
    pub warnings: Vec<LawWarningView>,
}

/// A registration that the law asks for.
#[derive(Serialize, JsonSchema)]
pub struct LawWarningView {
    pub rule: String,
    pub title: String,
    pub mend: String,
}

#[derive(Serialize, JsonSchema)]
pub struct LawPlaceView {
    pub place: Place,
    /// How it is known.
    pub source: LawPlaceSource,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LawPlaceSource {
    /// The number's country.
    Number,
    AreaCode,
    /// It was said.
    Given,
}

/// The open hours of one day, by the clocks there.
#[derive(Serialize, JsonSchema)]
pub struct LawHoursView {
    pub timezone: Zone,
    /// `2026-08-11`
    pub date: String,
    pub open: Vec<LawSpanView>,
}

#[derive(Serialize, JsonSchema)]
pub struct LawSpanView {
    /// `10:00`
    pub start: String,
    /// `13:00`; `24:00` is the end of the day.
    pub end: String,
}

/// A day on which rules begin, or end.
#[derive(Serialize, JsonSchema)]
pub struct LawChangeView {
    pub at: Moment,
    /// There: `2026-08-11`
    pub date: String,
    pub begins: Vec<LawRuleNameView>,
    pub ends: Vec<LawRuleNameView>,
}

#[derive(Serialize, JsonSchema)]
pub struct LawRuleNameView {
    pub rule: String,
    pub title: String,
}

/// More changes of the law than one place ever sees in a row that concern nothing of what was asked about.
const MOST_SWITCHES: usize = 100;
/// Open spells of one day.
const MOST_SPANS: usize = 50;

impl LawCheckView {
    pub fn of(law: &Law, answer: &Answer, env: Env) -> Self {
        let facts = &answer.facts;
        let calendars = law.windows(&facts.places, facts.purpose, facts.audience, facts.channel);
        let in_zone = |zone: &Zone| -> Vec<_> {
            let zone = zone.tz();
            calendars.iter().map(|calendar| (calendar.clone(), zone)).collect()
        };
        let everywhere = Hours::new(facts.zones.iter().flat_map(in_zone).collect());
        let room_ms = match facts.channel {
            DncChannel::Phone => eligibility::RING_MS,
            DncChannel::Sms | DncChannel::Email => 0,
        };
        let places = facts.places.iter().zip(&facts.place_sources);
        let day = |zone: &Zone| LawHoursView::of(&Hours::new(in_zone(zone)), *zone, facts.at);
        LawCheckView {
            allowed: answer.judgement.is_yes(),
            binding: env == Env::Live,
            at: facts.at,
            channel: facts.channel,
            purpose: facts.purpose,
            audience: facts.audience,
            places: places.map(|(place, source)| LawPlaceView::of(place, *source)).collect(),
            zones: facts
                .zones
                .iter()
                .map(|zone| LocalTimeView::of(*zone, facts.at))
                .collect(),
            rules: AskedView::all(law, &answer.judgement),
            hours: facts.zones.iter().map(day).collect(),
            next_opening_at: everywhere.next_opening(facts.at, room_ms),
            next_change: LawChangeView::after(law, facts),
            sms_line: law.sms_line(facts),
            pack_version: law.pack.version.clone(),
            warnings: answer
                .unregistered
                .iter()
                .map(|rule| LawWarningView::of(law, rule))
                .collect(),
        }
    }
}

impl LawWarningView {
    fn of(law: &Law, rule: &str) -> Self {
        let (title, mend) = law.told(rule);
        LawWarningView {
            rule: rule.to_owned(),
            title: title.to_owned(),
            mend: mend.to_owned(),
        }
    }
}

impl LawPlaceView {
    fn of(place: &Place, source: PlaceSource) -> Self {
        LawPlaceView {
            place: place.clone(),
            source: match source {
                PlaceSource::Number => LawPlaceSource::Number,
                PlaceSource::AreaCode => LawPlaceSource::AreaCode,
                PlaceSource::Given => LawPlaceSource::Given,
            },
        }
    }
}

impl LawHoursView {
    fn of(hours: &Hours, zone: Zone, at: Moment) -> Self {
        let (begins, ends) = hours::day_of(zone.tz(), at);
        let mut open = Vec::new();
        let mut from = begins;
        while let Some(opens) = hours.next_opening(from, 0).filter(|opens| *opens < ends) {
            let closes = hours.open_window(opens).map_or(ends, |window| window.until);
            open.push(LawSpanView {
                start: clock(zone.tz(), opens),
                end: match closes < ends {
                    true => clock(zone.tz(), closes),
                    false => "24:00".into(),
                },
            });
            if closes >= ends || closes <= from || open.len() == MOST_SPANS {
                break;
            }
            from = closes;
        }
        LawHoursView {
            timezone: zone,
            date: date(zone.tz(), at),
            open,
        }
    }
}

impl LawChangeView {
    /// The first change behind the moment that concerns what is asked about.
    fn after(law: &Law, facts: &Facts) -> Option<Self> {
        let now = law.rules_for(facts);
        let mut then = facts.clone();
        for _ in 0..MOST_SWITCHES {
            then.at = law.next_switch(&facts.places, &facts.zones, then.at)?;
            let rules = law.rules_for(&then);
            let begins = beyond(&rules, &now);
            let ends = beyond(&now, &rules);
            if !begins.is_empty() || !ends.is_empty() {
                let zone = facts.zones.first().map_or(Tz::UTC, |zone| zone.tz());
                return Some(LawChangeView {
                    at: then.at,
                    date: date(zone, then.at),
                    begins,
                    ends,
                });
            }
        }
        None
    }
}

/// The first that are not among the others.
fn beyond(rules: &[&LawRule], others: &[&LawRule]) -> Vec<LawRuleNameView> {
    let is_new = |rule: &&&LawRule| !others.iter().any(|other| other.id == rule.id);
    let name = |rule: &&LawRule| LawRuleNameView {
        rule: rule.id.clone(),
        title: rule.title.clone(),
    };
    rules.iter().filter(is_new).map(name).collect()
}

fn clock(zone: Tz, at: Moment) -> String {
    at.datetime().with_timezone(&zone).format("%H:%M").to_string()
}

fn date(zone: Tz, at: Moment) -> String {
    at.datetime().with_timezone(&zone).date_naive().to_string()
}
