//! From the queue to the answer.
use super::*;
use crate::dispatch::route::Route;

/// A call that finds a free slot gets this long to take it, even if it does not want to wait.
const AT_ONCE_SECONDS: i64 = 5;

/// From its birth, or from the time for which it was made; a trunk that sends it back gives it no more time.
pub(super) fn queue(call: &Row) -> Phase {
    let begins = call.scheduled_at.map_or(call.created_at, |at| at.max(call.created_at));
    Phase::Queued {
        until: begins.plus_seconds(i64::from(call.queue_ttl_seconds).max(AT_ONCE_SECONDS)),
    }
}

pub(super) fn dialing(call: &Row, at: Moment) -> Phase {
    Phase::Dialing {
        dialed_at: at,
        give_up_at: at.plus_seconds(call.ring_timeout_seconds.into()),
        ringing: false,
    }
}

pub(super) fn enqueue(mut session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    session.phase = queue(&session.call);
    // The service may have been down at its time: it gets a moment all the same.
    if let Phase::Queued { until } = &mut session.phase {
        *until = (*until).max(now.plus_seconds(AT_ONCE_SECONDS));
    }
    let effects = vec![Hint::SessionQueued(session.call.tenant_id).into()];
    Ok((session, effects))
}

/// The dispatcher places the call when this is committed.
pub(super) fn dispatch(mut session: Session, at: Moment, hold: Cents) -> Result<(Session, Vec<Effect>)> {
    session.phase = dialing(&session.call, at);
    // A call that the trunk sent back has kept what was set aside for it.
    if session.call.hold_cents.0 > 0 {
        return Ok((session, Vec::new()));
    }
    Arc::make_mut(&mut session.call).hold_cents = hold;
    let effects = session.held().into_iter().collect();
    Ok((session, effects))
}

pub(super) fn postpone(mut session: Session, until: Moment) -> Result<(Session, Vec<Effect>)> {
    Arc::make_mut(&mut session.call).scheduled_at = Some(until);
    session.phase = Phase::Scheduled { at: until };
    Ok((session, Vec::new()))
}

/// The trunk never took the call: it waits for its turn again, and the attempt is still the same.
pub(super) fn send_back(mut session: Session, sip: Option<SipAnswer>, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Some(answer) = sip {
        session.log.note("carrier_answered", Some(answer.to_string()), now);
    }
    // The next dial is signed anew.
    session.log.attestation = None;
    let congested = Hint::TrunkCongested {
        tenant_id: session.call.tenant_id,
        route: Route::of(session.call.env, session.call.trunk_id),
    }
    .into();
    // Who paces the trunk hears that it has no room before it hears of a free slot.
    let (session, mut effects) = let_go(session);
    effects.insert(1, congested);
    Ok((session, effects))
}

/// Nothing of it was sent, for want of something of our own: the trunk keeps its rate, and the call waits for its turn again.
pub(super) fn not_placed(session: Session) -> Result<(Session, Vec<Effect>)> {
    let short = Hint::NoRoom(session.call.tenant_id).into();
    // Who paces hears of it before it hears of a free slot.
    let (session, mut effects) = let_go(session);
    effects.insert(1, short);
    Ok((session, effects))
}

/// The call was never placed, which is our own fault: it gets a moment to be, however long it has waited.
pub(super) fn requeue(session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let (mut session, effects) = let_go(session);
    if let Phase::Queued { until } = &mut session.phase {
        *until = (*until).max(now.plus_seconds(AT_ONCE_SECONDS));
    }
    Ok((session, effects))
}

/// It waits for its turn again, and the attempt is still the same.
fn let_go(mut session: Session) -> (Session, Vec<Effect>) {
    session.phase = queue(&session.call);
    let (tenant_id, session_id) = (session.call.tenant_id, session.call.id);
    let effects = vec![
        Work::HangUp { session: session.key() }.into(),
        Hint::SlotFreed { tenant_id, session_id }.into(),
        Hint::SessionQueued(tenant_id).into(),
    ];
    (session, effects)
}

pub(super) fn why_rejected(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::NotVerified => "the number was no longer verified when a slot became free",
        RejectReason::OutOfReach => "the operator does not allow calls to the number's country, or to its prefix",
        RejectReason::OnDnc => "the number was put on the do-not-call list while the call waited",
        RejectReason::AgainstTheLaw => {
            "the law did not allow the call any more when a slot became free: see GET /v1/compliance/check"
        }
        RejectReason::CapReached => "the number was called too often while the call waited",
        RejectReason::CampaignOver => "its campaign was over before the trunk had room for it",
        RejectReason::NoTrunk => "the number that it calls from has no trunk any more",
        RejectReason::MayHaveRun => {
            "the service came back from a backup, and the call may have been placed since that was made"
        }
        RejectReason::OutsideHours => "the calling hours were over before a slot became free",
    }
}

pub(super) fn ring(mut session: Session) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Dialing { ringing, .. } = &mut session.phase {
        *ringing = true;
    }
    Ok((session, Vec::new()))
}

