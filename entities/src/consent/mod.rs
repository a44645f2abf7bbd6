//! Consents: who agreed to be called or written to, by whom, about what, and how that was said. A row is never changed but for its
//! proof and its end: whoever agrees to something else has given another consent.
pub mod file;
mod find;
mod revocation;
pub mod text;
mod withdrawn;

pub use find::{
    ConsentStatus, Filter, all_after, count_standing, known, last_seq, last_used, list, of_people, proved_by,
    still_stand,
};
pub use revocation::{Revocation, Revoked, remove, revoke};
pub use withdrawn::{TAKEN_BACK_AT_ONCE, taken_back, who_took_back};

use crate::{
    boxed,
    connection::Connection,
    dnc::{Channels, DncChannel},
    error::{Error, Result},
    ids::{ConsentFileId, ConsentId, RecordingId, TenantId, TenantScoped},
    law::{ConsentTier, Purpose},
    owned::of_tenant_and_env,
    values::{E164, Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// What somebody agreed to be reached for, without repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Purposes(pub Vec<Purpose>);

impl Purposes {
    pub fn of(mut purposes: Vec<Purpose>) -> Self {
        purposes.sort();
        purposes.dedup();
        Purposes(purposes)
    }
}

/// The file that proves it, in the recordings' store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct Evidence {
    pub id: ConsentFileId,
    /// Such as `application/pdf`.
    pub content_type: String,
    pub bytes: i64,
    /// Of the file, hex.
    pub sha256: String,
    pub added_at: Moment,
    pub added_by: Option<String>,
}

/// A channel for which it was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    pub channel: DncChannel,
    pub at: Moment,
    /// Its place among all commits.
    pub seq: i64,
    /// Who has noted it; none: the person it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub reason: String,
}

/// What was taken back so far, in that order; each channel once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Withdrawals(pub Vec<Withdrawal>);

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "consents")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: ConsentId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub phone_number: Option<E164>,
    /// In lower case, as it is compared.
    pub email: Option<String>,
    pub name: Option<String>,
    /// To whom it was given, as that was written.
    pub seller: String,
    /// As sellers are compared: see [`seller_key`].
    pub seller_key: String,
    /// What it was given for. What still stands of them: [`Model::standing`].
    #[sea_orm(column_type = "JsonBinary")]
    pub channels: Channels,
    #[sea_orm(column_type = "JsonBinary")]
    pub purposes: Purposes,
    pub tier: ConsentTier,
    /// To calls by a machine, or with an artificial voice.
    pub covers_automated_voice: bool,
    /// How it was given, in words.
    pub method: String,
    pub source_url: Option<String>,
    pub source_ip: Option<String>,
    /// The call in which it was said.
    pub recording_id: Option<RecordingId>,
    /// Of what was asked, word for word, hex. The text is in [`text`].
    pub request_sha256: Option<String>,
    /// Of what was answered or signed, hex.
    pub consent_sha256: Option<String>,
    pub not_a_condition_of_purchase: bool,
    pub contract_ref: Option<String>,
    pub given_at: Moment,
    pub expires_at: Option<Moment>,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub evidence: Option<Evidence>,
    #[sea_orm(column_type = "JsonBinary")]
    pub withdrawals: Withdrawals,
    /// Nothing of it stands any more.
    pub revoked_at: Option<Moment>,
    pub revoked_by: Option<String>,
    pub revoked_reason: Option<String>,
    /// Its place among all commits; the writer gives it.
    pub given_seq: i64,
    /// The place of the last withdrawal.
    pub revoked_seq: Option<i64>,
    /// The same facts make the same one.
    pub fingerprint: String,
    pub version: i32,
    pub created_at: Moment,
    /// Who has recorded it.
    pub created_by: Option<String>,
}
impl ActiveModelBehavior for ActiveModel {}

of_tenant_and_env!(ConsentId, "consent");

impl Model {
    /// The channels that were not taken back. Whether it has expired is another question.
    pub fn standing(&self) -> Channels {
        let stands = |channel: &DncChannel| {
            let taken_back = |one: &Withdrawal| one.channel == *channel;
            self.revoked_at.is_none() && !self.withdrawals.0.iter().any(taken_back)
        };
        Channels(self.channels.0.iter().copied().filter(stands).collect())
    }

    /// By the clock that shows more: what ends at a moment does not stand at it.
    pub fn has_expired(&self, at: Moment) -> bool {
        self.expires_at.is_some_and(|end| end <= at)
    }

    /// May somebody be reached by that channel for what it says?
    pub fn stands(&self, channel: DncChannel, at: Moment) -> bool {
        !self.has_expired(at) && self.standing().contain(channel)
    }
}

/// Whom a consent is of.
pub use crate::contact::Address;

/// How sellers are compared: in lower case, blanks at the ends left out, and any between words as one.
pub fn seller_key(seller: &str) -> String {
    let words: Vec<String> = seller.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sellers_are_compared_without_case_and_blanks() {
        for (one, other, same) in [
            ("Acme Ltd.", "  ACME   ltd. ", true),
            ("Acme\u{a0}Ltd.", "acme ltd.", true),
            ("Straße & Söhne", "STRAßE & SÖHNE", true),
            ("Acme Ltd.", "AcmeLtd.", false),
            ("Acme Ltd.", "Acme Ltd", false),
        ] {
            assert_eq!(seller_key(one) == seller_key(other), same, "{one} {other}");
        }
    }
}
