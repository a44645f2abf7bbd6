//! What somebody says of the consent of whoever is to be cloned.
use super::super::{
    error::{ApiError, ApiResult},
    extract,
};
use entities::{
    Error,
    values::{Moment, Text},
    voice::{Consent, ConsentEvidence, sample::Model as Sample},
};
use schemars::JsonSchema;
use serde::Deserialize;

/// As it is given.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VoiceConsentCreate")]
pub struct ConsentGiven {
    /// The person whose voice it is.
    speaker_name: Text<1, 200>,
    /// When that person has agreed.
    given_at: Moment,
    /// The words that were agreed to, such as what was read aloud.
    statement: Text<1, 1000>,
    /// Where the original lies, such as a contract's number.
    #[serde(default)]
    reference: Option<Text<1, 200>>,
}

impl ConsentGiven {
    /// From the text of the field `consent`.
    pub(super) fn read(text: &str) -> ApiResult<Self> {
        extract::parse(text.as_bytes(), &|| None).map_err(inside)
    }

    pub(super) fn with(self, file: &Sample, now: Moment) -> ApiResult<Consent> {
        if self.given_at > now {
            return Err(ApiError::validation("consent.given_at", "lies in the future"));
        }
        Ok(Consent {
            speaker_name: self.speaker_name,
            given_at: self.given_at,
            statement: self.statement,
            reference: self.reference,
            evidence: ConsentEvidence {
                file_name: file.file_name.clone(),
                bytes: file.bytes,
                sha256: file.sha256.clone(),
            },
            recorded_at: now,
        })
    }
}

/// What is wrong with the field's JSON is told with the field's name.
fn inside(error: ApiError) -> ApiError {
    let named = |field: &str| match field {
        "" => "consent".to_owned(),
        field => format!("consent.{field}"),
    };
    match error {
        ApiError::Service(Error::Faults(mut faults)) => {
            for fault in &mut faults {
                fault.field = named(&fault.field);
            }
            Error::Faults(faults).into()
        }
        ApiError::Service(Error::Invalid { field, reason }) => ApiError::validation(named(&field), reason),
        ApiError::Frame(_, message, _) => ApiError::validation("consent", message),
        other => other,
    }
}
