//! Everything that a transition can cause: decided in the machines, written with the state, performed after the commit.
use crate::{
    calls::Kept, campaign, carrier::Control, contact, deps::Deps, dnc, event::Event, hours, mail::Mail,
    session::log::Answered, session::machine::Command as SessionCommand, shell::Do, writer::Commit,
};
use bytes::Bytes;
use entities::{
    Error, Result, answer,
    campaign::CompletedReason,
    campaign_hour,
    changes::{Guard, Queue},
    contact::Status,
    evaluation,
    ids::{
        CampaignId, ContactId, EmailId, EndpointId, NumberId, Owned, RecordingId, RoomId, SessionId, SmsId, TenantId,
        VoiceId,
    },
    inbound_call,
    ledger::Movement,
    membership, message_send, recording, session, tally, transcript,
    values::{E164, Env, Moment},
    voice,
};
use std::sync::Arc;

/// The list of everything the service can do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    // Facts: rows in the transaction that saves the state.
    /// A condition inside that transaction.
    Require(Guard),
    Emit(Event),
    SaveTranscript(transcript::Model),
    /// Somebody must not be reached any more, and said so in a talk.
    Bar {
        whom: dnc::Whom,
        session_id: SessionId,
    },
    /// Nothing more is written to a number: its person told the provider so.
    StopTexts {
        phone_number: E164,
    },
    /// The intent to hand a message over.
    SaveSend(message_send::Model),
    SaveAnswers {
        call: Arc<session::Model>,
        answers: Vec<Answered>,
        source: answer::Source,
    },
    /// How the contact's last call was classified.
    DisposeContact {
        contact_id: ContactId,
        session_id: SessionId,
        code: String,
    },
    /// What is to be found out about a talk; begun after the commit.
    StartEvaluation(evaluation::Model),
    SaveEvaluation(evaluation::Model),
    /// A talk was recorded: its sound is stored after the commit.
    StartRecording {
        row: recording::Model,
        sounds: Vec<(usize, Bytes)>,
    },
    /// What became of a call to one of the tenant's numbers.
    CountInbound {
        call: Arc<session::Model>,
        number_id: NumberId,
        outcome: inbound_call::Outcome,
    },
    /// What was said, and answered, is removed.
    Forget {
        session: Owned<SessionId>,
        recording: Option<RecordingId>,
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
    /// Credits are set aside, charged or let go.
    Move(Movement),
    /// What was found out about samples of a voice; those that were uploaded count from now on.
    SaveVoiceSamples(Vec<voice::sample::Model>),
    /// No sample of a voice is left.
    ForgetVoiceSamples(VoiceId),

    // Work for the outside: its row says that it is under way.
    HangUp {
        session: Owned<SessionId>,
    },
    /// What a room's end makes of its session. May be lost: whoever finds the two out of step does it again.
    TellSession(Owned<SessionId>, SessionCommand),
    /// A room's session has ended: the page is told, and the room follows, as it does when this is lost.
    RoomEnded {
        room: Owned<RoomId>,
        session: Box<session::Model>,
    },
    /// Hands a call over to somebody else.
    Transfer {
        session: Owned<SessionId>,
        to: E164,
    },
    /// A call that was to be handed over stays with its agent.
    TransferEnded {
        session: Owned<SessionId>,
    },
    /// A live call has used up what is set aside for it: more is asked for.
    ExtendHold {
        call: Arc<session::Model>,
        started_at: Moment,
    },
    /// Hands a message over, once.
    SendSms(Owned<SmsId>),
    SendEmail(Owned<EmailId>),
    StoreSound(Owned<RecordingId>),
    EraseSound(Owned<RecordingId>),
    TrainVoice(Owned<VoiceId>),
    /// Of a deleted voice everything; else what its provider has and nobody uses.
    EraseVoice(Owned<VoiceId>),
    /// Puts away what a campaign has not called, in slices: it was canceled, or its time is over.
    PutAwayContacts {
        campaign: Owned<CampaignId>,
        reason: CompletedReason,
    },

    /// Judges anew, in slices, who waits: the campaign's rules have changed.
    ReviewContacts(Owned<CampaignId>),

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
    /// A campaign's message has ended.
    MessageEnded(Owned<CampaignId>),
    /// Something was said in a call.
    Overheard {
        session_id: SessionId,
        /// Its place in the transcript.
        place: usize,
        turn: transcript::Turn,
    },
    OverheardEnd(SessionId),
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
            Effect::SaveTranscript(transcript) => commit.changes.transcripts.push(transcript.clone()),
            Effect::Bar { whom, session_id } => {
                let entry = dnc::Entry {
                    id: deps.ids.next(),
                    whom: whom.clone(),
                    channels: Vec::new(),
                    reason: Some("said so in a call".into()),
                    source: entities::dnc::Source::OptOutVoice,
                    session_id: Some(*session_id),
                };
                bar(deps, owner, entry, commit).await?;
            }
            Effect::StopTexts { phone_number } => {
                let entry = crate::sms::inbound::stop(deps.ids.next(), phone_number);
                bar(deps, owner, entry, commit).await?;
            }
            Effect::SaveSend(row) => commit.changes.message_sends.push(row.clone()),
            Effect::SaveAnswers { call, answers, source } => {
                let rows = answers.iter().map(|answered| answer_row(deps, call, answered, *source));
                commit.changes.answers.extend(rows);
            }
            Effect::DisposeContact {
                contact_id,
                session_id,
                code,
            } => commit
                .changes
                .contact_dispositions
                .push((*contact_id, *session_id, code.clone())),
            Effect::StartEvaluation(job) | Effect::SaveEvaluation(job) => commit.changes.evaluations.push(job.clone()),
            Effect::StartRecording { row, .. } => commit.changes.recordings.push(row.clone()),
            Effect::CountInbound {
                call,
                number_id,
                outcome,
            } => commit.changes.inbound_calls.push(inbound_call::Model {
                // A session is one call.
                id: call.id.0.into(),
                tenant_id: call.tenant_id,
                env: call.env,
                number_id: *number_id,
                from_number: call.from_number.clone(),
                session_id: Some(call.id),
                outcome: *outcome,
                created_at: call.created_at,
            }),
            Effect::Forget { session, .. } => {
                commit.changes.transcripts.push(transcript::Model::empty(session.id));
                commit.changes.forgotten.push(session.id);
            }
            Effect::FinishAttempt { contact, attempt } => finish_attempt(deps, *contact, attempt, commit).await?,
            Effect::Deliveries { endpoint, queue } => commit.changes.queues.push((endpoint.id, *queue)),
            Effect::MailOwners(mail) => mail_owners(deps, owner.tenant_id, mail, commit).await?,
            Effect::Move(movement) => commit.changes.movements.push(movement.clone()),
            Effect::SaveVoiceSamples(samples) => commit.changes.voice_samples.extend(samples.iter().cloned()),
            Effect::ForgetVoiceSamples(voice) => commit.changes.voices_forgotten.push(*voice),
            Effect::HangUp { .. }
            | Effect::TellSession(..)
            | Effect::RoomEnded { .. }
            | Effect::Transfer { .. }
            | Effect::TransferEnded { .. }
            | Effect::ExtendHold { .. }
            | Effect::SendSms(_)
            | Effect::SendEmail(_)
            | Effect::StoreSound(_)
            | Effect::EraseSound(_)
            | Effect::TrainVoice(_)
            | Effect::EraseVoice(_)
            | Effect::Overheard { .. }
            | Effect::OverheardEnd(_)
            | Effect::PutAwayContacts { .. }
            | Effect::ReviewContacts(_)
            | Effect::TrunkCongested { .. }
            | Effect::CampaignsChanged(_)
            | Effect::ContactsChanged(_)
            | Effect::SessionQueued(_)
            | Effect::SlotFreed { .. }
            | Effect::MessageEnded(_)
            | Effect::CheckDrained(_)
            | Effect::EndpointChanged(_) => {}
        }
    }
    Ok(())
}

