//! `callboard doctor`: what would keep the service from its work, and what to do about it. Beside a running `serve` or before the first one;
//! it changes nothing.
mod certificate;
mod clocks;
mod instance;
mod machine;
mod names;
mod outside;
mod relays;
mod stored;

use super::commands::print;
use crate::{error::CannotStart, settings::Settings};
use clap::Args;
use serde::Serialize;
use std::{path::PathBuf, time::Duration};

#[derive(Args)]
pub struct Doctor {
    /// Ask nobody outside: no name servers, providers, mail server, trunks, nor the base URL
    #[arg(long)]
    offline: bool,
}

/// All that is asked of the database.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warning,
    Failure,
}

/// What was found out about one thing.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    what: String,
    verdict: Verdict,
    said: String,
    /// What to do about it.
    advice: Option<String>,
}

/// All that was found out, in order.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, what: &str, said: impl Into<String>) {
        self.add(what, Verdict::Ok, said.into(), None);
    }

    fn warning(&mut self, what: &str, said: impl Into<String>, advice: impl Into<String>) {
        self.add(what, Verdict::Warning, said.into(), Some(advice.into()));
    }

    fn failure(&mut self, what: &str, said: impl Into<String>, advice: impl Into<String>) {
        self.add(what, Verdict::Failure, said.into(), Some(advice.into()));
    }

    fn add(&mut self, what: &str, verdict: Verdict, said: String, advice: Option<String>) {
        self.0.push(Finding {
            what: what.to_owned(),
            verdict,
            said,
            advice,
        });
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.0.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

impl Doctor {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        // What cannot be read at all is said as every command says it.
        let settings = Settings::load(config, &[])?;
        let mut found = Findings::default();
        look_at_settings(&settings, &mut found);
        let serving = machine::look(&settings, &mut found).await;
        let looked = tokio::time::timeout(PATIENCE, stored::look(&settings, &mut found)).await;
        let trunks = looked.unwrap_or_else(|_| {
            let said = format!("does not answer within {} s", PATIENCE.as_secs());
            found.failure(
                "database",
                said,
                "see what keeps it busy: locks, a disk that hangs, a server that is away",
            );
            Vec::new()
        });
        if !self.offline {
            names::look(&settings, &trunks, &mut found).await;
            outside::look(&settings, serving.as_deref(), trunks, &mut found).await;
            relays::look(&settings, &mut found).await;
        }
        match json {
            true => print(&found.0),
            false => say(&found.0),
        }
        match found.count(Verdict::Failure) {
            0 => Ok(()),
            1 => Err(CannotStart("1 thing has to be mended".into())),
            some => Err(CannotStart(format!("{some} things have to be mended"))),
        }
    }
}

fn say(found: &[Finding]) {
    let width = found
        .iter()
        .map(|finding| finding.what.chars().count())
        .max()
        .unwrap_or(0);
    for Finding {
        what,
        verdict,
        said,
        advice,
    } in found
    {
        let mark = match verdict {
            Verdict::Ok => "ok  ",
            Verdict::Warning => "warn",
            Verdict::Failure => "FAIL",
        };
        println!("{mark}  {what:<width$}  {said}");
        if let Some(advice) = advice {
            println!("      {:<width$}  {advice}", "");
        }
    }
}

/// What is bad in itself has ended the command already, as it ends the start.
fn look_at_settings(settings: &Settings, found: &mut Findings) {
    match settings.keyring_so_far() {
        Ok(Some(_)) => found.ok("settings", "can be read"),
        Ok(None) => found.ok("settings", "can be read; the first start makes a secret key"),
        Err(why) => found.failure(
            "settings",
            why.to_string(),
            "set it; `callboard config --defaults` says how",
        ),
    }
    for name in Settings::unknown_names() {
        found.warning(
            "settings",
            format!("{name} is not a setting"),
            "see `callboard config --defaults` for what it may be meant for",
        );
    }
    if settings.dev {
        found.warning(
            "settings",
            "dev is on: webhooks may reach this machine and plain http://",
            "leave it out where strangers have keys",
        );
    }
    if !settings.dev && settings.base_url.is_empty() {
        found.warning(
            "settings",
            "base_url is not set: links lead to this machine alone, and nobody can sign in from another one",
            "set it to the https:// address that people use",
        );
    }
    if settings.base_url.starts_with("https://") && !settings.trusted_proxy {
        found.warning(
            "settings",
            "trusted_proxy is off: all clients behind the TLS proxy count as one",
            "set it if the proxy sets X-Forwarded-For, and let nobody but the proxy reach `bind`",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_and_what_is_doubtful_too() {
        let look = |flags: &[(&str, &str)]| {
            let flags: Vec<_> = flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            let mut found = Findings::default();
            look_at_settings(&Settings::load(None, &flags).unwrap(), &mut found);
            found.0
        };
        let key = ("secret_key", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=");
        let said = |found: &[Finding], verdict: Verdict| -> Vec<String> {
            let of = found.iter().filter(|finding| finding.verdict == verdict);
            of.map(|finding| finding.said.clone()).collect()
        };
        let found = look(&[
            key,
            ("base_url", "https://calls.example.com"),
            ("trusted_proxy", "true"),
        ]);
        assert_eq!(said(&found, Verdict::Ok), ["can be read"]);
        assert_eq!(found.len(), 1, "{found:?}");
        let failures = said(&look(&[]), Verdict::Failure);
        assert!(
            failures.len() == 1 && failures[0].starts_with("secret_key"),
            "{failures:?}"
        );
        let found = look(&[key, ("dev", "true"), ("base_url", "https://calls.example.com")]);
        let warnings = said(&found, Verdict::Warning);
        assert!(
            warnings[0].starts_with("dev is on") && warnings[1].starts_with("trusted_proxy is off"),
            "{warnings:?}"
        );
    }
}
