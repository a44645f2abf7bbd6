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
use super::log::{Answered, Log, Utterance};
use crate::{
    contact::machine::{Attempt, Ending},
    dnc::{self, Whom},
    effect::Effect,
    event::{
        FunctionTimeout, SessionConsentRefused, SessionCreated, SessionDispositionSet, SessionEnded, SessionFailed,
        SessionOptOutDetected, SessionOptOutRecordingPendingPurge, SessionStarted, SessionTransferInitiated,
    },
};
use entities::{
    Error, Result,
    agent::ConsentMode,
    answer, evaluation,
    ids::{DeliveryRowId, FunctionId, Owned, RecordingId, SessionId},
    inbound_call,
    ledger::Movement,
    recording::{self, PurgeReason},
    session::{AnsweredBy, Consent, EndReason, EndedBy, Evaluator, Model as Row, Status, VoicemailAction},
    transcript::{Invocation, ToolCall, Turn},
    values::{Cents, E164, Metadata, Moment},
};
use std::sync::Arc;

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

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Look at the time.
    Tick,
    /// A slot is free: place the call, at that moment; so much is set aside for it, if nothing is yet.
    Dispatch { at: Moment, hold: Cents },
    /// It may not be called now; the hours open again then.
    Postpone { until: Moment },
    /// It may not be called at all.
    Bar(Bar),
    /// The other side's phone rings.
    Ring,
    /// Picked up, by a person or by a machine. If it is recorded, the recording gets that id.
    Answer { by: AnsweredBy, recording_id: RecordingId },
    /// The call was not connected.
    Refuse(Refusal),
    /// Somebody begins to say something.
    Utter(Utterance),
    /// The other side cut in: of the agent's last words only these were heard, and so much of their sound.
    Interrupt { said: String, played_ms: u64 },
    /// The other side speaks and is listened to, or cannot be heard at the moment; its words come by then at the latest.
    Attend { until: Moment },
    /// The other side agreed to be recorded, or did not.
    Consent(bool),
    /// The other side does not want to be called again; what was recorded is erased after `purge_after`.
    OptOut { purge_after: Moment },
    /// The agent calls a tool; its answer is awaited until then. `own`: one of the user's functions.
    Call { call: ToolCall, own: bool, until: Moment },
    /// What a function answered.
    Return(Return),
    /// Hand the call over.
    Transfer { to: E164 },
    /// The other one has taken over.
    Transferred,
    /// The other one could not be reached.
    TransferFailed { why: String },
    /// The agent says how the call went.
    Dispose { code: String, note: String },
    /// The agent notes what was answered to a question.
    NoteAnswer(Answered),
    /// Something for the timeline.
    Note { kind: &'static str, detail: String },
    /// The message has been said to the machine.
    MessageLeft,
    /// What the agent thinks with has failed.
    Break { reason: EndReason, why: String },
    /// A side of the conversation hung up.
    HangUp(EndedBy),
    /// The API wants it to end.
    End,
    /// The service stops and cannot carry the call on.
    Shutdown,
    /// Its room came to nothing.
    Abandon(Abandoned),
    /// Nobody knows what became of the call.
    Lose,
    /// How the call went, found out after its end.
    Evaluate(Evaluated),
    /// What it is to its user.
    Label(Metadata),
    /// The API wants it, and what was said, gone.
    Delete,
}

/// A function's answer, or that there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Return {
    pub call_id: String,
    /// JSON.
    pub output: String,
    /// For the session's last event; a built-in tool has none.
    pub invocation: Option<Invocation>,
    /// It took longer than it may.
    pub timed_out: Option<TimedOut>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TimedOut {
    pub function_id: FunctionId,
    pub name: String,
    pub timeout_ms: i64,
}

/// What is known of a talk after its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    pub disposition: Option<Disposition>,
    pub answers: Vec<Answered>,
    pub by: Evaluator,
    /// The language model's name.
    pub model: Option<String>,
    /// The job that found it out, as it is then.
    pub job: Option<evaluation::Model>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Disposition {
    pub code: String,
    pub note: String,
}

/// Why nobody talked in a room.
#[derive(Clone, Debug, PartialEq)]
pub struct Abandoned {
    pub status: Status,
    pub reason: EndReason,
    pub by: EndedBy,
    /// What went wrong.
    pub why: Option<String>,
}

