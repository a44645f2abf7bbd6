//! Who hands messages over. One trait; the sandbox is its implementation for test keys.
use entities::{
    ids::{SmsId, TenantScoped},
    sms_message::Model,
    values::E164,
};
use futures_util::future::BoxFuture;
use rules::{
    message::{Fault, OPTED_OUT},
    sms::machine::{Command, Report},
};
use runtime::permits::Permits;
use std::{sync::Arc, time::Duration};

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub key: TenantScoped<SmsId>,
    pub to: E164,
    pub from: Option<E164>,
    pub body: String,
    /// 1, and more where it was not taken before.
    pub attempt: i32,
    /// Where what becomes of it is to be reported; `None`: nobody wants to know.
    pub report_to: Option<String>,
}

impl Outgoing {
    pub fn of(row: &Model, report_to: Option<String>) -> Self {
        Outgoing {
            key: row.key(),
            to: row.to_number.clone(),
            from: row.from_number.clone(),
            body: row.body.clone(),
            attempt: row.attempts,
            report_to,
        }
    }
}

/// What came of handing it over.
#[derive(Clone, Debug, PartialEq)]
pub enum SmsOutcome {
    /// The provider has it; its own id for it, if that could be read.
    Taken(Option<String>),
    /// It was not taken, and may be later.
    Busy { retry_after: Option<Duration>, why: Fault },
    /// It will not be taken.
    Refused(Fault),
    /// The request left, and no answer came.
    Lost(String),
}

impl From<SmsOutcome> for Command {
    fn from(outcome: SmsOutcome) -> Command {
        match outcome {
            SmsOutcome::Taken(id) => Command::Taken(id),
            SmsOutcome::Busy { retry_after, why } => Command::Busy { retry_after, why },
            SmsOutcome::Refused(fault) => Command::Refused(fault),
            SmsOutcome::Lost(why) => Command::Lost { why },
        }
    }
}

/// What came of handing a message over, and what will be reported of it by whoever reports nothing by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub outcome: SmsOutcome,
    /// How long after, and what.
    pub reports: Vec<(Duration, Report)>,
}

impl From<SmsOutcome> for Sent {
    fn from(outcome: SmsOutcome) -> Self {
        Sent {
            outcome,
            reports: Vec::new(),
        }
    }
}

pub trait Provider: Send + Sync {
    /// Called after the intent stands, once for each.
    fn send(&self, message: Outgoing) -> BoxFuture<'static, Sent>;
    /// Who writes where the workspace has no number; `None`: the provider chooses.
    fn default_from(&self) -> Option<&E164>;
}

/// A provider and how many messages it is handed at once.
pub struct Door {
    pub provider: Arc<dyn Provider>,
    pub permits: Permits,
}

impl Door {
    pub fn new(provider: Arc<dyn Provider>, at_once: usize) -> Self {
        Door {
            provider,
            permits: Permits::new(at_once),
        }
    }
}

/// What a provider's error number means. Source: Twilio, "Error and Warning Dictionary".
pub fn fault(number: Option<i64>, words: &str, otherwise: &'static str) -> Fault {
    let code = match number {
        Some(21_610) => OPTED_OUT,
        Some(21_211 | 21_214 | 21_217 | 21_614 | 30_005 | 30_006) => "invalid_number",
        Some(30_003) => "unreachable",
        Some(30_004 | 30_007) => "blocked",
        Some(_) | None => otherwise,
    };
    match number {
        Some(number) => Fault::new(code, format!("{words} (provider's code {number})").trim_start()),
        None => Fault::new(code, words),
    }
}