/// Whoever carries a call says within 10 s of its pick-up who it was: the line of one that does not is broken.
const VERDICT_SECONDS: i64 = 30;

/// When it must be known who has picked up.
pub fn known_by(picked_up_at: Moment) -> Moment {
    picked_up_at.plus_seconds(VERDICT_SECONDS)
}

/// From now on it is a call that somebody pays for, and that is never placed again.
pub(super) fn pick_up(mut session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Dialing {
        give_up_at, ringing, ..
    } = &mut session.phase
    {
        (*give_up_at, *ringing) = (known_by(now), true);
        Arc::make_mut(&mut session.call).picked_up_at = Some(now);
    }
    Ok((session, Vec::new()))
}

/// Nobody has picked up in time; or somebody has, and it never became known who.
pub(super) fn give_up(session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let (end, why) = match session.call.picked_up_at {
        None => ((Status::NoAnswer, EndReason::NoAnswer), None),
        Some(_) => (
            (Status::Failed, EndReason::MediaTimeout),
            Some("it was picked up, and the line said nothing of who it was".to_owned()),
        ),
    };
    finish(session, end, EndedBy::System, why, now)
}

/// Hung up before it was known who is there: a caller gives up, and who was called was not talked with.
pub(super) fn hang_up_early(session: Session, by: EndedBy, now: Moment) -> Result<(Session, Vec<Effect>)> {
    match session.call.picked_up_at {
        None => canceled(session, by, None, now),
        Some(_) => finish(session, (Status::NoAnswer, EndReason::NoAnswer), by, None, now),
    }
}

/// What a machine is told, or whether it is talked to, is up to the call's settings.
pub(super) fn answer(
    mut session: Session,
    answered_by: AnsweredBy,
    recording_id: RecordingId,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    let Phase::Dialing { dialed_at, .. } = session.phase else {
        return Ok((session, Vec::new()));
    };
    let started_at = session.call.picked_up_at.unwrap_or(now);
    if session.call.room_id.is_none() && session.call.picked_up_at.is_none() {
        Arc::make_mut(&mut session.call).picked_up_at = Some(now);
    }
    let mode = match (answered_by, session.call.options.voicemail.action) {
        (AnsweredBy::Human | AnsweredBy::Ivr | AnsweredBy::Unknown, _)
        | (AnsweredBy::Voicemail, VoicemailAction::Continue) => CallMode::Talking,
        (AnsweredBy::Voicemail, VoicemailAction::LeaveMessage) => CallMode::LeavingMessage,
        (AnsweredBy::Voicemail, VoicemailAction::Hangup) | (AnsweredBy::Fax, _) => {
            return leave_machine(session, answered_by, now);
        }
    };
    let end_by = started_at.plus_seconds(session.call.max_duration_seconds.into());
    let mut talk = ActiveCall {
        dialed_at,
        started_at,
        end_by,
        answered_by,
        mode,
        quiet_from: now,
        user_speech: None,
        on_hold: false,
        recorded_from: None,
        hold_ends_at: hold_ends_at(&session.call, started_at),
    };
    // Nothing is recorded of machines, and nothing before a yes where one is asked for.
    let recorded = session.call.recorded().filter(|_| answered_by.is_talked_to());
    let call = Arc::make_mut(&mut session.call);
    if let Some(recorded) = recorded {
        call.recording_id = Some(recording_id);
        match recorded.consent {
            ConsentMode::Verbal => call.consent = Consent::Pending,
            ConsentMode::None | ConsentMode::Notice => talk.recorded_from = Some(now).filter(|at| *at < end_by),
        }
    }
    let is_recorded = talk.recorded_from.is_some();
    session.phase = Phase::Conversing(talk);
    let started = SessionStarted {
        session_id: session.call.id,
        started_at,
    };
    let mut effects = vec![Effect::emit(started)];
    if is_recorded {
        effects.push(Work::BeginRecording(session.call.clone()).into());
    }
    effects.extend(inbound(&session, inbound_call::InboundOutcome::Answered));
    Ok((session, effects))
}

/// Nothing is said to it.
fn leave_machine(session: Session, machine: AnsweredBy, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let end = (Status::Voicemail, EndReason::Voicemail);
    let (mut session, mut effects) = finish_as(session, end, EndedBy::System, (None, Some(machine)), now)?;
    if let Phase::Ended(end) = &mut session.phase {
        end.answered_by = Some(machine);
    }
    closing::answered_by(&mut effects, machine);
    Ok((session, effects))
}

/// What became of a call to one of the tenant's numbers: its answer rate is counted from it.
pub(super) fn inbound(session: &Session, outcome: inbound_call::InboundOutcome) -> Vec<Effect> {
    let call = session.call.clone();
    let Some(number_id) = call.options.number_id else {
        return Vec::new();
    };
    let number = TenantScoped::new(call.tenant_id, call.env, number_id);
    let counted = Fact::CountInbound {
        call,
        number_id,
        outcome,
    };
    vec![counted.into(), Hint::InboundCounted(number).into()]
}
