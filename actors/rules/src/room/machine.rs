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
mod steps;

pub use steps::duration_seconds;

use crate::{effect::Effect, event::RoomCreated, machine::Machine, session::command::Command as SessionCommand};
use entities::{
    Error, Result,
    ids::{ParticipantId, RoomId, TenantScoped},
    room::{ErrorCode, Model as Row, Status},
    session::{self, EndedBy},
    values::Moment,
};
use steps::{connecting, expire, fail, follow, join, lost, parting, view, withdraw};

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
        outcome: RoomOutcome,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum RoomOutcome {
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

    pub fn key(&self) -> TenantScoped<RoomId> {
        self.made.key()
    }

    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Open | Phase::Connecting { .. } if self.viewed_at.is_some() => Status::Viewed,
            Phase::Open | Phase::Connecting { .. } => Status::Created,
            Phase::Joined { .. } => Status::Joined,
            Phase::Ended { outcome, .. } => match outcome {
                RoomOutcome::Completed => Status::Completed,
                RoomOutcome::Expired => Status::Expired,
                RoomOutcome::Failed { .. } => Status::Failed,
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

    fn owner(&self) -> TenantScoped<RoomId> {
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
