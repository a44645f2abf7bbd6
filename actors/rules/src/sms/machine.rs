//! An SMS: scheduled -> queued -> sending -> sent -> delivered | undelivered | failed; queued -> failed; scheduled, queued ->
//! canceled. What came in is `received` and has no life.
//!
//! An answer that is lost leaves it in `sending`, waiting for the provider's report; after ten minutes it has failed with
//! `unknown_outcome`. A report that comes later still corrects that, but one that was given up is not charged, also where the
//! report proves that it went.
use super::segments;
use crate::{
    contact::machine::Ending,
    effect::{Effect, Fact, Work},
    message::{
        Fault, OPTED_OUT, UNKNOWN_OUTCOME, is_final, machine,
        outgoing::{Outgoing, Stage, columns, unsent_row},
    },
};
use entities::{
    ids::{SmsId, TenantScoped},
    message_send::Channel,
    sms_message::{Direction, Model as Sms, Phase},
    values::{E164, Moment},
};
use std::time::Duration;

pub use crate::message::machine::begin;
pub type Command = machine::Command<Report>;

/// What has become of a message, as the provider says: in any order, and more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub provider_message_id: Option<String>,
    pub progress: Progress,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Taken, and on its way.
    OnItsWay,
    Delivered,
    Undelivered(Fault),
    Failed(Fault),
}

/// A campaign's message of which nothing is reported counts as arrived after this.
pub const REPORT_SECONDS: i64 = 900;

/// One that goes out at once, by itself and for nothing, and of which nothing has become yet.
pub fn unsent(key: TenantScoped<SmsId>, to_number: E164, body: String, now: Moment) -> Sms {
    let (encoding, segments) = segments::of(&body);
    unsent_row!(Sms, key, now, {
        direction: Direction::Outbound,
        to_number,
        from_number: None,
        body,
        encoding,
        segments,
        delivered_at: None,
    })
}

impl Outgoing for Sms {
    type Id = SmsId;
    type Phase = Phase;
    type Own = Report;

    const CHANNEL: Channel = Channel::Sms;
    const HAND_OVER: fn(TenantScoped<SmsId>) -> Work = Work::SendSms;
    const QUEUED: Phase = Phase::Queued;
    const AGAIN: Phase = Phase::Queued;
    const SENDING: Phase = Phase::Sending;
    const FAILED: Phase = Phase::Failed;
    const CANCELED: Phase = Phase::Canceled;
    const DELAYS: &'static [Duration] = &[
        Duration::from_secs(10),
        Duration::from_secs(30),
        Duration::from_secs(2 * 60),
        Duration::from_secs(10 * 60),
        Duration::from_secs(30 * 60),
        Duration::from_secs(3600),
        Duration::from_secs(2 * 3600),
        Duration::from_secs(4 * 3600),
    ];
    const BLOCKED_FOR_SECONDS: i64 = 24 * 3600;
    const ON_DNC: &'static str = "the number is on the do-not-call list";
    const NOT_CONFIGURED: &'static str = "no SMS provider is configured";
    const SENDER_UNVERIFIED: &'static str = "from_number was no longer verified when it was to be sent";

    columns!();

    fn stage(&self) -> Stage {
        match self.phase {
            Phase::Scheduled => Stage::Scheduled,
            Phase::Queued => Stage::Queued,
            Phase::Sending => Stage::Sending,
            Phase::Sent => Stage::Sent("the provider has it"),
            Phase::Delivered => Stage::Over("delivered", "it has arrived"),
            Phase::Undelivered => Stage::Over("undelivered", "it has ended"),
            Phase::Failed => Stage::Over("failed", "it has ended"),
            Phase::Canceled => Stage::Canceled,
            Phase::Received => Stage::Over("received", "it came in"),
        }
    }
    fn address(&self) -> &str {
        self.to_number.as_str()
    }
    fn shows(&self) -> Option<E164> {
        self.from_number.clone()
    }

    fn taken(self, id: Option<String>, now: Moment) -> (Self, Vec<Effect>) {
        let mut row = identified(self, id);
        row.phase = Phase::Sent;
        // A contact waits for the report, but not for ever.
        row.wake_at = row.contact_id.map(|_| now.plus_seconds(REPORT_SECONDS));
        row.ended_at = None;
        (row.error_code, row.error_message) = (None, None);
        row.sent_at = row.sent_at.or(Some(now));
        let price = row.price_cents;
        let mut effects = machine::settle(&mut row, price);
        // Nothing more may ever be reported: this is what came of it until then.
        effects.extend(machine::outcome(&row, now));
        (row, effects)
    }
    /// The answer after the report: it still tells the provider's id.
    fn taken_late(self, id: Option<String>) -> Self {
        match self.phase {
            Phase::Received => self,
            _ => identified(self, id),
        }
    }
    /// It waits for the report, no longer than until the limit that its intent set.
    fn lost(mut self, why: String, _: Moment) -> (Self, Vec<Effect>) {
        self.error_message = Some(Fault::new(UNKNOWN_OUTCOME, why).message);
        (self, Vec::new())
    }
    fn why_unknown(&self) -> String {
        let known = self.error_message.clone();
        known.unwrap_or_else(|| "it is not known whether it was sent".into())
    }
    /// Who has told the provider to let nothing through has told us.
    fn heed(&self, fault: &Fault) -> Option<Effect> {
        let phone_number = self.to_number.clone();
        (fault.code == OPTED_OUT).then(|| Fact::StopTexts { phone_number }.into())
    }
    fn own(self, report: Report, now: Moment) -> (Self, Vec<Effect>) {
        use Phase::*;
        match self.phase {
            Sending => report_of_taken(self, report, now),
            // It said that it had not taken it, and it had: never again.
            Queued if self.attempts > 0 => report_of_taken(self, report, now),
            Sent => progress(self, report, now),
            Failed if is_unknown(&self) => corrected(self, report, now),
            Scheduled | Queued | Delivered | Undelivered | Failed | Canceled | Received => (self, Vec::new()),
        }
    }
    fn forget(&mut self, now: Moment) -> Option<Fact> {
        self.body.clear();
        self.metadata = Default::default();
        (self.client_reference_id, self.error_message) = (None, None);
        self.deleted_at = Some(now);
        None
    }
    fn ending(&self) -> Ending {
        let code = self.error_code.as_deref().unwrap_or_default();
        match self.phase {
            Phase::Sent | Phase::Delivered => Ending::Arrived,
            Phase::Undelivered | Phase::Failed if !is_final(code) => Ending::NotArrived,
            _ => Ending::Final,
        }
    }
}

