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
//! A talk takes one of four courses: it is talked, a message is left to a machine, somebody else is called to take over, or
//! the agent is saying good-bye because the other side wants no more calls or no recording.
mod ending;
mod evaluating;
mod talking;
mod waiting;

pub use ending::code;
pub use talking::{hold_ends_at, leaving};

use super::{
    command::{Abandoned, Bar, Command, Disposition, Evaluated, Refusal, Return, TimedOut},
    log::{Answered, Log, Utterance},
};
use crate::{
    barred::{self, Whom},
    contact::machine::{Attempt, Ending},
    effect::{Effect, Fact, Hint, Work},
    event::{
        FunctionTimeout, SessionConsentRefused, SessionCreated, SessionDispositionSet, SessionEnded, SessionFailed,
        SessionOptOutDetected, SessionOptOutRecordingPendingPurge, SessionStarted, SessionTransferInitiated,
    },
    machine::Machine,
    voice_clone::machine::ALWAYS_THERE,
};
use ending::*;
use entities::{
    Error, Result,
    agent::ConsentMode,
    answer, evaluation,
    ids::{DeliveryRowId, Owned, RecordingId, SessionId},
    inbound_call,
    ledger::Movement,
    recording::{self, PurgeReason},
    session::{AnsweredBy, Consent, EndReason, EndedBy, Evaluator, Model as Row, Status, VoicemailAction},
    transcript::{ToolCall, Turn},
    values::{Cents, E164, Moment},
};
use evaluating::*;
use std::sync::Arc;
use talking::*;
use waiting::*;

#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The row as it was created, with what has been found out since: consent, opt-out, disposition. Its phase's columns are
    /// not looked at.
    pub call: Arc<Row>,
    pub phase: Phase,
    /// What has been said and done so far. Saved at the end.
    pub log: Log,
    /// Where this service's links start.
    pub base_url: Arc<str>,
    pub version: i32,
}

/// Data lives only in the state where it exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Waits for its time.
    Scheduled {
        at: Moment,
    },
    /// Waits for somebody to join its room; the room knows how long.
    Awaiting,
    /// Waits for a slot.
    Queued {
        until: Moment,
    },
    /// The intent to call is committed; the call may have left. Of a call that comes in: it rings here. Of a room: its browser
    /// is being connected.
    Dialing {
        dialed_at: Moment,
        give_up_at: Moment,
        ringing: bool,
    },
    Conversing(Talk),
    Ended(End),
}

/// Somebody, or something, has picked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Talk {
    pub dialed_at: Moment,
    pub started_at: Moment,
    pub end_by: Moment,
    pub answered_by: AnsweredBy,
    pub course: Course,
    /// Until then somebody speaks, or is waited for: silence begins there.
    pub quiet_from: Moment,
    /// Since when it is recorded.
    pub recorded_from: Option<Moment>,
    /// When what is set aside for it is used up, or is to be looked at again; `None`: that covers all that it can cost.
    pub hold_ends_at: Option<Moment>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    Talking,
    /// A machine is told the message.
    LeavingMessage,
    /// Somebody else is called to take over.
    Transferring {
        to: E164,
        until: Moment,
    },
    /// The agent says good-bye; the call ends for that reason, by then at the latest.
    Leaving {
        reason: EndReason,
        by: Moment,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub at: Moment,
    pub status: Status,
    pub reason: EndReason,
    pub by: EndedBy,
    pub dialed_at: Option<Moment>,
    pub started_at: Option<Moment>,
    pub answered_by: Option<AnsweredBy>,
    /// What went wrong, in the carrier's or our words.
    pub error: Option<String>,
}

impl Session {
    /// A session that waits for a slot, from its `scheduled_at` or from now on.
    pub fn queued(call: Row, base_url: Arc<str>, now: Moment) -> (Self, Vec<Effect>) {
        let phase = match call.scheduled_at {
            Some(at) if at > now => Phase::Scheduled { at },
            Some(_) | None => queue(&call),
        };
        let session = Self::born(call, base_url, phase);
        let effects = vec![session.created(), Hint::SessionQueued(session.call.tenant_id).into()];
        (session, effects)
    }

