//! Lists in pages: keyset cursors over `id` (UUIDv7, so in order of creation), never OFFSET.
use crate::{
    connection::Connection,
    db::Db,
    error::{Error, Result},
    values::Moment,
};
use sea_orm::{ColumnTrait, Condition, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, Select, Value};
use uuid::Uuid;

/// Which part of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// 1 to 100.
    pub limit: u64,
    /// The last id of the page before.
    pub after: Option<Uuid>,
    pub newest_first: bool,
    pub created_after: Option<Moment>,
    pub created_before: Option<Moment>,
}

impl Default for Page {
    fn default() -> Self {
        Page {
            limit: 50,
            after: None,
            newest_first: true,
            created_after: None,
            created_before: None,
        }
    }
}

/// One page and whether another follows.
pub struct Listed<M> {
    pub rows: Vec<M>,
    pub has_more: bool,
}

impl Page {
    /// What the page begins behind, in its order.
    pub fn of<E: EntityTrait>(&self, select: Select<E>, id: E::Column, created_at: E::Column) -> Select<E> {
        let mut select = select;
        if let Some(after) = self.after {
            select = select.filter(if self.newest_first { id.lt(after) } else { id.gt(after) });
        }
        if let Some(time) = self.created_after {
            select = select.filter(created_at.gt(Value::from(time)));
        }
        if let Some(time) = self.created_before {
            select = select.filter(created_at.lt(Value::from(time)));
        }
        select.order_by(id, if self.newest_first { Order::Desc } else { Order::Asc })
    }

    /// Of rows of which one more than asked for was read: it tells whether another page follows.
    fn cut<M>(&self, mut rows: Vec<M>) -> Listed<M> {
        let has_more = rows.len() as u64 > self.limit;
        rows.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        Listed { rows, has_more }
    }
}

/// One page of what several lists hold together, in the same order; none of them has a row of another.
pub fn merge<M>(lists: Vec<Listed<M>>, id: impl Fn(&M) -> Uuid, page: Page) -> Listed<M> {
    let has_more = lists.iter().any(|list| list.has_more);
    let mut rows: Vec<M> = lists.into_iter().flat_map(|list| list.rows).collect();
    rows.sort_by_key(&id);
    if page.newest_first {
        rows.reverse();
    }
    let listed = page.cut(rows);
    Listed {
        has_more: has_more || listed.has_more,
        ..listed
    }
}

/// Reads one page of `select`, which has been narrowed to its tenant.
pub async fn fetch<E: EntityTrait>(
    db: &Connection,
    select: Select<E>,
    id: E::Column,
    created_at: E::Column,
    page: Page,
) -> Result<Listed<E::Model>> {
    let rows = page.of(select, id, created_at).limit(page.limit + 1).all(db).await?;
    Ok(page.cut(rows))
}

/// The rows of `select` behind `after`, in the order of `key`: one page of what is read as a whole.
pub async fn behind<E: EntityTrait>(
    db: &Connection,
    select: Select<E>,
    key: E::Column,
    after: Option<impl Into<Value>>,
    limit: u64,
) -> Result<Vec<E::Model>> {
    Ok(next(select, key, after, limit).all(db).await?)
}

/// What [`behind`] reads, for those who want a part of each row.
pub fn next<E: EntityTrait>(
    select: Select<E>,
    key: E::Column,
    after: Option<impl Into<Value>>,
    limit: u64,
) -> Select<E> {
    let select = match after {
        Some(after) => select.filter(key.gt(after)),
        None => select,
    };
    select.order_by(key, Order::Asc).limit(limit)
}

/// Rows that [`each`] reads at once.
const AT_ONCE: u64 = 500;

/// Hands a table to `with` as a whole, page by page, so that no statement takes long: `read` answers the rows behind one,
/// which `key` names.
pub async fn each<M, K, E: From<Error>>(
    db: &Connection,
    read: impl AsyncFn(&Connection, Option<K>, u64) -> Result<Vec<M>>,
    key: impl Fn(&M) -> K,
    mut with: impl AsyncFnMut(Vec<M>) -> Result<(), E>,
) -> Result<(), E> {
    let mut after = None;
    loop {
        let rows = read(db, after, AT_ONCE).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(key(last));
        with(rows).await?;
    }
}

/// Rows that a search looks through by one statement.
const STRETCH: u64 = 2_000;

/// Reads one page of those rows of `all` that are `wanted`, where no index knows which they are: looks through the list in
/// stretches, so that no statement takes long however few it finds. The first stretch mostly has them; what is beyond is read
/// by the connections for whole lists.
pub async fn search<E: EntityTrait>(
    db: &Db,
    all: Select<E>,
    wanted: Condition,
    id: E::Column,
    created_at: E::Column,
    page: Page,
) -> Result<Listed<E::Model>> {
    if wanted.is_empty() {
        return fetch(&db.read, all, id, created_at, page).await;
    }
    let (mut rest, mut rows) = (page, Vec::new());
    let mut connection: &Connection = &db.read;
    loop {
        let behind = rest.of(all.clone(), id, created_at);
        let ids = behind.clone().select_only().column(id).limit(STRETCH);
        let ids: Vec<Uuid> = ids.into_tuple().all(connection).await?;
        let Some(last) = ids.last().copied() else { break };
        let within = if page.newest_first { id.gte(last) } else { id.lte(last) };
        let found = behind.filter(within).filter(wanted.clone());
        let missing = (page.limit + 1).saturating_sub(rows.len() as u64);
        rows.extend(found.limit(missing).all(connection).await?);
        if rows.len() as u64 > page.limit || (ids.len() as u64) < STRETCH {
            break;
        }
        (rest.after, connection) = (Some(last), &db.reports);
    }
    Ok(page.cut(rows))
}
