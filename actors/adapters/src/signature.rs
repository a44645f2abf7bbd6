//! How a delivery proves where it comes from: the specification's headers and the Standard Webhooks set.
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use runtime::keyring::hex;
use sha2::Sha256;

/// A new `whsec_` secret: 32 random bytes in base64.
pub fn new_secret() -> String {
    format!("whsec_{}", STANDARD.encode(rand::random::<[u8; 32]>()))
}

/// A new `fnsec_` secret of a function.
pub fn new_function_secret() -> String {
    format!("fnsec_{}", STANDARD.encode(rand::random::<[u8; 32]>()))
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    for part in parts {
        mac.update(part);
    }
    mac
}

fn base(timestamp: i64) -> String {
    format!("{timestamp}.")
}

/// `X-Webhook-Signature`: keyed with the UTF-8 bytes of the whole secret, over `<unix-seconds>.<raw body>`.
pub fn sign(secret: &str, timestamp: i64, body: &[u8]) -> String {
    let mac = hmac(secret.as_bytes(), &[base(timestamp).as_bytes(), body]);
    format!("sha256={}", hex(&mac.finalize().into_bytes()))
}

/// `webhook-signature` of the Standard Webhooks: keyed with the decoded base64, over `<id>.<unix-seconds>.<raw body>`.
pub fn sign_standard(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> String {
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap_or(secret))
        .unwrap_or_default();
    let mac = hmac(&key, &[id.as_bytes(), b".", base(timestamp).as_bytes(), body]);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// What is delivered, as its headers say it.
pub struct Message<'a> {
    pub id: &'a str,
    pub event_type: &'a str,
    pub body: &'a [u8],
    pub is_replay: bool,
}

impl Message<'_> {
    /// The specification's headers and the Standard Webhooks set. During a rotation the previous secret signs along.
    pub fn headers(&self, timestamp: i64, secret: &str, previous: Option<&str>) -> HeaderMap {
        let Message {
            id, event_type, body, ..
        } = *self;
        // With room for those of the endpoint and of the client.
        let mut headers = HeaderMap::with_capacity(24);
        let mut put = |name: &'static str, value: &str| {
            // Ids, types, numbers and signatures are always valid header values.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        let mut standard = sign_standard(secret, id, timestamp, body);
        if let Some(previous) = previous {
            put("x-webhook-signature-previous", &sign(previous, timestamp, body));
            standard = format!("{standard} {}", sign_standard(previous, id, timestamp, body));
        }
        put("content-type", "application/json");
        put("x-webhook-id", id);
        put("x-webhook-event", event_type);
        put("x-webhook-timestamp", &timestamp.to_string());
        put("x-webhook-signature", &sign(secret, timestamp, body));
        put("webhook-id", id);
        put("webhook-timestamp", &timestamp.to_string());
        put("webhook-signature", &standard);
        if self.is_replay {
            put("x-webhook-replay", "true");
        }
        headers
    }
}

/// The receiver's side: is this delivery ours, and fresh? In constant time. `now` and `timestamp` are Unix seconds.
pub fn verify(secret: &str, signature: &str, timestamp: i64, body: &[u8], now: i64) -> Result<(), &'static str> {
    if now.abs_diff(timestamp) > 300 {
        return Err("the timestamp is more than 300 seconds from this clock");
    }
    let digits = signature
        .strip_prefix("sha256=")
        .ok_or("the signature does not start with sha256=")?;
    let given: Option<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect();
    let given = given.ok_or("the signature is not hex")?;
    hmac(secret.as_bytes(), &[base(timestamp).as_bytes(), body])
        .verify_slice(&given)
        .map_err(|_| "the signature does not match the body")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with two independent tools; it stands in the documentation.
    #[test]
    fn the_documented_vector() {
        let secret = format!("whsec_{}=", "A".repeat(43));
        let signature = sign(&secret, 1_700_000_000, b"{}");
        assert_eq!(
            signature,
            "sha256=c27378b71b60002356d3671bd75bc0cac07fd41680d9d020c4fbb08eca673402"
        );
        assert_eq!(verify(&secret, &signature, 1_700_000_000, b"{}", 1_700_000_300), Ok(()));
        assert!(
            verify(&secret, &signature, 1_700_000_000, b"{}", 1_700_000_301).is_err(),
            "too old"
        );
        assert!(
            verify(&secret, &signature, 1_700_000_000, b"{ }", 1_700_000_000).is_err(),
            "another body"
        );
        assert!(
            verify(&secret, &signature[..20], 1_700_000_000, b"{}", 1_700_000_000).is_err(),
            "cut off"
        );
    }

    /// The vector of the Standard Webhooks' own libraries.
    #[test]
    fn the_standard_webhooks_vector() {
        let signature = sign_standard(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
