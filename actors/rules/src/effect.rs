//! Everything that a transition can cause: decided in the machines, written with the state, performed after the commit.
use crate::{
    barred::Whom,
    contact,
    dispatch::route::Route,
    event::Event,
    law::{OpenedMessage, record::Closing},
    mail::Mail,
    session::{command::Command as SessionCommand, log::Answered},
};
use bytes::Bytes;
use entities::{
    answer, call_hour,
    campaign::CompletedReason,
    changes::{Guard, Queue},
    evaluation,
    ids::{
        CampaignId, ContactId, EmailId, EndpointId, NumberId, RecordingId, RoomId, SessionId, SmsId, TenantId,
        TenantScoped, VoiceId,
    },
    inbound_call,
    ledger::Movement,
    message_send, recording,
    rest::RestCause,
    session, transcript,
    values::{Cents, E164, Moment},
    voice,
};
use std::{
    fmt::{self, Debug, Formatter},
    sync::Arc,
};

/// The list of everything the service can do, by what becomes of it in a crash.
#[derive(Clone, PartialEq)]
pub enum Effect {
    Fact(Fact),
    Work(Work),
    Hint(Hint),
}

impl Effect {
    pub fn emit(event: impl Into<Event>) -> Self {
        Fact::Emit(event.into()).into()
    }
}
impl From<Fact> for Effect {
    fn from(fact: Fact) -> Self {
        Effect::Fact(fact)
    }
}
impl From<Work> for Effect {
    fn from(work: Work) -> Self {
        Effect::Work(work)
    }
}
impl From<Hint> for Effect {
    fn from(hint: Hint) -> Self {
        Effect::Hint(hint)
    }
}

/// As what it is: of which kind goes without saying.
impl Debug for Effect {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Fact(fact) => fact.fmt(f),
            Effect::Work(work) => work.fmt(f),
            Effect::Hint(hint) => hint.fmt(f),
        }
    }
}

/// Rows in the transaction that saves the state: they either all stand or none does.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A condition inside that transaction.
    Require(Guard),
    Emit(Event),
    SaveTranscript(transcript::Model),
    /// Somebody must not be reached any more, and said so in a talk.
    AddToDnc {
        whom: Whom,
        session_id: SessionId,
    },
    /// Nothing more is written to a number: its person told the provider so.
    StopTexts {
        phone_number: E164,
    },
    /// The intent to hand a message over.
    SaveSend(message_send::Model),
    SaveAnswers {
        call: Arc<session::Model>,
        answers: Vec<Answered>,
        source: answer::Source,
    },
    /// Somebody said no in a call that is over by now.
    Decline {
        phone_number: E164,
        session_id: SessionId,
        at: Moment,
    },
    /// How the contact's last call was classified.
    DisposeContact {
        contact_id: ContactId,
        session_id: SessionId,
        code: String,
    },
    SaveEvaluation(evaluation::Model),
    SaveRecording(recording::Model),
    /// What was said before the end and understood after it holds for the sound too: it is kept until then at most, or, without
    /// a moment, not at all.
    PurgeRecording {
        recording: TenantScoped<RecordingId>,
        keep_until: Option<Moment>,
    },
    /// What became of a call to one of the tenant's numbers.
    CountInbound {
        call: Arc<session::Model>,
        number_id: NumberId,
        outcome: inbound_call::InboundOutcome,
    },
    /// A call has ended that was placed or came in: it counts for the hour in which it began.
    CountCall(CallCount),
    /// What was said, and answered, is removed.
    Forget {
        session: TenantScoped<SessionId>,
        recording: Option<RecordingId>,
    },
    /// What an e-mail said is removed.
    ForgetEmail(EmailId),
    /// The contact's move at the end of one call to it.
    FinishAttempt {
        contact: TenantScoped<ContactId>,
        attempt: contact::machine::Attempt,
    },
    /// A message that is about to be handed over, for the record that proves it.
    OpenAttempt(Box<OpenedMessage>),
    /// What came of an attempt, for the record that proves it.
    CloseAttempt(Closing),
    /// What becomes of all that this endpoint has not received.
    Deliveries {
        endpoint: TenantScoped<EndpointId>,
        queue: Queue,
    },
    /// An e-mail to each owner of the workspace.
    MailOwners(Mail),
    /// Credits are set aside, charged or let go.
    Move(Movement),
    /// What was found out about samples of a voice; those that were uploaded count from now on.
    SaveVoiceSamples(Vec<voice::sample::Model>),
    /// No sample of a voice is left.
    ForgetVoiceSamples(VoiceId),
}

/// What a call that has ended adds to its workspace's statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct CallCount {
    pub began_at: Moment,
    /// A person or a machine picked up.
    pub answered: bool,
    pub duration_seconds: i32,
    pub cost: Cents,
    /// Of a call that we have placed.
    pub placed: Option<Placed>,
}

/// What a call that we have placed adds to its number's counts and its campaign's, and to what is known of whom it was for.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    pub session_id: SessionId,
    pub from_number: Option<E164>,
    pub to_number: E164,
    pub campaign: Option<(CampaignId, ContactId)>,
    /// A person has answered.
    pub is_live: bool,
    /// The call counts as abandoned.
    pub abandoned: Option<session::WhyAbandoned>,
    /// Turned down for the number that it showed, by a network or by what somebody has set up.
    pub is_blocked: bool,
    /// When the person said no, if so.
    pub declined_at: Option<Moment>,
    pub ended_at: Moment,
}