/// Why a carrier did not connect a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    Busy,
    NoAnswer,
    /// Turned down by hand: SIP 603, 607, 608. Never tried over another gateway.
    Declined,
    InvalidNumber(String),
    Rejected(String),
    /// The trunk has no room and never accepted the call: SIP 503 and 429.
    Congested,
}

/// Why a call that waited is not placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    OnDnc,
    CapReached,
    OutsideHours,
    CampaignOver,
}

impl Session {
    /// A session that waits for a slot, from its `scheduled_at` or from now on.
    pub fn queued(call: Row, base_url: Arc<str>, now: Moment) -> (Self, Vec<Effect>) {
        let phase = match call.scheduled_at {
            Some(at) if at > now => Phase::Scheduled { at },
            Some(_) | None => queue(&call),
        };
        let session = Self::born(call, base_url, phase);
        let effects = vec![session.created(), Effect::SessionQueued(session.call.tenant_id)];
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
        let call = &self.call;
        let hold = Movement::hold((call.tenant_id, call.env), call.id.0, call.hold_cents);
        (call.hold_cents.0 > 0).then_some(Effect::Move(hold))
    }

    /// Ends what was set aside, once: a session ends once.
    fn settled(&self, cost: Cents) -> Option<Effect> {
        let call = &self.call;
        let settle = Movement::settle((call.tenant_id, call.env), call.id.0, call.hold_cents, cost);
        (call.hold_cents.0 > 0 || cost.0 > 0).then_some(Effect::Move(settle))
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
            voice_id: call.voice_id.clone(),
            status: Status::Queued,
        };
        Effect::Emit(created.into())
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
        (Scheduled { .. }, End) => canceled(session, EndedBy::Api, None, now),

        (Queued { .. } | Awaiting, Dispatch { at, hold }) => dispatch(session, at, hold),
        (Awaiting, End) => canceled(session, EndedBy::Api, None, now),
        (Awaiting | Dialing { .. }, Abandon(abandoned)) => abandon(session, abandoned, now),

        (Queued { .. }, Postpone { until }) if until > now => postpone(session, until),
        (Queued { .. }, Bar(bar)) => canceled(session, EndedBy::System, Some(why_barred(bar)), now),
        (Queued { until }, Tick) if now >= *until => slot_never_came(session, now),
        (Queued { .. }, End) => canceled(session, EndedBy::Api, None, now),

        (Dialing { .. }, Ring) => ring(session),
        (Dialing { .. }, Answer { by, recording_id }) => answer(session, by, recording_id, now),
        (Dialing { .. }, Refuse(Refusal::Congested)) => send_back(session),
        (Dialing { .. }, Refuse(refusal)) => refuse(session, refusal, now),
        (Dialing { give_up_at, .. }, Tick) if now >= *give_up_at => {
            let end = (Status::NoAnswer, EndReason::NoAnswer);
            finish(session, end, EndedBy::System, None, now)
        }
        (Dialing { .. }, End) => canceled(session, EndedBy::Api, None, now),
        (Dialing { .. }, Shutdown) => canceled(session, EndedBy::System, Some(STOPPED), now),
        // A caller who gave up while it rang here.
        (Dialing { .. }, HangUp(by)) => canceled(session, by, None, now),

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

        (Dialing { .. } | Conversing(_), Lose) => {
            let end = (Status::Failed, EndReason::NodeLost);
            finish(session, end, EndedBy::System, Some(LOST.into()), now)
        }

