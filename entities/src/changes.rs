//! Everything that one commit writes. The writer merges the changes of many actors and applies them in one transaction.
use crate::{
    agent, api_key, bulk,
    bulk::OnConflict,
    campaign, contact,
    delivery::{self, PutAway},
    delivery_attempt, endpoint_health, endpoint_hour,
    error::{Error, Result},
    event,
    ids::{CampaignId, EndpointId, Owned},
    mail, membership, session, tally, tenant, transcript, user, webhook_endpoint,
};
use sea_orm::ConnectionTrait;
use std::collections::BTreeMap;
use uuid::Uuid;

/// A condition that must hold inside the transaction; if it does not, nothing is written and the answer is `Stale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    /// The campaign is running and not being canceled: a pause takes effect before the next dial.
    Dispatchable(CampaignId),
    /// The campaign has `total` contacts and all of them have reached a terminal state.
    Drained { campaign_id: CampaignId, total: i64 },
}

/// Rows with a `version` are inserted at 1 and else replace exactly their predecessor.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub guards: Vec<Guard>,
    pub tenants: Vec<tenant::Model>,
    pub users: Vec<user::Model>,
    pub memberships: Vec<membership::Model>,
    pub api_keys: Vec<api_key::Model>,
    pub agents: Vec<agent::Model>,
    pub endpoints: Vec<webhook_endpoint::Model>,
    pub campaigns: Vec<campaign::Model>,
    pub contacts: Vec<contact::Model>,
    pub sessions: Vec<session::Model>,
    pub transcripts: Vec<transcript::Model>,
    /// Differences, added up per campaign.
    pub tallies: BTreeMap<Owned<CampaignId>, tally::Model>,
    /// New events with the deliveries that carry them.
    pub events: Vec<event::Model>,
    pub deliveries: Vec<delivery::Model>,
    /// Outcomes of attempts.
    pub delivery_updates: Vec<delivery::Model>,
    /// What becomes of everything that an endpoint has not received. One slice of it here; its lane sees to the rest.
    pub queues: Vec<(EndpointId, Queue)>,
    pub attempts: Vec<delivery_attempt::Model>,
    pub healths: Vec<endpoint_health::Model>,
    /// Differences, added to the hour's counts.
    pub hours: Vec<endpoint_hour::Model>,
    pub mails: Vec<mail::Model>,
}

/// What becomes of all that an endpoint has not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Open deliveries are cancelled: the endpoint is disabled.
    CancelOpen,
    /// Held ones too: it is deleted.
    CancelAll,
    /// Open deliveries are held: it is suspended.
    Hold,
}

/// What the rest of the service may want to know about a commit.
#[derive(Debug, Default)]
pub struct Applied {
    /// Campaigns of which no contact is left unfinished.
    pub drained: Vec<Owned<CampaignId>>,
}

impl Changes {
    /// Counts a contact's move, or a session's end, for the campaign.
    pub fn tally(&mut self, campaign: Owned<CampaignId>) -> &mut tally::Model {
        self.tallies
            .entry(campaign)
            .or_insert_with(|| tally::Model::new(campaign.id))
    }

    pub fn merge(&mut self, other: Changes) {
        let Changes {
            guards,
            tenants,
            users,
            memberships,
            api_keys,
            agents,
            endpoints,
            campaigns,
            contacts,
            sessions,
            transcripts,
            tallies,
            events,
            deliveries,
            delivery_updates,
            queues,
            attempts,
            healths,
            hours,
            mails,
        } = other;
        self.guards.extend(guards);
        self.tenants.extend(tenants);
        self.users.extend(users);
        self.memberships.extend(memberships);
        self.api_keys.extend(api_keys);
        self.agents.extend(agents);
        self.endpoints.extend(endpoints);
        self.campaigns.extend(campaigns);
        self.contacts.extend(contacts);
        self.sessions.extend(sessions);
        self.transcripts.extend(transcripts);
        for (campaign, by) in tallies {
            let sum = self.tally(campaign);
            sum.total += by.total;
            sum.pending += by.pending;
            sum.waiting += by.waiting;
            sum.dispatched += by.dispatched;
            sum.completed += by.completed;
            sum.failed += by.failed;
            sum.skipped += by.skipped;
            sum.canceled += by.canceled;
            sum.completed_sessions += by.completed_sessions;
            sum.failed_sessions += by.failed_sessions;
        }
        self.events.extend(events);
        self.deliveries.extend(deliveries);
        self.delivery_updates.extend(delivery_updates);
        self.queues.extend(queues);
        self.attempts.extend(attempts);
        self.healths.extend(healths);
        self.hours.extend(hours);
        self.mails.extend(mails);
    }

