//! How Stripe proves that a notice is its own: `Stripe-Signature: t=UNIX,v1=HEX[,v1=HEX…]`, HMAC-SHA256 over
//! `<t>.<raw body>`, keyed with the bytes of the endpoint's whole `whsec_…` secret.
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::{fmt, sync::Arc};
use zeroize::Zeroizing;

/// Seconds by which a notice's time may differ from ours.
const TOLERANCE: u64 = 300;
/// During a change of secrets Stripe signs with both; more than a few signatures are an attack.
const MAX_SIGNATURES: usize = 16;
const MAX_SECRETS: usize = 8;

/// The secrets of the endpoint, new and old. Never printed.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[Zeroizing<String>]>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} secrets]", self.0.len())
    }
}

/// Why a notice is not believed, in words for whoever sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unproved {
    #[error("the Stripe-Signature header is missing or not of the form t=…,v1=…")]
    Unreadable,
    #[error("the timestamp is more than 300 seconds from this clock")]
    Stale,
    #[error("no signature matches the body: check the endpoint's signing secret")]
    Wrong,
}

impl Secrets {
    /// One or more `whsec_…`, with commas between.
    pub fn parse(text: &str) -> Result<Self, String> {
        let secrets: Vec<_> = text
            .split(',')
            .map(str::trim)
            .filter(|secret| !secret.is_empty())
            .collect();
        if secrets.len() > MAX_SECRETS {
            return Err(format!(
                "has {} secrets, at most {MAX_SECRETS} are allowed",
                secrets.len()
            ));
        }
        if secrets
            .iter()
            .any(|secret| secret.len() < 16 || !secret.starts_with("whsec_"))
        {
            return Err("is not Stripe's signing secret, which starts with whsec_; several have commas between".into());
        }
        Ok(Secrets(
            secrets
                .into_iter()
                .map(|secret| Zeroizing::new(secret.to_owned()))
                .collect(),
        ))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Is this notice Stripe's, and fresh? In constant time. `now` in Unix seconds.
    pub fn verify(&self, header: &str, body: &[u8], now: i64) -> Result<(), Unproved> {
        let (timestamp, signatures) = read(header).ok_or(Unproved::Unreadable)?;
        let mut proved = false;
        for secret in self.0.iter() {
            let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes());
            let mut mac = mac.unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
            mac.update(timestamp.as_bytes());
            mac.update(b".");
            mac.update(body);
            for signature in &signatures {
                proved |= mac.clone().verify_slice(signature).is_ok();
            }
        }
        if !proved {
            return Err(Unproved::Wrong);
        }
        // Signed, so it is a number of Stripe's; what cannot be read is no time.
        match timestamp.parse::<i64>() {
            Ok(at) if now.abs_diff(at) <= TOLERANCE => Ok(()),
            Ok(_) | Err(_) => Err(Unproved::Stale),
        }
    }
}

