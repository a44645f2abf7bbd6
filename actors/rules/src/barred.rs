//! Whom not to reach: by number, or by address.
use entities::{
    Error, Result,
    consent::{Address, Revocation, Revoked},
    dnc::{Channels, DncChannel, Model, Source},
    ids::{DncId, SessionId, TenantId},
    values::{E164, Env, Moment},
};

/// Whom not to reach.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whom {
    Number(E164),
    /// In lower case.
    Email(String),
}

impl Whom {
    /// Whom the consents are of.
    pub fn address(&self) -> Address {
        match self {
            Whom::Number(number) => Address::Number(number.clone()),
            Whom::Email(email) => Address::Email(email.clone()),
        }
    }
}

/// Whose the entry is.
pub fn whom(entry: &Model) -> Option<Whom> {
    let number = entry.phone_number.clone().map(Whom::Number);
    number.or_else(|| entry.email.clone().map(Whom::Email))
}

/// An entry that is asked for.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: DncId,
    pub whom: Whom,
    /// Empty: all that the number, or the address, can be reached by.
    pub channels: Vec<DncChannel>,
    pub reason: Option<String>,
    pub source: Source,
    pub session_id: Option<SessionId>,
    /// When the person asked for it, if somebody else adds it.
    pub requested_at: Option<Moment>,
    /// Who adds it; none: the person it is about.
    pub created_by: Option<String>,
}

impl Entry {
    /// What it bars.
    pub fn barred(&self) -> Channels {
        match (&self.whom, self.channels.is_empty()) {
            (_, false) => Channels::of(self.channels.clone()),
            (Whom::Number(_), true) => Channels(vec![DncChannel::Phone, DncChannel::Sms]),
            (Whom::Email(_), true) => Channels(vec![DncChannel::Email]),
        }
    }

    /// Whoever does not want to be reached takes back what they agreed to.
    pub fn revocation(&self, (tenant_id, env): (TenantId, Env), now: Moment) -> Revocation {
        Revocation {
            tenant_id,
            env,
            what: Revoked::Of(self.whom.address()),
            channels: self.barred(),
            given_by: None,
            at: now,
            by: self.created_by.clone(),
            reason: self
                .reason
                .clone()
                .unwrap_or_else(|| "is on the do-not-call list".into()),
            seq: 0,
        }
    }
}

/// What was agreed to before somebody said no stays taken back, whenever it was recorded, once the entry is taken off the list.
pub fn still_revoked(entry: &Model, now: Moment) -> Option<Revocation> {
    let said_no_at = entry.said_no_at()?;
    Some(Revocation {
        tenant_id: entry.tenant_id,
        env: entry.env,
        what: Revoked::Of(whom(entry)?.address()),
        channels: entry.channels.clone(),
        given_by: Some(said_no_at),
        at: now,
        by: None,
        reason: "was given before the person asked not to be reached".into(),
        seq: 0,
    })
}

/// The entry of somebody who wants no more texts, by whichever way that was said.
pub fn stop(id: DncId, person: &E164) -> Entry {
    Entry {
        id,
        whom: Whom::Number(person.clone()),
        channels: Vec::new(),
        reason: Some("said so by SMS".into()),
        source: Source::SmsStop,
        session_id: None,
        requested_at: None,
        created_by: None,
    }
}

/// An address as it is compared, stored and written to: bare (`local@domain`), in lower case, its domain in ASCII (an
/// international one as punycode). Whoever is meant has one spelling, so that no other one passes the do-not-call list; what
/// has more (names, `<>`, quotes, comments, lists) is refused. Source: RFC 5321, 4.1.2 (`Dot-string`), and RFC 5890.
pub fn email(text: &str) -> Result<String> {
    bare(&text.trim().to_lowercase()).ok_or_else(|| Error::invalid("email", "is not an e-mail address"))
}

fn bare(text: &str) -> Option<String> {
    let (local, host) = text.split_once('@')?;
    let fits = local.len() <= 64
        && local
            .split('.')
            .all(|atom| !atom.is_empty() && atom.chars().all(is_of_atom));
    // What is not ASCII is judged, and made one spelling, below.
    let plain = |char: char| !char.is_ascii() || char.is_ascii_alphanumeric() || matches!(char, '-' | '.');
    if !fits || !host.chars().all(plain) {
        return None;
    }
    let url::Host::Domain(host) = url::Host::parse(host).ok()? else {
        return None;
    };
    let address = format!("{local}@{host}");
    let fits = address.len() <= 254 && host.contains('.') && host.split('.').all(is_label);
    let written: lettre::Address = address.parse().ok()?;
    (fits && written.to_string() == address).then_some(address)
}

fn is_of_atom(char: char) -> bool {
    char.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(char)
}

fn is_label(label: &str) -> bool {
    let plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_of_one_address() {
        for (given, kept) in [
            ("ann@example.com", "ann@example.com"),
            (" Ann@Example.COM\n", "ann@example.com"),
            ("a.b+c_d-e@sub.example.co.uk", "a.b+c_d-e@sub.example.co.uk"),
            ("o'neil/x=1@example.com", "o'neil/x=1@example.com"),
            ("ann@BÜCHER.example", "ann@xn--bcher-kva.example"),
            ("ann@bu\u{308}cher.example", "ann@xn--bcher-kva.example"),
            ("ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example"),
            ("ann@ｅxample。com", "ann@example.com"),
            ("ann@exam\u{ad}ple.com", "ann@example.com"),
        ] {
            let found = email(given).unwrap_or_else(|error| panic!("{given}: {error:?}"));
            assert_eq!(found, kept, "{given}");
            assert_eq!(email(&found).unwrap(), found, "and stays: {given}");
            assert_eq!(found.parse::<lettre::Address>().unwrap().to_string(), found);
            let mailbox: lettre::message::Mailbox = found.parse().unwrap();
            assert_eq!((mailbox.name, mailbox.email.to_string()), (None, found));
        }
    }

    #[test]
    fn what_is_more_than_a_bare_address_is_refused() {
        let long_local = format!("{}@example.com", "a".repeat(65));
        let long_label = format!("a@{}.com", "b".repeat(64));
        let long = format!("a@{}com", "bcdefgh.".repeat(32));
        for text in [
            "",
            "ann",
            "@example.com",
            "ann@",
            "ann@localhost",
            "<ann@example.com>",
            "x<ann@example.com>",
            "Ann <ann@example.com>",
            "\"ann\"@example.com",
            "\"a b\"@example.com",
            "ann(x)@example.com",
            "ann@example.com(x)",
            "ann@example.com,bob@example.com",
            "ann@example.com;bob@example.com",
            "ann@example.com, bob",
            "mailto:ann@example.com",
            "ann\\@example.com",
            "a nn@example.com",
            "ann @example.com",
            "ann@ example.com",
            "ann@exam\tple.com",
            "a\0nn@example.com",
            "a\u{7f}nn@example.com",
            "a\u{200b}nn@example.com",
            "ann@bob@example.com",
            ".ann@example.com",
            "ann.@example.com",
            "a..nn@example.com",
            "ann@.example.com",
            "ann@example..com",
            "ann@example.com.",
            "ann@-example.com",
            "ann@example-.com",
            "ann@exa_mple.com",
            "ann@ex%61mple.com",
            "ann@[127.0.0.1]",
            "ann@127.0.0.1",
            "ann@0x7f.1",
            "ann@xn--a.example",
            &long_local,
            &long_label,
            &long,
        ] {
            assert!(email(text).is_err(), "{text:?}");
        }
    }
}
