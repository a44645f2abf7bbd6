//! What the law wants of one call, and what was said in it for that.
use crate::{
    agent::ConsentMode,
    law::{DisclosureKind, Legal, LegalPerson, SandboxLaw},
    values::E164,
};
use serde::{Deserialize, Serialize};

/// Of one call; it is filled where the call is dialled, or its room joined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallLegal {
    /// What the call is: its purpose, whom it goes to, for whom it is made and about what.
    pub legal: Legal,
    /// What is known of the person beside the number.
    pub person: LegalPerson,
    /// With a test key: does the law bind it?
    #[serde(skip_serializing_if = "is_observed")]
    pub sandbox_law: SandboxLaw,
    /// The registered name of whoever calls; it is spoken where the call names no `seller`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where whoever calls can be called back: a toll-free number, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback: Option<E164>,
    /// Where people answer, if that has to be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staffed: Option<E164>,
    /// A postal or an e-mail address, on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How strictly somebody must agree to be recorded, at least; none: as the agent says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<ConsentMode>,
    /// What is spoken by the service; none: nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disclose: Option<Disclose>,
    /// After an opt-out the line is free in so many milliseconds; none: once the farewell was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang_up_ms: Option<u32>,
    /// What was said so far.
    #[serde(skip_serializing_if = "Said::is_empty")]
    pub said: Said,
}

impl CallLegal {
    pub fn asks_for(&self, kind: DisclosureKind) -> bool {
        self.disclose.as_ref().is_some_and(|disclose| disclose.asks_for(kind))
    }

    /// For whom the call is made, as it is spoken.
    pub fn spoken_name(&self) -> Option<&str> {
        self.legal.seller.as_deref().or(self.name.as_deref())
    }
}

/// What the service says by itself in a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disclose {
    /// In any order, each once.
    pub kinds: Vec<DisclosureKind>,
    /// It is said again after so many minutes; none or 0: only after something has interrupted the talk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat_minutes: Option<u32>,
}

impl Disclose {
    pub fn asks_for(&self, kind: DisclosureKind) -> bool {
        self.kinds.contains(&kind)
    }
}

/// What was really said, for the record of the call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    /// In their order; at most [`MAX_DISCLOSURES`], those beyond are only counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disclosures: Vec<Disclosure>,
    /// Said beyond those that are kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: u32,
    /// The last question of whether the call may be recorded, or the notice that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentAsked>,
}

/// Disclosures that are kept of one call: a talk of two hours that is reminded every five minutes has 24.
pub const MAX_DISCLOSURES: usize = 64;

impl Said {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn add(&mut self, disclosure: Disclosure) {
        if self.disclosures.len() < MAX_DISCLOSURES {
            self.disclosures.push(disclosure);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }
}

/// One utterance of the service's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disclosure {
    /// What it told.
    pub kinds: Vec<DisclosureKind>,
    /// BCP 47, of the words.
    pub language: String,
    /// Lower-case hexadecimal, of the words that were to be said, in UTF-8.
    pub text_sha256: String,
    /// Milliseconds since the pick-up.
    pub started_ms: i64,
    /// When it had been heard whole, or was cut off. Milliseconds since the pick-up.
    pub completed_ms: i64,
    /// The other side spoke, or the line broke off, before the end of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut_off: bool,
}

/// Whether the call may be recorded: what was asked, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsentAsked {
    /// Told, or asked.
    pub basis: ConsentMode,
    /// When the question, or the notice, had been said. Milliseconds since the pick-up.
    pub asked_ms: i64,
    /// None: nothing that was clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_ms: Option<i64>,
}

fn is_observed(law: &SandboxLaw) -> bool {
    *law == SandboxLaw::Observe
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
