//! What a session's columns may say of how far it is, and how it went.
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// The specification's seven values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How far the session is, and at its end how it went.")]
pub enum Status {
    Queued,
    InProgress,
    Completed,
    Failed,
    NoAnswer,
    Voicemail,
    Busy,
}

/// Where in its life a session is; finer than `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waits for its time, or for somebody to join its room.
    Scheduled,
    /// Waits for a slot.
    Queued,
    Dialing,
    Ringing,
    /// Picked up, and it is not known yet by whom; or a machine picked up, and is told a message.
    Answered,
    Conversing,
    /// Somebody else is being called to take over, or has taken over while we carry the call.
    Transferring,
    Ended,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Who called.")]
pub enum Direction {
    /// The agent.
    #[default]
    Outbound,
    /// The other side.
    Inbound,
}

/// Whether the other side agreed to be recorded.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    #[default]
    NotRequired,
    Pending,
    Granted,
    Refused,
}

/// Who decided a disposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Evaluator {
    /// During the talk.
    Agent,
    /// Through the API.
    Human,
    /// A language model, after the talk.
    Llm,
    /// Plain rules, after the talk.
    Rules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(24))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The conversation came to an end.
    Completed,
    /// Somebody else took it over.
    Transferred,
    /// Nobody said anything for too long.
    SilenceTimeout,
    /// Ended by its maximum duration.
    MaxDuration,
    /// Nothing, or nothing more, came from the other side.
    MediaTimeout,
    /// The other side does not want to be called again.
    OptOut,
    /// The other side does not want to be recorded.
    ConsentRefused,
    /// Rang, but nobody answered.
    NoAnswer,
    /// Turned down by hand, or by what somebody has set up against such calls.
    Declined,
    Busy,
    /// A machine picked up, and no message was left in full.
    Voicemail,
    /// A message was left.
    VoicemailLeft,
    InvalidNumber,
    /// The other side's browser could not be connected; or no carrier answered.
    Unreachable,
    /// Nobody joined the room in time.
    RoomExpired,
    /// The workspace could not pay for it.
    CreditsDepleted,
    /// The carrier refused the call.
    CarrierRejected,
    /// A fault of the agent's own.
    AgentError,
    /// The agent's model provider did not answer.
    ProviderError,
    /// Ended by the API, by a shutdown, or because no slot became free in time.
    Canceled,
    /// A crash cut it off; what became of the call is unknown, so it is never placed again by itself.
    NodeLost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    Caller,
    Agent,
    Api,
    System,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Who picked up.")]
pub enum AnsweredBy {
    Human,
    Voicemail,
    /// A spoken menu. Only the sandbox tells one; on a live call it is taken for one of the others.
    Ivr,
    Fax,
    /// It did not become known.
    Unknown,
}

/// Why a call that a person has answered counts as abandoned. Source: 16 CFR 310.4(b)(1)(iv); 47 CFR 64.1200(a)(7); Ofcom's policy on
/// persistent misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Why a call that a person has answered counts as abandoned.")]
pub enum WhyAbandoned {
    /// The first sound came more than two seconds after the greeting.
    LateSound,
    /// No sound ever came, for two seconds or longer.
    Silence,
    /// The agent's model or voice failed before its first word.
    NoBrain,
    /// No agent took the call: it could not be prepared, or the service stopped or was interrupted.
    NoAgent,
    /// A person was taken for a machine, and hung up on.
    Detector,
}

impl AnsweredBy {
    /// Is it talked to? In doubt it is: to hang up on a person is worse than to talk to a machine, and behind a menu there may be one.
    pub fn is_talked_to(self) -> bool {
        match self {
            AnsweredBy::Human | AnsweredBy::Ivr | AnsweredBy::Unknown => true,
            AnsweredBy::Voicemail | AnsweredBy::Fax => false,
        }
    }
}