        // What is forgotten stays forgotten; only its job is told to be done.
        (Ended(_), Evaluate(found)) if session.call.deleted_at.is_some() => {
            Ok((session, found.job.map(Effect::SaveEvaluation).into_iter().collect()))
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
        (Scheduled { .. } | Awaiting | Queued { .. }, Shutdown | Lose)
        // Its room is at its end, and so is it, or it is on its way there.
        | (Scheduled { .. } | Queued { .. } | Conversing(_) | Ended(_), Abandon(_))
        | (Awaiting, Postpone { .. } | Bar(_))
        | (Scheduled { .. } | Dialing { .. } | Conversing(_), Dispatch { .. } | Postpone { .. } | Bar(_))
        | (Queued { .. }, Postpone { .. } | Ring | Refuse(Refusal::Congested))
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
            | Lose,
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
            Err(refused("live", "be evaluated or deleted", "wait for its end"))
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

fn enqueue(mut session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    session.phase = queue(&session.call);
    // The service may have been down at its time: it gets a moment all the same.
    if let Phase::Queued { until } = &mut session.phase {
        *until = (*until).max(now.plus_seconds(AT_ONCE_SECONDS));
    }
    let effects = vec![Effect::SessionQueued(session.call.tenant_id)];
    Ok((session, effects))
}

/// The dispatcher places the call when this is committed.
fn dispatch(mut session: Session, at: Moment, hold: Cents) -> Result<(Session, Vec<Effect>)> {
    session.phase = dialing(&session.call, at);
    // A call that the trunk sent back has kept what was set aside for it.
    if session.call.hold_cents.0 > 0 {
        return Ok((session, Vec::new()));
    }
    Arc::make_mut(&mut session.call).hold_cents = hold;
    let effects = session.held().into_iter().collect();
    Ok((session, effects))
}

fn postpone(mut session: Session, until: Moment) -> Result<(Session, Vec<Effect>)> {
    Arc::make_mut(&mut session.call).scheduled_at = Some(until);
    session.phase = Phase::Scheduled { at: until };
    Ok((session, Vec::new()))
}

/// The trunk never took the call: it waits for its turn again, and the attempt is still the same.
fn send_back(mut session: Session) -> Result<(Session, Vec<Effect>)> {
    session.phase = queue(&session.call);
    let (tenant_id, session_id) = (session.call.tenant_id, session.call.id);
    let effects = vec![
        Effect::HangUp { session: session.key() },
        Effect::TrunkCongested {
            tenant_id,
            env: session.call.env,
        },
        Effect::SlotFreed { tenant_id, session_id },
        Effect::SessionQueued(tenant_id),
    ];
    Ok((session, effects))
}

fn why_barred(bar: Bar) -> &'static str {
    match bar {
        Bar::OnDnc => "the number came onto the do-not-call list while the call waited",
        Bar::CapReached => "the number was called too often while the call waited",
        Bar::CampaignOver => "its campaign was over before the trunk had room for it",
        Bar::OutsideHours => "the calling hours were over before a slot became free",
    }
}

fn ring(mut session: Session) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Dialing { ringing, .. } = &mut session.phase {
        *ringing = true;
    }
    Ok((session, Vec::new()))
}

/// What a machine is told, or whether it is talked to, is up to the call's settings.
fn answer(
    mut session: Session,
    answered_by: AnsweredBy,
    recording_id: RecordingId,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    let Phase::Dialing { dialed_at, .. } = session.phase else {
        return Ok((session, Vec::new()));
    };
    let course = match (answered_by, session.call.options.voicemail.action) {
        (AnsweredBy::Human, _) | (AnsweredBy::Voicemail, VoicemailAction::Continue) => Course::Talking,
        (AnsweredBy::Voicemail, VoicemailAction::LeaveMessage) => Course::LeavingMessage,
        (AnsweredBy::Voicemail, VoicemailAction::Hangup) => {
            let end = (Status::Voicemail, EndReason::Voicemail);
            return finish(session, end, EndedBy::System, None, now);
        }
    };
    let mut talk = Talk {
        dialed_at,
        started_at: now,
        end_by: now.plus_seconds(session.call.max_duration_seconds.into()),
        answered_by,
        course,
        quiet_from: now,
        recorded_from: None,
    };
    // Nothing is recorded of machines, and nothing before a yes where one is asked for.
    let recorded = session
        .call
        .options
        .recording
        .clone()
        .filter(|_| answered_by == AnsweredBy::Human);
    let call = Arc::make_mut(&mut session.call);
    if let Some(recorded) = recorded {
        call.recording_id = Some(recording_id);
        match recorded.consent {
            ConsentMode::Verbal => call.consent = Consent::Pending,
            ConsentMode::None | ConsentMode::Notice => talk.recorded_from = Some(now),
        }
    }
    session.phase = Phase::Conversing(talk);
    let started = SessionStarted {
        session_id: session.call.id,
        started_at: now,
    };
    let mut effects = vec![Effect::Emit(started.into())];
    effects.extend(inbound(&session, inbound_call::Outcome::Answered));
    Ok((session, effects))
}

