//! Why a signature does not match: each usual mishap is undone, and the one after which it matches is named.
use super::{check::Check, request::Request, secret::PREFIX};
use adapters::signature;
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use runtime::keyring::hex;
use serde_json::Value;
use sha2::Sha256;
use std::cmp::Ordering;

/// `given` in the form of `signature::sign`; `times` are what it may be over.
pub fn find(request: &Request, given: &str, secret: &str, times: &[i64]) -> Check {
    let body = &request.body;
    let signed = |secret: &str, body: &[u8]| times.iter().any(|time| signature::sign(secret, *time, body) == given);
    let other_body = || variants(body).into_iter().find(|(variant, _)| signed(secret, variant));
    let decoded = || times.iter().any(|time| sign_decoded(secret, *time, body) == given);
    let previous = request.header("X-Webhook-Signature-Previous");

    if let Some((_, what)) = other_body() {
        Check::wrong("body", what)
    } else if body.is_empty() {
        Check::wrong("body", "is empty: it was read before, or not recorded")
    } else if secret.strip_prefix(PREFIX).is_some_and(|digits| signed(digits, body)) {
        let text = format!("lost its {PREFIX} on the signing side; the key is the whole text with it");
        Check::wrong("secret", text)
    } else if decoded() {
        let text = "was decoded from base64 on the signing side; the key of X-Webhook-Signature is the text itself, \
            only webhook-signature has the decoded bytes for its key";
        Check::wrong("secret", text)
    } else if signed(&format!("{secret}\n"), body) {
        Check::wrong("secret", "has a line break at its end on the signing side")
    } else if previous.is_some_and(|previous| {
        times
            .iter()
            .any(|time| signature::sign(secret, *time, body) == previous)
    }) {
        let text = "is the previous one, which X-Webhook-Signature-Previous is made with until the rotation ends; take \
            the new one";
        Check::wrong("secret", text)
    } else if let Some(odd) = length(request) {
        Check::wrong("body", odd)
    } else {
        Check::wrong("body", unknown(body))
    }
}

/// Bodies that this one may have been, and what happened then.
fn variants(body: &[u8]) -> Vec<(Vec<u8>, &'static str)> {
    let mut variants = Vec::new();
    let without = |end: &[u8]| body.strip_suffix(end).map(<[u8]>::to_vec);
    variants.extend(without(b"\r\n").map(|body| (body, "has a line break (CRLF) at its end that was not signed")));
    variants.extend(without(b"\n").map(|body| (body, "has a newline at its end that was not signed")));
    variants.push(([body, b"\n"].concat(), "has lost the newline at its end"));
    variants.push(([body, b"\r\n"].concat(), "has lost the line break (CRLF) at its end"));
    let lf = replaced(body, b"\r\n", b"\n");
    variants.push((replaced(&lf, b"\n", b"\r\n"), "has LF where CRLF was signed"));
    variants.push((lf, "has CRLF where LF was signed"));
    let parsed = serde_json::from_slice::<Value>(body).ok();
    let compact = parsed.and_then(|parsed| serde_json::to_vec(&parsed).ok());
    let anew = "was parsed and serialized again: without the blanks it matches. Verify the raw bytes, before anything \
        parses them";
    variants.extend(compact.map(|compact| (compact, anew)));
    variants
}

fn replaced(body: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some((first, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(from) {
            result.extend_from_slice(to);
            rest = behind;
        } else {
            result.push(*first);
            rest = behind;
        }
    }
    result
}

/// As `signature::sign` would sign if its key were the decoded base64.
fn sign_decoded(secret: &str, timestamp: i64, body: &[u8]) -> String {
    let key = STANDARD
        .decode(secret.strip_prefix(PREFIX).unwrap_or(secret))
        .unwrap_or_default();
    let mut mac =
        Hmac::<Sha256>::new_from_slice(&key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(format!("{timestamp}.").as_bytes());
    mac.update(body);
    format!("sha256={}", hex(&mac.finalize().into_bytes()))
}

/// Where the body is not as long as its header says.
pub fn length(request: &Request) -> Option<String> {
    let said: usize = request.header("Content-Length")?.parse().ok()?;
    let there = request.body.len();
    let bytes = |count: usize| {
        if count == 1 {
            "1 byte".to_owned()
        } else {
            format!("{count} bytes")
        }
    };
    let lengths = format!("Content-Length is {said}, the body has {there}");
    match there.cmp(&said) {
        Ordering::Less => Some(format!("has lost {}: {lengths}", bytes(said - there))),
        Ordering::Equal => None,
        Ordering::Greater => Some(format!("has {} too many: {lengths}", bytes(there - said))),
    }
}

fn unknown(body: &[u8]) -> String {
    let other = "is not the one that was signed, or the secret is another one";
    // Callboard writes the id first; who sorts the keys loses the original for ever.
    let parsed = serde_json::from_slice::<Value>(body).ok();
    let keys = parsed.as_ref().and_then(Value::as_object).map(|object| object.keys());
    let written_anew = keys.is_some_and(|mut keys| keys.len() > 1 && keys.next().is_some_and(|first| first != "id"));
    if written_anew {
        format!("{other}; its keys are not in Callboard's order: it was probably parsed and serialized again")
    } else {
        other.to_owned()
    }
}
