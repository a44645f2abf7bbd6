//! Agents: who talks. Shared by a tenant's two envs.
use crate::{
    error::{Error, Result},
    ids::{AgentId, TenantId},
    page::{self, Listed, Page},
    values::{Bounded, Moment, Text},
};
use schemars::JsonSchema;
use sea_orm::{FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// Everything about an agent that its user decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    pub name: Text<1, 200>,
    /// The agent's instructions: who it is and what it wants.
    pub prompt: Text<1, 50_000>,
    /// What it says when the other side picks up.
    #[serde(default = "greeting")]
    pub first_message: Text<1, 2_000>,
    /// BCP 47, as `en-US`.
    #[serde(default = "english")]
    pub language: Text<2, 35>,
    /// Null: the tenant's default voice.
    #[serde(default)]
    pub voice_id: Option<Text<1, 100>>,
    #[serde(default)]
    pub brain: Brain,
    /// Seconds after which a call is ended, whatever is being said.
    #[serde(default = "ten_minutes")]
    pub max_duration_seconds: Bounded<30, 7200>,
}

/// What decides the agent's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Brain {
    /// Says prepared lines; deterministic, works without any provider.
    Scripted {
        /// At most 100. Each is said at most once.
        #[serde(default)]
        replies: Vec<Reply>,
    },
}
impl Default for Brain {
    fn default() -> Self {
        Brain::Scripted { replies: Vec::new() }
    }
}

/// One prepared line of a scripted agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// Words of which one must have been heard, in any case; empty: fits anything that no other line fits.
    #[serde(default)]
    pub hear: Vec<Text<1, 100>>,
    pub say: Text<1, 2_000>,
    /// The agent ends the call after this line.
    #[serde(default)]
    pub hang_up: bool,
}

fn greeting() -> Text<1, 2_000> {
    Text::parse("Hello! How can I help you?").unwrap_or_else(|_| unreachable!("a constant"))
}
fn english() -> Text<2, 35> {
    Text::parse("en-US").unwrap_or_else(|_| unreachable!("a constant"))
}
fn ten_minutes() -> Bounded<30, 7200> {
    Bounded::new(600).unwrap_or_else(|_| unreachable!("a constant"))
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "agents")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: AgentId,
    pub tenant_id: TenantId,
    #[sea_orm(column_type = "JsonBinary")]
    pub definition: Definition,
    /// Grows by one with every change.
    pub version: i32,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub deleted_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

pub async fn load(db: &impl ConnectionTrait, tenant: TenantId, id: AgentId) -> Result<Model> {
    let found = Entity::find_by_id(id)
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null())
        .one(db)
        .await?;
    found.ok_or(Error::NotFound("agent"))
}

pub async fn list(db: &impl ConnectionTrait, tenant: TenantId, page: Page) -> Result<Listed<Model>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null());
    page::fetch(db, select, Column::Id, Column::CreatedAt, page).await
}

/// A session in the queue still talks with the agent it was made for.
pub async fn load_even_deleted(db: &impl ConnectionTrait, tenant: TenantId, id: AgentId) -> Result<Model> {
    Entity::find_by_id(id)
        .filter(Column::TenantId.eq(tenant))
        .one(db)
        .await?
        .ok_or(Error::NotFound("agent"))
}
