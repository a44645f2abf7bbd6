//! How a session ends, and what is told and kept of it.
use super::*;

pub(super) fn refuse(session: Session, refusal: Refusal, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let (status, reason, error) = match refusal {
        Refusal::Busy => (Status::Busy, EndReason::Busy, None),
        Refusal::NoAnswer => (Status::NoAnswer, EndReason::NoAnswer, None),
        Refusal::Declined => (Status::NoAnswer, EndReason::Declined, None),
        Refusal::InvalidNumber(why) => (Status::Failed, EndReason::InvalidNumber, Some(why)),
        Refusal::Rejected(why) => (Status::Failed, EndReason::CarrierRejected, Some(why)),
        Refusal::Congested => (
            Status::Failed,
            EndReason::CarrierRejected,
            Some("the trunk has no room".into()),
        ),
    };
    finish(session, (status, reason), EndedBy::System, error, now)
}

pub(super) fn abandon(session: Session, abandoned: Abandoned, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Abandoned {
        status,
        reason,
        by,
        why,
    } = abandoned;
    finish(session, (status, reason), by, why, now)
}

/// It ends when it was last known to be carried: nobody pays for the time in which the service was down.
pub(super) fn lose(session: Session, last_seen: Moment, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let since = match &session.phase {
        Phase::Dialing { dialed_at, .. } => *dialed_at,
        Phase::Conversing(talk) => talk.started_at,
        Phase::Scheduled { .. } | Phase::Awaiting | Phase::Queued { .. } | Phase::Ended(_) => now,
    };
    let end = (Status::Failed, EndReason::NodeLost);
    // It was decided for a moment that may lie before its birth; a wish that stands in the row was heard. Whoever has its words has
    // carried it until now.
    let at = if session.log.is_empty() {
        let call = &session.call;
        let stored = since.max(call.created_at).max(call.opted_out_at.unwrap_or(since));
        last_seen.max(stored).min(now)
    } else {
        now
    };
    finish(session, end, EndedBy::System, Some(LOST.into()), at)
}

pub(super) fn canceled(
    session: Session,
    by: EndedBy,
    why: Option<&str>,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    let end = (Status::Failed, EndReason::Canceled);
    finish(session, end, by, why.map(str::to_owned), now)
}

/// A trunk that was full, or a service that stalled, has sent a campaign's call to the queue.
pub(super) fn slot_never_came(session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let (reason, why) = if session.call.campaign_id.is_some() {
        (EndReason::CarrierRejected, "it did not get its turn within an hour")
    } else {
        (
            EndReason::Canceled,
            "no slot became free before `queue_ttl_seconds` passed",
        )
    };
    finish(
        session,
        (Status::Failed, reason),
        EndedBy::System,
        Some(why.into()),
        now,
    )
}

