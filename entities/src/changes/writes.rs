//! Lists that are not written as they are.
use crate::{
    answer, boxed,
    bulk::{self, OnConflict},
    changes::Changes,
    connection::Transaction,
    contact,
    delivery::{self, PutAway},
    dispatch_block, email_message,
    error::Result,
    ids::{CampaignId, ContactId, EmailId, EndpointId, SessionId, SipLegId, TenantId, TenantScoped, VoiceId},
    sip_leg, tally,
    values::Env,
    voice,
};
use std::collections::BTreeMap;

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

#[boxed]
pub(super) async fn put_away(db: &Transaction, queues: &[(EndpointId, Queue)]) -> Result<()> {
    for (endpoint, queue) in queues {
        match queue {
            Queue::CancelOpen => delivery::put_away(db, *endpoint, PutAway::CancelOpen).await?,
            Queue::CancelAll => {
                delivery::put_away(db, *endpoint, PutAway::CancelHeld).await?;
                delivery::put_away(db, *endpoint, PutAway::CancelOpen).await?
            }
            Queue::Hold => delivery::put_away(db, *endpoint, PutAway::HoldOpen).await?,
        };
    }
    Ok(())
}

#[boxed]
pub(super) async fn forget_answers(db: &Transaction, sessions: &[SessionId]) -> Result<()> {
    for session in sessions {
        answer::delete_of(db, *session).await?;
    }
    Ok(())
}

#[boxed]
pub(super) async fn set_dispositions(db: &Transaction, dispositions: &[(ContactId, SessionId, String)]) -> Result<()> {
    for (id, session, code) in dispositions {
        contact::set_disposition(db, *id, *session, code).await?;
    }
    Ok(())
}

#[boxed]
pub(super) async fn unblock(db: &Transaction, unblocked: &[(TenantId, Env, dispatch_block::Reason)]) -> Result<()> {
    for (tenant, env, reason) in unblocked {
        dispatch_block::remove(db, *tenant, *env, *reason).await?;
    }
    Ok(())
}

#[boxed]
pub(super) async fn forget_samples(db: &Transaction, voices: &[VoiceId]) -> Result<()> {
    for voice in voices {
        voice::sample::delete_of(db, *voice).await?;
    }
    Ok(())
}

#[boxed]
pub(super) async fn forget_contents(db: &Transaction, emails: &[EmailId]) -> Result<()> {
    email_message::content::delete(db, emails).await
}

#[boxed]
pub(super) async fn delete_legs(db: &Transaction, legs: &[SipLegId]) -> Result<()> {
    sip_leg::delete(db, legs).await
}

/// Adds the differences, and answers the campaigns of which no contact is left unfinished.
#[boxed]
pub(super) async fn count(db: &Transaction, all: &[&Changes]) -> Result<Vec<TenantScoped<CampaignId>>> {
    // A campaign's first row of counts is born with it.
    let campaigns = all.iter().flat_map(|one| &one.campaigns);
    let born: Vec<_> = campaigns
        .filter(|row| row.version == 1)
        .map(|row| tally::Model::new(row.id))
        .collect();
    bulk::save(db, &born, OnConflict::Fail).await?;
    let mut tallies: BTreeMap<TenantScoped<CampaignId>, tally::Model> = BTreeMap::new();
    for (campaign, by) in all.iter().flat_map(|one| &one.tallies) {
        *tallies
            .entry(*campaign)
            .or_insert_with(|| tally::Model::new(campaign.id)) += by.clone();
    }
    let mut drained = Vec::new();
    for (campaign, by) in &tallies {
        if tally::add(db, by).await? == 0 {
            drained.push(*campaign);
        }
    }
    Ok(drained)
}
