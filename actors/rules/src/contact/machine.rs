//! A contact: pending -> dispatched -> completed | failed | waiting -> dispatched; pending -> skipped; pending, waiting -> canceled.
//! A retry by hand opens failed, skipped and canceled ones again, for one attempt more. A call that the service itself cut off
//! while it rang gives its attempt back. When the campaign's rules change, who waits is judged anew. Who it is can be erased,
//! unless it is being called; whoever waits is canceled by that, and nobody erased is called again.
//!
//! A retry is a new session of the same contact: `contact_dispatched` comes once per attempt, `contact_completed` or
//! `contact_failed` once per contact, `contact_skipped` only with zero attempts. Source: CONTRACT §4.
use crate::event::{
    CampaignContactCompleted, CampaignContactDispatched, CampaignContactFailed, CampaignContactSkipped, Event,
};
use entities::{
    Error, Result,
    campaign::{Retry, RetryOutcome},
    contact::{Model as Contact, SkipReason, Status, UNCALLABLE, WaitReason},
    ids::DeliveryRowId,
    session::{self, EndReason},
    values::{Cents, Moment, Variables},
};
use std::time::Duration;

#[derive(Clone, Debug)]
pub enum Command {
    /// A call is about to be placed, or a message sent.
    Dispatch { row: DeliveryRowId },
    /// The call has ended, or the message.
    Finish(Attempt),
    /// It is not to be called at all; if a rule of the law says so, by that one.
    Skip(SkipReason, Option<String>),
    /// It is not to be called before then.
    Defer { until: Moment, reason: WaitReason },
    /// Somebody wants it called once more, at that moment at the earliest.
    Retry { not_before: Moment },
    /// Its campaign's rules have changed: what was decided by the old ones is decided anew.
    Review { last: Option<Last> },
    /// Its campaign was canceled. Many are canceled where they are: `entities::contact::cancel`.
    Cancel,
    /// Nobody shall know any more who it was.
    Erase,
}

/// The last call to it, or the last message, as the row tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    pub ending: Ending,
    pub ended_at: Moment,
}

/// How one call to the contact, or one message, ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub row: DeliveryRowId,
    pub dialed_at: Option<Moment>,
    /// A person or a machine picked up.
    pub answered: bool,
    pub ending: Ending,
    /// It was talked with the person, or what happened is as good.
    pub reached: bool,
    pub disposition_code: Option<String>,
    pub duration_seconds: i32,
    pub actual_cost_cents: Cents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Call(session::Status, EndReason),
    /// A call that the service itself cut off, for it stopped, before anybody picked up: no attempt was spent.
    GivenBack,
    /// A message that arrived, as far as is known.
    Arrived,
    /// A message that did not arrive.
    NotArrived,
    /// A message that may have arrived, or that nobody will ever get: it is not written again.
    Final,
}

impl Ending {
    /// Does it count among the campaign's completed ones?
    pub fn is_completed(self) -> bool {
        matches!(self, Ending::Call(session::Status::Completed, _) | Ending::Arrived)
    }
}

/// An event about a contact: who that is, and what the event tells beside it.
macro_rules! about {
    ($contact:expr, $event:ident { $($told:tt)* }) => {
        $event {
            contact_id: $contact.id,
            campaign_id: $contact.campaign_id,
            phone_number: $contact.number(),
            email: $contact.email.clone(),
            first_name: $contact.first_name.clone(),
            last_name: $contact.last_name.clone(),
            $($told)*
        }
    };
}

