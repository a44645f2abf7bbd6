//! What happens at each step of a room: lists, in this order.
use super::{CONNECT_SECONDS, GRACE_SECONDS, Phase, Room, RoomOutcome};
use crate::{
    effect::{Effect, Work},
    event::{RoomCompleted, RoomExpired, RoomFailed, RoomJoined, RoomLandingViewed},
    session::command::{Abandoned, Command as SessionCommand},
};
use entities::{
    Result,
    ids::ParticipantId,
    room::ErrorCode,
    session::{self, EndReason, EndedBy},
    values::Moment,
};

pub(super) fn view(mut room: Room, now: Moment) -> Result<(Room, Vec<Effect>)> {
    room.viewed_at = Some(now);
    let viewed = RoomLandingViewed {
        room_id: room.made.id,
        viewed_at: now,
    };
    Ok((room, vec![Effect::emit(viewed)]))
}

pub(super) fn connecting(mut room: Room, participant: ParticipantId, now: Moment) -> Result<(Room, Vec<Effect>)> {
    let by = now.plus_seconds(CONNECT_SECONDS);
    room.phase = Phase::Connecting { participant, by };
    Ok((room, Vec::new()))
}

pub(super) fn withdraw(mut room: Room) -> Result<(Room, Vec<Effect>)> {
    room.phase = Phase::Open;
    Ok((room, Vec::new()))
}

pub(super) fn join(mut room: Room, participant: ParticipantId, now: Moment) -> Result<(Room, Vec<Effect>)> {
    room.phase = Phase::Joined {
        participant,
        at: now,
        lost_at: None,
    };
    let joined = RoomJoined {
        room_id: room.made.id,
        participant_id: participant,
        joined_at: now,
    };
    Ok((room, vec![Effect::emit(joined)]))
}

pub(super) fn lost(mut room: Room, since: Option<Moment>) -> Result<(Room, Vec<Effect>)> {
    if let Phase::Joined { lost_at, .. } = &mut room.phase {
        *lost_at = since;
    }
    // Whoever cannot be heard is not silent.
    let user_speaking = since.map(|at| SessionCommand::UserSpeaking {
        until: at.plus_seconds(GRACE_SECONDS),
    });
    let tell = user_speaking.map(|command| Work::TellSession(room.made.session(), command).into());
    Ok((room, tell.into_iter().collect()))
}

/// Nobody joins it any more.
pub(super) fn expire(room: Room, by: EndedBy, now: Moment) -> Result<(Room, Vec<Effect>)> {
    let tell = parting(&RoomOutcome::Expired, false, by);
    end(room, RoomOutcome::Expired, now, tell)
}

pub(super) fn fail(room: Room, code: ErrorCode, message: String, now: Moment) -> Result<(Room, Vec<Effect>)> {
    let outcome = RoomOutcome::Failed { code, message };
    let tell = parting(&outcome, room.joined().is_some(), EndedBy::System);
    end(room, outcome, now, tell)
}

/// What a room that ends tells its session.
pub(super) fn parting(outcome: &RoomOutcome, is_joined: bool, by: EndedBy) -> Option<SessionCommand> {
    let (code, why) = match outcome {
        // Only its session completes a room.
        RoomOutcome::Completed => return None,
        RoomOutcome::Expired => {
            return Some(SessionCommand::Abandon(Abandoned {
                status: session::Status::NoAnswer,
                reason: EndReason::RoomExpired,
                by,
                why: None,
            }));
        }
        RoomOutcome::Failed { code, message } => (code, message.clone()),
    };
    let reason = match code {
        ErrorCode::AgentUnreachable => EndReason::ProviderError,
        ErrorCode::IceFailed => EndReason::Unreachable,
        ErrorCode::MediaTimeout => EndReason::MediaTimeout,
        ErrorCode::InsufficientCredits => EndReason::CreditsDepleted,
        ErrorCode::ConcurrencyFull | ErrorCode::InternalError => EndReason::Canceled,
    };
    Some(if is_joined {
        SessionCommand::Break { reason, why }
    } else {
        SessionCommand::Abandon(Abandoned {
            status: session::Status::Failed,
            reason,
            by,
            why: Some(why),
        })
    })
}

/// What the end of its session makes of it.
pub(super) fn follow(room: Room, ended: &session::Model, now: Moment) -> Result<(Room, Vec<Effect>)> {
    let at = ended.ended_at.unwrap_or(now);
    let outcome = match (ended.status, ended.end_reason) {
        (session::Status::Completed, _) => RoomOutcome::Completed,
        (_, Some(EndReason::RoomExpired | EndReason::NoAnswer)) => RoomOutcome::Expired,
        (_, reason) => RoomOutcome::Failed {
            code: match reason {
                Some(EndReason::ProviderError | EndReason::AgentError) => ErrorCode::AgentUnreachable,
                Some(EndReason::Unreachable) => ErrorCode::IceFailed,
                Some(EndReason::MediaTimeout) => ErrorCode::MediaTimeout,
                Some(EndReason::CreditsDepleted) => ErrorCode::InsufficientCredits,
                _ => ErrorCode::InternalError,
            },
            message: ended
                .error_message
                .clone()
                .unwrap_or_else(|| "its session has failed".into()),
        },
    };
    end(room, outcome, at, None)
}

/// What happens when a room ends, whoever ends it.
fn end(mut room: Room, outcome: RoomOutcome, at: Moment, tell: Option<SessionCommand>) -> Result<(Room, Vec<Effect>)> {
    let room_id = room.made.id;
    let joined = room.joined();
    let event = match &outcome {
        RoomOutcome::Completed => Effect::emit(RoomCompleted {
            room_id,
            completed_at: at,
            duration_seconds: duration_seconds(joined, at),
        }),
        RoomOutcome::Expired => Effect::emit(RoomExpired {
            room_id,
            expired_at: at,
        }),
        RoomOutcome::Failed { code, message } => Effect::emit(RoomFailed {
            room_id,
            error_code: *code,
            error_message: message.clone(),
        }),
    };
    room.phase = Phase::Ended { at, joined, outcome };
    let mut effects = vec![event];
    effects.extend(tell.map(|command| Work::TellSession(room.made.session(), command).into()));
    Ok((room, effects))
}

/// Whole seconds from joining to the end.
pub fn duration_seconds(joined: Option<(ParticipantId, Moment)>, ended_at: Moment) -> i32 {
    joined.map_or(0, |(_, joined_at)| {
        i32::try_from(ended_at.since(joined_at).as_secs()).unwrap_or(i32::MAX)
    })
}
