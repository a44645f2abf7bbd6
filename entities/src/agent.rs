//! Agents: who talks. Shared by a tenant's two envs.
mod brain;
mod turns;

pub use brain::{Brain, Reply, ScriptedCall, Temperature};
pub use turns::{Interruption, Sensitivity, TurnDetection, TurnMode};

use crate::{
    boxed,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{AgentId, FunctionId, TenantId},
    names,
    page::{self, Listed, Page},
    values::{Bounded, E164, Moment, Text},
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DeriveActiveEnum, EnumIter, ExprTrait, FromJsonQueryResult, entity::prelude::*, sea_query::Expr,
};
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
    /// BCP 47, such as `en-US`.
    #[serde(default = "english")]
    pub language: Text<2, 35>,
    /// Null: the tenant's default voice.
    #[serde(default)]
    pub voice_id: Option<Text<1, 100>>,
    #[serde(default)]
    pub brain: Brain,
    /// Functions that it may call during a talk; at most 20.
    #[serde(default)]
    pub function_ids: Vec<FunctionId>,
    /// How its campaign calls are classified; at most 50. A campaign may have its own.
    #[serde(default)]
    pub dispositions: Vec<Disposition>,
    /// What it should find out; at most 50.
    #[serde(default)]
    pub questions: Vec<Question>,
    #[serde(default)]
    pub recording: Recording,
    /// Who it may hand a call over to; null: nobody.
    #[serde(default)]
    pub transfer: Option<Transfer>,
    /// Seconds after which a call is ended, whatever is being said.
    #[serde(default = "ten_minutes")]
    pub max_duration_seconds: Bounded<30, 7200>,
    #[serde(default)]
    pub silence: Silence,
    #[serde(default)]
    pub opt_out: OptOut,
    #[serde(default)]
    pub turn_detection: TurnDetection,
    #[serde(default)]
    pub interruption: Interruption,
}

/// One way a call can have gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disposition {
    /// Unique in its list, such as `interested`.
    pub code: Text<1, 64>,
    #[serde(default)]
    pub label: Option<Text<1, 200>>,
    /// When it fits: the classifier reads this.
    #[serde(default)]
    pub description: Option<Text<1, 1_000>>,
    /// The person said no: where the law asks for a rest after a no, it starts with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declined: bool,
}

/// Something the agent should find out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Unique in its agent, such as `budget`.
    pub key: Text<1, 64>,
    /// In the agent's words.
    pub text: Text<1, 500>,
    #[serde(default)]
    pub r#type: QuestionType,
    /// For `choice`: the possible answers; 2 to 50.
    #[serde(default)]
    pub options: Vec<Text<1, 200>>,
    /// The agent does not end the talk on its own before it has asked.
    #[serde(default)]
    pub required: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionType {
    #[default]
    Text,
    Number,
    Boolean,
    Choice,
    /// As `2027-03-02`.
    Date,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    #[serde(default)]
    pub enabled: bool,
    #[serde(default)]
    pub channels: Channels,
    /// What is asked of, or told to, the other side before anything is recorded.
    #[serde(default)]
    pub consent: ConsentMode,
    /// The notice or the question; null: a plain one in the agent's language.
    #[serde(default)]
    pub consent_message: Option<Text<1, 500>>,
    /// Null: kept until it is deleted.
    #[serde(default)]
    pub retention_days: Option<Bounded<1, 3650>>,
    /// Also what is said after the call was handed over, over a trunk whose `transfer` is `bridge`. Whoever takes over is not told.
    #[serde(default)]
    pub transfers: bool,
}
impl Default for Recording {
    fn default() -> Self {
        Recording {
            enabled: false,
            channels: Channels::Dual,
            consent: ConsentMode::None,
            consent_message: None,
            retention_days: None,
            transfers: false,
        }
    }
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Channels {
    /// The agent on the left, the other side on the right.
    #[default]
    Dual,
    Mono,
}

/// Ordered: each asks for more than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsentMode {
    /// Nothing is said.
    #[default]
    None,
    /// It is said that the call is recorded.
    Notice,
    /// It is asked, and recorded only after a yes. A no ends the call.
    Verbal,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Where calls go if nothing else is named.
    pub number: E164,
    /// Others that the agent may choose; at most 20.
    #[serde(default)]
    pub targets: Vec<Target>,
}

