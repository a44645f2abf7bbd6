//! A session: one call. Scheduled -> Queued -> Dialing -> Conversing -> Ended, and Ended from each of them. Ended is final.
//! A trunk that has no room for a call sends it back to the queue.
//!
//! | status (specification) | phase here |
//! |---|---|
//! | `queued` | Scheduled, Queued, Dialing |
//! | `in_progress` | Conversing |
//! | `completed`, `failed`, `no_answer`, `voicemail`, `busy` | Ended |
//!
//! `completed` if and only if a human conversation ran to its end. Source: specification, "Session"; CONTRACT §4.
use crate::{
    contact::machine::Attempt,
    effect::Effect,
    event::{SessionCreated, SessionEnded, SessionFailed, SessionStarted},
};
use entities::{
    Error, Result,
    ids::{Owned, SessionId},
    session::{AnsweredBy, EndReason, EndedBy, Model as Row, Status},
    transcript::{Speaker, Turn},
    values::{Cents, Moment},
};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The row as it was created: who calls whom, for what, and when. Its state's columns are not looked at.
    pub call: Arc<Row>,
    pub phase: Phase,
    /// What has been said so far. Saved at the end.
    pub turns: Vec<Turn>,
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
    /// Waits for a slot.
    Queued {
        until: Moment,
    },
    /// The intent to call is committed; the call may have left.
    Dialing {
        dialed_at: Moment,
        give_up_at: Moment,
        ringing: bool,
    },
    Conversing {
        dialed_at: Moment,
        started_at: Moment,
        end_by: Moment,
    },
    Ended(End),
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
    /// A slot is free: place the call, at that moment.
    Dispatch { at: Moment },
    /// It may not be called now; the hours open again then.
    Postpone { until: Moment },
    /// It may not be called at all.
    Bar(Bar),
    /// The other side's phone rings.
    Ring,
    /// A person picked up.
    Answer,
    /// A machine picked up.
    AnswerByMachine,
    /// The call was not connected.
    Refuse(Refusal),
    /// Something was said.
    Utter(Speaker, String),
    /// A side of the conversation hung up.
    HangUp(EndedBy),
    /// The API wants it to end.
    End,
    /// The service stops and cannot carry the call on.
    Shutdown,
    /// Nobody knows what became of the call.
    Lose,
}

