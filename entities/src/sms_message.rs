//! SMS: one row per message, from its order to its end; and what came in.
use crate::{
    boxed,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{CampaignId, ContactId, SmsId, TenantId, TenantScoped},
    keys,
    law::MessageLegal,
    message::Messages,
    owned::of_tenant_and_env,
    page::{self, Listed, Page},
    values::{Cents, E164, Env, Metadata, Moment},
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, QueryTrait, Statement, entity::prelude::*,
    sea_query::Expr,
};
use serde::{Deserialize, Serialize};

/// How far a message is, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
pub enum Phase {
    /// Waits for its time.
    Scheduled,
    /// Is to be handed to the provider.
    Queued,
    /// May have left: it is never handed over a second time from here.
    Sending,
    /// The provider has taken it.
    Sent,
    Delivered,
    Undelivered,
    Failed,
    Canceled,
    /// Came in.
    Received,
}

impl Phase {
    pub fn status(self) -> Status {
        match self {
            Phase::Scheduled => Status::Scheduled,
            Phase::Queued | Phase::Sending => Status::Queued,
            Phase::Sent => Status::Sent,
            Phase::Delivered => Status::Delivered,
            Phase::Undelivered => Status::Undelivered,
            Phase::Failed => Status::Failed,
            Phase::Canceled => Status::Canceled,
            Phase::Received => Status::Received,
        }
    }
}

/// How far a message is, as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How far the message is.")]
pub enum Status {
    Scheduled,
    Queued,
    Sent,
    Delivered,
    Undelivered,
    Failed,
    Canceled,
    Received,
}

