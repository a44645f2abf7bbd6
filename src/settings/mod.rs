//! Settings: defaults < `callboard.toml` < `CALLBOARD_*` environment < flags. `settings.default.toml` explains each.
mod check;
mod keys;
mod law;
mod limits;
mod money;
mod network;
mod node;
mod providers;
mod registers;
mod secret;
mod speech;
mod telephony;
mod threads;
mod traces;
mod transcription;
mod unreadable;

pub use check::BadSetting;
pub use node::NodeOptions;
pub use secret::Secret;
pub use threads::ThreadCounts;

use config::{Config, ConfigBuilder, Environment, File, FileFormat, builder::DefaultState};
use entities::db::Location;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the operator decides. Field names are the setting names; the environment has them in capitals with `CALLBOARD_`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub database_url: String,
    pub bind: String,
    pub metrics_bind: String,
    pub http_threads: usize,
    pub actor_threads: usize,
    pub io_threads: usize,
    pub node_bind: String,
    pub node_address: String,
    pub node_name: String,
    pub base_url: String,
    pub secret_key: Secret,
    pub secret_keys_previous: Secret,
    pub dev: bool,
    pub signup_open: bool,
    pub log: String,
    pub log_format: LogFormat,
    pub otlp_endpoint: String,
    pub otlp_headers: Secret,
    pub otlp_sample_ratio: f64,
    pub webhook_allow_targets: String,
    pub webhook_allow_ports: String,
    pub webhook_ca_file: String,
    pub webhook_timeout_ms: i32,
    pub webhook_retry_schedule: String,
    pub webhook_suspend_after: i32,
    pub event_retention_days: u64,
    pub compliance_retention_years: u64,
    pub smtp_url: Secret,
    pub mail_from: String,
    pub mail_folder: String,
    pub max_calls_per_second: f64,
    pub max_concurrency: i32,
    pub number_cap_24h: i32,
    pub number_cap_7d: i32,
    pub allow_costly_numbers: bool,
    pub law_file: String,
    pub call_price_cents_per_minute: i32,
    pub currency: String,
    pub credit_hold_seconds: i32,
    pub credit_warning_threshold_cents: i64,
    pub test_credits_cents: i64,
    pub sms_url: String,
    pub sms_account_sid: String,
    pub sms_auth_token: Secret,
    pub sms_from: String,
    pub sms_help_text: String,
    pub sms_price_cents_per_segment: i32,
    pub email_price_cents: i32,
    pub sandbox_speed: f64,
    pub sandbox_calls_per_second: f64,
    pub sandbox_log: String,
    pub sip_bind: String,
    pub sip_tls_bind: String,
    pub sip_tls_cert: String,
    pub sip_tls_key: String,
    pub sip_address: String,
    pub sip_dns: String,
    pub rtp_ports: String,
    pub blocked_prefixes: String,
    pub media_bind: String,
    pub media_addresses: String,
    pub turn_urls: String,
    pub turn_secret: Secret,
    pub chat_url: String,
    pub chat_api_key: Secret,
    pub chat_model: String,
    pub opt_out_model: String,
    pub realtime_url: String,
    pub realtime_api_key: Secret,
    pub realtime_model: String,
    pub realtime_voices: String,
    pub realtime_transcription_model: String,
    pub transcription_provider: String,
    pub transcription_url: String,
    pub transcription_api_key: Secret,
    pub transcription_model: String,
    pub transcription_fallback_provider: String,
    pub transcription_fallback_url: String,
    pub transcription_fallback_api_key: Secret,
    pub transcription_fallback_model: String,
    pub speech_provider: String,
    pub speech_url: String,
    pub speech_api_key: Secret,
    pub speech_model: String,
    pub speech_voices: String,
    pub speech_watermark: bool,
    pub speech_fallback_provider: String,
    pub speech_fallback_url: String,
    pub speech_fallback_api_key: Secret,
    pub speech_fallback_model: String,
    pub speech_fallback_voice: String,
    pub voice: String,
    pub voice_provider_url: String,
    pub voice_provider_api_key: Secret,
    pub voice_provider_watermark: bool,
    pub voice_training_timeout_seconds: i64,
    pub recordings: String,
    pub recordings_s3_endpoint: String,
    pub recordings_s3_region: String,
    pub recordings_s3_access_key_id: String,
    pub recordings_s3_secret_access_key: Secret,
    pub recordings_spool: String,
    pub recordings_spool_max_mb: u64,
    pub opt_out_purge_grace: String,
    pub registers_memory_mb: usize,
    pub registers_mail_to: String,
    pub register_urls: String,
    pub register_api_keys: Secret,
    pub register_answer_max_age_days: u32,
    pub register_answer_daily_limit: usize,
    pub reassigned_url: String,
    pub reassigned_api_key: Secret,
    pub reassigned_max_age_days: u32,
    pub reassigned_daily_limit: usize,
    pub stripe_secret_key: Secret,
    pub stripe_webhook_secret: Secret,
    pub stripe_url: String,
    pub topup_min_cents: i64,
    pub topup_max_cents: i64,
    pub drain_seconds: u64,
    pub commit_timeout_seconds: u64,
    pub start_paused: bool,
    pub trusted_proxy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

