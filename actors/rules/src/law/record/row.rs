//! From what is to be recorded to a row.
use super::chain::digest;
use entities::{
    Error, Result,
    attempt::{New, RecordKind},
    ids::{AttemptId, CampaignId, ConsentId, TenantId},
    values::Env,
};
use serde::Serialize;

/// Under what the person whom a row is about is found: keyed hashes of the number and of the address. Neither: another row tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    pub number: Option<String>,
    pub email: Option<String>,
}

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub owner: (TenantId, Env),
    pub kind: RecordKind,
    pub attempt_id: AttemptId,
    /// The intent's own; 0 for what belongs to no single one.
    pub dial_n: i32,
    pub campaign_id: Option<CampaignId>,
    pub hashes: Hashes,
    /// The consent that an opening rests on: the one that its body names.
    pub consent_id: Option<ConsentId>,
}

/// A row that says this, in as few letters as it takes.
pub fn record<C: Serialize>(subject: Subject, body: &impl Serialize, content: Option<&C>) -> Result<New> {
    let (body, content) = (text(body)?, content.map(text).transpose()?);
    Ok(New {
        tenant_id: subject.owner.0,
        env: subject.owner.1,
        kind: subject.kind,
        attempt_id: subject.attempt_id,
        dial_n: subject.dial_n,
        campaign_id: subject.campaign_id,
        number_hash: subject.hashes.number,
        email_hash: subject.hashes.email,
        consent_id: subject.consent_id,
        body,
        content_sha256: content.as_deref().map(digest),
        content,
    })
}

fn text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Internal(format!("an attempt cannot be written down: {error}")))
}
