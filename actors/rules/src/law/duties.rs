//! What the rules in force want of a call while it is made, spoken and kept: of all of them together, the strictest. And which of it the
//! operator's overrides have left out.
use super::{
    Asked, Facts, Judged, Law, Override, Verdict,
    facts::RestCause,
    force::Scope,
    rule::{LawRule, Says},
};
use entities::{
    abandonment::AbandonmentLimit, agent::ConsentMode, changes::CapSpan, law::DisclosureKind, values::Place,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Duties {
    /// What must be said. `cloned_voice`: if the voice is one.
    pub disclosures: BTreeSet<DisclosureKind>,
    /// From the answer to the beginning of the first of them.
    pub disclosed_within_ms: Option<u32>,
    /// Said again in long talks.
    pub repeat_minutes: Option<u32>,
    pub recording: ConsentMode,
    /// A call on which nothing is heard so long after the greeting is abandoned.
    pub first_sound_ms: Option<u32>,
    pub abandonment: Vec<AbandonmentDuty>,
    pub ring_least_seconds: i32,
    /// So many hours of rest for who has declined.
    pub declined_rest_hours: Option<u32>,
    /// And for whose call was abandoned.
    pub abandoned_rest_hours: Option<u32>,
    /// Days in which an opt-out must be done.
    pub opt_out_days: Option<u32>,
    /// From the opt-out to the call's end.
    pub hang_up_ms: Option<u32>,
    /// One opt-out ends all topics, calls and texts alike.
    pub opt_out_ends_everything: bool,
    pub keep_years: u32,
    /// Synthetic sound is marked as such where it is kept.
    pub marks_synthetic_sound: bool,
    /// Rules by which the operator must be registered with somebody; nobody but the operator knows whether that is so.
    pub registrations: Vec<String>,
}

/// How many of the answered calls of a campaign may be abandoned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AbandonmentDuty {
    pub rule: String,
    pub limit_permille: u32,
    pub brake_permille: u32,
    /// Over how long they are counted: 24 or 720.
    pub hours: u32,
}

impl Law {
    /// How often somebody may be reached, by all rules that are in force for it.
    pub fn caps(&self, facts: &Facts) -> Vec<CapSpan> {
        let rules = self.rules_for(facts).into_iter().filter(|rule| !self.overrides(rule));
        let caps = rules.filter_map(|rule| match &rule.says {
            Says::Cap { most, hours } => Some(CapSpan {
                most: i32::try_from(*most).unwrap_or(i32::MAX),
                hours: i32::try_from(*hours).unwrap_or(i32::MAX),
            }),
            _ => None,
        });
        caps.collect()
    }

    /// What the rules in force want; those that the operator has overridden want nothing.
    pub fn spoken<'a>(&self, scope: impl Into<Scope<'a>>) -> Duties {
        let mut duties = Duties::default();
        let scope: Scope<'a> = scope.into();
        for entry in self.in_force(&scope) {
            let rule = &entry.rule;
            if self.overrides(rule) {
                continue;
            }
            duties.keep_years = duties.keep_years.max(rule.keep_years.unwrap_or(0).into());
            duties.add(&rule.id, &rule.says);
        }
        if let Some(own) = scope.own {
            duties.recording = duties.recording.max(self.recording_in(own, scope));
        }
        duties
    }

    /// How it may be recorded at the end of whoever calls.
    fn recording_in(&self, own: &Place, scope: Scope<'_>) -> ConsentMode {
        let kept = self.of_recordings_in(own, scope).filter(|rule| !self.overrides(rule));
        let wanted = kept.filter_map(|rule| match rule.says {
            Says::Recording { consent } => Some(consent),
            _ => None,
        });
        wanted.max().unwrap_or_default()
    }

    fn of_recordings_in(&self, own: &Place, scope: Scope<'_>) -> impl Iterator<Item = &LawRule> {
        let there = Scope {
            places: std::slice::from_ref(own),
            own: None,
            ..scope
        };
        let rules = self.in_force(&there).into_iter().map(|entry| &entry.rule);
        rules.filter(|rule| matches!(rule.says, Says::Recording { .. }))
    }

    /// The overrides by which this attempt keeps less than the law asks, in the order of the operator's file: of rules that said no, and
    /// of those that want something later. The latter say yes before the call, so nothing else in its record shows that they were left out.
    pub fn stamped(&self, judged: &Judged) -> Vec<Override> {
        if self
            .operator
            .as_ref()
            .is_none_or(|operator| operator.overrides.is_empty())
        {
            return Vec::new();
        }
        let facts = &judged.facts;
        let is_left_out = |asked: &&Asked| {
            let wants_later = || self.pack.rule(&asked.rule).is_some_and(LawRule::wants_later);
            asked.verdict == Verdict::Overridden
                || facts.overrides.iter().any(|rule| **rule == *asked.rule) && wants_later()
        };
        let asked = judged.judgement.asked.iter().filter(is_left_out);
        let mut left_out: BTreeSet<&str> = asked.map(|asked| &*asked.rule).collect();
        if let Some(own) = &judged.own {
            let there = self.of_recordings_in(own, Scope::from(facts));
            left_out.extend(there.filter(|rule| self.overrides(rule)).map(|rule| rule.id.as_str()));
        }
        let made = self.operator.iter().flat_map(|operator| &operator.overrides);
        made.filter(|made| left_out.contains(made.rule.as_str()))
            .cloned()
            .collect()
    }
}

