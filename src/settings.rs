//! Settings: defaults < `callboard.toml` < `CALLBOARD_*` environment < flags. `settings.default.toml` explains each.
use crate::dashboard::room::IceServer;
use actors::{credits::processor::Payments, email::door::Emails, voice_clone::cloning::Cloning};
use adapters::{brain::{Providers, chat, realtime, transcription}, mail::post::Post, outbound::{AllowedTarget, Policy}, recording::{vault::{S3Options, Vault}, voice::Voice}, sms::{doors::Sms, twilio::Twilio}, stripe::{Stripe, signature::Secrets}, voice_clone::{builtin, elevenlabs::Elevenlabs, provider::Sandbox}};
use base64::{Engine, engine::general_purpose::STANDARD};
use config::{Config, Environment, File, FileFormat};
use entities::{db::Location, values::Cents};
use hmac::{Hmac, KeyInit, Mac};
use rules::{credits::terms, delivery::machine::Schedule, limits::{Limits, Retention}};
use runtime::keyring::{Keyring, purpose};
use serde::{Deserialize, Serialize};
use sha1::Sha1;
use std::{collections::HashSet, net::{IpAddr, SocketAddr}, path::PathBuf, time::Duration};

/// What the operator decides. Field names are the setting names; the environment has them in capitals with `CALLBOARD_`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub database_url: String,
    pub bind: String,
    pub base_url: String,
    pub secret_key: Secret,
    pub secret_keys_previous: Secret,
    pub dev: bool,
    pub signup_open: bool,
    pub log: String,
    pub log_format: LogFormat,
    pub webhook_allow_targets: String,
    pub webhook_allow_ports: String,
    pub webhook_ca_file: String,
    pub webhook_timeout_ms: i32,
    pub webhook_retry_schedule: String,
    pub webhook_suspend_after: i32,
    pub event_retention_days: u64,
    pub smtp_url: Secret,
    pub mail_from: String,
    pub mail_folder: String,
    pub max_calls_per_second: f64,
    pub max_concurrency: i32,
    pub number_cap_24h: i32,
    pub number_cap_7d: i32,
    pub allow_costly_numbers: bool,
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
    pub transcription_url: String,
    pub transcription_api_key: Secret,
    pub transcription_model: String,
    pub voice: String,
    pub voice_provider_url: String,
    pub voice_provider_api_key: Secret,
    pub voice_training_timeout_seconds: i64,
    pub recordings: String,
    pub recordings_s3_endpoint: String,
    pub recordings_s3_region: String,
    pub recordings_s3_access_key_id: String,
    pub recordings_s3_secret_access_key: Secret,
    pub opt_out_purge_grace: String,
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

/// A text that is never shown by accident.
#[derive(Clone, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() { "" } else { "***" })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

/// The defaults, as the operator reads them.
pub const DEFAULTS: &str = include_str!("../settings.default.toml");

/// The most of any amount: 100 million of the currency.
const MAX_CENTS: i64 = 10_000_000_000;

/// A setting that cannot be used: which, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(pub String);

