//! All that the law's rules are asked with: what was known of one attempt at the moment of its commit. It is what an attempt's record
//! keeps, so a field that is added is optional, and none is ever given another meaning.
use chrono::NaiveDate;
pub use entities::reassigned::ReassignedAnswer;
use entities::{
    abandonment::Abandonment,
    dnc::DncChannel,
    ids::{ConsentId, RegisterId},
    law::{Audience, ConsentTier, Purpose, Vertical},
    legal_identity, rest,
    values::{E164, Moment, Place, Zone},
};
use serde::{Deserialize, Serialize};

pub use entities::rest::RestCause;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// When it starts, by our time.
    pub at: Moment,
    pub channel: DncChannel,
    pub purpose: Purpose,
    pub audience: Audience,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vertical: Option<Vertical>,
    /// Where the person may be, sorted: the rules of all of them hold. Empty: nowhere that is known.
    pub places: Vec<Place>,
    /// How each of them is known.
    pub place_sources: Vec<PlaceSource>,
    /// The clocks that count there.
    pub zones: Vec<Zone>,
    /// For whom it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The contract that is being fulfilled, where one was named: of consents by contract only that contract's counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_ref: Option<String>,
    /// The consent that it rests on; the strongest of those that cover it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentFact>,
    /// On the workspace's own do-not-call list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_barred: bool,
    /// When the same number or address was tried last, in order, within 30 days, this attempt not among them: no more than the caps of
    /// its places count. (Rows of earlier versions hold all of them.)
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<Moment>,
    /// What gives the person a rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rests: Vec<RestFact>,
    /// The registers that were looked into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<RegisterFact>,
    /// Registers that are asked about each number over an API: without their answer no copy clears anybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_registers: Vec<String>,
    /// What the service for reassigned numbers has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reassigned: Option<ReassignedFact>,
    /// The caller id, for calls and SMS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<CallerFact>,
    pub identity: IdentityFact,
    /// BCP 47; what is spoken, or written, in it.
    pub language: String,
    /// The voice is a clone of somebody's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cloned_voice: bool,
    /// Seconds that the phone may ring; 0 for messages.
    pub ring_seconds: i32,
    /// Of the campaign, over the longest span that a rule names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandonment: Option<AbandonmentFact>,
    /// Rules that the operator has overridden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceSource {
    /// The number's country.
    Number,
    /// Its area code.
    AreaCode,
    /// It was said, with the contact or the call.
    Given,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsentFact {
    pub id: ConsentId,
    pub tier: ConsentTier,
    pub seller: String,
    pub purposes: Vec<Purpose>,
    pub channels: Vec<DncChannel>,
    pub covers_automated_voice: bool,
    pub given_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Moment>,
    /// Which contract, for the tier `existing_contract`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_ref: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestFact {
    pub cause: RestCause,
    pub since: Moment,
}

/// What a copy of a register says, or the register itself over an API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegisterFact {
    /// The copy's register; of an answer its own.
    pub id: RegisterId,
    /// As rules name it, such as `us_dnc`.
    pub name: String,
    /// Of the copy; of an answer always 1.
    pub version: i32,
    /// When its maker gave it out, or as of when the answer is; it must not be older than the rule allows.
    pub fetched_at: Moment,
    pub is_listed: bool,
    /// Since which day it is listed, where the register says so; without one nobody knows, so it may be newer than any consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_on: Option<NaiveDate>,
    /// When the register was asked about the number over an API; none: a copy was looked into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Moment>,
}

impl RegisterFact {
    /// The register itself was asked about the number.
    pub fn is_answer(&self) -> bool {
        self.asked_at.is_some()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReassignedFact {
    pub checked_at: Moment,
    /// Was the number given to somebody else since that day?
    pub answer: ReassignedAnswer,
    pub since: Moment,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallerFact {
    pub number: E164,
    /// The workspace has proved that it is its own, or the operator says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right_to_use: Option<String>,
    /// Somebody who calls it back reaches an agent that takes opt-outs.
    pub is_answered: bool,
    /// Registered with the carriers for SMS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<String>,
}

/// What is known of whoever calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IdentityFact {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_number: Option<E164>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toll_free_number: Option<E164>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postal_address: Option<String>,
}

/// Live answers of a campaign, and those of them that were abandoned, by the hour: each span is a sum of the last of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AbandonmentFact {
    /// In the last 24 hours: answered by a person, abandoned.
    pub day: (i64, i64),
    /// In the last 30 days.
    pub month: (i64, i64),
}

impl From<Abandonment> for AbandonmentFact {
    fn from(of: Abandonment) -> Self {
        AbandonmentFact {
            day: (of.day.live, of.day.abandoned),
            month: (of.month.live, of.month.abandoned),
        }
    }
}

impl From<rest::Model> for RestFact {
    fn from(row: rest::Model) -> Self {
        RestFact {
            cause: row.cause,
            since: row.since,
        }
    }
}

impl From<Option<&legal_identity::Model>> for IdentityFact {
    fn from(known: Option<&legal_identity::Model>) -> Self {
        known.map_or_else(IdentityFact::default, |row| IdentityFact {
            registered_name: row.registered_name.clone(),
            callback_number: row.callback_number.clone(),
            toll_free_number: row.toll_free_number.clone(),
            postal_address: row.postal_address.clone(),
        })
    }
}
