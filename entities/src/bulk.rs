//! Many rows in one statement: what lets a group commit carry tens of thousands of rows a second.
//!
//! The text of each statement is made once per table and chunk size, so that the database prepares it once; values are
//! bound in column order straight from the row.
use crate::{
    connection::Connection,
    error::{Error, Result},
};
use sea_orm::{
    ConnectionTrait, DbBackend, EntityTrait, IdenStatic, Iterable, ModelTrait, PrimaryKeyToColumn, Statement, Value,
};
use std::{
    any::TypeId,
    collections::{BTreeMap, HashMap, btree_map::Entry},
    fmt::Write,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

/// What happens to a row whose key exists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnConflict {
    /// The statement fails.
    Fail,
    /// The stored row stays; `save` answers how many were new.
    Keep,
    /// The row is replaced if its stored `version` is the predecessor of the given one. See [`save`].
    ReplacePredecessor,
    /// The row is replaced.
    Replace,
    /// Its counts are added to the stored ones; of the column of that name the larger one stays.
    Add(Option<&'static str>),
}

/// Rows per statement, largest first: few sizes, so that few statements are prepared.
const CHUNKS: [usize; 10] = [512, 256, 128, 64, 32, 16, 8, 4, 2, 1];
/// Of one statement. SQLite takes 32,766 and PostgreSQL 65,535, but each connection keeps what it has prepared, about 100 bytes a
/// parameter, and more of them make nothing faster.
const MAX_PARAMETERS: usize = 4_096;

/// Writes `rows` and answers how many were inserted or replaced.
///
/// With [`OnConflict::ReplacePredecessor`] fewer than all means that somebody else changed a row: [`Error::Stale`].
/// A row of version 1 is an insert, and its key must be new.
pub async fn save<M>(db: &Connection, rows: &[M], on_conflict: OnConflict) -> Result<u64>
where
    M: ModelTrait,
    <M::Entity as EntityTrait>::Column: 'static,
{
    let columns: Vec<_> = <M::Entity as EntityTrait>::Column::iter().collect();
    let mut written = 0;
    for chunk in chunks(rows, columns.len()) {
        let values = chunk
            .iter()
            .flat_map(|row| columns.iter().map(|column| row.get(*column)))
            .collect::<Vec<Value>>();
        let text = insert_text::<M::Entity>(chunk.len(), on_conflict, db.get_database_backend());
        let statement = Statement::from_sql_and_values(db.get_database_backend(), text.as_ref(), values);
        written += db.execute_raw(statement).await?.rows_affected();
    }
    if on_conflict == OnConflict::ReplacePredecessor && written != rows.len() as u64 {
        return Err(Error::Stale);
    }
    Ok(written)
}

/// Rows of the same key added up, in the order of the keys: one statement takes no row twice.
pub fn sums<M: Clone, K: Ord>(rows: &[M], key: impl Fn(&M) -> K, add: impl Fn(&mut M, &M)) -> Vec<M> {
    let mut sums: BTreeMap<K, M> = BTreeMap::new();
    for row in rows {
        match sums.entry(key(row)) {
            Entry::Vacant(none) => {
                none.insert(row.clone());
            }
            Entry::Occupied(mut sum) => add(sum.get_mut(), row),
        }
    }
    sums.into_values().collect()
}

/// Cuts rows into slices of few sizes, so that few statements are prepared, and each of them often used.
pub fn chunks<T>(rows: &[T], columns: usize) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let fits = |size: &usize| *size <= rest.len() && size * columns <= MAX_PARAMETERS;
        let (chunk, tail) = rest.split_at(CHUNKS.into_iter().find(fits)?);
        rest = tail;
        Some(chunk)
    })
}

/// Adds `(?, ?), (?, ?)`: so many rows of placeholders.
pub fn placeholders(text: &mut String, backend: DbBackend, rows: usize, columns: usize) {
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..columns {
            if column > 0 {
                text.push_str(", ");
            }
            placeholder(text, backend, row * columns + column + 1);
        }
        text.push(')');
    }
}

