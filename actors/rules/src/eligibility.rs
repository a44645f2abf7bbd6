//! May this person be called? Each rule, in the order in which they are asked, with its verdict.
//!
//! | rule | when it says no |
//! |---|---|
//! | `number` | skipped as `invalid`: no number, a costly one, with a test key none that is allowed, live one that lies where the workspace may not call |
//! | `dnc` | skipped as `dnc_blocked` |
//! | `suspension` | waits; after 24 hours skipped as `tenant_suspended` |
//! | `credits` | waits |
//! | `not_before` | waits until then |
//! | `caps` | waits until the cap, or the rest that the law gives, allows it; skipped as `daily_cap_reached` if that is never, or not wanted |
//! | `purpose` | skipped as `dnc_blocked`: the law forbids it there, or the pack does not know the place; waits where a rule begins or ends by one of two clocks only |
//! | `consent` | skipped as `dnc_blocked`: none that the law asks for; waits while that depends on a register that has not answered |
//! | `register` | skipped as `dnc_blocked` if the register has the number; waits while the register is missing, stale or has not answered |
//! | `reassigned` | skipped as `dnc_blocked` if it is somebody else's now; waits until that is known |
//! | `caller_id` | waits: no number that may be shown there |
//! | `disclosure` | waits: what must be said cannot be said, or phones do not ring as long as they must |
//! | `abandonment` | waits: too many of its answered calls were abandoned |
//! | `hours` | waits for the next opening; skipped as `quiet_hours_expired` if there is none before the end |
//!
//! From `purpose` to `abandonment` a judgement of the law speaks ([`crate::law`]), and beside the campaign's own in `caps` and `hours`; where
//! none was asked for they say yes. Somebody who was called before is not skipped but has failed. Pure; the dispatcher, the preflight, the eligibility of one
//! contact and direct calls ask the same rules.
use crate::{
    hours::CallingHours,
    law::{self, GateKind, Judgement, LegalRecord},
    limits::Limits,
    session::machine::PLACED_WITHIN_MS,
};
use entities::{
    campaign::{Caps, OnCap},
    contact::SkipReason,
    values::{Bounded, Moment},
};
use schemars::JsonSchema;
use serde::Serialize;

/// What is known of somebody who may be called.
#[derive(Clone, Debug, Default)]
pub struct ContactRecord {
    /// There is a number, and calls to it are allowed.
    pub has_number: bool,
    pub is_barred: bool,
    /// When the number was called in the last 30 days, in order.
    pub recent: Vec<Moment>,
    pub not_before: Option<Moment>,
    /// What the law's rules are asked with.
    pub legal: LegalRecord,
    /// What the law says, where it binds.
    pub judgement: Option<Judgement>,
}

/// What is asked of everybody.
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    pub caps: &'a Caps,
    pub ends_at: Option<Moment>,
    /// How long a phone may ring: all of it must lie inside the hours.
    pub ring_ms: i64,
    pub suspended_since: Option<Moment>,
    pub credits_gone: bool,
    /// How far the wall clock is behind our time: caps and hours must hold by it, too.
    pub behind_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    Number,
    Dnc,
    Suspension,
    Credits,
    NotBefore,
    Caps,
    Purpose,
    Consent,
    Register,
    Reassigned,
    CallerId,
    Disclosure,
    Abandonment,
    Hours,
}

impl Rule {
    pub const ALL: [Rule; 14] = [
        Rule::Number,
        Rule::Dnc,
        Rule::Suspension,
        Rule::Credits,
        Rule::NotBefore,
        Rule::Caps,
        Rule::Purpose,
        Rule::Consent,
        Rule::Register,
        Rule::Reassigned,
        Rule::CallerId,
        Rule::Disclosure,
        Rule::Abandonment,
        Rule::Hours,
    ];
    /// All but the hours, for whom they are somebody else's to look at.
    pub const BUT_HOURS: &[Rule] = Rule::ALL.split_last().expect("a constant").1;

