//! What was said in a session.
use crate::{error::Result, ids::SessionId};
use schemars::JsonSchema;
use sea_orm::{FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    Agent,
    User,
}

/// One utterance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    pub role: Speaker,
    pub content: String,
    /// Seconds since the session's `started_at`.
    pub t: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Turns(pub Vec<Turn>);

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "transcripts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub session_id: SessionId,
    #[sea_orm(column_type = "JsonBinary")]
    pub turns: Turns,
}
impl ActiveModelBehavior for ActiveModel {}

/// Empty before the session's end and for sessions without a conversation.
pub async fn load(db: &impl ConnectionTrait, session: SessionId) -> Result<Turns> {
    Ok(Entity::find_by_id(session)
        .one(db)
        .await?
        .map(|row| row.turns)
        .unwrap_or_default())
}
