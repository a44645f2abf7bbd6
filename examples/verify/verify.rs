use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Is this delivery from Callboard, and fresh? `body` is the raw request body, `now` is in Unix seconds.
pub fn verify(secret: &str, timestamp: &str, signature: &str, body: &[u8], now: u64) -> bool {
    let digits = timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let fresh = digits && timestamp.parse::<u64>().is_ok_and(|sent| now.abs_diff(sent) <= 300);
    let Some(given) = signature.strip_prefix("sha256=").and_then(unhex).filter(|_| fresh) else {
        return false;
    };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return false;
    };
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    mac.verify_slice(&given).is_ok() // in constant time
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(value(*high)? * 16 + value(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(byte).collect()
}
