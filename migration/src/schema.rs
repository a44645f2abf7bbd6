//! What a migration is given: the transaction that it is made in.
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr,
    sea_query::{ColumnDef, Table, TableCreateStatement},
};

pub struct Schema<'a>(pub(crate) &'a DatabaseTransaction);

impl Schema<'_> {
    pub fn backend(&self) -> DbBackend {
        self.0.get_database_backend()
    }

    pub async fn create(&self, table: TableCreateStatement) -> Result<(), DbErr> {
        self.0.execute(&table).await.map(drop)
    }

    pub async fn add_column(&self, table: &'static str, column: ColumnDef) -> Result<(), DbErr> {
        // One change per statement: SQLite takes no more.
        let change = Table::alter().table(table).add_column(column).to_owned();
        self.0.execute(&change).await.map(drop)
    }

    /// Plain text, because sea-query has no partial indexes: they keep the queues small, however long the history.
    pub async fn execute(&self, statement: &str) -> Result<(), DbErr> {
        self.0.execute_unprepared(statement).await.map(drop)
    }

    /// Adds each column to the table of that name, makes the tables, then runs the statements.
    pub async fn apply(
        &self,
        columns: Vec<(&'static str, ColumnDef)>,
        tables: Vec<TableCreateStatement>,
        statements: &[&str],
    ) -> Result<(), DbErr> {
        for (table, column) in columns {
            self.add_column(table, column).await?;
        }
        for table in tables {
            self.create(table).await?;
        }
        for statement in statements {
            self.execute(statement).await?;
        }
        Ok(())
    }
}
