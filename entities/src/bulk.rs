//! Many rows in one statement: what lets a group commit carry tens of thousands of rows a second.
//!
//! The text of each statement is made once per table and chunk size, so that the database prepares it once; values are
//! bound in column order straight from the row. PostgreSQL is given each column as one [array](table).
pub mod batch;
pub mod table;

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
use table::Table;

/// What happens to a row whose key exists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnConflict {
    /// The statement fails.
    Fail,
    /// The stored row stays; `save` answers how many were new.
    Keep,
    /// The row is replaced if its stored `version` is the predecessor of the given one. See [`save`].
    ReplacePredecessor,
    /// The same, but for these columns, in which the stored row is like the given one: SQLite touches each index of each column that
    /// is written, changed or not.
    Advance(&'static [&'static str]),
    /// The row is replaced.
    Replace,
    /// The row is replaced if it is newer than the stored one, by the column of that name.
    Newest(&'static str),
    /// Its counts are added to the stored ones; of the column of that name the larger one stays.
    Add(Option<&'static str>),
}

impl OnConflict {
    /// Must each of the rows be new, or the next version of the stored one?
    fn replaces_predecessors(self) -> bool {
        matches!(self, OnConflict::ReplacePredecessor | OnConflict::Advance(_))
    }
}

/// Rows per statement, largest first: few sizes, so that few statements are prepared.
const CHUNKS: [usize; 10] = [512, 256, 128, 64, 32, 16, 8, 4, 2, 1];

/// Writes `rows` and answers how many were inserted or replaced.
///
/// With [`OnConflict::ReplacePredecessor`] and [`OnConflict::Advance`] fewer than all means that somebody else changed a row:
/// [`Error::Stale`].
/// A row of version 1 is an insert, and its key must be new.
pub async fn save<M>(db: &Connection, rows: &[M], on_conflict: OnConflict) -> Result<u64>
where
    M: ModelTrait,
    <M::Entity as EntityTrait>::Column: 'static,
{
    save_these(db, &rows.iter().collect::<Vec<_>>(), on_conflict).await
}

async fn save_these<M>(db: &Connection, rows: &[&M], on_conflict: OnConflict) -> Result<u64>
where
    M: ModelTrait,
    <M::Entity as EntityTrait>::Column: 'static,
{
    let columns: Vec<_> = <M::Entity as EntityTrait>::Column::iter().collect();
    let backend = db.get_database_backend();
    let mut written = 0;
    for chunk in table::chunks(backend, rows, columns.len()) {
        let table = Table::of(backend, chunk.len(), columns.len());
        let values = table.values(chunk.len(), |row, column| chunk[row].get(columns[column]));
        let text = insert_text::<M::Entity>(table, on_conflict);
        let statement = Statement::from_sql_and_values(backend, text.as_ref(), values);
        written += db.execute_raw(statement).await?.rows_affected();
    }
    if on_conflict.replaces_predecessors() && written != rows.len() as u64 {
        return Err(Error::Stale);
    }
    Ok(written)
}

/// What a row has in the columns of these names.
pub fn of_columns<M: ModelTrait>(row: &M, names: &[&str]) -> Vec<Value> {
    let columns = <M::Entity as EntityTrait>::Column::iter().filter(|column| names.contains(&column.as_str()));
    columns.map(|column| row.get(column)).collect()
}

/// Rows of the same key added up, in the order of the keys: one statement takes no row twice.
pub fn sums<M: Clone, K: Ord>(rows: &[&M], key: impl Fn(&M) -> K, add: impl Fn(&mut M, &M)) -> Vec<M> {
    let mut sums: BTreeMap<K, M> = BTreeMap::new();
    for row in rows {
        match sums.entry(key(row)) {
            Entry::Vacant(none) => {
                none.insert((*row).clone());
            }
            Entry::Occupied(mut sum) => add(sum.get_mut(), row),
        }
    }
    sums.into_values().collect()
}

type Texts = Mutex<HashMap<(TypeId, Table, OnConflict), Arc<str>>>;

fn insert_text<E: EntityTrait>(rows: Table, on_conflict: OnConflict) -> Arc<str>
where
    E::Column: 'static,
{
    static TEXTS: LazyLock<Texts> = LazyLock::new(Texts::default);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts
        .entry((TypeId::of::<E>(), rows, on_conflict))
        .or_insert_with(|| insert::<E>(rows, on_conflict, 1).into())
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

/// Adds ` IN (?, ?, …)`, or on PostgreSQL ` = ANY($1)`, to a statement whose first placeholders are these, and answers what they stand
/// for. As one array they are planned as few whatever their number: a long list of placeholders is looked for row by row.
pub fn among<T: Clone + Into<Value>>(text: &mut String, backend: DbBackend, keys: &[T]) -> Vec<Value> {
    let keys: Vec<Value> = keys.iter().cloned().map(Into::into).collect();
    match keys.first() {
        Some(first) if backend != DbBackend::Sqlite => {
            text.push_str(" = ANY($1)");
            vec![Value::Array(first.array_type(), Some(Box::new(keys)))]
        }
        Some(_) | None => {
            text.push_str(" IN (");
            text.push_str(&vec!["?"; keys.len()].join(", "));
            text.push(')');
            keys
        }
    }
}

/// Removes the rows of a table that have these keys, each with one look-up. Two lists of values would be tried in every pair.
pub async fn remove_by_key(db: &Connection, table: &str, key: &[&str], rows: &[Vec<Value>]) -> Result<()> {
    let (backend, columns) = (db.get_database_backend(), key.join(", "));
    for chunk in table::chunks(backend, rows, key.len()) {
        let known = Table::of(backend, chunk.len(), key.len());
        let mut text = format!("WITH v ({columns}) AS (");
        known.write(&mut text, 1);
        let _ = write!(
            text,
            ") DELETE FROM {table} WHERE ({columns}) IN (SELECT {columns} FROM v)"
        );
        let values = known.values(chunk.len(), |row, column| chunk[row][column].clone());
        db.execute_raw(Statement::from_sql_and_values(backend, text, values))
            .await?;
    }
    Ok(())
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

/// Its first placeholder has the number `first`.
fn insert<E: EntityTrait>(rows: Table, on_conflict: OnConflict, first: usize) -> String {
    let table = E::default().table_name().to_owned();
    let columns: Vec<&str> = E::Column::iter().map(|column| column.as_str()).collect();
    let keys: Vec<String> = E::PrimaryKey::iter()
        .map(|key| key.into_column().as_str().to_owned())
        .collect();
    let mut text = format!("INSERT INTO {table} ({}) ", columns.join(", "));
    rows.write(&mut text, first);
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
        .filter(|column| !matches!(on_conflict, OnConflict::Advance(same) if same.contains(column)))
        .map(|column| match on_conflict {
            OnConflict::Add(Some(larger)) if larger == *column => format!(
                "{column} = CASE WHEN excluded.{column} > {table}.{column} THEN excluded.{column} ELSE {table}.{column} END"
            ),
            OnConflict::Add(_) => format!("{column} = {table}.{column} + excluded.{column}"),
            OnConflict::Fail
            | OnConflict::Keep
            | OnConflict::ReplacePredecessor
            | OnConflict::Advance(_)
            | OnConflict::Newest(_)
            | OnConflict::Replace => format!("{column} = excluded.{column}"),
        })
        .collect();
    let _ = write!(
        text,
        " ON CONFLICT ({}) DO UPDATE SET {}",
        keys.join(", "),
        sets.join(", ")
    );
    if on_conflict.replaces_predecessors() {
        let _ = write!(text, " WHERE {table}.version = excluded.version - 1");
    }
    if let OnConflict::Newest(column) = on_conflict {
        let _ = write!(text, " WHERE {table}.{column} < excluded.{column}");
    }
    text
}
