//! Contacts: the people in a campaign's list, and what became of each.
use crate::{
    bulk::{self, OnConflict},
    campaign::Channel,
    db::Db,
    error::{Error, Result},
    ids::{CampaignId, ContactId, DeliveryRowId, Owned, SessionId, TenantId},
    page::{self, Listed, Page},
    values::{Country, E164, Env, Moment, Variables, Zone},
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DatabaseTransaction, DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, Statement,
    entity::prelude::*,
    sea_query::{Expr, ExprTrait},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not called yet.
    Pending,
    /// Called without success; waits for its next attempt.
    Waiting,
    /// Being called.
    Dispatched,
    Completed,
    Failed,
    Skipped,
    Canceled,
}

/// Why a contact was not called at all. Source: specification, "Campaign events".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(24))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Why a contact was not called at all.")]
pub enum SkipReason {
    Invalid,
    DncBlocked,
    DailyCapReached,
    QuietHoursExpired,
    ConcurrencyFull,
    TenantSuspended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Called without success; its next attempt is due at `next_attempt_at`.
    Retry,
    /// Its own `not_before`.
    NotBefore,
    /// Its number was called so often that a cap holds it back until `next_attempt_at`.
    Cap,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "contacts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: ContactId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub campaign_id: CampaignId,
    pub external_id: Option<String>,
    /// By what it is reached: its campaign's.
    pub channel: Channel,
    /// Where it is reached; in a campaign once. A number or an address where it could be read, else what was typed.
    pub address: String,
    /// E.164 where it could be read, else what was typed (it will be skipped as `invalid`); empty: none was given.
    pub phone_number: String,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    #[sea_orm(column_type = "JsonBinary")]
    pub variables: Variables,
    /// Where the person is, if it was said.
    pub timezone: Option<Zone>,
    /// The zones whose hours count for it, as one name: contacts of one name keep the same hours. Empty: unknown;
    /// [`UNCALLABLE`]: there is nothing to call.
    pub zone: String,
    /// Not called before this.
    pub not_before: Option<Moment>,
    /// Higher ones are called first.
    pub priority: i32,
    pub status: Status,
    pub wait_reason: Option<WaitReason>,
    pub attempts: i32,
    /// What it was dispatched into last.
    #[sea_orm(column_name = "last_session_id")]
    pub last_row_id: Option<DeliveryRowId>,
    /// It was to be called once more by hand: so many attempts, whatever its campaign's rules say.
    pub attempt_limit: Option<i32>,
    /// Not called before this, for `wait_reason`.
    pub next_attempt_at: Option<Moment>,
    pub skip_reason: Option<SkipReason>,
    /// How its last talk was classified.
    pub disposition_code: Option<String>,
    pub version: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// Where somebody is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    Number(E164),
    /// In lower case.
    Email(String),
}

impl Address {
    pub fn as_str(&self) -> &str {
        match self {
            Address::Number(number) => number.as_str(),
            Address::Email(email) => email,
        }
    }
}

/// The `zone` of a contact whose number is none, or none that may be called.
pub const UNCALLABLE: &str = "!";

impl Model {
    pub fn key(&self) -> Owned<ContactId> {
        Owned::new(self.tenant_id, self.env, self.id)
    }
    /// The session of its last call.
    pub fn last_session_id(&self) -> Option<SessionId> {
        let row = self.last_row_id.filter(|_| self.channel == Channel::Phone)?;
        Some(SessionId(row.0))
    }
    /// As it is told; `None`: it has no number.
    pub fn number(&self) -> Option<String> {
        Some(self.phone_number.clone()).filter(|number| !number.is_empty())
    }
    /// Where it is reached, if that can be.
    pub fn reachable_at(&self) -> Option<Address> {
        match self.channel {
            Channel::Phone | Channel::Sms => self.e164().map(Address::Number),
            Channel::Email => Some(Address::Email(self.address.clone())).filter(|_| self.zone != UNCALLABLE),
        }
    }
    /// What a template finds under that name: the contact's own variables, under its fields' names its fields. Blank is none.
    pub fn value_of(&self, name: &str) -> Option<serde_json::Value> {
        let own = self.variables.0.get(name).filter(|value| !value.is_null()).cloned();
        let field = match name {
            "first_name" => self.first_name.clone(),
            "last_name" => self.last_name.clone(),
            "email" => self.email.clone(),
            "phone_number" => self.number(),
            _ => None,
        };
        own.or(field.map(Into::into))
            .filter(|value: &serde_json::Value| value.as_str().is_none_or(|text| !text.trim().is_empty()))
    }
    /// The number, if it is one.
    pub fn e164(&self) -> Option<E164> {
        // Read anew: what could not be read when it came in was kept as it was typed, and may look like a number.
        E164::parse(&self.phone_number, Country::US)
            .ok()
            .filter(|number| number.as_str() == self.phone_number)
    }
}

