//! An account: what each movement books, and what the tenant is told.
//!
//! | movement | entries |
//! |---|---|
//! | top-up | `topup` processor -> available |
//! | hold, at the dial and again while a call lasts | `hold` available -> held; refused when less is available |
//! | settle | `charge` held -> revenue, of a cost above the holds also available -> revenue; `release` held -> available |
//! | refund | `refund` available -> processor |
//! | a refund that failed | `refund_failed` processor -> available |
//! | adjust | `adjustment` operator -> available, or back |
//! | warn, short | none |
//!
//! The balance is what is available and what is held: a hold and its release do not change it. `credits.low_balance` is told
//! when an entry takes it from the threshold or above to below. `credits.depleted` is told at the commit after which nothing
//! more can be paid for, once per fall:
//!
//! | account | balance after | what else | then |
//! |---|---|---|---|
//! | in funds | 1 cent or more | | in funds |
//! | in funds | 0 or below, by an entry | also one that never had anything | depleted, told |
//! | in funds | 1 cent or more | something that waits costs more than all of it (short) | depleted, told |
//! | depleted | 1 cent or more, risen | top-up, adjustment, a refund that failed | in funds |
//! | depleted | 0 or below, or not risen | | depleted, silent |
//!
//! Why the balance, and not what is available: what live calls hold may come back, and then is dialled with. While it may, a
//! dial waits, and that is no stall, for calls end. What can come back is never more than the balance; so at 0, and when the
//! least that waits costs more than all of it, nothing but money that is paid in helps. By default a call sets aside what there
//! is, and 1 cent will do: then "short" concerns messages and accounts that never had anything. With a hold of the longest
//! duration (`credit_hold_seconds` 0) it concerns calls too.
//!
//! Only money that comes in lifts it, so that what starts and ends around zero tells of it once, and nothing is dispatched
//! between `credits.depleted` and that commit. If what came in is still too little for what waits, that is another fall, and
//! told: whoever pays because of the event learns that it was not enough. A fall to zero follows from the entries alone:
//! whoever recomputes them finds it. Source: specification, "Credits"; CONTRACT §10.
use super::terms::Terms;
use crate::event::{CreditsDepleted, CreditsLowBalance, CreditsTopupSucceeded, Currency, Event};
use entities::{
    Error, Result,
    ledger::{Book, Kind, Movement, What, account::Model as Account},
    values::{Cents, Moment},
};
use uuid::Uuid;

/// An entry before it has its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub kind: Kind,
    pub from: Book,
    pub to: Book,
    pub cents: Cents,
    pub subject: Option<Uuid>,
    pub note: Option<String>,
    pub balance_after: Cents,
    pub held_after: Cents,
}

/// What a movement has done.
#[derive(Clone, Debug, PartialEq)]
pub struct Posted {
    pub account: Account,
    pub entries: Vec<Entry>,
    pub events: Vec<Event>,
    pub turn: Option<Turn>,
}

/// May the tenant's calls be dispatched? Said when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Depleted,
    Refilled,
}

/// Books one movement. Pure. A hold above what is available is [`Error::Stale`]: who asked for it believed in more.
pub fn post(account: Account, movement: &Movement, terms: &Terms, now: Moment) -> Result<Posted> {
    let before = account.balance_cents;
    let mut book = Books {
        account,
        entries: Vec::new(),
    };
    book.take(&movement.what)?;
    let Books { mut account, entries } = book;
    let currency = Currency(terms.currency.clone());
    let mut events = news_of_money(&account, &movement.what, before, &currency);
    let after = account.balance_cents;
    let mut turn = None;
    let falls = match movement.what {
        What::Short { cents } => cents > after,
        _ => !entries.is_empty() && after.0 <= 0,
    };
    let is_depleted = account.depleted_at.is_some();
    if falls && !is_depleted {
        account.depleted_at = Some(now);
        let told = CreditsDepleted {
            balance_cents: after,
            depleted_at: now,
            currency,
        };
        events.push(told.into());
        turn = Some(Turn::Depleted);
    } else if is_depleted && after > before && after.0 > 0 {
        account.depleted_at = None;
        turn = Some(Turn::Refilled);
    }
    if !entries.is_empty() {
        account.updated_at = now;
    }
    Ok(Posted {
        account,
        entries,
        events,
        turn,
    })
}

