//! Whom a query asks. Pools and transactions are one type here: a query that took either would be compiled again in each crate
//! that asks it, and most of what a build takes would be that.
use crate::boxed;
use futures_util::future::BoxFuture;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, ExecResult, IsolationLevel,
    QueryResult, Statement, TransactionOptions, TransactionTrait,
    sqlx::{Pool, Sqlite},
};
use std::ops::Deref;

/// A pool of connections, or the one on which a transaction is open.
pub struct Connection(Kind);

enum Kind {
    Pool(DatabaseConnection),
    Transaction(DatabaseTransaction),
}

/// A connection whose statements stand together or not at all. Dropped without a commit, it is rolled back.
pub struct Transaction(Connection);

impl From<DatabaseConnection> for Connection {
    fn from(pool: DatabaseConnection) -> Self {
        Connection(Kind::Pool(pool))
    }
}

impl From<DatabaseTransaction> for Transaction {
    fn from(transaction: DatabaseTransaction) -> Self {
        Transaction(Connection(Kind::Transaction(transaction)))
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl Connection {
    /// As the database opens one by itself.
    #[boxed]
    pub async fn begin(&self) -> Result<Transaction, DbErr> {
        self.begin_with(TransactionOptions::default()).await
    }

    #[boxed]
    pub async fn begin_with(&self, options: TransactionOptions) -> Result<Transaction, DbErr> {
        let begun = match &self.0 {
            Kind::Pool(pool) => pool.begin_with_options(options).await,
            Kind::Transaction(outer) => outer.begin_with_options(options).await,
        };
        begun.map(Transaction::from)
    }

    /// One that sees the database as it is at one moment, whatever others commit meanwhile.
    #[boxed]
    pub async fn snapshot(&self) -> Result<Transaction, DbErr> {
        // A read transaction of SQLite does so by itself.
        let isolation_level =
            (self.get_database_backend() != DbBackend::Sqlite).then_some(IsolationLevel::RepeatableRead);
        self.begin_with(TransactionOptions {
            isolation_level,
            ..Default::default()
        })
        .await
    }

    /// For the migrations, and for what else only a pool can do.
    pub fn pool(&self) -> Result<&DatabaseConnection, DbErr> {
        match &self.0 {
            Kind::Pool(pool) => Ok(pool),
            Kind::Transaction(_) => Err(DbErr::Custom("a transaction is open on this connection".into())),
        }
    }

    /// Where it is one of SQLite.
    pub(crate) fn sqlite(&self) -> Option<&Pool<Sqlite>> {
        let pool = self.pool().ok()?;
        (pool.get_database_backend() == DbBackend::Sqlite).then(|| pool.get_sqlite_connection_pool())
    }

    /// Closes the pool. A failed close loses nothing: every commit is on disk.
    #[boxed]
    pub async fn close(&self) {
        if let Ok(pool) = self.pool() {
            let _ = pool.clone().close().await;
        }
    }
}

impl Transaction {
    #[boxed]
    pub async fn commit(self) -> Result<(), DbErr> {
        match self.0.0 {
            Kind::Transaction(transaction) => transaction.commit().await,
            Kind::Pool(_) => Err(DbErr::Custom("no transaction is open on this connection".into())),
        }
    }

    #[boxed]
    pub async fn rollback(self) -> Result<(), DbErr> {
        match self.0.0 {
            Kind::Transaction(transaction) => transaction.rollback().await,
            Kind::Pool(_) => Ok(()),
        }
    }
}

/// Handed on as they are: `async_trait` would box each future a second time.
macro_rules! hand_on {
    ($($name:ident($input:ident: $type:ty) -> $output:ty;)*) => {$(
        fn $name<'a, 'b>(&'a self, $input: $type) -> BoxFuture<'b, Result<$output, DbErr>>
        where
            'a: 'b,
            Self: 'b,
        {
            match &self.0 {
                Kind::Pool(pool) => pool.$name($input),
                Kind::Transaction(transaction) => transaction.$name($input),
            }
        }
    )*};
}

impl ConnectionTrait for Connection {
    fn get_database_backend(&self) -> DbBackend {
        match &self.0 {
            Kind::Pool(pool) => pool.get_database_backend(),
            Kind::Transaction(transaction) => transaction.get_database_backend(),
        }
    }

    hand_on! {
        execute_raw(statement: Statement) -> ExecResult;
        query_one_raw(statement: Statement) -> Option<QueryResult>;
        query_all_raw(statement: Statement) -> Vec<QueryResult>;
    }

    fn execute_unprepared<'a, 'b, 'c>(&'a self, sql: &'b str) -> BoxFuture<'c, Result<ExecResult, DbErr>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        match &self.0 {
            Kind::Pool(pool) => pool.execute_unprepared(sql),
            Kind::Transaction(transaction) => transaction.execute_unprepared(sql),
        }
    }
}
