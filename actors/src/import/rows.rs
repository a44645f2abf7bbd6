//! The rows of a file, some at a time, each with its line.
use super::{columns::Columns, file};
use csv::ByteRecord;
use entities::Result;
use serde_json::Value;

/// Some rows of the file, and where they end.
#[derive(Default)]
pub(super) struct Slice {
    pub(super) rows: Vec<(u64, Result<Value, String>)>,
    pub(super) begins: i64,
    pub(super) ends: i64,
    pub(super) is_last: bool,
}

/// So many rows from byte `from` on, the first row of the file left out.
pub(super) fn read(columns: &Columns, body: &str, lines: &mut Lines, from: i64, rows: usize) -> Slice {
    let start = usize::try_from(from).unwrap_or(0).min(body.len());
    let rest = body.get(start..).unwrap_or_default();
    let mut reader = file::reader(rest.as_bytes(), columns.delimiter);
    let mut slice = Slice {
        begins: from,
        ends: from,
        ..Slice::default()
    };
    let mut record = ByteRecord::new();
    let mut is_header = start == 0;
    while slice.rows.len() < rows {
        // Reading from memory, and flexible: there is nothing that can fail.
        if !reader.read_byte_record(&mut record).unwrap_or(false) {
            slice.is_last = true;
            break;
        }
        slice.ends = from + i64::try_from(reader.position().byte()).unwrap_or(0);
        if std::mem::take(&mut is_header) {
            continue;
        }
        let at = record.position().map_or(0, csv::Position::byte);
        let line = lines.of(body, start.saturating_add(usize::try_from(at).unwrap_or(usize::MAX)));
        let too_many = (record.len() > columns.names.len()).then(|| {
            format!(
                "has {} cells, but the first row names {} columns",
                record.len(),
                columns.names.len()
            )
        });
        let object = too_many.map_or_else(|| columns.object(&record), Err);
        slice.rows.push((line, object));
    }
    slice
}

/// Counts lines while it goes through a file: cells may hold several.
#[derive(Default)]
pub(super) struct Lines {
    counted: usize,
    ends: u64,
}

impl Lines {
    /// The line, from 1, of the row that begins at byte `at`.
    fn of(&mut self, body: &str, at: usize) -> u64 {
        let bytes = body.as_bytes();
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        // The row before may have left its end of line, and empty lines are no rows.
        let skipped = bytes
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| is_end(byte))
            .count();
        let begins = at.saturating_add(skipped);
        let new = bytes.get(self.counted..begins).unwrap_or_default();
        self.ends += new.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.counted = begins;
        self.ends + 1
    }
}
