//! The steps that migrations are made of. What stands here has made the databases that there are, so its effect never changes.
use sea_orm_migration::{prelude::*, schema::*, sea_orm::DbBackend};

/// Adds each column to the table of that name, makes the tables, then runs the statements.
pub async fn apply(
    manager: &SchemaManager<'_>,
    columns: Vec<(&'static str, ColumnDef)>,
    tables: Vec<TableCreateStatement>,
    statements: &[&str],
) -> Result<(), DbErr> {
    for (table, column) in columns {
        // One change per statement: SQLite takes no more.
        let change = Table::alter().table(Alias::new(table)).add_column(column).to_owned();
        manager.alter_table(change).await?;
    }
    for table in tables {
        manager.create_table(table).await?;
    }
    execute(manager, statements).await
}

/// Plain text, because sea-query has no partial indexes: they keep the queues small, however long the history.
pub async fn execute(manager: &SchemaManager<'_>, statements: &[&str]) -> Result<(), DbErr> {
    for statement in statements {
        manager.get_connection().execute_unprepared(statement).await?;
    }
    Ok(())
}

/// What every migration but the first answers to being undone.
pub fn no_way_back() -> Result<(), DbErr> {
    Err(DbErr::Migration("go back to a copy of the database instead".into()))
}

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