/// What became of a call to one of the tenant's numbers: its answer rate is counted from it.
fn inbound(session: &Session, outcome: inbound_call::Outcome) -> Option<Effect> {
    session.call.options.number_id.map(|number_id| Effect::CountInbound {
        call: session.call.clone(),
        number_id,
        outcome,
    })
}

impl Talk {
    /// The other side's wishes are listened to, also while somebody else is called to take over.
    fn is_heard(&self) -> bool {
        matches!(self.course, Course::Talking | Course::Transferring { .. })
    }

    /// `completed` is for talks with people.
    fn status(&self) -> Status {
        match self.answered_by {
            AnsweredBy::Human => Status::Completed,
            AnsweredBy::Voicemail => Status::Voicemail,
        }
    }

    /// Why the agent is saying good-bye: whatever ends the call then, that is its reason.
    fn farewell(&self) -> Option<EndReason> {
        match &self.course {
            Course::Leaving { reason, .. } => Some(*reason),
            Course::Talking | Course::LeavingMessage | Course::Transferring { .. } => None,
        }
    }

    fn deadline(&self, call: &Row) -> Moment {
        match &self.course {
            Course::Talking => self.silent_at(call).map_or(self.end_by, |at| at.min(self.end_by)),
            Course::LeavingMessage => self.end_by,
            Course::Transferring { until, .. } => (*until).min(self.end_by),
            Course::Leaving { by, .. } => (*by).min(self.end_by),
        }
    }

    /// When nobody will have said anything for too long.
    fn silent_at(&self, call: &Row) -> Option<Moment> {
        let seconds = call.options.silence_seconds;
        (seconds > 0).then(|| self.quiet_from.plus_seconds(seconds.into()))
    }
}

fn look_at_the_time(session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &session.phase else {
        return Ok((session, Vec::new()));
    };
    if now < talk.deadline(&session.call) {
        return Ok((session, Vec::new()));
    }
    let status = talk.status();
    let reason = match &talk.course {
        Course::Leaving { reason, .. } => *reason,
        _ if now >= talk.end_by => EndReason::MaxDuration,
        Course::Transferring { .. } => {
            let (session, mut effects) = take_back(session, "nobody answered in time", now)?;
            effects.push(Effect::TransferEnded { session: session.key() });
            return Ok((session, effects));
        }
        Course::Talking => EndReason::SilenceTimeout,
        Course::LeavingMessage => EndReason::MaxDuration,
    };
    finish(session, (status, reason), EndedBy::System, None, now)
}

fn hang_up(session: Session, by: EndedBy, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &session.phase else {
        return Ok((session, Vec::new()));
    };
    let reason = match (&talk.course, talk.answered_by) {
        (Course::Leaving { reason, .. }, _) => *reason,
        (_, AnsweredBy::Voicemail) => EndReason::Voicemail,
        (Course::Talking | Course::LeavingMessage | Course::Transferring { .. }, AnsweredBy::Human) => {
            EndReason::Completed
        }
    };
    let status = talk.status();
    finish(session, (status, reason), by, None, now)
}

fn utter(mut session: Session, mut utterance: Utterance, now: Moment) -> Result<(Session, Vec<Effect>)> {
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
            (began, began.plus_millis(ms).min(now))
        }
    };
    talk.quiet_from = talk.quiet_from.max(ends);
    let started_at = talk.started_at;
    let turn = session.log.utter(utterance, (started_at, began, ends));
    let heard = turn.map(|turn| overheard(&session, turn));
    Ok((session, heard.into_iter().collect()))
}

/// Nobody speaks longer without a breath.
const MAX_UTTERANCE_MS: i64 = 600_000;

fn interrupt(mut session: Session, said: String, played_ms: u64, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &mut session.phase {
        talk.quiet_from = now;
        session.log.cut(said, played_ms, seconds(talk.started_at, now));
    }
    Ok((session, Vec::new()))
}

fn attend(mut session: Session, until: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &mut session.phase {
        talk.quiet_from = talk.quiet_from.max(until);
    }
    Ok((session, Vec::new()))
}