/// The whole life of a contact. Pure.
pub fn transition(contact: Contact, command: Command, retry: &Retry, now: Moment) -> Result<(Contact, Vec<Event>)> {
    use Status::*;
    match (contact.status, command) {
        (Pending | Waiting, Command::Dispatch { row }) => Ok(dispatch(contact, row)),
        (Dispatched, Command::Finish(attempt)) if contact.last_row_id == Some(attempt.row) => {
            Ok(finish(contact, &attempt, retry, now))
        }
        (Pending, Command::Skip(reason, rule)) => Ok(skip(contact, reason, rule)),
        // It was called before, so it is not skipped: it has failed.
        (Waiting, Command::Skip(..)) => Ok(give_up(contact)),
        (Pending | Waiting, Command::Defer { until, reason }) => Ok((defer(contact, until, reason), Vec::new())),
        (Pending | Waiting, Command::Cancel) => Ok((step(contact, Canceled), Vec::new())),
        (Pending | Waiting, Command::Erase) => Ok((erase(contact, Canceled), Vec::new())),
        (Completed | Failed | Skipped | Canceled, Command::Erase) if contact.is_erased() => Ok((contact, Vec::new())),
        (status @ (Completed | Failed | Skipped | Canceled), Command::Erase) => {
            Ok((erase(contact, status), Vec::new()))
        }
        (Dispatched, Command::Erase) => Err(refused(contact.status, "be erased")),
        (Failed | Skipped | Canceled, Command::Retry { .. }) if contact.is_erased() => Err(Error::InvalidState {
            kind: "contact",
            state: "erased",
            command: "be retried",
            hint: "nobody knows any more who it was",
        }),
        (Failed | Skipped | Canceled, Command::Retry { not_before }) => {
            Ok((reopen(contact, not_before, now), Vec::new()))
        }
        (Pending | Waiting, Command::Review { last }) => Ok(review(contact, last, retry, now)),
        (Dispatched | Completed | Failed | Skipped | Canceled, Command::Review { .. }) => Ok((contact, Vec::new())),
        // A session reports its end once more after a crash between commit and answer: no change.
        (_, Command::Finish(_)) => Ok((contact, Vec::new())),
        (Canceled, Command::Cancel) | (Skipped, Command::Skip(..)) => Ok((contact, Vec::new())),
        (Dispatched | Completed | Failed | Skipped | Canceled, Command::Dispatch { .. }) => {
            Err(refused(contact.status, "be dispatched"))
        }
        (Dispatched | Completed | Failed | Canceled, Command::Skip(..)) => Err(refused(contact.status, "be skipped")),
        (Dispatched | Completed | Failed | Skipped, Command::Cancel) => Err(refused(contact.status, "be canceled")),
        (Dispatched | Completed | Failed | Skipped | Canceled, Command::Defer { .. }) => {
            Err(refused(contact.status, "be deferred"))
        }
        (Pending | Waiting | Dispatched | Completed, Command::Retry { .. }) => {
            Err(refused(contact.status, "be retried"))
        }
    }
}

fn dispatch(contact: Contact, row: DeliveryRowId) -> (Contact, Vec<Event>) {
    let mut contact = step(contact, Status::Dispatched);
    contact.attempts += 1;
    contact.last_row_id = Some(row);
    let dispatched = about!(contact, CampaignContactDispatched { delivery_row_id: row.0 });
    (contact, vec![dispatched.into()])
}

fn finish(contact: Contact, attempt: &Attempt, retry: &Retry, now: Moment) -> (Contact, Vec<Event>) {
    if attempt.ending == Ending::GivenBack {
        return (give_back(contact, now), Vec::new());
    }
    let mut contact = contact;
    contact.disposition_code = attempt.disposition_code.clone().or(contact.disposition_code);
    let (duration_seconds, actual_cost_cents) = (attempt.duration_seconds, attempt.actual_cost_cents);
    if attempt.reached {
        let session_id = contact.last_session_id();
        let completed = about!(
            contact,
            CampaignContactCompleted {
                session_id,
                duration_seconds,
                actual_cost_cents
            }
        );
        return (step(contact, Status::Completed), vec![completed.into()]);
    }
    let due = retried_as(attempt.ending).and_then(|outcome| next_attempt(&contact, retry, outcome, now));
    if let Some(due) = due {
        let mut contact = step(contact, Status::Waiting);
        contact.wait_reason = Some(WaitReason::Retry);
        contact.next_attempt_at = Some(due);
        return (contact, Vec::new());
    }
    let told = failed(&contact, duration_seconds, actual_cost_cents);
    (step(contact, Status::Failed), vec![told.into()])
}

