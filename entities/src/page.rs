//! Lists in pages: keyset cursors over `id` (UUIDv7, so in order of creation), never OFFSET.
use crate::{
    bulk,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids,
    values::Moment,
};
use sea_orm::{ColumnTrait, Condition, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, Select, Value};
use std::{collections::BTreeMap, time::Duration};
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

/// An id that an `Idempotency-Key` has made may be so much older than its object.
const MADE_BEFORE: Duration = Duration::from_secs(25 * 3600);

impl Page {
    /// What the page begins behind, in its order.
    pub fn of<E: EntityTrait>(&self, select: Select<E>, id: E::Column, created_at: E::Column) -> Select<E> {
        self.behind(select, id).filter(self.dates(created_at))
    }

    /// Is it narrowed to a time?
    pub fn is_dated(&self) -> bool {
        self.created_after.is_some() || self.created_before.is_some()
    }

    fn dates(&self, created_at: impl ColumnTrait) -> Condition {
        Condition::all()
            .add_option(self.created_after.map(|time| created_at.gt(Value::from(time))))
            .add_option(self.created_before.map(|time| created_at.lt(Value::from(time))))
    }

    /// The same whenever it was made, but for what is surely too old. An id may be younger than its object by any time: they grow,
    /// also when the clock is set back.
    fn behind<E: EntityTrait>(&self, select: Select<E>, id: E::Column) -> Select<E> {
        let mut select = select;
        if let Some(after) = self.after {
            select = select.filter(if self.newest_first { id.lt(after) } else { id.gt(after) });
        }
        if let Some(time) = self.created_after {
            select = select.filter(id.gte(ids::floor(time.minus(MADE_BEFORE))));
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

/// One page of what several lists hold together, in the same order. What moves from one to a later one while they are read is in the
/// later one.
pub fn merge<M>(lists: Vec<Listed<M>>, id: impl Fn(&M) -> Uuid, page: Page) -> Listed<M> {
    let has_more = lists.iter().any(|list| list.has_more);
    let rows = lists.into_iter().flat_map(|list| list.rows);
    let rows: BTreeMap<Uuid, M> = rows.map(|row| (id(&row), row)).collect();
    let mut rows: Vec<M> = rows.into_values().collect();
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
    search_from(db, &db.read, all, wanted, id, created_at, page).await
}

/// The same, and the first stretch is read by `first`: for those who look through many lists.
pub async fn search_from<E: EntityTrait>(
    db: &Db,
    first: &Connection,
    all: Select<E>,
    wanted: Condition,
    id: E::Column,
    created_at: E::Column,
    page: Page,
) -> Result<Listed<E::Model>> {
    if wanted.is_empty() && !page.is_dated() {
        return fetch(first, all, id, created_at, page).await;
    }
    let wanted = Condition::all().add(wanted).add(page.dates(created_at));
    let (mut rest, mut rows) = (page, Vec::new());
    let mut connection = first;
    loop {
        let behind = rest.behind(all.clone(), id);
        let ids = behind.clone().select_only().column(id).limit(STRETCH);
        let ids: Vec<Uuid> = ids.into_tuple().all(connection).await?;
        let Some(last) = ids.last().copied() else { break };
        // By their ids, so that no other index leads past them.
        for some in bulk::padded(&ids) {
            let missing = (page.limit + 1).saturating_sub(rows.len() as u64);
            if missing == 0 {
                break;
            }
            let found = behind.clone().filter(id.is_in(some)).filter(wanted.clone());
            rows.extend(found.limit(missing).all(connection).await?);
        }
        if rows.len() as u64 > page.limit || (ids.len() as u64) < STRETCH {
            break;
        }
        (rest.after, connection) = (Some(last), &db.reports);
    }
    Ok(page.cut(rows))
}
