//! A message to somebody outside, by SMS or by e-mail: scheduled -> queued -> sending -> taken, or queued once more, or ended;
//! queued -> failed; scheduled, queued -> canceled. What each of the two calls its states, and what only one of them knows, is in
//! its [`Outgoing`].
//!
//! `sending` is told as `queued`: the intent is committed, and the message may have left. From there it is never handed over
//! again unless whoever was to take it did not. It is charged when it was taken. Once it has left, or ended, what it said can be
//! erased; its state stays.
use super::{
    Block, Fault, MessageRejectReason, UNKNOWN_OUTCOME,
    outgoing::{Outgoing, Stage},
};
use crate::{
    contact::machine::{Attempt, Ending},
    effect::{Effect, Fact, Hint},
    law::{
        Bound, OpenedMessage,
        record::{Closing, OutcomeBody},
    },
    machine::Machine,
};
use entities::{
    Error, Result,
    changes::{Guard, Reachable},
    ids::{AttemptId, DeliveryRowId, TenantScoped},
    ledger::Movement,
    message_send::{self, Channel},
    values::{Cents, Moment},
};
use std::{
    fmt::{self, Debug, Formatter},
    time::Duration,
};
use uuid::Uuid;

#[derive(Clone, PartialEq)]
pub enum Command<Own> {
    /// Look at the time.
    Tick,
    /// The intent to hand it over now: stands only if the recipient may still be written to. What the law has said of it, if it was
    /// asked.
    Begin(Option<Box<Bound>>),
    /// Something keeps it from being sent at all.
    Bar(MessageRejectReason),
    /// Something keeps it from being sent now: the workspace is blocked.
    Wait(Block),
    /// It was taken; the provider's own id for it, or what the mail server said.
    Taken(Option<String>),
    /// It was not taken, and may be later.
    Busy {
        /// What the provider asked for.
        retry_after: Option<Duration>,
        why: Fault,
    },
    /// It will not be taken.
    Refused(Fault),
    /// It may or may not have been taken.
    Lost {
        why: String,
    },
    Cancel,
    /// Nobody shall read any more what it said.
    Delete,
    Own(Own),
}

/// As what it is: whose it is goes without saying.
impl<Own: Debug> Debug for Command<Own> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Command::Tick => f.write_str("Tick"),
            Command::Begin(_) => f.write_str("Begin"),
            Command::Bar(bar) => f.debug_tuple("Bar").field(bar).finish(),
            Command::Wait(block) => f.debug_tuple("Wait").field(block).finish(),
            Command::Taken(answer) => f.debug_tuple("Taken").field(answer).finish(),
            Command::Busy { retry_after, why } => f.debug_tuple("Busy").field(retry_after).field(why).finish(),
            Command::Refused(fault) => f.debug_tuple("Refused").field(fault).finish(),
            Command::Lost { why } => f.debug_tuple("Lost").field(why).finish(),
            Command::Cancel => f.write_str("Cancel"),
            Command::Delete => f.write_str("Delete"),
            Command::Own(own) => own.fmt(f),
        }
    }
}

/// Seconds after which a message whose answer was lost, or whose sender was cut off, has failed: longer than any talk with who
/// takes it.
pub const UNKNOWN_AFTER_SECONDS: i64 = 600;
/// A message that its sender has had in hand for so long is looked at again.
const LEASE_SECONDS: i64 = 60;
/// A blocked workspace's message is looked at again after this.
const BLOCKED_LOOK_SECONDS: i64 = 60;
/// The longest pause that a provider's `Retry-After` is heeded for.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(6 * 3600);