fn failed(contact: &Contact, duration_seconds: i32, actual_cost_cents: Cents) -> CampaignContactFailed {
    let session_id = contact.last_session_id();
    about!(
        contact,
        CampaignContactFailed {
            session_id,
            duration_seconds,
            actual_cost_cents
        }
    )
}

fn skip(contact: Contact, skip_reason: SkipReason, rule: Option<String>) -> (Contact, Vec<Event>) {
    let mut contact = step(contact, Status::Skipped);
    (contact.skip_reason, contact.skip_rule) = (Some(skip_reason), rule);
    let skipped = about!(contact, CampaignContactSkipped { skip_reason });
    (contact, vec![skipped.into()])
}

/// It is called again as if it had not been, at once and as the same attempt. It waits, and is not pending: it was dispatched,
/// so it is not skipped any more.
fn give_back(contact: Contact, now: Moment) -> Contact {
    let mut contact = step(contact, Status::Waiting);
    contact.attempts = (contact.attempts - 1).max(0);
    contact.wait_reason = Some(WaitReason::Retry);
    contact.next_attempt_at = Some(now);
    contact
}

/// A contact that was called in vain and may not be called again.
fn give_up(contact: Contact) -> (Contact, Vec<Event>) {
    let told = contact.last_row_id.map(|_| failed(&contact, 0, Cents(0)));
    (
        step(contact, Status::Failed),
        told.into_iter().map(Event::from).collect(),
    )
}

fn defer(contact: Contact, until: Moment, reason: WaitReason) -> Contact {
    let status = contact.status;
    let mut contact = step(contact, status);
    contact.next_attempt_at = Some(until);
    contact.wait_reason = Some(reason);
    contact
}

/// Whoever waits for another attempt waits as long as the rules say now, or is not called any more; whom a cap or a closed window
/// has put off is asked again when its time comes.
fn review(contact: Contact, last: Option<Last>, retry: &Retry, now: Moment) -> (Contact, Vec<Event>) {
    let (due, reason) = if contact.status == Status::Pending {
        let due = contact.not_before.filter(|at| *at > now);
        (due, due.map(|_| WaitReason::NotBefore))
    } else {
        // Its row has not ended, or is gone: there is nothing to judge by.
        let Some(last) = last else {
            return (contact, Vec::new());
        };
        match due_after(&contact, last, retry) {
            Some(due) => (Some(due), Some(WaitReason::Retry)),
            None => return give_up(contact),
        }
    };
    // Its end was stored a moment before the retry was reckoned from it.
    let is_as_before = match (due, contact.next_attempt_at) {
        (Some(due), Some(before)) => due.since(before).max(before.since(due)) < Duration::from_secs(1),
        (due, before) => due == before,
    };
    if is_as_before && reason == contact.wait_reason {
        return (contact, Vec::new());
    }
    let status = contact.status;
    let mut contact = step(contact, status);
    (contact.next_attempt_at, contact.wait_reason) = (due, reason);
    (contact, Vec::new())
}

/// When a contact is due again whose last attempt ended so; `None`: never.
fn due_after(contact: &Contact, last: Last, retry: &Retry) -> Option<Moment> {
    if contact.attempt_limit.is_some_and(|limit| contact.attempts < limit) {
        // By hand: however it ended, but not sooner than the gap.
        return Some(last.ended_at.plus_seconds(i64::from(retry.min_gap_minutes.get()) * 60));
    }
    match retried_as(last.ending) {
        Some(outcome) => next_attempt(contact, retry, outcome, last.ended_at),
        // Given back: that attempt is still to be made.
        None => (contact.attempts < most_attempts(contact, retry)).then_some(last.ended_at),
    }
}

