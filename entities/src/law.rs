//! The words in which the rules of calling speak: what a call is for, to whom it goes, and what was agreed to.
use crate::{
    ids::ConsentId,
    values::{Place, Text},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// What somebody is called, or written to, for. What is mixed is `marketing`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(24))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Anything that is to sell, now or later.
    #[default]
    Marketing,
    /// About something that the person has asked for or bought.
    Service,
    Debt,
    Research,
    CharityPolitical,
    /// Life, health or safety is at stake.
    Emergency,
}

#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(12))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    #[default]
    Consumer,
    Business,
}

/// A trade that has rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, EnumIter)]
#[serde(rename_all = "snake_case")]
pub enum Vertical {
    /// Supply of electricity or gas.
    Energy,
    /// Insulation, heating, solar panels and the like.
    EnergyRenovation,
    Health,
    /// A trade that needs a licence, such as law, medicine or finance.
    Licensed,
}

/// How strong a consent is.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(20))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ConsentTier {
    /// There is a contract that is being fulfilled.
    ExistingContract,
    /// Said, or given by handing over the number for this.
    Express,
    /// In writing, signed; an electronic signature counts.
    ExpressWritten,
    /// In writing, and confirmed once more by the same address.
    OptInDouble,
}

/// Do the rules of the law pack bind a campaign of the sandbox?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLaw {
    /// Their verdicts are computed and shown, and bar nothing.
    #[default]
    Observe,
    /// As in the live environment.
    Enforce,
}

/// Something that the other side of a call must be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DisclosureKind {
    /// That it is an AI.
    Ai,
    /// For whom it calls.
    Name,
    /// About what.
    Purpose,
    /// How to be called no more.
    OptOut,
    /// That the call is recorded. The question and the notice of `recording.consent` tell it.
    Recording,
    /// The number at which whoever calls can be reached.
    Callback,
    /// The address of whoever calls.
    Address,
    /// That the voice is a clone of somebody's.
    ClonedVoice,
    /// At the end: that it was an AI, and where people answer.
    Human,
}
impl DisclosureKind {
    /// As the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            DisclosureKind::Ai => "ai",
            DisclosureKind::Name => "name",
            DisclosureKind::Purpose => "purpose",
            DisclosureKind::OptOut => "opt_out",
            DisclosureKind::Recording => "recording",
            DisclosureKind::Callback => "callback",
            DisclosureKind::Address => "address",
            DisclosureKind::ClonedVoice => "cloned_voice",
            DisclosureKind::Human => "human",
        }
    }
}

/// What a call or message is, in the words of the law.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(deny_unknown_fields)]
pub struct Legal {
    /// Left out: marketing, which has the strictest rules.
    #[serde(default, skip_serializing_if = "is_default")]
    pub purpose: Purpose,
    /// Left out: consumers, who are protected most.
    #[serde(default, skip_serializing_if = "is_default")]
    pub audience: Audience,
    /// A trade that has rules of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vertical: Option<Vertical>,
    /// For whom it is made; null: the workspace's registered name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller: Option<Text<1, 200>>,
    /// What it is about, such as a product's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Text<1, 200>>,
    /// The contract that is being fulfilled, where that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_ref: Option<Text<1, 200>>,
}

/// What is known of one person beside the number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct LegalPerson {
    /// Where the person is, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Place>,
    /// The consent that was named; none: the strongest that covers the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent_id: Option<ConsentId>,
}

/// What a message that somebody has ordered is, in the words of the law. What the service says by itself, such as that somebody was
/// taken off a list, has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct MessageLegal {
    #[serde(default)]
    pub legal: Legal,
    #[serde(default)]
    pub person: LegalPerson,
    /// With a test key: does the law bind it?
    #[serde(default)]
    pub sandbox_law: SandboxLaw,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
