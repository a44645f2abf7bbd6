//! Structured logs. What is secret or personal never gets here: numbers show four digits, secrets none.
use crate::settings::{LogFormat, Settings};
use runtime::clock::Clock;
use serde_json::{Value, json};
use std::{
    backtrace::{Backtrace, BacktraceStatus},
    io::IsTerminal,
    panic::{self, PanicHookInfo},
};
use tracing::{Level, Metadata};
use tracing_subscriber::{EnvFilter, filter::filter_fn, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Logs to standard error, so that standard output stays for what a command prints; panics too.
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
    started.map_err(|error| error.to_string())?;
    // The standard library's writes lines of its own, past the filter and the format.
    panic::set_hook(Box::new(tell_of_panic));
    Ok(())
}

/// Where it was, and what it said if that stands in the source: what was put together as it ran may hold what people said.
fn tell_of_panic(info: &PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string);
    let said = info.payload().downcast_ref::<&'static str>().copied();
    // Only if RUST_BACKTRACE asks for it. As a text, which is one line in either format.
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(location, said, backtrace, "something panicked");
}

/// An event as a line of the JSON log, whatever that is filtered by.
pub fn event(level: &str, fields: &Value) -> String {
    let at = Clock::wall().now();
    json!({ "timestamp": at, "level": level, "fields": fields, "target": "callboard" }).to_string()
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

    /// The hook is the whole process's: panics of other tests go where they went.
    #[test]
    fn a_panic_is_one_event_and_shows_no_more_than_the_source() {
        let (before, ours) = (panic::take_hook(), std::thread::current().id());
        panic::set_hook(Box::new(move |info| match std::thread::current().id() == ours {
            true => tell_of_panic(info),
            false => before(info),
        }));
        let log = tempfile::NamedTempFile::new().unwrap();
        let layer = fmt::layer()
            .json()
            .with_writer(std::sync::Arc::new(log.reopen().unwrap()));
        let number = "+12025550123";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            panic::catch_unwind(|| panic!("as it stands here")).unwrap_err();
            panic::catch_unwind(|| panic!("said to {number}")).unwrap_err();
        });
        let logged = std::fs::read_to_string(log.path()).unwrap();
        let lines: Vec<Value> = logged.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{logged}");
        assert_eq!(lines[0]["fields"]["said"], "as it stands here");
        assert_eq!(lines[1]["fields"]["said"], Value::Null);
        for line in &lines {
            let location = line["fields"]["location"].as_str().unwrap();
            assert!(location.contains("logging.rs:"), "{line}");
            assert_eq!(line["level"], "ERROR");
        }
        assert!(!logged.contains(number), "{logged}");
    }
}