/// The whole life of a message. Pure.
pub fn transition<M: Outgoing>(row: M, command: Command<M::Own>, now: Moment) -> Result<(M, Vec<Effect>)> {
    use Stage::*;
    match (row.stage(), command) {
        (Scheduled | Queued, Command::Tick) if is_due(&row, now) => Ok(take_up(row, now)),
        (Sending, Command::Tick) if is_due(&row, now) => {
            let fault = Fault::new(UNKNOWN_OUTCOME, row.why_unknown());
            Ok(fail(row, fault, now))
        }
        (Sent(_), Command::Tick) if is_due(&row, now) => Ok(unreported(row)),
        (Queued, Command::Begin(bound)) => Ok(begin_again(row, bound, now)),
        (Scheduled | Queued, Command::Bar(bar)) => Ok(fail(row, why_rejected::<M>(bar), now)),
        (Queued, Command::Wait(block)) => Ok(wait(row, block, now)),
        (Sending, Command::Taken(answer)) => Ok(row.taken(answer, now)),
        (Sending, Command::Busy { retry_after, why }) => Ok(again(row, retry_after, why, now)),
        (Sending, Command::Refused(fault)) => {
            let heeded = row.heed(&fault);
            let (row, mut effects) = fail(row, fault, now);
            effects.extend(heeded);
            Ok((row, effects))
        }
        (Sending, Command::Lost { why }) => Ok(row.lost(why, now)),
        (Scheduled | Queued, Command::Cancel) => Ok(cancel(row, now)),
        (Sent(_) | Over(..) | Canceled, Command::Delete) => Ok(delete(row, now)),
        (_, Command::Own(own)) => Ok(row.own(own, now)),
        (Sent(_) | Over(..), Command::Taken(answer)) => Ok((row.taken_late(answer), Vec::new())),
        (Sending, Command::Cancel) => Err(refused("queued", "be canceled", WAIT)),
        (Sent(who), Command::Cancel) => Err(refused("sent", "be canceled", who)),
        (Over(state, why), Command::Cancel) => Err(refused(state, "be canceled", why)),
        (Scheduled, Command::Delete) => Err(refused("scheduled", "be deleted", "cancel it first")),
        (Queued, Command::Delete) => Err(refused("queued", "be deleted", "cancel it first")),
        (Sending, Command::Delete) => Err(refused("queued", "be deleted", WAIT)),
        (Scheduled | Sending | Sent(_) | Over(..) | Canceled, Command::Begin(_)) => {
            Err(refused("settled", "be sent", "it is sent once"))
        }
        // Ticks come early, work reports late, providers repeat themselves: no change, not an error.
        (_, Command::Tick)
        | (Sending | Sent(_) | Over(..) | Canceled, Command::Bar(_))
        | (Scheduled | Sending | Sent(_) | Over(..) | Canceled, Command::Wait(_))
        | (Scheduled | Queued | Canceled, Command::Taken(_))
        | (
            Scheduled | Queued | Sent(_) | Over(..) | Canceled,
            Command::Busy { .. } | Command::Refused(_) | Command::Lost { .. },
        )
        | (Canceled, Command::Cancel) => Ok((row, Vec::new())),
    }
}

/// The next moment at which `Tick` can matter. One that waits for its time needs no actor: its row says when it does.
pub fn next_deadline<M: Outgoing>(row: &M) -> Option<Moment> {
    let wake_at = row.seen().wake_at;
    wake_at.filter(|_| matches!(row.stage(), Stage::Queued | Stage::Sending | Stage::Sent(_)))
}

fn is_due<M: Outgoing>(row: &M, now: Moment) -> bool {
    row.seen().wake_at.is_some_and(|at| now >= at)
}

const WAIT: &str = "it is being sent: wait for the outcome";

fn refused(state: &'static str, command: &'static str, hint: &'static str) -> Error {
    Error::InvalidState {
        kind: "message",
        state,
        command,
        hint,
    }
}

/// Its time has come: its sender takes it in hand. The lease is in no row, so that a start finds it due.
fn take_up<M: Outgoing>(mut row: M, now: Moment) -> (M, Vec<Effect>) {
    if row.stage() == Stage::Scheduled {
        *row.moved().phase = M::QUEUED;
    }
    *row.moved().wake_at = Some(now.plus_seconds(LEASE_SECONDS));
    let work = (M::HAND_OVER)(row.seen().key);
    (row, vec![work.into()])
}

/// Another attempt, or one of its own: a campaign's waits while the campaign is paused, and is none when that is over.
fn begin_again<M: Outgoing>(row: M, bound: Option<Box<Bound>>, now: Moment) -> (M, Vec<Effect>) {
    let (key, campaign) = (row.seen().key, row.seen().campaign_id);
    let (row, mut effects) = begin(row, now);
    if let Some(bound) = bound {
        if bound.is_lawful {
            let guard = bound.judged.guard((key.tenant_id, key.env));
            effects.push(Fact::Require(guard).into());
        }
        let opened = OpenedMessage {
            message: key.id.into(),
            campaign_id: campaign,
            dial_n: row.seen().attempts,
            address: row.address().to_owned(),
            bound: *bound,
        };
        effects.push(Fact::OpenAttempt(Box::new(opened)).into());
    }
    effects.extend(campaign.map(|id| Effect::from(Fact::Require(Guard::Runs(id)))));
    (row, effects)
}

