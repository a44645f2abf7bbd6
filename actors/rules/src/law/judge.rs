//! What each rule says of one attempt, from its facts alone.
use super::{
    Law, dates,
    entry::{Calendars, Entry},
    facts::{CallerFact, ConsentFact, Facts, ReassignedAnswer, RegisterFact},
    force::Scope,
    judgement::{Asked, Judgement, Verdict},
    rule::{FreshRegister, GateKind, IdentityField, LawRule, Listed, Says, suffices},
};
use crate::{
    eligibility::ring_ms,
    hours::{Calendar, Hours},
};
use chrono::TimeDelta;
use entities::{
    abandonment::{Abandonment, AbandonmentLimit, Answers},
    dnc::DncChannel,
    law::ConsentTier,
    values::{E164, Moment, Zone},
};
use std::{collections::BTreeSet, sync::Arc};

/// What is asked where no rule of the pack says whether something is allowed.
pub const UNDECIDED: &str = "everywhere.undecided";

const DAY_SECONDS: i64 = 24 * 3600;
/// How far ahead a closed window says when it opens. Source: ours; the longest closure of the pack is shorter, and what lies further
/// ahead waits for somebody, or for the next look.
const LOOKS_AHEAD: TimeDelta = TimeDelta::days(14);

/// What was found for hours that several rules keep.
type Looked<'a> = Vec<(&'a Calendars, Verdict)>;

/// Asks all rules that are in force for this attempt, in their order. Pure: the same facts and the same law give the same judgement.
pub fn judge(law: &Law, facts: &Facts) -> Judgement {
    let scope = Scope::from(facts);
    let entries = law.in_force(&scope);
    let mut asked: Vec<Asked> = Vec::with_capacity(entries.len() + 1);
    if !law.is_decided(&scope) {
        asked.push(Asked {
            kind: GateKind::Purpose,
            rule: UNDECIDED.into(),
            verdict: Verdict::Never,
        });
    }
    let mut looked = Looked::new();
    for entry in entries {
        let verdict = verdict(law, entry, facts, &mut looked);
        let rule = &entry.rule;
        // An operator's rule stands beside the one of the pack that it tightens.
        match asked.iter_mut().find(|known| entry.is_added && *known.rule == *rule.id) {
            Some(known) => known.verdict = known.verdict.max(verdict),
            None => asked.push(Asked {
                kind: rule.says.kind(),
                rule: entry.id.clone(),
                verdict,
            }),
        }
    }
    Judgement { asked }
}

fn verdict<'a>(law: &Law, entry: &'a Entry, facts: &Facts, looked: &mut Looked<'a>) -> Verdict {
    let rule = &entry.rule;
    let verdict = ask(law, entry, facts, looked);
    if !verdict.is_no() || is_lifted(rule, facts) {
        return Verdict::Yes;
    }
    match is_overridden(rule, facts) {
        true => Verdict::Overridden,
        false => verdict,
    }
}

/// Whatever it says, it bars nobody.
pub(super) fn is_set_aside(rule: &LawRule, facts: &Facts) -> bool {
    is_lifted(rule, facts) || is_overridden(rule, facts)
}

fn is_overridden(rule: &LawRule, facts: &Facts) -> bool {
    !rule.is_firm && facts.overrides.contains(&rule.id)
}

fn ask<'a>(law: &Law, entry: &'a Entry, facts: &Facts, looked: &mut Looked<'a>) -> Verdict {
    match &entry.rule.says {
        Says::Open {} => Verdict::Yes,
        Says::Closed {} | Says::Forbidden {} => Verdict::Never,
        Says::Windows { .. } => match &entry.calendars {
            Some(calendars) => windows(calendars, facts, looked),
            None => Verdict::Wait(None),
        },
        Says::Cap { most, hours } => cap(*most, *hours, facts),
        Says::Rest { cause, hours } => {
            let since = facts
                .rests
                .iter()
                .filter(|rest| rest.cause == *cause)
                .map(|rest| rest.since);
            wait_until(
                since.max().map(|since| since.plus_seconds(i64::from(*hours) * 3600)),
                facts.at,
            )
        }
        Says::Consent { .. } => consent(&entry.rule.says, facts),
        Says::Register {
            name,
            max_age_days,
            listed,
            waived_by,
        } => register(name, *max_age_days, *listed, *waived_by, facts),
        Says::OwnList {} => never_if(facts.is_barred),
        Says::Reassigned {
            max_age_days,
            ask_after_days,
        } => reassigned(*max_age_days, *ask_after_days, facts),
        Says::CallerId { .. } => caller_id(&entry.rule.says, facts.caller.as_ref()),
        Says::Identity { fields } => wait_unless(fields.iter().all(|field| is_known(*field, facts))),
        // What cannot be said in the call's language must not be left unsaid.
        Says::Disclosure { .. } => wait_unless(facts.channel != DncChannel::Phone || law.pack.speaks(&facts.language)),
        Says::Abandonment {
            limit_permille,
            brake_permille,
            hours,
            ..
        } => {
            let limit = AbandonmentLimit {
                limit_permille: *limit_permille,
                brake_permille: *brake_permille,
                hours: *hours,
            };
            wait_unless(!is_braked(&limit, facts))
        }
        Says::Ring { least_seconds } => wait_unless(facts.ring_seconds >= *least_seconds),
        Says::Recording { .. }
        | Says::HonourOptOut { .. }
        | Says::KeepRecord { .. }
        | Says::Marking {}
        | Says::Registration { .. } => Verdict::Yes,
    }
}

