//! A text that is never shown by accident.
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Read as it is; printed, logged or serialized it is `***`, or nothing if it is empty.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for whom it is meant.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The same, if it is set.
    pub fn given(&self) -> Option<&str> {
        Some(self.expose()).filter(|text| !text.is_empty())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn shown(&self) -> &'static str {
        if self.is_empty() { "" } else { "***" }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}
