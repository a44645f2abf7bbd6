//! What happens while somebody talks.
use super::*;
use bytes::Bytes;

impl ActiveCall {
    /// The other side's wishes are listened to, also while somebody else is called to take over.
    pub(super) fn is_heard(&self) -> bool {
        matches!(self.mode, CallMode::Talking | CallMode::Transferring { .. })
    }

    /// `completed` is for talks with people.
    pub(super) fn status(&self) -> Status {
        if self.answered_by.is_talked_to() {
            Status::Completed
        } else {
            Status::Voicemail
        }
    }

    /// Why the agent is saying goodbye, or has gone: whatever ends the call then, that is its reason.
    pub(super) fn farewell(&self) -> Option<EndReason> {
        match &self.mode {
            CallMode::Leaving { reason, .. } => Some(*reason),
            CallMode::Bridged { .. } => Some(EndReason::Transferred),
            CallMode::Talking | CallMode::LeavingMessage | CallMode::Transferring { .. } => None,
        }
    }

    pub(super) fn deadline(&self, call: &Row) -> Moment {
        let ends_at = self.ends_at(call);
        self.hold_ends_at.map_or(ends_at, |at| at.min(ends_at))
    }

    /// When it ends if nothing happens.
    fn ends_at(&self, call: &Row) -> Moment {
        match &self.mode {
            CallMode::Talking => self.silent_at(call).map_or(self.end_by, |at| at.min(self.end_by)),
            CallMode::LeavingMessage | CallMode::Bridged { .. } => self.end_by,
            CallMode::Transferring { until, .. } => (*until).min(self.end_by),
            CallMode::Leaving { by, .. } => (*by).min(self.end_by),
        }
    }

    /// When nobody will have said anything for too long.
    pub(super) fn silent_at(&self, call: &Row) -> Option<Moment> {
        let seconds = call.options.silence_seconds;
        let heard_until = self.user_speech.map_or(self.quiet_from, |speech| speech.until);
        (seconds > 0 && !self.on_hold).then(|| self.quiet_from.max(heard_until).plus_seconds(seconds.into()))
    }
}

pub(super) fn look_at_the_time(session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &session.phase else {
        return Ok((session, Vec::new()));
    };
    if now < talk.ends_at(&session.call) {
        return look_at_the_hold(session, now);
    }
    let status = talk.status();
    let reason = match &talk.mode {
        CallMode::Leaving { reason, .. } => *reason,
        CallMode::Bridged { .. } => EndReason::Transferred,
        _ if now >= talk.end_by => EndReason::MaxDuration,
        CallMode::Transferring { .. } => {
            let (session, mut effects) = take_back(session, "nobody answered in time", now)?;
            effects.push(Work::TransferEnded { session: session.key() }.into());
            let (session, more) = look_at_the_hold(session, now)?;
            effects.extend(more);
            return Ok((session, effects));
        }
        CallMode::Talking => EndReason::SilenceTimeout,
        CallMode::LeavingMessage => EndReason::MaxDuration,
    };
    finish(session, (status, reason), EndedBy::System, None, now)
}

pub(super) fn hang_up(session: Session, by: EndedBy, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &session.phase else {
        return Ok((session, Vec::new()));
    };
    let reason = match talk.farewell() {
        Some(reason) => reason,
        None if talk.answered_by.is_talked_to() => EndReason::Completed,
        None => EndReason::Voicemail,
    };
    end_talk(session, reason, by, None, now)
}

/// Ends a talk for that reason, whoever it was with.
pub(super) fn end_talk(
    session: Session,
    reason: EndReason,
    by: EndedBy,
    why: Option<&str>,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &session.phase else {
        return Ok((session, Vec::new()));
    };
    let end = (talk.status(), reason);
    finish(session, end, by, why.map(str::to_owned), now)
}

pub(super) fn utter(mut session: Session, mut utterance: Utterance, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &mut session.phase else {
        return Ok((session, Vec::new()));
    };
    // The sound of what is not recorded is kept nowhere.
    utterance.audio = utterance.audio.filter(|_| talk.recorded_from.is_some());
    let ms = i64::try_from(utterance.ms)
        .unwrap_or(i64::MAX / 4)
        .min(MAX_UTTERANCE_MS);
    let (began, ends) = match utterance.ago_ms {
        None => (now, now.plus_millis(ms)),
        Some(ago) => {
            // Whoever was listened to has ended: silence counts again, from now, when it is known what was said.
            talk.quiet_from = now;
            let began = now.plus_millis(-i64::try_from(ago).unwrap_or(i64::MAX).max(ms));
            // What was said meanwhile stands before it.
            let began = began.max(session.log.last_begun(talk.started_at));
            let ends = began.plus_millis(ms).min(now);
            // Unless there is more by now, whose words follow.
            talk.user_speech = talk.user_speech.filter(|speech| speech.told_at > ends);
            (began, ends)
        }
    };
    let quiet_from = if utterance.is_open {
        began.plus_millis(MAX_UTTERANCE_MS)
    } else {
        ends
    };
    talk.quiet_from = talk.quiet_from.max(quiet_from);
    let started_at = talk.started_at;
    // Over a line that is only played nobody measures when the first sound is sent: it is heard as it is said.
    if utterance.role == Speaker::Agent && !session.call.has_line() && session.log.first_sound_ms.is_none() {
        let waited = began.since(started_at).as_millis();
        session.log.first_sound_ms = Some(u32::try_from(waited).unwrap_or(u32::MAX));
    }
    if utterance.is_own && session.log.first_words_ms.is_none() {
        let waited = began.since(started_at).as_millis();
        session.log.first_words_ms = Some(u32::try_from(waited).unwrap_or(u32::MAX));
    }
    let turn = session.log.utter(utterance, (started_at, began, ends));
    let heard = turn.map(|turn| overheard(&session, turn));
    Ok((session, heard.into_iter().collect()))
}

