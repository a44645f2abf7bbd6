//! Attempts as they are looked for: by whom they were about, by campaign, by time.
use super::{BOTH, Column, Model, RecordKind, about, chain, first_since, merged, of, owned};
use crate::{
    boxed,
    connection::Connection,
    db::Db,
    error::Result,
    ids::{AttemptId, CampaignId, TenantId},
    values::{Env, Moment},
};
use sea_orm::{Order, QueryOrder, QuerySelect, entity::prelude::*};

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

/// Rows that are looked through by one statement.
const STRETCH: i64 = 4_000;

/// Openings, a page of them, and whether another follows.
#[boxed]
pub async fn list(db: &Db, owner: (TenantId, Env), filter: Filter, page: NPage) -> Result<(Vec<Model>, bool)> {
    let (mut first, mut last) = chain::bounds(&db.read, owner).await?;
    if let Some(since) = filter.since {
        first = first.max(first_since(&db.read, owner, since).await?);
    }
    if let Some(until) = filter.until {
        last = last.min(first_since(&db.read, owner, until).await? - 1);
    }
    if let Some(after) = page.after {
        (first, last) = match page.newest_first {
            true => (first, last.min(after - 1)),
            false => (first.max(after + 1), last),
        };
    }
    let wanted = usize::try_from(page.limit).unwrap_or(usize::MAX);
    // Of a person, a campaign or one attempt an index knows each. Without a filter most rows are openings, or what came of them; but
    // who has read a long list of opt-outs in has many that are not.
    let is_known = !filter.hashes.is_empty() || filter.attempt_id.is_some() || filter.campaign_id.is_some();
    let stretch = if is_known { i64::MAX } else { STRETCH };
    let (mut rows, mut connection): (Vec<Model>, &Connection) = (Vec::new(), &db.read);
    while first <= last && rows.len() <= wanted {
        let (from, to) = match page.newest_first {
            true => (first.max(last.saturating_sub(stretch - 1)), last),
            false => (first, last.min(first.saturating_add(stretch - 1))),
        };
        let missing = (wanted + 1 - rows.len()) as u64;
        rows.extend(between(connection, owner, &filter, (from, to), (page.newest_first, missing)).await?);
        (first, last) = match page.newest_first {
            true => (first, from - 1),
            false => (to.saturating_add(1), last),
        };
        // What lies beyond the first stretch is read by the connections for whole lists.
        connection = &db.reports;
    }
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
    let mut rows = owned(owner)
        .filter(Column::Kind.eq(RecordKind::Attempt))
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