impl LawRule {
    /// Does it want anything during the call or after it, whatever it says before? No verdict shows that it was overridden.
    pub fn wants_later(&self) -> bool {
        self.keep_years.is_some() || Duties::default().add(&self.id, &self.says)
    }
}

impl Duties {
    /// Of the calls of a campaign.
    pub fn abandonment_limits(&self) -> impl Iterator<Item = AbandonmentLimit> + '_ {
        self.abandonment.iter().map(|duty| AbandonmentLimit {
            limit_permille: duty.limit_permille,
            brake_permille: duty.brake_permille,
            hours: duty.hours,
        })
    }

    /// Adds what a rule says, if it is about the call while it is made or after it; is it?
    fn add(&mut self, id: &str, says: &Says) -> bool {
        match says {
            Says::Disclosure {
                what,
                within_ms,
                repeat_minutes,
            } => {
                self.disclosures.extend(what);
                self.disclosed_within_ms = least(self.disclosed_within_ms, *within_ms);
                self.repeat_minutes = least(self.repeat_minutes, *repeat_minutes);
            }
            Says::Recording { consent } => self.recording = self.recording.max(*consent),
            Says::Abandonment {
                limit_permille,
                brake_permille,
                hours,
                first_sound_ms,
            } => {
                self.first_sound_ms = least(self.first_sound_ms, Some(*first_sound_ms));
                self.abandonment.push(AbandonmentDuty {
                    rule: id.to_owned(),
                    limit_permille: *limit_permille,
                    brake_permille: *brake_permille,
                    hours: *hours,
                });
            }
            Says::Ring { least_seconds } => self.ring_least_seconds = self.ring_least_seconds.max(*least_seconds),
            Says::Rest { cause, hours } => {
                let kept = match cause {
                    RestCause::Declined => &mut self.declined_rest_hours,
                    RestCause::Abandoned => &mut self.abandoned_rest_hours,
                };
                *kept = (*kept).max(Some(*hours));
            }
            Says::HonourOptOut {
                days,
                hang_up_ms,
                everything,
            } => {
                self.opt_out_ends_everything |= everything;
                self.opt_out_days = least(self.opt_out_days, Some(*days));
                self.hang_up_ms = least(self.hang_up_ms, *hang_up_ms);
            }
            Says::KeepRecord { years } => self.keep_years = self.keep_years.max(*years),
            Says::Marking {} => self.marks_synthetic_sound = true,
            Says::Registration { .. } => self.registrations.push(id.to_owned()),
            Says::Open {}
            | Says::Closed {}
            | Says::Forbidden {}
            | Says::Windows { .. }
            | Says::Cap { .. }
            | Says::Consent { .. }
            | Says::Register { .. }
            | Says::OwnList {}
            | Says::Reassigned { .. }
            | Says::CallerId { .. }
            | Says::Identity { .. } => return false,
        }
        true
    }
}

fn least(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
