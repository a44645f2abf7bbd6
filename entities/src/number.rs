//! A tenant's phone numbers: who answers them, and how well. Shared by its two envs. That a tenant has one here says nothing of
//! whose it is: others may have it too, and live use asks for [`number_claim`].
use crate::{
    boxed, bulk,
    connection::Connection,
    error::{Error, Result},
    ids::{AgentId, NumberId, TenantId, TrunkId},
    number_claim,
    owned::of_tenant,
    page::{self, Listed, Page},
    values::{E164, Env, Moment, Text},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, FromJsonQueryResult, Statement, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// What happens to calls that no agent can take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(deny_unknown_fields)]
pub struct Inbound {
    /// The number has no agent.
    #[serde(default)]
    pub without_agent: Otherwise,
    /// All slots are taken.
    #[serde(default)]
    pub without_slot: Otherwise,
    /// For `play_message`.
    #[serde(default)]
    pub message: Option<Text<1, 1_000>>,
    /// In which language it is spoken, BCP 47. Null: that of the number's agent, else of the workspace's country.
    #[serde(default)]
    pub language: Option<Text<2, 35>>,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Otherwise {
    /// The caller hears the busy tone.
    #[default]
    Busy,
    /// The call is turned down.
    Reject,
    /// The caller hears `message`, then the call ends.
    PlayMessage,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "numbers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: NumberId,
    pub tenant_id: TenantId,
    pub phone_number: E164,
    pub label: Option<String>,
    pub trunk_id: Option<TrunkId>,
    pub agent_id: Option<AgentId>,
    #[sea_orm(column_type = "JsonBinary")]
    pub inbound: Inbound,
    /// Under which its texts are registered with the carriers, such as a 10DLC campaign's.
    pub sms_registration: Option<String>,
    pub version: i32,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub deleted_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

of_tenant!(NumberId, "number");

#[boxed]
pub async fn of_number(db: &Connection, tenant: TenantId, number: &E164) -> Result<Option<Model>> {
    let found = owned(tenant).filter(Column::PhoneNumber.eq(number.clone()));
    Ok(found.one(db).await?)
}

/// The tenant's numbers that this agent answers.
#[boxed]
pub async fn of_agent(db: &Connection, tenant: TenantId, agent: AgentId) -> Result<Vec<E164>> {
    let rows = owned(tenant).filter(Column::AgentId.eq(agent)).all(db).await?;
    Ok(rows.into_iter().map(|row| row.phone_number).collect())
}

/// The tenant's numbers that use this trunk.
#[boxed]
pub async fn of_trunk(db: &Connection, tenant: TenantId, trunk: TrunkId) -> Result<Vec<E164>> {
    let rows = owned(tenant).filter(Column::TrunkId.eq(trunk)).all(db).await?;
    Ok(rows.into_iter().map(|row| row.phone_number).collect())
}

/// Does a number of the tenant use this trunk?
#[boxed]
pub async fn is_on_trunk(db: &Connection, tenant: TenantId, trunk: TrunkId) -> Result<bool> {
    let users = owned(tenant).filter(Column::TrunkId.eq(trunk));
    Ok(users.one(db).await?.is_some())
}

/// The trunks that numbers use, of all tenants.
#[boxed]
pub async fn trunks_in_use(db: &Connection) -> Result<Vec<TrunkId>> {
    use sea_orm::QuerySelect;
    let select = Entity::find()
        .select_only()
        .column(Column::TrunkId)
        .distinct()
        .filter(Column::DeletedAt.is_null())
        .filter(Column::TrunkId.is_not_null());
    Ok(select.into_tuple().all(db).await?)
}

/// The number among `numbers` that a live call has come in for over one of `trunks`: that of the workspace which has claimed it.
#[boxed]
pub async fn called_over(db: &Connection, trunks: &[TrunkId], numbers: &[E164]) -> Result<Option<Model>> {
    let found = Entity::find()
        .filter(Column::PhoneNumber.is_in(numbers.iter().cloned()))
        .filter(Column::TrunkId.is_in(trunks.iter().copied()))
        .filter(Column::DeletedAt.is_null());
    for row in found.all(db).await? {
        if number_claim::holds(db, row.tenant_id, &row.phone_number).await? {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Those of `numbers` that the tenant may show in live calls, each with the trunk that it uses.
#[boxed]
pub async fn trunks_of(db: &Connection, tenant: TenantId, numbers: &[E164]) -> Result<Vec<(E164, TrunkId)>> {
    let select = usable(tenant, Env::Live)
        .filter(Column::PhoneNumber.is_in(numbers.iter().cloned()))
        .filter(Column::TrunkId.is_not_null());
    let rows = select.all(db).await?.into_iter();
    Ok(rows.filter_map(|row| Some((row.phone_number, row.trunk_id?))).collect())
}

/// What is known of a number that calls and texts show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerRow {
    pub phone_number: E164,
    pub has_trunk: bool,
    /// What stands behind the workspace's claim of it; `None`: it has none.
    pub claimed_by: Option<number_claim::Source>,
    /// It has an agent that is there, and that listens for the wish not to be called again.
    pub has_agent: bool,
    pub sms_registration: Option<String>,
}

impl CallerRow {
    /// Whoever calls it back live reaches an agent that takes opt-outs.
    pub fn is_answered(&self) -> bool {
        self.has_trunk && self.claimed_by.is_some() && self.has_agent
    }
}

/// Those of `numbers` that the tenant has, each with what live use asks of it, in one look.
#[boxed]
pub async fn callers(db: &Connection, tenant: TenantId, numbers: &[E164]) -> Result<Vec<CallerRow>> {
    // What a JSON's `false` is as text: `0` in SQLite, `false` in PostgreSQL. Left out, it is on.
    const LISTENS: &str =
        "COALESCE(CAST(a.definition -> 'opt_out' ->> 'enabled' AS TEXT), 'true') NOT IN ('0', 'false')";
    let mut found = Vec::new();
    for chunk in bulk::padded(numbers) {
        let backend = db.get_database_backend();
        let mut text = format!(
            "SELECT n.phone_number, n.sms_registration, c.source, \
             CASE WHEN n.trunk_id IS NULL THEN 0 ELSE 1 END, \
             CASE WHEN a.id IS NOT NULL AND {LISTENS} THEN 1 ELSE 0 END \
             FROM numbers n \
             LEFT JOIN number_claims c ON c.phone_number = n.phone_number AND c.tenant_id = n.tenant_id \
             LEFT JOIN agents a ON a.id = n.agent_id AND a.tenant_id = n.tenant_id AND a.deleted_at IS NULL \
             WHERE n.deleted_at IS NULL AND n.phone_number"
        );
        let mut values = bulk::among(&mut text, backend, &chunk);
        values.push(tenant.into());
        text.push_str(" AND n.tenant_id = ");
        bulk::placeholder(&mut text, backend, values.len());
        for row in db
            .query_all_raw(Statement::from_sql_and_values(backend, text, values))
            .await?
        {
            let (has_trunk, has_agent): (i32, i32) = (row.try_get_by_index(3)?, row.try_get_by_index(4)?);
            found.push(CallerRow {
                phone_number: row.try_get_by_index(0)?,
                sms_registration: row.try_get_by_index(1)?,
                claimed_by: row.try_get_by_index(2)?,
                has_trunk: has_trunk == 1,
                has_agent: has_agent == 1,
            });
        }
    }
    Ok(found)
}

/// Whether the alarm of a number's answer rate may ring, per env.
pub mod alarm {
    use super::*;
    use crate::boxed;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "number_alarms")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub number_id: NumberId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub env: Env,
        pub armed: bool,
        pub alarmed_at: Option<Moment>,
    }
    impl ActiveModelBehavior for ActiveModel {}

    #[boxed]
    pub async fn load(db: &Connection, number: NumberId, env: Env) -> Result<Model> {
        let found = Entity::find_by_id((number, env)).one(db).await?;
        Ok(found.unwrap_or(Model {
            number_id: number,
            env,
            armed: true,
            alarmed_at: None,
        }))
    }
}

#[boxed]
pub async fn count(db: &Connection, tenant: TenantId) -> Result<u64> {
    Ok(owned(tenant).count(db).await?)
}

/// Who writes where nobody says otherwise: the tenant's oldest number, in live the oldest that it has claimed.
#[boxed]
pub async fn default_of(db: &Connection, tenant: TenantId, env: Env) -> Result<Option<E164>> {
    oldest(db, usable(tenant, env)).await
}

/// Who calls live where nobody says otherwise: the oldest that it has claimed and that has a trunk.
#[boxed]
pub async fn default_on_trunk(db: &Connection, tenant: TenantId) -> Result<Option<E164>> {
    oldest(db, usable(tenant, Env::Live).filter(Column::TrunkId.is_not_null())).await
}

fn usable(tenant: TenantId, env: Env) -> sea_orm::Select<Entity> {
    use sea_orm::{QuerySelect, QueryTrait};
    let select = owned(tenant);
    match env {
        Env::Test => select,
        Env::Live => {
            let claimed = number_claim::Entity::find()
                .select_only()
                .column(number_claim::Column::PhoneNumber)
                .filter(number_claim::Column::TenantId.eq(tenant));
            select.filter(Column::PhoneNumber.in_subquery(claimed.into_query()))
        }
    }
}

async fn oldest(db: &Connection, select: sea_orm::Select<Entity>) -> Result<Option<E164>> {
    use sea_orm::{Order, QueryOrder, QuerySelect};
    let first = select.order_by(Column::Id, Order::Asc).limit(1).one(db).await?;
    Ok(first.map(|row| row.phone_number))
}

/// May the tenant call and text from a number in that env?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usability {
    /// It is none of the tenant's numbers.
    Foreign,
    /// It is one of them, and not claimed by the tenant, as live use asks for.
    Unverified,
    Usable,
}

#[boxed]
pub async fn usability(db: &Connection, (tenant, env): (TenantId, Env), number: &E164) -> Result<Usability> {
    if of_number(db, tenant, number).await?.is_none() {
        return Ok(Usability::Foreign);
    }
    let usable = env == Env::Test || number_claim::holds(db, tenant, number).await?;
    Ok(if usable {
        Usability::Usable
    } else {
        Usability::Unverified
    })
}

/// The workspace that is called and texted on it live: it has claimed it, and has it among its numbers.
#[boxed]
pub async fn owner_of(db: &Connection, number: &E164) -> Result<Option<TenantId>> {
    let Some(claim) = number_claim::load(db, number).await? else {
        return Ok(None);
    };
    let configured = of_number(db, claim.tenant_id, number).await?;
    Ok(configured.map(|row| row.tenant_id))
}