impl Status {
    fn phases(self) -> impl Iterator<Item = Phase> {
        <Phase as sea_orm::Iterable>::iter().filter(move |phase| phase.status() == self)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Who wrote: `outbound` is this workspace.")]
pub enum Direction {
    Outbound,
    Inbound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How the text travels: `gsm7` fits 160 characters into a segment, `ucs2` 70.")]
pub enum Encoding {
    Gsm7,
    Ucs2,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "sms_messages")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: SmsId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub phase: Phase,
    pub direction: Direction,
    pub to_number: E164,
    pub from_number: Option<E164>,
    pub body: String,
    pub encoding: Encoding,
    pub segments: i32,
    pub delivered_at: Option<Moment>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    /// None: the service says it by itself, or it was made before there were rules of law.
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub legal: Option<MessageLegal>,
    pub client_reference_id: Option<String>,
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Metadata,
    pub scheduled_at: Option<Moment>,
    /// A campaign's is not sent later: its hours close, or its time is over.
    pub send_by: Option<Moment>,
    /// The next moment at which its actor has something to do.
    pub wake_at: Option<Moment>,
    /// Intents to hand it over.
    pub attempts: i32,
    /// What it costs once it is sent.
    pub price_cents: Cents,
    /// What the ledger holds for it now.
    pub held_cents: Cents,
    /// What it has cost.
    pub cost_cents: Cents,
    /// It was charged, or will not be.
    pub settled: bool,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub provider_message_id: Option<String>,
    pub version: i32,
    pub created_at: Moment,
    pub sent_at: Option<Moment>,
    pub ended_at: Option<Moment>,
    /// When what it said was erased.
    pub deleted_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

impl Messages for Entity {
    type Id = SmsId;
    const KEY: [Column; 3] = [Column::TenantId, Column::Env, Column::Id];
    const WAKE_AT: Column = Column::WakeAt;
    const SENT_AT: Column = Column::SentAt;
    const ENDED_AT: Column = Column::EndedAt;
    const ADDRESS: Column = Column::ToNumber;
    fn is_over(_: Moment) -> Condition {
        Condition::all().add(Expr::cust("phase NOT IN ('scheduled', 'queued', 'sending')"))
    }
}

of_tenant_and_env!(SmsId, "message");

/// One that was not erased: what anybody outside finds.
#[boxed]
pub async fn shown(db: &Connection, key: TenantScoped<SmsId>) -> Result<Model> {
    let row = load(db, key).await?;
    match row.deleted_at {
        Some(_) => Err(Error::NotFound("message")),
        None => Ok(row),
    }
}

/// Whose it is, for a provider's report that carries its own proof.
#[boxed]
pub async fn owner_of(db: &Connection, id: SmsId) -> Result<Option<TenantScoped<SmsId>>> {
    Ok(Entity::find_by_id(id).one(db).await?.map(|row| row.key()))
}

/// What a list is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub direction: Option<Direction>,
    pub to_number: Option<E164>,
    pub from_number: Option<E164>,
}

#[boxed]
pub async fn list(db: &Db, owner: (TenantId, Env), filter: Filter, page: Page) -> Result<Listed<Model>> {
    let all = owned(owner.0, owner.1)
        .filter(Column::DeletedAt.is_null())
        .apply_if(filter.status, |all, status| {
            all.filter(Column::Phase.is_in(status.phases()))
        })
        .apply_if(filter.direction, |all, direction| {
            all.filter(Column::Direction.eq(direction))
        })
        .apply_if(filter.to_number, |all, number| all.filter(Column::ToNumber.eq(number)))
        .apply_if(filter.from_number, |all, number| {
            all.filter(Column::FromNumber.eq(number))
        });
    page::fetch(&db.read, all, Column::Id, Column::CreatedAt, page).await
}

/// Texts to and from a number, those that were erased, too.
#[boxed]
pub async fn count_of_number(db: &Connection, (tenant, env): (TenantId, Env), number: &E164) -> Result<i64> {
    let of = |direction: Direction, column: Column| {
        let all = owned(tenant, env).filter(Column::Direction.eq(direction));
        all.filter(column.eq(number.clone()))
    };
    let sent = of(Direction::Outbound, Column::ToNumber).count(db).await?;
    let received = of(Direction::Inbound, Column::FromNumber).count(db).await?;
    Ok(i64::try_from(sent + received).unwrap_or(i64::MAX))
}

/// Messages that are not sent yet.
#[boxed]
pub async fn count_open(db: &Connection, (tenant, env): (TenantId, Env)) -> Result<u64> {
    let open = owned(tenant, env).filter(Expr::cust("phase IN ('scheduled', 'queued', 'sending')"));
    Ok(open.count(db).await?)
}

/// A message that came in, by its provider's id.
#[boxed]
pub async fn inbound(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    provider_message_id: &str,
) -> Result<Option<Model>> {
    let select = owned(tenant, env)
        .filter(Expr::cust("direction = 'inbound'"))
        .filter(Column::ProviderMessageId.eq(provider_message_id));
    Ok(select.one(db).await?)
}

/// Who has texted `person` from `number`, or may have, with a live key: first who surely did, the last of them first. Counted
/// from the intents, which are kept; from which number a text went is known only as long as the text itself is, or where no
/// service chose one.
#[boxed]
pub async fn senders(db: &Connection, person: &E164, number: &E164, limit: u16) -> Result<Vec<TenantId>> {
    // The tenants come first: the intents' own key begins with them.
    const TEXT: &str = "SELECT t.id FROM tenants t CROSS JOIN message_sends s LEFT JOIN sms_messages m \
        ON m.tenant_id = s.tenant_id AND m.id = s.message_id \
        WHERE s.tenant_id = t.id AND s.env = 'live' AND s.channel = 'sms' AND s.address = $1 \
        AND (m.id IS NULL OR m.from_number IS NULL OR m.from_number = $2) GROUP BY t.id \
        ORDER BY MAX(CASE WHEN m.from_number = $2 THEN 1 ELSE 0 END) DESC, MAX(s.seq) DESC LIMIT $3";
    let values = [person.clone().into(), number.clone().into(), i64::from(limit).into()];
    let statement = Statement::from_sql_and_values(db.get_database_backend(), TEXT, values);
    let rows = db.query_all_raw(statement).await?;
    rows.iter().map(|row| Ok(row.try_get_by_index(0)?)).collect()
}

/// All of all tenants that were to be sent, a page at a time: for the audit.
pub async fn outbound_after(db: &Connection, after: Option<SmsId>, limit: u64) -> Result<Vec<Model>> {
    let outbound = Entity::find().filter(Column::Direction.eq(Direction::Outbound));
    page::behind(db, outbound, Column::Id, after, limit).await
}

/// Some that were made before then and wait for nothing any more.
#[boxed]
pub async fn oldest(db: &Connection, before: Moment, limit: u64) -> Result<Vec<SmsId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::CreatedAt.lt(before))
        .filter(<Entity as Messages>::is_over(before))
        .order_by(Column::CreatedAt, Order::Asc)
        .limit(limit);
    Ok(select.into_tuple().all(db).await?)
}

#[boxed]
pub async fn prune(db: &Connection, ids: &[SmsId]) -> Result<()> {
    keys::remove(db, Entity, Column::Id, ids).await
}
