//! An e-mail: scheduled -> queued -> sending -> sent | deferred | bounced | failed; deferred -> sending | failed; scheduled,
//! queued, deferred -> canceled.
//!
//! `sending` is told as `queued`: the intent is committed, and the message may have left. From there it is never handed over
//! again unless the server did not take it: where the connection was lost after the message's end, or the service crashed, it
//! has failed with `unknown_outcome`. It is charged when the server has taken it.
use crate::{
    contact::machine::Ending,
    effect::{Effect, Fact, Work},
    machine::Machine,
    message::{self, Bar, Block, Fault, INVALID_MESSAGE, UNKNOWN_OUTCOME, is_final},
};
use entities::{
    Error, Result,
    changes::{Guard, Reachable},
    email_message::{Model as Email, Phase},
    ids::{DeliveryRowId, EmailId, Owned},
    ledger::Movement,
    message_send::{self, Channel},
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
    /// It cannot be made: nothing was handed to anybody, even if that was about to be done.
    Unbuilt {
        why: String,
    },
    /// The server has taken it; what it said.
    Taken(Option<String>),
    /// The server has not taken it, and may later.
    Busy {
        why: Fault,
    },
    /// The server takes nothing for this recipient.
    Bounced(Fault),
    /// The server will not take it.
    Refused(Fault),
    /// It may or may not have been taken.
    Lost {
        why: String,
    },
    Cancel,
}