fn is_unknown(row: &Sms) -> bool {
    row.error_code.as_deref() == Some(UNKNOWN_OUTCOME)
}

fn identified(mut row: Sms, id: Option<String>) -> Sms {
    row.provider_message_id = row.provider_message_id.or(id);
    row
}

/// A report proves that the provider has taken it, whatever we thought.
fn report_of_taken(row: Sms, report: Report, now: Moment) -> (Sms, Vec<Effect>) {
    let (row, mut effects) = row.taken(report.provider_message_id.clone(), now);
    let (row, more) = progress(row, report, now);
    effects.extend(more);
    (row, effects)
}

/// The truth about one that was given up. Its contact was told that already, and does not wait any more.
fn corrected(row: Sms, report: Report, now: Moment) -> (Sms, Vec<Effect>) {
    let (mut row, mut effects) = row.taken(report.provider_message_id.clone(), now);
    row.wake_at = None;
    let (row, more) = progress(row, report, now);
    effects.extend(more);
    (row, effects)
}

/// From `sent` on: the first last word counts.
fn progress(mut row: Sms, report: Report, now: Moment) -> (Sms, Vec<Effect>) {
    row = identified(row, report.provider_message_id);
    // Its contact is told once: while it waits for that.
    let is_awaited = row.wake_at.is_some();
    let fault = match report.progress {
        Progress::OnItsWay => return (row, Vec::new()),
        Progress::Delivered => {
            row.phase = Phase::Delivered;
            row.delivered_at = Some(now);
            None
        }
        Progress::Undelivered(fault) => {
            row.phase = Phase::Undelivered;
            Some(fault)
        }
        Progress::Failed(fault) => {
            row.phase = Phase::Failed;
            Some(fault)
        }
    };
    row.ended_at = Some(now);
    row.wake_at = None;
    let mut effects = Vec::new();
    if let Some(fault) = fault {
        effects.extend(row.heed(&fault));
        machine::explain(&mut row, fault);
    }
    if is_awaited {
        effects.extend(machine::finish_attempt(&row));
    }
    effects.extend(machine::outcome(&row, now));
    (row, effects)
}
