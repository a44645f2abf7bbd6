//! One rule of the law: where and for what it holds, between which days, and what it says.
use super::{facts::RestCause, span::Span};
use chrono::NaiveDate;
use entities::{
    agent::ConsentMode,
    dnc::DncChannel,
    law::{Audience, ConsentTier, DisclosureKind, Purpose, Vertical},
    values::Place,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq)]
pub struct LawRule {
    /// Such as `us.consent.voice`: lower case, digits, `.`, `-` and `_`.
    pub id: String,
    pub title: String,
    pub places: Where,
    pub excepted_places: Vec<Place>,
    /// Never empty.
    pub purposes: Vec<Purpose>,
    /// Empty: whoever it is.
    pub audiences: Vec<Audience>,
    /// Never empty.
    pub channels: Vec<DncChannel>,
    /// Empty: whatever the trade.
    pub verticals: Vec<Vertical>,
    pub says: Says,
    /// The first day on which it holds.
    pub from: Option<NaiveDate>,
    /// The first day on which it holds no more.
    pub until: Option<NaiveDate>,
    /// A consent of at least this tier that covers the attempt sets it aside.
    pub lifted_by_consent: Option<ConsentTier>,
    /// How long what proves that it was kept is to be kept.
    pub keep_years: Option<u8>,
    /// Nobody may override it.
    pub is_firm: bool,
    pub source: String,
    pub confidence: Confidence,
    /// Who must do what if it says no: one sentence.
    pub mend: String,
}

impl LawRule {
    pub fn concerns_trade(&self, vertical: Option<Vertical>) -> bool {
        self.verticals.is_empty() || vertical.is_some_and(|vertical| self.verticals.contains(&vertical))
    }
}

/// Where a rule holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Where {
    /// Written `*`: in every place, and where no place is known.
    pub is_everywhere: bool,
    /// Written `?`: in places that no rule of the pack names.
    pub is_unnamed: bool,
    /// Written `nowhere`: where no place is known.
    pub is_nowhere: bool,
    /// Sorted, groups resolved.
    pub places: Vec<Place>,
}

/// How sure the source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    High,
    Medium,
    /// Unsettled, or not seen: the stricter reading was taken.
    Low,
}

/// What a rule says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Says {
    /// Nobody's consent is needed.
    Open {},
    /// Nobody has looked up what is allowed.
    Closed {},
    Forbidden {},
    /// When it may be done, by the clocks of the person.
    Windows {
        open: Vec<Span>,
        /// The name of a calendar of `holidays.toml`; closed all day.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holidays: Option<String>,
        /// First and last day, closed all day.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blackouts: Vec<(NaiveDate, NaiveDate)>,
    },
    /// At most so many attempts at a number or address in so many hours.
    Cap {
        most: u32,
        hours: u32,
    },
    /// So many hours of rest after that.
    Rest {
        cause: RestCause,
        hours: u32,
    },
    Consent {
        any_of: Vec<ConsentTier>,
        /// It must say that a machine may speak.
        #[serde(default)]
        automated_voice: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_age_days: Option<u32>,
        /// The same of a contract, where one is enough.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contract_max_age_days: Option<u32>,
        /// An entry in this register takes back all consents before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        newer_than_register: Option<String>,
        /// Not needed where a fresh copy of this register does not hold the number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unless_register: Option<FreshRegister>,
    },
    /// A fresh copy of a register must have been looked into.
    Register {
        name: String,
        max_age_days: u32,
        listed: Listed,
        /// Not needed with a consent of at least this tier that covers the attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waived_by: Option<ConsentTier>,
    },
    /// The workspace's own do-not-call list bars.
    OwnList {},
    /// Whether the number was given to somebody else since the consent must be known.
    Reassigned {
        /// The oldest answer that counts.
        max_age_days: u32,
        /// The age of a consent up to which nobody asks.
        ask_after_days: u32,
    },
    CallerId {
        /// Who calls it back reaches an agent that takes opt-outs.
        #[serde(default)]
        answered: bool,
        #[serde(default)]
        right_to_use: bool,
        /// It is registered with the carriers.
        #[serde(default)]
        registered: bool,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        forbidden_prefixes: Vec<String>,
        /// One of them; empty: any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        required_prefixes: Vec<String>,
    },
    /// What must be known of whoever calls or writes.
    Identity {
        fields: Vec<IdentityField>,
    },
    /// What must be said, or written.
    Disclosure {
        what: Vec<DisclosureKind>,
        /// From the answer to its beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within_ms: Option<u32>,
        /// Said again in long talks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeat_minutes: Option<u32>,
    },
    /// Whether somebody is told, or asked, before a call is recorded.
    Recording {
        consent: ConsentMode,
    },
    Ring {
        least_seconds: i32,
    },
    /// Of the calls that people answered, how many may be abandoned.
    Abandonment {
        limit_permille: u32,
        /// From here on nobody is called, so that the limit is never reached.
        brake_permille: u32,
        /// Over how long they are counted: 24 or 720.
        hours: u32,
        /// Later than this after the greeting it is abandoned.
        first_sound_ms: u32,
    },
    HonourOptOut {
        /// Days in which it must be done at the latest.
        days: u32,
        /// The call has ended by then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hang_up_ms: Option<u32>,
        /// One opt-out ends all topics, calls and texts alike.
        #[serde(default)]
        everything: bool,
    },
    KeepRecord {
        years: u32,
    },
    /// Synthetic sound is marked as such where it is kept.
    Marking {},
    /// With an authority, by the operator; nobody but he can know whether it was done.
    Registration {
        name: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreshRegister {
    pub name: String,
    pub max_age_days: u32,
}

/// What it means that a register holds a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listed {
    /// It must not be called.
    Barred,
    /// Only those that it holds may be called.
    Required,
    /// Other rules ask.
    Noted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdentityField {
    RegisteredName,
    Callback,
    TollFree,
    PostalAddress,
    /// Either of the two.
    PostalAddressOrTollFree,
}

/// What a rule is asked as, in the order of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    Purpose,
    Consent,
    Register,
    Reassigned,
    CallerId,
    Disclosure,
    Abandonment,
    Rest,
    Caps,
    Hours,
    Ring,
}

