//! The carrier's own log of calls: a line of JSON when one is handed to it and one when it has ended. Written before anything
//! else is done with the call, so that it tells what really left, even if the service dies at that moment.
use crate::call::leg::Leg;
use entities::{ids::SessionId, values::E164};
use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

pub struct Log(Option<Mutex<File>>);

impl Log {
    /// An empty path: no log.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        if path.as_os_str().is_empty() {
            return Ok(Log(None));
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Log(Some(Mutex::new(file))))
    }

    pub fn placed(&self, leg: &Leg) {
        self.line("placed", leg.session(), leg.to(), None);
    }

    /// `outcome`: `never_accepted`, if the carrier had no room for it.
    pub fn ended(&self, session: entities::ids::TenantScoped<SessionId>, to: Option<&E164>, outcome: Option<&str>) {
        self.line("ended", session, to, outcome);
    }

    fn line(
        &self,
        what: &str,
        session: entities::ids::TenantScoped<SessionId>,
        to: Option<&E164>,
        outcome: Option<&str>,
    ) {
        let Some(file) = &self.0 else { return };
        let mut line = serde_json::json!({
            "at": micros(),
            "what": what,
            "session": session.id,
            "to": to,
            "tenant": session.tenant_id,
            "env": session.env,
        });
        if let Some(outcome) = outcome {
            line["outcome"] = outcome.into();
        }
        let written = writeln!(file.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
        if let Err(error) = written {
            tracing::error!(%error, "the sandbox's log could not be written");
        }
    }
}

/// Real time, also where the service runs on a clock of tests: a log is the outside's.
fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
