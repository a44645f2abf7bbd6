//! A room: a link by which one person talks with an agent in a browser.
//!
//! | status (specification) | phase here |
//! |---|---|
//! | `created`, `viewed` | Open, Connecting |
//! | `joined` | Joined |
//! | `completed`, `expired`, `failed` | Ended |
//!
//! Open -> Connecting -> Joined -> Ended, and Ended from each of them. Ended is final. Source: specification, "Room (WebRTC)";
//! CONTRACT §4.
//!
//! Its session tells what is said; whichever of the two ends first, the other follows: the room leads until somebody has
//! joined, and when the media is lost; else the session does.
use crate::{
    effect::{Effect, Work},
    event::{RoomCompleted, RoomCreated, RoomExpired, RoomFailed, RoomJoined, RoomLandingViewed},
    machine::Machine,
    session::command::{Abandoned, Command as SessionCommand},
};
use entities::{
    Error, Result,
    ids::{Owned, ParticipantId, RoomId},
    room::{ErrorCode, Model as Row, Status},
    session::{self, EndReason, EndedBy},
    values::Moment,
};

/// A browser that says that it will join is connected within this time.
pub const CONNECT_SECONDS: i64 = 15;
/// So long nothing may come from the browser: a page that is reloaded in the meantime goes on.
pub const GRACE_SECONDS: i64 = 30;

#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// The row as it was created. Its phase's columns are not looked at.
    pub made: Row,
    pub viewed_at: Option<Moment>,
    pub phase: Phase,
    pub deleted_at: Option<Moment>,
    pub version: i32,
}

/// Data lives only in the state where it exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Nobody has joined.
    Open,
    /// Somebody is joining: the browser is being connected.
    Connecting { participant: ParticipantId, by: Moment },
    Joined {
        participant: ParticipantId,
        at: Moment,
        /// Nothing has come from the browser since then.
        lost_at: Option<Moment>,
    },
    Ended {
        at: Moment,
        /// Who had joined, and when.
        joined: Option<(ParticipantId, Moment)>,
        outcome: Outcome,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Completed,
    Expired,
    Failed { code: ErrorCode, message: String },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Look at the time.
    Tick,
    /// The page was opened.
    View,
    /// Somebody wants to join: as that participant, or as the one that the page was before it was reloaded.
    Join {
        participant: ParticipantId,
        again_as: Option<ParticipantId>,
    },
    /// Who is joining cannot be let in at the moment, and may try again.
    Withdraw(ParticipantId),
    /// The browser is connected, and the agent.
    Connect(ParticipantId),
    /// Nothing comes from the browser any more.
    Lose(ParticipantId),
    /// Something comes again.
    Regain(ParticipantId),
    /// It cannot be established.
    Fail { code: ErrorCode, message: String },
    /// The API wants it closed before anybody has joined.
    Expire,
    /// Its session has ended, so.
    Follow(Box<session::Model>),
    /// The API wants it gone.
    Delete,
}

impl Room {
    pub fn created(row: Row, room_url: String) -> (Self, Vec<Effect>) {
        let created = RoomCreated {
            room_id: row.id,
            room_url,
            expires_at: row.expires_at,
        };
        let room = Room {
            made: row,
            viewed_at: None,
            phase: Phase::Open,
            deleted_at: None,
            version: 1,
        };
        (room, vec![Effect::emit(created)])
    }

    pub fn key(&self) -> Owned<RoomId> {
        self.made.key()
    }

    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Open | Phase::Connecting { .. } if self.viewed_at.is_some() => Status::Viewed,
            Phase::Open | Phase::Connecting { .. } => Status::Created,
            Phase::Joined { .. } => Status::Joined,
            Phase::Ended { outcome, .. } => match outcome {
                Outcome::Completed => Status::Completed,
                Outcome::Expired => Status::Expired,
                Outcome::Failed { .. } => Status::Failed,
            },
        }
    }

    /// Who is in it, or about to be.
    pub fn participant(&self) -> Option<ParticipantId> {
        match &self.phase {
            Phase::Open => None,
            Phase::Connecting { participant, .. } | Phase::Joined { participant, .. } => Some(*participant),
            Phase::Ended { joined, .. } => joined.map(|(participant, _)| participant),
        }
    }

    fn joined(&self) -> Option<(ParticipantId, Moment)> {
        match &self.phase {
            Phase::Open | Phase::Connecting { .. } => None,
            Phase::Joined { participant, at, .. } => Some((*participant, *at)),
            Phase::Ended { joined, .. } => *joined,
        }
    }

    /// What its end makes of its session, if the session has not ended by itself.
    pub fn parting(&self) -> Option<SessionCommand> {
        let Phase::Ended { joined, outcome, .. } = &self.phase else {
            return None;
        };
        parting(outcome, joined.is_some(), EndedBy::System)
    }
}

