//! How a session ends, whoever ends it.
use super::*;

pub(super) fn refuse(
    mut session: Session,
    refusal: Refusal,
    sip: Option<SipAnswer>,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    let answered = sip.as_ref().map(SipAnswer::to_string);
    if let Some(answer) = sip {
        let call = Arc::make_mut(&mut session.call);
        (call.sip_code, call.q850) = (Some(answer.code.into()), answer.q850.map(i32::from));
        session.log.note("carrier_answered", answered.clone(), now);
        session.log.sip_answer = Some(answer);
    }
    let (status, reason, error) = match refusal {
        Refusal::Busy => (Status::Busy, EndReason::Busy, None),
        Refusal::NoAnswer => (Status::NoAnswer, EndReason::NoAnswer, None),
        Refusal::Declined => {
            // Before it rings, nobody can have turned it down by hand.
            session.log.is_declined =
                matches!(session.phase, Phase::Dialing { ringing: true, .. }) && session.call.picked_up_at.is_none();
            (Status::NoAnswer, EndReason::Declined, None)
        }
        Refusal::Blocked(why) => {
            session.log.is_blocked = session.call.picked_up_at.is_none();
            session.log.note("blocked", Some(why.clone()), now);
            (Status::NoAnswer, EndReason::Declined, Some(why))
        }
        Refusal::Unreachable(why) => (Status::Failed, EndReason::Unreachable, Some(why)),
        Refusal::InvalidNumber(why) => (Status::Failed, EndReason::InvalidNumber, Some(why)),
        Refusal::Rejected(why) => (Status::Failed, EndReason::CarrierRejected, Some(why)),
        // Of a call that was picked up, which is never placed again.
        Refusal::Congested | Refusal::NotPlaced => (
            Status::Failed,
            EndReason::CarrierRejected,
            Some("the trunk has no room".into()),
        ),
    };
    finish(session, (status, reason), EndedBy::System, error.or(answered), now)
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
        Phase::Dialing { dialed_at, .. } => session.call.picked_up_at.unwrap_or(*dialed_at),
        Phase::Conversing(talk) => talk.started_at,
        Phase::Scheduled { .. } | Phase::Awaiting | Phase::Queued { .. } | Phase::Ended(_) => now,
    };
    let end = (Status::Failed, EndReason::NodeLost);
    // It was decided for a moment that may lie before its birth; a wish or a take-over that stands in the row has
    // happened. Whoever has its words has carried it until now.
    let at = if session.log.is_empty() {
        let call = &session.call;
        let [opted_out, bridged] = [call.opted_out_at, call.bridged_at].map(|at| at.unwrap_or(since));
        let stored = since.max(call.created_at).max(opted_out).max(bridged);
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
    session: Session,
    end: (Status, EndReason),
    by: EndedBy,
    error: Option<String>,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    finish_as(session, end, by, (error, None), now)
}

/// The same. `machine`: what has picked up and is not talked to.
pub(super) fn finish_as(
    mut session: Session,
    (status, reason): (Status, EndReason),
    by: EndedBy,
    (error, machine): (Option<String>, Option<AnsweredBy>),
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    let was_live = session.is_live();
    let end = ended(&session, (status, reason), by, error, now);
    let recording = recording(&session, reason, now);
    // The id was for a recording that nobody agreed to.
    if recording.is_none() && session.call.recording_id.is_some() {
        Arc::make_mut(&mut session.call).recording_id = None;
    }
    if let Some(quality) = session.log.quality {
        Arc::make_mut(&mut session.call).quality = Some(quality);
        session.log.note("quality", Some(quality.to_string()), now);
    }
    if let Some(latency) = session.log.latency() {
        Arc::make_mut(&mut session.call).latency = Some(latency);
    }
    let placed = reckon(&mut session, &end, machine);
    let log = std::mem::take(&mut session.log).closed(end.started_at, now);
    let call = session.call.clone();
    let transferred_to = closing::handed_over(&session, reason);
    session.phase = Phase::Ended(end.clone());

    let mut effects = Vec::new();
    if end.started_at.is_none() {
        effects.extend(inbound(&session, inbound_call::InboundOutcome::Abandoned));
    }
    let last_event = last_event(&session, &end, &log);
    let attempt = attempt(&call, &end);
    if !log.is_empty() {
        effects.push(Fact::SaveTranscript(log.transcript(call.id)).into());
    }
    effects.push(last_event);
    effects.extend(session.settled(attempt.actual_cost_cents));
    let contact = call
        .contact_id
        .map(|id| TenantScoped::new(call.tenant_id, call.env, id));
    let may_wait = contact.filter(|_| !attempt.reached);
    effects.extend(counted(&call, &attempt, placed));
    effects.extend(closing::outcome(&call, &end, &log, transferred_to));
    effects.extend(contact.map(|contact| Fact::FinishAttempt { contact, attempt }.into()));
    effects.extend(kept(&session, status, log, recording, now));
    if let Some(room) = call.room_id {
        effects.push(
            Work::RoomEnded {
                room: TenantScoped::new(call.tenant_id, call.env, room),
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

/// Nobody counts calls that were never dialed, and rooms that nobody has come to.
fn counted(call: &Row, attempt: &Attempt, placed: Option<Placed>) -> Option<Effect> {
    let is_one = match call.room_id {
        Some(_) => attempt.answered,
        None => attempt.dialed_at.is_some() || call.direction == Direction::Inbound,
    };
    let counted = CallCount {
        began_at: attempt.dialed_at.unwrap_or(call.created_at),
        answered: attempt.answered,
        duration_seconds: attempt.duration_seconds,
        cost: attempt.actual_cost_cents,
        placed,
    };
    is_one.then(|| Fact::CountCall(counted).into())
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
        picked_up_at: session.call.picked_up_at,
        started_at,
        answered_by,
        error,
    }
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
