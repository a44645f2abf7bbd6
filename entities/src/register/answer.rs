//! What registers that are asked over an API have said of numbers: the newest answer of each register about each number.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::Result,
    ids::{RegisterId, TenantId},
    values::{E164, Env, Moment},
};
use sea_orm::{Order, QueryOrder, QuerySelect, Value, entity::prelude::*};
use std::collections::BTreeSet;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "register_answers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    #[sea_orm(primary_key, auto_increment = false)]
    pub phone_number: E164,
    /// The register, as rules name it.
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    /// Of this answer: the next one about the number has another.
    pub id: RegisterId,
    pub is_listed: bool,
    /// Since which day, counted from the first of January 2000; none: nobody has said it.
    pub listed_on: Option<i32>,
    /// As of when the register says so; never later than `asked_at`.
    pub as_of: Moment,
    pub asked_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// Whose answer, about which number, and of which register.
pub type Key = (TenantId, Env, E164, String);

/// What these registers have answered about these numbers; nothing of those that were never asked about.
#[boxed]
pub async fn of_numbers(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    names: &[&str],
    numbers: &[E164],
) -> Result<Vec<Model>> {
    let mut found = Vec::new();
    for numbers in bulk::padded(numbers) {
        let select = Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::Env.eq(env))
            .filter(Column::Name.is_in(names.iter().copied()))
            .filter(Column::PhoneNumber.is_in(numbers));
        found.extend(select.all(db).await?);
    }
    Ok(found)
}

/// Has none of these been followed by another, or been erased? Asked inside the transaction that commits a dial.
#[boxed]
pub async fn are_newest(db: &Connection, ids: &[RegisterId]) -> Result<bool> {
    let wanted: BTreeSet<RegisterId> = ids.iter().copied().collect();
    let wanted: Vec<RegisterId> = wanted.into_iter().collect();
    let mut there = 0;
    for ids in bulk::padded(&wanted) {
        let select = Entity::find()
            .select_only()
            .column(Column::Id)
            .filter(Column::Id.is_in(ids));
        let rows: Vec<RegisterId> = select.into_tuple().all(db).await?;
        there += rows.len();
    }
    Ok(there == wanted.len())
}

/// What was answered last stays.
#[boxed]
pub async fn save(db: &Connection, rows: &[Model]) -> Result<()> {
    bulk::save(db, rows, OnConflict::Replace).await.map(drop)
}

/// The oldest answers from before then, at most so many.
#[boxed]
pub async fn oldest(db: &Connection, before: Moment, limit: u64) -> Result<Vec<Key>> {
    let select = Entity::find()
        .select_only()
        .columns([Column::TenantId, Column::Env, Column::PhoneNumber, Column::Name])
        .filter(Column::AskedAt.lt(before))
        .order_by(Column::AskedAt, Order::Asc)
        .limit(limit);
    Ok(select.into_tuple().all(db).await?)
}

#[boxed]
pub async fn prune(db: &Connection, rows: &[Key]) -> Result<()> {
    let keys: Vec<Vec<Value>> = rows
        .iter()
        .map(|(tenant, env, number, name)| {
            vec![
                (*tenant).into(),
                (*env).into(),
                number.clone().into(),
                name.clone().into(),
            ]
        })
        .collect();
    let key = ["tenant_id", "env", "phone_number", "name"];
    bulk::remove_by_key(db, "register_answers", &key, &keys).await
}

/// All that was answered about a number: its person is erased.
#[boxed]
pub async fn forget(db: &Connection, (tenant, env): (TenantId, Env), number: &E164) -> Result<()> {
    Entity::delete_many()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::PhoneNumber.eq(number.clone()))
        .exec(db)
        .await?;
    Ok(())
}
