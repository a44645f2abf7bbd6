//! An SMS: scheduled -> queued -> sending -> sent -> delivered | undelivered | failed; queued -> failed; scheduled, queued ->
//! canceled. What came in is `received` and has no life.
//!
//! `sending` is told as `queued`: the intent is committed, and the message may have left. From there it is never handed over
//! again unless the provider said that it did not take it: an answer that is lost leaves it waiting for the provider's report,
//! and after [`UNKNOWN_AFTER_SECONDS`] it has failed with `unknown_outcome`. A report that comes later still corrects that.
//! It is charged when the provider has taken it; one that was given up is not, also where a late report proves that it went.
use crate::{
    contact::machine::Ending,
    effect::{Effect, Fact, Work},
    machine::Machine,
    message::{self, Bar, Block, Fault, OPTED_OUT, UNKNOWN_OUTCOME, is_final},
};
use entities::{
    Error, Result,
    changes::{Guard, Reachable},
    ids::{DeliveryRowId, Owned, SmsId},
    ledger::Movement,
    message_send::{self, Channel},
    sms_message::{Model as Sms, Phase},
    values::{Cents, Moment},
};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Look at the time.
    Tick,
    /// The intent to hand it over now: stands only if the recipient may still be written to.
    Begin,
    /// Something keeps it from being sent at all.
    Bar(Bar),
    /// Something keeps it from being sent now: the workspace is blocked.
    Wait(Block),
    /// The provider has taken it; its own id for it, when it said so.
    Taken(Option<String>),
    /// The provider has not taken it, and may later.
    Busy {
        /// What the provider asked for.
        retry_after: Option<Duration>,
        why: Fault,
    },
    /// The provider will not take it.
    Refused(Fault),
    /// It may or may not have been taken.
    Lost {
        why: String,
    },
    /// What the provider reports later, in any order, and more than once.
    Report(Report),
    Cancel,
}

/// What has become of a message, as the provider says.
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

/// Seconds after which a message whose answer was lost, and of which nothing was reported, has failed.
pub const UNKNOWN_AFTER_SECONDS: i64 = 600;
/// A message that its sender has had in hand for so long is looked at again.
const LEASE_SECONDS: i64 = 60;
/// Waiting time after the 1st, 2nd, … refusal that may pass; then it has failed.
pub const DELAYS: [Duration; 8] = [
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(3600),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(4 * 3600),
];
/// The longest pause that a provider's `Retry-After` is heeded for.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(6 * 3600);
/// A blocked workspace's message is looked at again after this, and given up after that.
const BLOCKED_LOOK_SECONDS: i64 = 60;
const BLOCKED_FOR_SECONDS: i64 = 24 * 3600;

/// A campaign's message of which nothing is reported counts as arrived after this.
pub const REPORT_SECONDS: i64 = 900;

