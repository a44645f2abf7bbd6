//! Why the service cannot start.
use crate::settings::BadSetting;
use entities::{db::Location, fault};
use sea_orm::DbErr;

/// Why the service cannot start, in words for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CannotStart(pub String);

impl From<BadSetting> for CannotStart {
    fn from(error: BadSetting) -> Self {
        CannotStart(error.0)
    }
}

impl CannotStart {
    /// What cannot be done with the database at all, a verb, and why.
    pub(crate) fn database(what: &str, location: &Location, error: &DbErr) -> Self {
        let (shown, why) = (location.shown(), fault::words(error));
        CannotStart(format!("database_url: cannot {what} {shown}: {why}"))
    }
}