fn consent(mut session: Session, granted: bool, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &mut session.phase else {
        return Ok((session, Vec::new()));
    };
    let call = Arc::make_mut(&mut session.call);
    if granted {
        // Nobody had asked, or it was said twice.
        if call.consent == Consent::Pending {
            call.consent = Consent::Granted;
            talk.recorded_from = Some(now);
            session.log.note("consent_granted", None, now);
        }
        return Ok((session, Vec::new()));
    }
    call.consent = Consent::Refused;
    // What was recorded before the objection is not kept either.
    (talk.recorded_from, call.recording_id) = (None, None);
    let was = std::mem::replace(&mut talk.course, leaving(EndReason::ConsentRefused, now));
    session.log.note("consent_refused", None, now);
    let refused = SessionConsentRefused {
        session_id: session.call.id,
        refused_at: now,
    };
    let mut effects = vec![Effect::Emit(refused.into())];
    effects.extend(called_off(&session, &was));
    Ok((session, effects))
}

/// Nobody takes over a call whose other side wants none.
fn called_off(session: &Session, was: &Course) -> Option<Effect> {
    matches!(was, Course::Transferring { .. }).then(|| Effect::TransferEnded { session: session.key() })
}

/// Long enough for a sentence.
const FAREWELL_SECONDS: i64 = 15;

pub(super) fn leaving(reason: EndReason, now: Moment) -> Course {
    Course::Leaving {
        reason,
        by: now.plus_seconds(FAREWELL_SECONDS),
    }
}

/// Who talks on the phone is called no more; who talks in a room has no number, but can be written to.
fn who_opts_out(call: &Row) -> Option<Whom> {
    match call.phone_number() {
        Some(number) => Some(Whom::Number(number.clone())),
        None => call
            .email
            .as_deref()
            .and_then(|email| dnc::email(email).ok())
            .map(Whom::Email),
    }
}

/// What happens when somebody does not want to be called again: this list, in this order, in one transaction.
fn opt_out(mut session: Session, purge_after: Moment, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &mut session.phase else {
        return Ok((session, Vec::new()));
    };
    let was = std::mem::replace(&mut talk.course, leaving(EndReason::OptOut, now));
    let is_recorded = talk.recorded_from.is_some();
    let call = Arc::make_mut(&mut session.call);
    call.opted_out_at = Some(now);
    session.log.note("opt_out", None, now);
    let mut effects = Vec::new();
    // A caller who hides the number cannot be barred, but what was recorded goes all the same.
    if let Some(whom) = who_opts_out(call) {
        effects.push(Effect::Bar {
            whom,
            session_id: call.id,
        });
    }
    if let Some(phone_number) = call.phone_number().cloned() {
        let detected = SessionOptOutDetected {
            session_id: call.id,
            phone_number,
            detected_at: now,
        };
        effects.push(Effect::Emit(detected.into()));
    }
    if let (true, Some(recording_id)) = (is_recorded, call.recording_id) {
        call.purge_after = Some(purge_after);
        let pending = SessionOptOutRecordingPendingPurge {
            session_id: call.id,
            recording_id,
            purge_after,
        };
        effects.push(Effect::Emit(pending.into()));
    }
    effects.extend(called_off(&session, &was));
    Ok((session, effects))
}

fn call_tool(
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

fn take_answer(mut session: Session, answer: Return, now: Moment) -> Result<(Session, Vec<Effect>)> {
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
        effects.push(Effect::Emit(timeout.into()));
    }
    session.log.invoked(invocation);
    let turn = session.log.returned(call_id, output, t);
    effects.extend(turn.map(|turn| overheard(&session, turn)));
    Ok((session, effects))
}

/// Whoever is called to take over gets this long to pick up.
const TRANSFER_SECONDS: i64 = 45;

fn transfer(mut session: Session, to: E164, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &mut session.phase {
        talk.course = Course::Transferring {
            to: to.clone(),
            until: now.plus_seconds(TRANSFER_SECONDS),
        };
    }
    session.log.note("transfer_initiated", Some(to.to_string()), now);
    let call = &session.call;
    let initiated = SessionTransferInitiated {
        session_id: call.id,
        to_number: call.to_number.clone(),
        from_number: call.from_number.clone(),
        transfer_number: to.clone(),
        transferred_at: now,
    };
    let effects = vec![
        Effect::Emit(initiated.into()),
        Effect::Transfer {
            session: session.key(),
            to,
        },
    ];
    Ok((session, effects))
}

