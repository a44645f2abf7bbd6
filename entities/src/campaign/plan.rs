//! What a user asks of a campaign.
use super::{
    pace::{Caps, Pacing},
    schedule::Schedule,
};
use crate::{
    agent::Disposition,
    dnc::DncChannel,
    ids::AgentId,
    law::{Audience, Legal, Purpose, SandboxLaw, Vertical},
    message_send,
    session::Voicemail,
    values::{Bounded, E164, Metadata, Text, Variables},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a campaign should do. Who calls, and how, is fixed once it has started; the rules can be changed until it completes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub name: Text<1, 200>,
    #[serde(default)]
    pub channel: Channel,
    /// Follows from the channel; may be left out.
    #[serde(default)]
    pub session_type: Option<SessionType>,
    /// The text that contacts get; needed for `sms` and `email`, and only there.
    #[serde(default)]
    pub template: Option<Template>,
    /// Needed before `start`.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// Overrides the agent's voice.
    #[serde(default)]
    pub voice_id: Option<Text<1, 100>>,
    /// Caller ids, used in turn; at most 100. Empty: the carrier's default.
    #[serde(default)]
    pub from_numbers: Vec<E164>,
    /// Given to every contact that has no variable of that name.
    #[serde(default, deserialize_with = "Variables::limited")]
    pub variables: Variables,
    #[serde(default, deserialize_with = "Metadata::limited")]
    pub metadata: Metadata,
    /// Why you may call these people, in your words: kept in case somebody asks.
    #[serde(default)]
    pub consent_basis: Option<Text<1, 500>>,
    /// What its contacts are called for. Left out: `marketing`, which has the strictest rules; what is mixed is `marketing`.
    #[serde(default)]
    pub purpose: Purpose,
    /// Left out: `consumer`, who is protected most.
    #[serde(default)]
    pub audience: Audience,
    /// A trade that has rules of its own.
    #[serde(default)]
    pub vertical: Option<Vertical>,
    /// For whom it is made, as in the consents of its contacts; null: the workspace's registered name.
    #[serde(default)]
    pub seller: Option<Text<1, 200>>,
    /// What it is about, such as a product's name; the agent says it at the start.
    #[serde(default)]
    pub subject: Option<Text<1, 200>>,
    /// The contract that is being fulfilled, where that is why they may be called.
    #[serde(default)]
    pub contract_ref: Option<Text<1, 200>>,
    /// With a test key: `enforce` bars whom the law would bar; `observe` only shows it. Live campaigns always keep the law.
    #[serde(default)]
    pub sandbox_law: SandboxLaw,
    /// How its calls are classified; replaces the agent's dispositions; at most 50.
    #[serde(default)]
    pub dispositions: Vec<Disposition>,
    /// What happens when a machine picks up.
    #[serde(default)]
    pub voicemail: Voicemail,
    #[serde(default)]
    pub schedule: Schedule,
    #[serde(default)]
    pub pacing: Pacing,
    #[serde(default)]
    pub retry: Retry,
    #[serde(default)]
    pub caps: Caps,
}

impl Plan {
    pub fn session_type(&self) -> SessionType {
        self.session_type.unwrap_or(self.channel.session_type())
    }
    /// What it is, in the words of the law.
    pub fn legal(&self) -> Legal {
        Legal {
            purpose: self.purpose,
            audience: self.audience,
            vertical: self.vertical,
            seller: self.seller.clone(),
            subject: self.subject.clone(),
            contract_ref: self.contract_ref.clone(),
        }
    }
}

/// How contacts are reached.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    #[default]
    Phone,
    Sms,
    Email,
}

/// What a contact is dispatched into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionType {
    /// A call, for the channel `phone`.
    Phone,
    /// No session: a message, for the channels `sms` and `email`.
    None,
}

impl Channel {
    /// The one that its messages go by; `None`: it calls.
    pub fn of_messages(self) -> Option<message_send::Channel> {
        match self {
            Channel::Phone => None,
            Channel::Sms => Some(message_send::Channel::Sms),
            Channel::Email => Some(message_send::Channel::Email),
        }
    }
    /// As the do-not-call list calls it.
    pub fn dnc(self) -> DncChannel {
        match self {
            Channel::Phone => DncChannel::Phone,
            Channel::Sms => DncChannel::Sms,
            Channel::Email => DncChannel::Email,
        }
    }
    /// The one that each channel has.
    pub fn session_type(self) -> SessionType {
        match self {
            Channel::Phone => SessionType::Phone,
            Channel::Sms | Channel::Email => SessionType::None,
        }
    }
}

/// The message that the contacts of a campaign get. `{{first_name}}` and other variables are filled in;
/// `{{first_name|there}}` says what to write for a contact that has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// For `sms`: 1 to 1,600 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Text<1, 1_600>>,
    /// For `email`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Text<1, 200>>,
    /// For `email`: one of `text` and `html` is needed, or both. `{{unsubscribe_url}}` is the mail's own link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Text<1, 100_000>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<Text<1, 200_000>>,
    /// For `email`: the sender's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_name: Option<Text<1, 100>>,
    /// For `email`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Text<1, 254>>,
}

/// When a contact that was not reached is called again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Calls to one contact, the first included.
    #[serde(default = "one")]
    pub max_attempts: Bounded<1, 10>,
    /// Minimum minutes from the end of one attempt to the start of the next.
    #[serde(default = "half_an_hour")]
    pub min_gap_minutes: Bounded<0, 10_080>,
    /// Exceptions by outcome: `busy`, `no_answer`, `voicemail`, `failed`.
    #[serde(default)]
    pub rules: BTreeMap<RetryOutcome, RetryRule>,
}
impl Default for Retry {
    fn default() -> Self {
        Retry {
            max_attempts: one(),
            min_gap_minutes: half_an_hour(),
            rules: BTreeMap::new(),
        }
    }
}
fn one() -> Bounded<1, 10> {
    Bounded::new(1).unwrap_or_else(|_| unreachable!("a constant"))
}
fn half_an_hour() -> Bounded<0, 10_080> {
    Bounded::new(30).unwrap_or_else(|_| unreachable!("a constant"))
}

/// How a session that reached nobody ended: its final status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryOutcome {
    Busy,
    NoAnswer,
    Voicemail,
    Failed,
}

/// The retries after one kind of outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRule {
    /// Minutes to wait before the second, third, … attempt; the last one repeats. Never less than `min_gap_minutes`.
    #[serde(default)]
    pub delays_minutes: Vec<Bounded<0, 10_080>>,
    /// Overrides `max_attempts`, downwards only.
    #[serde(default)]
    pub max_attempts: Option<Bounded<1, 10>>,
    /// No retry after this outcome.
    #[serde(default)]
    pub never: bool,
}
