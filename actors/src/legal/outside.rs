//! What the law wants to know of people that somebody outside is asked for.
use super::{Asked, note_of_numbers};
use crate::{
    deps::Deps,
    registers::asking::{InDoubt, Unanswered},
};
use entities::{
    Result,
    contact::Address,
    ids::TenantId,
    values::{E164, Env, Moment},
};
use rules::{
    eligibility::ContactRecord,
    law::{LegalTerms, Verdict, by_the_later},
};
use std::collections::{BTreeMap, BTreeSet};

/// Has registers asked that are asked over an API, about whoever may be called if they allow it, and of whom they have not answered.
pub(super) fn inquire(
    deps: &Deps,
    tenant: TenantId,
    legal: &LegalTerms,
    asked: &[Asked],
    (people, now): (&mut BTreeMap<Address, ContactRecord>, Moment),
) {
    let times = deps.clock.times();
    let (behind_ms, young) = (times.behind_ms(), deps.registers.young(&deps.law, times.later()));
    let mut wanted: BTreeMap<String, BTreeSet<E164>> = BTreeMap::new();
    for (asked, record, number) in numbered(asked, people) {
        // Mostly so: nobody needs to be judged to know that there is nothing to ask.
        if young.have_all(&record.legal) {
            continue;
        }
        let judged = legal.judged(asked.whom(), record, None, (now, behind_ms));
        if judged.judgement.noes().any(|no| no.verdict == Verdict::Never) {
            continue;
        }
        for name in deps
            .registers
            .questions_about(deps, &by_the_later(&judged.facts, behind_ms))
        {
            wanted.entry(name).or_default().insert(number.clone());
        }
    }
    let awaited = deps.registers.inquire(deps, tenant, wanted);
    note_of_numbers(asked, people, |record, number| {
        record.is_being_asked = awaited.contains(number);
    });
}

/// Whose the numbers are now, where a rule wants to know that.
pub(super) async fn reassigned(
    deps: &Deps,
    owner: (TenantId, Env),
    legal: &LegalTerms,
    (asked, unanswered): (&[Asked], Unanswered),
    (people, now): (&mut BTreeMap<Address, ContactRecord>, Moment),
) -> Result<()> {
    let behind_ms = deps.clock.times().behind_ms();
    let later = now.plus_millis((-behind_ms).max(0));
    let mut wanted = Vec::new();
    for (asked, record, number) in numbered(asked, people) {
        // It is asked with the day of a consent.
        if !legal.may_ask_reassigned(asked.whom(), &record.legal, later) {
            continue;
        }
        // Of the consent that it will rest on.
        let judged = legal.judged(asked.whom(), record, None, (now, behind_ms));
        let facts = by_the_later(&judged.facts, behind_ms);
        if let (Some(consent), Some(max_age_days)) = (&facts.consent, legal.law.reassigned_max_age(&facts)) {
            wanted.push(InDoubt {
                number: number.clone(),
                since: consent.given_at,
                max_age_days,
            });
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let found = deps.registers.reassigned(deps, owner, &wanted, unanswered).await?;
    note_of_numbers(asked, people, |record, number| {
        record.reassigned = found.facts.get(number).cloned();
        record.is_being_asked |= found.awaited.contains(number);
    });
    Ok(())
}

/// Those of them who are known and have a number.
fn numbered<'a>(
    asked: &'a [Asked],
    people: &'a BTreeMap<Address, ContactRecord>,
) -> impl Iterator<Item = (&'a Asked, &'a ContactRecord, &'a E164)> {
    asked
        .iter()
        .filter_map(move |asked| Some((asked, people.get(&asked.address)?, asked.e164()?)))
}