impl Settings {
    /// Reads file and environment; `flags` are `(name, value)` pairs that win over both.
    pub fn load(file: Option<PathBuf>, flags: &[(&str, String)]) -> Result<Self, BadSetting> {
        let mut builder = Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        let named = file.is_some();
        let file = file.unwrap_or_else(|| "callboard.toml".into());
        builder = builder.add_source(File::from(file.as_path()).format(FileFormat::Toml).required(named));
        // Only names that are settings: test runners and other tools may use the prefix too.
        let known = |name: &str| DEFAULTS.lines().any(|line| line.starts_with(&format!("{name} =")));
        let from_environment = std::env::vars().filter_map(|(name, value)| {
            let name = name.strip_prefix("CALLBOARD_")?.to_lowercase();
            known(&name).then_some((name, value))
        });
        // As texts, which each field reads for itself: parsed here, +12025550123 would be a number without its plus.
        let environment = Environment::default().source(Some(from_environment.collect()));
        builder = builder.add_source(environment);
        for (name, value) in flags {
            builder = builder
                .set_override(*name, value.clone())
                .map_err(|error| BadSetting(error.to_string()))?;
        }
        let settings: Settings = builder
            .build()
            .and_then(Config::try_deserialize)
            .map_err(|error| BadSetting(format!("settings: {error}; see `callboard config --defaults`")))?;
        settings.check()?;
        Ok(settings)
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

    fn check(&self) -> Result<(), BadSetting> {
        self.location()?;
        self.socket_address()?;
        self.outbound()?;
        self.limits()?;
        self.extra_roots()?;
        self.post()?;
        self.sms()?;
        self.providers()?;
        self.payments()?;
        self.voice()?;
        self.cloning()?;
        self.check_recordings()?;
        if !(1000..=30_000).contains(&self.webhook_timeout_ms) {
            return Err(BadSetting(format!(
                "webhook_timeout_ms: {} must lie between 1000 and 30000",
                self.webhook_timeout_ms
            )));
        }
        let bad = |text: String| Err(BadSetting(text));
        if url::Url::parse(&self.public_url()).is_err() {
            return bad(format!(
                "base_url: `{}` is no URL; write https://callboard.example.com",
                self.base_url
            ));
        }
        if !(self.sandbox_speed > 0.0 && self.sandbox_speed <= 1e9) {
            return bad(format!(
                "sandbox_speed: {} must lie between 0 and 1000000000",
                self.sandbox_speed
            ));
        }
        if !(0.0..=100_000.0).contains(&self.sandbox_calls_per_second) {
            return bad(format!(
                "sandbox_calls_per_second: {} must lie between 0 and 100000",
                self.sandbox_calls_per_second
            ));
        }
        Ok(())
    }

    pub fn location(&self) -> Result<Location, BadSetting> {
        Location::parse(&self.database_url).map_err(|why| BadSetting(format!("database_url: {why}")))
    }

    pub fn socket_address(&self) -> Result<SocketAddr, BadSetting> {
        self.bind.parse().map_err(|_| {
            BadSetting(format!(
                "bind: `{}` is not an address with a port; write 127.0.0.1:8080",
                self.bind
            ))
        })
    }

    /// Where browsers send their sound.
    pub fn media(&self) -> Result<media::webrtc::Settings, BadSetting> {
        let bind = if self.media_bind.is_empty() {
            SocketAddr::new(self.socket_address()?.ip(), 0)
        } else {
            let bad = || {
                format!(
                    "media_bind: `{}` is not an address with a port; write 0.0.0.0:7882",
                    self.media_bind
                )
            };
            self.media_bind.parse().map_err(|_| BadSetting(bad()))?
        };
        let addresses = list(&self.media_addresses).map(|text| {
            let bad = || format!("media_addresses: `{text}` is no IP address; write 203.0.113.7");
            text.parse::<IpAddr>().map_err(|_| BadSetting(bad()))
        });
        let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
        if let Some(any) = addresses.iter().find(|address| address.is_unspecified()) {
            return Err(BadSetting(format!(
                "media_addresses: {any} is not an address that a browser can send to; name those of this machine"
            )));
        }
        for url in list(&self.turn_urls) {
            let known = ["stun:", "turn:", "turns:"]
                .iter()
                .any(|scheme| url.starts_with(scheme));
            if !known {
                return Err(BadSetting(format!(
                    "turn_urls: `{url}` must begin with stun:, turn: or turns:, as turn:turn.example.com:3478"
                )));
            }
        }
        let relays = list(&self.turn_urls).any(|url| url.starts_with("turn"));
        if relays && self.turn_secret.0.is_empty() {
            return Err(BadSetting(
                "turn_secret: is not set; give the relay's `static-auth-secret`, from which each page gets a login of its own".into(),
            ));
        }
        Ok(media::webrtc::Settings { bind, addresses })
    }

    /// What pages are given to reach this service through a relay: each a login that is good for a while. Source: coturn's
    /// `use-auth-secret`, draft-uberti-behave-turn-rest.
    pub fn ice_servers(&self, now: i64) -> Vec<IceServer> {
        let (relays, others): (Vec<&str>, Vec<&str>) = list(&self.turn_urls).partition(|url| url.starts_with("turn"));
        let urls = |urls: Vec<&str>| urls.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let mut servers = Vec::new();
        if !others.is_empty() {
            servers.push(IceServer {
                urls: urls(others),
                username: None,
                credential: None,
            });
        }
        if !relays.is_empty() {
            let username = (now + TURN_SECONDS).to_string();
            let mut mac = Hmac::<Sha1>::new_from_slice(self.turn_secret.0.as_bytes())
                .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
            mac.update(username.as_bytes());
            servers.push(IceServer {
                urls: urls(relays),
                credential: Some(STANDARD.encode(mac.finalize().into_bytes())),
                username: Some(username),
            });
        }
        servers
    }

    /// Where this service's own links start, without a slash at the end.
    pub fn public_url(&self) -> String {
        if self.base_url.is_empty() {
            format!("http://{}", self.bind)
        } else {
            self.base_url.trim_end_matches('/').to_owned()
        }
    }

    /// The dashboard's cookie travels over TLS only, but for `--dev` over plain http.
    pub fn secure_cookies(&self) -> bool {
        !(self.dev && self.public_url().starts_with("http://"))
    }

    pub fn outbound(&self) -> Result<Policy, BadSetting> {
        let allowed = list(&self.webhook_allow_targets)
            .map(str::parse::<AllowedTarget>)
            .collect::<Result<_, _>>();
        let ports = list(&self.webhook_allow_ports).map(|text| {
            let port = text.parse().ok().filter(|port: &u16| *port > 0);
            port.ok_or_else(|| {
                BadSetting(format!(
                    "webhook_allow_ports: `{text}` is not a port; write numbers with commas between, as 80,444"
                ))
            })
        });
        Ok(Policy {
            dev: self.dev,
            ports: ports.collect::<Result<_, _>>()?,
            allowed: allowed.map_err(|why| BadSetting(format!("webhook_allow_targets: {why}")))?,
        })
    }

    /// Certificate authorities beside the system's, PEM.
    pub fn extra_roots(&self) -> Result<Option<Vec<u8>>, BadSetting> {
        if self.webhook_ca_file.is_empty() {
            return Ok(None);
        }
        let read = std::fs::read(&self.webhook_ca_file);
        read.map(Some).map_err(|error| {
            BadSetting(format!(
                "webhook_ca_file: cannot read {} ({error})",
                self.webhook_ca_file
            ))
        })
    }

    /// Where e-mails go. In `--dev`, without a server, into files.
    pub fn post(&self) -> Result<Post, BadSetting> {
        let from = |why| BadSetting(format!("mail_from: {why}"));
        if !self.smtp_url.0.is_empty() {
            return Post::smtp(&self.smtp_url.0, &self.mail_from).map_err(|why| BadSetting(format!("smtp_url: {why}")));
        }
        if self.dev {
            return Post::folder(self.mail_folder.clone().into(), &self.mail_from).map_err(from);
        }
        Ok(Post::Unconfigured)
    }

    /// Who hands SMS over.
    pub fn sms(&self) -> Result<Sms, BadSetting> {
        let help = &self.sms_help_text;
        if help.chars().count() > 320 || help.chars().any(char::is_control) {
            return Err(BadSetting(
                "sms_help_text: must be one line of at most 320 characters".into(),
            ));
        }
        let twilio = (!self.sms_account_sid.is_empty()).then(|| {
            Twilio::new(
                &self.sms_url,
                &self.sms_account_sid,
                &self.sms_auth_token.0,
                &self.sms_from,
            )
            .map_err(BadSetting)
        });
        Ok(Sms::new(twilio.transpose()?, help.clone()))
    }

    /// How e-mails to people outside are handed over. In `--dev` test keys' messages become files.
    pub fn emails(&self) -> Emails {
        Emails::new(self.dev.then(|| self.mail_folder.clone().into()))
    }

    /// What agents think with.
    pub fn providers(&self) -> Result<Providers, BadSetting> {
        let key = |secret: &Secret| Some(secret.0.clone()).filter(|key| !key.is_empty());
        let chat = (!self.chat_url.is_empty()).then(|| {
            let key = key(&self.chat_api_key);
            chat::Provider::new(&self.chat_url, key.as_deref(), &self.chat_model)
                .map_err(|why| BadSetting(format!("chat_url: {why}")))
        });
        let chat = chat.transpose()?;
        let opt_out = match (self.opt_out_model.trim(), &chat) {
            ("", _) => None,
            (_, None) => {
                return Err(BadSetting(
                    "opt_out_model: set `chat_url` too, where it is asked".into(),
                ));
            }
            (model, Some(provider)) => Some(provider.clone().for_model(model)),
        };
        let realtime = (!self.realtime_url.is_empty()).then(|| {
            let key = key(&self.realtime_api_key);
            realtime::Provider::new(
                &self.realtime_url,
                key.as_deref().unwrap_or_default(),
                &self.realtime_model,
            )
            .map_err(|why| BadSetting(format!("realtime_url: {why}")))
        });
        let voices = voice_names(&self.realtime_voices)?;
        let transcription = (!self.transcription_url.is_empty()).then(|| {
            let key = key(&self.transcription_api_key);
            transcription::Provider::new(&self.transcription_url, key.as_deref(), &self.transcription_model)
                .map_err(|why| BadSetting(format!("transcription_url: {why}")))
        });
        Ok(Providers {
            chat,
            realtime: realtime.transpose()?.map(|realtime| realtime.with_voices(voices)),
            transcription: transcription.transpose()?,
            opt_out,
        })
    }

    /// Who takes the money for credits.
    pub fn payments(&self) -> Result<Payments, BadSetting> {
        let key = Some(&self.stripe_secret_key.0).filter(|key| !key.is_empty());
        let stripe = key.map(|key| Stripe::new(&self.stripe_url, key).map_err(BadSetting));
        let notice_secrets = Secrets::parse(&self.stripe_webhook_secret.0);
        let (least, most) = (self.topup_min_cents, self.topup_max_cents);
        // Stripe's own limits.
        if !(50..=99_999_999).contains(&least) {
            return Err(BadSetting(format!(
                "topup_min_cents: {least} must lie between 50 and 99999999"
            )));
        }
        if !(least..=99_999_999).contains(&most) {
            return Err(BadSetting(format!(
                "topup_max_cents: {most} must lie between topup_min_cents and 99999999"
            )));
        }
        Ok(Payments {
            stripe: stripe.transpose()?,
            notice_secrets: notice_secrets.map_err(|why| BadSetting(format!("stripe_webhook_secret: {why}")))?,
            amounts: least..=most,
            asking: Default::default(),
        })
    }

    /// Who speaks in recordings.
    pub fn voice(&self) -> Result<Voice, BadSetting> {
        Voice::find(&self.voice).map_err(|why| BadSetting(format!("voice: {why}")))
    }

    /// Who makes clones of voices.
    pub fn cloning(&self) -> Result<Cloning, BadSetting> {
        let seconds = self.voice_training_timeout_seconds;
        if !(1..=86_400).contains(&seconds) {
            return Err(BadSetting(format!(
                "voice_training_timeout_seconds: {seconds} must lie between 1 and 86400"
            )));
        }
        let live = (!self.voice_provider_url.is_empty()).then(|| {
            Elevenlabs::new(&self.voice_provider_url, &self.voice_provider_api_key.0)
                .map_err(|why| BadSetting(format!("voice_provider_url: {why}")))
        });
        Ok(Cloning::new(Sandbox(self.voice()?), live.transpose()?, seconds))
    }

    /// Where recordings lie.
    pub fn vault(&self, keyring: &Keyring) -> Result<Vault, BadSetting> {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let s3 = S3Options {
            endpoint: some(&self.recordings_s3_endpoint),
            region: some(&self.recordings_s3_region),
            access_key_id: some(&self.recordings_s3_access_key_id),
            secret_access_key: some(&self.recordings_s3_secret_access_key.0),
            allow_http: self.recordings_s3_endpoint.starts_with("http://"),
        };
        let (key, previous) = keyring.derived(purpose::RECORDINGS);
        Vault::open(&self.recordings, s3, key, previous).map_err(|why| BadSetting(format!("recordings: {why}")))
    }

    fn check_recordings(&self) -> Result<(), BadSetting> {
        if self.recordings.is_empty() {
            return Err(BadSetting(
                "recordings: is empty; name a folder or s3://BUCKET/PREFIX".into(),
            ));
        }
        Ok(())
    }

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
                "opt_out_purge_grace: `{text}` must be a whole number with s, m, h or d after it, as 7d; ten years at most"
            ))),
        }
    }

    /// The terms of prepaid credits.
    pub fn credits(&self) -> Result<terms::Terms, BadSetting> {
        let within = |name: &str, value: i64, most: i64| {
            let fits = (0..=most).contains(&value);
            let why = || BadSetting(format!("{name}: {value} must lie between 0 and {most}"));
            fits.then_some(value).ok_or_else(why)
        };
        within("credit_hold_seconds", self.credit_hold_seconds.into(), 7200)?;
        let threshold = self.credit_warning_threshold_cents;
        let threshold = within("credit_warning_threshold_cents", threshold, MAX_CENTS)?;
        let opening = within("test_credits_cents", self.test_credits_cents, MAX_CENTS)?;
        if self.currency.len() != 3 || !self.currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(BadSetting(format!(
                "currency: `{}` is no ISO 4217 code; write USD",
                self.currency
            )));
        }
        Ok(terms::Terms {
            test_opening: Cents(opening),
            warning_threshold: (threshold > 0).then_some(Cents(threshold)),
            currency: self.currency.clone(),
            hold_seconds: self.credit_hold_seconds,
        })
    }

    /// After which a transaction is given up.
    pub fn commit_timeout(&self) -> Result<Duration, BadSetting> {
        match self.commit_timeout_seconds {
            1..=60 => Ok(Duration::from_secs(self.commit_timeout_seconds)),
            other => Err(BadSetting(format!(
                "commit_timeout_seconds: {other} must lie between 1 and 60"
            ))),
        }
    }

    pub fn limits(&self) -> Result<Limits, BadSetting> {
        if !(0.1..=10_000.0).contains(&self.max_calls_per_second) {
            return Err(BadSetting(format!(
                "max_calls_per_second: {} must lie between 0.1 and 10000",
                self.max_calls_per_second
            )));
        }
        if !(1..=100_000).contains(&self.max_concurrency) {
            return Err(BadSetting(format!(
                "max_concurrency: {} must lie between 1 and 100000",
                self.max_concurrency
            )));
        }
        for (name, cap) in [
            ("number_cap_24h", self.number_cap_24h),
            ("number_cap_7d", self.number_cap_7d),
        ] {
            if !(0..=1000).contains(&cap) {
                return Err(BadSetting(format!("{name}: {cap} must lie between 0 and 1000")));
            }
        }
        for (name, price) in [
            ("call_price_cents_per_minute", self.call_price_cents_per_minute),
            ("sms_price_cents_per_segment", self.sms_price_cents_per_segment),
            ("email_price_cents", self.email_price_cents),
        ] {
            if !(0..=1_000_000).contains(&price) {
                return Err(BadSetting(format!("{name}: {price} must lie between 0 and 1000000")));
            }
        }
        if !(1..=1000).contains(&self.webhook_suspend_after) {
            return Err(BadSetting(format!(
                "webhook_suspend_after: {} must lie between 1 and 1000",
                self.webhook_suspend_after
            )));
        }
        if !(1..=3650).contains(&self.event_retention_days) {
            return Err(BadSetting(format!(
                "event_retention_days: {} must lie between 1 and 3650",
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
                    "webhook_retry_schedule: `{}` must be at most 20 numbers of seconds with commas between",
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

    /// The keys that seal secrets. In `--dev` one is made beside the database at the first start.
    pub fn keyring(&self) -> Result<Keyring, BadSetting> {
        let current = if !self.secret_key.0.is_empty() {
            self.secret_key.0.clone()
        } else if self.dev {
            self.dev_key()?
        } else {
            return Err(BadSetting(
                "secret_key: is not set. Make one with `openssl rand -base64 32`, put it into CALLBOARD_SECRET_KEY and keep it safe: \
                 without it stored secrets cannot be read. (With --dev one is made beside the database.)"
                    .into(),
            ));
        };
        let previous: Vec<String> = list(&self.secret_keys_previous.0).map(str::to_owned).collect();
        Keyring::new(&current, &previous).map_err(|why| BadSetting(format!("secret_key: {why}")))
    }

    fn dev_key(&self) -> Result<String, BadSetting> {
        let path = match self.location()? {
            Location::Sqlite(path) => path.with_extension("secret_key"),
            Location::Postgres(_) => PathBuf::from("callboard.secret_key"),
        };
        let cannot = |what: &str, error: std::io::Error| {
            BadSetting(format!("secret_key: cannot {what} {} ({error})", path.display()))
        };
        match std::fs::read_to_string(&path) {
            Ok(key) => Ok(key.trim().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let key = Keyring::generate();
                write_private(&path, &key).map_err(|error| cannot("write", error))?;
                Ok(key)
            }
            Err(error) => Err(cannot("read", error)),
        }
    }

    /// What is in force, with secrets hidden.
    pub fn redacted(&self) -> Self {
        let hide = |text: &str| {
            if text.is_empty() {
                String::new()
            } else {
                "***".to_owned()
            }
        };
        let mut shown = self.clone();
        shown.secret_key = Secret(hide(&self.secret_key.0));
        shown.secret_keys_previous = Secret(hide(&self.secret_keys_previous.0));
        shown.turn_secret = Secret(hide(&self.turn_secret.0));
        shown.smtp_url = Secret(hide(&self.smtp_url.0));
        shown.sms_auth_token = Secret(hide(&self.sms_auth_token.0));
        shown.chat_api_key = Secret(hide(&self.chat_api_key.0));
        shown.realtime_api_key = Secret(hide(&self.realtime_api_key.0));
        shown.transcription_api_key = Secret(hide(&self.transcription_api_key.0));
        shown.stripe_secret_key = Secret(hide(&self.stripe_secret_key.0));
        shown.stripe_webhook_secret = Secret(hide(&self.stripe_webhook_secret.0));
        shown.voice_provider_api_key = Secret(hide(&self.voice_provider_api_key.0));
        shown.recordings_s3_secret_access_key = Secret(hide(&self.recordings_s3_secret_access_key.0));
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

/// A relay's login is good for so long: longer than the longest talk.
const TURN_SECONDS: i64 = 4 * 3600;

/// Readable by its owner only.
fn write_private(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{text}")
}

/// What a provider calls its voices. Names that are the service's own, or look like a clone's, would never be told to it.
fn voice_names(text: &str) -> Result<Vec<String>, BadSetting> {
    let names: Vec<String> = list(text).map(str::to_owned).collect();
    let is_good = |name: &String| name.chars().count() <= 100 && builtin::is_foreign(name);
    if let Some(bad) = names.iter().find(|name| !is_good(name)) {
        return Err(BadSetting(format!(
            "realtime_voices: `{bad}` is not the name of a provider's voice"
        )));
    }
    let distinct: HashSet<&String> = names.iter().collect();
    if distinct.len() < names.len() || names.len() > 200 {
        return Err(BadSetting(
            "realtime_voices: needs at most 200 names, each of them once".into(),
        ));
    }
    Ok(names)
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("base_url", "callboard"),
            ("webhook_allow_targets", "nonsense"),
            ("webhook_allow_ports", "80,x"),
            ("webhook_retry_schedule", "5,x"),
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
            ("smtp_url", "mail.example.com"),
            ("chat_url", "api.example.com"),
            ("realtime_url", "https://example.com"),
            ("realtime_voices", "marin, builtin:tones"),
            ("realtime_voices", "marin,marin"),
            ("transcription_url", "api.example.com"),
            ("voice", "opera"),
            ("voice_provider_url", "api.elevenlabs.io"),
            ("voice_training_timeout_seconds", "0"),
            ("recordings", ""),
            ("opt_out_purge_grace", "a week"),
            ("stripe_secret_key", "pk_live_0123456789abcdef"),
            ("stripe_webhook_secret", "sk_live_0123456789abcdef"),
            ("topup_min_cents", "49"),
            ("topup_max_cents", "99"),
        ] {
            assert!(with(name, value).unwrap_err().to_string().starts_with(name), "{name}");
        }
    }

    #[test]
    fn secrets_are_hidden() {
        let mut settings = Settings::load(None, &[]).unwrap();
        settings.secret_key = Secret("hunter2".into());
        settings.stripe_secret_key = Secret("hunter2".into());
        settings.stripe_webhook_secret = Secret("hunter2".into());
        settings.database_url = "postgres://u:hunter2@h/d?password=hunter2".into();
        let shown = format!("{settings:?}{}", serde_json::to_string(&settings.redacted()).unwrap());
        let shown = shown.replacen("postgres://u:hunter2@h/d?password=hunter2", "", 1);
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
