//! One contact's turn: may it be called, and the intent to call it, ready for its commit.
use super::queue::Queue;
use crate::{calls::Call, carrier::Outgoing, contact, deps::Deps, effect, session::machine::Session, writer::Commit};
use entities::{
    Result,
    contact::{Model as Contact, SkipReason},
    ids::{SessionId, TenantId},
    session as sessions,
    values::{Cents, E164, Env, Moment, Variables},
};
use std::sync::Arc;

/// A call that is ready to be committed.
pub struct Dial {
    pub call: Call,
    pub session: Session,
    pub commit: Commit,
}

/// The number to call, if this contact may be called at all.
pub async fn callable(deps: &Deps, tenant: TenantId, env: Env, contact: &Contact) -> Result<Option<E164>> {
    let Some(number) = contact.e164() else { return Ok(None) };
    match env {
        Env::Test if !number.is_sandbox() => {
            let verified = entities::verified_number::contains(&deps.db.read, tenant, &number).await?;
            Ok(verified.then_some(number))
        }
        Env::Test | Env::Live => Ok(Some(number)),
    }
}

/// That a contact is not called, ready for its commit.
pub fn skip(deps: &Deps, contact: &Contact, queue: &Queue, reason: SkipReason) -> Result<Commit> {
    let command = contact::machine::Command::Skip(reason);
    let (after, events) = contact::machine::transition(contact.clone(), command, &queue.plan.retry, deps.clock.now())?;
    let mut commit = Commit::default();
    commit
        .changes
        .guards
        .push(entities::changes::Guard::Dispatchable(queue.id));
    effect::contact_moved(&mut commit, contact, after, &events);
    Ok(commit)
}

/// The intent to call a contact, ready for its commit.
pub fn dial(deps: &Deps, queue: &mut Queue, contact: Contact, number: E164) -> Result<Dial> {
    let now = deps.clock.now();
    let id: SessionId = deps.ids.next();
    let row = session_row(queue, &contact, id, number, now);
    let call = Outgoing::new(&row, queue.agent.clone());
    let (session, effects) = Session::dialed(row, deps.base_url.clone(), now);
    let command = contact::machine::Command::Dispatch { session_id: id };
    let (after, events) = contact::machine::transition(contact.clone(), command, &queue.plan.retry, now)?;

    let mut commit = Commit::default();
    commit
        .changes
        .guards
        .push(entities::changes::Guard::Dispatchable(queue.id));
    commit.changes.sessions.push(session.row());
    for effect in &effects {
        if let effect::Effect::Emit(event) = effect {
            commit.events.push(event.draft(session.key()));
        }
    }
    effect::contact_moved(&mut commit, &contact, after.clone(), &events);
    let call = Call {
        outgoing: Arc::new(call),
        contact: Some((after, queue.plan.retry.clone())),
    };
    Ok(Dial { call, session, commit })
}

/// Seconds a phone rings before a campaign's call is given up.
const RING_TIMEOUT_SECONDS: i32 = 30;

fn session_row(queue: &mut Queue, contact: &Contact, id: SessionId, to_number: E164, now: Moment) -> sessions::Model {
    let agent = &queue.agent.definition;
    let voice_id = queue
        .plan
        .voice_id
        .as_ref()
        .or(agent.voice_id.as_ref())
        .map(|voice| voice.to_string());
    let max_duration_seconds = agent.max_duration_seconds.get();
    let (agent_id, agent_version) = (queue.agent.id, queue.agent.version);
    sessions::Model {
        id,
        tenant_id: contact.tenant_id,
        env: contact.env,
        status: sessions::Status::Queued,
        phase: sessions::Phase::Dialing,
        end_reason: None,
        ended_by: None,
        answered_by: None,
        agent_id,
        agent_version,
        voice_id,
        from_number: queue.next_from_number(),
        to_number,
        email: contact.email.clone(),
        first_name: contact.first_name.clone(),
        last_name: contact.last_name.clone(),
        client_reference_id: None,
        campaign_id: Some(queue.id),
        contact_id: Some(contact.id),
        attempt: contact.attempts + 1,
        variables: variables(&queue.plan.variables, contact),
        metadata: queue.plan.metadata.clone(),
        ring_timeout_seconds: RING_TIMEOUT_SECONDS,
        max_duration_seconds,
        queued_until: None,
        dialed_at: None,
        started_at: None,
        ended_at: None,
        duration_seconds: 0,
        actual_cost_cents: Cents(0),
        error_code: None,
        error_message: None,
        version: 1,
        created_at: now,
    }
}

/// What the agent may mention: the campaign's variables, under the contact's own, and the contact's names.
fn variables(of_campaign: &Variables, contact: &Contact) -> Variables {
    let mut all = of_campaign.clone();
    for (name, value) in [
        ("first_name", &contact.first_name),
        ("last_name", &contact.last_name),
        ("email", &contact.email),
    ] {
        if let Some(value) = value {
            all.0.insert(name.into(), value.clone().into());
        }
    }
    all.0.extend(contact.variables.0.clone());
    all
}