/// Nobody speaks longer without a breath.
pub(super) const MAX_UTTERANCE_MS: i64 = 600_000;

/// How long they take was a guess while they were made; now it is known.
pub(super) fn spoken(
    mut session: Session,
    place: usize,
    (ms, audio, content): (u64, Option<Bytes>, Option<String>),
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &mut session.phase {
        let audio = audio.filter(|_| talk.recorded_from.is_some());
        let ms = i64::try_from(ms).unwrap_or(i64::MAX).min(MAX_UTTERANCE_MS);
        let ends = session.log.spoken(place, ms, audio, (talk.started_at, now));
        talk.quiet_from = ends.unwrap_or(talk.quiet_from);
    }
    match content {
        Some(content) => saying(session, place, content),
        None => Ok((session, Vec::new())),
    }
}

/// The turn keeps its place and its time; who listens is told what it says now.
pub(super) fn saying(mut session: Session, place: usize, content: String) -> Result<(Session, Vec<Effect>)> {
    let turn = session.log.said(place, content);
    Ok(known(session, place, turn))
}

fn known(session: Session, place: usize, turn: Option<Turn>) -> (Session, Vec<Effect>) {
    let session_id = session.call.id;
    let heard = turn.map(|turn| {
        Effect::Hint(Hint::Understood {
            session_id,
            place,
            turn,
        })
    });
    (session, heard.into_iter().collect())
}

pub(super) fn interrupt(
    mut session: Session,
    said: String,
    played_ms: u64,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &mut session.phase {
        talk.quiet_from = now;
        session.log.cut(said, played_ms, seconds(talk.started_at, now));
    }
    Ok((session, Vec::new()))
}

/// The turn keeps its place and its time, whatever was said since.
pub(super) fn understood(mut session: Session, place: usize, words: String) -> Result<(Session, Vec<Effect>)> {
    let turn = session.log.understood(place, words);
    Ok(known(session, place, turn))
}

pub(super) fn user_speaking(mut session: Session, until: Moment, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &mut session.phase {
        let until = talk.user_speech.map_or(until, |speech| speech.until.max(until));
        talk.user_speech = Some(UserSpeech { told_at: now, until });
    }
    Ok((session, Vec::new()))
}

pub(super) fn call_tool(
    mut session: Session,
    (call, own): (ToolCall, bool),
    until: Moment,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &mut session.phase else {
        return Ok((session, Vec::new()));
    };
    talk.quiet_from = talk.quiet_from.max(until);
    let started_at = talk.started_at;
    session.log.note("tool_called", Some(call.name.clone()), now);
    let turn = session.log.called(call, own, (started_at, now));
    let heard = turn.map(|turn| overheard(&session, turn));
    Ok((session, heard.into_iter().collect()))
}

pub(super) fn take_answer(mut session: Session, answer: Return, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &mut session.phase else {
        return Ok((session, Vec::new()));
    };
    // What was waited for is here: silence counts again.
    talk.quiet_from = talk.quiet_from.min(now).max(session.log.spoken_until(talk.started_at));
    let t = seconds(talk.started_at, now);
    let Return {
        call_id,
        output,
        invocation,
        timed_out,
    } = answer;
    let mut effects = Vec::new();
    if let Some(TimedOut {
        function_id,
        name,
        timeout_ms,
    }) = timed_out
    {
        session.log.note("function_timed_out", Some(name.clone()), now);
        let timeout = FunctionTimeout {
            session_id: session.call.id,
            function_id,
            name,
            timeout_ms,
        };
        effects.push(Effect::emit(timeout));
    }
    session.log.invoked(invocation);
    let turn = session.log.returned(call_id, output, t);
    effects.extend(turn.map(|turn| overheard(&session, turn)));
    Ok((session, effects))
}

/// Whoever is called to take over gets this long to pick up.
pub(super) const TRANSFER_SECONDS: i64 = 45;