    /// The session of a room that nobody has joined.
    pub fn awaiting(call: Row, base_url: Arc<str>) -> (Self, Vec<Effect>) {
        let session = Self::born(call, base_url, Phase::Awaiting);
        let effects = vec![session.created()];
        (session, effects)
    }

    /// A session that is dialled at once: its slot is taken, and its `hold_cents` are set aside, with its birth.
    pub fn dialed(call: Row, base_url: Arc<str>, at: Moment) -> (Self, Vec<Effect>) {
        let phase = dialing(&call, at);
        let session = Self::born(call, base_url, phase);
        let mut effects = vec![session.created()];
        effects.extend(session.held());
        (session, effects)
    }

    fn held(&self) -> Option<Effect> {
        self.set_aside(self.call.hold_cents)
    }

    fn set_aside(&self, cents: Cents) -> Option<Effect> {
        let call = &self.call;
        let hold = Movement::hold((call.tenant_id, call.env), call.id.0, cents);
        (cents.0 > 0).then_some(Fact::Move(hold).into())
    }

    /// Ends what was set aside, once: a session ends once.
    fn settled(&self, cost: Cents) -> Option<Effect> {
        let call = &self.call;
        let settle = Movement::settle((call.tenant_id, call.env), call.id.0, call.hold_cents, cost);
        (call.hold_cents.0 > 0 || cost.0 > 0).then_some(Fact::Move(settle).into())
    }

    /// A call that has come in and has a slot: it rings here.
    pub fn received(call: Row, base_url: Arc<str>, now: Moment) -> (Self, Vec<Effect>) {
        let (session, effects) = Self::dialed(call, base_url, now);
        let Ok((session, _)) = ring(session) else {
            unreachable!("ringing is always possible")
        };
        (session, effects)
    }

    fn born(call: Row, base_url: Arc<str>, phase: Phase) -> Self {
        Session {
            call: Arc::new(call),
            phase,
            log: Log::default(),
            base_url,
            version: 1,
        }
    }

    pub fn key(&self) -> Owned<SessionId> {
        self.call.key()
    }

    fn created(&self) -> Effect {
        let call = &self.call;
        let created = SessionCreated {
            session_id: call.id,
            to_number: call.to_number.clone(),
            from_number: call.from_number.clone(),
            campaign_id: call.campaign_id,
            contact_id: call.contact_id,
            // Whoever makes a session says who speaks in it.
            voice_id: call.voice_id.clone().unwrap_or_else(|| ALWAYS_THERE.to_owned()),
            status: Status::Queued,
        };
        Effect::emit(created)
    }

    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Scheduled { .. } | Phase::Awaiting | Phase::Queued { .. } | Phase::Dialing { .. } => Status::Queued,
            Phase::Conversing(_) => Status::InProgress,
            Phase::Ended(end) => end.status,
        }
    }

    /// The part of its phase that is stored.
    pub fn course(&self) -> (std::mem::Discriminant<Phase>, Option<std::mem::Discriminant<Course>>) {
        let course = match &self.phase {
            Phase::Conversing(talk) => Some(std::mem::discriminant(&talk.course)),
            Phase::Scheduled { .. }
            | Phase::Awaiting
            | Phase::Queued { .. }
            | Phase::Dialing { .. }
            | Phase::Ended(_) => None,
        };
        (std::mem::discriminant(&self.phase), course)
    }

    /// Does it take one of the tenant's slots?
    pub fn is_live(&self) -> bool {
        matches!(self.phase, Phase::Dialing { .. } | Phase::Conversing(_))
    }
}

impl End {
    /// Did the service itself cut it off, for it stopped, before anybody picked up? Nothing else of ours ends a call that was
    /// dialled and not answered as canceled.
    pub fn is_given_back(&self) -> bool {
        (self.reason, self.by) == (EndReason::Canceled, EndedBy::System)
            && self.dialed_at.is_some()
            && self.started_at.is_none()
    }

