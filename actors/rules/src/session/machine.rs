//! A session: one call. Scheduled -> Queued -> Dialing -> Conversing -> Ended, and Ended from each of them. Ended is final.
//! A trunk that has no room for a call sends it back to the queue. The session of a room is born Awaiting, and dialled, so to
//! speak, when somebody joins the room: Awaiting -> Dialing -> Conversing -> Ended.
//!
//! | status (specification) | phase here |
//! |---|---|
//! | `queued` | Scheduled, Awaiting, Queued, Dialing |
//! | `in_progress` | Conversing |
//! | `completed`, `failed`, `no_answer`, `voicemail`, `busy` | Ended |
//!
//! `completed` if and only if a human conversation ran to its end. Source: specification, "Session"; CONTRACT §4.
//!
//! Who picks up is not always known at once: until then the call is still Dialing, though the carrier bills it. A talk that comes
//! of it has begun when it was picked up.
//!
//! A talk takes one of five courses: it is talked, a message is left to a machine, somebody else is called to take over, somebody
//! else has taken over while we carry both sides, or the agent is saying goodbye because the other side wants no more calls or no
//! recording.
mod aftermath;
mod answered;
mod closing;
mod disclosing;
mod ending;
mod evaluating;
mod hold;
mod phases;
mod state;
mod talking;
mod waiting;
mod wishes;

pub use ending::code;
pub use hold::{bridged_until, hold_ends_at};
pub use state::{ActiveCall, CallMode, End, Phase, Session, UserSpeech};
pub use waiting::known_by;
pub use wishes::leaving;

use super::{
    command::{Abandoned, Command, Disclosed, Disposition, Evaluated, Refusal, RejectReason, Return, TimedOut},
    latency::TurnMarks,
    log::{Answered, Log, Utterance},
    sip_answer::{Attestation, SipAnswer},
};
use crate::{
    barred::{self, Whom},
    contact::machine::{Attempt, Ending},
    effect::{CallCount, Effect, Fact, Hint, Placed, Work},
    event::{
        FunctionTimeout, SessionConsentRefused, SessionCreated, SessionDispositionSet, SessionEnded, SessionFailed,
        SessionOptOutDetected, SessionOptOutRecordingPendingPurge, SessionStarted, SessionTransferInitiated,
    },
    machine::Machine,
    voice_clone::machine::ALWAYS_THERE,
};
use aftermath::*;
use answered::*;
use disclosing::*;
use ending::*;
use entities::{
    Error, Result,
    agent::ConsentMode,
    answer, evaluation,
    ids::{DeliveryRowId, RecordingId, SessionId, TenantScoped},
    inbound_call,
    ledger::Movement,
    recording::{self, PurgeReason},
    session::{
        AnsweredBy, Consent, Direction, EndReason, EndedBy, Evaluator, Model as Row, Quality, Status, VoicemailAction,
    },
    transcript::{Speaker, ToolCall, Turn},
    values::{Cents, E164, Env, Metadata, Moment},
};
use evaluating::*;
use hold::*;
use phases::*;
use std::sync::Arc;
use talking::*;
use waiting::*;
use wishes::*;

/// A call that could not be placed so soon after the moment that was decided for it is not placed.
pub const PLACED_WITHIN_MS: i64 = 2_000;

/// Whole cents for begun ones; nothing for a call that nobody answered.
pub fn cost(price_cents_per_minute: i32, duration_seconds: i32) -> Cents {
    Cents::of_talk(price_cents_per_minute, duration_seconds)
}

/// The whole life of a session. Pure: no clock, database, network or randomness.
pub fn transition(session: Session, command: Command, now: Moment) -> Result<(Session, Vec<Effect>)> {
    match &session.phase {
        Phase::Scheduled { .. } | Phase::Awaiting | Phase::Queued { .. } => while_waiting(session, command, now),
        Phase::Dialing { .. } => while_dialing(session, command, now),
        Phase::Conversing(_) => while_conversing(session, command, now),
        Phase::Ended(_) => when_ended(session, command, now),
    }
}

const STOPPED: &str = "the service stopped";
const LOST: &str = "the service was interrupted while the call was live";

/// The next moment at which `Tick` can matter.
pub fn next_deadline(session: &Session) -> Option<Moment> {
    match &session.phase {
        Phase::Scheduled { at } => Some(*at),
        Phase::Awaiting => None,
        Phase::Queued { until } => Some(*until),
        Phase::Dialing { give_up_at, .. } => Some(*give_up_at),
        Phase::Conversing(talk) => Some(talk.deadline(&session.call)),
        Phase::Ended(_) => None,
    }
}

/// The row stays, for what refers to it; what was said and who it was goes.
fn delete(mut session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let call = Arc::make_mut(&mut session.call);
    call.deleted_at = Some(now);
    (call.email, call.first_name, call.last_name) = (None, None, None);
    (call.variables, call.metadata) = Default::default();
    (call.disposition_note, call.client_reference_id) = (None, None);
    let effects = vec![
        Fact::Forget {
            session: session.key(),
            recording: session.call.recording_id,
        }
        .into(),
    ];
    Ok((session, effects))
}

fn refused(state: &'static str, command: &'static str, hint: &'static str) -> Error {
    Error::InvalidState {
        kind: "session",
        state,
        command,
        hint,
    }
}

impl Machine for Session {
    type Key = SessionId;
    type Command = Command;
    const KIND: &'static str = "session";
    const TICK: Command = Command::Tick;

    fn owner(&self) -> TenantScoped<SessionId> {
        self.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        next_deadline(self)
    }
    /// What is being said goes with the next step of the call; a crash ends the call anyway. So does ringing where it is only
    /// played: a real phone rings for long, and whoever looks wants to see it. And so do disclosures where all is only played: of a real
    /// talk it stands at once that they were heard.
    fn differs(&self, before: &Self) -> bool {
        let rings = |session: &Self| matches!(session.phase, Phase::Dialing { ringing: true, .. });
        let is_real = self.call.env == Env::Live;
        let has_changed = self.call != before.call && (self.call.has_line() || !self.has_only_disclosed(before));
        self.mode() != before.mode() || has_changed || (is_real && rings(self) != rings(before))
    }
    fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Awaiting | Phase::Ended(_))
    }
    /// What was said is kept in memory until the end: a commit that failed must not cost it.
    fn carry_over(&mut self, before: &Self) {
        disclosing::carry_over(self, before);
        if let (Phase::Conversing(talk), Phase::Conversing(known)) = (&mut self.phase, &before.phase) {
            self.log.clone_from(&before.log);
            let stored = std::mem::replace(talk, known.clone());
            // A wish that was committed after all is not told again.
            if !matches!(stored.mode, CallMode::Talking | CallMode::LeavingMessage) {
                (talk.mode, talk.end_by) = (stored.mode, stored.end_by);
            }
            // Two legs use up what is set aside twice as fast.
            if matches!(talk.mode, CallMode::Bridged { .. }) {
                talk.hold_ends_at = stored.hold_ends_at;
            }
            if self.call.consent == Consent::Granted {
                talk.recorded_from.get_or_insert(known.quiet_from);
            }
        }
    }
    fn version(&self) -> i32 {
        self.version
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
