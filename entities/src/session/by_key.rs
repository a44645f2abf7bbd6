//! What the calls of an API key have used of its limits.
use super::{Column, Entity, slots};
use crate::{
    api_key, boxed,
    connection::Connection,
    error::Result,
    ids::{ApiKeyId, SessionId},
    values::{Cents, Moment},
};
use sea_orm::{Order, QueryOrder, QuerySelect, QueryTrait, entity::prelude::*, sea_query::Expr};

const DAY_MS: i64 = 24 * 3_600_000;
const MINUTE_MS: i64 = 60_000;
/// Waiting calls of one key that are looked at: as many as may wait in a workspace.
const MOST_WAITING: u64 = 10_000;

/// Of one day (UTC), and of the minute before a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// What the day's calls have cost; those that are not over count as much as they can cost.
    pub spent: Cents,
    /// When the last minute's calls were dialled, the oldest first.
    pub dialed: Vec<Moment>,
    pub day_ends: Moment,
}

/// Which limit leaves no room for one more call, and until when at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFull {
    Spend { until: Moment },
    Calls { until: Moment },
}

impl KeyFull {
    pub fn until(self) -> Moment {
        match self {
            KeyFull::Spend { until } | KeyFull::Calls { until } => until,
        }
    }
}

impl KeyUse {
    /// Of the day of that moment, without a call yet.
    pub fn none(at: Moment) -> Self {
        KeyUse {
            spent: Cents(0),
            dialed: Vec::new(),
            day_ends: day_of(at).plus_millis(DAY_MS),
        }
    }

    /// What keeps the key from one more call at that moment, which can cost so much. `None`: nothing does.
    pub fn is_full(&self, key: &api_key::Model, most: Cents, at: Moment) -> Option<KeyFull> {
        let spend = key.max_spend_cents_per_day.map(i64::from);
        if spend.is_some_and(|max| most.0 > 0 && self.spent.0 + most.0 > max) {
            return Some(KeyFull::Spend { until: self.day_ends });
        }
        let max = usize::try_from(key.max_calls_per_minute?).unwrap_or(0);
        let since = at.plus_millis(-MINUTE_MS);
        let recent = self.dialed.iter().filter(|dialed| **dialed > since);
        // The one that has to be a minute ago first.
        let oldest = recent.rev().nth(max.saturating_sub(1))?;
        Some(KeyFull::Calls {
            until: oldest.plus_millis(MINUTE_MS),
        })
    }

    /// One more call, dialled at that moment.
    pub fn add(&mut self, most: Cents, at: Moment) {
        self.spent.0 += most.0;
        let place = self.dialed.partition_point(|dialed| *dialed <= at);
        self.dialed.insert(place, at);
    }
}

fn day_of(at: Moment) -> Moment {
    Moment::from_millis(at.millis().div_euclid(DAY_MS) * DAY_MS)
}

/// The use of a key, for a call that is to be dialled at that moment. `but`: calls that do not count.
#[boxed]
pub async fn key_use(db: &Connection, key: &api_key::Model, at: Moment, but: &[SessionId]) -> Result<KeyUse> {
    let all = || Entity::find().select_only().filter(Column::ApiKeyId.eq(key.id));
    let its = || {
        let but = Some(but).filter(|but| !but.is_empty());
        all().apply_if(but, |its, but| its.filter(Column::Id.is_not_in(but.iter().copied())))
    };
    let mut used = KeyUse::none(at);
    if key.max_spend_cents_per_day.is_some() {
        let day = day_of(at);
        // Nothing that is not over has cost anything, so who does not count need not be asked for: the index alone answers.
        let sum = Expr::cust("CAST(COALESCE(SUM(actual_cost_cents), 0) AS BIGINT)");
        let over = all()
            .filter(Column::DialedAt.gte(day))
            .filter(Expr::cust("actual_cost_cents > 0"))
            .column_as(sum, "spent");
        used.spent = Cents(over.into_tuple().one(db).await?.unwrap_or(0));
        // Of the day by our own look: asked for it, SQLite walks past all that the key has dialled in it.
        let in_flight = its().filter(slots::is_live()).columns([
            Column::DialedAt,
            Column::PriceCentsPerMinute,
            Column::MaxDurationSeconds,
        ]);
        for (dialed_at, price, seconds) in in_flight.into_tuple::<(Option<Moment>, i32, i32)>().all(db).await? {
            if dialed_at.is_some_and(|dialed| dialed >= day) {
                used.spent.0 += Cents::of_talk(price, seconds).0;
            }
        }
    }
    if let Some(max) = key.max_calls_per_minute {
        let minute = its().filter(Column::DialedAt.gte(at.plus_millis(1 - MINUTE_MS)));
        let latest = minute
            .column(Column::DialedAt)
            .order_by(Column::DialedAt, Order::Desc)
            .limit(u64::try_from(max).unwrap_or(0));
        used.dialed = latest.into_tuple().all(db).await?;
        used.dialed.reverse();
    }
    Ok(used)
}

/// What each of a key's calls can cost that waits for its slot now.
#[boxed]
pub async fn waiting_of_key(db: &Connection, key: ApiKeyId) -> Result<Vec<Cents>> {
    let waiting = Entity::find()
        .select_only()
        .columns([Column::PriceCentsPerMinute, Column::MaxDurationSeconds])
        .filter(Column::ApiKeyId.eq(key))
        .filter(slots::is_queued())
        .limit(MOST_WAITING);
    let rows: Vec<(i32, i32)> = waiting.into_tuple().all(db).await?;
    Ok(rows
        .into_iter()
        .map(|(price, seconds)| Cents::of_talk(price, seconds))
        .collect())
}

#[cfg(test)]
#[path = "by_key_tests.rs"]
mod tests;