fn never_if(is_so: bool) -> Verdict {
    if is_so { Verdict::Never } else { Verdict::Yes }
}

/// Somebody must mend it.
fn wait_unless(is_so: bool) -> Verdict {
    if is_so { Verdict::Yes } else { Verdict::Wait(None) }
}

fn wait_until(until: Option<Moment>, at: Moment) -> Verdict {
    match until {
        Some(until) if until > at => Verdict::Wait(Some(until)),
        Some(_) | None => Verdict::Yes,
    }
}

/// All of a phone's ringing must lie inside. Without a zone nobody knows what time it is there.
fn windows<'a>(calendars: &'a Calendars, facts: &Facts, looked: &mut Looked<'a>) -> Verdict {
    if facts.zones.is_empty() {
        return Verdict::Wait(None);
    }
    if let Some((_, known)) = looked.iter().find(|(known, _)| known.are(calendars)) {
        return *known;
    }
    let room_ms = match facts.channel {
        DncChannel::Phone => ring_ms(facts.ring_seconds),
        DncChannel::Sms | DncChannel::Email => 0,
    };
    let parts = |calendar: &Arc<Calendar>| {
        let zones = facts.zones.iter();
        Hours::new(zones.map(|zone| (calendar.clone(), zone.tz())).collect())
    };
    let verdict = match parts(&calendars.plain).is_open(facts.at, room_ms) {
        true => Verdict::Yes,
        false => {
            let opens = parts(&calendars.dated).next_opening_within(facts.at, room_ms, LOOKS_AHEAD);
            Verdict::Wait(opens.filter(|opens| *opens > facts.at))
        }
    };
    looked.push((calendars, verdict));
    verdict
}

/// Waits until so many of the attempts are old enough that one more stays within the cap.
fn cap(most: u32, hours: u32, facts: &Facts) -> Verdict {
    let span = i64::from(hours) * 3600;
    let counted: Vec<Moment> = facts
        .recent
        .iter()
        .map(|tried| tried.plus_seconds(span))
        .filter(|frees| *frees > facts.at)
        .collect();
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    match counted.len().checked_sub(most) {
        None => Verdict::Yes,
        // None at all are allowed.
        Some(_) if most == 0 => Verdict::Never,
        Some(over) => wait_until(counted.get(over).copied(), facts.at),
    }
}

/// The consent of these facts, if it covers the attempt: for the same seller, this channel and this purpose, given before, not expired, and
/// by contract only for that contract.
pub fn covering(facts: &Facts) -> Option<&ConsentFact> {
    facts.consent.as_ref().filter(|consent| {
        facts
            .seller
            .as_deref()
            .is_some_and(|seller| is_same_seller(seller, &consent.seller))
            && consent.channels.contains(&facts.channel)
            && consent.purposes.contains(&facts.purpose)
            && consent.given_at <= facts.at
            && consent.expires_at.is_none_or(|expires| facts.at < expires)
            && (consent.tier != ConsentTier::ExistingContract || is_of_contract(consent, facts))
    })
}

/// It says of which contract it is; where the attempt names one, of that one.
fn is_of_contract(consent: &ConsentFact, facts: &Facts) -> bool {
    let own = consent.contract_ref.as_deref();
    is_said(own) && (facts.contract_ref.is_none() || facts.contract_ref.as_deref() == own)
}

/// Names of sellers are compared without regard to case and spaces.
pub fn is_same_seller(one: &str, other: &str) -> bool {
    let fold = |name: &str| name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let one = fold(one);
    !one.is_empty() && one == fold(other)
}

fn covers(facts: &Facts, needed: ConsentTier) -> bool {
    covering(facts).is_some_and(|consent| suffices(consent.tier, needed))
}

fn is_lifted(rule: &LawRule, facts: &Facts) -> bool {
    rule.lifted_by_consent.is_some_and(|needed| covers(facts, needed))
}

