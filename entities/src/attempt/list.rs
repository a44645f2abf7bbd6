//! Attempts as they are looked for: by whom they were about, by campaign, by time.
use super::{BOTH, Column, Model, about, chain, first_since, merged, of, owned};
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::{AttemptId, CampaignId, TenantId},
    values::{Env, Moment},
};
use sea_orm::{Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};

/// What a list of attempts is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Keyed hashes of a number or an address; empty: anybody's.
    pub hashes: Vec<String>,
    pub attempt_id: Option<AttemptId>,
    pub campaign_id: Option<CampaignId>,
    /// Committed then or later, and before then.
    pub since: Option<Moment>,
    pub until: Option<Moment>,
}

/// Which part of a list: by the place in the chain.
#[derive(Clone, Copy, Debug)]
pub struct NPage {
    pub limit: u64,
    /// The last one of the page before.
    pub after: Option<i64>,
    pub newest_first: bool,
}

/// Openings, a page of them, and whether another follows.
#[boxed]
pub async fn list(db: &Connection, owner: (TenantId, Env), filter: Filter, page: NPage) -> Result<(Vec<Model>, bool)> {
    let (mut first, mut last) = chain::bounds(db, owner).await?;
    if let Some(since) = filter.since {
        first = first.max(first_since(db, owner, since).await?);
    }
    if let Some(until) = filter.until {
        last = last.min(first_since(db, owner, until).await? - 1);
    }
    if let Some(after) = page.after {
        (first, last) = match page.newest_first {
            true => (first, last.min(after - 1)),
            false => (first.max(after + 1), last),
        };
    }
    let (newest_first, one_more) = (page.newest_first, page.limit + 1);
    let mut rows = between(db, owner, &filter, (first, last), (newest_first, one_more)).await?;
    let wanted = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > wanted;
    rows.truncate(wanted);
    Ok((rows, has_more))
}

async fn between(
    db: &Connection,
    owner: (TenantId, Env),
    filter: &Filter,
    (from, to): (i64, i64),
    (newest_first, limit): (bool, u64),
) -> Result<Vec<Model>> {
    // Written out: only so do the databases see that the small index serves. Who has read a long list of opt-outs in has many rows that
    // are not openings.
    let mut rows = owned(owner)
        .filter(Expr::cust("kind = 'attempt'"))
        .filter(Column::N.between(from, to));
    if let Some(id) = filter.attempt_id {
        rows = rows.filter(Column::AttemptId.eq(id));
    }
    if let Some(campaign) = filter.campaign_id {
        rows = rows.filter(of(campaign));
    }
    let order = if newest_first { Order::Desc } else { Order::Asc };
    let rows = rows.order_by(Column::N, order).limit(limit);
    if filter.hashes.is_empty() {
        return Ok(rows.all(db).await?);
    }
    let mut found = Vec::new();
    for by in BOTH {
        found.extend(rows.clone().filter(about(by, &filter.hashes)).all(db).await?);
    }
    Ok(merged(found, newest_first, limit))
}
