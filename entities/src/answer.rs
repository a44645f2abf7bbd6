//! What people answered to agents' questions, each with the turn that shows it.
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::{AgentId, AnswerId, CampaignId, ContactId, SessionId, TenantId},
    keys,
    page::{self, Listed, Page},
    values::{Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// Who found it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The agent, during the talk.
    Agent,
    /// A person, through the API.
    Human,
    /// A language model, after the talk.
    Llm,
    /// Plain rules, after the talk.
    Rules,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "answers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: AnswerId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub session_id: SessionId,
    pub agent_id: AgentId,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    pub question_key: String,
    pub question: String,
    #[sea_orm(column_type = "JsonBinary")]
    pub value: Json,
    /// The place of the turn in the transcript, from 0.
    pub evidence_turn: Option<i32>,
    pub source: Source,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// What a list is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub session_id: Option<SessionId>,
    pub agent_id: Option<AgentId>,
    pub campaign_id: Option<CampaignId>,
    pub question_key: Option<String>,
}

fn filtered(tenant: TenantId, env: Env, filter: &Filter) -> sea_orm::Select<Entity> {
    let mut select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env));
    if let Some(session) = filter.session_id {
        select = select.filter(Column::SessionId.eq(session));
    }
    if let Some(agent) = filter.agent_id {
        select = select.filter(Column::AgentId.eq(agent));
    }
    if let Some(campaign) = filter.campaign_id {
        select = select.filter(Column::CampaignId.eq(campaign));
    }
    if let Some(key) = &filter.question_key {
        select = select.filter(Column::QuestionKey.eq(key.as_str()));
    }
    select
}

#[boxed]
pub async fn list(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    filter: &Filter,
    page: Page,
) -> Result<Listed<Model>> {
    page::fetch(db, filtered(tenant, env, filter), Column::Id, Column::CreatedAt, page).await
}

/// A page of an export, oldest first: those of the next `looked_at` answers that the filter lets through, and behind which one
/// the next page begins, if there is one. So no page looks through more than that, however few it finds.
#[boxed]
pub async fn next(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    filter: &Filter,
    after: Option<AnswerId>,
    looked_at: u64,
) -> Result<(Vec<Model>, Option<AnswerId>)> {
    let behind = |select: sea_orm::Select<Entity>| match after {
        Some(after) => select.filter(Column::Id.gt(after)),
        None => select,
    };
    let mut select = behind(filtered(tenant, env, filter));
    // A call has few, and its own index.
    if filter.session_id.is_some() {
        return Ok((select.order_by(Column::Id, Order::Asc).all(db).await?, None));
    }
    let ids: Vec<AnswerId> = behind(filtered(tenant, env, &Filter::default()))
        .select_only()
        .column(Column::Id)
        .order_by(Column::Id, Order::Asc)
        .limit(looked_at)
        .into_tuple()
        .all(db)
        .await?;
    let last = ids.last().filter(|_| ids.len() as u64 >= looked_at).copied();
    if let Some(last) = last {
        select = select.filter(Column::Id.lte(last));
    }
    Ok((select.order_by(Column::Id, Order::Asc).all(db).await?, last))
}

#[boxed]
pub async fn of_session(db: &Connection, session: SessionId) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::SessionId.eq(session));
    Ok(select.order_by(Column::Id, Order::Asc).all(db).await?)
}

/// With a session that is deleted.
#[boxed]
pub async fn delete_of(db: &Connection, session: SessionId) -> Result<()> {
    Entity::delete_many()
        .filter(Column::SessionId.eq(session))
        .exec(db)
        .await?;
    Ok(())
}

/// Removes what was answered in these sessions.
#[boxed]
pub async fn remove(db: &Connection, sessions: &[SessionId]) -> Result<()> {
    keys::remove(db, Entity, Column::SessionId, sessions).await
}