fn consent(says: &Says, facts: &Facts) -> Verdict {
    let Says::Consent {
        any_of,
        automated_voice,
        max_age_days,
        contract_max_age_days,
        newer_than_register,
        unless_register,
    } = says
    else {
        return Verdict::Never;
    };
    let is_young =
        |consent: &ConsentFact, most: Option<u32>| most.is_none_or(|days| !is_older(consent.given_at, days, facts.at));
    let is_enough = |consent: &ConsentFact| {
        any_of.iter().any(|needed| suffices(consent.tier, *needed))
            && (!automated_voice || consent.covers_automated_voice)
            && is_young(consent, *max_age_days)
            && (consent.tier != ConsentTier::ExistingContract || is_young(consent, *contract_max_age_days))
            && newer_than_register
                .as_deref()
                .is_none_or(|name| !is_taken_back(consent, name, facts))
    };
    let is_free = |register: &FreshRegister| {
        is_register_known(&register.name, register.max_age_days, facts) && !is_listed(&register.name, facts)
    };
    if unless_register.as_ref().is_some_and(is_free) {
        return Verdict::Yes;
    }
    // As long as a register that is asked has not answered, it has neither taken a consent back nor made one needless.
    if covering(facts).is_some_and(is_enough) {
        let newer = newer_than_register.as_deref();
        return wait_unless(newer.is_none_or(|name| !is_silent(name, facts)));
    }
    match unless_register {
        Some(register) if is_awaited(register, facts) => Verdict::Wait(None),
        Some(_) | None => Verdict::Never,
    }
}

/// Is it asked about each number, and has never answered about this one?
fn is_silent(name: &str, facts: &Facts) -> bool {
    is_asked(name, facts) && !copies(name, facts).any(RegisterFact::is_answer)
}

/// May its answer still clear the number? None that counts has come, and no uploaded copy holds it.
fn is_awaited(register: &FreshRegister, facts: &Facts) -> bool {
    let name = &register.name;
    let is_on_file = copies(name, facts).any(|found| found.is_listed && !found.is_answer());
    is_asked(name, facts) && !is_register_known(name, register.max_age_days, facts) && !is_on_file
}

/// An entry in the register is newer than the consent, or may be.
fn is_taken_back(consent: &ConsentFact, register: &str, facts: &Facts) -> bool {
    copies(register, facts).any(|found| found.is_listed && consent.given_at <= listed_by(found, &facts.zones))
}

/// The last moment at which the number may have been entered: that of the day that the register names, by the last of the clocks;
/// where it names none, that at which the copy was given out.
fn listed_by(found: &RegisterFact, zones: &[Zone]) -> Moment {
    let next_day = found.listed_on.and_then(|day| day.succ_opt());
    let begins = next_day.and_then(|day| dates::ends(zones, day));
    begins.map_or(found.fetched_at, |begins| begins.plus_millis(-1))
}

fn register(name: &str, max_age_days: u32, listed: Listed, waived_by: Option<ConsentTier>, facts: &Facts) -> Verdict {
    if waived_by.is_some_and(|needed| covers(facts, needed)) {
        return Verdict::Yes;
    }
    if !is_register_known(name, max_age_days, facts) {
        return Verdict::Wait(None);
    }
    match listed {
        Listed::Barred => never_if(is_listed(name, facts)),
        // Where the operator and the workspace have one each, neither of them lets in whom the other's leaves out.
        Listed::Required => never_if(!fresh(name, max_age_days, facts).all(|found| found.is_listed)),
        Listed::Noted => Verdict::Yes,
    }
}

/// The registers that have to be asked about the number before these rules can say yes or no; each look-up may be paid for, so not those
/// on which nothing depends.
pub(super) fn questions(law: &Law, facts: &Facts) -> BTreeSet<String> {
    let mut wanted = BTreeSet::new();
    if facts.asked_registers.is_empty() {
        return wanted;
    }
    for entry in law.in_force(&Scope::from(facts)) {
        let names = lacking(&entry.rule.says, facts);
        if !names.is_empty() && verdict(law, entry, facts, &mut Looked::new()) == Verdict::Wait(None) {
            wanted.extend(names.into_iter().map(str::to_owned));
        }
    }
    wanted
}

