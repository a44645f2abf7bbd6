//! What a session can be told.
use super::{
    latency::TurnMarks,
    log::{Answered, Utterance},
    sip_answer::{Attestation, SipAnswer},
};
use bytes::Bytes;
use entities::{
    agent::ConsentMode,
    evaluation,
    ids::{FunctionId, RecordingId},
    law::DisclosureKind,
    session::{AnsweredBy, EndReason, EndedBy, Evaluator, Quality, Status},
    transcript::{Invocation, ToolCall},
    values::{Cents, E164, Metadata, Moment},
};

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Look at the time.
    Tick,
    /// A slot is free: place the call, at that moment; so much is set aside for it, if nothing is yet.
    Dispatch { at: Moment, hold: Cents },
    /// It lasts longer than is set aside for: so much more is, if that is still all there is of it.
    Extend { held: Cents, by: Cents },
    /// It may not be called now; the hours open again then.
    Postpone { until: Moment },
    /// The rules have changed by which it was put off.
    Release,
    /// It may not be called at all.
    Reject(RejectReason),
    /// The carrier says how it has signed the call.
    NoteAttestation(Attestation),
    /// The other side's phone rings.
    Ring,
    /// Picked up, and it is not known yet by whom: the carrier bills from now on.
    PickUp,
    /// It is known who has picked up; without a `PickUp` before it, at this moment. If it is recorded, the recording gets that id.
    Answer { by: AnsweredBy, recording_id: RecordingId },
    /// The call was not connected; `sip`: what its carrier has answered.
    Refuse { refusal: Refusal, sip: Option<SipAnswer> },
    /// Somebody begins to say something.
    Utter(Utterance),
    /// More of the agent's words in the turn of that place is known, which are still being said: all of them so far.
    Saying { place: usize, content: String },
    /// The agent's words in the turn of that place have been said, whose sound was still being made when they began: how long
    /// they took, and their sound as a recording keeps it, G.711 mu-law of 8 kHz.
    Spoken {
        place: usize,
        ms: u64,
        audio: Option<Bytes>,
        /// The words, where not all of them were known when they began.
        content: Option<String>,
    },
    /// The other side cut in, or the voice broke off: of the agent's last words only these were heard, and so much of their
    /// sound.
    Interrupt { said: String, played_ms: u64 },
    /// What the other side said in the turn of that place was understood: it stood there without its words.
    Understood { place: usize, words: String },
    /// The other side speaks and is listened to, or cannot be heard at the moment; its words come by then at the latest.
    UserSpeaking { until: Moment },
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
    /// The other one has taken over, and nothing of the call is ours any more.
    Transferred,
    /// The other one has picked up, and we carry both.
    Bridge { to: E164 },
    /// The one who had taken over has hung up.
    BridgeEnded,
    /// The other one could not be reached.
    TransferFailed { why: String },
    /// The agent says how the call went.
    Dispose { code: String, note: String },
    /// The agent notes what was answered to a question.
    NoteAnswer(Answered),
    /// It was committed, and too late to be placed: whatever stalled, nobody is called at another moment than was decided.
    /// Of the dial that was decided for that moment.
    Requeue { dialed_at: Moment },
    /// The service has said something by itself that the law wants said.
    Disclosed(Disclosed),
    /// It was told that the call is recorded, or asked whether it may be.
    ConsentAsked { basis: ConsentMode },
    /// Something for the timeline.
    Note { kind: &'static str, detail: String },
    /// The other side has put us on hold, or is back.
    Hold(bool),
    /// The other side was answered so soon.
    Measure(TurnMarks),
    /// The first sound of ours was sent so many milliseconds after the other side's greeting had ended; where it has not `greeted`,
    /// after the pick-up. Source: 16 CFR 310.4(b)(4)(iii), which gives two seconds for it.
    FirstSound { ms: u32, greeted: bool },
    /// Two seconds have passed since the other side's greeting, or the pick-up, without a sound of ours.
    KeptWaiting,
    /// The agent has nothing to say to whoever has picked up: what it thinks with has failed before its first word, or was too late.
    /// `played`: the message that stands ready for that is said instead.
    LeftAlone { played: bool },
    /// What was taken for a machine by its sound has said what no machine says.
    Doubt,
    /// How well the other side can be heard, over the call so far.
    Quality(Quality),
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
    /// Nobody knows what became of the call; it was carried until then.
    Lose { last_seen: Moment },
    /// How the call went, found out after its end.
    Evaluate(Evaluated),
    /// What it is to its user.
    Label(Metadata),
    /// The API wants it, and what was said, gone.
    Delete,
}

/// One utterance of the service's.
#[derive(Clone, Debug, PartialEq)]
pub struct Disclosed {
    pub kinds: Vec<DisclosureKind>,
    /// BCP 47, of the words.
    pub language: String,
    /// Lower-case hexadecimal, of the words in UTF-8.
    pub text_sha256: String,
    pub began: Moment,
    /// It had been heard whole then, or was cut off.
    pub ended: Moment,
    pub is_cut_off: bool,
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
    /// Turned down by what somebody has set up against such calls: SIP 608, and 603 of a network. The number that called is known
    /// for them, or will be.
    Blocked(String),
    InvalidNumber(String),
    Rejected(String),
    /// No carrier answered at all.
    Unreachable(String),
    /// The trunk has no room and never accepted the call: SIP 503 and 429.
    Congested,
    /// Nothing was sent: this service had no port or no room for it, could not store its leg, or was too late. The trunk is not to
    /// blame.
    NotPlaced,
}

/// Why a call that waited is not placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// A test key may call it no longer.
    NotVerified,
    /// It lies where the workspace may not call.
    OutOfReach,
    OnDnc,
    /// A rule of the law does not allow it.
    AgainstTheLaw,
    CapReached,
    OutsideHours,
    CampaignOver,
    /// The number that it shows has no trunk any more.
    NoTrunk,
    /// The database came back from a backup: it may have been placed since.
    MayHaveRun,
}
