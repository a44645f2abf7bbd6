//! What one transaction writes beside what was handed in: places, events with their deliveries, and what credits are booked.
use super::{Setup, places::Places, subscriptions::Subscriptions};
use crate::{attempts::chaining, credits::posting::Booking};
use entities::{
    Result, campaign_move,
    changes::Changes,
    connection::Transaction,
    delivery::{self, Origin},
    event as stored,
    ids::{EndpointId, TenantId, TenantScoped},
};
use rules::{
    commit::{Commit, Committed},
    event::{self, EventDraft},
};
use runtime::at_rest;
use std::{collections::BTreeMap, sync::Arc};

/// A batch on its way: what is written, and what follows once it is.
pub(super) struct Batch {
    pub subscriptions: Arc<Subscriptions>,
    pub places: Places,
    /// What it writes beside what was handed in: events with their deliveries, and moves of campaigns.
    pub made: Changes,
    pub events: Vec<Committed>,
    pub deliveries: Vec<(TenantScoped<EndpointId>, delivery::Model, Committed)>,
    /// Tenants that may spend more, or less, than before.
    pub credited: Vec<TenantId>,
}

impl Batch {
    pub fn new(places: Places, subscriptions: Arc<Subscriptions>) -> Self {
        Batch {
            subscriptions,
            places,
            made: Changes::default(),
            events: Vec::new(),
            deliveries: Vec::new(),
            credited: Vec::new(),
        }
    }

    /// Books what the batch moves, after all that moves it.
    pub async fn book(&mut self, setup: &Setup, db: &Transaction, all: &[&Changes]) -> Result<Changes> {
        let movements: Vec<_> = all.iter().flat_map(|one| one.movements.iter().cloned()).collect();
        if movements.is_empty() {
            return Ok(Changes::default());
        }
        let booking = Booking {
            terms: &setup.terms,
            ids: &setup.ids,
            now: setup.clock.now(),
            seq: self.places.next(),
        };
        let booked = booking.book(db, &movements).await?;
        self.credited.extend(booked.turned);
        let mut commit = Commit {
            changes: booked.changes,
            events: booked.events,
        };
        self.add(setup, &mut commit);
        Ok(commit.changes)
    }

    /// Chains what the batch records of attempts, in the order in which it was handed in.
    pub async fn chain(&self, setup: &Setup, db: &Transaction, all: &[&Changes]) -> Result<Changes> {
        let records: Vec<_> = all.iter().flat_map(|one| &one.attempt_records).collect();
        if records.is_empty() {
            return Ok(Changes::default());
        }
        chaining::chained(db, &records, setup.clock.now()).await
    }

    /// Gives its rows their places, and makes its events.
    pub fn add(&mut self, setup: &Setup, commit: &mut Commit) {
        for row in &commit.changes.endpoints {
            Arc::make_mut(&mut self.subscriptions).apply(row);
        }
        self.place(setup, &mut commit.changes);
        self.tell(setup, &commit.events);
    }

    fn tell(&mut self, setup: &Setup, events: &[EventDraft]) {
        let all = &mut self.made;
        for draft in events {
            let id = draft.id.unwrap_or_else(|| setup.ids.next());
            let now = setup.clock.now();
            let event = Arc::new(stored::Model {
                seq: self.places.next(),
                id,
                tenant_id: draft.tenant_id,
                env: draft.env,
                event_type: draft.event_type.into(),
                subject_id: draft.subject_id,
                created_at: now,
                body: event::envelope(id, draft, now),
            });
            all.events.push(at_rest::sealed(&setup.keyring, &event));
            // A test goes to the endpoint that was named, by the request that asked for it.
            let receivers = if draft.event_type == "webhook.test" {
                None
            } else {
                self.subscriptions.0.get(&(draft.tenant_id, draft.env))
            };
            for receiver in receivers
                .into_iter()
                .flatten()
                .filter(|receiver| receiver.wants(&event))
            {
                let delivery = delivery::Model::new(setup.ids.next(), receiver.key.id, &event, Origin::Live, now);
                if receiver.suspended {
                    all.deliveries.push(delivery::Model {
                        status: delivery::Status::Held,
                        next_attempt_at: None,
                        ..delivery
                    });
                } else {
                    all.deliveries.push(delivery.clone());
                    self.deliveries.push((receiver.key, delivery, event.clone()));
                }
            }
            self.events.push(event);
        }
    }

    /// Gives the facts whose order counts, and which no event tells, their place among all commits; another one with each try.
    fn place(&mut self, setup: &Setup, changes: &mut Changes) {
        if changes.dials.is_empty()
            && changes.message_sends.is_empty()
            && changes.dnc.is_empty()
            && changes.consents.is_empty()
            && changes.revocations.is_empty()
            && changes.campaigns.is_empty()
        {
            return;
        }
        let seq = self.places.next();
        for dial in &mut changes.dials {
            dial.seq = seq;
        }
        for send in &mut changes.message_sends {
            send.seq = seq;
        }
        for entry in &mut changes.dnc {
            match entry.removed_at {
                // What it bars, it bars from here on.
                None => entry.added_seq = seq,
                Some(_) => entry.removed_seq = Some(seq),
            }
        }
        // What is taken back later has a place of its own.
        for consent in changes.consents.iter_mut().filter(|row| row.version == 1) {
            consent.given_seq = seq;
        }
        for revocation in &mut changes.revocations {
            revocation.seq = seq;
        }
        let now = setup.clock.now();
        // A campaign whose draft and start are one commit has moved twice; the last is what counts.
        let moves: BTreeMap<_, _> = changes
            .campaigns
            .iter()
            .map(|row| (row.id, campaign_move::Model::of(row, seq, now)))
            .collect();
        self.made.campaign_moves.extend(moves.into_values());
    }
}