/// The defaults, as the operator reads them.
pub const DEFAULTS: &str = include_str!("../../settings.default.toml");

impl Settings {
    /// Reads file and environment; `flags` are `(name, value)` pairs that win over both.
    pub fn load(file: Option<PathBuf>, flags: &[(&str, String)]) -> Result<Self, BadSetting> {
        let mut builder = sources(file);
        for (name, value) in flags {
            builder = builder
                .set_override(*name, value.clone())
                .map_err(|error| BadSetting(error.to_string()))?;
        }
        let settings: Settings = builder
            .build()
            .and_then(Config::try_deserialize)
            .map_err(|error| BadSetting(unreadable::why(&error)))?;
        settings.validate()?;
        Ok(settings)
    }

    /// How to log where the settings cannot be used: whoever reads the log by machine reads that too.
    pub fn log_format_of(file: Option<PathBuf>) -> LogFormat {
        // A file that cannot be read hides what it says, and not what the environment says.
        let asked = [sources(file), defaults().add_source(environment())];
        let mut asked = asked.into_iter();
        asked
            .find_map(|builder| builder.build().ok()?.get("log_format").ok())
            .unwrap_or(LogFormat::Text)
    }

    /// Names in the environment that look like settings and are none: a slip would go unseen.
    pub fn unknown_names() -> Vec<String> {
        let known = |name: &str| {
            DEFAULTS
                .lines()
                .any(|line| line.starts_with(&format!("{} =", name.to_lowercase())))
        };
        let names = std::env::vars().filter_map(|(name, _)| Some((name.strip_prefix("CALLBOARD_")?.to_owned(), name)));
        names
            // The last two are `callboard listen`'s.
            .filter(|(short, _)| !short.starts_with("TEST_") && !known(short) && !["KEY", "URL"].contains(&short.as_str()))
            .map(|(_, name)| name)
            .collect()
    }

    /// Each section looks at its own; what only `serve` needs is looked at when it is built.
    fn validate(&self) -> Result<(), BadSetting> {
        self.location()?;
        network::validate(self)?;
        node::validate(self)?;
        threads::validate(self)?;
        traces::validate(self)?;
        limits::validate(self)?;
        law::validate(self)?;
        providers::validate(self)?;
        telephony::validate(self)?;
        registers::validate(self)?;
        money::validate(self)
    }

    pub fn location(&self) -> Result<Location, BadSetting> {
        Location::parse(&self.database_url).map_err(|why| BadSetting(format!("database_url: {why}")))
    }

    /// What is in force, also without the password of the database's URL. Secrets hide themselves.
    pub fn redacted(&self) -> Self {
        let mut shown = self.clone();
        if let Ok(mut url) = url::Url::parse(&self.database_url) {
            if url.password().is_some() {
                // Fails only for URLs that cannot have a password.
                let _ = url.set_password(Some("***"));
            }
            // A password may stand in the query as well.
            if url.query().is_some() && url.scheme() != "sqlite" {
                url.set_query(Some("***"));
            }
            shown.database_url = url.into();
        }
        shown
    }
}

/// Defaults, file and environment; the later wins.
fn sources(file: Option<PathBuf>) -> ConfigBuilder<DefaultState> {
    let named = file.is_some();
    let file = file.unwrap_or_else(|| "callboard.toml".into());
    defaults()
        .add_source(File::from(file.as_path()).format(FileFormat::Toml).required(named))
        .add_source(environment())
}

fn defaults() -> ConfigBuilder<DefaultState> {
    Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml))
}

