//! Secrets at rest: sealed with XChaCha20-Poly1305 under the operator's secret key.
//!
//! A sealed text is `<key id>.<base64 of nonce and ciphertext>`; the key id (8 hex digits of the key's SHA-256) tells
//! which key opens it, so that a key can be replaced: the old one stays readable until everything was sealed anew.
use base64::{Engine, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use entities::{Error, Result};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use zeroize::Zeroizing;

/// The current key and those it replaced.
pub struct Keyring {
    current: Key,
    previous: Vec<Key>,
}

struct Key {
    id: String,
    cipher: XChaCha20Poly1305,
    bytes: Zeroizing<[u8; 32]>,
}

impl Key {
    /// A key of its own for one purpose.
    fn derived(&self, purpose: Purpose) -> [u8; 32] {
        derived_from(&self.bytes, purpose)
    }
}

/// A key for one purpose, from one for many.
pub fn derived_from(key: &[u8; 32], purpose: Purpose) -> [u8; 32] {
    keyed(key, purpose.as_bytes())
}

/// A hash that nobody can make, or check, without the key: HMAC-SHA256.
pub fn keyed(key: &[u8; 32], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(text);
    mac.finalize().into_bytes().into()
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({} ***)", self.current.id)
    }
}

/// What is sealed where.
pub mod purpose {
    use super::Purpose;
    pub const SECRET_CHECK: Purpose = "meta.secret_check";
    pub const ENDPOINT_SECRET: Purpose = "webhook_endpoints.secret";
    pub const ENDPOINT_HEADERS: Purpose = "webhook_endpoints.headers";
    pub const FUNCTION_SECRET: Purpose = "functions.secret";
    pub const FUNCTION_HEADERS: Purpose = "functions.headers";
    pub const TRUNK_PASSWORD: Purpose = "sip_trunks.password";
    pub const TRUNK_INBOUND_PASSWORD: Purpose = "sip_trunks.inbound_password";
    pub const VERIFICATION_CODE: Purpose = "verified_numbers.code";
    pub const CODE_HASH: Purpose = "verified_numbers.code_hash";
    pub const LINK_KEYS: Purpose = "meta.link_keys";
    pub const RECORDINGS: Purpose = "recordings";
    pub const RECORDING_LINK: Purpose = "recordings.link";
    pub const ROOM_LINK: Purpose = "rooms.link";
    pub const UNSUBSCRIBE_LINK: Purpose = "emails.unsubscribe";
    pub const IDEMPOTENT_ANSWER: Purpose = "idempotency_keys.body";
    pub const MAIL_BODY: Purpose = "mails.body";
    pub const EVENT_BODY: Purpose = "events.body";
    pub const SIP: Purpose = "sip";
    pub const NODES: Purpose = "nodes";
    pub const INSTANCE: Purpose = "healthz.instance";
    pub const REGISTERS: Purpose = "registers.numbers";
    pub const DEVICE: Purpose = "devices.cookie";
    pub const ATTEMPT_NUMBER: Purpose = "attempts.number";
    pub const ATTEMPT_SIGNING: Purpose = "attempts.signing";
}

/// What binds a sealed text to its place, so that it cannot be moved to another column.
pub type Purpose = &'static str;

impl Keyring {
    /// Keys are 32 bytes in base64 or 64 hex digits.
    pub fn new(current: &str, previous: &[String]) -> Result<Self, String> {
        Ok(Keyring {
            current: Key::parse(current)?,
            previous: previous.iter().map(|key| Key::parse(key)).collect::<Result<_, _>>()?,
        })
    }

    /// A new random key, in base64.
    pub fn generate() -> String {
        STANDARD.encode(rand::random::<[u8; 32]>())
    }

    /// The key for one purpose, and those that it replaced.
    pub fn derived(&self, purpose: Purpose) -> ([u8; 32], Vec<[u8; 32]>) {
        let previous = self.previous.iter().map(|key| key.derived(purpose)).collect();
        (self.current.derived(purpose), previous)
    }

    /// Is it one of these, the current or a previous one?
    pub fn has(&self, key_id: &str) -> bool {
        self.current.id == key_id || self.previous.iter().any(|key| key.id == key_id)
    }

    pub fn key_id(&self) -> &str {
        &self.current.id
    }

