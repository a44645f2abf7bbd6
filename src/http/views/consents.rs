//! What clients see of consents.
use entities::{
    consent::{ConsentStatus, Evidence, Model, Purposes, Withdrawal},
    dnc::{Channels, DncChannel},
    ids::{ConsentId, RecordingId},
    law::ConsentTier,
    values::{E164, Moment},
};
use schemars::JsonSchema;
use serde::Serialize;

/// That somebody agreed to be called or written to.
#[derive(Serialize, JsonSchema)]
pub struct ConsentRecordView {
    pub id: ConsentId,
    pub phone_number: Option<E164>,
    pub email: Option<String>,
    pub name: Option<String>,
    pub seller: String,
    /// What it was given for.
    pub channels: Channels,
    /// Those of its channels that stand now.
    pub standing: Channels,
    pub covers_automated_voice: bool,
    /// It covers SMS.
    pub covers_sms: bool,
    pub purposes: Purposes,
    pub tier: ConsentTier,
    pub status: ConsentStatus,
    pub method: String,
    pub source_url: Option<String>,
    pub source_ip: Option<String>,
    pub recording_id: Option<RecordingId>,
    /// Of `request_copy`, hex.
    pub request_sha256: Option<String>,
    /// Of `consent_copy`, hex.
    pub consent_sha256: Option<String>,
    /// Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_copy: Option<String>,
    /// Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consent_copy: Option<String>,
    pub not_a_condition_of_purchase: bool,
    pub contract_ref: Option<String>,
    pub given_at: Moment,
    pub expires_at: Option<Moment>,
    /// The file that proves it.
    pub evidence: Option<ConsentEvidenceView>,
    /// What was taken back, and when.
    pub withdrawals: Vec<ConsentWithdrawalView>,
    /// When the last of it was taken back.
    pub revoked_at: Option<Moment>,
    pub revoked_by: Option<String>,
    pub revoked_reason: Option<String>,
    /// When somebody was last reached by it. Left out in lists, and if that was never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Moment>,
    /// Until then the law wants it kept; in the live environment it cannot be deleted before. Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<Moment>,
    /// A member's address, or an API key's name and how it begins.
    pub created_by: Option<String>,
    pub created_at: Moment,
    /// Only in the answer to a revocation: it was entered late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The file that proves a consent. It is fetched by `GET /v1/consents/{id}/evidence`.
#[derive(Serialize, JsonSchema)]
pub struct ConsentEvidenceView {
    pub content_type: String,
    pub bytes: i64,
    /// Of the file, hex.
    pub sha256: String,
    pub added_at: Moment,
    pub added_by: Option<String>,
}

/// A channel for which a consent was taken back.
#[derive(Serialize, JsonSchema)]
pub struct ConsentWithdrawalView {
    pub channel: DncChannel,
    pub at: Moment,
    /// Who has noted it; null: the person.
    pub by: Option<String>,
    pub reason: String,
}

impl ConsentRecordView {
    /// As it is at that moment, by the clock that shows more.
    pub fn of(row: Model, at: Moment) -> Self {
        let status = match row.revoked_at {
            Some(_) => ConsentStatus::Revoked,
            None if row.has_expired(at) => ConsentStatus::Expired,
            None => ConsentStatus::Valid,
        };
        let standing = match status {
            ConsentStatus::Valid => row.standing(),
            ConsentStatus::Expired | ConsentStatus::Revoked => Channels(Vec::new()),
        };
        ConsentRecordView {
            id: row.id,
            phone_number: row.phone_number,
            email: row.email,
            name: row.name,
            seller: row.seller,
            covers_sms: row.channels.contain(DncChannel::Sms),
            channels: row.channels,
            standing,
            covers_automated_voice: row.covers_automated_voice,
            purposes: row.purposes,
            tier: row.tier,
            status,
            method: row.method,
            source_url: row.source_url,
            source_ip: row.source_ip,
            recording_id: row.recording_id,
            request_sha256: row.request_sha256,
            consent_sha256: row.consent_sha256,
            request_copy: None,
            consent_copy: None,
            not_a_condition_of_purchase: row.not_a_condition_of_purchase,
            contract_ref: row.contract_ref,
            given_at: row.given_at,
            expires_at: row.expires_at,
            evidence: row.evidence.map(ConsentEvidenceView::from),
            withdrawals: row.withdrawals.0.into_iter().map(ConsentWithdrawalView::from).collect(),
            revoked_at: row.revoked_at,
            revoked_by: row.revoked_by,
            revoked_reason: row.revoked_reason,
            last_used_at: None,
            kept_until: None,
            created_by: row.created_by,
            created_at: row.created_at,
            warning: None,
        }
    }
}

impl From<Evidence> for ConsentEvidenceView {
    fn from(evidence: Evidence) -> Self {
        ConsentEvidenceView {
            content_type: evidence.content_type,
            bytes: evidence.bytes,
            sha256: evidence.sha256,
            added_at: evidence.added_at,
            added_by: evidence.added_by,
        }
    }
}

impl From<Withdrawal> for ConsentWithdrawalView {
    fn from(withdrawal: Withdrawal) -> Self {
        ConsentWithdrawalView {
            channel: withdrawal.channel,
            at: withdrawal.at,
            by: withdrawal.by,
            reason: withdrawal.reason,
        }
    }
}
