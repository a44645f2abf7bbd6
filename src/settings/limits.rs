//! Limits and times.
use super::{
    Settings,
    check::{BadSetting, list, within},
};
use rules::{
    delivery::machine::Schedule,
    limits::{LEAST_COMPLIANCE_YEARS, Limits, Retention, YEAR_DAYS},
};
use std::time::Duration;

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    within("max_calls_per_second", settings.max_calls_per_second, 0.1..=10_000.0)?;
    within("max_concurrency", settings.max_concurrency, 1..=100_000)?;
    within("number_cap_24h", settings.number_cap_24h, 0..=1000)?;
    within("number_cap_7d", settings.number_cap_7d, 0..=1000)?;
    for (name, price) in [
        ("call_price_cents_per_minute", settings.call_price_cents_per_minute),
        ("sms_price_cents_per_segment", settings.sms_price_cents_per_segment),
        ("email_price_cents", settings.email_price_cents),
    ] {
        within(name, price, 0..=1_000_000)?;
    }
    within("webhook_suspend_after", settings.webhook_suspend_after, 1..=1000)?;
    within("event_retention_days", settings.event_retention_days, 1..=3650)?;
    let years = LEAST_COMPLIANCE_YEARS..=100;
    within("compliance_retention_years", settings.compliance_retention_years, years)?;
    settings.schedule()?;
    settings.purge_grace().map(drop)
}

impl Settings {
    /// Whole seconds, minutes, hours or days.
    fn purge_grace(&self) -> Result<Duration, BadSetting> {
        let text = self.opt_out_purge_grace.trim();
        let seconds = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)]
            .iter()
            .find_map(|(unit, seconds)| {
                let count: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
                count.checked_mul(*seconds)
            });
        match seconds {
            Some(seconds) if seconds <= 3650 * 86_400 => Ok(Duration::from_secs(seconds)),
            Some(_) | None => Err(BadSetting(format!(
                "opt_out_purge_grace: `{text}` must be a whole number with s, m, h or d after it, such as 7d; ten years at most"
            ))),
        }
    }

    /// How long a delivery waits before each of its attempts but the first.
    fn schedule(&self) -> Result<Schedule, BadSetting> {
        let mut schedule = Schedule::default();
        if self.webhook_retry_schedule.is_empty() {
            return Ok(schedule);
        }
        let delays = list(&self.webhook_retry_schedule).map(|text| {
            text.parse::<f64>()
                .ok()
                .filter(|seconds| (0.0..=86_400.0).contains(seconds))
        });
        let delays: Option<Vec<f64>> = delays.collect();
        let delays = delays.filter(|delays| delays.len() <= 20).ok_or_else(|| {
            BadSetting(format!(
                "webhook_retry_schedule: `{}` must be at most 20 numbers of seconds, separated by commas",
                self.webhook_retry_schedule
            ))
        })?;
        schedule.delays = delays.into_iter().map(Duration::from_secs_f64).collect();
        Ok(schedule)
    }

    /// After which a transaction is given up.
    pub fn commit_timeout(&self) -> Result<Duration, BadSetting> {
        within("commit_timeout_seconds", self.commit_timeout_seconds, 1..=60).map(Duration::from_secs)
    }

    pub fn limits(&self) -> Result<Limits, BadSetting> {
        validate(self)?;
        let mut retention = Retention::default();
        retention.events = Duration::from_secs(self.event_retention_days * 24 * 3600);
        retention.answers = retention.answers.min(retention.events);
        let compliance_days = self.compliance_retention_years * YEAR_DAYS;
        retention.compliance = Duration::from_secs(compliance_days * 24 * 3600);
        Ok(Limits {
            max_calls_per_second: self.max_calls_per_second,
            max_concurrency: self.max_concurrency,
            schedule: self.schedule()?,
            suspend_after: self.webhook_suspend_after,
            retention,
            number_cap_24h: self.number_cap_24h,
            number_cap_7d: self.number_cap_7d,
            call_price_cents_per_minute: self.call_price_cents_per_minute,
            credits: self.credits()?,
            sms_price_cents_per_segment: self.sms_price_cents_per_segment,
            email_price_cents: self.email_price_cents,
            allow_costly_numbers: self.allow_costly_numbers,
            blocked_prefixes: self.blocked_prefixes()?,
            opt_out_purge_grace: self.purge_grace()?,
        })
    }
}