/// Somebody that calls can be handed over to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// What the agent calls them, such as `sales`. Not `default`.
    pub name: Text<1, 64>,
    pub number: E164,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// Seconds of silence on both sides after which the call is ended.
    #[serde(default = "half_a_minute")]
    pub hangup_after_seconds: Bounded<5, 600>,
}
impl Default for Silence {
    fn default() -> Self {
        Silence {
            hangup_after_seconds: half_a_minute(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptOut {
    /// Off: the agent does not listen for the wish not to be called again. Only with test keys: a live call is always listened to, and
    /// so is one in which the law has it offered.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Beside the built-in ones of the agent's language and English; at most 100.
    #[serde(default)]
    pub phrases: Vec<Text<2, 100>>,
    /// A key by which the other side opts out, pressed by itself at any time from the pick-up on; null: no key does, but `9` where the
    /// law has one offered. Choose one that the agent asks for nothing else by.
    #[serde(default)]
    pub key: Option<OptOutKey>,
}
impl Default for OptOut {
    fn default() -> Self {
        OptOut {
            enabled: true,
            phrases: Vec::new(),
            key: None,
        }
    }
}

/// One of `0`, `3` to `9`, `*` and `#`: 1 and 2 answer the question of consent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct OptOutKey(String);
impl std::ops::Deref for OptOutKey {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}
impl<'de> Deserialize<'de> for OptOutKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?;
        match key.as_bytes() {
            [b'0' | b'3'..=b'9' | b'*' | b'#'] => Ok(OptOutKey(key)),
            _ => Err(serde::de::Error::custom(
                "must be one of 0, 3 to 9, * and #; 1 and 2 answer the question of consent",
            )),
        }
    }
}
impl JsonSchema for OptOutKey {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OptOutKey".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[03-9*#]$" })
    }
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
fn half_a_minute() -> Bounded<5, 600> {
    Bounded::new(30).unwrap_or_else(|_| unreachable!("a constant"))
}
fn yes() -> bool {
    true
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

#[boxed]
pub async fn load(db: &Connection, tenant: TenantId, id: AgentId) -> Result<Model> {
    let found = Entity::find_by_id(id)
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null())
        .one(db)
        .await?;
    found.ok_or(Error::NotFound("agent"))
}

#[boxed]
pub async fn list(db: &Db, tenant: TenantId, name: Option<&str>, page: Page) -> Result<Listed<Model>> {
    let all = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null());
    let wanted =
        Condition::all().add_option(name.map(|typed| names::begins(&Expr::cust("definition ->> 'name'"), typed)));
    page::search(db, all, wanted, Column::Id, Column::CreatedAt, page).await
}

/// A session in the queue still talks with the agent it was made for.
#[boxed]
pub async fn load_even_deleted(db: &Connection, tenant: TenantId, id: AgentId) -> Result<Model> {
    Entity::find_by_id(id)
        .filter(Column::TenantId.eq(tenant))
        .one(db)
        .await?
        .ok_or(Error::NotFound("agent"))
}

/// Names of agents that may call this function.
#[boxed]
pub async fn that_use(db: &Connection, tenant: TenantId, function: FunctionId) -> Result<Vec<String>> {
    // The id stands in the definition's text; agents are few.
    let wanted = Expr::cust("CAST(definition AS TEXT)").like(format!("%{function}%"));
    let rows = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null())
        .filter(wanted)
        .all(db)
        .await?;
    let uses = |row: &Model| row.definition.function_ids.contains(&function);
    Ok(rows
        .into_iter()
        .filter(uses)
        .map(|row| row.definition.name.into_string())
        .collect())
}

/// Names of agents that speak with this voice.
#[boxed]
pub async fn that_speak_with(db: &Connection, tenant: TenantId, voice: &str) -> Result<Vec<String>> {
    let rows = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null())
        .filter(Expr::cust("CAST(definition AS TEXT)").like(format!("%{voice}%")))
        .all(db)
        .await?;
    let speaks = |row: &Model| row.definition.voice_id.as_deref() == Some(voice);
    Ok(rows
        .into_iter()
        .filter(speaks)
        .map(|row| row.definition.name.into_string())
        .collect())
}