pub async fn load(db: &impl ConnectionTrait, key: Owned<ContactId>) -> Result<Model> {
    let select = Entity::find_by_id(key.id)
        .filter(Column::TenantId.eq(key.tenant_id))
        .filter(Column::Env.eq(key.env));
    select.one(db).await?.ok_or(Error::NotFound("contact"))
}

pub async fn list(db: &Db, campaign: Owned<CampaignId>, status: Option<Status>, page: Page) -> Result<Listed<Model>> {
    let all = Entity::find()
        .filter(Column::CampaignId.eq(campaign.id))
        .filter(Column::TenantId.eq(campaign.tenant_id));
    let wanted = Condition::all().add_option(status.map(|status| Column::Status.eq(status)));
    page::search(db, all, wanted, Column::Id, Column::CreatedAt, page).await
}

/// Adds new contacts; answers how many were new. One number, and one `external_id`, is in a campaign once.
pub async fn add(db: &impl ConnectionTrait, rows: &[Model]) -> Result<u64> {
    bulk::save(db, rows, OnConflict::Keep).await
}

/// Those of `external_ids` that the campaign holds with another number than the one given.
pub async fn with_external_ids(
    db: &impl ConnectionTrait,
    campaign: CampaignId,
    external_ids: &[String],
) -> Result<Vec<Model>> {
    let mut found = Vec::new();
    for chunk in external_ids.chunks(500) {
        let select = Entity::find()
            .filter(Column::CampaignId.eq(campaign))
            .filter(Column::ExternalId.is_in(chunk));
        found.extend(select.all(db).await?);
    }
    Ok(found)
}

// Written out, not bound: only so do the databases see that the small indexes of the queues serve.
const FRESH: &str = "status = 'pending' AND next_attempt_at IS NULL";
const DUE: &str = "next_attempt_at IS NOT NULL";

/// The zones of contacts that were never called and wait for nothing.
pub async fn fresh_zones(db: &impl ConnectionTrait, campaign: CampaignId) -> Result<Vec<String>> {
    zones(db, campaign, FRESH).await
}

/// The zones of contacts that wait for a time.
pub async fn due_zones(db: &impl ConnectionTrait, campaign: CampaignId) -> Result<Vec<String>> {
    zones(db, campaign, DUE).await
}

/// A leap per zone, however many contacts there are.
async fn zones(db: &impl ConnectionTrait, campaign: CampaignId, queue: &str) -> Result<Vec<String>> {
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
pub async fn due(db: &impl ConnectionTrait, campaign: CampaignId, now: Moment, limit: u64) -> Result<Vec<Model>> {
    let select = of(campaign, DUE).filter(Column::NextAttemptAt.lte(now));
    Ok(select
        .order_by(Column::NextAttemptAt, Order::Asc)
        .limit(limit)
        .all(db)
        .await?)
}

/// Contacts that wait for a time, in its order, behind that one.
pub async fn waiting_after(
    db: &impl ConnectionTrait,
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

/// Those of them that are there.
pub async fn of_ids(db: &impl ConnectionTrait, ids: &[ContactId]) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::Id.is_in(ids.iter().copied()));
    Ok(select.all(db).await?)
}

/// When the time of the campaign's next contact comes.
pub async fn next_due_at(db: &impl ConnectionTrait, campaign: CampaignId) -> Result<Option<Moment>> {
    let select = of(campaign, DUE).select_only().column(Column::NextAttemptAt);
    Ok(select
        .order_by(Column::NextAttemptAt, Order::Asc)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?)
}

/// A zone's contacts that were never called and wait for nothing: by priority, then in the list's order.
pub async fn fresh(db: &impl ConnectionTrait, campaign: CampaignId, zone: &str, limit: u64) -> Result<Vec<Model>> {
    let select = of(campaign, FRESH)
        .filter(Column::Zone.eq(zone))
        .order_by(Column::Priority, Order::Desc)
        .order_by(Column::Id, Order::Asc);
    Ok(select.limit(limit).all(db).await?)
}