/// The intent, with everything that stands or falls with it.
pub fn begin<M: Outgoing>(mut row: M, now: Moment) -> (M, Vec<Effect>) {
    let moved = row.moved();
    *moved.phase = M::SENDING;
    *moved.attempts += 1;
    *moved.wake_at = Some(now.plus_seconds(UNKNOWN_AFTER_SECONDS));
    let seen = row.seen();
    let (tenant_id, env) = (seen.key.tenant_id, seen.key.env);
    let message_id: Uuid = seen.key.id.into();
    let reachable = Reachable {
        tenant_id,
        env,
        channel: M::CHANNEL.dnc(),
        address: row.address().to_owned(),
    };
    let send = message_send::Model {
        tenant_id,
        env,
        channel: M::CHANNEL,
        address: row.address().to_owned(),
        message_id,
        n: seen.attempts,
        campaign_id: seen.campaign_id,
        sent_at: now,
        seq: 0,
    };
    let mut effects = vec![
        Effect::from(Fact::Require(Guard::Reachable(reachable))),
        Fact::SaveSend(send).into(),
    ];
    // Once, and kept while it is tried again.
    if seen.held_cents == Cents(0) && seen.price_cents > Cents(0) {
        *row.moved().held_cents = seen.price_cents;
        let hold = Movement::hold((tenant_id, env), message_id, seen.price_cents);
        effects.push(Fact::Move(hold).into());
    }
    (row, effects)
}

/// What is charged, and what is given back: once in a message's life.
pub(crate) fn settle<M: Outgoing>(row: &mut M, cost: Cents) -> Vec<Effect> {
    let key = row.seen().key;
    let moved = row.moved();
    if std::mem::replace(moved.settled, true) {
        return Vec::new();
    }
    let held = std::mem::take(moved.held_cents);
    let cost = cost.min(held);
    *moved.cost_cents = cost;
    if held == Cents(0) {
        return Vec::new();
    }
    let movement = Movement::settle((key.tenant_id, key.env), key.id.into(), held, cost);
    vec![Fact::Move(movement).into()]
}

/// Why it was not sent, or not yet.
pub(crate) fn explain<M: Outgoing>(row: &mut M, fault: Fault) {
    // Nobody shall read what was said about it, either.
    let message = Some(fault.message).filter(|_| row.seen().deleted_at.is_none());
    let moved = row.moved();
    *moved.error_code = Some(fault.code.into());
    *moved.error_message = message;
}

fn again<M: Outgoing>(mut row: M, retry_after: Option<Duration>, why: Fault, now: Moment) -> (M, Vec<Effect>) {
    let nth = usize::try_from(row.seen().attempts - 1).unwrap_or(0);
    let Some(delay) = M::DELAYS.get(nth) else {
        return fail(row, why, now);
    };
    let asked = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
    explain(&mut row, why);
    let moved = row.moved();
    *moved.phase = M::AGAIN;
    *moved.wake_at = Some(now.plus((*delay).max(asked)));
    (row, Vec::new())
}

fn wait<M: Outgoing>(mut row: M, block: Block, now: Moment) -> (M, Vec<Effect>) {
    let fault = match block {
        Block::Credits => Fault::new("insufficient_credits", "the credits did not cover it"),
        Block::Suspension => Fault::new("plan_limit", "the workspace is suspended"),
        Block::Pause => Fault::new("campaign_paused", "its campaign is paused"),
        Block::Law => Fault::new("compliance_blocked", "a rule of the law does not allow it now"),
    };
    let seen = row.seen();
    let since = seen.scheduled_at.map_or(seen.created_at, |at| at.max(seen.created_at));
    if now >= since.plus_seconds(M::BLOCKED_FOR_SECONDS) {
        return fail(row, fault, now);
    }
    explain(&mut row, fault);
    *row.moved().wake_at = Some(now.plus_seconds(BLOCKED_LOOK_SECONDS));
    (row, Vec::new())
}

fn why_rejected<M: Outgoing>(bar: MessageRejectReason) -> Fault {
    match bar {
        MessageRejectReason::CampaignOver => Fault::new("canceled", "its campaign was over before it could be sent"),
        MessageRejectReason::TooLate => Fault::new(
            "outside_calling_hours",
            "its campaign's hours were over before it could be sent",
        ),
        MessageRejectReason::Dnc => Fault::new("recipient_on_dnc", M::ON_DNC),
        MessageRejectReason::Law => Fault::new(
            "compliance_blocked",
            "a rule of the law does not allow it: see GET /v1/compliance/check",
        ),
        MessageRejectReason::NotConfigured => Fault::new("not_configured", M::NOT_CONFIGURED),
        MessageRejectReason::Sender => Fault::new("sender_unverified", M::SENDER_UNVERIFIED),
    }
}

