//! A row as it is exported, and the manifest of an export, which is signed.
use super::chain::consent_in;
use entities::{
    attempt::{Model, RecordKind},
    compliance_export::ExportFormat,
    ids::{AttemptId, CampaignId, ComplianceExportId, TenantId},
    values::{Env, Moment},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One line of a file of JSON lines. Body and content are kept to the byte: their digests are of what stands there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    pub n: i64,
    pub tenant_id: TenantId,
    pub env: Env,
    pub kind: RecordKind,
    pub attempt_id: AttemptId,
    pub dial_n: i32,
    pub campaign_id: Option<CampaignId>,
    pub number_hash: Option<String>,
    pub email_hash: Option<String>,
    pub at: Moment,
    pub body: Box<RawValue>,
    /// Null: there was none, or it was blanked.
    pub content: Option<Box<RawValue>>,
    pub content_sha256: Option<String>,
    pub prev_hash: String,
    pub hash: String,
}

impl Line {
    pub fn of(row: &Model) -> serde_json::Result<Self> {
        Ok(Line {
            n: row.n,
            tenant_id: row.tenant_id,
            env: row.env,
            kind: row.kind,
            attempt_id: row.attempt_id,
            dial_n: row.dial_n,
            campaign_id: row.campaign_id,
            number_hash: row.number_hash.clone(),
            email_hash: row.email_hash.clone(),
            at: row.at,
            body: RawValue::from_string(row.body.clone())?,
            content: row.content.clone().map(RawValue::from_string).transpose()?,
            content_sha256: row.content_sha256.clone(),
            prev_hash: row.prev_hash.clone(),
            hash: row.hash.clone(),
        })
    }

    pub fn row(self) -> Model {
        Model {
            tenant_id: self.tenant_id,
            env: self.env,
            n: self.n,
            kind: self.kind,
            attempt_id: self.attempt_id,
            dial_n: self.dial_n,
            campaign_id: self.campaign_id,
            number_hash: self.number_hash,
            email_hash: self.email_hash,
            consent_id: consent_in(self.kind, self.body.get()),
            at: self.at,
            body: self.body.get().to_owned(),
            content: self.content.map(|content| content.get().to_owned()),
            content_sha256: self.content_sha256,
            prev_hash: self.prev_hash,
            hash: self.hash,
        }
    }
}

/// A place of a chain, and the hash of the row there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub n: i64,
    pub hash: String,
}

/// What an export holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `callboard.compliance-export.1`
    pub form: String,
    pub export_id: ComplianceExportId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub made_at: Moment,
    pub format: ExportFormat,
    /// All rows from the first to the last; else those of one person, or of one campaign.
    pub is_whole: bool,
    pub of_person: bool,
    pub campaign_id: Option<CampaignId>,
    pub since: Option<Moment>,
    pub until: Option<Moment>,
    pub files: Vec<ManifestFile>,
    pub rows: i64,
    /// What was looked through.
    pub first_n: i64,
    pub last_n: i64,
    /// Where the chain ended when the manifest was made.
    pub head: Place,
    /// The row before the first that is kept; none: the chain is there from its first row on.
    pub anchor: Option<Place>,
    /// Versions of the law pack by which its attempts were judged.
    pub laws: Vec<String>,
}

pub const MANIFEST_FORM: &str = "callboard.compliance-export.1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    pub part: i32,
    pub bytes: i64,
    /// In hex.
    pub sha256: String,
    pub rows: i64,
    pub first_n: i64,
    pub last_n: i64,
}

/// A manifest with its signature, which is over the bytes of `manifest` as they stand here.
#[derive(Debug, Serialize, Deserialize)]
pub struct Signed {
    pub manifest: Box<RawValue>,
    /// `ed25519`
    pub algorithm: String,
    /// Base64.
    pub public_key: String,
    /// Base64.
    pub signature: String,
}

/// What is signed of a chain's head, once a day: this text.
pub fn head_text((tenant, env): (TenantId, Env), day: &str, n: i64, hash: &str) -> String {
    format!("callboard.attempt-head.1\n{tenant}\n{env}\n{day}\n{n}\n{hash}")
}
