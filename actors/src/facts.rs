//! What effects write: their facts become rows of the commit that saves the state.
use crate::{
    attempts::{self, Opening, Written},
    call::in_hand::Kept,
    deps::Deps,
    dnc, legal,
};
use entities::{
    Error, Result, answer, call_hour, campaign_hour,
    changes::Guard,
    contact::Status,
    ids::{ContactId, DncId, NumberId, RecordingId, SessionId, TenantId, TenantScoped},
    inbound_call, membership, number_hour,
    rest::{self, RestCause},
    session, tally, transcript,
    values::{E164, Env, Moment},
};
use rules::{
    barred::{self, Entry, Whom},
    commit::Commit,
    contact,
    effect::{CallCount, Effect, Fact, Placed},
    event::Event,
    hours,
    law::{Bound, OpenedMessage},
    mail::Mail,
    recording,
    session::log::Answered,
};

/// Turns the facts among `effects` into rows of `commit`.
pub async fn add<I: Copy>(deps: &Deps, owner: TenantScoped<I>, effects: &[Effect], commit: &mut Commit) -> Result<()> {
    let facts = effects.iter().filter_map(|effect| match effect {
        Effect::Fact(fact) => Some(fact),
        Effect::Work(_) | Effect::Hint(_) => None,
    });
    let scope = (owner.tenant_id, owner.env);
    for fact in facts {
        match fact {
            Fact::Require(guard) => commit.changes.guards.push(guard.clone()),
            Fact::Emit(event) => commit.events.push(event.draft(owner)),
            Fact::SaveTranscript(transcript) => commit.changes.transcripts.push(transcript.clone()),
            Fact::AddToDnc { whom, session_id } => {
                let entry = said_in_a_call(deps.ids.next(), whom, *session_id);
                add_to_dnc(deps, owner, entry, commit).await?;
            }
            Fact::StopTexts { phone_number } => {
                let entry = barred::stop(deps.ids.next(), phone_number);
                add_to_dnc(deps, owner, entry, commit).await?;
            }
            Fact::SaveSend(row) => commit.changes.message_sends.push(row.clone()),
            Fact::SaveAnswers { call, answers, source } => {
                let rows = answers.iter().map(|answered| answer_row(deps, call, answered, *source));
                commit.changes.answers.extend(rows);
            }
            Fact::DisposeContact {
                contact_id,
                session_id,
                code,
            } => commit
                .changes
                .contact_dispositions
                .push((*contact_id, *session_id, code.clone())),
            Fact::SaveEvaluation(job) => commit.changes.evaluations.push(job.clone()),
            Fact::SaveRecording(row) => commit.changes.recordings.push(row.clone()),
            Fact::PurgeRecording { recording, keep_until } => {
                purge_recording(deps, *recording, *keep_until, commit).await?;
            }
            Fact::CountInbound {
                call,
                number_id,
                outcome,
            } => commit
                .changes
                .inbound_calls
                .push(inbound_row(call, *number_id, *outcome)),
            Fact::CountCall(counted) => count_call(deps, scope, counted, commit).await?,
            Fact::Decline {
                phone_number,
                session_id,
                at,
            } => {
                let row = rest_row(scope, phone_number, *session_id, (RestCause::Declined, *at));
                commit.changes.rests.push(row);
            }
            Fact::Forget { session, .. } => {
                commit.changes.transcripts.push(transcript::Model::empty(session.id));
                commit.changes.forgotten.push(session.id);
            }
            Fact::ForgetEmail(email) => commit.changes.emails_forgotten.push(*email),
            Fact::FinishAttempt { contact, attempt } => finish_attempt(deps, *contact, attempt, commit).await?,
            Fact::OpenAttempt(opened) => open_attempt(deps, scope, opened, commit)?,
            Fact::CloseAttempt(closing) => attempts::close(deps, scope, closing, commit).await?,
            Fact::Deliveries { endpoint, queue } => commit.changes.queues.push((endpoint.id, *queue)),
            Fact::MailOwners(mail) => mail_owners(deps, owner.tenant_id, mail, commit).await?,
            Fact::Move(movement) => commit.changes.movements.push(movement.clone()),
            Fact::SaveVoiceSamples(samples) => commit.changes.voice_samples.extend(samples.iter().cloned()),
            Fact::ForgetVoiceSamples(voice) => commit.changes.voices_forgotten.push(*voice),
        }
    }
    Ok(())
}

