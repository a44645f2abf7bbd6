//! Signatures that anybody can check who has the public key, long after and without this service: Ed25519. Source: RFC 8032.
use crate::{keyring::purpose, link_keys::LinkKeys};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::{Engine, engine::general_purpose::STANDARD};
use entities::{Error, Result};
use std::fmt;

/// As a signed document names it.
pub const ALGORITHM: &str = "ed25519";

/// What a database signs its record of attempts with. It is stored sealed, so it outlives the secret key.
pub struct SigningKey(Ed25519KeyPair);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public_key())
    }
}

impl SigningKey {
    pub fn of(keys: &LinkKeys) -> Result<Self> {
        Self::from_seed(&keys.signing(purpose::ATTEMPT_SIGNING))
    }

    fn from_seed(seed: &[u8; 32]) -> Result<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        pair.map(SigningKey).map_err(|_| unable())
    }

    /// In base64.
    pub fn public_key(&self) -> String {
        STANDARD.encode(self.0.public_key().as_ref())
    }

    /// In base64.
    pub fn sign(&self, text: &[u8]) -> Result<String> {
        let signature = self.0.try_sign(text).map_err(|_| unable())?;
        Ok(STANDARD.encode(signature.as_ref()))
    }
}

fn unable() -> Error {
    Error::Internal("the signing key cannot be used".into())
}

/// Was it signed with the key whose public half that is? Both in base64.
pub fn is_signed(public_key: &str, text: &[u8], signature: &str) -> bool {
    let (Ok(public_key), Ok(signature)) = (STANDARD.decode(public_key), STANDARD.decode(signature)) else {
        return false;
    };
    UnparsedPublicKey::new(&ED25519, public_key)
        .verify(text, &signature)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyring::from_hex;

    /// Source: RFC 8032, section 7.1, tests 1 and 2.
    #[test]
    fn signs_as_the_standard_says() {
        for (seed, public, text, signature) in [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            ),
        ] {
            let bytes = |hex: &str| from_hex(hex).unwrap();
            let key = SigningKey::from_seed(&bytes(seed).try_into().unwrap()).unwrap();
            assert_eq!(key.public_key(), STANDARD.encode(bytes(public)));
            assert_eq!(key.sign(&bytes(text)).unwrap(), STANDARD.encode(bytes(signature)));
        }
    }

    #[test]
    fn what_was_changed_or_signed_by_another_is_refused() {
        let (ours, others) = (LinkKeys::generate(), LinkKeys::generate());
        let (ours, others) = (SigningKey::of(&ours).unwrap(), SigningKey::of(&others).unwrap());
        let signature = ours.sign(b"a head").unwrap();
        assert!(is_signed(&ours.public_key(), b"a head", &signature));
        for (key, text, signature) in [
            (others.public_key(), &b"a head"[..], signature.as_str()),
            (ours.public_key(), b"a tail", &signature),
            (ours.public_key(), b"a head", &signature[..80]),
            (ours.public_key(), b"a head", ""),
            ("?".into(), b"a head", &signature),
        ] {
            assert!(!is_signed(&key, text, signature));
        }
        assert!(!format!("{ours:?}").contains(&signature));
    }
}
