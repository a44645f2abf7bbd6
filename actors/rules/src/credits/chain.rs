//! Each entry of a ledger holds the hash of the one before it, so that a row that was changed, taken out or put in is found.
use crate::digest::sha256;
use entities::ledger::Model;

/// The hash of an entry that follows the one with the hash `before`; the first follows the empty text.
pub fn hash(before: &str, entry: &Model) -> String {
    let Model {
        tenant_id,
        env,
        n,
        id,
        kind,
        from_book,
        to_book,
        cents,
        subject_id,
        note,
        balance_after_cents,
        held_after_cents,
        created_at,
        // Given by the writer, in the same commit.
        seq: _,
        hash: _,
    } = entry;
    let subject = subject_id.map(|id| id.to_string()).unwrap_or_default();
    // The note comes last: it alone is free text.
    let line = format!(
        "{before}\n{tenant_id}\n{env}\n{n}\n{id}\n{kind:?}\n{from_book:?}\n{to_book:?}\n{}\n{subject}\n{}\n{}\n{}\n{}",
        cents.0,
        balance_after_cents.0,
        held_after_cents.0,
        created_at.millis(),
        note.as_deref().unwrap_or_default(),
    );
    sha256(line.as_bytes())
}

/// The first entry of one ledger, in its order, that does not follow from the one before it.
pub fn first_broken(entries: &[Model]) -> Option<i64> {
    let mut before = "";
    for (at, entry) in entries.iter().enumerate() {
        let expected = i64::try_from(at + 1).unwrap_or(i64::MAX);
        if entry.n != expected || entry.hash != hash(before, entry) {
            return Some(entry.n);
        }
        before = &entry.hash;
    }
    None
}
