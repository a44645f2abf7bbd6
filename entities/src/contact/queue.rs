//! Whose turn it is among a campaign's contacts: those that were never called, and those that wait for a time.
use super::{Column, Entity, Model};
use crate::{
    boxed,
    connection::{Connection, Transaction},
    error::Result,
    ids::{CampaignId, ContactId},
    values::Moment,
};
use sea_orm::{
    ConnectionTrait, Order, QueryOrder, QuerySelect, Statement,
    entity::prelude::*,
    sea_query::{Expr, ExprTrait},
};
use std::collections::BTreeMap;

// Written out, not bound: only so do the databases see that the small indexes of the queues serve.
const FRESH: &str = "status = 'pending' AND next_attempt_at IS NULL";
const DUE: &str = "next_attempt_at IS NOT NULL";
/// The order of the index of fresh contacts. Without it SQLite walks the campaign's addresses, past all who are no longer fresh.
const FRESH_ORDER: &str = "zone, priority DESC, id";

/// The zones of contacts that were never called and wait for nothing.
#[boxed]
pub async fn fresh_zones(db: &Connection, campaign: CampaignId) -> Result<Vec<String>> {
    zones(db, campaign, FRESH).await
}

/// The zones of contacts that wait for a time.
#[boxed]
pub async fn due_zones(db: &Connection, campaign: CampaignId) -> Result<Vec<String>> {
    zones(db, campaign, DUE).await
}

/// A leap per zone, however many contacts there are.
async fn zones(db: &Connection, campaign: CampaignId, queue: &str) -> Result<Vec<String>> {
    let text = format!(
        "WITH RECURSIVE found(zone) AS (SELECT MIN(zone) FROM contacts WHERE campaign_id = $1 AND {queue} UNION ALL \
         SELECT (SELECT MIN(zone) FROM contacts WHERE campaign_id = $1 AND {queue} AND zone > found.zone) FROM found \
         WHERE found.zone IS NOT NULL) SELECT zone FROM found WHERE zone IS NOT NULL"
    );
    let statement = Statement::from_sql_and_values(db.get_database_backend(), text, [campaign.into()]);
    let rows = db.query_all_raw(statement).await?;
    Ok(rows
        .iter()
        .map(|row| row.try_get_by_index(0))
        .collect::<Result<_, _>>()?)
}

fn of(campaign: CampaignId, queue: &'static str) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::CampaignId.eq(campaign))
        .filter(Expr::cust(queue))
}

/// Contacts whose time has come, the longest due first.
#[boxed]
pub async fn due(db: &Connection, campaign: CampaignId, now: Moment, limit: u64) -> Result<Vec<Model>> {
    let select = of(campaign, DUE).filter(Column::NextAttemptAt.lte(now));
    Ok(select
        .order_by(Column::NextAttemptAt, Order::Asc)
        .limit(limit)
        .all(db)
        .await?)
}

/// Contacts that wait for a time, in its order, behind that one.
pub async fn waiting_after(
    db: &Connection,
    campaign: CampaignId,
    after: Option<(Moment, ContactId)>,
    limit: u64,
) -> Result<Vec<Model>> {
    let mut select = of(campaign, DUE);
    if let Some((at, id)) = after {
        let behind = Expr::tuple([Expr::col(Column::NextAttemptAt), Expr::col(Column::Id)])
            .gt(Expr::tuple([Expr::value(at), Expr::value(id)]));
        select = select.filter(behind);
    }
    Ok(select
        .order_by(Column::NextAttemptAt, Order::Asc)
        .order_by(Column::Id, Order::Asc)
        .limit(limit)
        .all(db)
        .await?)
}

/// When the time of the campaign's next contact comes.
#[boxed]
pub async fn next_due_at(db: &Connection, campaign: CampaignId) -> Result<Option<Moment>> {
    let select = of(campaign, DUE).select_only().column(Column::NextAttemptAt);
    Ok(select
        .order_by(Column::NextAttemptAt, Order::Asc)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?)
}

/// A zone's contacts that were never called and wait for nothing: by priority, then in the list's order.
#[boxed]
pub async fn fresh(db: &Connection, campaign: CampaignId, zone: &str, limit: u64) -> Result<Vec<Model>> {
    let select = of(campaign, FRESH)
        .filter(Column::Zone.eq(zone))
        .order_by(Column::Priority, Order::Desc)
        .order_by(Column::Id, Order::Asc);
    Ok(select.limit(limit).all(db).await?)
}

