//! The link of a room: `/r/<id>?sig=<proof>`. The proof holds when it expires, 128 random bits and an HMAC of both and of the
//! room; nobody who does not know this service's key can make one, and what is stored is of no use without it.
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use entities::{ids::RoomId, room::Model, values::Moment};
use hmac::{Hmac, KeyInit, Mac};
use runtime::{keyring::purpose, link_keys::LinkKeys};
use sha2::Sha256;

/// Bytes of chance.
const NONCE: usize = 16;

/// What a good link says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proved {
    pub expires_at: Moment,
    /// In hex, as it is stored.
    pub nonce: String,
}

pub fn nonce() -> String {
    runtime::keyring::hex(&rand::random::<[u8; NONCE]>())
}

pub fn url(keys: &LinkKeys, base_url: &str, room: &Model) -> String {
    let token = token(&keys.signing(purpose::ROOM_LINK), room.id, room.expires_at, &room.nonce);
    format!("{base_url}/r/{}?sig={token}", room.id)
}

fn token(key: &[u8; 32], id: RoomId, expires_at: Moment, nonce: &str) -> String {
    let claim = claim(expires_at, nonce);
    let proof = mac(key, id, &claim).finalize().into_bytes();
    URL_SAFE_NO_PAD.encode([&claim[..], &proof[..]].concat())
}

/// What a token says; `None` for whatever we did not make for this room. In constant time.
pub fn open(keys: &LinkKeys, id: RoomId, token: &str) -> Option<Proved> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (claim, proof) = bytes.split_first_chunk::<{ 8 + NONCE }>()?;
    let is_ours = keys
        .proving(purpose::ROOM_LINK)
        .any(|key| mac(&key, id, claim).verify_slice(proof).is_ok());
    let (millis, nonce) = claim.split_first_chunk::<8>()?;
    is_ours.then(|| Proved {
        expires_at: Moment::from_millis(i64::from_be_bytes(*millis)),
        nonce: runtime::keyring::hex(nonce),
    })
}

fn claim(expires_at: Moment, nonce: &str) -> Vec<u8> {
    let mut claim = expires_at.millis().to_be_bytes().to_vec();
    claim.extend(runtime::keyring::from_hex(nonce).unwrap_or_default());
    claim
}

fn mac(key: &[u8; 32], id: RoomId, claim: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(id.0.as_bytes());
    mac.update(claim);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::keyring::Keyring;
    use uuid::Uuid;

    #[test]
    fn only_our_links_open_and_only_their_room() {
        let keys = LinkKeys::generate();
        let id = RoomId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));
        let said = Proved {
            expires_at: Moment::from_millis(1_800_000_000_123),
            nonce: nonce(),
        };
        let good = token(&keys.signing(purpose::ROOM_LINK), id, said.expires_at, &said.nonce);
        assert_eq!(open(&keys, id, &good), Some(said.clone()));
        assert_eq!(open(&LinkKeys::generate(), id, &good), None, "another database's");
        // Sent before the keys of links were stored.
        let ring = Keyring::new(&Keyring::generate(), &[]).unwrap();
        let old = token(&ring.derived(purpose::ROOM_LINK).0, id, said.expires_at, &said.nonce);
        assert_eq!(open(&LinkKeys::succeeding(&ring), id, &old), Some(said));
        assert_eq!(open(&keys, id, &old), None);
        assert_eq!(open(&keys, RoomId(Uuid::from_u128(1)), &good), None, "another room's");
        let bytes = URL_SAFE_NO_PAD.decode(&good).unwrap();
        assert_eq!(bytes.len(), 8 + NONCE + 32);
        for at in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[at] ^= 1;
            assert_eq!(
                open(&keys, id, &URL_SAFE_NO_PAD.encode(&forged)),
                None,
                "bit of byte {at}"
            );
        }
        for length in 0..bytes.len() {
            assert_eq!(
                open(&keys, id, &URL_SAFE_NO_PAD.encode(&bytes[..length])),
                None,
                "{length} bytes"
            );
        }
        for token in ["", "x", "!!!", &format!("{good}="), &format!("{good}AA")] {
            assert_eq!(open(&keys, id, token), None, "{token}");
        }
    }

    #[test]
    fn a_hundred_thousand_guesses_open_nothing() {
        let keys = LinkKeys::generate();
        let id = RoomId(Uuid::from_u128(7));
        let expires_at = Moment::from_millis(1_800_000_000_000);
        // They know everything but the key: even the chance of the link.
        let claim = claim(expires_at, &nonce());
        let opened = (0..100_000).filter(|_| {
            let guess = [&claim[..], &rand::random::<[u8; 32]>()[..]].concat();
            open(&keys, id, &URL_SAFE_NO_PAD.encode(guess)).is_some()
        });
        assert_eq!(opened.count(), 0);
    }
}