fn take_back(mut session: Session, why: &str, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &mut session.phase {
        talk.course = Course::Talking;
        talk.quiet_from = now;
    }
    session.log.note("transfer_failed", Some(why.to_owned()), now);
    Ok((session, Vec::new()))
}

/// The last one counts: an agent may change its mind during the talk.
fn dispose(mut session: Session, code: String, words: String, now: Moment) -> Result<(Session, Vec<Effect>)> {
    session.log.note("disposition_set", Some(code.clone()), now);
    let call = Arc::make_mut(&mut session.call);
    call.disposition_code = Some(code);
    call.disposition_note = Some(words);
    call.disposition_by = Some(Evaluator::Agent);
    Ok((session, Vec::new()))
}

fn note_answer(mut session: Session, answered: Answered, now: Moment) -> Result<(Session, Vec<Effect>)> {
    session.log.note("question_answered", Some(answered.key.clone()), now);
    session.log.answer(answered);
    Ok((session, Vec::new()))
}

fn note(mut session: Session, kind: &'static str, detail: String, now: Moment) -> Result<(Session, Vec<Effect>)> {
    session.log.note(kind, Some(detail), now);
    Ok((session, Vec::new()))
}

fn overheard(session: &Session, turn: Turn) -> Effect {
    Effect::Overheard {
        session_id: session.call.id,
        place: session.log.turns.len().saturating_sub(1),
        turn,
    }
}

fn seconds(started_at: Moment, at: Moment) -> f64 {
    at.since(started_at).as_secs_f64()
}

fn refuse(session: Session, refusal: Refusal, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let (status, reason, error) = match refusal {
        Refusal::Busy => (Status::Busy, EndReason::Busy, None),
        Refusal::NoAnswer => (Status::NoAnswer, EndReason::NoAnswer, None),
        Refusal::Declined => (Status::NoAnswer, EndReason::Declined, None),
        Refusal::InvalidNumber(why) => (Status::Failed, EndReason::InvalidNumber, Some(why)),
        Refusal::Rejected(why) => (Status::Failed, EndReason::CarrierRejected, Some(why)),
        Refusal::Congested => (
            Status::Failed,
            EndReason::CarrierRejected,
            Some("the trunk has no room".into()),
        ),
    };
    finish(session, (status, reason), EndedBy::System, error, now)
}

fn abandon(session: Session, abandoned: Abandoned, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Abandoned {
        status,
        reason,
        by,
        why,
    } = abandoned;
    finish(session, (status, reason), by, why, now)
}

fn canceled(session: Session, by: EndedBy, why: Option<&str>, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let end = (Status::Failed, EndReason::Canceled);
    finish(session, end, by, why.map(str::to_owned), now)
}

/// Only a trunk that was full sends a campaign's call to the queue.
fn slot_never_came(session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let (reason, why) = if session.call.campaign_id.is_some() {
        (EndReason::CarrierRejected, "the trunk had no room for it")
    } else {
        (
            EndReason::Canceled,
            "no slot became free before `queue_ttl_seconds` passed",
        )
    };
    finish(
        session,
        (Status::Failed, reason),
        EndedBy::System,
        Some(why.into()),
        now,
    )
}

/// What happens when a call ends, whoever ends it: this list, in this order.
fn finish(
    mut session: Session,
    (status, reason): (Status, EndReason),
    by: EndedBy,
    error: Option<String>,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    let was_live = session.is_live();
    let end = ended(&session, (status, reason), by, error, now);
    let recording = recording(&session, reason, now);
    // The id was for a recording that nobody agreed to.
    if recording.is_none() && session.call.recording_id.is_some() {
        Arc::make_mut(&mut session.call).recording_id = None;
    }
    let log = std::mem::take(&mut session.log).closed(end.started_at, now);
    let call = session.call.clone();
    session.phase = Phase::Ended(end.clone());

    let mut effects = Vec::new();
    if end.started_at.is_none() {
        effects.extend(inbound(&session, inbound_call::Outcome::Abandoned));
    }
    let last_event = last_event(&session, &end, &log);
    let attempt = attempt(&call, &end);
    if !log.is_empty() {
        effects.push(Effect::SaveTranscript(log.transcript(call.id)));
    }
    effects.push(last_event);
    effects.extend(session.settled(attempt.actual_cost_cents));
    if let Some(contact_id) = call.contact_id {
        effects.push(Effect::FinishAttempt {
            contact: Owned::new(call.tenant_id, call.env, contact_id),
            attempt,
        });
    }
    if !log.answers.is_empty() {
        effects.push(Effect::SaveAnswers {
            call: call.clone(),
            answers: log.answers.clone(),
            source: answer::Source::Agent,
        });
    }
    if let Some(job) = evaluation(&session, status, &log, now) {
        effects.push(Effect::StartEvaluation(job));
    }
    if let Some(row) = recording {
        effects.push(Effect::StartRecording {
            row,
            sounds: log.sounds,
        });
    }
    if let Some(room) = call.room_id {
        effects.push(Effect::RoomEnded {
            room: Owned::new(call.tenant_id, call.env, room),
            session: Box::new(session.row()),
        });
    }
    if was_live {
        effects.push(Effect::HangUp { session: session.key() });
    }
    // From the queue too: the dispatcher may have given it a slot at this very moment.
    effects.push(Effect::SlotFreed {
        tenant_id: call.tenant_id,
        session_id: call.id,
    });
    effects.push(Effect::OverheardEnd(call.id));
    Ok((session, effects))
}

