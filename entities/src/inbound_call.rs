//! Every call that came in, also those that nobody answered: what a number's answer rate is counted from.
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::{InboundCallId, NumberId, SessionId, TenantId},
    values::{E164, Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, entity::prelude::*};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum InboundOutcome {
    /// An agent took it.
    Answered,
    /// The number has no agent.
    NoAgent,
    /// All slots were taken.
    NoSlot,
    /// The caller gave up before anybody answered.
    Abandoned,
    /// The workspace may not take calls now: suspended, without credits, or the service is stopping. Not counted in any rate.
    Blocked,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "inbound_calls")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: InboundCallId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub number_id: NumberId,
    pub from_number: Option<E164>,
    pub session_id: Option<SessionId>,
    pub outcome: InboundOutcome,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// Calls to a number in a while, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub answered: i64,
    pub no_agent: i64,
    pub no_slot: i64,
    pub abandoned: i64,
    pub blocked: i64,
}
impl Counts {
    /// All but what nobody could have taken.
    pub fn total(&self) -> i64 {
        self.answered + self.no_agent + self.no_slot + self.abandoned
    }
    /// From 0 to 1; `None` without calls.
    pub fn answer_rate(&self) -> Option<f64> {
        (self.total() > 0).then(|| self.answered as f64 / self.total() as f64)
    }
}

#[boxed]
pub async fn counts_since(db: &Connection, number: NumberId, env: Env, since: Moment) -> Result<Counts> {
    let select = Entity::find()
        .select_only()
        .column(Column::Outcome)
        .column_as(Column::Id.count(), "calls")
        .filter(Column::NumberId.eq(number))
        .filter(Column::Env.eq(env))
        .filter(Column::CreatedAt.gt(since))
        .group_by(Column::Outcome);
    let rows: Vec<(InboundOutcome, i64)> = select.into_tuple().all(db).await?;
    let mut counts = Counts::default();
    for (outcome, calls) in rows {
        *match outcome {
            InboundOutcome::Answered => &mut counts.answered,
            InboundOutcome::NoAgent => &mut counts.no_agent,
            InboundOutcome::NoSlot => &mut counts.no_slot,
            InboundOutcome::Abandoned => &mut counts.abandoned,
            InboundOutcome::Blocked => &mut counts.blocked,
        } = calls;
    }
    Ok(counts)
}

/// The oldest calls that came in before then. Ids grow with time: no look at the others.
#[boxed]
pub async fn oldest(db: &Connection, before: Moment, rows: u64) -> Result<Vec<InboundCallId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::Id.lt(InboundCallId::floor(before)))
        .order_by(Column::Id, Order::Asc);
    Ok(select.limit(rows).into_tuple().all(db).await?)
}

#[boxed]
pub async fn prune(db: &Connection, ids: &[InboundCallId]) -> Result<u64> {
    let these = Entity::delete_many().filter(Column::Id.is_in(ids.iter().copied()));
    Ok(these.exec(db).await?.rows_affected)
}
