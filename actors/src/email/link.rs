//! The link by which its reader unsubscribes: a message's id and a proof that we wrote it, `/u/<token>`.
use crate::keyring::{Keyring, purpose};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use entities::ids::EmailId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

/// Bytes of the proof: 128 bits are beyond guessing.
const PROOF: usize = 16;

pub fn url(keyring: &Keyring, base_url: &str, id: EmailId) -> String {
    format!("{base_url}/u/{}", token(keyring, id))
}

pub fn token(keyring: &Keyring, id: EmailId) -> String {
    let proof = mac(&keyring.derived(purpose::UNSUBSCRIBE_LINK).0, id)
        .finalize()
        .into_bytes();
    URL_SAFE_NO_PAD.encode([&id.0.as_bytes()[..], &proof[..PROOF]].concat())
}

/// The message that a token names; `None` for whatever we did not make. A replaced key's links stay good. In constant time.
pub fn open(keyring: &Keyring, token: &str) -> Option<EmailId> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (id, proof) = bytes.split_first_chunk::<16>()?;
    let id = EmailId(Uuid::from_bytes(*id));
    let (current, previous) = keyring.derived(purpose::UNSUBSCRIBE_LINK);
    let is_ours = proof.len() == PROOF
        && std::iter::once(&current)
            .chain(&previous)
            .any(|key| mac(key, id).verify_truncated_left(proof).is_ok());
    is_ours.then_some(id)
}

fn mac(key: &[u8; 32], id: EmailId) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(id.0.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_tokens_open() {
        let old = Keyring::generate();
        let ring = Keyring::new(&old, &[]).unwrap();
        let id = EmailId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));
        let good = token(&ring, id);
        assert_eq!(open(&ring, &good), Some(id));
        assert_eq!(
            open(&Keyring::new(&Keyring::generate(), &[old]).unwrap(), &good),
            Some(id),
            "a replaced key's"
        );
        assert_eq!(
            open(&Keyring::new(&Keyring::generate(), &[]).unwrap(), &good),
            None,
            "another key's"
        );
        let bytes = URL_SAFE_NO_PAD.decode(&good).unwrap();
        for at in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[at] ^= 1;
            assert_eq!(open(&ring, &URL_SAFE_NO_PAD.encode(&forged)), None, "bit of byte {at}");
        }
        for length in 0..bytes.len() {
            assert_eq!(
                open(&ring, &URL_SAFE_NO_PAD.encode(&bytes[..length])),
                None,
                "{length} bytes"
            );
        }
        for token in ["", "x", "!!!", &format!("{good}="), &format!("{good}AA")] {
            assert_eq!(open(&ring, token), None, "{token}");
        }
    }
}
