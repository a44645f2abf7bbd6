//! What a session was made with, beside its columns.
use super::legal::CallLegal;
use crate::{
    agent,
    ids::NumberId,
    values::{Bounded, Text, TraceContext},
};
use schemars::JsonSchema;
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};

/// How a call is handled: the agent's settings, with what its campaign or its request says instead.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(default)]
pub struct Options {
    /// `None`: it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recorded>,
    /// 0: it is never ended for silence.
    pub silence_seconds: i32,
    #[serde(skip_serializing_if = "is_plain")]
    pub voicemail: Voicemail,
    /// Has the agent dispositions to choose from, and questions to ask?
    pub has_dispositions: bool,
    pub has_questions: bool,
    /// Dispositions of the campaign, instead of the agent's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dispositions: Vec<agent::Disposition>,
    /// Codes of those dispositions that say that the person said no.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub declined_codes: Vec<String>,
    /// What is said to a person whom no agent takes in time; `None`: the law of the place asks for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe_harbour: Option<SafeHarbour>,
    /// How the sandbox plays the other side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// The number that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_id: Option<NumberId>,
    /// The span of the request that has made it, if requests were traced then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// What the law wants of it, and what was said for that; none: nothing is said by the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legal: Option<CallLegal>,
}
fn is_plain(voicemail: &Voicemail) -> bool {
    *voicemail == Voicemail::default()
}

/// What a person who has answered hears from a file where the agent has nothing to say in time. Source: 16 CFR 310.4(b)(4)(iii); 47 CFR
/// 64.1200(a)(7)(i).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SafeHarbour {
    /// In the agent's language: who has called, the number, and how to opt out.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    pub channels: agent::Channels,
    pub consent: agent::ConsentMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<i32>,
    /// Also what is said after it was handed over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transfers: bool,
}

/// What happens when a machine picks up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Voicemail {
    #[serde(default)]
    pub detection: Detection,
    #[serde(default)]
    pub action: VoicemailAction,
    /// For `leave_message`; `{{first_name}}` and other variables are filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<1, 1_000>>,
    /// In a campaign: the contact is completed when a message was left.
    #[serde(default)]
    pub counts_as_reached: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detection {
    #[default]
    Auto,
    /// Whatever picks up is talked to.
    Off,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VoicemailAction {
    #[default]
    Hangup,
    LeaveMessage,
    /// The agent talks to it.
    Continue,
}

/// How the sandbox plays the other side, instead of by the number's last digit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// Null: by the number's last digit.
    #[serde(default)]
    pub outcome: Option<SandboxOutcome>,
    /// What the person does in the talk, step by step; at most 100. Then it hangs up.
    #[serde(default)]
    pub script: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxOutcome {
    Talk,
    Busy,
    NoAnswer,
    /// The person turns the call down.
    Declined,
    Voicemail,
    /// A fax machine picks up.
    Fax,
    /// A spoken menu picks up, and a person after it.
    Ivr,
    Failed,
    InvalidNumber,
    OptOut,
    ConsentRefused,
    Transfer,
    FunctionTimeout,
    /// Inbound only: the caller gives up before anybody answers.
    Abandoned,
}

/// One thing that the person does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Waits until the agent has finished, and says it.
    Say(Text<1, 1_000>),
    /// Says it while the agent speaks.
    Interrupt(Text<1, 1_000>),
    /// Says nothing for so many seconds.
    SilenceSeconds(Bounded<1, 600>),
    /// Presses keys.
    Press(Digits),
    /// Hangs up.
    HangUp(bool),
}

/// 1 to 32 of `0-9*#`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Digits(String);
impl std::ops::Deref for Digits {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}
impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fits = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'*' | b'#');
        if (1..=32).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Digits(text))
        } else {
            Err(serde::de::Error::custom("must have 1 to 32 of 0-9, * and #"))
        }
    }
}
