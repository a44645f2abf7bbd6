//! Challenges of ours to a trunk that has to prove itself, and the look at its answers.
use super::{
    Algorithm, Asked, Credentials, Hash,
    challenge::{Params, quoted},
};
use crate::{
    identity::{digest, hex, mac},
    message::{Name, Request, Response, SipUri},
};
use std::{collections::VecDeque, net::IpAddr, time::Duration};
use subtle::ConstantTimeEq;

/// How long an answer to a nonce is taken.
const NONCE_LIFE: Duration = Duration::from_secs(60);
/// Answers that are remembered so that none is taken twice; in a minute a trunk may not ask for more.
const MAX_USED: usize = 4096;

/// What a request proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Whose the credentials are.
    Good,
    /// No answer to a challenge of ours: ask for one.
    Missing,
    /// The answer is right and its nonce has aged: give a new one, with `stale`.
    Stale,
    /// Wrong username, password or URI, or an answer that was used before.
    Wrong,
}

/// Our nonces are a time and its MAC with the source's address: nothing is kept of those that are not answered, and the next process
/// knows them, too. What it does not know is which answers were taken already: for a minute one of those could be taken once more.
pub struct Verifier {
    key: [u8; 32],
    realm: String,
    /// Answers that were taken, each with the time of its nonce, the newest last.
    used: VecDeque<(u64, [u8; 16])>,
}

impl Verifier {
    /// `secret` is the instance's.
    pub fn new(secret: &[u8], realm: &str) -> Self {
        Verifier {
            key: digest(mac(secret, &[b"sip nonce"])),
            realm: realm.to_owned(),
            used: VecDeque::new(),
        }
    }

    /// A 401 with a challenge in SHA-256 and one in MD5. `at` is counted from any moment that stays the same, over
    /// restarts, too.
    pub fn challenge(&self, request: &Request, source: IpAddr, at: Duration, stale: bool, tag: &str) -> Response {
        let mut response = request.response(401, "Unauthorized", Some(tag));
        let nonce = self.nonce(source, at.as_secs());
        let stale = if stale { ", stale=true" } else { "" };
        for algorithm in ["SHA-256", "MD5"] {
            let realm = quoted(&self.realm);
            let value = format!("Digest realm={realm}, nonce=\"{nonce}\", algorithm={algorithm}, qop=\"auth\"{stale}");
            response.headers.insert(Name::WWW_AUTHENTICATE, value);
        }
        response
    }

    /// Looks at a request that is not a repeat: its transaction has taken those.
    pub fn verify(&mut self, request: &Request, credentials: &Credentials, source: IpAddr, at: Duration) -> Proof {
        let answers = Params::all(&request.headers, &Name::AUTHORIZATION);
        let realm = quoted(&self.realm);
        let ours = answers
            .iter()
            .find(|answer| answer.get("realm").is_some_and(|of| format!("\"{of}\"") == realm));
        let Some(answer) = ours else {
            return Proof::Missing;
        };
        let Some(given_at) = self.nonce_of(answer, source) else {
            return Proof::Missing;
        };
        if !is_right(answer, request, credentials) {
            return Proof::Wrong;
        }
        // A time to come is nobody's.
        let age = at.as_secs().checked_sub(given_at);
        if age.is_none_or(|age| age > NONCE_LIFE.as_secs()) {
            return Proof::Stale;
        }
        self.use_up(given_at, answer, at)
    }

    fn nonce(&self, source: IpAddr, seconds: u64) -> String {
        format!("{seconds:x}-{}", hex(&self.nonce_mac(source, seconds)[..16]))
    }

    fn nonce_mac(&self, source: IpAddr, seconds: u64) -> [u8; 32] {
        digest(mac(
            &self.key,
            &[source.to_string().as_bytes(), &[0], &seconds.to_be_bytes()],
        ))
    }

    /// When a nonce of ours was given to this source.
    fn nonce_of(&self, answer: &Params, source: IpAddr) -> Option<u64> {
        let nonce = answer.get("nonce")?;
        let seconds = u64::from_str_radix(nonce.split_once('-')?.0, 16).ok()?;
        let same = self.nonce(source, seconds).as_bytes().ct_eq(nonce.as_bytes());
        // Our challenges offer nothing but `auth`.
        (bool::from(same) && answer.is("qop", "auth")).then_some(seconds)
    }

    /// What is used up is the answer, not the nonce's count: calls that are challenged in the same second have the same nonce, and
    /// each of them counts from one. A hash with the password in it is nobody else's.
    fn use_up(&mut self, given_at: u64, answer: &Params, at: Duration) -> Proof {
        let oldest = at.as_secs().saturating_sub(NONCE_LIFE.as_secs());
        self.used.retain(|(given_at, _)| *given_at >= oldest);
        let response = answer.get("response").unwrap_or_default().to_ascii_lowercase();
        let mut short = [0; 16];
        short.copy_from_slice(&digest(mac(&self.key, &[response.as_bytes()]))[..16]);
        let used = (given_at, short);
        if self.used.contains(&used) {
            return Proof::Wrong;
        }
        if self.used.len() == MAX_USED {
            return Proof::Stale;
        }
        self.used.push_back(used);
        Proof::Good
    }
}

/// Is the answer that of these credentials, to this request?
fn is_right(answer: &Params, request: &Request, credentials: &Credentials) -> bool {
    let get = |name| answer.get(name).unwrap_or_default();
    let algorithm = Algorithm::read(answer.get("algorithm").unwrap_or("MD5"));
    // What was not offered is not taken.
    let Some(algorithm) = algorithm.filter(|of| !of.session && of.hash != Hash::Sha512_256) else {
        return false;
    };
    let uri: Option<SipUri> = get("uri").parse().ok();
    // A proxy may write it in another way, but the same user and host are meant.
    if !uri.is_some_and(|uri| uri.compare(&request.uri)) {
        return false;
    }
    let Ok(count) = u32::from_str_radix(get("nc"), 16) else {
        return false;
    };
    let expected = Asked {
        algorithm,
        username: &credentials.username,
        realm: get("realm"),
        nonce: get("nonce"),
        method: request.method.as_str(),
        uri: get("uri"),
        auth: Some((count, get("cnonce"))),
    }
    .response(&credentials.password);
    let same = expected
        .as_bytes()
        .ct_eq(get("response").to_ascii_lowercase().as_bytes());
    bool::from(same) && unescaped(get("username")) == credentials.username
}

/// A quoted string's text.
fn unescaped(text: &str) -> String {
    let mut escaped = false;
    let kept = |c: &char| {
        escaped = *c == '\\' && !escaped;
        !escaped
    };
    text.chars().filter(kept).collect()
}
