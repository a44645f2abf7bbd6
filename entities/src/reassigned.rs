//! What the service for reassigned numbers has answered: was a number given to somebody else since a day? The newest answer of each.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{E164, Env, Moment},
};
use sea_orm::{DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, Value, entity::prelude::*};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ReassignedAnswer {
    /// It has another owner now.
    Yes,
    No,
    /// Nothing is known of the number for so long.
    NoData,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "reassigned_checks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    #[sea_orm(primary_key, auto_increment = false)]
    pub phone_number: E164,
    /// Since when it was asked for.
    pub since: Moment,
    pub answer: ReassignedAnswer,
    pub checked_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// Does it answer the question for that day, too? Who has not given a number away since a day has not since a later one either.
    pub fn answers(&self, since: Moment) -> bool {
        self.since == since || (self.answer == ReassignedAnswer::No && self.since < since)
    }
}

/// The answers about these numbers, by number; none for those that were never asked for.
#[boxed]
pub async fn of_numbers(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    numbers: &[E164],
) -> Result<HashMap<E164, Model>> {
    let mut found = HashMap::new();
    for numbers in bulk::padded(numbers) {
        let select = Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::Env.eq(env))
            .filter(Column::PhoneNumber.is_in(numbers));
        let rows = select.all(db).await?.into_iter();
        found.extend(rows.map(|row| (row.phone_number.clone(), row)));
    }
    Ok(found)
}

/// What was answered last stays.
#[boxed]
pub async fn save(db: &Connection, rows: &[Model]) -> Result<()> {
    bulk::save(db, rows, OnConflict::Replace).await.map(drop)
}

/// The oldest answers from before then, at most so many: whose, and about which number.
#[boxed]
pub async fn oldest(db: &Connection, before: Moment, limit: u64) -> Result<Vec<(TenantId, Env, E164)>> {
    let select = Entity::find()
        .select_only()
        .columns([Column::TenantId, Column::Env, Column::PhoneNumber])
        .filter(Column::CheckedAt.lt(before))
        .order_by(Column::CheckedAt, Order::Asc)
        .limit(limit);
    Ok(select.into_tuple().all(db).await?)
}

#[boxed]
pub async fn prune(db: &Connection, rows: &[(TenantId, Env, E164)]) -> Result<()> {
    let keys: Vec<Vec<Value>> = rows
        .iter()
        .map(|(tenant, env, number)| vec![(*tenant).into(), (*env).into(), number.clone().into()])
        .collect();
    bulk::remove_by_key(db, "reassigned_checks", &["tenant_id", "env", "phone_number"], &keys).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn an_answer_serves_for_its_own_day_and_a_no_for_later_ones() {
        let day = |n: i64| Moment::from_millis(n * 86_400_000);
        let row = |answer| Model {
            tenant_id: TenantId(Uuid::nil()),
            env: Env::Live,
            phone_number: "+12025550123".parse().unwrap(),
            since: day(10),
            answer,
            checked_at: day(20),
        };
        use ReassignedAnswer::{No, NoData, Yes};
        for (answer, since, expected) in [
            (No, 10, true),
            (No, 11, true),
            (No, 9, false),
            (Yes, 10, true),
            (Yes, 11, false),
            (NoData, 10, true),
            (NoData, 11, false),
        ] {
            assert_eq!(row(answer).answers(day(since)), expected, "{answer:?} for day {since}");
        }
    }
}
