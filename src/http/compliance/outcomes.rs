//! What came of attempts, as it is on record.
use entities::{
    Error, Result,
    attempt::{Model, RecordKind},
    ids::AttemptId,
    values::Moment,
};
use rules::{
    law::record::OutcomeBody,
    session::sip_answer::{Attestation, SipReason},
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use std::collections::HashMap;

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComplianceOutcomeView {
    /// As the session's, or the message's, own status.
    pub status: String,
    /// Why a call ended; of a message the code of what went wrong.
    pub reason: Option<String>,
    pub ended_at: Option<Moment>,
    /// The carrier's final answer to a call that it did not connect.
    pub sip_code: Option<i32>,
    /// The cause that it names. Source: ITU-T Q.850.
    pub q850: Option<i32>,
    /// In the carrier's words, cut, without the number that was called.
    pub sip_phrase: Option<String>,
    /// What each of its `Reason` headers says, three at most.
    pub sip_reasons: Vec<SipReasonView>,
    /// Where the one who has blocked the call says who he is (SIP 608); not looked at by the service.
    pub jcard_url: Option<String>,
    /// A network, or what somebody has set up, turned the call down for the number that it showed (SIP 608; 603 "Network Blocked").
    pub blocked: bool,
    /// How the carrier says that it has signed the call (STIR/SHAKEN); null: it says nothing of it, as most do.
    pub attestation: Option<Attestation>,
}

/// A `Reason` header. Nobody has looked whether it is true.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SipReasonView {
    /// Whose causes these are, such as `SIP` or `Q.850`.
    pub protocol: String,
    pub cause: Option<u16>,
    /// Which network says so, such as `LN`.
    pub location: Option<String>,
    /// As `v=analytics1;url=https://…`: why, and whom to ask.
    pub text: Option<String>,
}

impl From<SipReason> for SipReasonView {
    fn from(reason: SipReason) -> Self {
        SipReasonView {
            protocol: reason.protocol,
            cause: reason.cause,
            location: reason.location,
            text: reason.text,
        }
    }
}

impl From<OutcomeBody> for ComplianceOutcomeView {
    fn from(body: OutcomeBody) -> Self {
        ComplianceOutcomeView {
            status: body.status,
            reason: body.reason,
            ended_at: body.ended_at,
            sip_code: body.sip_code,
            q850: body.q850,
            sip_phrase: body.sip_phrase,
            sip_reasons: body.sip_reasons.into_iter().map(SipReasonView::from).collect(),
            jcard_url: body.jcard_url,
            blocked: body.blocked,
            attestation: body.attestation,
        }
    }
}

/// The last of each attempt; of a message there may be several. `rows`: in the order of the chain.
pub fn last_of_each(rows: &[Model]) -> Result<HashMap<AttemptId, ComplianceOutcomeView>> {
    let mut found = HashMap::new();
    for row in rows.iter().filter(|row| row.kind == RecordKind::Outcome) {
        let body: OutcomeBody = read(row, &row.body)?;
        found.insert(row.attempt_id, body.into());
    }
    Ok(found)
}

/// A body or a content of the record.
pub fn read<T: DeserializeOwned>(row: &Model, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|_| Error::Corrupt {
        table: "attempt_records",
        column: "body",
        id: format!("{} {} {}", row.tenant_id, row.env, row.n),
    })
}