/// The whole life of a room. Pure: no clock, database, network or randomness.
pub fn transition(room: Room, command: Command, now: Moment) -> Result<(Room, Vec<Effect>)> {
    use Command::*;
    use Phase::*;
    match (&room.phase, command) {
        (Open, Tick) if now >= room.made.expires_at => expire(room, EndedBy::System, now),
        (Connecting { by, .. }, Tick) if now >= *by => {
            let message = format!("the browser was not connected within {CONNECT_SECONDS} seconds");
            fail(room, ErrorCode::IceFailed, message, now)
        }
        (Joined { lost_at: Some(at), .. }, Tick) if now >= at.plus_seconds(GRACE_SECONDS) => {
            let message = format!("nothing came from the browser for {GRACE_SECONDS} seconds");
            fail(room, ErrorCode::MediaTimeout, message, now)
        }

        (Open | Connecting { .. }, View) if room.viewed_at.is_none() => view(room, now),

        (Open, Join { .. }) if now >= room.made.expires_at => expire(room, EndedBy::System, now),
        (Open, Join { participant, .. }) => connecting(room, participant, now),
        (Connecting { participant, .. } | Joined { participant, .. }, Join { again_as, .. }) => {
            if again_as == Some(*participant) {
                Ok((room, Vec::new()))
            } else {
                Err(refused("in use", "be joined", "somebody else is in it"))
            }
        }

        (Connecting { participant, .. }, Withdraw(who)) if who == *participant => withdraw(room),

        (Connecting { participant, .. }, Connect(who)) if who == *participant => join(room, who, now),
        (Joined { participant, .. }, Connect(who) | Regain(who)) if who == *participant => lost(room, None),
        (
            Joined {
                participant,
                lost_at: None,
                ..
            },
            Lose(who),
        ) if who == *participant => lost(room, Some(now)),

        (Open | Connecting { .. }, Fail { code, message }) => fail(room, code, message, now),
        (Open | Connecting { .. }, Expire) => expire(room, EndedBy::Api, now),
        (Open | Connecting { .. } | Joined { .. }, Follow(session)) => follow(room, &session, now),
        (Ended { .. }, Delete) => {
            let mut room = room;
            room.deleted_at.get_or_insert(now);
            Ok((room, Vec::new()))
        }

        // Ticks come early, pages repeat themselves, and a connection that was replaced has nothing to say.
        (_, Tick)
        | (Open | Connecting { .. } | Joined { .. }, View)
        | (Open | Connecting { .. } | Joined { .. }, Connect(_) | Withdraw(_))
        | (Open | Connecting { .. } | Joined { .. }, Lose(_) | Regain(_))
        // Who has joined is the session's to lose.
        | (Joined { .. }, Fail { .. })
        | (Ended { .. }, View | Withdraw(_) | Connect(_) | Lose(_) | Regain(_) | Fail { .. } | Expire | Follow(_)) => {
            Ok((room, Vec::new()))
        }

        // As if it had never been there.
        (Ended { .. }, Join { .. }) => Err(Error::NotFound("room")),
        (Joined { .. }, Expire) => Err(refused("joined", "be expired", "end it instead")),
        (Open | Connecting { .. } | Joined { .. }, Delete) => {
            Err(refused("open", "be deleted", "end it first"))
        }
    }
}

/// The next moment at which `Tick` can matter.
pub fn next_deadline(room: &Room) -> Option<Moment> {
    match &room.phase {
        Phase::Open => Some(room.made.expires_at),
        Phase::Connecting { by, .. } => Some(*by),
        Phase::Joined { lost_at, .. } => lost_at.map(|at| at.plus_seconds(GRACE_SECONDS)),
        Phase::Ended { .. } => None,
    }
}

