//! What the files of registers hold: keyed hashes of numbers, in order, some thousand of them a row.
//!
//! A file is written before any register has it, and is removed when none has it any more: whoever is reading it looks for the next one.
use super::{Column as Registers, Entity as RegisterRows};
use crate::{boxed, bulk::placeholder, connection::Connection, error::Result, ids::RegisterFileId, page};
use sea_orm::{
    Order, QueryOrder, QuerySelect, QueryTrait, Statement, Value, entity::prelude::*, sea_query::SelectStatement,
};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "register_chunks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub file_id: RegisterFileId,
    /// Its place in the file, from 0.
    #[sea_orm(primary_key, auto_increment = false)]
    pub n: i32,
    /// Eight bytes a number, big-endian, in order.
    pub hashes: Vec<u8>,
    /// Two bytes a number, big-endian: days since 2000. None: the file has no dates.
    pub days: Option<Vec<u8>>,
}
impl ActiveModelBehavior for ActiveModel {}

/// Written a second time, they stay as they are. A row by itself: PostgreSQL takes no arrays of such bytes from us.
#[boxed]
pub async fn add(db: &Connection, chunks: &[Model]) -> Result<()> {
    let backend = db.get_database_backend();
    let mut text = String::from("INSERT INTO register_chunks (file_id, n, hashes, days) VALUES (");
    for n in 1..=4 {
        if n > 1 {
            text.push_str(", ");
        }
        placeholder(&mut text, backend, n);
    }
    text.push_str(") ON CONFLICT (file_id, n) DO NOTHING");
    for chunk in chunks {
        let values: [Value; 4] = [
            chunk.file_id.into(),
            chunk.n.into(),
            chunk.hashes.clone().into(),
            chunk.days.clone().into(),
        ];
        db.execute_raw(Statement::from_sql_and_values(backend, text.as_str(), values))
            .await?;
    }
    Ok(())
}

/// Those of a file behind that place, in order.
#[boxed]
pub async fn behind(db: &Connection, file: RegisterFileId, after: Option<i32>, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::FileId.eq(file));
    page::behind(db, select, Column::N, after, limit).await
}

/// The files that registers have.
fn used() -> SelectStatement {
    RegisterRows::find()
        .select_only()
        .column(Registers::FileId)
        .into_query()
}

/// A file, begun before that one could be, that no register has.
#[boxed]
pub async fn orphan(db: &Connection, before: RegisterFileId) -> Result<Option<RegisterFileId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::FileId)
        .filter(Column::FileId.lt(before))
        .filter(Column::FileId.not_in_subquery(used()))
        .order_by(Column::FileId, Order::Asc)
        .limit(1);
    Ok(select.into_tuple().one(db).await?)
}

/// Removes some of a file, unless a register has it. Answers how many rows; 0: nothing is left that may go.
#[boxed]
pub async fn remove_some(db: &Connection, file: RegisterFileId, limit: u64) -> Result<u64> {
    let select = Entity::find()
        .select_only()
        .column(Column::N)
        .filter(Column::FileId.eq(file))
        .filter(Column::FileId.not_in_subquery(used()))
        .order_by(Column::N, Order::Asc)
        .limit(limit);
    let places: Vec<i32> = select.into_tuple().all(db).await?;
    if places.is_empty() {
        return Ok(0);
    }
    let gone = Entity::delete_many()
        .filter(Column::FileId.eq(file))
        .filter(Column::N.is_in(places))
        .exec(db)
        .await?;
    Ok(gone.rows_affected)
}
