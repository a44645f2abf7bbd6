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

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<ColumnDef> {
        vec![uuid("a"), big_integer("b"), json_binary_null("c")]
    }

    fn text_of(backend: DbBackend, table: &TableCreateStatement) -> String {
        backend.build(table).sql
    }

    /// Word for word: databases that were made by these texts are out there.
    #[test]
    fn a_table_is_made_by_the_same_text_as_ever() {
        let made = table("x", 2, columns());
        assert_eq!(
            text_of(DbBackend::Sqlite, &made),
            r#"CREATE TABLE "x" ( "a" uuid_text NOT NULL, "b" integer NOT NULL, "c" jsonb_text NULL, PRIMARY KEY ("a", "b") )"#
        );
        assert_eq!(
            text_of(DbBackend::Postgres, &made),
            r#"CREATE TABLE "x" ( "a" uuid NOT NULL, "b" bigint NOT NULL, "c" jsonb NULL, PRIMARY KEY ("a", "b") )"#
        );
    }

    #[test]
    fn small_rows_are_kept_in_the_tree_of_their_key_on_sqlite_alone() {
        let made = |backend| text_of(backend, &clustered(backend, "x", 1, columns()));
        assert!(made(DbBackend::Sqlite).ends_with(" ) WITHOUT ROWID"));
        assert!(made(DbBackend::Postgres).ends_with(" )"));
    }

    #[test]
    fn what_a_tenant_changes_has_its_columns_around_it() {
        let names: Vec<String> = editable(columns()).iter().map(ColumnDef::get_column_name).collect();
        assert_eq!(
            names.join(" "),
            "id tenant_id a b c version created_at updated_at deleted_at"
        );
    }
}