    pub fn seal(&self, purpose: Purpose, plain: &str) -> String {
        let nonce = rand::random::<[u8; 24]>();
        let payload = Payload {
            msg: plain.as_bytes(),
            aad: purpose.as_bytes(),
        };
        let sealed = self.current.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.unwrap_or_else(|_| unreachable!("fails only beyond 256 GiB"));
        format!(
            "{}.{}",
            self.current.id,
            STANDARD.encode([&nonce[..], &sealed].concat())
        )
    }

    pub fn open(&self, purpose: Purpose, sealed: &str) -> Result<Zeroizing<String>> {
        let fail = |why: &str| Error::Internal(format!("a sealed value ({purpose}) cannot be opened: {why}"));
        let (id, text) = sealed
            .split_once('.')
            .ok_or_else(|| fail("it is not in the sealed form"))?;
        let key = std::iter::once(&self.current)
            .chain(&self.previous)
            .find(|key| key.id == id);
        let key = key.ok_or_else(|| fail(&format!("it was sealed with key {id}, which is not configured")))?;
        let bytes = STANDARD.decode(text).map_err(|_| fail("it is damaged"))?;
        let (nonce, ciphertext) = bytes.split_first_chunk::<24>().ok_or_else(|| fail("it is damaged"))?;
        let payload = Payload {
            msg: ciphertext,
            aad: purpose.as_bytes(),
        };
        let plain = key
            .cipher
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| fail("wrong key or damaged"))?;
        String::from_utf8(plain)
            .map(Zeroizing::new)
            .map_err(|_| fail("it is damaged"))
    }

    /// The same text under the current key; `None` if it is already.
    pub fn reseal(&self, purpose: Purpose, sealed: &str) -> Result<Option<String>> {
        if sealed.split_once('.').is_some_and(|(id, _)| id == self.current.id) {
            return Ok(None);
        }
        Ok(Some(self.seal(purpose, &self.open(purpose, sealed)?)))
    }
}

impl Key {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let bytes = if text.len() == 64 {
            from_hex(text)
        } else {
            STANDARD.decode(text).ok()
        };
        let bytes: Zeroizing<Vec<u8>> = Zeroizing::new(bytes.unwrap_or_default());
        let bytes: &[u8; 32] = bytes.as_slice().try_into().map_err(
            |_| "a secret key is 32 random bytes in base64 (or 64 hex digits): try `openssl rand -base64 32`",
        )?;
        let id = hex(&Sha256::digest(bytes)[..4]);
        Ok(Key {
            id,
            cipher: XChaCha20Poly1305::new(bytes.into()),
            bytes: Zeroizing::new(*bytes),
        })
    }
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    halves.map(|half| DIGITS[usize::from(half)]).collect()
}

/// The bytes of hex digits; `None` if it is none.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}

/// SHA-256 in hex: how keys and tokens are stored.
pub fn sha256_hex(text: &[u8]) -> String {
    hex(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let ring = Keyring::new(&Keyring::generate(), &[]).unwrap();
        let sealed = ring.seal("test", "whsec_x");
        assert_eq!(ring.open("test", &sealed).unwrap().as_str(), "whsec_x");
        assert_ne!(sealed, ring.seal("test", "whsec_x"));
        assert!(ring.open("other", &sealed).is_err(), "another purpose");
        assert!(
            Keyring::new(&Keyring::generate(), &[])
                .unwrap()
                .open("test", &sealed)
                .is_err(),
            "another key"
        );
        assert!(ring.open("test", &sealed[..sealed.len() - 8]).is_err(), "cut off");
    }

    #[test]
    fn a_replaced_key_still_opens_and_reseals() {
        let old = Keyring::generate();
        let sealed = Keyring::new(&old, &[]).unwrap().seal("test", "x");
        let ring = Keyring::new(&Keyring::generate(), &[old]).unwrap();
        let resealed = ring.reseal("test", &sealed).unwrap().unwrap();
        assert_eq!(ring.open("test", &resealed).unwrap().as_str(), "x");
        assert_eq!(ring.reseal("test", &resealed).unwrap(), None);
    }

    #[test]
    fn refuses_a_short_key() {
        for key in ["", "abc", &"0".repeat(63), &"g".repeat(64)] {
            assert!(Keyring::new(key, &[]).is_err(), "{key}");
        }
    }
}
