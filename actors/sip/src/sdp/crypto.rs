//! Keys of SRTP in a session description: `a=crypto` (SDES, RFC 4568).
use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Which cipher and tag. RFC 4568 §6.2, RFC 6188.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    AesCm128Sha1Tag80,
    AesCm128Sha1Tag32,
    AesCm256Sha1Tag80,
}

impl Suite {
    pub const ALL: [Self; 3] = [
        Self::AesCm128Sha1Tag80,
        Self::AesCm128Sha1Tag32,
        Self::AesCm256Sha1Tag80,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::AesCm128Sha1Tag80 => "AES_CM_128_HMAC_SHA1_80",
            Self::AesCm128Sha1Tag32 => "AES_CM_128_HMAC_SHA1_32",
            Self::AesCm256Sha1Tag80 => "AES_256_CM_HMAC_SHA1_80",
        }
    }

    /// Bytes of the master key and of its salt.
    pub fn lengths(self) -> (usize, usize) {
        match self {
            Self::AesCm128Sha1Tag80 | Self::AesCm128Sha1Tag32 => (16, 14),
            Self::AesCm256Sha1Tag80 => (32, 14),
        }
    }
}

/// Master key, then salt. It is never printed but into a session description.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl Key {
    /// `None`: not as long as the suite wants it.
    pub fn new(suite: Suite, key_and_salt: Vec<u8>) -> Option<Self> {
        let (key, salt) = suite.lengths();
        (key_and_salt.len() == key + salt).then_some(Self(key_and_salt))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// One line: with which key its writer sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crypto {
    pub tag: u32,
    pub suite: Suite,
    pub key: Key,
}

/// What a stream is encrypted with, in each direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrtpKeys {
    pub suite: Suite,
    pub send: Key,
    pub receive: Key,
}

impl Crypto {
    /// The value of `a=crypto`. `None`: not well-formed, or with what we do not do: several keys, an index of keys,
    /// streams that are not encrypted or not authenticated, forward error correction.
    pub(super) fn read(value: &str) -> Option<Self> {
        let mut words = value.split_ascii_whitespace();
        let tag = words.next()?.parse().ok()?;
        let name = words.next()?;
        let suite = Suite::ALL.into_iter().find(|suite| suite.name() == name)?;
        let mut fields = words.next()?.strip_prefix("inline:")?.split('|');
        let key = fields.next()?;
        // What follows is how long the key lasts (no call of ours is that long) and the index of the key.
        if fields.any(|field| field.contains(':') || field.contains(';')) || key.contains(';') {
            return None;
        }
        // The window of a receiver is a hint; everything else changes what is on the wire.
        if words.any(|parameter| !parameter.starts_with("WSH=")) {
            return None;
        }
        let key = Key::new(suite, STANDARD.decode(key).ok()?)?;
        Some(Self { tag, suite, key })
    }
}

impl fmt::Display for Crypto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} inline:{}",
            self.tag,
            self.suite.name(),
            STANDARD.encode(&self.key.0)
        )
    }
}
