//! The link by which its reader unsubscribes: a message's id and a proof that we wrote it, `/u/<token>`.
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use entities::ids::EmailId;
use hmac::{Hmac, KeyInit, Mac};
use runtime::{keyring::purpose, link_keys::LinkKeys};
use sha2::Sha256;
use uuid::Uuid;

/// Bytes of the proof: 128 bits are beyond guessing.
const PROOF: usize = 16;

pub fn url(keys: &LinkKeys, base_url: &str, id: EmailId) -> String {
    format!("{base_url}/u/{}", token(keys, id))
}

pub fn token(keys: &LinkKeys, id: EmailId) -> String {
    signed(&keys.signing(purpose::UNSUBSCRIBE_LINK), id)
}

fn signed(key: &[u8; 32], id: EmailId) -> String {
    let proof = mac(key, id).finalize().into_bytes();
    URL_SAFE_NO_PAD.encode([&id.0.as_bytes()[..], &proof[..PROOF]].concat())
}

/// The message that a token names; `None` for whatever we did not make. In constant time.
pub fn open(keys: &LinkKeys, token: &str) -> Option<EmailId> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (id, proof) = bytes.split_first_chunk::<16>()?;
    let id = EmailId(Uuid::from_bytes(*id));
    let is_ours = proof.len() == PROOF
        && keys
            .proving(purpose::UNSUBSCRIBE_LINK)
            .any(|key| mac(&key, id).verify_truncated_left(proof).is_ok());
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
    use runtime::keyring::Keyring;

    #[test]
    fn only_our_tokens_open() {
        let keys = LinkKeys::generate();
        let id = EmailId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));
        let good = token(&keys, id);
        assert_eq!(open(&keys, &good), Some(id));
        assert_eq!(open(&LinkKeys::generate(), &good), None, "another database's");
        // Sent before the keys of links were stored.
        let ring = Keyring::new(&Keyring::generate(), &[]).unwrap();
        let old = signed(&ring.derived(purpose::UNSUBSCRIBE_LINK).0, id);
        assert_eq!(open(&LinkKeys::succeeding(&ring), &old), Some(id));
        assert_eq!(open(&keys, &old), None);
        let bytes = URL_SAFE_NO_PAD.decode(&good).unwrap();
        for at in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[at] ^= 1;
            assert_eq!(open(&keys, &URL_SAFE_NO_PAD.encode(&forged)), None, "bit of byte {at}");
        }
        for length in 0..bytes.len() {
            assert_eq!(
                open(&keys, &URL_SAFE_NO_PAD.encode(&bytes[..length])),
                None,
                "{length} bytes"
            );
        }
        for token in ["", "x", "!!!", &format!("{good}="), &format!("{good}AA")] {
            assert_eq!(open(&keys, token), None, "{token}");
        }
    }
}
