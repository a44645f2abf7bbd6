//! What is asked of SMS and of e-mails alike: their tables have these columns in common.
use crate::{
    connection::Connection,
    error::Result,
    ids::{self, TenantId, TenantScoped},
    keys, page,
    values::{Env, Moment},
    workspace_lease::Share,
};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, QueryTrait, TryGetable, Value,
    sea_query::{Expr, ExprTrait},
};

/// A table of messages.
pub trait Messages: EntityTrait {
    type Id: Copy + Into<Value> + TryGetable;
    /// The tenant's, the environment's, and the message's own.
    const KEY: [Self::Column; 3];
    const WAKE_AT: Self::Column;
    const SENT_AT: Self::Column;
    const ENDED_AT: Self::Column;
    /// To whom it goes.
    const ADDRESS: Self::Column;
    /// Those that wait for nothing any more and may go, of which some are kept until a moment that is said.
    fn is_over(kept_until: Moment) -> Condition;
}

/// When these ended, of those that have.
pub async fn ends_of<M: Messages>(db: &Connection, ids: &[M::Id]) -> Result<Vec<(M::Id, Moment)>> {
    let [_, _, id] = M::KEY;
    let select = M::find()
        .filter(id.is_in(ids.iter().copied()))
        .select_only()
        .columns([id, M::ENDED_AT, M::SENT_AT]);
    let rows: Vec<(M::Id, Option<Moment>, Option<Moment>)> = select.into_tuple().all(db).await?;
    let ends = rows
        .into_iter()
        .filter_map(|(id, ended_at, sent_at)| Some((id, ended_at.or(sent_at)?)));
    Ok(ends.collect())
}

/// When it ended; `None`: it has not, or it is not kept any more.
pub async fn ended_at<M: Messages>(db: &Connection, key: TenantScoped<M::Id>) -> Result<Option<Moment>> {
    let [tenant, env, id] = M::KEY;
    let select = M::find()
        .filter(tenant.eq(key.tenant_id))
        .filter(env.eq(key.env))
        .filter(id.eq(key.id))
        .select_only()
        .columns([M::ENDED_AT, M::SENT_AT]);
    let found: Option<(Option<Moment>, Option<Moment>)> = select.into_tuple().one(db).await?;
    Ok(found.and_then(|(ended_at, sent_at)| ended_at.or(sent_at)))
}

/// The tenant's messages that a backup says are not handed over, and that may have been by then.
pub async fn may_have_run<M: Messages>(
    db: &Connection,
    tenant: TenantId,
    by: Moment,
    after: Option<M::Id>,
    limit: u64,
) -> Result<Vec<TenantScoped<M::Id>>> {
    let [of, _, id] = M::KEY;
    let later = Condition::all()
        .add(Expr::cust("phase = 'scheduled' AND campaign_id IS NULL"))
        .add(Expr::col("scheduled_at").gt(by));
    let left = M::find()
        .apply_if(after, |left, after| left.filter(id.gt(after)))
        .filter(of.eq(tenant))
        .filter(Expr::cust("phase IN ('scheduled', 'queued', 'deferred')"))
        .filter(Expr::col("created_at").lte(by))
        .filter(later.not())
        .order_by(id, Order::Asc)
        .limit(limit);
    keys::of(db, left, M::KEY).await
}

/// Messages that have something to do by then.
pub async fn due<M: Messages>(
    db: &Connection,
    share: Share,
    by: Moment,
    limit: u64,
) -> Result<Vec<TenantScoped<M::Id>>> {
    let [tenant, ..] = M::KEY;
    let waiting = M::find()
        .filter(share.of(tenant))
        .filter(Expr::cust("wake_at IS NOT NULL"));
    keys::of(db, keys::due(waiting, M::WAKE_AT, by, limit), M::KEY).await
}

/// The tenant's messages that were made before then and may go, in their order, behind `after`; and to whom they went.
pub async fn over<M: Messages>(
    db: &Connection,
    (of, env): (TenantId, Env),
    (before, kept_until): (Moment, Moment),
    after: Option<M::Id>,
    limit: u64,
) -> Result<Vec<(M::Id, String)>> {
    let [tenant, its_env, id] = M::KEY;
    let select = M::find()
        .filter(tenant.eq(of))
        .filter(its_env.eq(env))
        .filter(id.lt(ids::floor(before)))
        .filter(M::is_over(kept_until))
        .select_only()
        .columns([id, M::ADDRESS]);
    Ok(page::next(select, id, after, limit).into_tuple().all(db).await?)
}