pub(super) fn transfer(mut session: Session, to: E164, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &mut session.phase {
        talk.mode = CallMode::Transferring {
            to: to.clone(),
            until: now.plus_seconds(TRANSFER_SECONDS),
        };
    }
    session.log.note("transfer_initiated", Some(to.to_string()), now);
    let call = &session.call;
    let to_number = call.callee()?.clone();
    let initiated = SessionTransferInitiated {
        session_id: call.id,
        to_number,
        from_number: call.from_number.clone(),
        transfer_number: to.clone(),
        transferred_at: now,
    };
    let effects = vec![
        Effect::emit(initiated),
        Work::Transfer {
            session: session.key(),
            to,
        }
        .into(),
    ];
    Ok((session, effects))
}

pub(super) fn take_back(mut session: Session, why: &str, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &mut session.phase {
        talk.mode = CallMode::Talking;
        talk.quiet_from = now;
    }
    session.log.note("transfer_failed", Some(why.to_owned()), now);
    Ok((session, Vec::new()))
}

/// The other one has picked up: the agent is gone, and both legs cost from now on.
pub(super) fn bridge(mut session: Session, to: E164, now: Moment) -> Result<(Session, Vec<Effect>)> {
    session.log.note("bridged", Some(to.to_string()), now);
    let call = Arc::make_mut(&mut session.call);
    if let Phase::Conversing(talk) = &mut session.phase {
        // The tick of the longest talk may be late.
        let since = now.min(talk.end_by);
        talk.mode = CallMode::Bridged { to, since };
        talk.end_by = bridged_until(since, talk.end_by);
        talk.user_speech = None;
        call.bridged_at = Some(since);
        talk.hold_ends_at = hold_ends_again(call, talk.started_at, now);
    }
    Ok((session, Vec::new()))
}

/// Nobody is silent who cannot be heard.
pub(super) fn put_on_hold(mut session: Session, is_held: bool, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &mut session.phase
        && talk.on_hold != is_held
    {
        talk.on_hold = is_held;
        talk.quiet_from = talk.quiet_from.max(now);
        let kind = if is_held { "held" } else { "resumed" };
        session.log.note(kind, None, now);
    }
    Ok((session, Vec::new()))
}

/// The last one counts: an agent may change its mind during the talk.
pub(super) fn dispose(
    mut session: Session,
    code: String,
    words: String,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    session.log.note("disposition_set", Some(code.clone()), now);
    let call = Arc::make_mut(&mut session.call);
    call.disposition_code = Some(code);
    call.disposition_note = Some(words);
    call.disposition_by = Some(Evaluator::Agent);
    Ok((session, Vec::new()))
}

pub(super) fn note_answer(mut session: Session, answered: Answered, now: Moment) -> Result<(Session, Vec<Effect>)> {
    session.log.note("question_answered", Some(answered.key.clone()), now);
    session.log.answer(answered);
    Ok((session, Vec::new()))
}

pub(super) fn note(
    mut session: Session,
    kind: &'static str,
    detail: String,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    session.log.note(kind, Some(detail), now);
    Ok((session, Vec::new()))
}

/// For the record, at the end. The carrier's last word counts.
pub(super) fn note_attestation(mut session: Session, attestation: Attestation) -> Result<(Session, Vec<Effect>)> {
    session.log.attestation = Some(attestation);
    Ok((session, Vec::new()))
}

pub(super) fn measure(mut session: Session, marks: &TurnMarks, now: Moment) -> Result<(Session, Vec<Effect>)> {
    session.log.measured(marks, now);
    Ok((session, Vec::new()))
}

pub(super) fn first_sound(
    mut session: Session,
    (ms, greeted): (u32, bool),
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    session.log.first_sound(ms, greeted, now);
    // In the row at once: a crash must not make somebody abandoned who was talked with.
    if session.call.first_sound_ms.is_none() {
        Arc::make_mut(&mut session.call).first_sound_ms = Some(i32::try_from(ms).unwrap_or(i32::MAX));
    }
    Ok((session, Vec::new()))
}

/// A sound of ours that came since was on its way then.
pub(super) fn kept_waiting(mut session: Session) -> Result<(Session, Vec<Effect>)> {
    session.log.was_kept_waiting |= session.call.first_sound_ms.is_none();
    Ok((session, Vec::new()))
}

pub(super) fn left_alone(mut session: Session, played: bool, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if session.log.left_alone.is_none() {
        session.log.left_alone = Some(played);
        if played {
            session.log.note("safe_harbour", None, now);
        }
    }
    Ok((session, Vec::new()))
}

pub(super) fn doubt(mut session: Session) -> Result<(Session, Vec<Effect>)> {
    session.log.has_doubt = true;
    Ok((session, Vec::new()))
}

pub(super) fn heard_so_well(mut session: Session, quality: Quality) -> Result<(Session, Vec<Effect>)> {
    session.log.quality = Some(quality);
    Ok((session, Vec::new()))
}

pub(super) fn overheard(session: &Session, turn: Turn) -> Effect {
    Hint::Overheard {
        session_id: session.call.id,
        place: session.log.turns.len().saturating_sub(1),
        turn,
    }
    .into()
}

pub(super) fn seconds(started_at: Moment, at: Moment) -> f64 {
    at.since(started_at).as_secs_f64()
}