/// What is told of what came in, and of a balance that has become low.
fn news_of_money(account: &Account, what: &What, before: Cents, currency: &Currency) -> Vec<Event> {
    let mut events = Vec::new();
    let after = account.balance_cents;
    if let What::TopUp {
        cents,
        payment_intent_id,
        ..
    } = what
        && cents.0 > 0
    {
        let told = CreditsTopupSucceeded {
            amount_cents: *cents,
            new_balance_cents: after,
            currency: currency.clone(),
            processor_payment_intent_id: payment_intent_id.clone(),
        };
        events.push(told.into());
    }
    if let Some(threshold) = account.warning_threshold_cents
        && before >= threshold
        && after < threshold
    {
        let told = CreditsLowBalance {
            balance_cents: after,
            threshold_cents: threshold,
            currency: currency.clone(),
        };
        events.push(told.into());
    }
    events
}

struct Books {
    account: Account,
    entries: Vec<Entry>,
}

impl Books {
    /// The entries of one movement.
    fn take(&mut self, what: &What) -> Result<()> {
        match what {
            What::TopUp {
                topup_id,
                cents,
                payment_intent_id,
            } => {
                let note = Some(payment_intent_id.clone());
                self.moves(
                    Kind::Topup,
                    (Book::Processor, Book::Available),
                    *cents,
                    Some(*topup_id),
                    note,
                );
            }
            What::Hold { subject, cents } => {
                if self.account.available() < *cents && cents.0 > 0 {
                    return Err(Error::Stale);
                }
                self.moves(Kind::Hold, (Book::Available, Book::Held), *cents, Some(*subject), None);
            }
            What::Settle { subject, held, cost } => self.settle(*subject, *held, *cost),
            What::Refund { topup_id, cents } => {
                self.moves(
                    Kind::Refund,
                    (Book::Available, Book::Processor),
                    *cents,
                    Some(*topup_id),
                    None,
                );
            }
            What::RefundFailed { topup_id, cents } => {
                self.moves(
                    Kind::RefundFailed,
                    (Book::Processor, Book::Available),
                    *cents,
                    Some(*topup_id),
                    None,
                );
            }
            What::Adjust { cents, note } => {
                let way = if cents.0 < 0 {
                    (Book::Available, Book::Operator)
                } else {
                    (Book::Operator, Book::Available)
                };
                self.moves(Kind::Adjustment, way, Cents(cents.0.abs()), None, Some(note.clone()));
            }
            What::Warn { below } => self.account.warning_threshold_cents = *below,
            What::Short { .. } => {}
        }
        Ok(())
    }

    /// Nothing is booked of nothing.
    fn moves(
        &mut self,
        kind: Kind,
        (from, to): (Book, Book),
        cents: Cents,
        subject: Option<Uuid>,
        note: Option<String>,
    ) {
        if cents.0 <= 0 {
            return;
        }
        for (book, by) in [(from, -cents.0), (to, cents.0)] {
            match book {
                Book::Available => self.account.balance_cents.0 += by,
                Book::Held => {
                    self.account.balance_cents.0 += by;
                    self.account.held_cents.0 += by;
                }
                Book::Revenue | Book::Processor | Book::Operator => {}
            }
        }
        self.entries.push(Entry {
            kind,
            from,
            to,
            cents,
            subject,
            note,
            balance_after: self.account.balance_cents,
            held_after: self.account.held_cents,
        });
    }

    fn settle(&mut self, subject: Uuid, held: Cents, cost: Cents) {
        let covered = Cents(cost.0.min(held.0));
        let subject = Some(subject);
        self.moves(Kind::Charge, (Book::Held, Book::Revenue), covered, subject, None);
        let beyond = Cents(cost.0 - covered.0);
        self.moves(Kind::Charge, (Book::Available, Book::Revenue), beyond, subject, None);
        let rest = Cents(held.0 - covered.0);
        self.moves(Kind::Release, (Book::Held, Book::Available), rest, subject, None);
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
