//! What Stripe tells by webhook, as far as it is about top-ups.
//!
//! | event | what it says |
//! |---|---|
//! | `checkout.session.completed`, `checkout.session.async_payment_succeeded` | paid, when `payment_status` is `paid`; else the payment is under way |
//! | `checkout.session.async_payment_failed` | failed |
//! | `checkout.session.expired` | expired |
//! | `payment_intent.succeeded` | paid |
//! | `charge.refunded` | so much paid back in all (`amount_refunded`) |
//! | `refund.failed`, and `refund.updated` or `charge.refund.updated` with the `status` `failed` or `canceled` | so much of it came back |
//!
//! Everything else, and what names no top-up, is not for us.
use entities::{
    ids::TopupId,
    values::{Cents, Moment},
};
use rules::credits::topup::{News, Payment};
use serde::Deserialize;
use serde_json::Value;

/// Under this name a top-up's id stands in Stripe's metadata.
pub const METADATA: &str = "topup_id";
/// The year 2255.
const MAX_SECONDS: i64 = 9_000_000_000;
/// Characters of an id of Stripe's.
const MAX_ID: usize = 255;

/// A notice's head; what it is about is read by [`Notice::story`].
#[derive(Debug, Deserialize)]
pub struct Notice {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds of Unix time at which it was true.
    #[serde(default)]
    created: i64,
    data: About,
}

#[derive(Debug, Deserialize)]
struct About {
    object: Value,
}

/// What a notice says about one top-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    pub of: Whose,
    /// The payment page, where it is told of.
    pub session_id: Option<String>,
    pub news: News,
}

/// How the top-up is named.
#[derive(Clone, Debug, PartialEq)]
pub enum Whose {
    Topup(TopupId),
    /// A refund may name the payment alone.
    Payment(String),
}