/// Contacts that are neither being called nor at an end, at most `limit`.
#[boxed]
pub async fn unfinished(db: &Connection, campaign: CampaignId, limit: u64) -> Result<Vec<Model>> {
    let mut rows = fresh_of_all_zones(db, campaign, limit).await?;
    let left = limit.saturating_sub(rows.len() as u64);
    if left > 0 {
        rows.extend(of(campaign, DUE).limit(left).all(db).await?);
    }
    Ok(rows)
}

/// Contacts that were canceled at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canceled {
    pub pending: i64,
    pub waiting: i64,
}

impl Canceled {
    pub fn total(self) -> i64 {
        self.pending + self.waiting
    }
}

/// Cancels contacts that are neither being called nor at an end, at most `limit`: what `Cancel` of their machine does to one, done
/// to many where they are. Nothing is told of them, so that none need be read. `made_before`: only those with smaller ids.
#[boxed]
pub async fn cancel(db: &Transaction, campaign: CampaignId, made_before: ContactId, limit: i64) -> Result<Canceled> {
    const FIRST_DUE: &str = "SELECT id, status FROM contacts WHERE campaign_id = $1 AND next_attempt_at IS NOT NULL \
                             AND id < $3 ORDER BY next_attempt_at, id LIMIT $2";
    let backend = db.get_database_backend();
    let values = |limit: i64| -> [Value; 3] { [campaign.into(), limit.into(), made_before.into()] };
    let update = |chosen: &str| {
        format!(
            "UPDATE contacts SET status = 'canceled', wait_reason = NULL, next_attempt_at = NULL, version = version + 1 \
             WHERE id IN (SELECT id FROM ({chosen}) AS chosen)"
        )
    };
    let fresh = update(&format!(
        "SELECT id FROM contacts WHERE campaign_id = $1 AND {FRESH} AND id < $3 ORDER BY {FRESH_ORDER} LIMIT $2"
    ));
    let fresh = Statement::from_sql_and_values(backend, fresh, values(limit));
    let fresh = i64::try_from(db.execute_raw(fresh).await?.rows_affected()).unwrap_or(i64::MAX);
    if fresh >= limit {
        return Ok(Canceled {
            pending: fresh,
            waiting: 0,
        });
    }
    let left = limit - fresh;
    let pending = format!("SELECT COUNT(*) FROM ({FIRST_DUE}) AS chosen WHERE status = 'pending'");
    let pending = Statement::from_sql_and_values(backend, pending, values(left));
    let pending = db.query_one_raw(pending).await?;
    let pending: i64 = pending.map(|row| row.try_get_by_index(0)).transpose()?.unwrap_or(0);
    let due = Statement::from_sql_and_values(backend, update(FIRST_DUE), values(left));
    let due = i64::try_from(db.execute_raw(due).await?.rows_affected()).unwrap_or(i64::MAX);
    Ok(Canceled {
        pending: fresh + pending,
        waiting: due - pending,
    })
}

/// Contacts that were never called and wait for nothing, of whatever zone, at most `limit`.
#[boxed]
pub async fn fresh_of_all_zones(db: &Connection, campaign: CampaignId, limit: u64) -> Result<Vec<Model>> {
    let select = of(campaign, FRESH)
        .order_by(Column::Zone, Order::Asc)
        .order_by(Column::Priority, Order::Desc)
        .order_by(Column::Id, Order::Asc);
    Ok(select.limit(limit).all(db).await?)
}

/// Contacts that are neither being called nor at an end, by zone: reads as much of the queues' indexes as there are.
#[boxed]
pub async fn waiting_by_zone(db: &Connection, campaign: CampaignId) -> Result<Vec<(String, i64)>> {
    let mut counted: BTreeMap<String, i64> = BTreeMap::new();
    for queue in [FRESH, DUE] {
        let select = of(campaign, queue)
            .select_only()
            .column(Column::Zone)
            .column_as(Expr::cust("COUNT(*)"), "contacts")
            .group_by(Column::Zone);
        for (zone, contacts) in select.into_tuple::<(String, i64)>().all(db).await? {
            *counted.entry(zone).or_default() += contacts;
        }
    }
    Ok(counted.into_iter().collect())
}