    /// Does a judgement of the law speak?
    pub fn is_of_the_law(self) -> bool {
        self.gate().is_some()
    }

    /// What of the law's judgement it speaks for.
    fn gate(self) -> Option<GateKind> {
        match self {
            Rule::Purpose => Some(GateKind::Purpose),
            Rule::Consent => Some(GateKind::Consent),
            Rule::Register => Some(GateKind::Register),
            Rule::Reassigned => Some(GateKind::Reassigned),
            Rule::CallerId => Some(GateKind::CallerId),
            Rule::Disclosure => Some(GateKind::Disclosure),
            Rule::Abandonment => Some(GateKind::Abandonment),
            Rule::Number
            | Rule::Dnc
            | Rule::Suspension
            | Rule::Credits
            | Rule::NotBefore
            | Rule::Caps
            | Rule::Hours => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    /// Not before then; `None`: until somebody changes something.
    Wait(Option<Moment>),
    Never(SkipReason),
}

/// What one rule says.
pub fn ask(
    rule: Rule,
    record: &ContactRecord,
    calling_hours: &CallingHours,
    terms: &Terms<'_>,
    now: Moment,
) -> Verdict {
    if let Some(kind) = rule.gate() {
        let verdict = lawful(record, kind, now);
        return match rule {
            // How long phones ring is the other thing that whoever calls has to mend.
            Rule::Disclosure => strictest(verdict, lawful(record, GateKind::Ring, now)),
            _ => verdict,
        };
    }
    match rule {
        Rule::Number => match calling_hours {
            CallingHours::Hours(_) if record.has_number => Verdict::Yes,
            CallingHours::Hours(_) | CallingHours::Uncallable => Verdict::Never(SkipReason::Invalid),
        },
        Rule::Dnc if record.is_barred => Verdict::Never(SkipReason::DncBlocked),
        Rule::Suspension => suspension(terms, now),
        Rule::Credits if terms.credits_gone => Verdict::Wait(None),
        Rule::NotBefore => match record.not_before {
            Some(at) if at > now => Verdict::Wait(Some(at)),
            Some(_) | None => Verdict::Yes,
        },
        Rule::Caps => strictest(capped(record, terms, now), capped_by_law(record, terms, now)),
        Rule::Hours => hours_of_both(record, calling_hours, terms, now),
        Rule::Dnc
        | Rule::Credits
        | Rule::Purpose
        | Rule::Consent
        | Rule::Register
        | Rule::Reassigned
        | Rule::CallerId
        | Rule::Disclosure
        | Rule::Abandonment => Verdict::Yes,
    }
}

/// The first rule that does not say yes.
pub fn first_no(
    rules: &[Rule],
    record: &ContactRecord,
    calling_hours: &CallingHours,
    terms: &Terms<'_>,
    now: Moment,
) -> Option<(Rule, Verdict)> {
    rules
        .iter()
        .map(|rule| (*rule, ask(*rule, record, calling_hours, terms, now)))
        .find(|(_, verdict)| *verdict != Verdict::Yes)
}

/// The rule of the law behind a `Never`; `None`: the campaign, the workspace or the number itself is the reason.
pub fn never_by(
    (rule, verdict): (Rule, Verdict),
    record: &ContactRecord,
    terms: &Terms<'_>,
    now: Moment,
) -> Option<String> {
    let judgement = record
        .judgement
        .as_ref()
        .filter(|_| matches!(verdict, Verdict::Never(_)))?;
    let asked = match rule {
        Rule::Hours => return shut_by(judgement, terms.ends_at),
        Rule::Caps => {
            // Of the law a wait is reason enough: nobody wants to wait, or not so long.
            let is_by_law = matches!(capped_by_law(record, terms, now), Verdict::Never(_));
            let worst = [GateKind::Caps, GateKind::Rest].map(|kind| judgement.worst_of(kind));
            worst
                .into_iter()
                .flatten()
                .filter(|_| is_by_law)
                .max_by_key(|asked| asked.verdict)
        }
        _ => {
            let worst = judgement.worst_of(rule.gate()?);
            worst.filter(|asked| asked.verdict == law::Verdict::Never)
        }
    };
    asked.map(|asked| asked.rule.to_string())
}

/// The rule of the law whose hours do not open again before that end.
pub fn shut_by(judgement: &Judgement, ends_at: Option<Moment>) -> Option<String> {
    let asked = judgement.worst_of(GateKind::Hours)?;
    match asked.verdict {
        law::Verdict::Wait(Some(until)) if ends_at.is_some_and(|end| until >= end) => Some(asked.rule.to_string()),
        law::Verdict::Yes | law::Verdict::Overridden | law::Verdict::Wait(_) | law::Verdict::Never => None,
    }
}

/// What guards direct calls, which have no campaign to say it.
pub fn direct_caps(limits: &Limits) -> Caps {
    let cap = |cap: i32| Bounded::new(i64::from(cap)).ok();
    Caps {
        per_number_24h: cap(limits.number_cap_24h),
        per_number_7d: cap(limits.number_cap_7d),
        ..Caps::default()
    }
}

/// Contacts of a suspended tenant wait this long.
pub const PATIENCE_SECONDS: i64 = 24 * 3600;

fn suspension(terms: &Terms<'_>, now: Moment) -> Verdict {
    match terms.suspended_since {
        None => Verdict::Yes,
        Some(since) => {
            let patience_ends = since.plus_seconds(PATIENCE_SECONDS);
            if now >= patience_ends {
                Verdict::Never(SkipReason::TenantSuspended)
            } else {
                Verdict::Wait(Some(patience_ends))
            }
        }
    }
}

fn capped(record: &ContactRecord, terms: &Terms<'_>, now: Moment) -> Verdict {
    let caps = terms.caps;
    let behind_ms = terms.behind_ms.max(0);
    let wall = now.plus_millis(-behind_ms);
    let frees = |cap: Option<i32>, days: i64| cap.and_then(|cap| frees_at(&record.recent, cap, days, wall));
    let until =
        frees(caps.per_number_24h.map(|cap| cap.get()), 1).max(frees(caps.per_number_7d.map(|cap| cap.get()), 7));
    let until = until.map(|until| until.plus_millis(behind_ms));
    match until {
        None => Verdict::Yes,
        Some(until) if caps.on_cap == OnCap::Skip || terms.ends_at.is_some_and(|end| until >= end) => {
            Verdict::Never(SkipReason::DailyCapReached)
        }
        Some(until) => Verdict::Wait(Some(until)),
    }
}

/// What the law says of that, where it binds. It was asked some time ago, or for another moment: a wait may be over.
fn lawful(record: &ContactRecord, kind: GateKind, now: Moment) -> Verdict {
    match record
        .judgement
        .as_ref()
        .and_then(|judgement| judgement.verdict_of(kind))
    {
        None | Some(law::Verdict::Yes | law::Verdict::Overridden) => Verdict::Yes,
        Some(law::Verdict::Wait(Some(until))) if until <= now => Verdict::Yes,
        Some(law::Verdict::Wait(until)) => Verdict::Wait(until),
        Some(law::Verdict::Never) => Verdict::Never(SkipReason::DncBlocked),
    }
}

/// Longer than this a contact does not wait for a rest that the law gives: the caps themselves look back for 30 days.
const LONGEST_WAIT_SECONDS: i64 = 31 * 24 * 3600;

/// The law's caps, and the rest that it gives somebody.
fn capped_by_law(record: &ContactRecord, terms: &Terms<'_>, now: Moment) -> Verdict {
    let asked = [GateKind::Caps, GateKind::Rest].map(|kind| lawful(record, kind, now));
    match asked.into_iter().fold(Verdict::Yes, strictest) {
        // Nobody waits for a rest of a year.
        Verdict::Wait(Some(until)) if until > now.plus_seconds(LONGEST_WAIT_SECONDS) => {
            Verdict::Never(SkipReason::DailyCapReached)
        }
        Verdict::Wait(Some(until))
            if terms.caps.on_cap == OnCap::Skip || terms.ends_at.is_some_and(|end| until >= end) =>
        {
            Verdict::Never(SkipReason::DailyCapReached)
        }
        verdict => verdict,
    }
}

/// Of two verdicts the one that keeps somebody longer.
fn strictest(one: Verdict, other: Verdict) -> Verdict {
    match (one, other) {
        (Verdict::Yes, other) => other,
        (one, Verdict::Yes) => one,
        (Verdict::Never(reason), _) | (_, Verdict::Never(reason)) => Verdict::Never(reason),
        (Verdict::Wait(None), Verdict::Wait(_)) | (Verdict::Wait(_), Verdict::Wait(None)) => Verdict::Wait(None),
        (Verdict::Wait(Some(one)), Verdict::Wait(Some(other))) => Verdict::Wait(Some(one.max(other))),
    }
}

/// When a number that was called `cap` times in the last `days` may be called again.
fn frees_at(recent: &[Moment], cap: i32, days: i64, now: Moment) -> Option<Moment> {
    let span = days * 24 * 3600;
    let counted: Vec<_> = recent.iter().filter(|at| at.plus_seconds(span) > now).collect();
    // When so many of them are old enough that one more stays below the cap.
    let over = (counted.len() + 1).checked_sub(usize::try_from(cap).unwrap_or(0))?;
    let last = over.checked_sub(1)?;
    counted.get(last).map(|at| at.plus_seconds(span))
}

fn hours(calling_hours: &CallingHours, terms: &Terms<'_>, now: Moment) -> Verdict {
    let CallingHours::Hours(hours) = calling_hours else {
        return Verdict::Never(SkipReason::Invalid);
    };
    if terms.ends_at.is_some_and(|end| now >= end) {
        return Verdict::Never(SkipReason::QuietHoursExpired);
    }
    match hours.next_opening_by_both(now, terms.ring_ms, terms.behind_ms) {
        Some(at) if at <= now => Verdict::Yes,
        Some(at) if terms.ends_at.is_none_or(|end| at < end) => Verdict::Wait(Some(at)),
        Some(_) | None => Verdict::Never(SkipReason::QuietHoursExpired),
    }
}

/// The hours of its group, and those of the law.
fn hours_of_both(record: &ContactRecord, calling_hours: &CallingHours, terms: &Terms<'_>, now: Moment) -> Verdict {
    match (hours(calling_hours, terms, now), hours_by_law(record, terms, now)) {
        // The law looks only some days ahead.
        (known @ (Verdict::Wait(Some(_)) | Verdict::Never(_)), Verdict::Wait(None)) => known,
        (by_group, by_law) => strictest(by_group, by_law),
    }
}

/// What the law itself says of the hours, where it binds: it asks where the person is, and knows of rules that came after the group.
pub fn hours_by_law(record: &ContactRecord, terms: &Terms<'_>, now: Moment) -> Verdict {
    match lawful(record, GateKind::Hours, now) {
        Verdict::Wait(Some(until)) if terms.ends_at.is_some_and(|end| until >= end) => {
            Verdict::Never(SkipReason::QuietHoursExpired)
        }
        verdict => verdict,
    }
}

/// Seconds a phone rings before a campaign's call is given up.
pub const RING_TIMEOUT_SECONDS: i32 = 30;

/// What of the calling hours must be left when a call starts: all its ringing, and a moment for one that is placed late.
pub const RING_MS: i64 = ring_ms(RING_TIMEOUT_SECONDS);

pub const fn ring_ms(ring_timeout_seconds: i32) -> i64 {
    ring_timeout_seconds as i64 * 1000 + PLACED_WITHIN_MS
}

#[cfg(test)]
#[path = "eligibility_tests.rs"]
mod tests;
