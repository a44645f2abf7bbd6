//! Structured logs. What is secret or personal never gets here: numbers show four digits, secrets none.
use crate::settings::{LogFormat, Settings};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Logs to standard error, so that standard output stays for what a command prints.
pub fn start(settings: &Settings) -> Result<(), String> {
    let filter = EnvFilter::try_new(&settings.log)
        .map_err(|error| format!("log: {error}; write for example info or callboard=debug"))?;
    let registry = tracing_subscriber::registry().with(filter);
    let started = match settings.log_format {
        LogFormat::Text => registry
            .with(fmt::layer().with_writer(std::io::stderr).with_target(false))
            .try_init(),
        LogFormat::Json => registry
            .with(fmt::layer().json().with_writer(std::io::stderr))
            .try_init(),
    };
    started.map_err(|error| error.to_string())
}