/// The timestamp as it was written, and every `v1`.
fn read(header: &str) -> Option<(&str, Vec<Vec<u8>>)> {
    let (mut timestamp, mut signatures) = (None, Vec::new());
    for part in header.split(',') {
        match part.trim().split_once('=')? {
            ("t", _) if timestamp.is_some() => return None,
            ("t", value) => timestamp = Some(value),
            ("v1", value) => signatures.push(bytes(value)?),
            // Older schemes prove nothing to us.
            _ => {}
        }
    }
    let digits = timestamp?;
    let is_time = !digits.is_empty() && digits.len() <= 12 && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_time && (1..=MAX_SIGNATURES).contains(&signatures.len())).then_some((digits, signatures))
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..64)
        .step_by(2)
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_test_secret_of_the_vector";
    const BODY: &[u8] = br#"{"id":"evt_1","object":"event"}"#;
    const AT: i64 = 1_700_000_000;
    /// Made with OpenSSL: `printf '1700000000.BODY' | openssl dgst -sha256 -hmac SECRET`.
    const VECTOR: &str = "a906c7b4a118d5c23913972cac04f7efd617dd86ece8b3ed5f6c1e18bbf31813";

    fn secrets(text: &str) -> Secrets {
        Secrets::parse(text).unwrap()
    }

    #[test]
    fn a_vector_made_with_another_tool() {
        let header = format!("t={AT},v1={VECTOR}");
        assert_eq!(secrets(SECRET).verify(&header, BODY, AT), Ok(()));
        assert_eq!(secrets(SECRET).verify(&header, BODY, AT + 300), Ok(()));
        assert_eq!(secrets(SECRET).verify(&header, BODY, AT - 300), Ok(()));
        let both = format!("whsec_the_next_one_of_them, {SECRET}");
        assert_eq!(secrets(&both).verify(&header, BODY, AT), Ok(()), "two secrets");
        let upper = format!("t={AT},v1={}", VECTOR.to_uppercase());
        assert_eq!(secrets(SECRET).verify(&upper, BODY, AT), Ok(()));
        let two = format!("t={AT},v1={},v0=ab,v1={VECTOR}", "0".repeat(64));
        assert_eq!(
            secrets(SECRET).verify(&two, BODY, AT),
            Ok(()),
            "two signatures and an older scheme"
        );
    }

    #[test]
    fn what_is_changed_old_or_somebody_elses_is_refused() {
        use Unproved::*;
        let good = format!("t={AT},v1={VECTOR}");
        let changed = br#"{"id":"evt_2","object":"event"}"#;
        assert_eq!(secrets(SECRET).verify(&good, changed, AT), Err(Wrong));
        assert_eq!(secrets(SECRET).verify(&good, b"", AT), Err(Wrong));
        assert_eq!(secrets("whsec_somebody_elses").verify(&good, BODY, AT), Err(Wrong));
        assert_eq!(
            Secrets::default().verify(&good, BODY, AT),
            Err(Wrong),
            "no secret proves nothing"
        );
        assert_eq!(secrets(SECRET).verify(&good, BODY, AT + 301), Err(Stale));
        assert_eq!(secrets(SECRET).verify(&good, BODY, AT - 301), Err(Stale));
        let later = format!("t={},v1={VECTOR}", AT + 1);
        assert_eq!(
            secrets(SECRET).verify(&later, BODY, AT),
            Err(Wrong),
            "the time is signed too"
        );
        let zeros = format!("t=0{AT},v1={VECTOR}");
        assert_eq!(
            secrets(SECRET).verify(&zeros, BODY, AT),
            Err(Wrong),
            "as it was written"
        );
        let old_scheme = format!("t={AT},v0={VECTOR}");
        let many = format!("t={AT}{}", format!(",v1={VECTOR}").repeat(17));
        let headers = [
            "",
            "t",
            "t=",
            "v1=",
            "=",
            ",",
            VECTOR,
            &good[..20],
            &good[..good.len() - 1],
            &old_scheme,
            &many,
            &format!("{good}0"),
            &format!("v1={VECTOR}"),
            &format!("t=x,v1={VECTOR}"),
            &format!("t=-1,v1={VECTOR}"),
            &format!("t={AT},t={AT},v1={VECTOR}"),
            &format!("t={AT},v1={}", "+1".repeat(32)),
            &format!("t=99999999999999999999,v1={VECTOR}"),
            &format!("t={AT},v1={}", "é".repeat(32)),
        ];
        for header in headers {
            assert_eq!(secrets(SECRET).verify(header, BODY, AT), Err(Unreadable), "{header}");
        }
    }

    #[test]
    fn secrets_are_checked_and_never_shown() {
        for text in [
            "sk_live_1234567890123456",
            "whsec_short",
            &"whsec_1234567890,".repeat(9),
        ] {
            assert!(Secrets::parse(text).is_err(), "{text}");
        }
        assert!(Secrets::parse("").unwrap().is_empty());
        assert_eq!(format!("{:?}", secrets(SECRET)), "[1 secrets]");
    }
}
