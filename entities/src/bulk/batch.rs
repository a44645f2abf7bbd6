//! Many lists in one statement: on PostgreSQL each statement is a round trip, and the writer makes one after the other.
//!
//! There what was added is one `WITH w0 AS (INSERT …), w1 AS (INSERT …) SELECT …`, or two. All parts of one see the database as it was
//! before it, so none of them may depend on another. SQLite is in this process: it is given each list by itself.
use super::{OnConflict, insert, save_these, table, table::Table};
use crate::{
    boxed,
    connection::Connection,
    error::{Error, Result},
};
use sea_orm::{ConnectionTrait, DbBackend, EntityTrait, Iterable, ModelTrait, Statement, Value};
use std::{
    any::TypeId,
    collections::HashMap,
    fmt::Write,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

/// What is to be written with the next [`flush`](Batch::flush).
pub struct Batch<'a> {
    db: &'a Connection,
    parts: Vec<Part>,
}

/// What its text depends on, but for the numbers of its placeholders.
type Key = (TypeId, OnConflict);

/// Adds a text, its first placeholder with that number.
type WriteText = Box<dyn Fn(&mut String, usize) + Send + Sync>;

struct Part {
    key: Key,
    text: WriteText,
    values: Vec<Value>,
    /// All of so many rows must be written.
    all_of: Option<i64>,
}

impl<'a> Batch<'a> {
    pub fn new(db: &'a Connection) -> Self {
        Batch { db, parts: Vec::new() }
    }

    /// As [`save`](super::save) does; that somebody else has changed a row comes to light with the flush.
    pub async fn save<M>(&mut self, rows: &[&M], on_conflict: OnConflict) -> Result<()>
    where
        M: ModelTrait,
        M::Entity: 'static,
        <M::Entity as EntityTrait>::Column: 'static,
    {
        if self.db.get_database_backend() == DbBackend::Sqlite {
            return save_these(self.db, rows, on_conflict).await.map(drop);
        }
        let columns: Vec<_> = <M::Entity as EntityTrait>::Column::iter().collect();
        for chunk in table::chunks(DbBackend::Postgres, rows, columns.len()) {
            let table = Table::Columns(columns.len());
            self.parts.push(Part {
                key: (TypeId::of::<M::Entity>(), on_conflict),
                text: Box::new(move |text, first| text.push_str(&insert::<M::Entity>(table, on_conflict, first))),
                values: table.values(chunk.len(), |row, column| chunk[row].get(columns[column])),
                all_of: on_conflict.replaces_predecessors().then_some(chunk.len() as i64),
            });
            if chunk.len() == table::MAX_ROWS {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Rows that are replaced by their keys: `text` makes the statement around the table of their values.
    pub async fn update<T: 'static, const COLUMNS: usize>(
        &mut self,
        rows: &[&T],
        value: fn(&T, usize) -> Value,
        text: fn(Table, &mut String, usize),
    ) -> Result<()> {
        let backend = self.db.get_database_backend();
        for chunk in table::chunks(backend, rows, COLUMNS) {
            let table = Table::of(backend, chunk.len(), COLUMNS);
            let values = table.values(chunk.len(), |row, column| value(chunk[row], column));
            if backend == DbBackend::Sqlite {
                let mut whole = String::new();
                text(table, &mut whole, 1);
                let statement = Statement::from_sql_and_values(backend, whole, values);
                self.db.execute_raw(statement).await?;
                continue;
            }
            self.parts.push(Part {
                key: (TypeId::of::<(T, [(); COLUMNS])>(), OnConflict::Replace),
                text: Box::new(move |whole, first| text(table, whole, first)),
                values,
                all_of: None,
            });
            if chunk.len() == table::MAX_ROWS {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Writes what was added. Rows that replace others go first: that somebody was faster is the answer, and not that what follows
    /// from it is there already.
    #[boxed]
    pub async fn flush(&mut self) -> Result<()> {
        let parts = std::mem::take(&mut self.parts);
        let (replacing, others): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(|part| part.all_of.is_some());
        self.write(replacing).await?;
        self.write(others).await
    }

    async fn write(&self, mut parts: Vec<Part>) -> Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        let text = together(&parts);
        let values = parts.iter_mut().flat_map(|part| std::mem::take(&mut part.values));
        let statement = Statement::from_sql_and_values(DbBackend::Postgres, text.as_ref(), values);
        let counts = self.db.query_one_raw(statement).await?;
        let counts = counts.ok_or_else(|| Error::Internal("a statement did not say what it wrote".into()))?;
        for (nth, part) in parts.iter().enumerate() {
            let written: i64 = counts.try_get_by_index(nth)?;
            if part.all_of.is_some_and(|all| all != written) {
                return Err(Error::Stale);
            }
        }
        Ok(())
    }
}

/// Texts that are kept, of some 10 KB each: as many as there are ways in which lists come together.
const MAX_TEXTS: usize = 512;

/// Each text is made once, as long as there are not too many.
fn together(parts: &[Part]) -> Arc<str> {
    static TEXTS: LazyLock<Mutex<HashMap<Vec<Key>, Arc<str>>>> = LazyLock::new(Mutex::default);
    let key: Vec<Key> = parts.iter().map(|part| part.key).collect();
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if texts.len() >= MAX_TEXTS {
        texts.clear();
    }
    texts.entry(key).or_insert_with(|| build(parts).into()).clone()
}

fn build(parts: &[Part]) -> String {
    let (mut text, mut counts, mut first) = (String::from("WITH "), String::from(" SELECT "), 1);
    for (nth, part) in parts.iter().enumerate() {
        let comma = if nth == 0 { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}w{nth} AS (");
        (part.text)(&mut text, first);
        text.push_str(" RETURNING 1)");
        let _ = write!(counts, "{comma}(SELECT COUNT(*) FROM w{nth})");
        first += part.values.len();
    }
    text + &counts
}
