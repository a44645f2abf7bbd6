//! Who is not to be called for a while, and why: after a no, and after a call that was answered and abandoned. One row for each
//! number and cause; the newest wins. How long a rest is, the law of the place says.
use crate::{
    boxed, bulk,
    bulk::{OnConflict, batch::Batch},
    connection::Connection,
    error::Result,
    ids::{SessionId, TenantId},
    values::{E164, Env, Moment},
};
use sea_orm::{DeriveActiveEnum, EnumIter, QuerySelect, Statement, Value, entity::prelude::*};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Why somebody is given a rest.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RestCause {
    /// The person said no to what was offered.
    Declined,
    /// The person answered, and was left with silence or a recorded message.
    Abandoned,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "rests")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    #[sea_orm(primary_key, auto_increment = false)]
    pub phone_number: E164,
    #[sea_orm(primary_key, auto_increment = false)]
    pub cause: RestCause,
    pub since: Moment,
    /// The call that it comes of; it may be gone.
    pub session_id: Option<SessionId>,
}
impl ActiveModelBehavior for ActiveModel {}

/// Writes them; a stored one that is newer stays.
#[boxed]
pub async fn put(batch: &mut Batch<'_>, rows: &[&Model]) -> Result<()> {
    let newest = bulk::sums(
        rows,
        |row| (row.tenant_id, row.env.as_str(), row.phone_number.clone(), row.cause),
        |known, row| {
            if row.since >= known.since {
                known.clone_from(row);
            }
        },
    );
    batch
        .save(&newest.iter().collect::<Vec<_>>(), OnConflict::Newest("since"))
        .await
}

/// What gives each of `numbers` a rest, or has given it one.
#[boxed]
pub async fn of_numbers(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    numbers: &[E164],
) -> Result<HashMap<E164, Vec<Model>>> {
    let mut found: HashMap<E164, Vec<Model>> = HashMap::new();
    for chunk in bulk::padded(numbers) {
        let backend = db.get_database_backend();
        let mut text = String::from("SELECT phone_number, cause, since, session_id FROM rests WHERE phone_number");
        let mut values = bulk::among(&mut text, backend, &chunk);
        for (clause, value) in [(" AND tenant_id = ", Value::from(tenant)), (" AND env = ", env.into())] {
            values.push(value);
            text.push_str(clause);
            bulk::placeholder(&mut text, backend, values.len());
        }
        for row in db
            .query_all_raw(Statement::from_sql_and_values(backend, text, values))
            .await?
        {
            let phone_number: E164 = row.try_get_by_index(0)?;
            found.entry(phone_number.clone()).or_default().push(Model {
                tenant_id: tenant,
                env,
                phone_number,
                cause: row.try_get_by_index(1)?,
                since: row.try_get_by_index(2)?,
                session_id: row.try_get_by_index(3)?,
            });
        }
    }
    Ok(found)
}

/// All of one number, in both envs if need be: for the file of one person.
#[boxed]
pub async fn of_person(db: &Connection, (tenant, env): (TenantId, Env), number: &E164) -> Result<Vec<Model>> {
    let its = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::PhoneNumber.eq(number.clone()));
    Ok(its.all(db).await?)
}

/// The moment before which some `rows` of the oldest began; `None`: none began before `before`.
#[boxed]
pub async fn oldest(db: &Connection, before: Moment, rows: u64) -> Result<Option<Moment>> {
    use sea_orm::{Order, QueryOrder};
    let select = Entity::find()
        .select_only()
        .column(Column::Since)
        .filter(Column::Since.lt(before))
        .order_by(Column::Since, Order::Asc)
        .limit(rows);
    let found: Vec<Moment> = select.into_tuple().all(db).await?;
    Ok(found.last().copied())
}

/// Removes those that began then or earlier.
#[boxed]
pub async fn prune(db: &Connection, until: Moment) -> Result<u64> {
    let these = Entity::delete_many().filter(Column::Since.lte(until));
    Ok(these.exec(db).await?.rows_affected)
}