/// The whole life of a message. Pure.
pub fn transition(row: Sms, command: Command, now: Moment) -> Result<(Sms, Vec<Effect>)> {
    use Phase::*;
    match (row.phase, command) {
        (Scheduled | Queued, Command::Tick) if is_due(&row, now) => Ok(take_up(row, now)),
        (Sending, Command::Tick) if is_due(&row, now) => {
            let why = row
                .error_message
                .clone()
                .unwrap_or_else(|| "it is not known whether it was sent".into());
            Ok(fail(row, Fault::new(UNKNOWN_OUTCOME, why), now))
        }
        (Sent, Command::Tick) if is_due(&row, now) => Ok(unreported(row)),
        (Queued, Command::Begin) => Ok(begin_again(row, now)),
        (Scheduled | Queued, Command::Bar(bar)) => Ok(fail(row, why_barred(bar), now)),
        (Queued, Command::Wait(block)) => Ok(wait(row, block, now)),
        (Sending, Command::Taken(id)) => Ok(taken(row, id, now)),
        (Sending, Command::Busy { retry_after, why }) => Ok(again(row, retry_after, why, now)),
        (Sending, Command::Refused(fault)) => {
            let heeded = heed(&row, &fault);
            let (row, mut effects) = fail(row, fault, now);
            effects.extend(heeded);
            Ok((row, effects))
        }
        (Sending, Command::Lost { why }) => Ok((lost(row, why), Vec::new())),
        (Sending, Command::Report(report)) => Ok(report_of_taken(row, report, now)),
        // It said that it had not taken it, and it had: never again.
        (Queued, Command::Report(report)) if row.attempts > 0 => Ok(report_of_taken(row, report, now)),
        (Sent, Command::Report(report)) => Ok(progress(row, report, now)),
        (Failed, Command::Report(report)) if is_unknown(&row) => Ok(corrected(row, report, now)),
        (Scheduled | Queued, Command::Cancel) => Ok(cancel(row, now)),
        // The answer after the report: it still tells the provider's id.
        (Sent | Delivered | Undelivered | Failed, Command::Taken(id)) => Ok((identified(row, id), Vec::new())),
        (Sending, Command::Cancel) => Err(too_late("queued", "it is being sent: wait for the outcome")),
        (Sent, Command::Cancel) => Err(too_late("sent", "the provider has it")),
        (Delivered, Command::Cancel) => Err(too_late("delivered", "it has arrived")),
        (Undelivered, Command::Cancel) => Err(too_late("undelivered", "it has ended")),
        (Failed, Command::Cancel) => Err(too_late("failed", "it has ended")),
        (Received, Command::Cancel) => Err(too_late("received", "it came in")),
        (Scheduled | Sending | Sent | Delivered | Undelivered | Failed | Canceled | Received, Command::Begin) => {
            Err(Error::InvalidState {
                kind: "message",
                state: "settled",
                command: "be sent",
                hint: "it is sent once",
            })
        }
        // Ticks come early, work reports late, providers repeat themselves: no change, not an error.
        (_, Command::Tick)
        | (Sending | Sent | Delivered | Undelivered | Failed | Canceled | Received, Command::Bar(_))
        | (Scheduled | Sending | Sent | Delivered | Undelivered | Failed | Canceled | Received, Command::Wait(_))
        | (Scheduled | Queued | Canceled | Received, Command::Taken(_))
        | (
            Scheduled | Queued | Sent | Delivered | Undelivered | Failed | Canceled | Received,
            Command::Busy { .. } | Command::Refused(_) | Command::Lost { .. },
        )
        | (Scheduled | Queued | Delivered | Undelivered | Failed | Canceled | Received, Command::Report(_))
        | (Canceled, Command::Cancel) => Ok((row, Vec::new())),
    }
}

/// The next moment at which `Tick` can matter. One that waits for its time needs no actor: its row says when it does.
pub fn next_deadline(row: &Sms) -> Option<Moment> {
    row.wake_at
        .filter(|_| matches!(row.phase, Phase::Queued | Phase::Sending | Phase::Sent))
}

fn is_due(row: &Sms, now: Moment) -> bool {
    row.wake_at.is_some_and(|at| now >= at)
}

fn is_unknown(row: &Sms) -> bool {
    row.error_code.as_deref() == Some(UNKNOWN_OUTCOME)
}

fn too_late(state: &'static str, hint: &'static str) -> Error {
    Error::InvalidState {
        kind: "message",
        state,
        command: "be canceled",
        hint,
    }
}

/// Its time has come: its sender takes it in hand. The lease is in no row, so that a start finds it due.
fn take_up(mut row: Sms, now: Moment) -> (Sms, Vec<Effect>) {
    row.phase = Phase::Queued;
    row.wake_at = Some(now.plus_seconds(LEASE_SECONDS));
    let key = row.key();
    (row, vec![Work::SendSms(key).into()])
}

/// Another attempt, or one of its own: a campaign's waits while the campaign is paused, and is none when that is over.
fn begin_again(row: Sms, now: Moment) -> (Sms, Vec<Effect>) {
    let runs = row.campaign_id.map(|id| Fact::Require(Guard::Runs(id)).into());
    let (row, mut effects) = begin(row, now);
    effects.extend(runs);
    (row, effects)
}

