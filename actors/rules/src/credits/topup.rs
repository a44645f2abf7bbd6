//! A top-up: pending -> succeeded | failed | expired; failed, expired -> succeeded. Succeeded is final but for refunds.
//!
//! ```text
//!           opened     refused  paid        failed   expired   refunded             refund failed  tick
//! pending   page kept  failed   succeeded   failed   expired   succeeded, refunded  noted          asks, or ends it
//! failed    -          -        succeeded   -        -         succeeded, refunded  noted          -
//! expired   -          -        succeeded   -        -         succeeded, refunded  noted          -
//! succeeded -          -        -           -        -         refunded             given back     -
//! ```
//!
//! Processors repeat themselves, and their notices overtake each other: a payment counts once, however often and in
//! whatever order it is told. Money that was received is never lost: a payment counts after a failure too. What does not
//! fit the top-up (another amount, currency, payment or page) moves nothing and is for the operator to look at.
use entities::{
    ids::TopupId,
    ledger::Movement,
    topup::{FailedRefund, Model as Topup, Processor, Refunds, Status},
    values::{Cents, Env, Moment},
};

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Look at the time.
    Tick,
    /// The processor has opened a page on which it can be paid.
    Opened { session_id: String, checkout_url: String },
    /// The processor will open none.
    Refused,
    /// What the processor tells, by itself or when it is asked.
    Told { session_id: Option<String>, news: News },
}

#[derive(Clone, Debug, PartialEq)]
pub enum News {
    Paid(Payment),
    /// A payment was begun and did not come.
    Failed,
    /// The page has closed.
    Expired,
    /// So much of the payment had been paid back at that time, in all.
    Refunded {
        payment: Payment,
        total: Cents,
        at: Moment,
    },
    /// So much of it came back at that time, for its bank did not take it.
    RefundFailed {
        refund_id: String,
        intent_id: String,
        cents: Cents,
        at: Moment,
    },
}

/// Money that the processor has received.
#[derive(Clone, Debug, PartialEq)]
pub struct Payment {
    pub intent_id: String,
    pub cents: Cents,
    /// In any case of letters.
    pub currency: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Fact: a line of the ledger.
    Move(Movement),
    /// Work: ask the processor what became of that page.
    Ask { session_id: String },
}

/// Why news move nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    #[error("the amount or the currency does not match the top-up")]
    Amount,
    #[error("it refers to a payment page other than the top-up's")]
    Session,
    #[error(
        "it refers to a payment other than the one that settled the top-up, or that payment settled another top-up"
    )]
    Payment,
}

/// A top-up as it begins.
#[derive(Clone, Debug)]
pub struct NewTopup {
    pub id: TopupId,
    pub owner: (entities::ids::TenantId, Env),
    pub amount_cents: Cents,
    /// ISO 4217, as USD.
    pub currency: String,
    pub success_url: Option<String>,
    pub cancel_url: Option<String>,
}

/// A page is open for so long; Stripe allows 30 minutes to 24 hours.
const PAGE_SECONDS: i64 = 23 * 3600;
/// When the processor is first asked; then each time the age has doubled.
const FIRST_ASK_SECONDS: i64 = 15 * 60;
const DAY_SECONDS: i64 = 24 * 3600;
/// A notice of the page's end comes in this time.
const NOTICE_SECONDS: i64 = 5 * 60;
/// Slow kinds of payment, as bank transfers, take days; after these nobody asks any more.
const ASKED_DAYS: i64 = 30;

/// Real money with live keys, none with test keys.
pub fn born(asked: NewTopup, now: Moment) -> Topup {
    let processor = match asked.owner.1 {
        Env::Live => Processor::Stripe,
        Env::Test => Processor::Sandbox,
    };
    let is_stripe = processor == Processor::Stripe;
    Topup {
        id: asked.id,
        tenant_id: asked.owner.0,
        env: asked.owner.1,
        amount_cents: asked.amount_cents,
        currency: asked.currency,
        processor,
        status: Status::Pending,
        refunded_cents: Cents(0),
        refunds: Refunds::default(),
        processor_payment_intent_id: None,
        processor_session_id: None,
        checkout_url: None,
        success_url: asked.success_url,
        cancel_url: asked.cancel_url,
        error: None,
        ask_at: is_stripe.then(|| now.plus_seconds(FIRST_ASK_SECONDS)),
        created_at: now,
        settled_at: None,
        expires_at: is_stripe.then(|| now.plus_seconds(PAGE_SECONDS)),
        version: 1,
    }
}

