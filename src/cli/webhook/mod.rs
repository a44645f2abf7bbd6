//! `callboard webhook verify`: says of a request that a receiver refused, or should have refused, which part is wrong.
mod cause;
mod check;
mod diagnose;
#[cfg(test)]
mod diagnose_tests;
mod request;
pub(super) mod secret;

use crate::error::CannotStart;
use check::{Check, Verdict};
use clap::{Args, Subcommand};
use diagnose::{diagnose, reason};
use request::{MAX_BYTES, Request};
use runtime::clock::Clock;
use serde_json::json;
use std::io::{IsTerminal, Read};

#[derive(Subcommand)]
pub enum Webhook {
    /// Say whether a received webhook verifies, and which part is wrong if not
    ///
    /// Reads the raw HTTP request from standard input: a request line, which may be absent, the headers, a blank line,
    /// and the body to its last byte; at most 10 MiB. A request that does not verify ends with exit code 1.
    Verify(Verify),
}

#[derive(Args)]
pub struct Verify {
    /// The endpoint's signing secret
    #[arg(long, value_name = "whsec_…", env = "WEBHOOK_SECRET", hide_env_values = true)]
    secret: String,
    /// The time to compare the timestamp with [default: this machine's clock]
    #[arg(long, value_name = "UNIX_SECONDS")]
    now: Option<i64>,
    /// How many seconds timestamp and clock may be apart
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    tolerance: u64,
}

impl Webhook {
    pub fn run(self, json: bool) -> Result<(), CannotStart> {
        match self {
            Webhook::Verify(verify) => verify.run(json),
        }
    }
}

impl Verify {
    fn run(self, json: bool) -> Result<(), CannotStart> {
        let request = Request::parse(&from_stdin()?).map_err(|why| CannotStart(format!("standard input {why}")))?;
        let now = self.now.unwrap_or_else(|| Clock::wall().unix_seconds());
        let checks = diagnose(&request, &self.secret, now, self.tolerance);
        let reason = reason(&checks);
        if json {
            let checks: Vec<_> = checks.iter().map(Check::view).collect();
            let verdict = json!({ "verified": reason.is_none(), "checks": checks });
            println!("{verdict:#}");
        } else {
            checks.iter().for_each(|check| println!("{}", check.text()));
        }
        match reason {
            Some(check) => Err(CannotStart(format!("refused: the {} {}", check.part, check.message))),
            None => {
                if !json {
                    println!("verified");
                }
                Ok(())
            }
        }
    }
}

fn from_stdin() -> Result<Vec<u8>, CannotStart> {
    if std::io::stdin().is_terminal() {
        eprintln!("Paste the request with its headers, then Ctrl-D; a file keeps the bytes better: < request.txt");
    }
    let mut raw = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let read = std::io::stdin().take(limit + 1).read_to_end(&mut raw);
    read.map_err(|error| CannotStart(format!("standard input: {error}")))?;
    if raw.len() > MAX_BYTES {
        return Err(CannotStart(format!("standard input is larger than {MAX_BYTES} bytes")));
    }
    Ok(raw)
}

impl Check {
    fn text(&self) -> String {
        let ok = if self.verdict == Verdict::Fine { "ok" } else { "" };
        let between = if ok.is_empty() || self.message.is_empty() {
            ""
        } else {
            ", "
        };
        format!("{:<9}  {ok}{between}{}", self.part, self.words())
    }

    fn view(&self) -> serde_json::Value {
        json!({ "part": self.part, "ok": self.verdict != Verdict::Wrong, "message": self.words() })
    }

    fn words(&self) -> String {
        match self.verdict {
            Verdict::Warning => format!("warning: {}", self.message),
            Verdict::Fine | Verdict::Wrong => self.message.clone(),
        }
    }
}

/// A piece of the request for a message: short, and harmless on a terminal.
fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(48).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("`{}{more}`", short.escape_debug())
}