/// The intent, with everything that stands or falls with it.
pub fn begin(mut row: Sms, now: Moment) -> (Sms, Vec<Effect>) {
    row.phase = Phase::Sending;
    row.attempts += 1;
    row.wake_at = Some(now.plus_seconds(UNKNOWN_AFTER_SECONDS));
    let mut effects = vec![
        Fact::Require(Guard::Reachable(Reachable {
            tenant_id: row.tenant_id,
            env: row.env,
            channel: Channel::Sms.dnc(),
            address: row.to_number.as_str().to_owned(),
        }))
        .into(),
        Fact::SaveSend(message_send::Model {
            tenant_id: row.tenant_id,
            env: row.env,
            channel: Channel::Sms,
            address: row.to_number.as_str().to_owned(),
            message_id: row.id.0,
            n: row.attempts,
            campaign_id: row.campaign_id,
            sent_at: now,
            seq: 0,
        })
        .into(),
    ];
    // Once, and kept while the provider is asked again.
    if row.held_cents == Cents(0) && row.price_cents > Cents(0) {
        row.held_cents = row.price_cents;
        effects.push(Fact::Move(Movement::hold((row.tenant_id, row.env), row.id.0, row.price_cents)).into());
    }
    (row, effects)
}

/// What is charged, and what is given back: once in a message's life.
fn settle(row: &mut Sms, cost: Cents) -> Vec<Effect> {
    if std::mem::replace(&mut row.settled, true) {
        return Vec::new();
    }
    let held = std::mem::take(&mut row.held_cents);
    row.cost_cents = cost.min(held);
    if held == Cents(0) {
        return Vec::new();
    }
    let movement = Movement::settle((row.tenant_id, row.env), row.id.0, held, row.cost_cents);
    vec![Fact::Move(movement).into()]
}

fn taken(mut row: Sms, id: Option<String>, now: Moment) -> (Sms, Vec<Effect>) {
    row = identified(row, id);
    row.phase = Phase::Sent;
    // A contact waits for the report, but not for ever.
    row.wake_at = row.contact_id.map(|_| now.plus_seconds(REPORT_SECONDS));
    row.ended_at = None;
    (row.error_code, row.error_message) = (None, None);
    row.sent_at = row.sent_at.or(Some(now));
    let price = row.price_cents;
    let effects = settle(&mut row, price);
    (row, effects)
}

fn identified(mut row: Sms, id: Option<String>) -> Sms {
    row.provider_message_id = row.provider_message_id.or(id);
    row
}

/// A report proves that the provider has taken it, whatever we thought.
fn report_of_taken(row: Sms, report: Report, now: Moment) -> (Sms, Vec<Effect>) {
    let (row, mut effects) = taken(row, report.provider_message_id.clone(), now);
    let (row, more) = progress(row, report, now);
    effects.extend(more);
    (row, effects)
}

/// The truth about one that was given up. Its contact was told that already, and does not wait any more.
fn corrected(row: Sms, report: Report, now: Moment) -> (Sms, Vec<Effect>) {
    let (mut row, mut effects) = taken(row, report.provider_message_id.clone(), now);
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
    let heeded = fault.as_ref().and_then(|fault| heed(&row, fault));
    if let Some(fault) = fault {
        row.error_code = Some(fault.code.into());
        row.error_message = Some(fault.message);
    }
    let mut effects: Vec<Effect> = heeded.into_iter().collect();
    if is_awaited {
        effects.extend(finish_attempt(&row));
    }
    (row, effects)
}

/// Who has told the provider to let nothing through has told us.
fn heed(row: &Sms, fault: &Fault) -> Option<Effect> {
    (fault.code == OPTED_OUT).then(|| {
        Fact::StopTexts {
            phone_number: row.to_number.clone(),
        }
        .into()
    })
}

fn again(mut row: Sms, retry_after: Option<Duration>, why: Fault, now: Moment) -> (Sms, Vec<Effect>) {
    let nth = usize::try_from(row.attempts - 1).unwrap_or(0);
    let Some(delay) = DELAYS.get(nth) else {
        return fail(row, why, now);
    };
    let asked = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
    row.phase = Phase::Queued;
    row.wake_at = Some(now.plus((*delay).max(asked)));
    row.error_code = Some(why.code.into());
    row.error_message = Some(why.message);
    (row, Vec::new())
}

