//! Digest authentication, both sides. Source: RFC 3261, section 22, RFC 7616, RFC 8760, and RFC 2069 for those without qop.
//!
//! Not by `ezk-sip-auth`: it draws its cnonce itself, keeps the hash of one request's URI for all that follow, and logs challenges.
mod challenge;
mod client;
mod server;

pub use client::{Authorizer, Refused};
pub use server::{Proof, Verifier};

use crate::identity::hex;
use md5::Md5;
use sha2::{Digest, Sha256, Sha512_256};
use std::fmt;

/// What a trunk's user proves himself with.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub username: String,
    pub password: String,
}

/// The password is in nobody's log.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Source: RFC 7616, section 3.3, and RFC 8760, section 2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Md5,
    Sha256,
    Sha512_256,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Algorithm {
    hash: Hash,
    /// `-sess`: the first hash takes nonce and cnonce in.
    session: bool,
}

impl Algorithm {
    /// `None` for one that we do not know. Names have no case.
    fn read(name: &str) -> Option<Algorithm> {
        let name = name.to_ascii_uppercase();
        let (base, session) = match name.strip_suffix("-SESS") {
            Some(base) => (base, true),
            None => (name.as_str(), false),
        };
        let hash = match base {
            "MD5" => Hash::Md5,
            "SHA-256" => Hash::Sha256,
            "SHA-512-256" => Hash::Sha512_256,
            _ => return None,
        };
        Some(Algorithm { hash, session })
    }

    fn hex(self, text: &str) -> String {
        match self.hash {
            Hash::Md5 => hex(&Md5::digest(text)),
            Hash::Sha256 => hex(&Sha256::digest(text)),
            Hash::Sha512_256 => hex(&Sha512_256::digest(text)),
        }
    }
}

/// All that goes into a response but the password.
struct Asked<'a> {
    algorithm: Algorithm,
    username: &'a str,
    realm: &'a str,
    nonce: &'a str,
    method: &'a str,
    uri: &'a str,
    /// Nonce count and cnonce with qop `auth`; `None` without qop.
    auth: Option<(u32, &'a str)>,
}

impl Asked<'_> {
    /// Source: RFC 7616, section 3.4.
    fn response(&self, password: &str) -> String {
        let Asked { realm, nonce, uri, .. } = self;
        let hash = |text: &str| self.algorithm.hex(text);
        let mut first = hash(&format!("{}:{realm}:{password}", self.username));
        if self.algorithm.session {
            let cnonce = self.auth.map_or("", |(_, cnonce)| cnonce);
            first = hash(&format!("{first}:{nonce}:{cnonce}"));
        }
        let second = hash(&format!("{}:{uri}", self.method));
        match self.auth {
            Some((count, cnonce)) => hash(&format!("{first}:{nonce}:{count:08x}:{cnonce}:auth:{second}")),
            None => hash(&format!("{first}:{nonce}:{second}")),
        }
    }
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
