//! Registers of numbers that must not be called, as files and over APIs, and who knows of reassigned numbers.
use super::{
    Settings,
    check::{BadSetting, list, unused, within},
};
use actors::registers::{
    lookup::Registers,
    questions::{OfReassigned, OfRegister, Questions},
};
use adapters::{
    reassigned::{Database, database::HttpDatabase},
    register_api::{RegisterApi, http::HttpRegister},
};
use rules::{barred, registers::known};
use runtime::link_keys::LinkKeys;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

const DAY_SECONDS: u64 = 24 * 3600;
const MB: usize = 1_000_000;
const EXAMPLE: &str = "https://register.example.com/v1/query";
/// Registers that are asked over an API.
const MOST_APIS: usize = 20;

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    within("registers_memory_mb", settings.registers_memory_mb, 1..=1_000_000)?;
    settings.notified()?;
    settings.over_api()?;
    settings.questions().map(drop)
}

impl Settings {
    /// The registers of the database that has these keys.
    pub fn registers(&self, keys: &LinkKeys) -> Result<Registers, BadSetting> {
        let (most_bytes, notify) = (self.registers_memory(), self.notified()?);
        let asked = (self.questions()?, self.over_api()?);
        // The one folder on a disk of this machine that may hold much.
        let folder = PathBuf::from(&self.recordings_spool);
        Ok(Registers::new(keys, most_bytes, asked, notify, folder))
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

    /// Where registers are asked over an API, by name. What cannot be read is refused at the start.
    pub fn register_addresses(&self) -> BTreeMap<&str, &str> {
        by_name("register_urls", &self.register_urls, EXAMPLE).unwrap_or_default()
    }

    /// The registers that are asked over an API, by name.
    fn over_api(&self) -> Result<BTreeMap<String, OfRegister>, BadSetting> {
        let days = within(
            "register_answer_max_age_days",
            self.register_answer_max_age_days,
            1..=365,
        )?;
        let max_age = Duration::from_secs(u64::from(days) * DAY_SECONDS);
        let most_of_day = within(
            "register_answer_daily_limit",
            self.register_answer_daily_limit,
            1..=100_000_000,
        )?;
        let urls = by_name("register_urls", &self.register_urls, EXAMPLE)?;
        let keys = by_name("register_api_keys", self.register_api_keys.expose(), "KEY")?;
        if let Some(name) = keys.keys().find(|name| !urls.contains_key(**name)) {
            return Err(BadSetting(format!(
                "register_api_keys: also set the address of `{name}` in `register_urls`, or its key has no effect"
            )));
        }
        if urls.len() > MOST_APIS {
            return Err(BadSetting(format!("register_urls: no more than {MOST_APIS} registers")));
        }
        let mut registers = BTreeMap::new();
        for (name, url) in urls {
            let register = HttpRegister::new(name, url, keys.get(name).copied());
            let register = register.map_err(|why| BadSetting(format!("register_urls: {name}: {why}")))?;
            let register: Arc<dyn RegisterApi> = Arc::new(register);
            registers.insert(name.to_owned(), Questions::new(Some(register), max_age, most_of_day));
        }
        Ok(registers)
    }

    fn questions(&self) -> Result<OfReassigned, BadSetting> {
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

/// `name=value` for each register, with commas between. What stands there may be secret, and is not told.
fn by_name<'a>(setting: &str, text: &'a str, example: &str) -> Result<BTreeMap<&'a str, &'a str>, BadSetting> {
    let mut found = BTreeMap::new();
    for item in list(text) {
        let named = item.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        let Some((name, value)) = named.filter(|(name, value)| known::check_name(name).is_ok() && !value.is_empty())
        else {
            return Err(BadSetting(format!(
                "{setting}: write uk_tps={example}, with the names of registers as rules know them, and commas between"
            )));
        };
        if found.insert(name, value).is_some() {
            return Err(BadSetting(format!("{setting}: `{name}` stands there twice")));
        }
    }
    Ok(found)
}