    /// Whole seconds of conversation.
    pub fn duration_seconds(&self) -> i32 {
        self.started_at.map_or(0, |started_at| {
            i32::try_from(self.at.since(started_at).as_secs()).unwrap_or(i32::MAX)
        })
    }
}

fn dialing(call: &Row, at: Moment) -> Phase {
    Phase::Dialing {
        dialed_at: at,
        give_up_at: at.plus_seconds(call.ring_timeout_seconds.into()),
        ringing: false,
    }
}

/// A call that could not be placed so soon after the moment that was decided for it is not placed.
pub const PLACED_WITHIN_MS: i64 = 2_000;

/// A call that finds a free slot gets this long to take it, even if it does not want to wait.
const AT_ONCE_SECONDS: i64 = 5;

/// From its birth, or from the time for which it was made; a trunk that sends it back gives it no more time.
fn queue(call: &Row) -> Phase {
    let begins = call.scheduled_at.map_or(call.created_at, |at| at.max(call.created_at));
    Phase::Queued {
        until: begins.plus_seconds(i64::from(call.queue_ttl_seconds).max(AT_ONCE_SECONDS)),
    }
}

/// Whole cents for begun ones; nothing for a call that nobody answered.
pub fn cost(price_cents_per_minute: i32, duration_seconds: i32) -> Cents {
    let sixtieths = i64::from(price_cents_per_minute.max(0)) * i64::from(duration_seconds.max(0));
    Cents((sixtieths + 59) / 60)
}

