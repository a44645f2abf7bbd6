//! The law that binds: the pack that comes with the service, under what the operator's own file adds to it.
use super::{Settings, check::BadSetting};
use rules::law::{self, Law, OperatorLaw};
use std::sync::Arc;

/// Larger than any list of rules that somebody has written.
const MOST_BYTES: u64 = 1024 * 1024;

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    settings.operators_law().map(drop)
}

impl Settings {
    /// Errors: what of the pack or the file cannot be read, or would loosen a rule without an override.
    pub fn law(&self) -> Result<Arc<Law>, BadSetting> {
        let operator = self.operators_law()?;
        Ok(Arc::new(Law::new(law::pack(), operator)))
    }

    /// What the operator's file says, beside a pack that can be read; none: there is no file.
    fn operators_law(&self) -> Result<Option<OperatorLaw>, BadSetting> {
        law::check().map_err(|error| BadSetting(format!("the law pack of this program: {error}")))?;
        let path = self.law_file.trim();
        if path.is_empty() {
            return Ok(None);
        }
        let bad = |why: String| BadSetting(format!("law_file: {path}: {why}"));
        let size = std::fs::metadata(path).map_err(|error| bad(error.to_string()))?.len();
        if size > MOST_BYTES {
            return Err(bad(format!("is larger than {MOST_BYTES} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        let operator = law::pack()
            .tighten(path, &text)
            .map_err(|error| bad(error.to_string()))?;
        Ok(Some(operator))
    }
}