    pub fn is_empty(&self) -> bool {
        let Changes {
            guards,
            tallies,
            queues,
            healths,
            hours,
            mails,
            events,
            deliveries,
            delivery_updates,
            attempts,
            transcripts,
            ..
        } = self;
        self.written().is_empty()
            && self.users.is_empty()
            && self.memberships.is_empty()
            && self.api_keys.is_empty()
            && guards.is_empty()
            && tallies.is_empty()
            && queues.is_empty()
            && healths.is_empty()
            && hours.is_empty()
            && mails.is_empty()
            && events.is_empty()
            && deliveries.is_empty()
            && delivery_updates.is_empty()
            && attempts.is_empty()
            && transcripts.is_empty()
    }

    /// The rows that this replaces or depends on, so that the writer puts no two changes of one row into one statement.
    pub fn touched(&self) -> Vec<(&'static str, Uuid)> {
        let mut keys = Vec::new();
        keys.extend(self.guards.iter().map(|guard| match guard {
            Guard::Dispatchable(campaign) => ("campaign", campaign.0),
            Guard::Drained { campaign_id, .. } => ("tally", campaign_id.0),
        }));
        keys.extend(self.written());
        keys
    }

    /// The rows that this replaces.
    pub fn written(&self) -> Vec<(&'static str, Uuid)> {
        let mut keys = Vec::new();
        keys.extend(self.tenants.iter().map(|row| ("tenant", row.id.0)));
        keys.extend(self.agents.iter().map(|row| ("agent", row.id.0)));
        keys.extend(self.endpoints.iter().map(|row| ("endpoint", row.id.0)));
        keys.extend(self.campaigns.iter().map(|row| ("campaign", row.id.0)));
        keys.extend(self.contacts.iter().map(|row| ("contact", row.id.0)));
        keys.extend(self.sessions.iter().map(|row| ("session", row.id.0)));
        keys.extend(self.tallies.keys().map(|campaign| ("tally", campaign.id.0)));
        keys
    }

    /// Writes it all. The caller's transaction makes it one.
    pub async fn apply(&self, db: &impl ConnectionTrait) -> Result<Applied> {
        self.check_guards(db).await?;
        bulk::save(db, &self.tenants, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.users, OnConflict::Fail).await?;
        bulk::save(db, &self.memberships, OnConflict::Fail).await?;
        bulk::save(db, &self.api_keys, OnConflict::Fail).await?;
        bulk::save(db, &self.agents, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.endpoints, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.campaigns, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.contacts, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.sessions, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.transcripts, OnConflict::Replace).await?;
        bulk::save(db, &self.events, OnConflict::Fail).await?;
        bulk::save(db, &self.deliveries, OnConflict::Fail).await?;
        delivery::update(db, &self.delivery_updates).await?;
        for (endpoint, queue) in &self.queues {
            match queue {
                Queue::CancelOpen => delivery::put_away(db, *endpoint, PutAway::CancelOpen).await?,
                Queue::CancelAll => {
                    delivery::put_away(db, *endpoint, PutAway::CancelHeld).await?;
                    delivery::put_away(db, *endpoint, PutAway::CancelOpen).await?
                }
                Queue::Hold => delivery::put_away(db, *endpoint, PutAway::HoldOpen).await?,
            };
        }
        bulk::save(db, &self.attempts, OnConflict::Keep).await?;
        bulk::save(db, &self.healths, OnConflict::Replace).await?;
        endpoint_hour::add(db, &self.hours).await?;
        bulk::save(db, &self.mails, OnConflict::Fail).await?;
        // A campaign's first row of counts is born with it.
        let born: Vec<_> = self
            .campaigns
            .iter()
            .filter(|row| row.version == 1)
            .map(|row| tally::Model::new(row.id))
            .collect();
        bulk::save(db, &born, OnConflict::Fail).await?;
        let mut applied = Applied::default();
        for (campaign, by) in &self.tallies {
            if tally::add(db, by).await? == 0 {
                applied.drained.push(*campaign);
            }
        }
        Ok(applied)
    }

    async fn check_guards(&self, db: &impl ConnectionTrait) -> Result<()> {
        let mut running = Vec::new();
        for guard in &self.guards {
            match *guard {
                Guard::Dispatchable(campaign) => running.push(campaign),
                Guard::Drained { campaign_id, total } => {
                    let tally = tally::load(db, campaign_id).await?;
                    if tally.unfinished() != 0 || tally.total != total {
                        return Err(Error::Stale);
                    }
                }
            }
        }
        running.sort();
        running.dedup();
        if !running.is_empty() && campaign::count_dispatchable(db, &running).await? != running.len() as u64 {
            return Err(Error::Stale);
        }
        Ok(())
    }
}
