//! Lists in pages: keyset cursors over `id` (UUIDv7, so in order of creation), never OFFSET.
use crate::{error::Result, values::Moment};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, ModelTrait, Order, QueryFilter, QueryOrder,
    QuerySelect, Select, Value,
};
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

/// Reads one page of `select`, which has been narrowed to its tenant.
pub async fn fetch<E, M>(
    db: &impl ConnectionTrait,
    select: Select<E>,
    id: E::Column,
    created_at: E::Column,
    page: Page,
) -> Result<Listed<M>>
where
    E: EntityTrait<Model = M>,
    M: FromQueryResult + ModelTrait<Entity = E> + Sized + Send + Sync,
{
    let mut select = select;
    if let Some(after) = page.after {
        select = select.filter(if page.newest_first { id.lt(after) } else { id.gt(after) });
    }
    if let Some(time) = page.created_after {
        select = select.filter(created_at.gt(Value::from(time)));
    }
    if let Some(time) = page.created_before {
        select = select.filter(created_at.lt(Value::from(time)));
    }
    let order = if page.newest_first { Order::Desc } else { Order::Asc };
    // One more than asked for tells whether another page follows.
    let mut rows = select.order_by(id, order).limit(page.limit + 1).all(db).await?;
    let has_more = rows.len() as u64 > page.limit;
    rows.truncate(usize::try_from(page.limit).unwrap_or(usize::MAX));
    Ok(Listed { rows, has_more })
}
