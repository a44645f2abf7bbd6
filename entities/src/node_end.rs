//! The end of a node: by its own will, or because others do not hear of it any more. Its workspaces are free.
use crate::{
    boxed,
    connection::Transaction,
    error::{Error, Result},
    ids::NodeId,
    node::{Column, Entity, NOW_MS, is_heard, lives},
    values::Moment,
    workspace_lease,
};
use sea_orm::{ConnectionTrait, QuerySelect, entity::prelude::*, sea_query::Expr};

/// Ends a node that is still silent: what it has under way waits, or has committed; what it begins fails. Its workspaces are
/// free. Answers whether it was.
#[boxed]
pub async fn end_silent(db: &Transaction, me: NodeId, id: NodeId) -> Result<bool> {
    // One that hangs in the middle of a commit must not keep us; its connections are ended by the caller.
    db.execute_unprepared("SET LOCAL lock_timeout = '2s'").await?;
    let over = Expr::cust(format!("until_ms < {NOW_MS}"));
    let found = Entity::find_by_id(id).filter(lives()).filter(over).filter(is_heard(me));
    let Some(row) = found.lock_exclusive().one(&**db).await? else {
        return Ok(false);
    };
    end(db, row.id, Some(row.seen_at)).await?;
    Ok(true)
}

/// Ends them all: one process has the database alone from now on. Answers when one of them was heard last, if any lived.
#[boxed]
pub async fn end_every(db: &Transaction) -> Result<Option<Moment>> {
    let rows = Entity::find().filter(lives()).lock_exclusive().all(&**db).await?;
    for row in &rows {
        end(db, row.id, Some(row.seen_at)).await?;
    }
    Ok(rows.iter().map(|row| row.seen_at).max())
}

/// It ends by itself, in order: the writer has ended before.
#[boxed]
pub async fn leave(db: &Transaction, id: NodeId) -> Result<()> {
    let found = Entity::find_by_id(id).filter(lives());
    match found.lock_exclusive().one(&**db).await? {
        // Nothing of it was cut off.
        Some(row) => end(db, row.id, None).await,
        None => Err(Error::Fenced),
    }
}

async fn end(db: &Transaction, id: NodeId, seen_at: Option<Moment>) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::EndedMs, Expr::cust(NOW_MS))
        .filter(Column::Id.eq(id))
        .exec(&**db)
        .await?;
    workspace_lease::free_all(db, id, seen_at).await
}
