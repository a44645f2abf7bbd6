//! E-mails to people outside: one row per message, from its order to its end; its text apart.
use crate::{
    boxed,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{CampaignId, ContactId, EmailId, TenantId, TenantScoped},
    law::MessageLegal,
    message::Messages,
    owned::of_tenant_and_env,
    page::{self, Listed, Page},
    values::{Cents, Env, Metadata, Moment},
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, QueryTrait, entity::prelude::*,
    sea_query::Expr,
};
use serde::{Deserialize, Serialize};

/// How far a message is, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
pub enum Phase {
    /// Waits for its time.
    Scheduled,
    /// Is to be handed to the mail server.
    Queued,
    /// May have left: it is never handed over a second time from here.
    Sending,
    /// The server would not have it now; it is tried again.
    Deferred,
    /// The server has taken it.
    Sent,
    /// The server knows no such recipient, or takes nothing for it.
    Bounced,
    Failed,
    Canceled,
}

impl Phase {
    pub fn status(self) -> Status {
        match self {
            Phase::Scheduled => Status::Scheduled,
            Phase::Queued | Phase::Sending => Status::Queued,
            Phase::Deferred => Status::Deferred,
            Phase::Sent => Status::Sent,
            Phase::Bounced => Status::Bounced,
            Phase::Failed => Status::Failed,
            Phase::Canceled => Status::Canceled,
        }
    }
}

/// How far a message is, as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "EmailStatus", description = "How far the message is.")]
pub enum Status {
    Scheduled,
    Queued,
    Deferred,
    Sent,
    Bounced,
    Failed,
    Canceled,
}

impl Status {
    fn phases(self) -> impl Iterator<Item = Phase> {
        <Phase as sea_orm::Iterable>::iter().filter(move |phase| phase.status() == self)
    }
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(
    rename = "EmailKind",
    description = "`marketing` carries the headers by which mail programs unsubscribe, and name and address of who sends it."
)]
pub enum Kind {
    /// Belongs to something that the reader asked for.
    #[default]
    Transactional,
    Marketing,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "email_messages")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: EmailId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub phase: Phase,
    /// In lower case.
    pub to_address: String,
    pub from_name: Option<String>,
    pub reply_to: Option<String>,
    pub subject: String,
    pub kind: Kind,
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
    /// What the mail server said when it took it.
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
    type Id = EmailId;
    const KEY: [Column; 3] = [Column::TenantId, Column::Env, Column::Id];
    const WAKE_AT: Column = Column::WakeAt;
    const SENT_AT: Column = Column::SentAt;
    const ENDED_AT: Column = Column::EndedAt;
    const ADDRESS: Column = Column::ToAddress;
    /// What can be unsubscribed by a link is kept.
    fn is_over(kept_until: Moment) -> Condition {
        let old = Condition::any()
            .add(Column::Kind.eq(Kind::Transactional))
            .add(Column::CreatedAt.lt(kept_until));
        let is_over = "phase NOT IN ('scheduled', 'queued', 'sending', 'deferred')";
        Condition::all().add(old).add(Expr::cust(is_over))
    }
}

of_tenant_and_env!(EmailId, "message");

/// One that was not erased: what anybody outside finds.
#[boxed]
pub async fn shown(db: &Connection, key: TenantScoped<EmailId>) -> Result<Model> {
    let row = load(db, key).await?;
    match row.deleted_at {
        Some(_) => Err(Error::NotFound("message")),
        None => Ok(row),
    }
}

/// The message behind a link that carries its own proof.
#[boxed]
pub async fn behind_link(db: &Connection, id: EmailId) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(id).one(db).await?)
}

/// What a list is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub to: Option<String>,
    pub kind: Option<Kind>,
}

#[boxed]
pub async fn list(db: &Db, owner: (TenantId, Env), filter: Filter, page: Page) -> Result<Listed<Model>> {
    let all = owned(owner.0, owner.1)
        .filter(Column::DeletedAt.is_null())
        .apply_if(filter.status, |all, status| {
            all.filter(Column::Phase.is_in(status.phases()))
        })
        .apply_if(filter.to, |all, to| all.filter(Column::ToAddress.eq(to)))
        .apply_if(filter.kind, |all, kind| all.filter(Column::Kind.eq(kind)));
    page::fetch(&db.read, all, Column::Id, Column::CreatedAt, page).await
}

/// E-mails to an address, those that were erased, too.
#[boxed]
pub async fn count_of_address(db: &Connection, (tenant, env): (TenantId, Env), to: &str) -> Result<i64> {
    let all = owned(tenant, env).filter(Column::ToAddress.eq(to));
    Ok(i64::try_from(all.count(db).await?).unwrap_or(i64::MAX))
}

/// Messages that are not sent yet.
#[boxed]
pub async fn count_open(db: &Connection, (tenant, env): (TenantId, Env)) -> Result<u64> {
    let open = owned(tenant, env).filter(Expr::cust("phase IN ('scheduled', 'queued', 'sending', 'deferred')"));
    Ok(open.count(db).await?)
}

/// All of all tenants, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<EmailId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

/// Some that were made before then and wait for nothing any more. What can be unsubscribed by a link is kept until
/// `marketing_before`.
#[boxed]
pub async fn oldest(db: &Connection, before: Moment, marketing_before: Moment, limit: u64) -> Result<Vec<EmailId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::CreatedAt.lt(before))
        .filter(<Entity as Messages>::is_over(marketing_before))
        .order_by(Column::CreatedAt, Order::Asc)
        .limit(limit);
    Ok(select.into_tuple().all(db).await?)
}

#[boxed]
pub async fn prune(db: &Connection, ids: &[EmailId]) -> Result<()> {
    content::Entity::delete_many()
        .filter(content::Column::MessageId.is_in(ids.iter().copied()))
        .exec(db)
        .await?;
    Entity::delete_many()
        .filter(Column::Id.is_in(ids.iter().copied()))
        .exec(db)
        .await?;
    Ok(())
}

/// What is in a message. Written with it, and never changed.
pub mod content {
    use super::*;
    use crate::boxed;
    use sea_orm::FromJsonQueryResult;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "email_contents")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub message_id: EmailId,
        pub tenant_id: TenantId,
        pub text: Option<String>,
        pub html: Option<String>,
        #[sea_orm(column_type = "JsonBinary")]
        pub attachments: Attachments,
    }
    impl ActiveModelBehavior for ActiveModel {}

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
    #[serde(transparent)]
    pub struct Attachments(pub Vec<Attachment>);

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Attachment {
        pub filename: String,
        pub content_type: String,
        /// Base64.
        pub content: String,
    }

    /// Nobody reads it any more.
    #[boxed]
    pub async fn delete(db: &Connection, ids: &[EmailId]) -> Result<()> {
        Entity::delete_many()
            .filter(Column::MessageId.is_in(ids.iter().copied()))
            .exec(db)
            .await?;
        Ok(())
    }

    #[boxed]
    pub async fn load(db: &Connection, key: TenantScoped<EmailId>) -> Result<Model> {
        let found = Entity::find_by_id(key.id).filter(Column::TenantId.eq(key.tenant_id));
        found.one(db).await?.ok_or(Error::NotFound("message"))
    }
}