/// The registers of a rule that are asked about each number, and of which no answer about this one counts.
pub(super) fn lacking<'a>(says: &'a Says, facts: &Facts) -> Vec<&'a str> {
    let lacks = |name: &str, max_age_days: u32| is_asked(name, facts) && !is_register_known(name, max_age_days, facts);
    match says {
        Says::Register { name, max_age_days, .. } if lacks(name, *max_age_days) => vec![name.as_str()],
        Says::Consent {
            newer_than_register,
            unless_register,
            ..
        } => {
            let newer = newer_than_register.as_deref().filter(|name| is_silent(name, facts));
            let unless = unless_register.as_ref();
            let unless = unless.filter(|register| lacks(&register.name, register.max_age_days));
            newer
                .into_iter()
                .chain(unless.map(|register| register.name.as_str()))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Is it asked about each number over an API?
fn is_asked(name: &str, facts: &Facts) -> bool {
    facts.asked_registers.iter().any(|asked| asked == name)
}

/// Is there a copy that is not too old? Where the register is asked about each number its answer must be that: a file beside it makes it
/// stricter, and takes its place for nobody.
fn is_register_known(name: &str, max_age_days: u32, facts: &Facts) -> bool {
    let is_asked = is_asked(name, facts);
    fresh(name, max_age_days, facts).any(|found| !is_asked || found.is_answer())
}

/// Does any copy hold the number, also one that is too old? The workspace's small copy clears nobody whom the operator's large one holds.
fn is_listed(name: &str, facts: &Facts) -> bool {
    copies(name, facts).any(|found| found.is_listed)
}

/// The copies of a register that are not too old. One of tomorrow has a wrong date.
fn fresh<'a>(name: &'a str, max_age_days: u32, facts: &'a Facts) -> impl Iterator<Item = &'a RegisterFact> {
    let at = facts.at;
    copies(name, facts).filter(move |found| found.fetched_at <= at && !is_older(found.fetched_at, max_age_days, at))
}

fn copies<'a>(name: &'a str, facts: &'a Facts) -> impl Iterator<Item = &'a RegisterFact> {
    facts.registers.iter().filter(move |found| found.name == name)
}

pub(super) fn is_older(than: Moment, days: u32, at: Moment) -> bool {
    than.plus_seconds(i64::from(days) * DAY_SECONDS) < at
}

/// Only a "no" that was asked with the day of the consent, or an earlier one, says that the number is still the same person's.
fn reassigned(max_age_days: u32, ask_after_days: u32, facts: &Facts) -> Verdict {
    let Some(consent) = facts
        .consent
        .as_ref()
        .filter(|consent| is_older(consent.given_at, ask_after_days, facts.at))
    else {
        return Verdict::Yes;
    };
    match &facts.reassigned {
        Some(found)
            if found.since <= consent.given_at
                && found.checked_at <= facts.at
                && !is_older(found.checked_at, max_age_days, facts.at) =>
        {
            match found.answer {
                ReassignedAnswer::No => Verdict::Yes,
                ReassignedAnswer::Yes | ReassignedAnswer::NoData => Verdict::Never,
            }
        }
        Some(_) | None => Verdict::Wait(None),
    }
}

pub(super) fn caller_id(says: &Says, caller: Option<&CallerFact>) -> Verdict {
    let (
        Says::CallerId {
            answered,
            right_to_use,
            registered,
            forbidden_prefixes,
            required_prefixes,
        },
        Some(caller),
    ) = (says, caller)
    else {
        return Verdict::Wait(None);
    };
    let begins = |prefixes: &[String]| begins_with_any(&caller.number, prefixes);
    wait_unless(
        (!answered || caller.is_answered)
            && (!right_to_use || is_said(caller.right_to_use.as_deref()))
            && (!registered || is_said(caller.registration.as_deref()))
            && !begins(forbidden_prefixes)
            && (required_prefixes.is_empty() || begins(required_prefixes)),
    )
}

fn begins_with_any(number: &E164, prefixes: &[String]) -> bool {
    prefixes
        .iter()
        .any(|prefix| number.as_str().starts_with(prefix.as_str()))
}

fn is_known(field: IdentityField, facts: &Facts) -> bool {
    let identity = &facts.identity;
    let has_address = is_said(identity.postal_address.as_deref());
    match field {
        IdentityField::RegisteredName => is_said(identity.registered_name.as_deref()),
        IdentityField::Callback => identity.callback_number.is_some(),
        IdentityField::TollFree => identity.toll_free_number.is_some(),
        IdentityField::PostalAddress => has_address,
        IdentityField::PostalAddressOrTollFree => has_address || identity.toll_free_number.is_some(),
    }
}

fn is_said(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.trim().is_empty())
}

/// Has the share of abandoned calls reached the brake?
fn is_braked(limit: &AbandonmentLimit, facts: &Facts) -> bool {
    let answers = |(live, abandoned)| Answers { live, abandoned };
    facts.abandonment.as_ref().is_some_and(|counted| {
        let counted = Abandonment {
            day: answers(counted.day),
            month: answers(counted.month),
        };
        counted.is_braked(limit)
    })
}
