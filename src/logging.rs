//! Structured logs. What is secret or personal never gets here: numbers show four digits, secrets none.
use crate::settings::{LogFormat, Settings};
use std::io::IsTerminal;
use tracing::{Level, Metadata};
use tracing_subscriber::{EnvFilter, filter::filter_fn, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Logs to standard error, so that standard output stays for what a command prints.
pub fn start(settings: &Settings) -> Result<(), String> {
    let filter = filter(&settings.log)?;
    let registry = tracing_subscriber::registry()
        .with(filter)
        .with(filter_fn(keeps_secrets));
    let started = match settings.log_format {
        LogFormat::Text => registry
            // Colours are for people: in a file they are noise.
            .with(
                fmt::layer()
                    .with_writer(std::io::stderr)
                    .with_ansi(std::io::stderr().is_terminal())
                    .with_target(false),
            )
            .try_init(),
        LogFormat::Json => registry
            .with(fmt::layer().json().with_writer(std::io::stderr))
            .try_init(),
    };
    started.map_err(|error| error.to_string())
}

fn filter(log: &str) -> Result<EnvFilter, String> {
    // First, so that a filter that names it wins: what this says at `error` are strangers' broken requests.
    EnvFilter::try_new(format!("actix_http=off,{log}"))
        .map_err(|_| format!("log: `{log}` is not a log filter; write for example info or callboard=debug"))
}

/// Whatever filter is asked for: a websocket in full detail is its handshake with the key, and every word that is said.
fn keeps_secrets(metadata: &Metadata<'_>) -> bool {
    !(metadata.target().starts_with("tungstenite") && *metadata.level() == Level::TRACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strangers_send_is_not_logged_unless_it_is_asked_for() {
        let shown = |log: &str| filter(log).unwrap().to_string();
        assert!(shown("info").contains("actix_http=off"));
        let asked = shown("info,actix_http=debug");
        assert!(
            asked.contains("actix_http=debug") && !asked.contains("actix_http=off"),
            "{asked}"
        );
    }

    #[test]
    fn a_websockets_handshake_is_never_logged() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let layer = fmt::layer().with_writer(std::sync::Arc::new(log.reopen().unwrap()));
        let registry = tracing_subscriber::registry()
            .with(filter("trace").unwrap())
            .with(filter_fn(keeps_secrets));
        tracing::subscriber::with_default(registry.with(layer), || {
            tracing::trace!(target: "tungstenite::handshake::client", "authorization: Bearer secret");
            tracing::debug!(target: "tungstenite::protocol", "closed");
        });
        let logged = std::fs::read_to_string(log.path()).unwrap();
        assert!(!logged.contains("secret") && logged.contains("closed"), "{logged}");
    }
}
