//! Our answers to challenges, and those that are given before anybody asks.
use super::{
    Algorithm, Asked, Credentials,
    challenge::{Params, quoted},
};
use crate::{
    identity::{digest, hex, mac},
    message::{Fields, Headers, Method, Name, Request, Response, uri_text},
};
use std::collections::VecDeque;

/// Realms of one trunk whose nonces are kept; of more, the oldest is forgotten.
const MAX_REALMS: usize = 8;
/// Requests in a row, of one call and method, that are answered to challenges: one, one for a nonce that had aged, one for a proxy
/// behind a proxy.
const MAX_TRIES: u8 = 3;
/// Calls of which tries are counted.
const MAX_CALLS: usize = 256;

/// Why a challenge was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the peer refused the trunk's username and password")]
    Credentials,
    #[error("the peer asks for a kind of authentication that is not known here")]
    Unknown,
    #[error("the peer asks for a password and names no way to prove it")]
    NoChallenge,
    #[error("the peer asks again and again")]
    Endless,
}

/// A trunk's answers: one nonce for each realm, used with a rising count until the peer gives another, so that a call costs one
/// round trip. Whom it is answered to is for the caller to say: it is never anybody but a target of the trunk.
pub struct Authorizer {
    credentials: Credentials,
    /// What cnonces are made of.
    key: [u8; 32],
    realms: VecDeque<Realm>,
    tries: VecDeque<(String, Method, u8)>,
}

struct Realm {
    name: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: Algorithm,
    /// As the challenge named it: it is given back so.
    algorithm_name: Option<String>,
    qop: bool,
    /// A proxy's: its answer goes into another header.
    by_proxy: bool,
    count: u32,
}

impl Authorizer {
    /// `secret` is the instance's, `trunk` tells one trunk's cnonces from another's.
    pub fn new(credentials: Credentials, secret: &[u8], trunk: &[u8]) -> Self {
        Authorizer {
            credentials,
            key: digest(mac(secret, &[b"sip cnonce", trunk])),
            realms: VecDeque::new(),
            tries: VecDeque::new(),
        }
    }

    /// Puts the answer to a challenge (401 or 407, or both in one) into a request, or, without one, what is known from before.
    /// The request has the CSeq and the Via that it is sent with; answers that it had are replaced.
    ///
    /// # Errors
    /// If it would be of no use: the same credentials were refused, or the challenge is not one that we know.
    pub fn authorize(&mut self, request: &mut Request, challenge: Option<&Response>) -> Result<(), Refused> {
        match challenge {
            Some(response) => self.learn(request, response)?,
            None => self.forget_tries(request),
        }
        request.headers.remove(&Name::AUTHORIZATION);
        request.headers.remove(&Name::PROXY_AUTHORIZATION);
        for at in 0..self.realms.len() {
            let (name, value) = self.answer(at, request);
            request.headers.insert(name, value);
        }
        Ok(())
    }

    /// Keeps the first challenge of each realm that we know. Source: RFC 8760, section 2.4.
    fn learn(&mut self, request: &Request, response: &Response) -> Result<(), Refused> {
        let mut known: Vec<Realm> = Vec::new();
        let (mut seen, mut refused) = (false, false);
        for (name, by_proxy) in [(Name::WWW_AUTHENTICATE, false), (Name::PROXY_AUTHENTICATE, true)] {
            for params in Params::all(&response.headers, &name) {
                seen = true;
                let Some(realm) = Realm::read(&params, by_proxy) else {
                    continue;
                };
                if known.iter().any(|of| of.by_proxy == by_proxy && of.name == realm.name) || known.len() == MAX_REALMS
                {
                    continue;
                }
                refused |= !params.is("stale", "true") && realm.has_been_answered(&request.headers, &self.realms);
                known.push(realm);
            }
        }
        if !seen {
            return Err(Refused::NoChallenge);
        }
        if known.is_empty() {
            return Err(Refused::Unknown);
        }
        if refused {
            for realm in &known {
                self.realms.retain(|of| !of.is_place_of(realm));
            }
            return Err(Refused::Credentials);
        }
        self.count_try(request)?;
        for realm in known {
            self.realms.retain(|of| !of.is_place_of(&realm));
            self.realms.push_back(realm);
        }
        while self.realms.len() > MAX_REALMS {
            self.realms.pop_front();
        }
        Ok(())
    }