pub(crate) fn fail<M: Outgoing>(mut row: M, fault: Fault, now: Moment) -> (M, Vec<Effect>) {
    explain(&mut row, fault);
    end(row, M::FAILED, now)
}

fn cancel<M: Outgoing>(mut row: M, now: Moment) -> (M, Vec<Effect>) {
    let moved = row.moved();
    (*moved.error_code, *moved.error_message) = (None, None);
    end(row, M::CANCELED, now)
}

/// A second time is no change.
fn delete<M: Outgoing>(mut row: M, now: Moment) -> (M, Vec<Effect>) {
    if row.seen().deleted_at.is_some() {
        return (row, Vec::new());
    }
    let forgotten = row.forget(now).map(Effect::from);
    (row, forgotten.into_iter().collect())
}

/// It ends unsent: what was held for it is given back.
pub(crate) fn end<M: Outgoing>(mut row: M, phase: M::Phase, now: Moment) -> (M, Vec<Effect>) {
    let moved = row.moved();
    *moved.phase = phase;
    *moved.wake_at = None;
    *moved.ended_at = Some(now);
    let mut effects = settle(&mut row, Cents(0));
    effects.extend(finish_attempt(&row));
    // What was never to be handed over was no attempt.
    if row.seen().attempts > 0 {
        effects.extend(outcome(&row, now));
    }
    (row, effects)
}

/// What the record of attempts keeps of what became of it. `None`: the service answers somebody by itself (that STOP was understood),
/// which is no attempt to reach them, so it has no opening either.
pub(crate) fn outcome<M: Outgoing>(row: &M, now: Moment) -> Option<Effect> {
    let seen = row.seen();
    seen.legal.as_ref()?;
    let body = OutcomeBody {
        status: format!("{:?}", seen.phase).to_lowercase(),
        reason: seen.error_code,
        ended_at: Some(now),
        ..OutcomeBody::default()
    };
    let closing = Closing::Outcome {
        attempt_id: AttemptId(seen.key.id.into()),
        campaign_id: seen.campaign_id,
        unless_undialled: None,
        body: Box::new(body),
    };
    Some(Fact::CloseAttempt(closing).into())
}

/// Nothing was reported: its contact waits no longer.
fn unreported<M: Outgoing>(mut row: M) -> (M, Vec<Effect>) {
    *row.moved().wake_at = None;
    let effects = finish_attempt(&row);
    (row, effects)
}

/// What its end means to its campaign's contact; nothing for a message of its own.
pub(crate) fn finish_attempt<M: Outgoing>(row: &M) -> Vec<Effect> {
    let seen = row.seen();
    let (tenant, env) = (seen.key.tenant_id, seen.key.env);
    let Some((campaign, contact)) = seen.campaign_id.zip(seen.contact_id) else {
        return Vec::new();
    };
    let ending = row.ending();
    let arrived = ending == Ending::Arrived;
    let attempt = Attempt {
        row: DeliveryRowId(seen.key.id.into()),
        dialed_at: (seen.attempts > 0).then_some(seen.created_at),
        answered: arrived,
        ending,
        reached: arrived,
        disposition_code: None,
        duration_seconds: 0,
        actual_cost_cents: seen.cost_cents,
    };
    let contact = TenantScoped::new(tenant, env, contact);
    let mut effects = vec![Fact::FinishAttempt { contact, attempt }.into()];
    if !arrived {
        effects.push(Hint::ContactWaits(contact).into());
    }
    effects.push(Hint::MessageEnded(TenantScoped::new(tenant, env, campaign)).into());
    effects
}

impl<M: Outgoing> Machine for M {
    type Key = M::Id;
    type Command = Command<M::Own>;
    const KIND: &'static str = match M::CHANNEL {
        Channel::Sms => "sms",
        Channel::Email => "email",
    };
    const TICK: Command<M::Own> = Command::Tick;

    fn owner(&self) -> TenantScoped<M::Id> {
        self.seen().key
    }
    fn transition(self, command: Command<M::Own>, now: Moment) -> Result<(Self, Vec<Effect>)> {
        transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        next_deadline(self)
    }
    /// That its sender has it in hand is forgotten with a crash: it is due again at the next start.
    fn differs(&self, before: &Self) -> bool {
        let mut after = self.clone();
        if self.stage() == Stage::Queued && self.seen().phase == before.seen().phase {
            *after.moved().wake_at = before.seen().wake_at;
        }
        after != *before
    }
    fn is_at_rest(&self) -> bool {
        next_deadline(self).is_none()
    }
    fn version(&self) -> i32 {
        self.seen().version
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
