//! Tables as the migrations write them. What stands here has made the databases that there are, so its effect never changes.
use crate::columns::*;
use sea_orm::{
    DbBackend,
    sea_query::{Alias, ColumnDef, Index, Table, TableCreateStatement},
};

/// Name, columns; the primary key is the columns that come first.
pub fn table(name: &'static str, keys: usize, columns: Vec<ColumnDef>) -> TableCreateStatement {
    let mut table = Table::create().table(Alias::new(name)).to_owned();
    let mut primary_key = Index::create().to_owned();
    for (index, column) in columns.into_iter().enumerate() {
        if index < keys {
            primary_key.col(Alias::new(column.get_column_name()));
        }
        table.col(column);
    }
    table.primary_key(&mut primary_key);
    table
}

/// The same, for small rows: on SQLite they themselves are kept in the tree of their key, so that one tree is written and not
/// two.
pub fn clustered(backend: DbBackend, name: &'static str, keys: usize, columns: Vec<ColumnDef>) -> TableCreateStatement {
    let mut table = table(name, keys, columns);
    if backend == DbBackend::Sqlite {
        table.extra("WITHOUT ROWID");
    }
    table
}

/// The columns of what a tenant makes, changes and deletes: whose it is, its own, and when it was what.
pub fn editable(own: Vec<ColumnDef>) -> Vec<ColumnDef> {
    let mut columns = vec![uuid("id").to_owned(), uuid("tenant_id").to_owned()];
    columns.extend(own);
    columns.extend([
        integer("version").to_owned(),
        big_integer("created_at").to_owned(),
        big_integer("updated_at").to_owned(),
        big_integer_null("deleted_at").to_owned(),
    ]);
    columns
}
