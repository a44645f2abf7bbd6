//! What a session is: its phases and their data, and how one is born.
use super::*;

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
    /// is being connected. Picked up or not, it is not known by whom: when it was is in the row.
    Dialing {
        dialed_at: Moment,
        /// When ringing is given up; or, picked up, when it must be known by whom.
        give_up_at: Moment,
        ringing: bool,
    },
    Conversing(ActiveCall),
    Ended(End),
}

/// Somebody, or something, has picked up.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveCall {
    pub dialed_at: Moment,
    pub started_at: Moment,
    pub end_by: Moment,
    pub answered_by: AnsweredBy,
    pub mode: CallMode,
    /// Until then somebody speaks, or is waited for: silence begins there.
    pub quiet_from: Moment,
    /// The other side is listened to, whatever becomes of the agent's words meanwhile.
    pub user_speech: Option<UserSpeech>,
    /// The other side has put us on hold: nobody's silence counts.
    pub on_hold: bool,
    /// Since when it is recorded.
    pub recorded_from: Option<Moment>,
    /// When what is set aside for it is used up, or is to be looked at again; `None`: that covers all that it can cost.
    pub hold_ends_at: Option<Moment>,
}

/// The other side speaks, or cannot be heard: that was told then, and is no silence before the other moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserSpeech {
    pub told_at: Moment,
    pub until: Moment,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CallMode {
    Talking,
    /// A machine is told the message.
    LeavingMessage,
    /// Somebody else is called to take over.
    Transferring {
        to: E164,
        until: Moment,
    },
    /// Somebody else has taken over, and we carry both sides: no agent, no words, no recording. Both legs cost.
    Bridged {
        to: E164,
        since: Moment,
    },
    /// The agent says goodbye; the call ends for that reason, by then at the latest.
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
    pub picked_up_at: Option<Moment>,
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

    pub(super) fn held(&self) -> Option<Effect> {
        self.set_aside(self.call.hold_cents)
    }

    pub(super) fn set_aside(&self, cents: Cents) -> Option<Effect> {
        let call = &self.call;
        let hold = Movement::hold((call.tenant_id, call.env), call.id.0, cents);
        (cents.0 > 0).then_some(Fact::Move(hold).into())
    }

    /// Ends what was set aside, once: a session ends once.
    pub(super) fn settled(&self, cost: Cents) -> Option<Effect> {
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

    pub fn key(&self) -> TenantScoped<SessionId> {
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
    pub fn mode(&self) -> (std::mem::Discriminant<Phase>, Option<std::mem::Discriminant<CallMode>>) {
        let mode = match &self.phase {
            Phase::Conversing(talk) => Some(std::mem::discriminant(&talk.mode)),
            Phase::Scheduled { .. }
            | Phase::Awaiting
            | Phase::Queued { .. }
            | Phase::Dialing { .. }
            | Phase::Ended(_) => None,
        };
        (std::mem::discriminant(&self.phase), mode)
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
            && self.picked_up_at.is_none()
            && self.started_at.is_none()
    }

    /// Whole seconds of conversation.
    pub fn duration_seconds(&self) -> i32 {
        self.seconds_since(self.started_at)
    }

    /// Whole seconds that are paid for: those of the conversation, and those in which a second leg was carried once more.
    pub fn billed_seconds(&self, call: &Row) -> i32 {
        self.duration_seconds()
            .saturating_add(self.seconds_since(call.bridged_at))
    }

    fn seconds_since(&self, began: Option<Moment>) -> i32 {
        began.map_or(0, |began| {
            i32::try_from(self.at.since(began).as_secs()).unwrap_or(i32::MAX)
        })
    }
}
