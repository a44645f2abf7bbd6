//! What the headers of a message say, read when asked.
use super::{
    Method, Via,
    address::{Address, param, split_list},
    method::is_token,
};
use ezk_sip_types::{Headers, Name, uri::SipUri};
use std::time::Duration;

/// Longest pause that a Retry-After is believed.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Headers of a request or a response. Lenient: what is missing or cannot be read is `None` or empty, never a panic.
#[expect(clippy::wrong_self_convention, reason = "From is a header")]
pub trait Fields {
    fn headers(&self) -> &Headers;

    /// The first value of a header, with its folding undone.
    fn header_text(&self, name: impl Into<Name>) -> Option<String> {
        self.headers()
            .get_raw(&name.into())
            .next()
            .map(|value| value.to_string())
    }

    /// All elements of a header that is a list, over all of its lines.
    fn list(&self, name: impl Into<Name>) -> Vec<String> {
        let values = self.headers().get_raw(&name.into());
        values
            .flat_map(|value| split_list(value.as_str()))
            .map(str::to_owned)
            .collect()
    }

    /// Does a list header (Supported, Require, Allow) hold this word? Words have no case.
    fn lists(&self, name: impl Into<Name>, word: &str) -> bool {
        self.list(name).iter().any(|element| element.eq_ignore_ascii_case(word))
    }

    /// Empty if there is none, which no message that was read is.
    fn call_id(&self) -> &str {
        let value = self.headers().get_raw(&Name::CALL_ID).next();
        value.map(|value| value.as_str()).unwrap_or_default()
    }

    /// Number and method; 0 and an empty method if there are none, which no message that was read has.
    fn cseq(&self) -> (u32, Method) {
        read_cseq(self.headers()).unwrap_or((0, Method::from("")))
    }

    fn from_tag(&self) -> Option<String> {
        tag(self.headers(), &Name::FROM)
    }

    fn to_tag(&self) -> Option<String> {
        tag(self.headers(), &Name::TO)
    }

    fn from_uri(&self) -> Option<SipUri> {
        uri(self.headers(), &Name::FROM)
    }

    fn to_uri(&self) -> Option<SipUri> {
        uri(self.headers(), &Name::TO)
    }

    /// The user of a `sip:` URI or the number of a `tel:` URI in From, To, Contact, P-Asserted-Identity, Diversion ….
    fn user_of(&self, name: impl Into<Name>) -> Option<String> {
        let value = self.header_text(name)?;
        Address::read(&value).user().map(str::to_owned)
    }

    /// The top Via, if it can be read.
    fn top_via(&self) -> Option<Via> {
        Via::read(self.headers().get_raw(&Name::VIA).next()?.as_str())
    }

    fn top_via_branch(&self) -> Option<String> {
        self.top_via()?.branch().map(str::to_owned)
    }

    /// The URI of the first Contact.
    fn contact(&self) -> Option<SipUri> {
        uri(self.headers(), &Name::CONTACT)
    }

    /// The Record-Route set in the order of the message, each as it stands.
    fn record_route(&self) -> Vec<String> {
        self.list(Name::RECORD_ROUTE)
    }

    /// The Q.850 cause of a Reason header, 1 to 127. Source: RFC 3326, section 2.
    fn reason_cause(&self) -> Option<u8> {
        self.list("Reason").iter().find_map(|value| {
            let (protocol, params) = value.split_once(';')?;
            if !protocol.trim().eq_ignore_ascii_case("Q.850") {
                return None;
            }
            let cause: u8 = param(params, "cause")?.parse().ok()?;
            (1..=127).contains(&cause).then_some(cause)
        })
    }

    /// How the carrier says that it has signed the call: A, B or C. Nothing makes it say so; whoever does uses the header in which
    /// networks tell each other. Source: 3GPP TS 24.229 (`Attestation-Info`); `P-Attestation-Indicator` is what signing services use.
    fn attestation(&self) -> Option<char> {
        let told = ["P-Attestation-Indicator", "Attestation-Info"].map(|name| self.header_text(name));
        told.into_iter().flatten().find_map(|text| {
            let level = text.trim().parse::<char>().ok()?.to_ascii_uppercase();
            matches!(level, 'A'..='C').then_some(level)
        })
    }

    /// Seconds of a Retry-After, a day at most. Source: RFC 3261, section 20.33.
    fn retry_after(&self) -> Option<Duration> {
        let text = self.header_text(Name::RETRY_AFTER)?;
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let seconds = text[..end].parse().ok()?;
        Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
    }
}

/// Number below 2**31 and method, of a value that is nothing else. Source: RFC 3261, sections 8.1.1.5 and 20.16.
pub(super) fn read_cseq(headers: &Headers) -> Option<(u32, Method)> {
    let value = headers.get_raw(&Name::CSEQ).next()?;
    let mut words = value.split_ascii_whitespace();
    let (number, method) = (words.next()?, words.next()?);
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = number.parse().ok().filter(|number| is_number && *number < 1 << 31)?;
    let is_all = words.next().is_none() && is_token(method);
    is_all.then(|| (number, Method::from(method)))
}

fn tag(headers: &Headers, name: &Name) -> Option<String> {
    let value = headers.get_raw(name).next()?;
    let tag = Address::read(value.as_str()).param("tag")?;
    Some(tag.to_owned()).filter(|tag| !tag.is_empty())
}

fn uri(headers: &Headers, name: &Name) -> Option<SipUri> {
    Address::read(headers.get_raw(name).next()?.as_str()).sip_uri()
}
