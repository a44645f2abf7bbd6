//! Events at rest. A body that holds a link which is its own proof is stored sealed; everywhere else it is the bytes that are
//! signed and sent.
//!
//! In its column it is `~<SHA-256 of the body>~<sealed body>`: no envelope begins like that, and the audit can say what was
//! sent without the key.
use crate::keyring::{Keyring, hex, purpose};
use entities::{Error, Result, event::Model};
use sha2::{Digest, Sha256};

const MARK: char = '~';

/// Types whose bodies are sealed.
const SEALED: &[&str] = &["room.created"];

/// As it is stored.
pub fn sealed(keyring: &Keyring, event: &Model) -> Model {
    let mut event = event.clone();
    if SEALED.contains(&event.event_type.as_str()) {
        let digest = hex(&Sha256::digest(event.body.as_bytes()));
        let body = keyring.seal(purpose::EVENT_BODY, &event.body);
        event.body = format!("{MARK}{digest}{MARK}{body}");
    }
    event
}

fn parts(body: &str) -> Option<(&str, &str)> {
    body.strip_prefix(MARK)?.split_once(MARK)
}

/// As it is signed and sent, from what is stored.
pub fn opened(keyring: &Keyring, mut event: Model) -> Result<Model> {
    if event.body.starts_with(MARK) {
        let (_, body) = parts(&event.body).ok_or_else(|| Error::Corrupt {
            table: "events",
            column: "body",
            id: event.id.to_string(),
        })?;
        event.body = keyring.open(purpose::EVENT_BODY, body)?.to_string();
    }
    Ok(event)
}

/// In hex, of the bytes that are sent; needs no key.
pub fn sha256(event: &Model) -> String {
    match parts(&event.body) {
        Some((digest, _)) => digest.to_owned(),
        None => hex(&Sha256::digest(event.body.as_bytes())),
    }
}

/// The stored body under the current key; `None`: it is already, or is not sealed.
pub fn resealed(keyring: &Keyring, body: &str) -> Result<Option<String>> {
    let Some((digest, sealed)) = parts(body) else {
        return Ok(None);
    };
    let again = keyring.reseal(purpose::EVENT_BODY, sealed)?;
    Ok(again.map(|again| format!("{MARK}{digest}{MARK}{again}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::{
        ids::{EventId, TenantId},
        values::{Env, Moment},
    };
    use uuid::Uuid;

    fn event(event_type: &str) -> Model {
        Model {
            seq: 1,
            id: EventId(Uuid::from_u128(1)),
            tenant_id: TenantId(Uuid::from_u128(2)),
            env: Env::Test,
            event_type: event_type.into(),
            subject_id: Uuid::from_u128(3),
            created_at: Moment::from_millis(0),
            body: r#"{"data":{"room_url":"https://callboard.test/r/1?sig=AbC"}}"#.into(),
        }
    }

    #[test]
    fn a_link_is_sealed_and_comes_back_to_the_byte() {
        let old = Keyring::generate();
        let ring = Keyring::new(&old, &[]).unwrap();
        let sent = event("room.created");
        let stored = sealed(&ring, &sent);
        assert!(
            !stored.body.contains("AbC") && !stored.body.contains("room_url"),
            "{}",
            stored.body
        );
        assert_eq!(opened(&ring, stored.clone()).unwrap(), sent);
        assert_eq!(
            (sha256(&stored), stored.clone().body),
            (sha256(&sent), stored.body.clone())
        );
        // The key is replaced.
        let rotated = Keyring::new(&Keyring::generate(), std::slice::from_ref(&old)).unwrap();
        let again = resealed(&rotated, &stored.body).unwrap().unwrap();
        let again = Model { body: again, ..stored };
        assert_eq!(resealed(&rotated, &again.body).unwrap(), None);
        assert!(opened(&ring, again.clone()).is_err());
        assert_eq!(
            (sha256(&again), opened(&rotated, again).unwrap()),
            (sha256(&sent), sent)
        );
        let cut = Model {
            body: "~00".into(),
            ..event("room.created")
        };
        assert!(matches!(opened(&ring, cut), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn what_holds_no_link_is_stored_as_it_is_sent() {
        let ring = Keyring::new(&Keyring::generate(), &[]).unwrap();
        let other = event("room.expired");
        assert_eq!(sealed(&ring, &other), other);
        assert_eq!(
            (
                opened(&ring, other.clone()).unwrap(),
                resealed(&ring, &other.body).unwrap()
            ),
            (other.clone(), None)
        );
    }
}
