//! A campaign's counts, kept in step with its contacts and sessions by the transactions that move them.
use crate::{boxed, connection::Connection, error::Result, ids::CampaignId};
use sea_orm::{FromQueryResult, Statement, Value, entity::prelude::*};
use std::collections::BTreeMap;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "campaign_tallies")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub campaign_id: CampaignId,
    pub total: i64,
    pub pending: i64,
    pub waiting: i64,
    pub dispatched: i64,
    pub completed: i64,
    pub failed: i64,
    pub skipped: i64,
    pub canceled: i64,
    pub completed_sessions: i64,
    pub failed_sessions: i64,
    /// What its calls have cost.
    pub cost_cents: i64,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn new(campaign_id: CampaignId) -> Self {
        Model {
            campaign_id,
            total: 0,
            pending: 0,
            waiting: 0,
            dispatched: 0,
            completed: 0,
            failed: 0,
            skipped: 0,
            canceled: 0,
            completed_sessions: 0,
            failed_sessions: 0,
            cost_cents: 0,
        }
    }
    /// Contacts that have not reached a terminal state.
    pub fn unfinished(&self) -> i64 {
        self.pending + self.waiting + self.dispatched
    }
}

/// Two models of differences in one.
impl std::ops::AddAssign for Model {
    fn add_assign(&mut self, by: Self) {
        self.total += by.total;
        self.pending += by.pending;
        self.waiting += by.waiting;
        self.dispatched += by.dispatched;
        self.completed += by.completed;
        self.failed += by.failed;
        self.skipped += by.skipped;
        self.canceled += by.canceled;
        self.completed_sessions += by.completed_sessions;
        self.failed_sessions += by.failed_sessions;
        self.cost_cents += by.cost_cents;
    }
}

#[boxed]
pub async fn load(db: &Connection, campaign: CampaignId) -> Result<Model> {
    Ok(Entity::find_by_id(campaign)
        .one(db)
        .await?
        .unwrap_or_else(|| Model::new(campaign)))
}

pub async fn of(
    db: &Connection,
    campaigns: impl IntoIterator<Item = CampaignId>,
) -> Result<BTreeMap<CampaignId, Model>> {
    let rows = Entity::find()
        .filter(Column::CampaignId.is_in(campaigns))
        .all(db)
        .await?;
    Ok(rows.into_iter().map(|row| (row.campaign_id, row)).collect())
}

#[derive(FromQueryResult)]
struct Remaining {
    unfinished: i64,
}

/// Contacts of all campaigns that wait for a call or a message.
#[boxed]
pub async fn waiting(db: &Connection) -> Result<i64> {
    let text = "SELECT CAST(COALESCE(SUM(pending + waiting), 0) AS BIGINT) FROM campaign_tallies";
    let asked = Statement::from_string(db.get_database_backend(), text);
    let row = db.query_one_raw(asked).await?;
    Ok(row.map(|row| row.try_get_by_index(0)).transpose()?.unwrap_or(0))
}

/// Adds `by` (a model of differences) and answers how many contacts are left unfinished.
#[boxed]
pub async fn add(db: &Connection, by: &Model) -> Result<i64> {
    const TEXT: &str = "UPDATE campaign_tallies SET total = total + $2, pending = pending + $3, waiting = waiting + $4, \
        dispatched = dispatched + $5, completed = completed + $6, failed = failed + $7, skipped = skipped + $8, \
        canceled = canceled + $9, completed_sessions = completed_sessions + $10, failed_sessions = failed_sessions + $11, \
        cost_cents = cost_cents + $12 WHERE campaign_id = $1 RETURNING pending + waiting + dispatched AS unfinished";
    let counts = [
        by.total,
        by.pending,
        by.waiting,
        by.dispatched,
        by.completed,
        by.failed,
        by.skipped,
        by.canceled,
        by.completed_sessions,
        by.failed_sessions,
        by.cost_cents,
    ];
    let mut values: Vec<Value> = vec![by.campaign_id.into()];
    values.extend(counts.into_iter().map(Value::from));
    let statement = Statement::from_sql_and_values(db.get_database_backend(), TEXT, values);
    Ok(Remaining::find_by_statement(statement)
        .one(db)
        .await?
        .map_or(0, |row| row.unfinished))
}
