//! What a carrier's final answer to an INVITE makes of a call: one table, of RFC 3261 §21, RFC 3398 §8.2.6, RFC 8688 (608), ATIS-1000099
//! (603+) and ITU-T Q.850.
//!
//! | answer | outcome |
//! |---|---|
//! | 486, 600; cause 17 | busy |
//! | 408, 480, 487; causes 18, 19, 20, and 31 of a failure that says no more | nobody answered |
//! | 603, 607 | turned down |
//! | 608; 603 and 607 "Network Blocked" | turned down by a machine: the number that called is known for such calls |
//! | 404, 410, 484, 485, 604; causes 1, 22, 28 | no such number |
//! | 503, 429; 403, 500 whose phrase names a limit, before anything rang | congested: for the same attempt, later |
//! | 401, 407 | rejected, and our credentials are to blame |
//! | everything else; causes 21 and 57 where the code says less | rejected |
//!
//! A cause is nearer to the telephone that was called than the code into which a gateway has translated it; but people say
//! with 6xx, and with 486, what they mean.
use super::{
    command::Refusal,
    sip_answer::{SipAnswer, SipReason},
};

/// What becomes of the call, and of its trunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub refusal: Refusal,
    /// 401 or 407 to an INVITE that had our credentials: after some in a row they are taken to be wrong.
    pub is_unauthorized: bool,
}

/// `rang`: a 101 to 199 came before.
pub fn outcome(said: &SipAnswer, rang: bool) -> Outcome {
    Outcome {
        refusal: by_hand(said)
            .or_else(|| congestion(said, rang))
            .or_else(|| by_cause(said))
            .unwrap_or_else(|| by_code(said, rang)),
        is_unauthorized: matches!(said.code, 401 | 407),
    }
}

/// The three tones of an announcement were heard before it: behind some answers they mean that there is no such number. Source:
/// ITU-T E.180, special information tone.
pub fn after_announcement(code: u16, refusal: Refusal) -> Refusal {
    match code {
        480 | 487 | 503 => Refusal::InvalidNumber(format!("an announcement was played, and then came {code}")),
        _ => refusal,
    }
}

/// What the one who was called has decided, or had decided.
fn by_hand(said: &SipAnswer) -> Option<Refusal> {
    Some(match said.code {
        486 | 600 => Refusal::Busy,
        603 | 607 if is_network_block(said) => Refusal::Blocked(blocked(said)),
        608 => Refusal::Blocked(blocked(said)),
        603 | 607 => Refusal::Declined,
        604 => Refusal::InvalidNumber(no_such_number(said)),
        606 => Refusal::Rejected(no_common_codec(said)),
        601 | 602 | 605 | 609..=699 => Refusal::Rejected(rejected(said)),
        _ => return None,
    })
}

/// Source: ATIS-1000099, "603+": the phrase tells it from a person's 603, and so does the `Reason`, which gateways pass on that write
/// phrases of their own.
fn is_network_block(said: &SipAnswer) -> bool {
    let says_so = |text: &str| text.to_ascii_lowercase().contains("network blocked");
    let by_analytics = |reason: &SipReason| {
        let text = reason.text.as_deref().unwrap_or_default();
        let is_refusal = match reason.protocol.to_ascii_uppercase().as_str() {
            "SIP" => matches!(reason.cause, Some(603 | 607 | 608)),
            "Q.850" => reason.cause == Some(21),
            _ => false,
        };
        is_refusal && (says_so(text) || text.trim_start().to_ascii_lowercase().starts_with("v=analytics"))
    };
    says_so(&said.reason) || said.reasons.iter().any(by_analytics)
}

/// A limit that is named is no matter of the number that was called. Once it may have rung, nobody is called again for the same
/// attempt.
fn congestion(said: &SipAnswer, rang: bool) -> Option<Refusal> {
    let names_a_limit = matches!(said.code, 403 | 429 | 500 | 503) && names_a_limit(&said.reason);
    match (names_a_limit, rang) {
        (false, _) => None,
        (true, false) => Some(Refusal::Congested),
        (true, true) => Some(Refusal::Rejected(rejected(said))),
    }
}

/// Does a phrase say that too many calls were placed, at once or in a second? The carrier's other addresses count the same limit. As
/// carriers write it: "Trunk CPS limit exceeded", "CPS Limit reached P05", "User channel limit exceeded D1".
pub fn names_a_limit(phrase: &str) -> bool {
    let phrase = phrase.to_ascii_lowercase();
    let has = |words: &[&str]| {
        let mut all = phrase.split(|c: char| !c.is_ascii_alphanumeric());
        all.any(|word| words.contains(&word))
    };
    let of_what = ["channel", "channels", "concurrent", "concurrency", "capacity"];
    let which = ["limit", "limits", "exceeded", "reached", "max", "maximum"];
    let whole = ["calls per second", "rate limit", "too many calls"];
    has(&["cps"]) || whole.iter().any(|words| phrase.contains(words)) || has(&of_what) && has(&which)
}

/// What the telephone network itself has said.
fn by_cause(said: &SipAnswer) -> Option<Refusal> {
    Some(match said.q850? {
        17 => Refusal::Busy,
        18..=20 => Refusal::NoAnswer,
        1 | 22 | 28 => Refusal::InvalidNumber(no_such_number(said)),
        21 | 57 if matches!(said.code, 408 | 480 | 487) => Refusal::Rejected(rejected(said)),
        _ => return None,
    })
}

fn by_code(said: &SipAnswer, rang: bool) -> Refusal {
    match said.code {
        408 | 480 | 487 => Refusal::NoAnswer,
        404 | 410 | 484 | 485 => Refusal::InvalidNumber(no_such_number(said)),
        503 | 429 if !rang => Refusal::Congested,
        300..=399 => Refusal::Rejected(format!(
            "the carrier answered {said}; calls do not follow a redirection"
        )),
        401 | 407 => Refusal::Rejected(format!("the carrier answered {said} to the trunk's credentials")),
        488 => Refusal::Rejected(no_common_codec(said)),
        500..=599 if said.q850 == Some(31) => Refusal::NoAnswer,
        _ => Refusal::Rejected(rejected(said)),
    }
}

fn rejected(said: &SipAnswer) -> String {
    format!("the carrier answered {said}")
}

fn no_such_number(said: &SipAnswer) -> String {
    format!("the carrier answered {said}: there is no such number")
}

fn no_common_codec(said: &SipAnswer) -> String {
    format!("the carrier answered {said}: no common codec")
}

fn blocked(said: &SipAnswer) -> String {
    let told = said
        .redress()
        .map(|told| format!("; it says: {told}"))
        .unwrap_or_default();
    format!(
        "the carrier answered {said}: calls from this number are blocked by what is known of it, not by the person{told}"
    )
}

#[cfg(test)]
#[path = "sip_outcome_tests.rs"]
mod tests;