/// What the sandbox makes of a top-up, at once: it declines amounts that end in 02 cents, and pays all others.
pub fn sandbox(row: &Topup) -> Command {
    let news = if row.amount_cents.0 % 100 == 2 {
        News::Failed
    } else {
        News::Paid(Payment {
            intent_id: format!("pi_sandbox_{}", row.id.0.simple()),
            cents: row.amount_cents,
            currency: row.currency.clone(),
        })
    };
    Command::Told { session_id: None, news }
}

/// The whole life of a top-up. Pure. An error changes nothing.
pub fn transition(row: Topup, command: Command, now: Moment) -> Result<(Topup, Vec<Effect>), Misfit> {
    use Status::*;
    match (row.status, command) {
        (Pending, Command::Tick) if row.ask_at.is_some_and(|at| now >= at) => Ok(tick(row, now)),
        (
            Pending,
            Command::Opened {
                session_id,
                checkout_url,
            },
        ) => open(row, session_id, checkout_url),
        (Pending, Command::Refused) => Ok(fail(row, NOT_OPENED)),
        (_, Command::Told { session_id, news }) => {
            let row = of_session(row, session_id)?;
            match (row.status, news) {
                (Pending | Failed | Expired, News::Paid(payment)) => settle(row, payment, now),
                (Pending, News::Failed) => Ok(fail(row, NOT_PAID)),
                (Pending, News::Expired) => Ok(expire(row, "nobody paid before the payment page closed")),
                (Pending | Failed | Expired, News::Refunded { payment, total, at }) => {
                    let (row, mut effects) = settle(row, payment, now)?;
                    let (row, refund) = refunded(row, total, at);
                    effects.extend(refund);
                    Ok((row, effects))
                }
                (Succeeded, News::Refunded { payment, total, at }) => {
                    fits(&row, &payment)?;
                    Ok(refunded(row, total, at))
                }
                (
                    Pending | Failed | Expired | Succeeded,
                    News::RefundFailed {
                        refund_id,
                        intent_id,
                        cents,
                        at,
                    },
                ) => refund_failed(
                    row,
                    &intent_id,
                    FailedRefund {
                        id: refund_id,
                        cents,
                        at,
                    },
                ),
                (Succeeded, News::Paid(payment)) => {
                    fits(&row, &payment)?;
                    Ok((row, Vec::new()))
                }
                // An older story, told late.
                (Failed | Expired | Succeeded, News::Failed | News::Expired) => Ok((row, Vec::new())),
            }
        }
        (Pending | Failed | Expired | Succeeded, Command::Tick)
        | (Failed | Expired | Succeeded, Command::Opened { .. } | Command::Refused) => Ok((row, Vec::new())),
    }
}

/// Of one top-up; more are not noted.
const MAX_FAILED: usize = 100;
const NOT_OPENED: &str = "the payment page could not be opened; nothing was paid";
const NOT_PAID: &str = "the payment failed; nothing was paid";

fn tick(mut row: Topup, now: Moment) -> (Topup, Vec<Effect>) {
    let closed = row.expires_at.is_none_or(|at| now >= at);
    let Some(session_id) = row.processor_session_id.clone() else {
        // Its address was never given to anybody.
        if closed {
            return fail(row, NOT_OPENED);
        }
        row.ask_at = row.expires_at;
        return (row, Vec::new());
    };
    if row
        .expires_at
        .is_some_and(|at| now >= at.plus_seconds(ASKED_DAYS * DAY_SECONDS))
    {
        return expire(row, "no payment came within 30 days");
    }
    row.ask_at = Some(next_ask(&row, now));
    (row, vec![Effect::Ask { session_id }])
}

/// When its age has doubled, and once shortly after the page has closed; a day later at most.
fn next_ask(row: &Topup, now: Moment) -> Moment {
    let age = i64::try_from(now.since(row.created_at).as_secs()).unwrap_or(DAY_SECONDS);
    let next = now.plus_seconds(age.clamp(FIRST_ASK_SECONDS, DAY_SECONDS));
    let closing = row.expires_at.map(|at| at.plus_seconds(NOTICE_SECONDS));
    closing.filter(|at| *at > now).map_or(next, |at| next.min(at))
}

