//! Registers of numbers that must not be called, and who knows of reassigned numbers.
use super::{
    Settings,
    check::{BadSetting, unused, within},
};
use actors::registers::{lookup::Registers, questions::Questions};
use adapters::reassigned::{Database, database::HttpDatabase};
use rules::barred;
use runtime::link_keys::LinkKeys;
use std::{path::PathBuf, sync::Arc, time::Duration};

const DAY_SECONDS: u64 = 24 * 3600;
const MB: usize = 1_000_000;

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    within("registers_memory_mb", settings.registers_memory_mb, 1..=1_000_000)?;
    settings.notified()?;
    settings.questions().map(drop)
}

impl Settings {
    /// The registers of the database that has these keys.
    pub fn registers(&self, keys: &LinkKeys) -> Result<Registers, BadSetting> {
        let (most_bytes, questions, notify) = (self.registers_memory(), self.questions()?, self.notified()?);
        // The one folder on a disk of this machine that may hold much.
        let folder = PathBuf::from(&self.recordings_spool);
        Ok(Registers::new(keys, most_bytes, questions, notify, folder))
    }

    /// Bytes that all registers may take of memory.
    pub fn registers_memory(&self) -> usize {
        self.registers_memory_mb.saturating_mul(MB)
    }

    fn notified(&self) -> Result<Option<String>, BadSetting> {
        match self.registers_mail_to.trim() {
            "" => Ok(None),
            address => match barred::email(address) {
                Ok(address) => Ok(Some(address)),
                Err(_) => Err(BadSetting(format!(
                    "registers_mail_to: `{address}` is not an e-mail address"
                ))),
            },
        }
    }

    fn questions(&self) -> Result<Questions, BadSetting> {
        let days = within("reassigned_max_age_days", self.reassigned_max_age_days, 1..=365)?;
        let max_age = Duration::from_secs(u64::from(days) * DAY_SECONDS);
        let most_of_day = within("reassigned_daily_limit", self.reassigned_daily_limit, 1..=100_000_000)?;
        if self.reassigned_url.is_empty() {
            unused(
                &["reassigned_url"],
                [("reassigned_api_key", self.reassigned_api_key.expose())],
            )?;
            return Ok(Questions::new(None, max_age, most_of_day));
        }
        let database = HttpDatabase::new(&self.reassigned_url, self.reassigned_api_key.given());
        let database = database.map_err(|why| BadSetting(format!("reassigned_url: {why}")))?;
        let database: Arc<dyn Database> = Arc::new(database);
        Ok(Questions::new(Some(database), max_age, most_of_day))
    }
}