fn rest_row(
    (tenant_id, env): (TenantId, Env),
    phone_number: &E164,
    session: SessionId,
    (cause, since): (RestCause, Moment),
) -> rest::Model {
    rest::Model {
        tenant_id,
        env,
        phone_number: phone_number.clone(),
        cause,
        since,
        session_id: Some(session),
    }
}

async fn count_call(deps: &Deps, owner: (TenantId, Env), counted: &CallCount, commit: &mut Commit) -> Result<()> {
    let hour = call_hour::Model::empty(owner.0, owner.1, counted.began_at);
    commit.changes.call_hours.push(counted.in_hour(hour));
    match &counted.placed {
        Some(placed) => count_placed(deps, owner, counted, placed, commit).await,
        None => Ok(()),
    }
}

/// What a call that we have placed adds: to its number's counts, to its campaign's of calls that a person answered, and to who is to be
/// left alone.
async fn count_placed(
    deps: &Deps,
    (tenant_id, env): (TenantId, Env),
    counted: &CallCount,
    placed: &Placed,
    commit: &mut Commit,
) -> Result<()> {
    if let Some(number) = &placed.from_number {
        commit.changes.number_hours.push(number_hour::Model {
            dialed: 1,
            answered: counted.answered.into(),
            blocked: placed.is_blocked.into(),
            ..number_hour::Model::empty((tenant_id, env), number.clone(), counted.began_at)
        });
    }
    let row = |said| rest_row((tenant_id, env), &placed.to_number, placed.session_id, said);
    commit.changes.rests.extend(placed.rests().into_iter().map(row));
    let Some((campaign, contact)) = placed.campaign.filter(|_| placed.is_live) else {
        return Ok(());
    };
    let Kept { zone, .. } = kept(deps, TenantScoped::new(tenant_id, env, contact), placed.session_id).await?;
    commit.changes.campaign_hours.push(campaign_hour::Model {
        answered_live: 1,
        abandoned: placed.abandoned.is_some().into(),
        ..campaign_hour::Model::empty(campaign, hours::hour_of(zone, counted.began_at))
    });
    Ok(())
}

fn open_attempt(deps: &Deps, owner: (TenantId, Env), opened: &OpenedMessage, commit: &mut Commit) -> Result<()> {
    let Bound {
        judged,
        is_lawful,
        words_sha256,
    } = opened.bound.clone();
    let written = Written {
        owner,
        message: opened.message,
        dial_n: opened.dial_n,
        campaign_id: opened.campaign_id,
        contact: None,
        address: opened.address.clone(),
        words_sha256,
    };
    let body = legal::body(&deps.law, judged, is_lawful);
    attempts::opened(deps, commit, Opening::of_message(written, body))
}

fn inbound_row(
    call: &session::Model,
    number_id: NumberId,
    outcome: inbound_call::InboundOutcome,
) -> inbound_call::Model {
    inbound_call::Model {
        // A session is one call.
        id: call.id.0.into(),
        tenant_id: call.tenant_id,
        env: call.env,
        number_id,
        from_number: call.from_number.clone(),
        session_id: Some(call.id),
        outcome,
        created_at: call.created_at,
    }
}

async fn mail_owners(deps: &Deps, tenant_id: TenantId, mail: &Mail, commit: &mut Commit) -> Result<()> {
    let now = deps.clock.now();
    for recipient in membership::owners(&deps.db.read, tenant_id).await? {
        let row = mail.row(deps.ids.next(), tenant_id, recipient, now);
        commit.changes.mails.push(row);
    }
    Ok(())
}

fn said_in_a_call(id: DncId, whom: &Whom, session_id: SessionId) -> Entry {
    Entry {
        id,
        whom: whom.clone(),
        channels: Vec::new(),
        reason: Some("said so in a call".into()),
        source: entities::dnc::Source::OptOutVoice,
        session_id: Some(session_id),
        requested_at: None,
        created_by: None,
    }
}