    fn answer(&mut self, at: usize, request: &Request) -> (Name, String) {
        let realm = &mut self.realms[at];
        realm.count = realm.count.saturating_add(1);
        let uri = uri_text(&request.uri);
        let count = realm.count;
        let parts: [&[u8]; 3] = [
            realm.nonce.as_bytes(),
            &count.to_be_bytes(),
            request.call_id().as_bytes(),
        ];
        let cnonce = hex(&digest(mac(&self.key, &parts))[..8]);
        let response = Asked {
            algorithm: realm.algorithm,
            username: &self.credentials.username,
            realm: &realm.name,
            nonce: &realm.nonce,
            method: request.method.as_str(),
            uri: &uri,
            auth: realm.qop.then_some((count, cnonce.as_str())),
        }
        .response(&self.credentials.password);
        // Realm, nonce and opaque go back as they came, with the escapes that they had.
        let mut value = format!(
            "Digest username={}, realm=\"{}\", nonce=\"{}\", uri=\"{uri}\", response=\"{response}\"",
            quoted(&self.credentials.username),
            realm.name,
            realm.nonce
        );
        if let Some(name) = &realm.algorithm_name {
            value += &format!(", algorithm={name}");
        }
        if realm.qop {
            value += &format!(", qop=auth, nc={count:08x}, cnonce=\"{cnonce}\"");
        } else if realm.algorithm.session {
            value += ", cnonce=\"\"";
        }
        if let Some(opaque) = &realm.opaque {
            value += &format!(", opaque=\"{opaque}\"");
        }
        (realm.answer_name(), value)
    }

    fn count_try(&mut self, request: &Request) -> Result<(), Refused> {
        let (call_id, method) = (request.call_id(), &request.method);
        let known = self.tries.iter_mut().find(|(id, of, _)| id == call_id && of == method);
        match known {
            Some((_, _, tries)) if *tries >= MAX_TRIES => return Err(Refused::Endless),
            Some((_, _, tries)) => *tries += 1,
            None => {
                if self.tries.len() == MAX_CALLS {
                    self.tries.pop_front();
                }
                self.tries.push_back((call_id.to_owned(), method.clone(), 1));
            }
        }
        Ok(())
    }

    /// A request that begins anew.
    fn forget_tries(&mut self, request: &Request) {
        let (call_id, method) = (request.call_id(), &request.method);
        self.tries.retain(|(id, of, _)| id != call_id || of != method);
    }
}

impl Realm {
    /// A challenge that we can answer.
    fn read(params: &Params, by_proxy: bool) -> Option<Realm> {
        let algorithm_name = params.get("algorithm").map(str::to_owned);
        let algorithm = Algorithm::read(algorithm_name.as_deref().unwrap_or("MD5"))?;
        let qop = match params.get("qop") {
            Some(offered) if !offered.trim().is_empty() => {
                let auth = offered.split(',').any(|qop| qop.trim().eq_ignore_ascii_case("auth"));
                if !auth {
                    return None;
                }
                true
            }
            Some(_) | None => false,
        };
        Some(Realm {
            name: params.get("realm")?.to_owned(),
            nonce: params.get("nonce")?.to_owned(),
            opaque: params.get("opaque").map(str::to_owned),
            algorithm,
            algorithm_name,
            qop,
            by_proxy,
            count: 0,
        })
    }

    fn answer_name(&self) -> Name {
        if self.by_proxy {
            Name::PROXY_AUTHORIZATION
        } else {
            Name::AUTHORIZATION
        }
    }

    fn is_place_of(&self, other: &Realm) -> bool {
        self.by_proxy == other.by_proxy && self.name == other.name
    }

    /// Was the request refused although it had just been given the answer it was asked for? One that used an older nonce
    /// again may only have been late: many servers do not say `stale`. `kept` is what its answers were made of.
    fn has_been_answered(&self, headers: &Headers, kept: &VecDeque<Realm>) -> bool {
        let answers = Params::all(headers, &self.answer_name());
        let kept = kept.iter().find(|of| of.is_place_of(self));
        let mut answers = answers
            .iter()
            .filter(|answer| answer.get("realm") == Some(self.name.as_str()));
        answers.any(|answer| {
            let nonce = answer.get("nonce");
            let is_first = match answer.get("nc") {
                Some(count) => count == "00000001",
                None => kept.is_some_and(|of| of.count == 1 && nonce == Some(of.nonce.as_str())),
            };
            is_first || nonce == Some(self.nonce.as_str())
        })
    }
}
