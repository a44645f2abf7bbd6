//! How rows go: old ones from the chain's beginning, and of others what names a person.
use super::{Column, Entity, owned};
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::TenantId,
    page,
    values::{Env, Moment},
};
use sea_orm::{QuerySelect, entity::prelude::*, sea_query::Expr};

/// Was the first row of a chain committed before then?
#[boxed]
pub async fn has_older(db: &Connection, owner: (TenantId, Env), before: Moment) -> Result<bool> {
    let select = owned(owner).select_only().column(Column::At);
    let first: Option<Moment> = page::next(select, Column::N, None::<i64>, 1)
        .into_tuple()
        .one(db)
        .await?;
    Ok(first.is_some_and(|at| at < before))
}

/// Removes a chain's rows up to that one. Its anchor is written with it.
#[boxed]
pub async fn remove(db: &Connection, (tenant, env): (TenantId, Env), until: i64) -> Result<u64> {
    let removed = Entity::delete_many()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::N.lte(until))
        .exec(db)
        .await?;
    Ok(removed.rows_affected)
}

/// Blanks what these rows say of a person; their digests, and with them their hashes, stay. Answers how many said something.
#[boxed]
pub async fn blank(db: &Connection, (tenant, env): (TenantId, Env), places: &[i64]) -> Result<u64> {
    let mut blanked = 0;
    for chunk in crate::bulk::padded(places) {
        let done = Entity::update_many()
            .col_expr(Column::Content, Expr::value(None::<String>))
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::Env.eq(env))
            .filter(Column::N.is_in(chunk))
            .filter(Column::Content.is_not_null())
            .exec(db)
            .await?;
        blanked += done.rows_affected;
    }
    Ok(blanked)
}
