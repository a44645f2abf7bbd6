//! What the other side wishes, and is done for it at once: to be recorded or not, and not to be called again.
use super::*;

pub(super) fn consent(mut session: Session, granted: bool, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &mut session.phase else {
        return Ok((session, Vec::new()));
    };
    let call = Arc::make_mut(&mut session.call);
    if granted {
        // Nobody had asked, or it was said twice.
        if call.consent == Consent::Pending {
            call.consent = Consent::Granted;
            note_consent(call, true, (talk.started_at, now));
            // A grant may overtake the tick of the longest talk; past that end nothing is recorded.
            talk.recorded_from = Some(now).filter(|at| *at < talk.end_by);
            let begins = talk.recorded_from.is_some();
            session.log.note("consent_granted", None, now);
            if begins {
                let begin = Work::BeginRecording(session.call.clone());
                return Ok((session, vec![begin.into()]));
            }
        }
        return Ok((session, Vec::new()));
    }
    call.consent = Consent::Refused;
    note_consent(call, false, (talk.started_at, now));
    // What was recorded before the objection is not kept either.
    let was_recorded = talk.recorded_from.is_some();
    (talk.recorded_from, call.recording_id) = (None, None);
    let was = talk.take_leave(call, EndReason::ConsentRefused, now);
    session.log.note("consent_refused", None, now);
    let refused = SessionConsentRefused {
        session_id: session.call.id,
        refused_at: now,
    };
    let mut effects = vec![Effect::emit(refused)];
    if was_recorded {
        effects.push(Work::EraseSpool(session.key()).into());
    }
    effects.extend(called_off(&session, &was));
    Ok((session, effects))
}

/// Nobody takes over a call whose other side wants none.
pub(super) fn called_off(session: &Session, was: &CallMode) -> Option<Effect> {
    matches!(was, CallMode::Transferring { .. }).then(|| Effect::Work(Work::TransferEnded { session: session.key() }))
}

impl ActiveCall {
    /// The agent says goodbye; answers the course before. Whoever talks with somebody else by now has said it before that, and
    /// talks on.
    fn take_leave(&mut self, call: &Row, reason: EndReason, now: Moment) -> CallMode {
        if matches!(self.mode, CallMode::Bridged { .. }) {
            return self.mode.clone();
        }
        std::mem::replace(&mut self.mode, leaving(call, reason, now))
    }
}

/// Long enough for a sentence.
pub(super) const FAREWELL_MS: u32 = 15_000;

/// The farewell is said, and after an opt-out cut off when the law wants the line free.
pub fn leaving(call: &Row, reason: EndReason, now: Moment) -> CallMode {
    let legal = call.options.legal.as_ref().filter(|_| reason == EndReason::OptOut);
    let most_ms = legal.and_then(|legal| legal.hang_up_ms).unwrap_or(FAREWELL_MS);
    CallMode::Leaving {
        reason,
        by: now.plus_millis(most_ms.min(FAREWELL_MS).into()),
    }
}

/// Who talks on the phone is called no more; who talks in a room has no number, but can be written to.
pub(super) fn who_opts_out(call: &Row) -> Option<Whom> {
    match call.phone_number() {
        Some(number) => Some(Whom::Number(number.clone())),
        None => call
            .email
            .as_deref()
            .and_then(|email| barred::email(email).ok())
            .map(Whom::Email),
    }
}

/// What happens when somebody does not want to be called again: this list, in this order, in one transaction.
pub(super) fn opt_out(mut session: Session, purge_after: Moment, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &mut session.phase else {
        return Ok((session, Vec::new()));
    };
    let was = talk.take_leave(&session.call, EndReason::OptOut, now);
    let is_recorded = talk.recorded_from.is_some();
    let call = Arc::make_mut(&mut session.call);
    call.opted_out_at = Some(now);
    session.log.note("opt_out", None, now);
    let mut effects = bar(call, now);
    if let (true, Some(recording_id)) = (is_recorded, call.recording_id) {
        let purge_after = kept_until(call, purge_after, now);
        call.purge_after = Some(purge_after);
        let pending = SessionOptOutRecordingPendingPurge {
            session_id: call.id,
            recording_id,
            purge_after,
        };
        effects.push(Effect::emit(pending));
    }
    effects.extend(called_off(&session, &was));
    Ok((session, effects))
}

/// When a talk with a person was over. A machine has no wishes, and who was never talked with has said none.
fn talked_until(session: &Session) -> Option<Moment> {
    match &session.phase {
        Phase::Ended(End {
            at,
            started_at: Some(_),
            answered_by: Some(by),
            ..
        }) if by.is_talked_to() => Some(*at),
        Phase::Scheduled { .. }
        | Phase::Awaiting
        | Phase::Queued { .. }
        | Phase::Dialing { .. }
        | Phase::Conversing(_)
        | Phase::Ended(_) => None,
    }
}

/// The same for what was said before the end and understood after it: how the call ended stands, and was told.
pub(super) fn opt_out_late(mut session: Session, purge_after: Moment, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Some(said_by) = talked_until(&session).filter(|_| session.call.opted_out_at.is_none()) else {
        return Ok((session, Vec::new()));
    };
    let call = Arc::make_mut(&mut session.call);
    call.opted_out_at = Some(said_by);
    let mut effects = bar(call, now);
    if let Some(recording) = recorded(call) {
        let keep_until = Some(kept_until(call, purge_after, now));
        effects.push(Fact::PurgeRecording { recording, keep_until }.into());
    }
    Ok((session, effects))
}

/// Of an objection to being recorded the same; what was recorded is erased.
pub(super) fn objection_late(mut session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let call = &session.call;
    // Who wants no more calls has got that, and the recording is to go anyway.
    if talked_until(&session).is_none() || call.consent == Consent::Refused || call.opted_out_at.is_some() {
        return Ok((session, Vec::new()));
    }
    let call = Arc::make_mut(&mut session.call);
    call.consent = Consent::Refused;
    let refused = SessionConsentRefused {
        session_id: call.id,
        refused_at: now,
    };
    let mut effects = vec![Effect::emit(refused)];
    if let Some(recording) = recorded(call) {
        let keep_until = None;
        effects.push(Fact::PurgeRecording { recording, keep_until }.into());
        effects.push(Work::EraseSound(recording).into());
    }
    Ok((session, effects))
}

fn recorded(call: &Row) -> Option<TenantScoped<RecordingId>> {
    Some(TenantScoped::new(call.tenant_id, call.env, call.recording_id?))
}

/// Whoever objects is not kept for longer than everybody else.
fn kept_until(call: &Row, purge_after: Moment, now: Moment) -> Moment {
    let recorded = call.options.recording.as_ref();
    let retention = recorded.and_then(|recorded| recorded.retention_days);
    retention.map_or(purge_after, |days| {
        purge_after.min(now.plus_seconds(i64::from(days) * 86_400))
    })
}

/// On the do-not-call list, and told of.
fn bar(call: &Row, now: Moment) -> Vec<Effect> {
    let mut effects = Vec::new();
    // A caller who hides the number cannot be barred, but what was recorded goes all the same.
    if let Some(whom) = who_opts_out(call) {
        let session_id = call.id;
        effects.push(Fact::AddToDnc { whom, session_id }.into());
    }
    if let Some(phone_number) = call.phone_number().cloned() {
        let detected = SessionOptOutDetected {
            session_id: call.id,
            phone_number,
            detected_at: now,
        };
        effects.push(Effect::emit(detected));
    }
    effects
}
