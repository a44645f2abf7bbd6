//! What the record of attempts keeps of a call that has ended.
use super::*;
use crate::law::record::{Closing, DispositionBody, OutcomeBody};
use entities::ids::AttemptId;

/// Calls that we place by telephone: a room is joined, and who calls us is not called.
fn is_attempt(call: &Row) -> bool {
    call.direction == Direction::Outbound && call.room_id.is_none()
}

/// To whom a call was handed over that is about to end, for that reason.
pub(super) fn handed_over(session: &Session, reason: EndReason) -> Option<E164> {
    match &session.phase {
        Phase::Conversing(talk) => match &talk.mode {
            CallMode::Bridged { to, .. } => Some(to.clone()),
            // Nothing of the call is ours any more.
            CallMode::Transferring { to, .. } if reason == EndReason::Transferred => Some(to.clone()),
            CallMode::Transferring { .. } | CallMode::Talking | CallMode::LeavingMessage | CallMode::Leaving { .. } => {
                None
            }
        },
        Phase::Scheduled { .. } | Phase::Awaiting | Phase::Queued { .. } | Phase::Dialing { .. } | Phase::Ended(_) => {
            None
        }
    }
}

/// Of a call that was never dialled there is nothing to say; one that a trunk has sent back was, though it ends in the queue.
pub(super) fn outcome(call: &Row, end: &End, log: &Log, transferred_to: Option<E164>) -> Option<Effect> {
    if !is_attempt(call) {
        return None;
    }
    let said = call
        .options
        .legal
        .as_ref()
        .map(|legal| legal.said.clone())
        .unwrap_or_default();
    let answer = log.sip_answer.as_ref();
    let answer = answer
        .map(|answer| answer.kept(call.to_number.as_ref()))
        .unwrap_or_default();
    let rang_until = end.picked_up_at.unwrap_or(end.at);
    let is_recorded = call.recording_id.is_some();
    let body = OutcomeBody {
        status: word(end.status),
        reason: Some(code(end.reason).to_owned()),
        ended_by: Some(end.by),
        ended_at: Some(end.at),
        dialed_at: end.dialed_at,
        rang_ms: end.dialed_at.map(|at| millis(rang_until.since(at))),
        picked_up_at: end.picked_up_at,
        started_at: end.started_at,
        answered_by: end.answered_by,
        first_sound_ms: call.first_sound_ms,
        first_words_ms: log.first_words_ms,
        abandoned: call.abandoned,
        safe_harbour_played: log.left_alone == Some(true),
        duration_seconds: end.duration_seconds(),
        disclosures: said.disclosures,
        more_disclosures: said.more,
        recording: call.options.recording.is_some().then_some(call.consent),
        recording_asked: said.consent,
        recorded: is_recorded,
        opted_out_at: call.opted_out_at,
        transferred_to,
        bridged_at: call.bridged_at,
        disposition: call.disposition_code.clone(),
        sip_code: call.sip_code,
        q850: call.q850,
        sip_phrase: answer.phrase,
        sip_reasons: answer.reasons,
        jcard_url: answer.jcard_url,
        blocked: log.is_blocked,
        attestation: log.attestation,
        ..OutcomeBody::default()
    };
    let closing = Closing::Outcome {
        attempt_id: AttemptId(call.id.0),
        campaign_id: call.campaign_id,
        unless_undialled: call.to_number.clone().filter(|_| end.dialed_at.is_none()),
        body: Box::new(body),
    };
    Some(Fact::CloseAttempt(closing).into())
}

/// It becomes known who has picked up only when it is over.
pub(super) fn answered_by(effects: &mut [Effect], who: AnsweredBy) {
    for effect in effects {
        if let Effect::Fact(Fact::CloseAttempt(Closing::Outcome { body, .. })) = effect {
            body.answered_by = Some(who);
        }
    }
}

/// It is classified, or otherwise than before.
pub(super) fn disposition(session: &Session, code: &str, by: Evaluator, now: Moment) -> Option<Effect> {
    let was_dialled = matches!(&session.phase, Phase::Ended(end) if end.dialed_at.is_some());
    (was_dialled && is_attempt(&session.call)).then(|| {
        let closing = Closing::Disposition {
            attempt_id: AttemptId(session.call.id.0),
            campaign_id: session.call.campaign_id,
            body: DispositionBody {
                code: code.to_owned(),
                by,
                decided_at: now,
            },
        };
        Fact::CloseAttempt(closing).into()
    })
}

/// The status as the API writes it.
fn word(status: Status) -> String {
    match status {
        Status::Queued => "queued",
        Status::InProgress => "in_progress",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::NoAnswer => "no_answer",
        Status::Voicemail => "voicemail",
        Status::Busy => "busy",
    }
    .to_owned()
}

fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
