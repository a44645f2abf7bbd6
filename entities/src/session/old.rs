//! Sessions whose time is over.
use super::{Column, Entity};
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::{SessionId, TenantId},
    page,
    values::{E164, Env, Moment},
};
use sea_orm::{QuerySelect, entity::prelude::*, sea_query::Expr};

/// One that may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Old {
    pub id: SessionId,
    pub to_number: Option<E164>,
}

/// The tenant's sessions behind `after` that were made, and have ended, before then, in their order; those that were deleted, too.
#[boxed]
pub async fn old(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    before: Moment,
    after: Option<SessionId>,
    limit: u64,
) -> Result<Vec<Old>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::Id.lt(SessionId::floor(before)))
        .filter(Expr::cust("phase = 'ended'"))
        .filter(Column::EndedAt.lt(before))
        .select_only()
        .columns([Column::Id, Column::ToNumber]);
    let rows: Vec<(SessionId, Option<E164>)> = page::next(select, Column::Id, after, limit)
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows.into_iter().map(|(id, to_number)| Old { id, to_number }).collect())
}

/// The tenant's sessions behind `after` that were made before then, in their order; and whether each had ended by then.
#[boxed]
pub async fn made_before(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    before: Moment,
    after: Option<SessionId>,
    limit: u64,
) -> Result<Vec<(SessionId, bool)>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::Id.lt(SessionId::floor(before)))
        .select_only()
        .columns([Column::Id, Column::EndedAt]);
    let rows: Vec<(SessionId, Option<Moment>)> = page::next(select, Column::Id, after, limit)
        .into_tuple()
        .all(db)
        .await?;
    let is_over = |ended_at: Option<Moment>| ended_at.is_some_and(|at| at < before);
    Ok(rows.into_iter().map(|(id, ended_at)| (id, is_over(ended_at))).collect())
}

/// Removes their rows.
#[boxed]
pub async fn remove(db: &Connection, (tenant, env): (TenantId, Env), ids: &[SessionId]) -> Result<()> {
    Entity::delete_many()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::Id.is_in(ids.iter().copied()))
        .filter(Expr::cust("phase = 'ended'"))
        .exec(db)
        .await?;
    Ok(())
}