/// What happens when a call ends, whoever ends it: this list, in this order.
pub(super) fn finish(
    mut session: Session,
    (status, reason): (Status, EndReason),
    by: EndedBy,
    error: Option<String>,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    let was_live = session.is_live();
    let end = ended(&session, (status, reason), by, error, now);
    let recording = recording(&session, reason, now);
    // The id was for a recording that nobody agreed to.
    if recording.is_none() && session.call.recording_id.is_some() {
        Arc::make_mut(&mut session.call).recording_id = None;
    }
    let log = std::mem::take(&mut session.log).closed(end.started_at, now);
    let call = session.call.clone();
    session.phase = Phase::Ended(end.clone());

    let mut effects = Vec::new();
    if end.started_at.is_none() {
        effects.extend(inbound(&session, inbound_call::Outcome::Abandoned));
    }
    let last_event = last_event(&session, &end, &log);
    let attempt = attempt(&call, &end);
    if !log.is_empty() {
        effects.push(Fact::SaveTranscript(log.transcript(call.id)).into());
    }
    effects.push(last_event);
    effects.extend(session.settled(attempt.actual_cost_cents));
    let contact = call.contact_id.map(|id| Owned::new(call.tenant_id, call.env, id));
    let may_wait = contact.filter(|_| !attempt.reached);
    effects.extend(contact.map(|contact| Fact::FinishAttempt { contact, attempt }.into()));
    if !log.answers.is_empty() {
        effects.push(
            Fact::SaveAnswers {
                call: call.clone(),
                answers: log.answers.clone(),
                source: answer::Source::Agent,
            }
            .into(),
        );
    }
    if let Some(job) = evaluation(&session, status, &log, now) {
        effects.push(Fact::SaveEvaluation(job.clone()).into());
        effects.push(Work::Evaluate(job).into());
    }
    if let Some(row) = recording {
        let recording = row.key();
        let sounds = log.sounds;
        effects.push(Fact::SaveRecording(row).into());
        effects.push(Work::KeepSounds { recording, sounds }.into());
    }
    if let Some(room) = call.room_id {
        effects.push(
            Work::RoomEnded {
                room: Owned::new(call.tenant_id, call.env, room),
                session: Box::new(session.row()),
            }
            .into(),
        );
    }
    if was_live {
        effects.push(Work::HangUp { session: session.key() }.into());
    }
    // From the queue too: the dispatcher may have given it a slot at this very moment.
    effects.push(
        Hint::SlotFreed {
            tenant_id: call.tenant_id,
            session_id: call.id,
        }
        .into(),
    );
    effects.extend(may_wait.map(|contact| Hint::ContactWaits(contact).into()));
    effects.push(Hint::OverheardEnd(call.id).into());
    Ok((session, effects))
}

pub(super) fn ended(
    session: &Session,
    (status, reason): (Status, EndReason),
    by: EndedBy,
    error: Option<String>,
    now: Moment,
) -> End {
    let (dialed_at, started_at, answered_by) = match &session.phase {
        Phase::Dialing { dialed_at, .. } => {
            let machine = (reason == EndReason::Voicemail).then_some(AnsweredBy::Voicemail);
            (Some(*dialed_at), None, machine)
        }
        Phase::Conversing(talk) => (Some(talk.dialed_at), Some(talk.started_at), Some(talk.answered_by)),
        Phase::Scheduled { .. } | Phase::Awaiting | Phase::Queued { .. } | Phase::Ended(_) => (None, None, None),
    };
    // No call has lasted longer than it may, whenever the service comes back after a crash, and whatever became of the clock; nobody
    // pays for the time between.
    let at = match &session.phase {
        Phase::Conversing(talk) => now.min(talk.end_by),
        _ => now,
    };
    End {
        at,
        status,
        reason,
        by,
        dialed_at,
        started_at,
        answered_by,
        error,
    }
}

pub(super) fn last_event(session: &Session, end: &End, log: &Log) -> Effect {
    let call = &session.call;
    let ended = SessionEnded {
        session_id: call.id,
        client_reference_id: call.client_reference_id.clone(),
        campaign_id: call.campaign_id,
        contact_id: call.contact_id,
        from_number: call.from_number.clone(),
        to_number: call.to_number.clone(),
        phone_number: call.phone_number().cloned(),
        email: call.email.clone(),
        first_name: call.first_name.clone(),
        last_name: call.last_name.clone(),
        status: end.status,
        end_reason: end.reason,
        // Who has talked has begun to; the others say below that they have not.
        started_at: end.started_at.unwrap_or(end.at),
        ended_at: end.at,
        duration_seconds: end.duration_seconds(),
        actual_cost_cents: cost(call.price_cents_per_minute, end.duration_seconds()),
        transcript: log.turns.clone(),
        transcript_url: (!log.turns.is_empty())
            .then(|| format!("{}/v1/sessions/{}/transcript.json", session.base_url, call.id)),
        function_invocations: log.invocations.clone(),
    };
    if end.status == Status::Completed {
        return Effect::emit(ended);
    }
    Effect::emit(SessionFailed {
        started_at: end.started_at,
        ..ended.into()
    })
}

