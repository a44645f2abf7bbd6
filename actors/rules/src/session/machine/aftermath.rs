//! What is told and kept of a session that has ended.
use super::*;

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
        actual_cost_cents: cost(call.price_cents_per_minute, end.billed_seconds(call)),
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
        actual_cost_cents: cost(call.price_cents_per_minute, end.billed_seconds(call)),
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

/// The row of what was recorded; its actor stores the sound. Of a call that was lost there is nothing to hear, unless it had a
/// line: what that carried is spooled, and its actor looks for it.
pub(super) fn recording(session: &Session, reason: EndReason, now: Moment) -> Option<recording::Model> {
    let call = &session.call;
    let recorded = call.options.recording.as_ref()?;
    let (started_at, from) = match &session.phase {
        Phase::Conversing(talk) => (talk.started_at, talk.recorded_from?),
        Phase::Scheduled { .. } | Phase::Awaiting | Phase::Queued { .. } | Phase::Dialing { .. } | Phase::Ended(_) => {
            return None;
        }
    };
    let lost = reason == EndReason::NodeLost && call.room_id.is_none();
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
        synthetic: None,
        purge_after,
        purge_reason,
        error: lost.then(|| LOST.into()),
        completed_at: None,
        purged_at: None,
        version: 1,
        created_at: now,
    })
}

/// What the agent has noted, what is to be found out, and the sound.
pub(super) fn kept(
    session: &Session,
    status: Status,
    log: Log,
    recording: Option<recording::Model>,
    now: Moment,
) -> Vec<Effect> {
    let mut effects = Vec::new();
    if !log.answers.is_empty() {
        effects.push(
            Fact::SaveAnswers {
                call: session.call.clone(),
                answers: log.answers.clone(),
                source: answer::Source::Agent,
            }
            .into(),
        );
    }
    if let Some(job) = evaluation(session, status, &log, now) {
        effects.push(Fact::SaveEvaluation(job.clone()).into());
        effects.push(Work::Evaluate(job).into());
    }
    if let Some(row) = recording {
        let recording = row.key();
        let sounds = log.sounds;
        effects.push(Fact::SaveRecording(row).into());
        effects.push(Work::KeepSounds { recording, sounds }.into());
    }
    effects
}