fn ended(
    session: &Session,
    (status, reason): (Status, EndReason),
    by: EndedBy,
    error: Option<String>,
    now: Moment,
) -> End {
    let (dialed_at, started_at, answered_by) = match &session.phase {
        Phase::Dialing { dialed_at, .. } => {
            let machine = (reason == EndReason::Voicemail).then_some(AnsweredBy::Voicemail);
            (Some(*dialed_at), None, machine)
        }
        Phase::Conversing(talk) => (Some(talk.dialed_at), Some(talk.started_at), Some(talk.answered_by)),
        Phase::Scheduled { .. } | Phase::Awaiting | Phase::Queued { .. } | Phase::Ended(_) => (None, None, None),
    };
    // A call that a crash cut off had ended by then, whenever the service comes back; nobody pays for the time between. Its words
    // went with the crash.
    let at = match &session.phase {
        Phase::Conversing(talk) if reason == EndReason::NodeLost && session.log.is_empty() => now.min(talk.end_by),
        _ => now,
    };
    End {
        at,
        status,
        reason,
        by,
        dialed_at,
        started_at,
        answered_by,
        error,
    }
}

fn last_event(session: &Session, end: &End, log: &Log) -> Effect {
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
        started_at: end.started_at,
        ended_at: end.at,
        duration_seconds: end.duration_seconds(),
        actual_cost_cents: cost(call.price_cents_per_minute, end.duration_seconds()),
        transcript: log.turns.clone(),
        transcript_url: (!log.turns.is_empty())
            .then(|| format!("{}/v1/sessions/{}/transcript.json", session.base_url, call.id)),
        function_invocations: log.invocations.clone(),
    };
    Effect::Emit(if end.status == Status::Completed {
        ended.into()
    } else {
        SessionFailed::from(ended).into()
    })
}

fn attempt(call: &Row, end: &End) -> Attempt {
    Attempt {
        row: DeliveryRowId(call.id.0),
        dialed_at: end.dialed_at,
        answered: end.answered_by.is_some(),
        ending: Ending::Call(end.status, end.reason),
        // A message that was left may be as good as a talk.
        reached: end.status == Status::Completed
            || end.reason == EndReason::VoicemailLeft && call.options.voicemail.counts_as_reached,
        disposition_code: call.disposition_code.clone(),
        duration_seconds: end.duration_seconds(),
        actual_cost_cents: cost(call.price_cents_per_minute, end.duration_seconds()),
    }
}

/// What is found out after the end: campaign calls are classified, unless the agent did it; questions are looked up.
fn evaluation(session: &Session, status: Status, log: &Log, now: Moment) -> Option<evaluation::Model> {
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
const EVALUATION_SECONDS: i64 = 120;

/// The row of what was recorded; its actor stores the sound. Of a call that was lost there is nothing to hear.
fn recording(session: &Session, reason: EndReason, now: Moment) -> Option<recording::Model> {
    let call = &session.call;
    let recorded = call.options.recording.as_ref()?;
    let (started_at, from) = match &session.phase {
        Phase::Conversing(talk) => (talk.started_at, talk.recorded_from?),
        Phase::Scheduled { .. } | Phase::Awaiting | Phase::Queued { .. } | Phase::Dialing { .. } | Phase::Ended(_) => {
            return None;
        }
    };
    let lost = reason == EndReason::NodeLost;
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
        purge_after,
        purge_reason,
        error: lost.then(|| LOST.into()),
        completed_at: None,
        purged_at: None,
        version: 1,
        created_at: now,
    })
}