impl GateKind {
    pub const ALL: [GateKind; 11] = [
        GateKind::Purpose,
        GateKind::Consent,
        GateKind::Register,
        GateKind::Reassigned,
        GateKind::CallerId,
        GateKind::Disclosure,
        GateKind::Abandonment,
        GateKind::Rest,
        GateKind::Caps,
        GateKind::Hours,
        GateKind::Ring,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            GateKind::Purpose => "purpose",
            GateKind::Consent => "consent",
            GateKind::Register => "register",
            GateKind::Reassigned => "reassigned",
            GateKind::CallerId => "caller_id",
            GateKind::Disclosure => "disclosure",
            GateKind::Abandonment => "abandonment",
            GateKind::Rest => "rest",
            GateKind::Caps => "caps",
            GateKind::Hours => "hours",
            GateKind::Ring => "ring",
        }
    }
}

impl Says {
    pub fn kind(&self) -> GateKind {
        match self {
            Says::Open {} | Says::Closed {} | Says::Forbidden {} => GateKind::Purpose,
            Says::Consent { .. } => GateKind::Consent,
            Says::Register { .. } | Says::OwnList {} => GateKind::Register,
            Says::Reassigned { .. } => GateKind::Reassigned,
            Says::CallerId { .. } => GateKind::CallerId,
            Says::Identity { .. }
            | Says::Disclosure { .. }
            | Says::Recording { .. }
            | Says::HonourOptOut { .. }
            | Says::KeepRecord { .. }
            | Says::Marking {}
            | Says::Registration { .. } => GateKind::Disclosure,
            Says::Abandonment { .. } => GateKind::Abandonment,
            Says::Rest { .. } => GateKind::Rest,
            Says::Cap { .. } => GateKind::Caps,
            Says::Windows { .. } => GateKind::Hours,
            Says::Ring { .. } => GateKind::Ring,
        }
    }

    /// Does it say whether a purpose is allowed at all? A place without any such rule is closed.
    pub fn decides(&self) -> bool {
        matches!(
            self,
            Says::Open {} | Says::Closed {} | Says::Forbidden {} | Says::Consent { .. }
        )
    }

    /// Is it a duty during or after the call, of which nothing can be asked before it?
    pub fn is_duty(&self) -> bool {
        matches!(
            self,
            Says::Recording { .. }
                | Says::HonourOptOut { .. }
                | Says::KeepRecord { .. }
                | Says::Marking {}
                | Says::Registration { .. }
        )
    }
}

/// Is a consent of this tier enough where that one is asked for? A contract is nothing but a contract: it stands for no consent, and
/// no consent for it.
pub fn suffices(given: ConsentTier, needed: ConsentTier) -> bool {
    match (given, needed) {
        (ConsentTier::ExistingContract, ConsentTier::ExistingContract) => true,
        (ConsentTier::ExistingContract, _) | (_, ConsentTier::ExistingContract) => false,
        (given, needed) => given >= needed,
    }
}