/// Why a carrier did not connect a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    Busy,
    NoAnswer,
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

    /// A session that is dialled at once: its slot is taken with its birth.
    pub fn dialed(call: Row, base_url: Arc<str>, at: Moment) -> (Self, Vec<Effect>) {
        let phase = dialing(&call, at);
        let session = Self::born(call, base_url, phase);
        let effects = vec![session.created()];
        (session, effects)
    }

    fn born(call: Row, base_url: Arc<str>, phase: Phase) -> Self {
        Session {
            call: Arc::new(call),
            phase,
            turns: Vec::new(),
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
            Phase::Scheduled { .. } | Phase::Queued { .. } | Phase::Dialing { .. } => Status::Queued,
            Phase::Conversing { .. } => Status::InProgress,
            Phase::Ended(end) => end.status,
        }
    }

    /// Does it take one of the tenant's slots?
    pub fn is_live(&self) -> bool {
        matches!(self.phase, Phase::Dialing { .. } | Phase::Conversing { .. })
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
    let slot_never_came = "no slot became free before `queue_ttl_seconds` passed";
    match (&session.phase, command) {
        (Scheduled { at }, Tick) if now >= *at => enqueue(session, now),
        (Scheduled { .. }, End) => end(session, Status::Failed, EndReason::Canceled, EndedBy::Api, None, now),

        (Queued { .. }, Dispatch { at }) => dispatch(session, at),
        (Queued { .. }, Postpone { until }) if until > now => postpone(session, until),
        (Queued { .. }, Bar(bar)) => end(
            session,
            Status::Failed,
            EndReason::Canceled,
            EndedBy::System,
            Some(why_barred(bar).into()),
            now,
        ),
        // Only a trunk that was full sends a campaign's call to the queue.
        (Queued { until }, Tick) if now >= *until && session.call.campaign_id.is_some() => end(
            session,
            Status::Failed,
            EndReason::CarrierRejected,
            EndedBy::System,
            Some("the trunk had no room for it".into()),
            now,
        ),
        (Queued { until }, Tick) if now >= *until => end(
            session,
            Status::Failed,
            EndReason::Canceled,
            EndedBy::System,
            Some(slot_never_came.into()),
            now,
        ),
        (Queued { .. }, End) => end(session, Status::Failed, EndReason::Canceled, EndedBy::Api, None, now),

        (Dialing { .. }, Ring) => ring(session),
        (Dialing { .. }, Answer) => answer(session, now),
        (Dialing { .. }, AnswerByMachine) => end(
            session,
            Status::Voicemail,
            EndReason::Voicemail,
            EndedBy::System,
            None,
            now,
        ),
        (Dialing { .. }, Refuse(Refusal::Congested)) => send_back(session),
        (Dialing { .. }, Refuse(refusal)) => refuse(session, refusal, now),
        (Dialing { give_up_at, .. }, Tick) if now >= *give_up_at => end(
            session,
            Status::NoAnswer,
            EndReason::NoAnswer,
            EndedBy::System,
            None,
            now,
        ),
        (Dialing { .. }, End) => end(session, Status::Failed, EndReason::Canceled, EndedBy::Api, None, now),
        (Dialing { .. }, Shutdown) => end(
            session,
            Status::Failed,
            EndReason::Canceled,
            EndedBy::System,
            Some("the service stopped".into()),
            now,
        ),

        (Conversing { .. }, Utter(role, content)) => utter(session, role, content, now),
        (Conversing { .. }, HangUp(by)) => end(session, Status::Completed, EndReason::Completed, by, None, now),
        (Conversing { end_by, .. }, Tick) if now >= *end_by => end(
            session,
            Status::Completed,
            EndReason::MaxDuration,
            EndedBy::System,
            None,
            now,
        ),
        (Conversing { .. }, End) => end(
            session,
            Status::Completed,
            EndReason::Completed,
            EndedBy::Api,
            None,
            now,
        ),
        (Conversing { .. }, Shutdown) => end(
            session,
            Status::Completed,
            EndReason::Canceled,
            EndedBy::System,
            Some("the service stopped".into()),
            now,
        ),

        (Dialing { .. } | Conversing { .. }, Lose) => end(
            session,
            Status::Failed,
            EndReason::NodeLost,
            EndedBy::System,
            Some("the service was interrupted while the call was live".into()),
            now,
        ),
        (Dialing { .. }, HangUp(by)) => end(session, Status::Failed, EndReason::Canceled, by, None, now),

        // Ticks come early and carriers repeat themselves: a second time is no change, not an error.
        (_, Tick) => Ok((session, Vec::new())),
        (Scheduled { .. } | Queued { .. }, Shutdown | Lose)
        | (Scheduled { .. } | Dialing { .. } | Conversing { .. }, Dispatch { .. } | Postpone { .. } | Bar(_))
        | (Queued { .. }, Postpone { .. } | Ring | Refuse(Refusal::Congested))
        | (Conversing { .. }, Ring | Answer) => Ok((session, Vec::new())),
        (
            Ended(_),
            Dispatch { .. }
            | Postpone { .. }
            | Bar(_)
            | Ring
            | Answer
            | AnswerByMachine
            | Refuse(_)
            | Utter(..)
            | HangUp(_)
            | Shutdown
            | Lose,
        ) => Ok((session, Vec::new())),

        (Ended(_), End) => Err(refused("ended", "end", "it has ended already")),
        (Scheduled { .. } | Queued { .. }, Ring | Answer | AnswerByMachine | Refuse(_) | Utter(..) | HangUp(_)) => {
            Err(refused("queued", "talk", "it has not been dialled"))
        }
        (Dialing { .. }, Utter(..)) => Err(refused("dialing", "talk", "nobody has answered")),
        (Conversing { .. }, AnswerByMachine | Refuse(_)) => Err(refused("conversing", "be refused", "it was answered")),
    }
}

