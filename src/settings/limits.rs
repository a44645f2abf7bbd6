//! Limits and times.
use super::{BadSetting, Settings, list};
use rules::{
    delivery::machine::Schedule,
    limits::{Limits, Retention},
};
use std::time::Duration;

impl Settings {
    /// Whole seconds, minutes, hours or days.
    pub(super) fn purge_grace(&self) -> Result<Duration, BadSetting> {
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

    /// After which a transaction is given up.
    pub fn commit_timeout(&self) -> Result<Duration, BadSetting> {
        match self.commit_timeout_seconds {
            1..=60 => Ok(Duration::from_secs(self.commit_timeout_seconds)),
            other => Err(BadSetting(format!(
                "commit_timeout_seconds: {other} must be between 1 and 60"
            ))),
        }
    }

    pub fn limits(&self) -> Result<Limits, BadSetting> {
        if !(0.1..=10_000.0).contains(&self.max_calls_per_second) {
            return Err(BadSetting(format!(
                "max_calls_per_second: {} must be between 0.1 and 10000",
                self.max_calls_per_second
            )));
        }
        if !(1..=100_000).contains(&self.max_concurrency) {
            return Err(BadSetting(format!(
                "max_concurrency: {} must be between 1 and 100000",
                self.max_concurrency
            )));
        }
        for (name, cap) in [
            ("number_cap_24h", self.number_cap_24h),
            ("number_cap_7d", self.number_cap_7d),
        ] {
            if !(0..=1000).contains(&cap) {
                return Err(BadSetting(format!("{name}: {cap} must be between 0 and 1000")));
            }
        }
        for (name, price) in [
            ("call_price_cents_per_minute", self.call_price_cents_per_minute),
            ("sms_price_cents_per_segment", self.sms_price_cents_per_segment),
            ("email_price_cents", self.email_price_cents),
        ] {
            if !(0..=1_000_000).contains(&price) {
                return Err(BadSetting(format!("{name}: {price} must be between 0 and 1000000")));
            }
        }
        if !(1..=1000).contains(&self.webhook_suspend_after) {
            return Err(BadSetting(format!(
                "webhook_suspend_after: {} must be between 1 and 1000",
                self.webhook_suspend_after
            )));
        }
        if !(1..=3650).contains(&self.event_retention_days) {
            return Err(BadSetting(format!(
                "event_retention_days: {} must be between 1 and 3650",
                self.event_retention_days
            )));
        }
        let mut retention = Retention::default();
        retention.events = Duration::from_secs(self.event_retention_days * 24 * 3600);
        retention.answers = retention.answers.min(retention.events);
        let mut schedule = Schedule::default();
        if !self.webhook_retry_schedule.is_empty() {
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
        }
        Ok(Limits {
            max_calls_per_second: self.max_calls_per_second,
            max_concurrency: self.max_concurrency,
            schedule,
            suspend_after: self.webhook_suspend_after,
            retention,
            number_cap_24h: self.number_cap_24h,
            number_cap_7d: self.number_cap_7d,
            call_price_cents_per_minute: self.call_price_cents_per_minute,
            credits: self.credits()?,
            sms_price_cents_per_segment: self.sms_price_cents_per_segment,
            email_price_cents: self.email_price_cents,
            allow_costly_numbers: self.allow_costly_numbers,
            opt_out_purge_grace: self.purge_grace()?,
        })
    }
}