/// Seconds after which a message whose sender was cut off has failed: longer than any talk with a server.
pub const UNKNOWN_AFTER_SECONDS: i64 = 600;
/// A message that its sender has had in hand for so long is looked at again.
const LEASE_SECONDS: i64 = 60;
/// Waiting time after the 1st, 2nd, … refusal that may pass; then it has failed: a day and a half in all. Servers that greylist
/// want minutes, a broken one hours.
pub const DELAYS: [Duration; 10] = [
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(15 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(3600),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(4 * 3600),
    Duration::from_secs(8 * 3600),
    Duration::from_secs(10 * 3600),
    Duration::from_secs(10 * 3600),
];
/// A blocked workspace's message is looked at again after this, and given up after that.
const BLOCKED_LOOK_SECONDS: i64 = 60;
const BLOCKED_FOR_SECONDS: i64 = 48 * 3600;

/// The whole life of a message. Pure.
pub fn transition(row: Email, command: Command, now: Moment) -> Result<(Email, Vec<Effect>)> {
    use Phase::*;
    match (row.phase, command) {
        (Scheduled | Queued | Deferred, Command::Tick) if is_due(&row, now) => Ok(take_up(row, now)),
        (Sending, Command::Tick) if is_due(&row, now) => {
            let why = "it is not known whether it was sent: the service was interrupted meanwhile";
            Ok(fail(row, Fault::new(UNKNOWN_OUTCOME, why), now))
        }
        (Queued | Deferred, Command::Begin) => Ok(begin_again(row, now)),
        (Scheduled | Queued | Deferred, Command::Bar(bar)) => Ok(fail(row, why_barred(bar), now)),
        (Queued | Deferred, Command::Wait(block)) => Ok(wait(row, block, now)),
        (Queued | Deferred | Sending, Command::Unbuilt { why }) => Ok(unbuilt(row, why, now)),
        (Sending, Command::Taken(reply)) => Ok(taken(row, reply, now)),
        (Sending, Command::Busy { why }) => Ok(again(row, why, now)),
        (Sending, Command::Bounced(fault)) => Ok(with_fault(row, Bounced, fault, now)),
        (Sending, Command::Refused(fault)) => Ok(fail(row, fault, now)),
        (Sending, Command::Lost { why }) => Ok(fail(row, Fault::new(UNKNOWN_OUTCOME, why), now)),
        (Scheduled | Queued | Deferred, Command::Cancel) => Ok(cancel(row, now)),
        (Sending, Command::Cancel) => Err(too_late("queued", "it is being sent: wait for the outcome")),
        (Sent, Command::Cancel) => Err(too_late("sent", "the mail server has it")),
        (Bounced, Command::Cancel) => Err(too_late("bounced", "it has ended")),
        (Failed, Command::Cancel) => Err(too_late("failed", "it has ended")),
        (Scheduled | Sending | Sent | Bounced | Failed | Canceled, Command::Begin) => Err(Error::InvalidState {
            kind: "message",
            state: "settled",
            command: "be sent",
            hint: "it is sent once",
        }),
        // Ticks come early, and work reports late: no change, not an error.
        (_, Command::Tick)
        | (Sending | Sent | Bounced | Failed | Canceled, Command::Bar(_))
        | (Scheduled | Sending | Sent | Bounced | Failed | Canceled, Command::Wait(_))
        | (Scheduled | Sent | Bounced | Failed | Canceled, Command::Unbuilt { .. })
        | (
            Scheduled | Queued | Deferred | Sent | Bounced | Failed | Canceled,
            Command::Taken(_) | Command::Busy { .. } | Command::Bounced(_) | Command::Refused(_) | Command::Lost { .. },
        )
        | (Canceled, Command::Cancel) => Ok((row, Vec::new())),
    }
}

/// The next moment at which `Tick` can matter. One that waits for its time needs no actor: its row says when it does.
pub fn next_deadline(row: &Email) -> Option<Moment> {
    row.wake_at
        .filter(|_| matches!(row.phase, Phase::Queued | Phase::Deferred | Phase::Sending))
}

fn is_due(row: &Email, now: Moment) -> bool {
    row.wake_at.is_some_and(|at| now >= at)
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
fn take_up(mut row: Email, now: Moment) -> (Email, Vec<Effect>) {
    if row.phase == Phase::Scheduled {
        row.phase = Phase::Queued;
    }
    row.wake_at = Some(now.plus_seconds(LEASE_SECONDS));
    let key = row.key();
    (row, vec![Work::SendEmail(key).into()])
}

/// Another attempt, or one of its own: a campaign's waits while the campaign is paused, and is none when that is over.
fn begin_again(row: Email, now: Moment) -> (Email, Vec<Effect>) {
    let runs = row.campaign_id.map(|id| Fact::Require(Guard::Runs(id)).into());
    let (row, mut effects) = begin(row, now);
    effects.extend(runs);
    (row, effects)
}

/// The intent, with everything that stands or falls with it.
pub fn begin(mut row: Email, now: Moment) -> (Email, Vec<Effect>) {
    row.phase = Phase::Sending;
    row.attempts += 1;
    row.wake_at = Some(now.plus_seconds(UNKNOWN_AFTER_SECONDS));
    let mut effects = vec![
        Fact::Require(Guard::Reachable(Reachable {
            tenant_id: row.tenant_id,
            env: row.env,
            channel: Channel::Email.dnc(),
            address: row.to_address.clone(),
        }))
        .into(),
        Fact::SaveSend(message_send::Model {
            tenant_id: row.tenant_id,
            env: row.env,
            channel: Channel::Email,
            address: row.to_address.clone(),
            message_id: row.id.0,
            n: row.attempts,
            campaign_id: row.campaign_id,
            sent_at: now,
            seq: 0,
        })
        .into(),
    ];
    // Once, and kept while the server is asked again.
    if row.held_cents == Cents(0) && row.price_cents > Cents(0) {
        row.held_cents = row.price_cents;
        effects.push(Fact::Move(Movement::hold((row.tenant_id, row.env), row.id.0, row.price_cents)).into());
    }
    (row, effects)
}

/// What is charged, and what is given back: once in a message's life.
fn settle(row: &mut Email, cost: Cents) -> Vec<Effect> {
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

fn taken(mut row: Email, reply: Option<String>, now: Moment) -> (Email, Vec<Effect>) {
    row.phase = Phase::Sent;
    row.provider_message_id = reply;
    row.wake_at = None;
    (row.error_code, row.error_message) = (None, None);
    (row.sent_at, row.ended_at) = (Some(now), Some(now));
    let price = row.price_cents;
    let mut effects = settle(&mut row, price);
    effects.extend(finish_attempt(&row));
    (row, effects)
}

fn again(mut row: Email, why: Fault, now: Moment) -> (Email, Vec<Effect>) {
    let nth = usize::try_from(row.attempts - 1).unwrap_or(0);
    let Some(delay) = DELAYS.get(nth) else {
        return fail(row, why, now);
    };
    row.phase = Phase::Deferred;
    row.wake_at = Some(now.plus(*delay));
    row.error_code = Some(why.code.into());
    row.error_message = Some(why.message);
    (row, Vec::new())
}

fn wait(mut row: Email, block: Block, now: Moment) -> (Email, Vec<Effect>) {
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
        Bar::Dnc => Fault::new("recipient_on_dnc", "the address is on the do-not-call list"),
        Bar::NotConfigured => Fault::new("not_configured", "no mail server is configured"),
        Bar::Sender => Fault::new("sender_unverified", "its sender is no longer verified"),
    }
}

fn unbuilt(mut row: Email, why: String, now: Moment) -> (Email, Vec<Effect>) {
    if row.phase == Phase::Sending {
        row.attempts -= 1;
    }
    fail(row, Fault::new(INVALID_MESSAGE, why), now)
}

fn fail(row: Email, fault: Fault, now: Moment) -> (Email, Vec<Effect>) {
    with_fault(row, Phase::Failed, fault, now)
}

fn with_fault(mut row: Email, phase: Phase, fault: Fault, now: Moment) -> (Email, Vec<Effect>) {
    row.error_code = Some(fault.code.into());
    row.error_message = Some(fault.message);
    end(row, phase, now)
}

fn cancel(mut row: Email, now: Moment) -> (Email, Vec<Effect>) {
    (row.error_code, row.error_message) = (None, None);
    end(row, Phase::Canceled, now)
}

/// It ends unsent: what was held for it is given back.
fn end(mut row: Email, phase: Phase, now: Moment) -> (Email, Vec<Effect>) {
    row.phase = phase;
    row.wake_at = None;
    row.ended_at = Some(now);
    let mut effects = settle(&mut row, Cents(0));
    effects.extend(finish_attempt(&row));
    (row, effects)
}

/// What its end means to its campaign's contact.
fn finish_attempt(row: &Email) -> Vec<Effect> {
    let code = row.error_code.as_deref().unwrap_or_default();
    let ending = match row.phase {
        Phase::Sent => Ending::Arrived,
        Phase::Failed if !is_final(code) => Ending::NotArrived,
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

impl Machine for Email {
    type Key = EmailId;
    type Command = Command;
    const KIND: &'static str = "email";
    const TICK: Command = Command::Tick;

    fn owner(&self) -> Owned<EmailId> {
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
        let only_waits = self.phase == before.phase && matches!(self.phase, Phase::Queued | Phase::Deferred);
        let wake_at = if only_waits { before.wake_at } else { self.wake_at };
        Email {
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
