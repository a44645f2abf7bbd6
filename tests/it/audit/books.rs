//! The lines about messages and about money, as rows. Strict as `read` is.
use super::read::{millis, need, or_null, time_or_null};
use serde_json::Value;

/// An SMS or an e-mail that goes out. Money in cents, times in Unix milliseconds.
pub struct Message<'a> {
    pub id: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub campaign: Option<&'a str>,
    pub contact: Option<&'a str>,
    pub address: &'a str,
    pub phase: &'a str,
    pub price: i64,
    /// What is set aside for it now.
    pub held: i64,
    pub cost: i64,
    /// It was charged, or will not be.
    pub settled: bool,
    /// Intents to hand it over.
    pub attempts: usize,
    /// Somebody has ordered it: the service does not answer by itself.
    pub is_judged: bool,
    /// When it is looked at next.
    pub wake_at: Option<i64>,
}

impl Message<'_> {
    /// Nothing more is done about it.
    pub fn is_over(&self) -> bool {
        let ended = ["delivered", "undelivered", "failed", "bounced", "canceled"];
        ended.contains(&self.phase) || self.phase == "sent" && self.wake_at.is_none()
    }
    pub fn has_arrived(&self) -> bool {
        matches!(self.phase, "sent" | "delivered")
    }
}

/// An intent to hand a message over.
pub struct Send<'a> {
    pub message: &'a str,
    pub n: usize,
    pub tenant: &'a str,
    pub env: &'a str,
    pub channel: &'a str,
    pub address: &'a str,
    pub campaign: Option<&'a str>,
    pub seq: i64,
}

/// A request that a provider got.
pub struct Asked<'a> {
    pub message: &'a str,
    /// It said that it did not take the message.
    pub not_taken: bool,
}

pub struct Topup<'a> {
    pub id: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub cents: i64,
    pub status: &'a str,
    pub processor: &'a str,
    pub payment: Option<&'a str>,
    pub refunded: i64,
}

pub struct Account<'a> {
    pub tenant: &'a str,
    pub env: &'a str,
    pub balance: i64,
    pub held: i64,
    /// It is warned below that; `None`: never.
    pub threshold: Option<i64>,
    pub entries: i64,
    pub last_hash: &'a str,
}

/// One side of an entry: what a book has got, or given where `cents` is below zero.
pub struct Posting<'a> {
    pub tenant: &'a str,
    pub env: &'a str,
    /// The entry's place in its ledger.
    pub n: i64,
    pub book: &'a str,
    pub cents: i64,
    pub whole: Whole<'a>,
}

/// What both sides of an entry have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole<'a> {
    pub seq: i64,
    pub id: &'a str,
    pub kind: &'a str,
    pub subject: Option<&'a str>,
    pub note: Option<&'a str>,
    pub balance_after: i64,
    pub held_after: i64,
    pub hash: &'a str,
    pub created_at: Option<i64>,
}

pub fn message(line: &Value) -> Result<Message<'_>, String> {
    Ok(Message {
        id: need(line, "id", Value::as_str)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        campaign: or_null(line, "campaign", Value::as_str)?,
        contact: or_null(line, "contact", Value::as_str)?,
        address: need(line, "address", Value::as_str)?,
        phase: need(line, "phase", Value::as_str)?,
        price: need(line, "price", Value::as_i64)?,
        held: need(line, "held", Value::as_i64)?,
        cost: need(line, "cost", Value::as_i64)?,
        settled: need(line, "settled", Value::as_bool)?,
        attempts: need(line, "attempts", count)?,
        is_judged: need(line, "is_judged", Value::as_bool)?,
        wake_at: time_or_null(line, "wake_at")?,
    })
}

pub fn send(line: &Value) -> Result<Send<'_>, String> {
    Ok(Send {
        message: need(line, "message", Value::as_str)?,
        n: need(line, "n", count)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        channel: need(line, "channel", Value::as_str)?,
        address: need(line, "address", Value::as_str)?,
        campaign: or_null(line, "campaign", Value::as_str)?,
        seq: need(line, "seq", Value::as_i64)?,
    })
}

pub fn asked(line: &Value) -> Result<Asked<'_>, String> {
    Ok(Asked {
        message: need(line, "message", Value::as_str)?,
        not_taken: need(line, "outcome", |outcome| match outcome.as_str()? {
            "not_taken" => Some(true),
            "taken" | "lost" => Some(false),
            _ => None,
        })?,
    })
}

pub fn topup(line: &Value) -> Result<Topup<'_>, String> {
    Ok(Topup {
        id: need(line, "id", Value::as_str)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        cents: need(line, "cents", Value::as_i64)?,
        status: need(line, "status", Value::as_str)?,
        processor: need(line, "processor", Value::as_str)?,
        payment: or_null(line, "payment_intent", Value::as_str)?,
        refunded: need(line, "refunded", Value::as_i64)?,
    })
}

pub fn account(line: &Value) -> Result<Account<'_>, String> {
    Ok(Account {
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        balance: need(line, "balance", Value::as_i64)?,
        held: need(line, "held", Value::as_i64)?,
        threshold: or_null(line, "threshold", Value::as_i64)?,
        entries: need(line, "entries", Value::as_i64)?,
        last_hash: need(line, "last_hash", Value::as_str)?,
    })
}

pub fn posting(line: &Value) -> Result<Posting<'_>, String> {
    Ok(Posting {
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        n: need(line, "n", Value::as_i64)?,
        book: need(line, "account", Value::as_str)?,
        cents: need(line, "cents", Value::as_i64)?,
        whole: Whole {
            seq: need(line, "seq", Value::as_i64)?,
            id: need(line, "txn", Value::as_str)?,
            kind: need(line, "entry", Value::as_str)?,
            subject: or_null(line, "ref", Value::as_str)?,
            note: or_null(line, "note", Value::as_str)?,
            balance_after: need(line, "balance_after", Value::as_i64)?,
            held_after: need(line, "held_after", Value::as_i64)?,
            hash: need(line, "hash", Value::as_str)?,
            created_at: millis(need(line, "created_at", Value::as_str)?),
        },
    })
}

fn count(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}
