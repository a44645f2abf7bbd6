//! The provider for test keys: in this process, the same every time, through the same machine. The number's last digit decides:
//! 0 delivered · 1 undelivered · 2 refused, `invalid_number` · 3 taken, and never a report · 4 not taken at first, then
//! delivered · 5 refused, the recipient has opted out · 6 the answer is lost, and half a minute later it is delivered · 7 the
//! answer is lost for good · 8 reports out of order, and twice · 9 taken, then failed. It keeps nothing: what it has not reported
//! when the service ends, it never reports.
use super::provider::{Outgoing, Provider, Sent, SmsOutcome};
use entities::values::E164;
use futures_util::future::BoxFuture;
use rules::{
    message::{Fault, OPTED_OUT},
    sms::machine::{Progress, Report},
};
use std::{sync::LazyLock, time::Duration};

pub struct Sandbox;

/// Who writes where the workspace has no number: one of the sandbox's own block.
static FROM: LazyLock<E164> = LazyLock::new(|| {
    "+15002220000"
        .parse()
        .unwrap_or_else(|_| unreachable!("a number in its stored form"))
});

impl Provider for Sandbox {
    fn send(&self, message: Outgoing) -> BoxFuture<'static, Sent> {
        let id = format!("SB{}", message.key.id.0.simple());
        let undelivered = || Progress::Undelivered(Fault::new("undelivered", "the sandbox plays a phone that is off"));
        let failed = || {
            Progress::Failed(Fault::new(
                "provider_failed",
                "the sandbox plays a provider that gives up",
            ))
        };
        let delivered = || vec![(1, Progress::OnItsWay), (2, Progress::Delivered)];
        let (outcome, reports) = match message.to.last_digit() {
            1 => (None, vec![(1, Progress::OnItsWay), (2, undelivered())]),
            2 => (Some(refused("invalid_number", "no such number")), Vec::new()),
            3 => (None, Vec::new()),
            4 if message.attempt == 1 => (Some(busy()), Vec::new()),
            5 => (Some(refused(OPTED_OUT, "the recipient has opted out")), Vec::new()),
            6 => (Some(lost()), vec![(30, Progress::Delivered)]),
            7 => (Some(lost()), Vec::new()),
            8 => {
                let twice = [
                    Progress::Delivered,
                    Progress::OnItsWay,
                    Progress::Delivered,
                    undelivered(),
                ];
                (None, (1..).zip(twice).collect())
            }
            9 => (None, vec![(1, Progress::OnItsWay), (2, failed())]),
            _ => (None, delivered()),
        };
        let outcome = outcome.unwrap_or_else(|| SmsOutcome::Taken(Some(id.clone())));
        let reports = reports.into_iter().filter(|_| message.report_to.is_some());
        let reports = reports.map(|(seconds, progress)| {
            let report = Report {
                provider_message_id: Some(id.clone()),
                progress,
            };
            (Duration::from_secs(seconds), report)
        });
        let sent = Sent {
            outcome,
            reports: reports.collect(),
        };
        Box::pin(async move { sent })
    }

    fn default_from(&self) -> Option<&E164> {
        Some(&FROM)
    }
}

fn refused(code: &'static str, words: &str) -> SmsOutcome {
    SmsOutcome::Refused(Fault::new(code, format!("the sandbox plays: {words}")))
}

fn busy() -> SmsOutcome {
    SmsOutcome::Busy {
        retry_after: None,
        why: Fault::new("provider_unavailable", "the sandbox plays a provider that is busy"),
    }
}

fn lost() -> SmsOutcome {
    SmsOutcome::Lost("the sandbox plays an answer that is lost".into())
}