async fn mail_owners(deps: &Deps, tenant_id: TenantId, mail: &Mail, commit: &mut Commit) -> Result<()> {
    let now = deps.clock.now();
    for recipient in membership::owners(&deps.db.read, tenant_id).await? {
        let row = mail.row(deps.ids.next(), tenant_id, recipient, now);
        commit.changes.mails.push(row);
    }
    Ok(())
}

/// Somebody who does not want to be reached, with the entry's place among all commits.
async fn bar<I: Copy>(deps: &Deps, owner: Owned<I>, entry: dnc::Entry, commit: &mut Commit) -> Result<()> {
    let of = (owner.tenant_id, owner.env);
    let (row, outcome) = dnc::place(&deps.db.read, of, entry, deps.clock.now()).await?;
    if outcome != dnc::Outcome::Known {
        commit.changes.dnc.push(row);
    }
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

async fn finish_attempt(
    deps: &Deps,
    key: Owned<ContactId>,
    attempt: &contact::machine::Attempt,
    commit: &mut Commit,
) -> Result<()> {
    let Kept {
        contact: before,
        retry,
        rules_version,
        zone,
    } = match deps.calls.contact(SessionId(attempt.row.0)) {
        Some(kept) => kept,
        None => {
            let contact = entities::contact::load(&deps.db.read, key).await?;
            let campaign = Owned::new(key.tenant_id, key.env, contact.campaign_id);
            let row = entities::campaign::load_even_deleted(&deps.db.read, campaign).await?;
            let zone = match row.plan.schedule.timezone {
                Some(zone) => zone,
                None => entities::tenant::load(&deps.db.read, key.tenant_id).await?.timezone,
            };
            Kept {
                contact,
                retry: row.plan.retry,
                rules_version: row.rules_version,
                zone: zone.tz(),
            }
        }
    };
    let campaign = Owned::new(key.tenant_id, key.env, before.campaign_id);
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
            | Effect::SaveTranscript(_)
            | Effect::Bar { .. }
            | Effect::StopTexts { .. }
            | Effect::SaveSend(_)
            | Effect::SaveAnswers { .. }
            | Effect::DisposeContact { .. }
            | Effect::SaveEvaluation(_)
            | Effect::Forget { .. }
            | Effect::Move(_)
            | Effect::Deliveries { .. }
            | Effect::SaveVoiceSamples(_)
            | Effect::ForgetVoiceSamples(_) => {}
            Effect::CountInbound { call, number_id, .. } => {
                crate::inbound::watch(deps, Owned::new(call.tenant_id, call.env, number_id));
            }
            Effect::StartEvaluation(job) => crate::evaluate::run(deps, job),
            Effect::StartRecording { row, sounds } => {
                deps.studio.keep(row.id, sounds);
                let tick = Do::tell(crate::recording::machine::Command::Tick, &deps.clock);
                tree.recordings.tell(row.key(), tick);
            }
            Effect::ExtendHold { call, started_at } => crate::credits::extend(deps, call, started_at),
            Effect::SendSms(message) => crate::sms::send(deps, message),
            Effect::SendEmail(message) => crate::email::send(deps, message),
            Effect::StoreSound(recording) => crate::recording::studio::store(deps, recording),
            Effect::EraseSound(recording) => crate::recording::studio::erase(deps, recording),
            Effect::TrainVoice(voice) => crate::voice_clone::train(deps, voice),
            Effect::EraseVoice(voice) => crate::voice_clone::erase(deps, voice),
            Effect::Transfer { session, to } => control(deps, session, Control::Transfer(to)),
            Effect::TransferEnded { session } => control(deps, session, Control::TakeBack),
            Effect::Overheard {
                session_id,
                place,
                turn,
            } => deps.listeners.tell(session_id, place, &turn),
            Effect::OverheardEnd(session_id) => deps.listeners.end(session_id),
            Effect::MailOwners(_) => tree.mailer.tell((), crate::mail::Wake::new(&deps.clock)),
            Effect::HangUp { session } => {
                // First out of hand: what is not placed yet never is.
                deps.calls.remove(session.id);
                if let Some(carrier) = deps.carriers.of(session.env) {
                    carrier.hang_up(session.id);
                }
            }
            Effect::TellSession(session, command) => tree.sessions.tell(session, Do::tell(command, &deps.clock)),
            Effect::RoomEnded { room, session } => {
                let reason = session.end_reason.map_or("failed", crate::session::machine::code);
                deps.carriers.rooms.close(deps, session.id, reason);
                let follow = crate::room::machine::Command::Follow(session);
                tree.rooms.tell(room, Do::tell(follow, &deps.clock));
            }
            Effect::PutAwayContacts { campaign, reason } => {
                campaign::actor::put_away(deps, campaign, reason);
            }
            Effect::ReviewContacts(campaign) => {
                deps.calls.forget_contacts_of(campaign.id);
                campaign::review::begin(deps, campaign.tenant_id);
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
            Effect::MessageEnded(campaign) => tree.dispatchers.tell(
                campaign.tenant_id,
                crate::dispatcher::Ended::new(campaign.id, &deps.clock),
            ),
            Effect::FinishAttempt { contact, attempt } => {
                if !attempt.reached {
                    campaign::actor::wake_for(deps.clone(), contact);
                }
            }
            Effect::CheckDrained(campaign) => campaign::actor::check_drained(deps.clone(), campaign),
            Effect::EndpointChanged(endpoint) => tree
                .lanes
                .tell(endpoint, crate::delivery::lane::Reload::new(&deps.clock)),
        }
    }
}

/// Tells the carrier what to do with a live call; one that is gone needs nothing more.
fn control(deps: &Deps, session: Owned<SessionId>, control: Control) {
    deps.carriers.control(deps, session, control);
}

/// A row that changed under a command is read again and the command decided again, a few times. So is one that somebody else
/// made at this moment: an opt-out must not fail because the number came onto the list by another way. A key of ours that was
/// taken by a commit in doubt is not taken once more: the order has been read anew.
pub fn worth_another_try(error: &Error, tries: u32) -> bool {
    matches!(error, Error::Stale | Error::AlreadyExists { .. } | Error::Collision(_)) && tries < 5
}
