//! What a queue wants to have read, and what it makes of it.
use super::{Circumstances, Queue, SMALL_WINDOW, STALE_AFTER_SECONDS, WINDOW, Wants};
use crate::{
    dispatch::{candidate::Candidate, group::Group},
    eligibility::{self, ContactRecord, RING_MS, Rule, Terms, Verdict},
    hours::{self, CallingHours},
    law::{Judged, Whom},
};
use entities::{
    contact::{Address, Model as Contact, Status},
    values::Moment,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

/// Whom the law lets nobody reach now is looked at again after so long.
const HELD_SECONDS: i64 = 30;
/// Of each group so many are put off meanwhile, for so long.
const PUT_OFF: usize = 16;
const ASKED_AGAIN_SECONDS: i64 = 1800;
/// So long, where an answer about the number comes meanwhile.
const ANSWERED_SECONDS: i64 = 5;

/// Until somebody mends what the law wants of whoever calls.
fn is_held(candidate: &Candidate) -> bool {
    candidate.verdict == Verdict::Wait(None) && candidate.rule.is_some_and(Rule::is_of_the_law)
}

/// When somebody whom that rule holds back is looked at again. `is_being_asked`: whose the number is now, or what a register says of it.
fn asked_again(rule: Option<Rule>, is_being_asked: bool, now: Moment) -> Moment {
    match rule {
        Some(Rule::Reassigned | Rule::Register | Rule::Consent) if is_being_asked => now.plus_seconds(ANSWERED_SECONDS),
        _ => now.plus_seconds(ASKED_AGAIN_SECONDS),
    }
}

/// May what holds it back be a question that somebody outside answers?
fn may_be_answered(candidate: &Candidate) -> bool {
    let has_asked = |judged: &Judged| !judged.facts.asked_registers.is_empty();
    candidate.rule == Some(Rule::Reassigned) || candidate.judged.as_deref().is_some_and(has_asked)
}

impl Queue {
    /// A round begins.
    pub fn look(&mut self, now: Moment, behind_ms: i64) {
        self.behind_ms = behind_ms;
        self.provider_full = false;
        self.waiting_zones = None;
        // The hours of who was read may have ended since: they are put off.
        let is_late = |due: &Candidate| due.is_ready() && self.open_window_of(&due.contact.zone, now).is_none();
        if self.due.front().is_some_and(is_late) {
            self.due.clear();
            self.look_for_due = true;
        }
        let ends_at = self.rules.ends_at;
        for group in self.groups.values_mut() {
            group.look(now, ends_at, behind_ms);
        }
    }

    /// What of everybody who may be called now is not at hand.
    pub fn wants(&self, now: Moment) -> Wants {
        let is_time = self.next_due_at.is_some_and(|at| at <= now);
        let may_be_due = is_time || self.look_for_due && self.due.is_empty();
        let wanting = self.groups.iter().filter(|(_, group)| group.wants_more());
        let fresh: Vec<String> = wanting.map(|(name, _)| name.clone()).collect();
        Wants {
            costs: self.look_for_costs,
            due: may_be_due && !self.in_review,
            window: if fresh.len() > 4 { SMALL_WINDOW } else { WINDOW },
            fresh,
        }
    }

    pub fn has_spent(&mut self, cents: i64) {
        self.usage.spent_cents = cents;
        self.look_for_costs = false;
    }

    /// So many of its calls, or messages, are in flight.
    pub fn reserve(&mut self, in_flight: i64) {
        self.usage.reserved_cents = in_flight * self.dearest.0;
    }

    /// Of messages the rows know how many are in flight; it matters to a budget.
    pub fn counts_messages(&self) -> bool {
        self.template.is_some() && self.plan.caps.budget_cents.is_some()
    }

    /// Those whose time has come; `next`: when that of the next comes, if there are none.
    pub fn take_due(&mut self, mut due: Vec<Candidate>, next: Option<Moment>, now: Moment) {
        // There may be more than were read.
        self.look_for_due = !due.is_empty();
        self.next_due_at = match due.is_empty() {
            true => next,
            false => Some(now.plus_seconds(STALE_AFTER_SECONDS)),
        };
        // Retries first, the longest due first; then those who had to wait for a time, as they rank.
        due.sort_by_key(|candidate| {
            let is_retry = candidate.contact.status == Status::Waiting;
            (!is_retry, Reverse((!is_retry).then(|| candidate.rank())))
        });
        self.due = due.into();
    }

    /// The next fresh ones of a group; `exhausted`: there are no more.
    pub fn take_fresh(&mut self, name: &str, fresh: Vec<Candidate>, exhausted: bool, now: Moment) {
        if let Some(group) = self.groups.get_mut(name) {
            let (mut held, mut fresh): (Vec<Candidate>, Vec<Candidate>) = fresh.into_iter().partition(is_held);
            group.exhausted = exhausted && held.is_empty();
            if fresh.is_empty()
                && let Some(rule) = held.first().and_then(|candidate| candidate.rule)
            {
                group.hold(now.plus_seconds(HELD_SECONDS), rule);
                // Those behind them, if there are any, may be reached: some are put off, so that the others come to the front. Whether
                // anybody answers is seen when they are read again.
                held.truncate(if exhausted { 0 } else { PUT_OFF });
                fresh.extend(held.into_iter().map(|candidate| {
                    let until = asked_again(candidate.rule, may_be_answered(&candidate), now);
                    Candidate {
                        verdict: Verdict::Wait(Some(until)),
                        ..candidate
                    }
                }));
            }
            group.fresh = fresh.into();
        }
    }

    /// Forgets the groups of which nobody is left.
    pub fn tidy(&mut self) {
        self.groups.retain(|_, group| !group.is_done());
    }

    /// Its own caps leave out those who were never called and wait for nothing but their hours: shall they be read?
    pub fn wants_left(&self, now: Moment) -> bool {
        let is_in_hand = !self.due.is_empty() || self.groups.values().any(|group| !group.fresh.is_empty());
        self.caps_end_it(now) && self.has_left && self.left.is_empty() && !is_in_hand
    }

    /// Whoever comes later makes another version of the campaign, and so another queue.
    pub fn take_left(&mut self, left: Vec<Candidate>) {
        self.has_left = !left.is_empty();
        self.left = left.into();
    }

    /// Everybody who is at hand is in their quiet hours: it depends on those who wait for a time whether the campaign rests.
    pub fn wants_waiting_zones(&self) -> bool {
        !self.in_review && self.due.is_empty() && self.groups.values().all(Group::is_closed)
    }

    pub fn take_waiting_zones(&mut self, zones: Vec<String>) {
        self.waiting_zones = Some(zones);
    }

    /// Where its contacts are reached. One that came in while the campaign was of another channel has nothing to be reached by.
    pub fn address_of(&self, contact: &Contact) -> Option<Address> {
        let channel = self.plan.channel;
        contact.reachable_at().filter(|_| contact.channel == channel)
    }

    /// What the rules say of each.
    pub fn judged(
        &self,
        contacts: Vec<Contact>,
        mut people: BTreeMap<Address, ContactRecord>,
        now: Moment,
        so: Circumstances,
    ) -> Vec<Candidate> {
        let terms = Terms {
            caps: &self.plan.caps,
            ends_at: self.rules.ends_at,
            ring_ms: RING_MS,
            suspended_since: so.suspended_since,
            credits_gone: so.credits_gone,
            behind_ms: self.behind_ms,
        };
        // Most of those that are read together keep the same hours.
        let mut known_hours: HashMap<String, CallingHours> = HashMap::new();
        let judged = contacts.into_iter().map(|mut contact| {
            let is_regrouped = self.regroup(&mut contact);
            let address = self.address_of(&contact);
            // Put back below: several contacts may have one address.
            let known = address.as_ref().and_then(|address| people.remove_entry(address));
            let (known_as, record) = known.unzip();
            let mut record = record.unwrap_or_default();
            record.not_before = contact.not_before;
            let judged = self.judged_by_law(&contact, address.as_ref(), &record, now);
            record.judgement = self
                .legal
                .as_ref()
                .zip(judged.as_ref())
                .filter(|(legal, _)| legal.is_enforced)
                .map(|(legal, judged)| legal.by_both_clocks(judged, self.behind_ms));
            if !known_hours.contains_key(&contact.zone) {
                known_hours.insert(contact.zone.clone(), self.rules.of(&contact.zone));
            }
            let calling_hours = known_hours.get(&contact.zone).unwrap_or(&CallingHours::Uncallable);
            let mut found = self.first_no(&contact, &record, calling_hours, &terms, now);
            // It is read among the fresh ones of its old group, which says nothing of its hours: it comes again as one whose time has come.
            if is_regrouped && contact.next_attempt_at.is_none() && found.is_none() {
                found = Some((Rule::NotBefore, Verdict::Wait(Some(now))));
            }
            let law_rule = found.and_then(|no| eligibility::never_by(no, &record, &terms, now));
            people.extend(known_as.map(|address| (address, record)));
            Candidate {
                contact,
                address,
                verdict: found.map_or(Verdict::Yes, |(_, verdict)| verdict),
                rule: found.map(|(rule, _)| rule),
                law_rule,
                judged: judged.map(Box::new),
            }
        });
        judged.collect()
    }

    /// The first rule that does not let it be reached now.
    pub(in crate::dispatch) fn first_no(
        &self,
        contact: &Contact,
        record: &ContactRecord,
        calling_hours: &CallingHours,
        terms: &Terms<'_>,
        now: Moment,
    ) -> Option<(Rule, Verdict)> {
        let is_fresh = contact.next_attempt_at.is_none();
        // Fresh contacts' hours are their group's; who waits for a time is put off to the next opening.
        let rules = if is_fresh { Rule::BUT_HOURS } else { &Rule::ALL[..] };
        let mut found = eligibility::first_no(rules, record, calling_hours, terms, now);
        let by_law = eligibility::hours_by_law(record, terms, now);
        if found.is_none() && by_law != Verdict::Yes {
            // The law has a rule for where it is that its group was named without.
            found = Some((Rule::Hours, by_law));
        }
        match found {
            // Its time had come once, or nobody knows when its hours open.
            Some((rule, Verdict::Wait(None))) if rule == Rule::Hours || rule.is_of_the_law() && !is_fresh => {
                let until = asked_again(Some(rule), record.legal.is_being_asked, now);
                Some((rule, Verdict::Wait(Some(until))))
            }
            found => found,
        }
    }

    /// One that was loaded before a rule named its place is given the group whose hours the law wants for it.
    fn regroup(&self, contact: &mut Contact) -> bool {
        let legal = self.legal.as_ref().filter(|legal| legal.is_enforced);
        match legal.and_then(|legal| hours::regrouped(&legal.law, contact)) {
            Some(group) => {
                contact.zone = group;
                true
            }
            None => false,
        }
    }

    /// Does the law bind it? In the sandbox only if it wants that.
    pub fn is_lawful(&self) -> bool {
        self.legal.as_ref().is_some_and(|legal| legal.is_enforced)
    }

    /// What the law says of one of its contacts.
    fn judged_by_law(
        &self,
        contact: &Contact,
        address: Option<&Address>,
        record: &ContactRecord,
        now: Moment,
    ) -> Option<Judged> {
        let (legal, address) = (self.legal.as_ref()?, address?);
        let number = match address {
            Address::Number(number) => Some(number.clone()),
            Address::Email(_) => contact.e164(),
        };
        let whom = Whom {
            number: number.as_ref(),
            region: contact.region.as_ref(),
            consent_id: contact.consent_id,
            timezone: contact.timezone,
        };
        Some(legal.judged(whom, record, None, (now, self.behind_ms)))
    }
}