/// The whole life of a session. Pure: no clock, database, network or randomness.
pub fn transition(session: Session, command: Command, now: Moment) -> Result<(Session, Vec<Effect>)> {
    use Command::*;
    use Phase::*;
    match (&session.phase, command) {
        (Scheduled { at }, Tick) if now >= *at => enqueue(session, now),
        (Scheduled { .. }, Release) if session.call.campaign_id.is_some() => enqueue(session, now),
        (Scheduled { .. }, End) => canceled(session, EndedBy::Api, None, now),

        (Queued { .. } | Awaiting, Dispatch { at, hold }) => dispatch(session, at, hold),
        (Awaiting | Dialing { .. }, Abandon(abandoned)) => abandon(session, abandoned, now),
        // As if the room had been ended.
        (Awaiting | Dialing { .. }, End) if session.call.room_id.is_some() => {
            let end = (Status::NoAnswer, EndReason::RoomExpired);
            finish(session, end, EndedBy::Api, None, now)
        }

        (Queued { .. }, Postpone { until }) if until > now => postpone(session, until),
        (Queued { .. }, Bar(bar)) => canceled(session, EndedBy::System, Some(why_barred(bar)), now),
        (Queued { until }, Tick) if now >= *until => slot_never_came(session, now),
        (Queued { .. }, End) => canceled(session, EndedBy::Api, None, now),

        (Dialing { .. }, Ring) => ring(session),
        (Dialing { .. }, Answer { by, recording_id }) => answer(session, by, recording_id, now),
        (Dialing { .. }, Refuse(Refusal::Congested)) => send_back(session),
        (Dialing { dialed_at, ringing: false, .. }, Requeue { dialed_at: of }) if *dialed_at == of => requeue(session, now),
        (Dialing { .. }, Refuse(refusal)) => refuse(session, refusal, now),
        (Dialing { give_up_at, .. }, Tick) if now >= *give_up_at => {
            let end = (Status::NoAnswer, EndReason::NoAnswer);
            finish(session, end, EndedBy::System, None, now)
        }
        (Awaiting | Dialing { .. }, End) => canceled(session, EndedBy::Api, None, now),
        (Dialing { .. }, Shutdown) => canceled(session, EndedBy::System, Some(STOPPED), now),
        // A caller who gave up while it rang here.
        (Dialing { .. }, HangUp(by)) => canceled(session, by, None, now),

        (Conversing(_), Extend { held, by }) if held == session.call.hold_cents && by.0 > 0 => extend(session, by, now),

        (Conversing(_), Utter(utterance)) => utter(session, utterance, now),
        (Conversing(_), Interrupt { said, played_ms }) => interrupt(session, said, played_ms, now),
        (Conversing(_), Attend { until }) => attend(session, until),
        (Conversing(talk), Consent(granted)) if talk.is_heard() => consent(session, granted, now),
        (Conversing(talk), OptOut { purge_after }) if talk.is_heard() => opt_out(session, purge_after, now),
        (Conversing(_), Call { call, own, until }) => call_tool(session, (call, own), until, now),
        (Conversing(_), Return(answer)) => take_answer(session, answer, now),
        (Conversing(_), Transfer { .. }) if session.call.room_id.is_some() => {
            let hint = "it is held in a room, which has no telephone line";
            Err(refused("conversing", "be transferred", hint))
        }
        (Conversing(talk), Transfer { to }) if talk.course == Course::Talking => transfer(session, to, now),
        (
            Conversing(
                talk @ Talk {
                    course: Course::Transferring { .. },
                    ..
                },
            ),
            Transferred,
        ) => {
            let end = (talk.status(), EndReason::Transferred);
            finish(session, end, EndedBy::Agent, None, now)
        }
        (
            Conversing(Talk {
                course: Course::Transferring { .. },
                ..
            }),
            TransferFailed { why },
        ) => take_back(session, &why, now),
        (Conversing(_), Dispose { code, note }) => dispose(session, code, note, now),
        (Conversing(_), NoteAnswer(answered)) => note_answer(session, answered, now),
        (Conversing(_) | Dialing { .. }, Note { kind, detail }) => note(session, kind, detail, now),
        (
            Conversing(Talk {
                course: Course::LeavingMessage,
                ..
            }),
            MessageLeft,
        ) => finish(
            session,
            (Status::Voicemail, EndReason::VoicemailLeft),
            EndedBy::Agent,
            None,
            now,
        ),
        (Conversing(talk), Break { .. } | Shutdown) if talk.farewell().is_some() => {
            hang_up(session, EndedBy::System, now)
        }
        (Conversing(_), Break { reason, why }) => {
            finish(session, (Status::Failed, reason), EndedBy::System, Some(why), now)
        }
        (Conversing(_), HangUp(by)) => hang_up(session, by, now),
        (Conversing(_), Tick) => look_at_the_time(session, now),
        (Conversing(_), End) => hang_up(session, EndedBy::Api, now),
        (Conversing(talk), Shutdown) => {
            let end = (talk.status(), EndReason::Canceled);
            finish(session, end, EndedBy::System, Some(STOPPED.into()), now)
        }

        (Dialing { .. } | Conversing(_), Lose { last_seen }) => lose(session, last_seen, now),

        // What is forgotten stays forgotten; only its job is told to be done.
        (Ended(_), Evaluate(found)) if session.call.deleted_at.is_some() => {
            Ok((session, found.job.map(|job| Fact::SaveEvaluation(job).into()).into_iter().collect()))
        }
        (Ended(_), Label(_) | Delete) if session.call.deleted_at.is_some() => Ok((session, Vec::new())),

        (_, Label(metadata)) => {
            let mut session = session;
            Arc::make_mut(&mut session.call).metadata = metadata;
            Ok((session, Vec::new()))
        }

        (Ended(_), Evaluate(evaluated)) => evaluate(session, evaluated, now),
        (Ended(_), Delete) => delete(session, now),

        // Ticks come early and carriers repeat themselves: a second time is no change, not an error.
        (_, Tick) => Ok((session, Vec::new())),
        (Scheduled { .. } | Awaiting | Queued { .. }, Shutdown | Lose { .. })
        // Its room is at its end, and so is it, or it is on its way there.
        | (Scheduled { .. } | Queued { .. } | Conversing(_) | Ended(_), Abandon(_))
        | (Awaiting, Postpone { .. } | Bar(_))
        | (Scheduled { .. } | Dialing { .. } | Conversing(_), Dispatch { .. } | Postpone { .. } | Bar(_))
        | (_, Release)
        // It was extended already, or has ended, or the trunk has sent it back.
        | (
            Scheduled { .. } | Awaiting | Queued { .. } | Dialing { .. } | Conversing(_) | Ended(_),
            Extend { .. },
        )
        | (Queued { .. }, Postpone { .. } | Ring | Refuse(Refusal::Congested))
        // Only what was never placed goes back.
        | (Scheduled { .. } | Awaiting | Queued { .. } | Dialing { .. } | Conversing(_) | Ended(_), Requeue { .. })
        | (Conversing(_), Ring | Answer { .. }) => Ok((session, Vec::new())),
        // What is on its way while the call takes another course comes too late.
        (Conversing(_), Consent(_) | OptOut { .. } | Transferred | TransferFailed { .. } | MessageLeft) => {
            Ok((session, Vec::new()))
        }
        (
            Ended(_),
            Dispatch { .. }
            | Postpone { .. }
            | Bar(_)
            | Ring
            | Answer { .. }
            | Refuse(_)
            | Utter(_)
            | Interrupt { .. }
            | Attend { .. }
            | Consent(_)
            | OptOut { .. }
            | Call { .. }
            | Return(_)
            | Transferred
            | TransferFailed { .. }
            | Dispose { .. }
            | NoteAnswer(_)
            | Note { .. }
            | MessageLeft
            | Break { .. }
            | HangUp(_)
            | Shutdown
            | Lose { .. },
        ) => Ok((session, Vec::new())),

        (Ended(_), End) => Err(refused("ended", "end", "it has ended already")),
        (Ended(_), Transfer { .. }) => Err(refused("ended", "be transferred", "it has ended already")),
        (Conversing(_), Transfer { .. }) => Err(refused(
            "conversing",
            "be transferred",
            "it is being handed over or ended already",
        )),
        (Conversing(_), Refuse(_)) => Err(refused("conversing", "be refused", "it was answered")),
        (Scheduled { .. } | Awaiting | Queued { .. } | Dialing { .. } | Conversing(_), Evaluate(_) | Delete) => {
            Err(refused("live", "be evaluated or deleted", "wait until it has ended"))
        }
        (
            Scheduled { .. } | Awaiting | Queued { .. },
            Ring
            | Answer { .. }
            | Refuse(_)
            | Utter(_)
            | Interrupt { .. }
            | Attend { .. }
            | Consent(_)
            | OptOut { .. }
            | Call { .. }
            | Return(_)
            | Transfer { .. }
            | Transferred
            | TransferFailed { .. }
            | Dispose { .. }
            | NoteAnswer(_)
            | Note { .. }
            | MessageLeft
            | Break { .. }
            | HangUp(_),
        ) => Err(refused("queued", "talk", "it has not been dialled")),
        (
            Dialing { .. },
            Utter(_)
            | Interrupt { .. }
            | Attend { .. }
            | Consent(_)
            | OptOut { .. }
            | Call { .. }
            | Return(_)
            | Transfer { .. }
            | Transferred
            | TransferFailed { .. }
            | Dispose { .. }
            | NoteAnswer(_)
            | MessageLeft
            | Break { .. },
        ) => Err(refused("dialing", "talk", "nobody has answered")),
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

    fn owner(&self) -> Owned<SessionId> {
        self.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        next_deadline(self)
    }
    /// Ringing and what is being said go with the next step of the call; a crash ends the call anyway.
    fn differs(&self, before: &Self) -> bool {
        self.course() != before.course() || self.call != before.call
    }
    fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Awaiting | Phase::Ended(_))
    }
    /// What was said is kept in memory until the end: a commit that failed must not cost it.
    fn carry_over(&mut self, before: &Self) {
        if let (Phase::Conversing(talk), Phase::Conversing(known)) = (&mut self.phase, &before.phase) {
            self.log.clone_from(&before.log);
            let course = std::mem::replace(&mut talk.course, Course::Talking);
            *talk = known.clone();
            // A wish that was committed after all is not told again.
            if matches!(course, Course::Leaving { .. } | Course::Transferring { .. }) {
                talk.course = course;
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
