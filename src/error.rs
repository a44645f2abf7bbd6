//! Why the service cannot start.
use crate::settings::BadSetting;

/// Why the service cannot start, in words for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CannotStart(pub String);

impl From<BadSetting> for CannotStart {
    fn from(error: BadSetting) -> Self {
        CannotStart(error.0)
    }
}