/// Somebody who does not want to be reached, with the entry's place among all commits; and what they had agreed to is taken back.
async fn add_to_dnc<I: Copy>(deps: &Deps, owner: TenantScoped<I>, entry: Entry, commit: &mut Commit) -> Result<()> {
    let of = (owner.tenant_id, owner.env);
    let placed = dnc::place(&deps.db.read, of, entry, deps.clock.times()).await?;
    placed.write(deps, commit, None)?;
    Ok(())
}

/// The recording's own move, with its event. Its actor may have the row in hand: then it reads it anew.
async fn purge_recording(
    deps: &Deps,
    key: TenantScoped<RecordingId>,
    keep_until: Option<Moment>,
    commit: &mut Commit,
) -> Result<()> {
    let before = entities::recording::load(&deps.db.read, key).await?;
    let command = keep_until.map_or(recording::machine::Command::Delete, |purge_after| {
        recording::machine::Command::OptOut { purge_after }
    });
    let (after, effects) = recording::machine::transition(before.clone(), command, deps.clock.now());
    if after == before {
        return Ok(());
    }
    let version = before.version + 1;
    commit
        .changes
        .recordings
        .push(entities::recording::Model { version, ..after });
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::Fact(Fact::Emit(event)) => Some(event.draft(key)),
        Effect::Fact(_) | Effect::Work(_) | Effect::Hint(_) => None,
    });
    commit.events.extend(told);
    Ok(())
}

fn answer_row(deps: &Deps, call: &session::Model, answered: &Answered, source: answer::Source) -> answer::Model {
    answer::Model {
        id: deps.ids.next(),
        tenant_id: call.tenant_id,
        env: call.env,
        session_id: call.id,
        agent_id: call.agent_id,
        campaign_id: call.campaign_id,
        contact_id: call.contact_id,
        question_key: answered.key.clone(),
        question: answered.question.clone(),
        value: answered.value.clone(),
        evidence_turn: answered.evidence_turn.and_then(|at| i32::try_from(at).ok()),
        source,
        created_at: deps.clock.now(),
    }
}

/// The contact of a call, with what of its campaign its end needs.
async fn kept(deps: &Deps, key: TenantScoped<ContactId>, session: SessionId) -> Result<Kept> {
    if let Some(kept) = deps.calls.contact(session) {
        return Ok(kept);
    }
    let contact = entities::contact::load(&deps.db.read, key).await?;
    let campaign = TenantScoped::new(key.tenant_id, key.env, contact.campaign_id);
    let row = entities::campaign::load_even_deleted(&deps.db.read, campaign).await?;
    let zone = match row.plan.schedule.timezone {
        Some(zone) => zone,
        None => entities::tenant::load(&deps.db.read, key.tenant_id).await?.timezone,
    };
    Ok(Kept {
        contact,
        retry: row.plan.retry,
        rules_version: row.rules_version,
        zone: zone.tz(),
    })
}

async fn finish_attempt(
    deps: &Deps,
    key: TenantScoped<ContactId>,
    attempt: &contact::machine::Attempt,
    commit: &mut Commit,
) -> Result<()> {
    let Kept {
        contact: before,
        retry,
        rules_version,
        zone,
    } = kept(deps, key, SessionId(attempt.row.0)).await?;
    let campaign = TenantScoped::new(key.tenant_id, key.env, before.campaign_id);
    let command = contact::machine::Command::Finish(attempt.clone());
    let (after, events) = contact::machine::transition(before.clone(), command, &retry, deps.clock.now())?;
    if after == before {
        return Ok(());
    }
    if !attempt.reached {
        // Other rules since then are judged by: whoever waits by old ones would not be looked at again.
        commit.changes.guards.push(Guard::Rules(campaign.id, rules_version));
    }
    let sessions = commit.changes.tally(campaign);
    if attempt.ending.is_completed() {
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
        .tally(TenantScoped::new(after.tenant_id, after.env, after.campaign_id));
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

/// A row that changed under a command is read again and the command decided again, a few times. So is one that somebody else
/// made at this moment: an opt-out must not fail because the number came onto the list by another way. A key of ours that was
/// taken by a commit in doubt is not taken once more: the order has been read anew.
pub fn worth_another_try(error: &Error, tries: u32) -> bool {
    matches!(error, Error::Stale | Error::AlreadyExists { .. } | Error::Collision(_)) && tries < 5
}
