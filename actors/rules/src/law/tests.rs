//! The pack as it is, held against what the law says: rule by rule in `cases.txt`, and as a whole.
mod properties;
mod sample;
mod table;
mod whole;

/// One attempt, as rows of `cases.txt` write it.
pub fn facts(row: &str) -> super::Facts {
    sample::Row::read(row).facts("")
}
