//! Everything that a transition can cause: decided in the machines, written with the state, performed after the commit.
use crate::{campaign, contact, deps::Deps, event::Event, hours, mail::Mail, shell::Do, writer::Commit};
use entities::{
    Error, Result,
    campaign::CompletedReason,
    campaign_hour,
    changes::{Guard, Queue},
    contact::Status,
    ids::{CampaignId, ContactId, EndpointId, Owned, SessionId, TenantId},
    mail, membership, tally, transcript,
    values::Env,
};

/// The list of everything the service can do.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a handful at once, gone with their commit")]
pub enum Effect {
    // Facts: rows in the transaction that saves the state.
    /// A condition inside that transaction.
    Require(Guard),
    Emit(Event),
    SaveTranscript {
        session_id: SessionId,
        turns: Vec<transcript::Turn>,
    },
    /// The contact's move at the end of one call to it.
    FinishAttempt {
        contact: Owned<ContactId>,
        attempt: contact::machine::Attempt,
    },
    /// What becomes of all that this endpoint has not received.
    Deliveries {
        endpoint: Owned<EndpointId>,
        queue: Queue,
    },
    /// An e-mail to each owner of the workspace.
    MailOwners(Mail),

    // Work for the outside: its row says that it is under way.
    HangUp {
        session: Owned<SessionId>,
    },
    /// Puts away what a campaign has not called, in slices: it was canceled, or its time is over.
    PutAwayContacts {
        campaign: Owned<CampaignId>,
        reason: CompletedReason,
    },

    // Hints: may be lost; the receiver finds the same thing in its rows.
    /// What the tenant's campaigns are has changed.
    CampaignsChanged(TenantId),
    /// Who is in a campaign, or may be called, has changed.
    ContactsChanged(Owned<CampaignId>),
    /// A session waits for a slot.
    SessionQueued(TenantId),
    /// A call has ended and its slot is free.
    SlotFreed {
        tenant_id: TenantId,
        session_id: SessionId,
    },
    /// A trunk had no room for a call.
    TrunkCongested {
        tenant_id: TenantId,
        env: Env,
    },
    /// A campaign may have nothing left to do.
    CheckDrained(Owned<CampaignId>),
    /// An endpoint's settings have changed.
    EndpointChanged(Owned<EndpointId>),
}

/// Turns the facts among `effects` into rows of `commit`.
pub async fn facts<I: Copy>(deps: &Deps, owner: Owned<I>, effects: &[Effect], commit: &mut Commit) -> Result<()> {
    for effect in effects {
        match effect {
            Effect::Require(guard) => commit.changes.guards.push(guard.clone()),
            Effect::Emit(event) => commit.events.push(event.draft(owner)),
            Effect::SaveTranscript { session_id, turns } => {
                commit.changes.transcripts.push(transcript::Model {
                    session_id: *session_id,
                    turns: transcript::Turns(turns.clone()),
                });
            }
            Effect::FinishAttempt { contact, attempt } => finish_attempt(deps, *contact, attempt, commit).await?,
            Effect::Deliveries { endpoint, queue } => commit.changes.queues.push((endpoint.id, *queue)),
            Effect::MailOwners(mail) => mail_owners(deps, owner.tenant_id, mail, commit).await?,
            Effect::HangUp { .. }
            | Effect::PutAwayContacts { .. }
            | Effect::TrunkCongested { .. }
            | Effect::CampaignsChanged(_)
            | Effect::ContactsChanged(_)
            | Effect::SessionQueued(_)
            | Effect::SlotFreed { .. }
            | Effect::CheckDrained(_)
            | Effect::EndpointChanged(_) => {}
        }
    }
    Ok(())
}

async fn mail_owners(deps: &Deps, tenant_id: TenantId, mail: &Mail, commit: &mut Commit) -> Result<()> {
    let now = deps.clock.now();
    for recipient in membership::owners(&deps.db.read, tenant_id).await? {
        commit.changes.mails.push(mail::Model {
            id: deps.ids.next(),
            tenant_id,
            recipient,
            kind: mail.kind.to_owned(),
            subject: mail.subject.clone(),
            body: mail.body.clone(),
            status: mail::Status::Queued,
            attempts: 0,
            next_attempt_at: Some(now),
            last_error: None,
            created_at: now,
            ended_at: None,
        });
    }
    Ok(())
}

