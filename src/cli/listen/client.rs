//! What both ends have in common: a client that goes where it was sent and nowhere else, and words for its failures.
use crate::error::CannotStart;
use adapters::outbound::trouble;
use reqwest::Client;
use std::{error::Error as _, io, time::Duration};

/// Redirects are not followed, proxies of the environment are ignored, nothing is tried twice.
pub fn build() -> Result<Client, CannotStart> {
    #[expect(
        clippy::disallowed_methods,
        reason = "talks to addresses of the operator's own command line"
    )]
    let builder = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("Callboard/", env!("CARGO_PKG_VERSION")));
    builder.build().map_err(|error| {
        let why = root_cause(&error);
        CannotStart(format!(
            "the HTTP client cannot start ({why}); are CA certificates installed (package ca-certificates)?"
        ))
    })
}

/// What the first message leaves out: of the network in our words, else the innermost.
pub fn root_cause(error: &reqwest::Error) -> String {
    if let Some(error) = trouble::of_system(error) {
        return trouble::unnamed(error);
    }
    let mut why = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        why = cause.to_string();
        source = cause.source();
    }
    why
}

/// Does nothing listen there?
pub fn is_refused(error: &reqwest::Error) -> bool {
    of_system(error).is_some_and(|kind| kind == io::ErrorKind::ConnectionRefused)
}

/// What the system said, if it was the system.
fn of_system(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let mut source = error.source();
    while let Some(cause) = source {
        match cause.downcast_ref::<io::Error>() {
            Some(error) if error.raw_os_error().is_some() => return Some(error.kind()),
            _ => source = cause.source(),
        }
    }
    None
}

/// The codes of an attempt to deliver.
pub fn code(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "timeout"
    } else if !error.is_connect() {
        "bad_answer"
    } else if error.is_dns() {
        "dns_failed"
    } else if of_system(error).is_some() {
        "connect_failed"
    } else {
        // Look-up and TCP name themselves: what is left of a connect is TLS.
        "tls_failed"
    }
}