fn open(mut row: Topup, session_id: String, checkout_url: String) -> Result<(Topup, Vec<Effect>), Misfit> {
    row = of_session(row, Some(session_id))?;
    row.checkout_url = Some(checkout_url);
    Ok((row, Vec::new()))
}

/// A crash may have lost which page belongs to it: then the first one that is told of does.
fn of_session(mut row: Topup, session_id: Option<String>) -> Result<Topup, Misfit> {
    match (&row.processor_session_id, session_id) {
        (Some(known), Some(told)) if *known != told => Err(Misfit::Session),
        (None, Some(told)) => {
            row.processor_session_id = Some(told);
            Ok(row)
        }
        (Some(_), Some(_)) | (_, None) => Ok(row),
    }
}

fn fits(row: &Topup, payment: &Payment) -> Result<(), Misfit> {
    if row
        .processor_payment_intent_id
        .as_ref()
        .is_some_and(|known| *known != payment.intent_id)
    {
        return Err(Misfit::Payment);
    }
    if payment.cents != row.amount_cents || !payment.currency.eq_ignore_ascii_case(&row.currency) {
        return Err(Misfit::Amount);
    }
    Ok(())
}

/// What happens when it is paid: this list, in this order.
fn settle(mut row: Topup, payment: Payment, now: Moment) -> Result<(Topup, Vec<Effect>), Misfit> {
    fits(&row, &payment)?;
    row.status = Status::Succeeded;
    row.settled_at = Some(now);
    row.processor_payment_intent_id = Some(payment.intent_id.clone());
    (row.error, row.ask_at) = (None, None);
    let owner = (row.tenant_id, row.env);
    let paid = Movement::top_up(owner, row.id.0, row.amount_cents, payment.intent_id);
    Ok((row, vec![Effect::Move(paid)]))
}

/// An older sum that comes late changes nothing; of two of one second the larger one is the later.
fn refunded(mut row: Topup, total: Cents, at: Moment) -> (Topup, Vec<Effect>) {
    let total = total.min(row.amount_cents);
    let Refunds {
        told_at, told_cents, ..
    } = row.refunds;
    // A sum from before times were kept: the larger one is the later.
    let is_older = told_at.is_none() && total < told_cents;
    if is_older || (Some(at), total) <= (told_at, told_cents) {
        return (row, Vec::new());
    }
    (row.refunds.told_at, row.refunds.told_cents) = (Some(at), total);
    book_refunds(row)
}

fn refund_failed(mut row: Topup, intent_id: &str, failed: FailedRefund) -> Result<(Topup, Vec<Effect>), Misfit> {
    let settled_by = row.processor_payment_intent_id.as_deref();
    if settled_by.is_some_and(|known| known != intent_id) {
        return Err(Misfit::Payment);
    }
    let known = row.refunds.failed.iter().any(|known| known.id == failed.id);
    if known || row.refunds.failed.len() >= MAX_FAILED {
        return Ok((row, Vec::new()));
    }
    row.refunds.failed.push(failed);
    Ok(book_refunds(row))
}

/// What was told last, without what has failed since: a sum that was told later leaves out what failed before. Never more than was
/// paid.
fn book_refunds(mut row: Topup) -> (Topup, Vec<Effect>) {
    let Refunds {
        told_cents,
        told_at,
        failed,
    } = &row.refunds;
    let failed: i64 = failed
        .iter()
        .filter(|failed| Some(failed.at) >= *told_at)
        .map(|failed| failed.cents.0)
        .sum();
    let total = Cents((told_cents.0 - failed).clamp(0, row.amount_cents.0));
    let more = Cents(total.0 - row.refunded_cents.0);
    let owner = (row.tenant_id, row.env);
    let movement = match more.0 {
        0 => return (row, Vec::new()),
        1.. => Movement::refund(owner, row.id.0, more),
        ..0 => Movement::refund_failed(owner, row.id.0, Cents(-more.0)),
    };
    row.refunded_cents = total;
    (row, vec![Effect::Move(movement)])
}

fn fail(mut row: Topup, why: &str) -> (Topup, Vec<Effect>) {
    row.status = Status::Failed;
    row.error = Some(why.into());
    row.ask_at = None;
    (row, Vec::new())
}

fn expire(mut row: Topup, why: &str) -> (Topup, Vec<Effect>) {
    row.status = Status::Expired;
    row.error = Some(why.into());
    row.ask_at = None;
    (row, Vec::new())
}

#[cfg(test)]
#[path = "topup_tests.rs"]
mod tests;