/// A field that a notice of that kind must have is missing or of another shape.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0} is missing or does not have the expected form")]
pub struct Unreadable(pub &'static str);

impl Notice {
    pub fn parse(body: &[u8]) -> Result<Self, String> {
        let notice: Notice = serde_json::from_slice(body)
            .map_err(|_| "it is not JSON with an `id`, a `type` and `data.object`".to_owned())?;
        if notice.id.len() > MAX_ID || notice.kind.len() > MAX_ID {
            return Err("its id or type is too long".into());
        }
        Ok(notice)
    }

    /// `None`: it is not about a top-up, or says nothing that counts.
    pub fn story(&self) -> Result<Option<Story>, Unreadable> {
        let object = &self.data.object;
        match self.kind.as_str() {
            "checkout.session.completed" | "checkout.session.async_payment_succeeded" => {
                of_session(object, paid(object)?)
            }
            "checkout.session.async_payment_failed" => of_session(object, Some(News::Failed)),
            "checkout.session.expired" => of_session(object, Some(News::Expired)),
            "payment_intent.succeeded" => of_intent(object),
            "charge.refunded" => of_charge(object, self.at()),
            "refund.failed" | "refund.updated" | "charge.refund.updated" => of_refund(object, self.at()),
            _ => Ok(None),
        }
    }
}

impl Notice {
    fn at(&self) -> Moment {
        Moment::from_millis(self.created.clamp(0, MAX_SECONDS) * 1000)
    }
}

/// What a payment page says when it is asked for.
pub fn seen(session: &Value) -> Result<Option<Story>, Unreadable> {
    let news = match paid(session)? {
        Some(paid) => Some(paid),
        None if session["status"] == "expired" => Some(News::Expired),
        None => None,
    };
    of_session(session, news)
}

/// `None`: not, or not yet.
fn paid(session: &Value) -> Result<Option<News>, Unreadable> {
    if topup_of(session)?.is_none() || session["payment_status"] != "paid" {
        return Ok(None);
    }
    Ok(Some(News::Paid(Payment {
        intent_id: id_of(&session["payment_intent"], "payment_intent")?,
        cents: cents(&session["amount_total"], "amount_total")?,
        currency: currency(session)?,
    })))
}

fn of_session(session: &Value, news: Option<News>) -> Result<Option<Story>, Unreadable> {
    let (Some(topup), Some(news)) = (topup_of(session)?, news) else {
        return Ok(None);
    };
    Ok(Some(Story {
        of: Whose::Topup(topup),
        session_id: Some(id_of(&session["id"], "id")?),
        news,
    }))
}

fn of_intent(intent: &Value) -> Result<Option<Story>, Unreadable> {
    let Some(topup) = topup_of(intent)? else {
        return Ok(None);
    };
    let payment = Payment {
        intent_id: id_of(&intent["id"], "id")?,
        cents: cents(&intent["amount_received"], "amount_received")?,
        currency: currency(intent)?,
    };
    Ok(Some(Story {
        of: Whose::Topup(topup),
        session_id: None,
        news: News::Paid(payment),
    }))
}

fn of_charge(charge: &Value, at: Moment) -> Result<Option<Story>, Unreadable> {
    // Without a payment it belongs to something else of the same account.
    if charge["payment_intent"].is_null() {
        return Ok(None);
    }
    let payment = Payment {
        intent_id: id_of(&charge["payment_intent"], "payment_intent")?,
        cents: cents(&charge["amount_captured"], "amount_captured")?,
        currency: currency(charge)?,
    };
    let named = topup_of(charge)?.map(Whose::Topup);
    Ok(Some(Story {
        of: named.unwrap_or_else(|| Whose::Payment(payment.intent_id.clone())),
        session_id: None,
        news: News::Refunded {
            payment,
            total: cents(&charge["amount_refunded"], "amount_refunded")?,
            at,
        },
    }))
}

/// One that is under way, or has arrived, is told by its charge.
fn of_refund(refund: &Value, at: Moment) -> Result<Option<Story>, Unreadable> {
    let has_failed = matches!(refund["status"].as_str(), Some("failed" | "canceled"));
    if !has_failed || refund["payment_intent"].is_null() {
        return Ok(None);
    }
    let intent_id = id_of(&refund["payment_intent"], "payment_intent")?;
    Ok(Some(Story {
        of: Whose::Payment(intent_id.clone()),
        session_id: None,
        news: News::RefundFailed {
            refund_id: id_of(&refund["id"], "id")?,
            intent_id,
            cents: cents(&refund["amount"], "amount")?,
            at,
        },
    }))
}

/// By its metadata, and by `client_reference_id` where that says the same. What is no id of ours is somebody else's.
fn topup_of(object: &Value) -> Result<Option<TopupId>, Unreadable> {
    let id = |value: &Value| value.as_str().and_then(|text| text.parse::<TopupId>().ok());
    let named = id(&object["metadata"][METADATA]);
    let referred = id(&object["client_reference_id"]);
    match (named, referred) {
        (Some(named), Some(referred)) if named != referred => Err(Unreadable("client_reference_id")),
        (Some(topup), _) | (None, Some(topup)) => Ok(Some(topup)),
        (None, None) => Ok(None),
    }
}

/// An id, or an object that was expanded in its place.
pub fn id_of(value: &Value, name: &'static str) -> Result<String, Unreadable> {
    let id = value.as_str().or_else(|| value["id"].as_str());
    let id = id.filter(|id| (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()));
    id.map(str::to_owned).ok_or(Unreadable(name))
}

fn cents(value: &Value, name: &'static str) -> Result<Cents, Unreadable> {
    let cents = value.as_i64().filter(|cents| (0..=i64::from(u32::MAX)).contains(cents));
    cents.map(Cents).ok_or(Unreadable(name))
}

fn currency(object: &Value) -> Result<String, Unreadable> {
    let currency = object["currency"].as_str().filter(|currency| currency.len() == 3);
    currency.map(str::to_owned).ok_or(Unreadable("currency"))
}

#[cfg(test)]
#[path = "notice_tests.rs"]
mod tests;