impl Placed {
    /// Whom it was for, and since when that person is to be left alone.
    pub fn rests(&self) -> Vec<(RestCause, Moment)> {
        let abandoned = self.abandoned.map(|_| (RestCause::Abandoned, self.ended_at));
        let declined = self.declined_at.map(|at| (RestCause::Declined, at));
        abandoned.into_iter().chain(declined).collect()
    }
}

impl CallCount {
    /// As the one call of its hour, of which nothing is counted yet.
    pub fn in_hour(&self, empty: call_hour::Model) -> call_hour::Model {
        call_hour::Model {
            started: 1,
            answered: self.answered.into(),
            duration_seconds: self.duration_seconds.into(),
            cost_cents: self.cost.0,
            ..empty
        }
    }
}

/// Work for the outside, or in many slices, begun after the commit. A row says that it is under way: what a crash interrupts is
/// found there.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    HangUp {
        session: TenantScoped<SessionId>,
    },
    /// What a room's end makes of its session. May be lost: whoever finds the two out of step does it again.
    TellSession(TenantScoped<SessionId>, SessionCommand),
    /// A room's session has ended: the page is told, and the room follows, as it does when this is lost.
    RoomEnded {
        room: TenantScoped<RoomId>,
        session: Box<session::Model>,
    },
    /// Hands a call over to somebody else.
    Transfer {
        session: TenantScoped<SessionId>,
        to: E164,
    },
    /// A call that was to be handed over stays with its agent.
    TransferEnded {
        session: TenantScoped<SessionId>,
    },
    /// A live call has used up what is set aside for it: more is asked for.
    ExtendHold {
        call: Arc<session::Model>,
        started_at: Moment,
    },
    /// Hands a message over, once.
    SendSms(TenantScoped<SmsId>),
    SendEmail(TenantScoped<EmailId>),
    /// What is to be found out about a talk.
    Evaluate(evaluation::Model),
    /// What goes over the call's line is recorded from now on; of one without sound a recording is made of its words.
    BeginRecording(Arc<session::Model>),
    /// What was recorded of a line is stored, or must not be: its spool is removed.
    EraseSpool(TenantScoped<SessionId>),
    /// The talk is over, and its recording is to be made. The sounds of some turns, by their places, are kept in memory until it is
    /// stored.
    KeepSounds {
        recording: TenantScoped<RecordingId>,
        sounds: Vec<(usize, Bytes)>,
    },
    StoreSound(TenantScoped<RecordingId>),
    EraseSound(TenantScoped<RecordingId>),
    TrainVoice(TenantScoped<VoiceId>),
    /// Of a deleted voice everything; else what its provider has and nobody uses.
    EraseVoice(TenantScoped<VoiceId>),
    /// Puts away what a campaign has not called, in slices: it was canceled, or its time is over.
    PutAwayContacts {
        campaign: TenantScoped<CampaignId>,
        reason: CompletedReason,
    },
    /// Judges anew, in slices, who waits: the campaign's rules have changed.
    ReviewContacts(TenantScoped<CampaignId>),
}

/// To other actors. May be lost; the receiver finds the same thing in its rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    /// What the tenant's campaigns are has changed.
    CampaignsChanged(TenantId),
    /// Who is in a campaign, or may be called, has changed.
    ContactsChanged(TenantScoped<CampaignId>),
    /// A contact that was not reached may be due again before its campaign wakes up.
    ContactWaits(TenantScoped<ContactId>),
    /// A session waits for a slot.
    SessionQueued(TenantId),
    /// A call has ended and its slot is free.
    SlotFreed {
        tenant_id: TenantId,
        session_id: SessionId,
    },
    /// A campaign's message has ended.
    MessageEnded(TenantScoped<CampaignId>),
    /// A trunk had no room for a call.
    TrunkCongested {
        tenant_id: TenantId,
        route: Route,
    },
    /// This service itself had no room for a call.
    NoRoom(TenantId),
    /// Something was said in a call.
    Overheard {
        session_id: SessionId,
        /// Its place in the transcript.
        place: usize,
        turn: transcript::Turn,
    },
    /// The words of something that was overheard are known now.
    Understood {
        session_id: SessionId,
        place: usize,
        turn: transcript::Turn,
    },
    OverheardEnd(SessionId),
    /// A call to this number was counted: its answer rate may be alarming.
    InboundCounted(TenantScoped<NumberId>),
    /// A campaign may have nothing left to do.
    CheckDrained(TenantScoped<CampaignId>),
    /// An endpoint's settings have changed.
    EndpointChanged(TenantScoped<EndpointId>),
    /// A mail to users waits.
    MailQueued,
}

/// What a dispatcher is told: there may be something to dispatch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DispatchHint {
    CampaignsChanged,
    SessionQueued,
    SlotFreed(SessionId),
    MessageEnded(CampaignId),
    TrunkCongested(Route),
    /// This service itself had no room for a call: whatever trunk it was to go over, none is tried for a moment.
    NoRoom,
}