fn environment() -> Environment {
    // Only names that are settings: test runners and other tools may use the prefix too.
    let known = |name: &str| DEFAULTS.lines().any(|line| line.starts_with(&format!("{name} =")));
    let from_environment = std::env::vars().filter_map(|(name, value)| {
        let name = name.strip_prefix("CALLBOARD_")?.to_lowercase();
        known(&name).then_some((name, value))
    });
    // As texts, which each field reads for itself: parsed here, +12025550123 would be a number without its plus.
    Environment::default().source(Some(from_environment.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::delivery::machine::Schedule;

    fn with(name: &str, value: &str) -> Result<Settings, BadSetting> {
        Settings::load(None, &[(name, value.to_owned())])
    }

    #[test]
    fn the_defaults_are_good_and_each_is_explained() {
        let settings = Settings::load(None, &[]).unwrap();
        assert_eq!(settings.limits().unwrap().schedule, Schedule::default());
        assert!(
            settings
                .keyring()
                .unwrap_err()
                .to_string()
                .contains("CALLBOARD_SECRET_KEY")
        );
        let mut explained = false;
        for line in DEFAULTS.lines() {
            assert!(
                explained || !line.contains(" = ") || line.starts_with('#'),
                "`{line}` has no comment above it"
            );
            explained = line.starts_with('#');
        }
    }

    #[test]
    fn a_bad_setting_is_named() {
        for (name, value) in [
            ("database_url", "mysql://x"),
            ("bind", "8080"),
            ("metrics_bind", "9464"),
            ("base_url", "callboard"),
            ("otlp_endpoint", "127.0.0.1:4318"),
            ("otlp_headers", "x-key=1"),
            ("otlp_sample_ratio", "1.5"),
            ("webhook_allow_targets", "nonsense"),
            ("webhook_allow_ports", "80,x"),
            ("webhook_retry_schedule", "5,x"),
            ("http_threads", "257"),
            ("actor_threads", "257"),
            ("io_threads", "-1"),
            ("max_concurrency", "0"),
            ("max_calls_per_second", "0"),
            ("sandbox_speed", "0"),
            ("sandbox_calls_per_second", "-1"),
            ("number_cap_24h", "-1"),
            ("number_cap_7d", "1001"),
            ("call_price_cents_per_minute", "-1"),
            ("sms_price_cents_per_segment", "-1"),
            ("email_price_cents", "1000001"),
            ("webhook_ca_file", "/nowhere/ca.pem"),
            ("webhook_timeout_ms", "10"),
            ("webhook_suspend_after", "0"),
            ("event_retention_days", "0"),
            ("compliance_retention_years", "4"),
            ("smtp_url", "mail.example.com"),
            ("chat_url", "api.example.com"),
            ("realtime_url", "https://example.com"),
            ("realtime_voices", "marin, builtin:tones"),
            ("realtime_voices", "marin,marin"),
            ("realtime_transcription_model", "gpt-live-transcribe"),
            ("transcription_provider", "whisper"),
            ("transcription_url", "api.example.com"),
            ("transcription_api_key", "sk-1"),
            ("transcription_model", "whisper-1"),
            ("transcription_fallback_provider", "whisper"),
            ("transcription_fallback_model", "whisper-1"),
            ("speech_provider", "festival"),
            ("speech_url", "http://127.0.0.1:8880/v1"),
            ("speech_api_key", "sk-1"),
            ("speech_voices", "af_bella"),
            ("speech_fallback_provider", "festival"),
            ("speech_fallback_voice", "alloy"),
            ("voice", "opera"),
            ("voice_provider_url", "api.elevenlabs.io"),
            ("voice_training_timeout_seconds", "0"),
            ("recordings", ""),
            ("recordings_spool", ""),
            ("recordings_spool_max_mb", "0"),
            ("opt_out_purge_grace", "a week"),
            ("sip_bind", "5060"),
            ("sip_tls_bind", "0.0.0.0:5061"),
            ("sip_tls_cert", "cert.pem"),
            ("sip_tls_key", "key.pem"),
            ("sip_address", "sip.example.com"),
            ("sip_dns", "ns.example.com"),
            ("rtp_ports", "20000"),
            ("rtp_ports", "20001-20100"),
            ("rtp_ports", "1000-2000"),
            ("rtp_ports", "20000-20000"),
            ("rtp_ports", "30000-70000"),
            ("blocked_prefixes", "4490"),
            ("registers_memory_mb", "0"),
            ("registers_mail_to", "nobody"),
            ("register_urls", "uk_tps"),
            ("register_urls", "uk_tps=register.example.com"),
            ("register_urls", "UK-TPS=https://register.example.com"),
            (
                "register_urls",
                "uk_tps=https://one.example.com, uk_tps=https://two.example.com",
            ),
            ("register_api_keys", "uk_tps=key-1"),
            ("register_api_keys", "key-1"),
            ("register_answer_max_age_days", "0"),
            ("register_answer_daily_limit", "0"),
            ("reassigned_url", "reassigned.example.com"),
            ("reassigned_api_key", "key-1"),
            ("reassigned_max_age_days", "0"),
            ("reassigned_daily_limit", "0"),
            ("stripe_secret_key", "pk_live_0123456789abcdef"),
            ("stripe_webhook_secret", "sk_live_0123456789abcdef"),
            ("topup_min_cents", "49"),
            ("topup_max_cents", "99"),
        ] {
            let said = with(name, value).unwrap_err().to_string();
            assert!(said.trim_start_matches('`').starts_with(name), "{name}: {said}");
        }
    }

    #[test]
    fn secrets_are_hidden() {
        let mut settings = serde_json::to_value(Settings::load(None, &[]).unwrap()).unwrap();
        let secrets = ["secret", "token", "api_key", "smtp_url", "otlp_headers"];
        for (name, value) in settings.as_object_mut().unwrap() {
            if secrets.iter().any(|secret| name.contains(*secret)) {
                *value = "hunter2".into();
            }
        }
        settings["database_url"] = "postgres://u:hunter2@h/d?password=hunter2".into();
        let settings: Settings = serde_json::from_value(settings).unwrap();
        assert_eq!(settings.secret_key.expose(), "hunter2");
        let shown = format!("{settings:?}{}", serde_json::to_string(&settings.redacted()).unwrap());
        let shown = shown.replacen("postgres://u:hunter2@h/d?password=hunter2", "", 1);
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
