//! Rows as actors are addressed: by tenant, env and id.
use crate::{
    connection::Connection,
    error::Result,
    ids::{TenantId, TenantScoped},
    values::{Env, Moment},
};
use sea_orm::{ColumnTrait, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, Select, TryGetable, Value};

/// The rows of `select`; `key` is the columns of the tenant, of the env and of the id.
pub async fn of<E, I>(db: &Connection, select: Select<E>, key: [E::Column; 3]) -> Result<Vec<TenantScoped<I>>>
where
    E: EntityTrait,
    I: TryGetable,
{
    let select = select.select_only().columns(key);
    let rows: Vec<(TenantId, Env, I)> = select.into_tuple().all(db).await?;
    Ok(rows
        .into_iter()
        .map(|(tenant, env, id)| TenantScoped::new(tenant, env, id))
        .collect())
}

/// Of `waiting`, what is due by then, the longest due first; the column `at` says when each row is.
pub fn due<E: EntityTrait>(waiting: Select<E>, at: E::Column, by: Moment, limit: u64) -> Select<E> {
    waiting.filter(at.lte(by)).order_by(at, Order::Asc).limit(limit)
}

/// Removes the rows of a table whose column has one of these values.
pub async fn remove<E, V>(db: &Connection, _: E, column: E::Column, values: &[V]) -> Result<()>
where
    E: EntityTrait,
    V: Copy + Into<Value>,
{
    E::delete_many()
        .filter(column.is_in(values.iter().copied()))
        .exec(db)
        .await?;
    Ok(())
}