/// It waits for the report, no longer than until the limit that its intent set.
fn lost(mut row: Sms, why: String) -> Sms {
    row.error_message = Some(Fault::new(UNKNOWN_OUTCOME, why).message);
    row
}

fn wait(mut row: Sms, block: Block, now: Moment) -> (Sms, Vec<Effect>) {
    let (code, message) = match block {
        Block::Credits => ("insufficient_credits", "the credits did not cover it"),
        Block::Suspension => ("plan_limit", "the workspace is suspended"),
        Block::Pause => ("campaign_paused", "its campaign is paused"),
    };
    let since = row.scheduled_at.map_or(row.created_at, |at| at.max(row.created_at));
    if now >= since.plus_seconds(BLOCKED_FOR_SECONDS) {
        return fail(row, Fault::new(code, message), now);
    }
    row.wake_at = Some(now.plus_seconds(BLOCKED_LOOK_SECONDS));
    row.error_code = Some(code.into());
    row.error_message = Some(message.into());
    (row, Vec::new())
}

fn why_barred(bar: Bar) -> Fault {
    match bar {
        Bar::CampaignOver => Fault::new("canceled", "its campaign was over before it could be sent"),
        Bar::TooLate => Fault::new(
            "outside_calling_hours",
            "its campaign's hours were over before it could be sent",
        ),
        Bar::Dnc => Fault::new("recipient_on_dnc", "the number is on the do-not-call list"),
        Bar::NotConfigured => Fault::new("not_configured", "no SMS provider is configured"),
        Bar::Sender => Fault::new(
            "sender_unverified",
            "from_number was no longer verified when it was to be sent",
        ),
    }
}

fn fail(mut row: Sms, fault: Fault, now: Moment) -> (Sms, Vec<Effect>) {
    row.error_code = Some(fault.code.into());
    row.error_message = Some(fault.message);
    end(row, Phase::Failed, now)
}

fn cancel(mut row: Sms, now: Moment) -> (Sms, Vec<Effect>) {
    (row.error_code, row.error_message) = (None, None);
    end(row, Phase::Canceled, now)
}

/// It ends unsent: what was held for it is given back.
fn end(mut row: Sms, phase: Phase, now: Moment) -> (Sms, Vec<Effect>) {
    row.phase = phase;
    row.wake_at = None;
    row.ended_at = Some(now);
    let mut effects = settle(&mut row, Cents(0));
    effects.extend(finish_attempt(&row));
    (row, effects)
}

/// Nothing was reported: its contact waits no longer.
fn unreported(mut row: Sms) -> (Sms, Vec<Effect>) {
    row.wake_at = None;
    let effects = finish_attempt(&row);
    (row, effects)
}

/// What its end means to its campaign's contact.
fn finish_attempt(row: &Sms) -> Vec<Effect> {
    let code = row.error_code.as_deref().unwrap_or_default();
    let ending = match row.phase {
        Phase::Sent | Phase::Delivered => Ending::Arrived,
        Phase::Undelivered | Phase::Failed if !is_final(code) => Ending::NotArrived,
        _ => Ending::Final,
    };
    message::finish_attempt(message::Ended {
        owner: (row.tenant_id, row.env),
        campaign: row.campaign_id.zip(row.contact_id),
        row: DeliveryRowId(row.id.0),
        first_sent_at: (row.attempts > 0).then_some(row.created_at),
        ending,
        cost: row.cost_cents,
    })
}

impl Machine for Sms {
    type Key = SmsId;
    type Command = Command;
    const KIND: &'static str = "sms";
    const TICK: Command = Command::Tick;

    fn owner(&self) -> Owned<SmsId> {
        self.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        next_deadline(self)
    }
    /// That its sender has it in hand is forgotten with a crash: it is due again at the next start.
    fn differs(&self, before: &Self) -> bool {
        let only_waits = self.phase == Phase::Queued && before.phase == Phase::Queued;
        let wake_at = if only_waits { before.wake_at } else { self.wake_at };
        Sms {
            wake_at,
            ..self.clone()
        } != *before
    }
    fn is_at_rest(&self) -> bool {
        self.next_deadline().is_none()
    }
    fn version(&self) -> i32 {
        self.version
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