fn view(mut room: Room, now: Moment) -> Result<(Room, Vec<Effect>)> {
    room.viewed_at = Some(now);
    let viewed = RoomLandingViewed {
        room_id: room.made.id,
        viewed_at: now,
    };
    Ok((room, vec![Effect::emit(viewed)]))
}

fn connecting(mut room: Room, participant: ParticipantId, now: Moment) -> Result<(Room, Vec<Effect>)> {
    let by = now.plus_seconds(CONNECT_SECONDS);
    room.phase = Phase::Connecting { participant, by };
    Ok((room, Vec::new()))
}

fn withdraw(mut room: Room) -> Result<(Room, Vec<Effect>)> {
    room.phase = Phase::Open;
    Ok((room, Vec::new()))
}

fn join(mut room: Room, participant: ParticipantId, now: Moment) -> Result<(Room, Vec<Effect>)> {
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

fn lost(mut room: Room, since: Option<Moment>) -> Result<(Room, Vec<Effect>)> {
    if let Phase::Joined { lost_at, .. } = &mut room.phase {
        *lost_at = since;
    }
    // Whoever cannot be heard is not silent.
    let attend = since.map(|at| SessionCommand::Attend {
        until: at.plus_seconds(GRACE_SECONDS),
    });
    let tell = attend.map(|command| Work::TellSession(room.made.session(), command).into());
    Ok((room, tell.into_iter().collect()))
}

/// Nobody joins it any more.
fn expire(room: Room, by: EndedBy, now: Moment) -> Result<(Room, Vec<Effect>)> {
    let tell = parting(&Outcome::Expired, false, by);
    end(room, Outcome::Expired, now, tell)
}

fn fail(room: Room, code: ErrorCode, message: String, now: Moment) -> Result<(Room, Vec<Effect>)> {
    let outcome = Outcome::Failed { code, message };
    let tell = parting(&outcome, room.joined().is_some(), EndedBy::System);
    end(room, outcome, now, tell)
}

/// What a room that ends tells its session.
fn parting(outcome: &Outcome, is_joined: bool, by: EndedBy) -> Option<SessionCommand> {
    let (code, why) = match outcome {
        // Only its session completes a room.
        Outcome::Completed => return None,
        Outcome::Expired => {
            return Some(SessionCommand::Abandon(Abandoned {
                status: session::Status::NoAnswer,
                reason: EndReason::RoomExpired,
                by,
                why: None,
            }));
        }
        Outcome::Failed { code, message } => (code, message.clone()),
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
fn follow(room: Room, ended: &session::Model, now: Moment) -> Result<(Room, Vec<Effect>)> {
    let at = ended.ended_at.unwrap_or(now);
    let outcome = match (ended.status, ended.end_reason) {
        (session::Status::Completed, _) => Outcome::Completed,
        (_, Some(EndReason::RoomExpired | EndReason::NoAnswer)) => Outcome::Expired,
        (_, reason) => Outcome::Failed {
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
fn end(mut room: Room, outcome: Outcome, at: Moment, tell: Option<SessionCommand>) -> Result<(Room, Vec<Effect>)> {
    let room_id = room.made.id;
    let joined = room.joined();
    let event = match &outcome {
        Outcome::Completed => Effect::emit(RoomCompleted {
            room_id,
            completed_at: at,
            duration_seconds: duration_seconds(joined, at),
        }),
        Outcome::Expired => Effect::emit(RoomExpired {
            room_id,
            expired_at: at,
        }),
        Outcome::Failed { code, message } => Effect::emit(RoomFailed {
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

fn refused(state: &'static str, command: &'static str, hint: &'static str) -> Error {
    Error::InvalidState {
        kind: "room",
        state,
        command,
        hint,
    }
}

impl Machine for Room {
    type Key = RoomId;
    type Command = Command;
    const KIND: &'static str = "room";
    const TICK: Command = Command::Tick;

    fn owner(&self) -> Owned<RoomId> {
        self.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        next_deadline(self)
    }
    fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. })
    }
    fn version(&self) -> i32 {
        self.version
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