async fn finish_attempt(
    deps: &Deps,
    key: Owned<ContactId>,
    attempt: &contact::machine::Attempt,
    commit: &mut Commit,
) -> Result<()> {
    let (before, retry, zone) = match deps.calls.contact(attempt.session_id) {
        Some(kept) => kept,
        None => {
            let contact = entities::contact::load(&deps.db.read, key).await?;
            let campaign = Owned::new(key.tenant_id, key.env, contact.campaign_id);
            let plan = entities::campaign::load_even_deleted(&deps.db.read, campaign)
                .await?
                .plan;
            let zone = match plan.schedule.timezone {
                Some(zone) => zone,
                None => entities::tenant::load(&deps.db.read, key.tenant_id).await?.timezone,
            };
            (contact, plan.retry, zone.tz())
        }
    };
    let campaign = Owned::new(key.tenant_id, key.env, before.campaign_id);
    let command = contact::machine::Command::Finish(attempt.clone());
    let (after, events) = contact::machine::transition(before.clone(), command, &retry, deps.clock.now())?;
    if after == before {
        return Ok(());
    }
    let sessions = commit.changes.tally(campaign);
    if attempt.status == entities::session::Status::Completed {
        sessions.completed_sessions += 1;
    } else {
        sessions.failed_sessions += 1;
    }
    sessions.cost_cents += attempt.actual_cost_cents.0;
    if let Some(dialed_at) = attempt.dialed_at {
        commit.changes.campaign_hours.push(campaign_hour::Model {
            answered: attempt.answered.into(),
            ended: 1,
            duration_seconds: attempt.duration_seconds.into(),
            ..campaign_hour::Model::empty(campaign.id, hours::hour_of(zone, dialed_at))
        });
    }
    contact_moved(commit, &before, after, &events);
    Ok(())
}

/// A contact's new row, its events, and its campaign's counts.
pub fn contact_moved(
    commit: &mut Commit,
    before: &entities::contact::Model,
    after: entities::contact::Model,
    events: &[Event],
) {
    let tally = commit
        .changes
        .tally(Owned::new(after.tenant_id, after.env, after.campaign_id));
    *count_of(tally, before.status) -= 1;
    *count_of(tally, after.status) += 1;
    commit
        .events
        .extend(events.iter().map(|event| event.draft(after.key())));
    commit.changes.contacts.push(after);
}

/// The count of contacts that are in that state.
pub fn count_of(tally: &mut tally::Model, status: Status) -> &mut i64 {
    match status {
        Status::Pending => &mut tally.pending,
        Status::Waiting => &mut tally.waiting,
        Status::Dispatched => &mut tally.dispatched,
        Status::Completed => &mut tally.completed,
        Status::Failed => &mut tally.failed,
        Status::Skipped => &mut tally.skipped,
        Status::Canceled => &mut tally.canceled,
    }
}

/// Performs the work and sends the hints, after the commit.
pub async fn perform(deps: &Deps, effects: Vec<Effect>) {
    let Some(tree) = deps.tree() else { return };
    for effect in effects {
        match effect {
            Effect::Require(_)
            | Effect::Emit(_)
            | Effect::SaveTranscript { .. }
            | Effect::FinishAttempt { .. }
            | Effect::Deliveries { .. } => {}
            Effect::MailOwners(_) => tree.mailer.tell((), crate::mail::Wake::new(&deps.clock)),
            Effect::HangUp { session } => {
                // First out of hand: what is not placed yet never is.
                deps.calls.remove(session.id);
                if let Some(carrier) = deps.carriers.of(session.env) {
                    carrier.hang_up(session.id);
                }
            }
            Effect::PutAwayContacts { campaign, reason } => {
                campaign::actor::put_away(deps.clone(), campaign, reason);
            }
            Effect::TrunkCongested { tenant_id, env } => {
                tree.dispatchers
                    .tell(tenant_id, crate::dispatcher::Congested::new(env, &deps.clock));
            }
            Effect::CampaignsChanged(tenant) => tree
                .dispatchers
                .tell(tenant, crate::dispatcher::Wake::campaigns(&deps.clock)),
            Effect::ContactsChanged(campaign) => {
                let command = campaign::machine::Command::Reconsider;
                tree.campaigns.tell(campaign, Do::tell(command, &deps.clock));
                tree.dispatchers
                    .tell(campaign.tenant_id, crate::dispatcher::Wake::campaigns(&deps.clock));
            }
            Effect::SessionQueued(tenant) => tree
                .dispatchers
                .tell(tenant, crate::dispatcher::Wake::queue(&deps.clock)),
            Effect::SlotFreed { tenant_id, session_id } => {
                tree.dispatchers
                    .tell(tenant_id, crate::dispatcher::Freed::new(session_id, &deps.clock));
            }
            Effect::CheckDrained(campaign) => campaign::actor::check_drained(deps.clone(), campaign),
            Effect::EndpointChanged(endpoint) => tree
                .lanes
                .tell(endpoint, crate::delivery::lane::Reload::new(&deps.clock)),
        }
    }
}

/// A row that changed under a command is read again and the command decided again, a few times.
pub fn worth_another_try(error: &Error, tries: u32) -> bool {
    matches!(error, Error::Stale) && tries < 5
}
