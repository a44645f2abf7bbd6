//! A carrier's final answer to an INVITE, and what of it the record of attempts keeps.
//!
//! It is kept for years and cannot be taken back, and anybody's network may have written it: so it is cut, and the number that was called,
//! which stands in a row's content alone, is not left in it.
use entities::values::E164;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// As it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SipAnswer {
    /// 300 to 699.
    pub code: u16,
    /// Its phrase, in the carrier's words.
    pub reason: String,
    /// The cause that its `Reason` names, 1 to 127. Source: ITU-T Q.850; RFC 3326.
    pub q850: Option<u8>,
    /// All that its `Reason` headers say.
    pub reasons: Vec<SipReason>,
    /// Where the one who has blocked the call says who he is. Source: RFC 8688 (608).
    pub jcard_url: Option<String>,
}

/// One value of a `Reason` header. Source: RFC 3326; RFC 8606 (`location`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SipReason {
    /// Whose causes these are, such as `SIP` or `Q.850`.
    pub protocol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<u16>,
    /// Which network says so, such as `LN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// How the carrier says that it has signed a call (STIR/SHAKEN). Source: ATIS-1000074.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Attestation {
    /// It knows who calls, and that they may show the number.
    A,
    /// It knows who calls.
    B,
    /// It knows where the call has come in.
    C,
}

impl Attestation {
    pub fn of(letter: char) -> Option<Self> {
        match letter {
            'A' => Some(Attestation::A),
            'B' => Some(Attestation::B),
            'C' => Some(Attestation::C),
            _ => None,
        }
    }
}

/// What is kept of an answer beside its code and its cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub phrase: Option<String>,
    pub reasons: Vec<SipReason>,
    pub jcard_url: Option<String>,
}

/// Characters that are kept of what a carrier says.
const MAX_PHRASE: usize = 200;
const MAX_TEXT: usize = 256;
/// Of the name of a protocol, or of a network.
const MAX_WORD: usize = 16;
/// A longer address is not kept: half of one leads nowhere.
const MAX_URL: usize = 256;
const MOST_REASONS: usize = 3;
/// Digits at its end by which a number is told.
const TELLING: usize = 7;

impl SipAnswer {
    /// `called`: the number that must not be in it.
    pub fn kept(&self, called: Option<&E164>) -> Kept {
        let cut = |text: &str, most| cut(&without(text, called), most);
        let reasons = self.reasons.iter().filter_map(|reason| {
            Some(SipReason {
                protocol: cut(&reason.protocol, MAX_WORD)?,
                cause: reason.cause,
                location: reason.location.as_deref().and_then(|text| cut(text, MAX_WORD)),
                text: reason.text.as_deref().and_then(|text| cut(text, MAX_TEXT)),
            })
        });
        let url = self.jcard_url.as_deref().filter(|url| url.len() <= MAX_URL);
        Kept {
            phrase: cut(&self.reason, MAX_PHRASE),
            reasons: reasons.take(MOST_REASONS).collect(),
            jcard_url: url.and_then(|url| cut(url, MAX_URL)),
        }
    }

    /// Whom to ask about a block, in the words of the one who has blocked it.
    pub fn redress(&self) -> Option<String> {
        let kept = self.kept(None);
        let mut texts = kept.reasons.into_iter().filter_map(|reason| reason.text);
        kept.jcard_url.or_else(|| texts.next())
    }
}

impl fmt::Display for SipAnswer {
    /// On one line: `486 Busy Here (Q.850 17)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(phrase) = cut(&self.reason, MAX_PHRASE) {
            write!(f, " {phrase}")?;
        }
        match self.q850 {
            Some(cause) => write!(f, " (Q.850 {cause})"),
            None => Ok(()),
        }
    }
}

/// On one line, and all of it to be seen; `None`: nothing is left.
fn cut(text: &str, most: usize) -> Option<String> {
    let plain = |c: char| if c.is_control() || turns_text(c) { ' ' } else { c };
    let text: String = text.trim().chars().take(most).map(plain).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Is not seen itself, and changes how the text around it is.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The text without the number: of digits that hold its last seven, however they are parted, only asterisks are left.
fn without(text: &str, number: Option<&E164>) -> String {
    let Some(number) = number else {
        return text.to_owned();
    };
    let digits = number.as_str().trim_start_matches('+');
    let tail = &digits[digits.len().saturating_sub(TELLING)..];
    let (mut shown, mut run) = (String::with_capacity(text.len()), String::new());
    for c in text.chars() {
        let parts = !run.is_empty() && matches!(c, ' ' | '-' | '.' | '(' | ')');
        if c.is_ascii_digit() || parts {
            run.push(c);
        } else {
            shown.push_str(&hidden(&run, tail));
            run.clear();
            shown.push(c);
        }
    }
    shown.push_str(&hidden(&run, tail));
    shown
}

fn hidden(run: &str, tail: &str) -> String {
    let digits: String = run.chars().filter(char::is_ascii_digit).collect();
    match digits.contains(tail) {
        true => run.replace(|c: char| c.is_ascii_digit(), "*"),
        false => run.to_owned(),
    }
}

#[cfg(test)]
#[path = "sip_answer_tests.rs"]
mod tests;