/// The specification's event comes once, and not for what the agent itself has said.
fn evaluate(mut session: Session, found: Evaluated, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let mut effects = Vec::new();
    if let Some(Disposition { code, note }) = found.disposition {
        let by_now = session.call.disposition_by;
        // What a person has decided is not overruled by a machine, and what is known is not found out twice.
        if found.by == Evaluator::Human || by_now.is_none() {
            let call = Arc::make_mut(&mut session.call);
            call.disposition_code = Some(code.clone());
            call.disposition_note = Some(note.clone());
            call.disposition_by = Some(found.by);
            effects.extend(classified(call, (code, note), &found.by, found.model, by_now, now));
        }
    }
    if !found.answers.is_empty() {
        effects.push(Effect::SaveAnswers {
            call: session.call.clone(),
            answers: found.answers,
            source: match found.by {
                Evaluator::Agent => answer::Source::Agent,
                Evaluator::Human => answer::Source::Human,
                Evaluator::Llm => answer::Source::Llm,
                Evaluator::Rules => answer::Source::Rules,
            },
        });
    }
    if let Some(job) = found.job {
        effects.push(Effect::SaveEvaluation(job));
    }
    Ok((session, effects))
}

fn classified(
    call: &Row,
    (disposition_code, disposition_note): (String, String),
    by: &Evaluator,
    model: Option<String>,
    before: Option<Evaluator>,
    now: Moment,
) -> Vec<Effect> {
    let (Some(campaign_id), Some(contact_id)) = (call.campaign_id, call.contact_id) else {
        return Vec::new();
    };
    let mut effects = vec![Effect::DisposeContact {
        contact_id,
        session_id: call.id,
        code: disposition_code.clone(),
    }];
    // Source: specification, "session.disposition_set": not without dispositions to choose from, not for what the agent said.
    if before.is_none() && call.options.has_dispositions {
        let set = SessionDispositionSet {
            session_id: call.id,
            campaign_id,
            contact_id,
            disposition_code,
            disposition_note,
            evaluated_at: now,
            evaluator: *by,
            model,
        };
        effects.push(Effect::Emit(set.into()));
    }
    effects
}

/// The row stays, for what refers to it; what was said and who it was goes.
fn delete(mut session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let call = Arc::make_mut(&mut session.call);
    call.deleted_at = Some(now);
    (call.email, call.first_name, call.last_name) = (None, None, None);
    (call.variables, call.metadata) = Default::default();
    (call.disposition_note, call.client_reference_id) = (None, None);
    let effects = vec![Effect::Forget {
        session: session.key(),
        recording: session.call.recording_id,
    }];
    Ok((session, effects))
}

/// The reason as the API writes it.
pub fn code(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Completed => "completed",
        EndReason::Transferred => "transferred",
        EndReason::SilenceTimeout => "silence_timeout",
        EndReason::OptOut => "opt_out",
        EndReason::ConsentRefused => "consent_refused",
        EndReason::Declined => "declined",
        EndReason::VoicemailLeft => "voicemail_left",
        EndReason::AgentError => "agent_error",
        EndReason::ProviderError => "provider_error",
        EndReason::MaxDuration => "max_duration",
        EndReason::NoAnswer => "no_answer",
        EndReason::Busy => "busy",
        EndReason::Voicemail => "voicemail",
        EndReason::InvalidNumber => "invalid_number",
        EndReason::Unreachable => "unreachable",
        EndReason::MediaTimeout => "media_timeout",
        EndReason::RoomExpired => "room_expired",
        EndReason::CreditsDepleted => "credits_depleted",
        EndReason::CarrierRejected => "carrier_rejected",
        EndReason::Canceled => "canceled",
        EndReason::NodeLost => "node_lost",
    }
}

fn refused(state: &'static str, command: &'static str, hint: &'static str) -> Error {
    Error::InvalidState {
        kind: "session",
        state,
        command,
        hint,
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
