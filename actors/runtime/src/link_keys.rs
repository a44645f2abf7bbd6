//! The keys that prove links of ours: to rooms, out of mailing lists, to recordings. They are random, made once for a database,
//! and stored sealed; so a link outlives the secret key that they are sealed with. `callboard secrets rotate` seals them anew.
//!
//! Before they were stored, links were signed with keys derived from the secret key. A database from that time keeps those as
//! well, to prove old links with and never to sign new ones: what is known of an old secret key makes no link to anything new.
use crate::keyring::{Keyring, Purpose, derived_from, from_hex, hex, purpose};
use entities::{Error, Result, boxed, connection::Connection, meta};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use zeroize::Zeroizing;

/// What was signed with keys derived from the secret key, and must be good for longer than the five minutes of a link to a recording,
/// which names nothing secret: whoever knows an old secret key could make one to any recording.
const DERIVED_BEFORE: [Purpose; 3] = [purpose::ROOM_LINK, purpose::UNSUBSCRIBE_LINK, purpose::CODE_HASH];

pub struct LinkKeys {
    key: Zeroizing<[u8; 32]>,
    /// By purpose.
    older: BTreeMap<String, Vec<[u8; 32]>>,
}

impl fmt::Debug for LinkKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKeys(***)")
    }
}

/// As it is sealed; keys in hex.
#[derive(Serialize, Deserialize)]
struct Stored {
    key: String,
    older: BTreeMap<String, Vec<String>>,
}

impl LinkKeys {
    /// For a database from which no link was ever sent.
    pub fn generate() -> Self {
        LinkKeys {
            key: Zeroizing::new(rand::random()),
            older: BTreeMap::new(),
        }
    }

    /// For one whose links were signed with keys derived from these.
    pub fn succeeding(keyring: &Keyring) -> Self {
        let older = DERIVED_BEFORE.map(|purpose| {
            let (current, previous) = keyring.derived(purpose);
            (purpose.to_owned(), [vec![current], previous].concat())
        });
        LinkKeys {
            older: older.into(),
            ..Self::generate()
        }
    }

    /// What new links of that purpose are signed with.
    pub fn signing(&self, purpose: Purpose) -> [u8; 32] {
        derived_from(&self.key, purpose)
    }

    /// What proves a link of that purpose: the key of new ones first.
    pub fn proving(&self, purpose: Purpose) -> impl Iterator<Item = [u8; 32]> {
        let older = self.older.get(purpose).into_iter().flatten().copied();
        std::iter::once(self.signing(purpose)).chain(older)
    }

    fn sealed(&self, keyring: &Keyring) -> String {
        let older = self.older.iter();
        let stored = Stored {
            key: hex(&*self.key),
            older: older
                .map(|(purpose, keys)| (purpose.clone(), keys.iter().map(|key| hex(key)).collect()))
                .collect(),
        };
        // Texts and lists of texts: they always serialise.
        let text = Zeroizing::new(serde_json::to_string(&stored).unwrap_or_default());
        keyring.seal(purpose::LINK_KEYS, &text)
    }

    fn open(keyring: &Keyring, sealed: &str) -> Result<Self> {
        let damaged = || Error::Corrupt {
            table: "meta",
            column: "value",
            id: meta::LINK_KEYS.to_owned(),
        };
        let text = keyring.open(purpose::LINK_KEYS, sealed)?;
        let stored: Stored = serde_json::from_str(&text).map_err(|_| damaged())?;
        let key = |text: &String| -> Result<[u8; 32]> {
            let bytes = Zeroizing::new(from_hex(text).unwrap_or_default());
            bytes.as_slice().try_into().map_err(|_| damaged())
        };
        let mut older = BTreeMap::new();
        for (purpose, keys) in &stored.older {
            older.insert(purpose.clone(), keys.iter().map(&key).collect::<Result<_>>()?);
        }
        Ok(LinkKeys {
            key: Zeroizing::new(key(&stored.key)?),
            older,
        })
    }
}

/// The stored keys. Where there are none they are made and stored: a database without a check of its secret key
/// (`meta::SECRET_CHECK`) has never been served, and no link of it was ever sent.
#[boxed]
pub async fn stored(db: &Connection, keyring: &Keyring) -> Result<LinkKeys> {
    if let Some(sealed) = meta::get(db, meta::LINK_KEYS).await? {
        return LinkKeys::open(keyring, &sealed);
    }
    let was_served = meta::get(db, meta::SECRET_CHECK).await?.is_some();
    let keys = if was_served {
        LinkKeys::succeeding(keyring)
    } else {
        LinkKeys::generate()
    };
    meta::set(db, meta::LINK_KEYS, &keys.sealed(keyring)).await?;
    Ok(keys)
}

/// The stored keys, for whoever only reads; `None`: the database has never been served.
#[boxed]
pub async fn read(db: &Connection, keyring: &Keyring) -> Result<Option<LinkKeys>> {
    let sealed = meta::get(db, meta::LINK_KEYS).await?;
    sealed.map(|sealed| LinkKeys::open(keyring, &sealed)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_back_as_they_were_and_outlive_the_secret_key() {
        let old = Keyring::generate();
        let ring = Keyring::new(&old, &[Keyring::generate()]).unwrap();
        let keys = LinkKeys::succeeding(&ring);
        let sealed = keys.sealed(&ring);
        // The secret key is replaced, everything is sealed anew, and the old one is thrown away.
        let new = Keyring::generate();
        let rotating = Keyring::new(&new, &[old]).unwrap();
        let sealed = rotating.reseal(purpose::LINK_KEYS, &sealed).unwrap().unwrap();
        let again = LinkKeys::open(&Keyring::new(&new, &[]).unwrap(), &sealed).unwrap();
        for purpose in DERIVED_BEFORE {
            let proving: Vec<_> = again.proving(purpose).collect();
            assert_eq!(proving, keys.proving(purpose).collect::<Vec<_>>(), "{purpose}");
            let (current, previous) = ring.derived(purpose);
            assert_eq!(proving, [again.signing(purpose), current, previous[0]], "{purpose}");
        }
        assert_eq!(format!("{again:?}"), "LinkKeys(***)");
        assert!(matches!(
            LinkKeys::open(&ring, &ring.seal(purpose::LINK_KEYS, r#"{"key":"00","older":{}}"#)),
            Err(Error::Corrupt { .. })
        ));
    }

    #[test]
    fn each_purpose_and_each_database_has_its_own() {
        let (one, other) = (LinkKeys::generate(), LinkKeys::generate());
        assert_ne!(one.signing(purpose::ROOM_LINK), one.signing(purpose::UNSUBSCRIBE_LINK));
        assert_ne!(one.signing(purpose::ROOM_LINK), other.signing(purpose::ROOM_LINK));
        assert_eq!(
            one.proving(purpose::ROOM_LINK).count(),
            1,
            "nothing older: nothing was ever sent"
        );
    }
}
