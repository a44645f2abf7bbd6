//! Identifiers of a call, derived and not drawn: whoever knows the instance's secret and the session can say again which Call-ID,
//! tag and branch an INVITE had. A process that was killed is succeeded by one that can CANCEL, ACK and BYE what it left behind.
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt::Write as _;
use uuid::Uuid;

/// So begins every branch of RFC 3261's time. Source: RFC 3261, section 8.1.1.7.
const COOKIE: &str = "z9hG4bK";
/// Bytes of a MAC in a Call-ID: what nobody guesses, in a header that stays short.
const MAC_BYTES: usize = 16;
const TAG_BYTES: usize = 8;

pub struct Identity {
    key: [u8; 32],
}

impl Identity {
    /// `secret` is the instance's; the key is used for nothing else.
    pub fn new(secret: &[u8]) -> Self {
        Identity {
            key: digest(mac(secret, &[b"sip identity"])),
        }
    }

    /// `{session}.{leg}.{mac}@{host}`. The host is not part of what is checked: it may change between two processes.
    pub fn call_id(&self, session: Uuid, leg: u32, host: &str) -> String {
        let mac = self.derive("call-id", session, leg, "", 0);
        format!("{}.{leg}.{}@{host}", session.simple(), hex(&mac[..MAC_BYTES]))
    }

    /// The tag of our end of the dialog.
    pub fn local_tag(&self, session: Uuid, leg: u32) -> String {
        hex(&self.derive("tag", session, leg, "", 0)[..TAG_BYTES])
    }

    /// `z9hG4bK…`, another for each method and attempt. `what` is the method, `attempt` counts from 0 and goes on with each
    /// request of that method.
    pub fn branch(&self, session: Uuid, leg: u32, what: &str, attempt: u32) -> String {
        let mac = self.derive("branch", session, leg, what, attempt);
        format!("{COOKIE}{}", hex(&mac[..MAC_BYTES]))
    }

    /// Session and leg of a Call-ID that this instance made, in whatever process. The MAC is compared in constant time.
    pub fn is_ours(&self, call_id: &str) -> Option<(Uuid, u32)> {
        let (local, _) = call_id.split_once('@')?;
        let mut parts = local.split('.');
        let (session, leg, mac) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || session.len() != 32 {
            return None;
        }
        let session = Uuid::try_parse(session).ok()?;
        let number: u32 = leg.parse().ok()?;
        // One spelling only: "+1" and "01" are numbers, too.
        if number.to_string() != leg {
            return None;
        }
        let expected = hex(&self.derive("call-id", session, number, "", 0)[..MAC_BYTES]);
        let same = subtle::ConstantTimeEq::ct_eq(expected.as_bytes(), mac.as_bytes());
        bool::from(same).then_some((session, number))
    }

    fn derive(&self, kind: &str, session: Uuid, leg: u32, what: &str, attempt: u32) -> [u8; 32] {
        let (leg, attempt) = (leg.to_be_bytes(), attempt.to_be_bytes());
        // Only `what` varies in length among those of one kind, and it stands at the end.
        let parts: [&[u8]; 6] = [
            kind.as_bytes(),
            &[0],
            session.as_bytes(),
            &leg,
            &attempt,
            what.as_bytes(),
        ];
        digest(mac(&self.key, &parts))
    }
}

/// HMAC-SHA-256 of the parts, one after the other.
pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    for part in parts {
        mac.update(part);
    }
    mac
}

pub(crate) fn digest(mac: Hmac<Sha256>) -> [u8; 32] {
    mac.finalize().into_bytes().into()
}

/// In lower case.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const SESSION: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);

    #[test]
    fn every_identifier_of_a_call_is_another() {
        let identity = Identity::new(b"secret");
        let mut seen = HashSet::new();
        for leg in 0..3 {
            assert!(seen.insert(identity.call_id(SESSION, leg, "h")));
            assert!(seen.insert(identity.local_tag(SESSION, leg)));
            for what in ["INVITE", "BYE", "", "INVITE\0"] {
                for attempt in 0..3 {
                    assert!(seen.insert(identity.branch(SESSION, leg, what, attempt)));
                }
            }
        }
        assert!(identity.branch(SESSION, 1, "INVITE", 0).starts_with("z9hG4bK"));
    }

    #[test]
    fn what_was_changed_or_made_elsewhere_is_not_ours() {
        let identity = Identity::new(b"secret");
        let ours = identity.call_id(SESSION, 1, "192.0.2.1");
        let (local, _) = ours.split_once('@').unwrap();
        assert_eq!(identity.is_ours(&format!("{local}@other.example")), Some((SESSION, 1)));
        assert_eq!(Identity::new(b"another").is_ours(&ours), None);
        let mac = local.rsplit_once('.').unwrap().1;
        let simple = SESSION.simple();
        for strange in [
            local.to_owned(),
            format!("{simple}.2.{mac}@h"),
            format!("{simple}.01.{mac}@h"),
            format!("{simple}.+1.{mac}@h"),
            format!("{SESSION}.1.{mac}@h"),
            format!("{simple}.1.{mac}.x@h"),
            format!("{simple}.1.@h"),
            format!("{simple}.1.{}@h", mac.to_uppercase()),
            String::new(),
        ] {
            assert_eq!(identity.is_ours(&strange), None, "{strange}");
        }
    }

    proptest! {
        #[test]
        fn a_call_id_tells_whose_it_is(secret: Vec<u8>, session: u128, leg: u32) {
            let (identity, session) = (Identity::new(&secret), Uuid::from_u128(session));
            let call_id = identity.call_id(session, leg, "[::1]:5060");
            prop_assert_eq!(Identity::new(&secret).is_ours(&call_id), Some((session, leg)));
        }

        #[test]
        fn nothing_strange_is_ours(text: String) {
            prop_assert_eq!(Identity::new(b"secret").is_ours(&text), None);
        }
    }
}
