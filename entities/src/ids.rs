//! One type per kind of id, so that the compiler tells them apart. All are UUIDv7 made by `Deps::ids`.
use crate::values::{BadValue, Env, Moment};
use schemars::JsonSchema;
use sea_orm::{DbErr, DeriveValueType, TryFromU64};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use uuid::Uuid;

macro_rules! ids { ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
    $(#[$doc])*
    #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, DeriveValueType)]
    #[serde(transparent)]
    pub struct $name(pub Uuid);
    impl fmt::Display for $name { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) } }
    impl fmt::Debug for $name { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) } }
    impl FromStr for $name { type Err = BadValue; fn from_str(s: &str) -> Result<Self, BadValue> { Uuid::parse_str(s).map($name).map_err(not_an_id) } }
    /// Ids are never made by the database.
    impl TryFromU64 for $name { fn try_from_u64(_: u64) -> Result<Self, DbErr> { Err(DbErr::ConvertFromU64(stringify!($name))) } }
    impl $name {
        /// Less than every id made at that moment or later.
        pub fn floor(at: Moment) -> Self { $name(floor(at)) }
    }
    impl From<Uuid> for $name { fn from(id: Uuid) -> Self { $name(id) } }
    impl From<$name> for Uuid { fn from(id: $name) -> Uuid { id.0 } }
)*} }

fn not_an_id(_: uuid::Error) -> BadValue {
    BadValue("must be an id such as 0198c2f4-7d3a-7c1e-9b2a-5f0c6d1e8a47".into())
}

/// Less than every id made at that moment or later.
pub fn floor(at: Moment) -> Uuid {
    let millis = u128::try_from(at.millis()).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}

ids! {
    /// A workspace; owns everything else.
    TenantId,
    /// One serving process of those that share a database, from its start to its end.
    NodeId,
    /// A person who signs in to the dashboard.
    UserId,
    /// One act that is told of in the audit log.
    AuditLogId,
    /// One API key.
    ApiKeyId,
    /// A conversational agent.
    AgentId,
    /// A list of contacts that is worked through.
    CampaignId,
    /// One person in one campaign.
    ContactId,
    /// One call or room.
    SessionId,
    /// A link by which somebody talks with an agent in a browser.
    RoomId,
    /// Who has joined a room: one page, also after it was reloaded.
    ParticipantId,
    /// A registered receiver of events.
    EndpointId,
    /// One per event, kept over all its deliveries.
    EventId,
    /// One event on its way to one endpoint.
    DeliveryId,
    /// The resending of what an endpoint missed.
    RecoveryId,
    /// Somebody who may become a member.
    InvitationId,
    /// An e-mail of the service to one of its users.
    MailId,
    /// A number that test keys may call.
    VerifiedNumberId,
    /// A number or address on the do-not-call list.
    DncId,
    /// A list that is being read in.
    ImportId,
    /// A function that agents may call.
    FunctionId,
    /// The sound of a call.
    RecordingId,
    /// A look at a recording.
    RecordingReadId,
    /// What somebody answered to an agent's question.
    AnswerId,
    /// One of a tenant's phone numbers.
    NumberId,
    /// A call to one of them.
    InboundCallId,
    /// What a contact was dispatched into: the id of a session, an SMS or an e-mail.
    DeliveryRowId,
    /// A payment for credits.
    TopupId,
    /// One line of a ledger.
    LedgerEntryId,
    /// Credits that the operator gives.
    GrantId,
    /// A text message.
    SmsId,
    /// An e-mail to somebody outside.
    EmailId,
    /// A way to the telephone network.
    TrunkId,
    /// One dialog of a live call with a trunk's peer.
    SipLegId,
    /// A code that was made to prove whose a number is.
    VerificationCodeId,
    /// A cloned voice.
    VoiceId,
    /// A recording of somebody's voice, to make a clone from.
    VoiceSampleId,
    /// That somebody agreed to be called or written to.
    ConsentId,
    /// A file that proves a consent.
    ConsentFileId,
    /// A list of numbers that must not be called, such as a national one; or what one that is asked over an API has answered.
    RegisterId,
    /// What was uploaded for it at one time.
    RegisterFileId,
    /// One attempt to reach somebody, in the record that proves it.
    AttemptId,
    /// An export of that record, or a file about one person.
    ComplianceExportId,
    /// The erasure of one person.
    ErasureId,
}

/// An id with its owner: how actors are addressed, so that no command can reach another tenant's object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TenantScoped<I> {
    pub tenant_id: TenantId,
    pub env: Env,
    pub id: I,
}
impl<I> TenantScoped<I> {
    pub fn new(tenant_id: TenantId, env: Env, id: I) -> Self {
        TenantScoped { tenant_id, env, id }
    }
}
