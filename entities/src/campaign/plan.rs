//! What a user asks of a campaign.
use crate::{
    agent::Disposition,
    dnc::DncChannel,
    ids::AgentId,
    message_send,
    session::Voicemail,
    values::{Bounded, Day, E164, Metadata, Moment, Text, TimeOfDay, Variables, Zone},
};
use chrono::NaiveDate;
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Deserializer, Serialize, de};
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
}

/// When contacts may be called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// `start` before this time arms the campaign; it then starts by itself.
    #[serde(default)]
    pub starts_at: Option<Moment>,
    /// Nothing is dialled from this time on: the campaign completes with the reason `ended`.
    #[serde(default)]
    pub ends_at: Option<Moment>,
    /// Are the windows wall time where the contact is, or in `timezone`?
    #[serde(default)]
    pub timezone_mode: TimezoneMode,
    /// For contacts whose zone is unknown, and for `fixed`; null: the workspace's.
    #[serde(default)]
    pub timezone: Option<Zone>,
    /// Null: daily 09:00 to 20:00 in live, all day in test. At most 50.
    #[serde(default)]
    pub windows: Option<Vec<Window>>,
    /// Local dates on which nobody is called, such as `2027-12-25`; at most 366.
    #[serde(default)]
    pub blackout_dates: Vec<NaiveDate>,
    /// What happens to a contact whose number does not tell its time zone.
    #[serde(default)]
    pub on_unknown_timezone: OnUnknownTimezone,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimezoneMode {
    /// The contact's `timezone`, else every zone that its number's prefix may lie in.
    #[default]
    Contact,
    /// `timezone`, for everybody.
    Fixed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknownTimezone {
    /// The campaign's `timezone` counts.
    #[default]
    Fallback,
    /// Every zone of the number's country must be open.
    Strictest,
    /// It is skipped as `invalid`.
    Skip,
}

/// Open from `start` until before `end`, wall time, on some days of the week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "GivenWindow")]
pub struct Window {
    pub days: Vec<Day>,
    pub start: TimeOfDay,
    pub end: TimeOfDay,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GivenWindow {
    #[serde(default = "Day::all")]
    days: Vec<Day>,
    start: TimeOfDay,
    end: TimeOfDay,
}
impl TryFrom<GivenWindow> for Window {
    type Error = String;
    fn try_from(GivenWindow { mut days, start, end }: GivenWindow) -> Result<Self, String> {
        if start >= end {
            return Err(format!(
                "`start` {start} must be before `end` {end}: split a window that spans midnight into two"
            ));
        }
        days.sort();
        days.dedup();
        if days.is_empty() {
            return Err("`days` is empty: list some, or leave it out for all".into());
        }
        Ok(Window { days, start, end })
    }
}

/// Limits on calls. Counted over all of the workspace's campaigns and direct calls in one env.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// Calls to one number in any 24 hours; null lifts it.
    #[serde(default = "three")]
    pub per_number_24h: Option<Bounded<1, 1000>>,
    /// Calls to one number in any 7 days; null lifts it.
    #[serde(default = "seven")]
    pub per_number_7d: Option<Bounded<1, 1000>>,
    /// Calls of this campaign in one day of its `timezone`.
    #[serde(default)]
    pub campaign_per_day: Option<Bounded<1, 10_000_000>>,
    /// What the campaign may cost; calls in flight count at their longest.
    #[serde(default)]
    pub budget_cents: Option<Bounded<0, 2_000_000_000>>,
    /// What happens to a contact that a cap keeps from being called.
    #[serde(default)]
    pub on_cap: OnCap,
}
impl Default for Caps {
    fn default() -> Self {
        Caps {
            per_number_24h: three(),
            per_number_7d: seven(),
            campaign_per_day: None,
            budget_cents: None,
            on_cap: OnCap::default(),
        }
    }
}
fn three() -> Option<Bounded<1, 1000>> {
    Bounded::new(3).ok()
}
fn seven() -> Option<Bounded<1, 1000>> {
    Bounded::new(7).ok()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnCap {
    /// It is called when the cap allows it again.
    #[default]
    Defer,
    /// It is skipped as `daily_cap_reached`.
    Skip,
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

/// How fast contacts are dispatched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pacing {
    /// Calls started per second, 0.1 to the operator's maximum.
    #[serde(default)]
    pub calls_per_second: CallsPerSecond,
    /// Concurrent calls of this campaign; null: the workspace's limit.
    #[serde(default)]
    pub max_concurrency: Option<Bounded<1, 100_000>>,
    /// The campaign's share of the workspace's calls, relative to the workspace's other running campaigns.
    #[serde(default = "ten")]
    pub weight: Bounded<1, 100>,
    /// A contact whose turn has come but for whom no slot is free is skipped as `concurrency_full` after this; null: it waits.
    #[serde(default)]
    pub max_wait_seconds: Option<Bounded<0, 86_400>>,
}
impl Default for Pacing {
    fn default() -> Self {
        Pacing {
            calls_per_second: CallsPerSecond::default(),
            max_concurrency: None,
            weight: ten(),
            max_wait_seconds: None,
        }
    }
}
fn ten() -> Bounded<1, 100> {
    Bounded::new(10).unwrap_or_else(|_| unreachable!("a constant"))
}

/// 0.1 to 10,000; the operator's maximum may be lower.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct CallsPerSecond(f64);
impl CallsPerSecond {
    pub fn new(value: f64) -> Result<Self, String> {
        if (0.1..=10_000.0).contains(&value) {
            Ok(CallsPerSecond(value))
        } else {
            Err(format!("must be from 0.1 to 10000, not {value}"))
        }
    }
    pub fn get(self) -> f64 {
        self.0
    }
}
impl Default for CallsPerSecond {
    fn default() -> Self {
        CallsPerSecond(1.0)
    }
}
impl<'de> Deserialize<'de> for CallsPerSecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
impl JsonSchema for CallsPerSecond {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CallsPerSecond".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0.1, "maximum": 10000, "default": 1 })
    }
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
    pub rules: BTreeMap<Outcome, RetryRule>,
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
pub enum Outcome {
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