/// Contacts that are neither being called nor at an end, at most `limit`.
pub async fn unfinished(db: &impl ConnectionTrait, campaign: CampaignId, limit: u64) -> Result<Vec<Model>> {
    let mut rows = Vec::new();
    for queue in [FRESH, DUE] {
        let left = limit.saturating_sub(rows.len() as u64);
        if left > 0 {
            rows.extend(of(campaign, queue).limit(left).all(db).await?);
        }
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
/// to many where they are. Nothing is told of them, so that none need be read.
pub async fn cancel(db: &DatabaseTransaction, campaign: CampaignId, limit: i64) -> Result<Canceled> {
    const FIRST_DUE: &str = "SELECT id, status FROM contacts WHERE campaign_id = $1 AND next_attempt_at IS NOT NULL \
                             ORDER BY next_attempt_at, id LIMIT $2";
    let backend = db.get_database_backend();
    let values = |limit: i64| -> [Value; 2] { [campaign.into(), limit.into()] };
    let update = |chosen: &str| {
        format!(
            "UPDATE contacts SET status = 'canceled', wait_reason = NULL, next_attempt_at = NULL, version = version + 1 \
             WHERE id IN (SELECT id FROM ({chosen}) AS chosen)"
        )
    };
    let fresh = update(&format!(
        "SELECT id FROM contacts WHERE campaign_id = $1 AND {FRESH} LIMIT $2"
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
pub async fn fresh_of_all_zones(db: &impl ConnectionTrait, campaign: CampaignId, limit: u64) -> Result<Vec<Model>> {
    Ok(of(campaign, FRESH).limit(limit).all(db).await?)
}

/// Contacts that are neither being called nor at an end, by zone: reads as much of the queues' indexes as there are.
pub async fn waiting_by_zone(db: &impl ConnectionTrait, campaign: CampaignId) -> Result<Vec<(String, i64)>> {
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

/// The campaign's contacts in the order of their ids, a page at a time.
pub async fn after(
    db: &impl ConnectionTrait,
    campaign: CampaignId,
    after: Option<ContactId>,
    limit: u64,
) -> Result<Vec<Model>> {
    let mut select = Entity::find().filter(Column::CampaignId.eq(campaign));
    if let Some(after) = after {
        select = select.filter(Column::Id.gt(after));
    }
    Ok(select.order_by(Column::Id, Order::Asc).limit(limit).all(db).await?)
}

/// Removes one that was never called.
pub async fn remove(db: &impl ConnectionTrait, id: ContactId) -> Result<()> {
    Entity::delete_by_id(id).exec(db).await?;
    Ok(())
}

/// Removes at most `limit` contacts of a campaign that was deleted.
pub async fn remove_some(db: &impl ConnectionTrait, campaign: CampaignId, limit: u64) -> Result<u64> {
    let ids: Vec<ContactId> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::CampaignId.eq(campaign))
        .limit(limit)
        .into_tuple()
        .all(db)
        .await?;
    let removed = Entity::delete_many().filter(Column::Id.is_in(ids)).exec(db).await?;
    Ok(removed.rows_affected)
}

/// Contacts that wait and lack a value for one of these variables; the names of those who lack one of the contact's own
/// fields are among them: `first_name`, `last_name`, `email`, `phone_number`.
pub async fn first_without(
    db: &impl ConnectionTrait,
    campaign: CampaignId,
    names: &[String],
) -> Result<Option<(ContactId, String)>> {
    const PAGE: u64 = 500;
    let mut last = None;
    loop {
        let page = after(db, campaign, last, PAGE).await?;
        for contact in &page {
            if let Some(name) = names.iter().find(|name| contact.value_of(name).is_none()) {
                return Ok(Some((contact.id, name.clone())));
            }
        }
        last = page.last().map(|contact| contact.id);
        if (page.len() as u64) < PAGE {
            return Ok(None);
        }
    }
}

/// The campaign's contact with this number, or address.
pub async fn at_address(db: &impl ConnectionTrait, campaign: CampaignId, address: &str) -> Result<Option<Model>> {
    let select = Entity::find()
        .filter(Column::CampaignId.eq(campaign))
        .filter(Column::Address.eq(address));
    Ok(select.one(db).await?)
}

/// How a contact's last call was classified, after its end.
pub async fn set_disposition(db: &impl ConnectionTrait, id: ContactId, session: SessionId, code: &str) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::DispositionCode, Expr::value(code))
        .filter(Column::Id.eq(id))
        .filter(Column::LastRowId.eq(DeliveryRowId(session.0)))
        .exec(db)
        .await?;
    Ok(())
}