/// The next moment at which `Tick` can matter.
pub fn next_deadline(session: &Session) -> Option<Moment> {
    match &session.phase {
        Phase::Scheduled { at } => Some(*at),
        Phase::Queued { until } => Some(*until),
        Phase::Dialing { give_up_at, .. } => Some(*give_up_at),
        Phase::Conversing { end_by, .. } => Some(*end_by),
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
fn dispatch(mut session: Session, at: Moment) -> Result<(Session, Vec<Effect>)> {
    session.phase = dialing(&session.call, at);
    Ok((session, Vec::new()))
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

fn answer(mut session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Dialing { dialed_at, .. } = session.phase {
        let end_by = now.plus_seconds(session.call.max_duration_seconds.into());
        session.phase = Phase::Conversing {
            dialed_at,
            started_at: now,
            end_by,
        };
    }
    let started = SessionStarted {
        session_id: session.call.id,
        started_at: now,
    };
    Ok((session, vec![Effect::Emit(started.into())]))
}

/// A talk has at most this many turns; more are not kept.
const MAX_TURNS: usize = 2_000;

fn utter(mut session: Session, role: Speaker, content: String, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing { started_at, .. } = session.phase
        && session.turns.len() < MAX_TURNS
    {
        session.turns.push(Turn {
            role,
            content,
            t: now.since(started_at).as_secs_f64(),
        });
    }
    Ok((session, Vec::new()))
}

fn refuse(session: Session, refusal: Refusal, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let (status, reason, error) = match refusal {
        Refusal::Busy => (Status::Busy, EndReason::Busy, None),
        Refusal::NoAnswer => (Status::NoAnswer, EndReason::NoAnswer, None),
        Refusal::InvalidNumber(why) => (Status::Failed, EndReason::InvalidNumber, Some(why)),
        Refusal::Rejected(why) => (Status::Failed, EndReason::CarrierRejected, Some(why)),
        Refusal::Congested => (
            Status::Failed,
            EndReason::CarrierRejected,
            Some("the trunk has no room".into()),
        ),
    };
    end(session, status, reason, EndedBy::System, error, now)
}

/// What happens when a call ends, whoever ends it: this list, in this order.
fn end(
    mut session: Session,
    status: Status,
    reason: EndReason,
    by: EndedBy,
    error: Option<String>,
    now: Moment,
) -> Result<(Session, Vec<Effect>)> {
    let was_live = session.is_live();
    let (dialed_at, started_at) = match session.phase {
        Phase::Dialing { dialed_at, .. } => (Some(dialed_at), None),
        Phase::Conversing {
            dialed_at, started_at, ..
        } => (Some(dialed_at), Some(started_at)),
        Phase::Scheduled { .. } | Phase::Queued { .. } | Phase::Ended(_) => (None, None),
    };
    let answered_by = match reason {
        EndReason::Voicemail => Some(AnsweredBy::Voicemail),
        _ => started_at.map(|_| AnsweredBy::Human),
    };
    let end = End {
        at: now,
        status,
        reason,
        by,
        dialed_at,
        started_at,
        answered_by,
        error,
    };
    let turns = std::mem::take(&mut session.turns);
    let call = session.call.clone();
    let actual_cost_cents = cost(call.price_cents_per_minute, end.duration_seconds());
    let ended = SessionEnded {
        session_id: call.id,
        client_reference_id: call.client_reference_id.clone(),
        campaign_id: call.campaign_id,
        contact_id: call.contact_id,
        from_number: call.from_number.clone(),
        to_number: Some(call.to_number.clone()),
        phone_number: Some(call.to_number.clone()),
        email: call.email.clone(),
        first_name: call.first_name.clone(),
        last_name: call.last_name.clone(),
        status,
        end_reason: reason,
        started_at,
        ended_at: now,
        duration_seconds: end.duration_seconds(),
        actual_cost_cents,
        transcript: turns.clone(),
        transcript_url: (!turns.is_empty())
            .then(|| format!("{}/v1/sessions/{}/transcript.json", session.base_url, call.id)),
        function_invocations: Vec::new(),
    };
    let attempt = Attempt {
        session_id: call.id,
        dialed_at,
        answered: end.answered_by.is_some(),
        status,
        reason,
        duration_seconds: end.duration_seconds(),
        actual_cost_cents,
    };
    session.phase = Phase::Ended(end);

    let mut effects = Vec::new();
    if !turns.is_empty() {
        effects.push(Effect::SaveTranscript {
            session_id: call.id,
            turns,
        });
    }
    effects.push(Effect::Emit(if status == Status::Completed {
        ended.into()
    } else {
        SessionFailed::from(ended).into()
    }));
    if let Some(contact_id) = call.contact_id {
        effects.push(Effect::FinishAttempt {
            contact: Owned::new(call.tenant_id, call.env, contact_id),
            attempt,
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
    Ok((session, effects))
}

/// The reason as the API writes it.
pub fn code(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Completed => "completed",
        EndReason::MaxDuration => "max_duration",
        EndReason::NoAnswer => "no_answer",
        EndReason::Busy => "busy",
        EndReason::Voicemail => "voicemail",
        EndReason::InvalidNumber => "invalid_number",
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