fn most_attempts(contact: &Contact, retry: &Retry) -> i32 {
    contact.attempt_limit.unwrap_or(retry.max_attempts.get())
}

/// One attempt more than there were: what the plan would have had left is not made up for.
fn reopen(mut contact: Contact, not_before: Moment, now: Moment) -> Contact {
    contact.attempt_limit = Some(contact.attempts + 1);
    if contact.last_row_id.is_none() {
        let mut contact = step(contact, Status::Pending);
        (contact.skip_reason, contact.skip_rule) = (None, None);
        contact.next_attempt_at = contact.not_before.max(Some(not_before)).filter(|at| *at > now);
        contact.wait_reason = contact.next_attempt_at.map(|_| WaitReason::NotBefore);
        return contact;
    }
    let mut contact = step(contact, Status::Waiting);
    contact.next_attempt_at = Some(not_before);
    contact.wait_reason = Some(WaitReason::Retry);
    contact
}

/// It goes on to count as what it was.
fn erase(contact: Contact, status: Status) -> Contact {
    let mut contact = step(contact, status);
    contact.address = contact.erased_address();
    contact.phone_number.clear();
    contact.zone = UNCALLABLE.into();
    (contact.email, contact.first_name, contact.last_name) = (None, None, None);
    (contact.external_id, contact.timezone) = (None, None);
    contact.variables = Variables::default();
    contact
}

fn step(mut contact: Contact, status: Status) -> Contact {
    contact.status = status;
    contact.wait_reason = None;
    contact.next_attempt_at = None;
    contact.version += 1;
    contact
}

/// The rule of retries that an ending falls under; `None`: it is final.
fn retried_as(ending: Ending) -> Option<RetryOutcome> {
    use session::Status::{Busy, Completed, Failed, InProgress, NoAnswer, Queued, Voicemail};
    match ending {
        // The person may have talked, the number does not exist, or somebody wanted it so.
        Ending::Call(_, EndReason::NodeLost | EndReason::InvalidNumber | EndReason::Canceled | EndReason::Declined)
        | Ending::Call(Queued | InProgress | Completed, _)
        | Ending::GivenBack
        | Ending::Arrived
        | Ending::Final => None,
        Ending::Call(Busy, _) => Some(RetryOutcome::Busy),
        Ending::Call(NoAnswer, _) => Some(RetryOutcome::NoAnswer),
        Ending::Call(Voicemail, _) => Some(RetryOutcome::Voicemail),
        Ending::Call(Failed, _) | Ending::NotArrived => Some(RetryOutcome::Failed),
    }
}

/// When a contact is called again whose attempt ended so at that moment; `None`: never.
fn next_attempt(contact: &Contact, retry: &Retry, outcome: RetryOutcome, ended_at: Moment) -> Option<Moment> {
    let (attempts, most) = (contact.attempts, most_attempts(contact, retry));
    let rule = retry.rules.get(&outcome).cloned().unwrap_or_default();
    let max_attempts = rule.max_attempts.map_or(most, |max| max.get().min(most));
    if rule.never || attempts >= max_attempts {
        return None;
    }
    let nth = usize::try_from(attempts - 1).unwrap_or(0);
    let delay = rule
        .delays_minutes
        .get(nth)
        .or(rule.delays_minutes.last())
        .map_or(0, |minutes| minutes.get());
    Some(ended_at.plus_seconds(i64::from(delay.max(retry.min_gap_minutes.get())) * 60))
}

/// The state as the API writes it.
pub fn state_of(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::Waiting => "waiting",
        Status::Dispatched => "dispatched",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Skipped => "skipped",
        Status::Canceled => "canceled",
    }
}

fn refused(status: Status, command: &'static str) -> Error {
    Error::InvalidState {
        kind: "contact",
        state: state_of(status),
        command,
        hint: "see the contact's status",
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
