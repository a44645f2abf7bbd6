//! What the dispatcher reads of a campaign's contacts before it plans, from a list of them.
use super::*;
use crate::{
    dispatch::{
        candidate::Candidate,
        queue::{Circumstances, WINDOW},
    },
    eligibility::ContactRecord,
};
use entities::contact::Status;
use std::{cmp::Reverse, collections::BTreeSet};

pub fn fresh(rows: &[Contact]) -> impl Iterator<Item = &Contact> {
    rows.iter()
        .filter(|row| row.status == Status::Pending && row.next_attempt_at.is_none())
}

/// What a queue wants of these rows.
pub fn read(queue: &mut Queue, rows: &[Contact], is_quiet: bool, (now, so): (Moment, Circumstances)) {
    let wants = queue.wants(now);
    if wants.costs {
        // Every call turns out to be free.
        queue.has_spent(0);
    }
    if wants.due {
        let waiting = || rows.iter().filter(|row| row.next_attempt_at.is_some());
        let mut due: Vec<&Contact> = waiting().filter(|row| row.next_attempt_at <= Some(now)).collect();
        due.sort_by_key(|row| row.next_attempt_at);
        due.truncate(WINDOW as usize);
        let next = waiting().filter_map(|row| row.next_attempt_at).min();
        let next = next.filter(|_| due.is_empty());
        let due = judged(queue, due, now, so);
        queue.take_due(due, next, now);
    }
    for zone in wants.fresh {
        let mut read: Vec<&Contact> = fresh(rows).filter(|row| row.zone == zone).collect();
        read.sort_by_key(|row| (Reverse(row.priority), row.id));
        let exhausted = (read.len() as u64) < wants.window;
        read.truncate(wants.window as usize);
        let candidates = judged(queue, read, now, so);
        queue.take_fresh(&zone, candidates, exhausted, now);
    }
    queue.tidy();
    if is_quiet && queue.wants_left(now) {
        let left = judged(queue, fresh(rows).take(WINDOW as usize).collect(), now, so);
        queue.take_left(left);
    }
    if queue.wants_waiting_zones() {
        let waiting = rows.iter().filter(|row| row.next_attempt_at.is_some());
        let zones: BTreeSet<String> = waiting.map(|row| row.zone.clone()).collect();
        queue.take_waiting_zones(zones.into_iter().collect());
    }
}

/// Whoever can be reached may be.
fn judged(queue: &Queue, contacts: Vec<&Contact>, now: Moment, so: Circumstances) -> Vec<Candidate> {
    let record = || ContactRecord {
        has_number: true,
        ..ContactRecord::default()
    };
    let people = contacts
        .iter()
        .filter_map(|contact| Some((queue.address_of(contact)?, record())));
    let people = people.collect();
    queue.judged(contacts.into_iter().cloned().collect(), people, now, so)
}
