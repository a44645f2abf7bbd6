//! Queries as they are asked. Whoever waits for an answer holds a box, and not the query that it came from: a future is compiled with
//! all that it holds, and proved to be sendable through all of it, and of sea-orm's queries that was most of what this crate took to
//! build.
use crate::connection::Connection;
use futures_util::future::BoxFuture;
use sea_orm::{
    ConnectionTrait, DbErr, DeleteMany, EntityTrait, FromQueryResult, QueryResult, QuerySelect, QueryTrait, Select,
    SelectGetableTuple, SelectModel, SelectorTrait, Statement, TryGetableMany, UpdateMany, ValidatedDeleteOne,
    sea_query::{Expr, Query},
};
use std::marker::PhantomData;

/// What a query answers.
pub trait Ask: Sized {
    type Row: Send + 'static;
    type Entity: EntityTrait;

    fn select(self) -> Select<Self::Entity>;
    fn read(row: QueryResult) -> Result<Self::Row, DbErr>;

    fn rows(self, db: &Connection) -> BoxFuture<'_, Result<Vec<Self::Row>, DbErr>> {
        let rows = db.query_all_raw(said(db, &self.select()));
        Box::pin(async move { rows.await?.into_iter().map(Self::read).collect() })
    }

    /// The first one.
    fn row(self, db: &Connection) -> BoxFuture<'_, Result<Option<Self::Row>, DbErr>> {
        let row = db.query_one_raw(said(db, &self.select().limit(1)));
        Box::pin(async move { row.await?.map(Self::read).transpose() })
    }

    /// How many there are, without a limit.
    fn total(self, db: &Connection) -> BoxFuture<'_, Result<u64, DbErr>> {
        let mut all = self.select().into_query();
        all.reset_limit().reset_offset().clear_order_by();
        let mut count = Query::select();
        count.expr(Expr::cust("COUNT(*)")).from_subquery(all, "counted");
        let row = db.query_one_raw(db.get_database_backend().build(&count));
        Box::pin(async move {
            let count: Option<i64> = row.await?.map(|row| row.try_get_by_index(0)).transpose()?;
            Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
        })
    }
}

impl<E: EntityTrait> Ask for Select<E>
where
    E::Model: 'static,
{
    type Row = E::Model;
    type Entity = E;

    fn select(self) -> Select<E> {
        self
    }
    fn read(row: QueryResult) -> Result<E::Model, DbErr> {
        E::Model::from_query_result(&row, "")
    }
}

/// The same query, of which each row is read as something else.
pub struct ReadAs<E: EntityTrait, S>(Select<E>, PhantomData<fn() -> S>);

impl<E: EntityTrait, S: SelectorTrait> Ask for ReadAs<E, S>
where
    S::Item: Send + 'static,
{
    type Row = S::Item;
    type Entity = E;

    fn select(self) -> Select<E> {
        self.0
    }
    fn read(row: QueryResult) -> Result<S::Item, DbErr> {
        S::from_raw_query_result(row)
    }
}

/// Of each row a part.
pub trait Part<E: EntityTrait>: Sized {
    fn read_as<S>(self) -> ReadAs<E, S>;

    /// The chosen columns, in their order.
    fn tuple<T: TryGetableMany>(self) -> ReadAs<E, SelectGetableTuple<T>> {
        self.read_as()
    }

    /// The chosen columns, by their names.
    fn model<M: FromQueryResult>(self) -> ReadAs<E, SelectModel<M>> {
        self.read_as()
    }
}

impl<E: EntityTrait> Part<E> for Select<E> {
    fn read_as<S>(self) -> ReadAs<E, S> {
        ReadAs(self, PhantomData)
    }
}

/// What changes rows: it answers how many.
pub trait Run: QueryTrait + Sized {
    fn run(self, db: &Connection) -> BoxFuture<'_, Result<u64, DbErr>> {
        let done = db.execute_raw(said(db, &self));
        Box::pin(async move { Ok(done.await?.rows_affected()) })
    }
}

impl<E: EntityTrait> Run for UpdateMany<E> {}
impl<E: EntityTrait> Run for DeleteMany<E> {}
impl<E: EntityTrait> Run for ValidatedDeleteOne<E> {}

fn said(db: &Connection, query: &impl QueryTrait) -> Statement {
    query.build(db.get_database_backend())
}