pub(super) fn attempt(call: &Row, end: &End) -> Attempt {
    Attempt {
        row: DeliveryRowId(call.id.0),
        dialed_at: end.dialed_at,
        answered: end.answered_by.is_some(),
        ending: if end.is_given_back() {
            Ending::GivenBack
        } else {
            Ending::Call(end.status, end.reason)
        },
        // A message that was left may be as good as a talk.
        reached: end.status == Status::Completed
            || end.reason == EndReason::VoicemailLeft && call.options.voicemail.counts_as_reached,
        disposition_code: call.disposition_code.clone(),
        duration_seconds: end.duration_seconds(),
        actual_cost_cents: cost(call.price_cents_per_minute, end.duration_seconds()),
    }
}

/// What is found out after the end: campaign calls are classified, unless the agent did it; questions are looked up.
pub(super) fn evaluation(session: &Session, status: Status, log: &Log, now: Moment) -> Option<evaluation::Model> {
    let call = &session.call;
    let classify = call.campaign_id.is_some() && call.options.has_dispositions && call.disposition_code.is_none();
    let wanted = status == Status::Completed && !log.turns.is_empty() && (classify || call.options.has_questions);
    wanted.then(|| evaluation::Model {
        session_id: call.id,
        tenant_id: call.tenant_id,
        env: call.env,
        status: evaluation::Status::Pending,
        tries: 0,
        give_up_at: now.plus_seconds(EVALUATION_SECONDS),
        error: None,
        created_at: now,
    })
}

/// Source: CONTRACT §4.
pub(super) const EVALUATION_SECONDS: i64 = 120;

/// The row of what was recorded; its actor stores the sound. Of a call that was lost there is nothing to hear.
pub(super) fn recording(session: &Session, reason: EndReason, now: Moment) -> Option<recording::Model> {
    let call = &session.call;
    let recorded = call.options.recording.as_ref()?;
    let (started_at, from) = match &session.phase {
        Phase::Conversing(talk) => (talk.started_at, talk.recorded_from?),
        Phase::Scheduled { .. } | Phase::Awaiting | Phase::Queued { .. } | Phase::Dialing { .. } | Phase::Ended(_) => {
            return None;
        }
    };
    let lost = reason == EndReason::NodeLost;
    let retained = recorded
        .retention_days
        .map(|days| now.plus_seconds(i64::from(days) * 86_400));
    let (purge_after, purge_reason) = match (call.purge_after, retained) {
        (Some(at), _) => (Some(at), Some(PurgeReason::OptOut)),
        (None, Some(at)) => (Some(at), Some(PurgeReason::Retention)),
        (None, None) => (None, None),
    };
    Some(recording::Model {
        id: call.recording_id?,
        tenant_id: call.tenant_id,
        env: call.env,
        session_id: call.id,
        status: if lost {
            recording::Status::Failed
        } else {
            recording::Status::Processing
        },
        channels: recorded.channels,
        from_ms: i64::try_from(from.since(started_at).as_millis()).unwrap_or(0),
        tries: 0,
        wake_at: if lost { purge_after } else { Some(now) },
        duration_ms: None,
        bytes: None,
        sha256: None,
        purge_after,
        purge_reason,
        error: lost.then(|| LOST.into()),
        completed_at: None,
        purged_at: None,
        version: 1,
        created_at: now,
    })
}

/// The reason as the API writes it.
pub fn code(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Completed => "completed",
        EndReason::Transferred => "transferred",
        EndReason::SilenceTimeout => "silence_timeout",
        EndReason::OptOut => "opt_out",
        EndReason::ConsentRefused => "consent_refused",
        EndReason::Declined => "declined",
        EndReason::VoicemailLeft => "voicemail_left",
        EndReason::AgentError => "agent_error",
        EndReason::ProviderError => "provider_error",
        EndReason::MaxDuration => "max_duration",
        EndReason::NoAnswer => "no_answer",
        EndReason::Busy => "busy",
        EndReason::Voicemail => "voicemail",
        EndReason::InvalidNumber => "invalid_number",
        EndReason::Unreachable => "unreachable",
        EndReason::MediaTimeout => "media_timeout",
        EndReason::RoomExpired => "room_expired",
        EndReason::CreditsDepleted => "credits_depleted",
        EndReason::CarrierRejected => "carrier_rejected",
        EndReason::Canceled => "canceled",
        EndReason::NodeLost => "node_lost",
    }
}
