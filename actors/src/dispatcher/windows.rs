//! What a round's decisions are read from: small windows of each campaign's contacts, and what is known of those people.
use super::state::State;
use crate::{
    deps::Deps,
    legal::{self, Asked},
    people::{People, people},
    registers::asking::Unanswered,
};
use entities::{
    Result, boxed,
    contact::{self, Model as Contact},
    ids::TenantId,
    tally,
    values::{Env, Moment},
};
use rules::dispatch::{
    candidate::Candidate,
    queue::{Circumstances, Queue, WINDOW},
    slots::Slots,
};

impl State {
    /// Reads what the queues need before a turn can be decided. `is_quiet`: nothing of this round is planned yet.
    #[boxed]
    pub async fn fill(&mut self, deps: &Deps, slots: &Slots, is_quiet: bool, now: Moment) -> Result<()> {
        let (tenant, snapshot) = (self.known.tenant, &mut self.snapshot);
        let so = [Env::Live, Env::Test].map(|env| {
            let held = snapshot.is_held(env, now);
            (env, (!held).then(|| snapshot.circumstances(env)))
        });
        for queue in snapshot.campaigns.values_mut() {
            // Contacts of one that is held up wait as they are.
            let so = so.iter().find(|(env, _)| *env == queue.env).and_then(|(_, so)| *so);
            let Some(so) = so else { continue };
            let reading = Reading { deps, tenant, so, now };
            reading.fill(queue, slots, is_quiet).await?;
        }
        Ok(())
    }
}

struct Reading<'a> {
    deps: &'a Deps,
    tenant: TenantId,
    so: Circumstances,
    now: Moment,
}

impl Reading<'_> {
    async fn fill(&self, queue: &mut Queue, slots: &Slots, is_quiet: bool) -> Result<()> {
        let (db, now) = (&self.deps.db.read, self.now);
        queue.look(now, self.deps.clock.times().behind_ms());
        let in_flight = if queue.counts_messages() {
            let tally = tally::load(db, queue.id).await?;
            queue.has_spent(tally.cost_cents);
            tally.dispatched
        } else {
            slots.used(queue.env, Some(queue.id))
        };
        queue.reserve(in_flight);
        let wants = queue.wants(now);
        if wants.costs {
            queue.has_spent(tally::load(db, queue.id).await?.cost_cents);
        }
        if wants.due {
            let due = contact::due(db, queue.id, now, WINDOW).await?;
            let next = match due.is_empty() {
                true => contact::next_due_at(db, queue.id).await?,
                false => None,
            };
            queue.take_due(self.judged(queue, due).await?, next, now);
        }
        for zone in wants.fresh {
            let read = contact::fresh(db, queue.id, &zone, wants.window).await?;
            let exhausted = (read.len() as u64) < wants.window;
            queue.take_fresh(&zone, self.judged(queue, read).await?, exhausted, now);
        }
        queue.tidy();
        if is_quiet && queue.wants_left(now) {
            let left = contact::fresh_of_all_zones(db, queue.id, WINDOW).await?;
            queue.take_left(self.judged(queue, left).await?);
        }
        if queue.wants_waiting_zones() {
            queue.take_waiting_zones(contact::due_zones(db, queue.id).await?);
        }
        Ok(())
    }

    /// What is known of each, for all of them at once.
    async fn judged(&self, queue: &Queue, contacts: Vec<Contact>) -> Result<Vec<Candidate>> {
        let addresses = contacts
            .iter()
            .filter_map(|contact| queue.address_of(contact))
            .collect();
        let whose = People {
            owner: (self.tenant, queue.env),
            channel: queue.plan.channel,
            itself: None,
        };
        let mut people = people(self.deps, &self.deps.db.read, whose, addresses, self.now).await?;
        if let Some(legal) = &queue.legal {
            let known = contacts
                .iter()
                .filter_map(|contact| Some((contact, queue.address_of(contact)?)));
            let known: Vec<_> = known.map(|(contact, address)| Asked::of(contact, address)).collect();
            let all = (&*known, Unanswered::Ask);
            legal::learn(self.deps, whose.owner, legal, all, (&mut people, self.now)).await?;
        }
        Ok(queue.judged(contacts, people, self.now, self.so))
    }
}
