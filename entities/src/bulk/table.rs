//! Rows of values as a table inside a statement: `VALUES (?, ?), …` on SQLite, `SELECT … FROM UNNEST($1, $2, …)` on PostgreSQL.
//!
//! PostgreSQL is given each column as one array. So the statement's text does not depend on how many rows there are: it is
//! prepared and planned once, and takes one round trip. A null inside an array cannot be bound, so something else stands in
//! its place, and one more array says for each row, a bit a column, which of its values are null.
use super::{CHUNKS, placeholder};
use sea_orm::{DbBackend, Value};
use std::fmt::Write;

/// Of one statement. SQLite takes 32,766, but each connection keeps what it has prepared, about 100 bytes a parameter, and more
/// of them make nothing faster.
const MAX_PARAMETERS: usize = 4_096;
/// Rows of one statement on PostgreSQL.
pub(super) const MAX_ROWS: usize = 1_024;
/// Columns whose nulls one number tells: the bits of a `bigint` but for its sign.
const BITS: usize = 63;

/// What such a table looks like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Table {
    /// So many rows of placeholders, each of so many columns.
    Rows { rows: usize, columns: usize },
    /// A placeholder per column, however many rows.
    Columns(usize),
}

/// Cuts rows into slices, each for one statement: for SQLite of few sizes, so that few statements are prepared, and each of
/// them often used.
pub fn chunks<T>(backend: DbBackend, rows: &[T], columns: usize) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let size = if backend == DbBackend::Sqlite {
            let fits = |size: &usize| *size <= rest.len() && size * columns <= MAX_PARAMETERS;
            CHUNKS.into_iter().find(fits)?
        } else {
            Some(rest.len().min(MAX_ROWS)).filter(|size| *size > 0)?
        };
        let (chunk, tail) = rest.split_at(size);
        rest = tail;
        Some(chunk)
    })
}

impl Table {
    pub fn of(backend: DbBackend, rows: usize, columns: usize) -> Self {
        if backend == DbBackend::Sqlite {
            Table::Rows { rows, columns }
        } else {
            Table::Columns(columns)
        }
    }

    /// Adds it to a statement. Its first placeholder has the number `first`.
    pub fn write(self, text: &mut String, first: usize) {
        match self {
            Table::Rows { rows, columns } => {
                let row = vec!["?"; columns].join(", ");
                let rows = vec![format!("({row})"); rows].join(", ");
                text.push_str("VALUES ");
                text.push_str(&rows);
            }
            Table::Columns(columns) => write_columns(text, columns, first),
        }
    }

    /// What its placeholders stand for, in their order. `value`: that of a row in a column.
    pub fn values(self, rows: usize, value: impl Fn(usize, usize) -> Value) -> Vec<Value> {
        match self {
            Table::Rows { columns, .. } => {
                // Tens of thousands: not by growing.
                let mut values = Vec::with_capacity(rows * columns);
                for row in 0..rows {
                    values.extend((0..columns).map(|column| as_stored(value(row, column))));
                }
                values
            }
            Table::Columns(columns) => arrays(rows, columns, value),
        }
    }
}

/// SQLite keeps JSON as text. It is written down here, once: whoever binds values copies them first, and a tree takes longer than a text.
fn as_stored(value: Value) -> Value {
    match value {
        Value::Json(Some(json)) => match serde_json::to_string(&json) {
            Ok(text) => Value::from(text),
            Err(_) => Value::Json(Some(json)),
        },
        value => value,
    }
}

fn write_columns(text: &mut String, columns: usize, first: usize) {
    for column in 0..columns {
        let (nulls, bit) = (column / BITS, 1_i64 << (column % BITS));
        text.push_str(if column == 0 { "SELECT " } else { ", " });
        // Writing to a String cannot fail.
        let _ = write!(text, "CASE WHEN v.n{nulls} & {bit} = 0 THEN v.c{column} END");
    }
    text.push_str(" FROM UNNEST(");
    let arrays = columns + columns.div_ceil(BITS);
    for array in 0..arrays {
        text.push_str(if array == 0 { "" } else { ", " });
        placeholder(text, DbBackend::Postgres, first + array);
    }
    let names = (0..columns).map(|column| format!("c{column}"));
    let nulls = (0..columns.div_ceil(BITS)).map(|nulls| format!("n{nulls}"));
    let names: Vec<String> = names.chain(nulls).collect();
    let _ = write!(text, ") AS v ({})", names.join(", "));
}

fn arrays(rows: usize, columns: usize, value: impl Fn(usize, usize) -> Value) -> Vec<Value> {
    let mut nulls = vec![vec![0_i64; rows]; columns.div_ceil(BITS)];
    let mut arrays = Vec::with_capacity(columns + nulls.len());
    for column in 0..columns {
        let (nulls, bit) = (&mut nulls[column / BITS], 1 << (column % BITS));
        let mut kind = None;
        let not_null = nulls.iter_mut().enumerate().map(|(row, nulls)| {
            let value = value(row, column);
            kind.get_or_insert_with(|| value.array_type());
            if value.is_some() {
                return value;
            }
            *nulls |= bit;
            value.dummy_value()
        });
        let array: Vec<Value> = not_null.collect();
        arrays.extend(kind.map(|kind| Value::Array(kind, Some(Box::new(array)))));
    }
    arrays.extend(nulls.into_iter().map(Value::from));
    arrays
}