type Texts = Mutex<HashMap<(TypeId, usize, OnConflict, bool), Arc<str>>>;

fn insert_text<E: EntityTrait>(rows: usize, on_conflict: OnConflict, backend: DbBackend) -> Arc<str>
where
    E::Column: 'static,
{
    static TEXTS: LazyLock<Texts> = LazyLock::new(Texts::default);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (TypeId::of::<E>(), rows, on_conflict, backend == DbBackend::Sqlite);
    texts
        .entry(key)
        .or_insert_with(|| build_insert::<E>(rows, on_conflict, backend).into())
        .clone()
}

/// Keys for a look-up `IN (…)`, a statement per slice: filled up to few sizes by repeating the last, so that few statements
/// are prepared and each look-up is one.
pub fn padded<T: Clone>(keys: &[T]) -> impl Iterator<Item = Vec<T>> {
    keys.chunks(CHUNKS[0]).map(|slice| {
        let mut slice = slice.to_vec();
        let size = CHUNKS.into_iter().rev().find(|size| *size >= slice.len());
        if let (Some(last), Some(size)) = (slice.last().cloned(), size) {
            slice.resize(size, last);
        }
        slice
    })
}

/// Adds `?, ?, ?`: `count` placeholders, the first of them the `first`th.
pub fn list(text: &mut String, backend: DbBackend, count: usize, first: usize) {
    for at in 0..count {
        if at > 0 {
            text.push_str(", ");
        }
        placeholder(text, backend, first + at);
    }
}

/// Adds the `n`th placeholder, from 1.
///
/// On SQLite it has no number: a numbered one is a name to SQLite, looked up by a walk over all names before it, and binding
/// thousands of values then takes longer than writing them.
pub fn placeholder(text: &mut String, backend: DbBackend, n: usize) {
    match backend {
        DbBackend::Sqlite => text.push('?'),
        // Writing to a String cannot fail.
        _ => drop(write!(text, "${n}")),
    }
}

fn build_insert<E: EntityTrait>(rows: usize, on_conflict: OnConflict, backend: DbBackend) -> String {
    let table = E::default().table_name().to_owned();
    let columns: Vec<&str> = E::Column::iter().map(|column| column.as_str()).collect();
    let keys: Vec<String> = E::PrimaryKey::iter()
        .map(|key| key.into_column().as_str().to_owned())
        .collect();
    let mut text = format!("INSERT INTO {table} ({}) VALUES ", columns.join(", "));
    placeholders(&mut text, backend, rows, columns.len());
    if on_conflict == OnConflict::Fail {
        return text;
    }
    if on_conflict == OnConflict::Keep {
        // No target: any unique index counts, not only the primary key.
        text.push_str(" ON CONFLICT DO NOTHING");
        return text;
    }
    let sets: Vec<String> = columns
        .iter()
        .filter(|column| !keys.iter().any(|key| key == *column))
        .map(|column| match on_conflict {
            OnConflict::Add(Some(larger)) if larger == *column => format!(
                "{column} = CASE WHEN excluded.{column} > {table}.{column} THEN excluded.{column} ELSE {table}.{column} END"
            ),
            OnConflict::Add(_) => format!("{column} = {table}.{column} + excluded.{column}"),
            OnConflict::Fail | OnConflict::Keep | OnConflict::ReplacePredecessor | OnConflict::Replace => {
                format!("{column} = excluded.{column}")
            }
        })
        .collect();
    let _ = write!(
        text,
        " ON CONFLICT ({}) DO UPDATE SET {}",
        keys.join(", "),
        sets.join(", ")
    );
    if on_conflict == OnConflict::ReplacePredecessor {
        let _ = write!(text, " WHERE {table}.version = excluded.version - 1");
    }
    text
}
